"""What was acknowledged survives a crash; a server that can't promise that is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

from lockstep.epoch import Attempt, Identity
from lockstep.errors import LedgerRefused
from lockstep.ledger import Ledger, migrate
from lockstep.ledger._connection import Transaction
from lockstep.states import EpochState, Role
from stack.postgres import PostgresServer
from tests.ledger.epochs import FLIGHTS, Sql, attempt_of, planned, vote, voted

EPOCHS = 20


@pytest.fixture(scope="module")
def own_dsn(own_server: PostgresServer) -> str:
    dsn = own_server.create_database("own_ledger")
    migrate(dsn)
    ledger = Ledger(dsn)
    ledger.ensure_pipeline(FLIGHTS, Identity.INTERVAL)
    ledger.close()
    return dsn


@pytest.fixture
def own_ledger(own_server: PostgresServer, own_dsn: str) -> Iterator[Ledger]:
    own_server.start()
    ledger = Ledger(own_dsn)
    yield ledger
    ledger.close()


def set_off(dsn: str, scope: str) -> None:
    connection = psycopg2.connect(dsn)
    sql = Sql(connection)
    sql(f"ALTER {scope} SET synchronous_commit = off")
    sql.commit()
    connection.close()


def setting(ledger: Ledger) -> str:
    """synchronous_commit inside a transaction of the ledger."""

    def look(tx: Transaction) -> str:
        tx._cursor.execute("SHOW synchronous_commit")
        return str(tx._cursor.fetchall()[0]["synchronous_commit"])

    return ledger._connection.run(Role.COMMIT, look)


@pytest.mark.fault("C12", "D4")
@pytest.mark.parametrize("scope", ["ROLE postgres IN DATABASE {}", "DATABASE {}"])
def test_synchronous_commit_is_on_whatever_role_and_database_say(
    ledger: Ledger, migrated_dsn: str, sql: Sql, scope: str
) -> None:
    scope = scope.format(sql.one("SELECT current_database()"))
    set_off(migrated_dsn, scope)
    fresh = Ledger(migrated_dsn)
    plain = psycopg2.connect(migrated_dsn)
    assert Sql(plain).one("SHOW synchronous_commit") == "off"
    assert setting(fresh) == "on"
    sql(f"ALTER {scope} RESET synchronous_commit")
    sql.commit()
    fresh.close()
    plain.close()


@pytest.mark.parametrize("kept", ["remote_apply", "on"])
def test_a_stronger_setting_is_left_alone(ledger: Ledger, migrated_dsn: str, sql: Sql, kept: str) -> None:
    database = sql.one("SELECT current_database()")
    sql(f"ALTER DATABASE {database} SET synchronous_commit = {kept}")
    sql.commit()
    fresh = Ledger(migrated_dsn)
    assert setting(fresh) == kept
    fresh.close()
    sql(f"ALTER DATABASE {database} RESET synchronous_commit")
    sql.commit()


@pytest.mark.fault("D3")
def test_every_acknowledged_decision_survives_an_immediate_stop(
    own_server: PostgresServer, own_dsn: str, own_ledger: Ledger
) -> None:
    """With synchronous_commit off for the database, 9 of 10 would be lost."""
    set_off(own_dsn, "DATABASE own_ledger")
    epochs = [voted(own_ledger, planned(own_ledger, number + 1)) for number in range(EPOCHS)]
    decided = [own_ledger.commit_epoch(attempt_of(epoch)) for epoch in epochs]
    own_server.stop("immediate")
    own_server.start()
    assert [own_ledger.epoch(FLIGHTS, epoch.id) for epoch in decided] == decided
    assert {epoch.state for epoch in decided} == {EpochState.COMMITTED}


def test_no_token_is_issued_again_after_an_immediate_stop(own_server: PostgresServer, own_ledger: Ledger) -> None:
    epoch = planned(own_ledger, 100)
    for _ in range(2):
        taken = own_ledger.take_token(attempt_of(epoch), Role.STAGE)
        own_server.restart("immediate")
        assert own_ledger.take_token(attempt_of(epoch), Role.STAGE) > taken


@pytest.mark.fault("A9")
def test_a_stopped_ledger_is_found_again_by_the_same_object(own_server: PostgresServer, own_ledger: Ledger) -> None:
    epoch = voted(own_ledger, planned(own_ledger, 200))
    own_server.restart("immediate")
    assert own_ledger.commit_epoch(attempt_of(epoch)).state is EpochState.COMMITTED


@pytest.mark.fault("C12")
@pytest.mark.parametrize("weak", ["fsync", "full_page_writes"])
def test_a_server_that_may_lose_a_decision_is_refused(
    own_server: PostgresServer, own_dsn: str, own_ledger: Ledger, weak: str
) -> None:
    own_server.restart(settings={weak: "off"})
    try:
        with pytest.raises(LedgerRefused, match=f"{weak} = off"):
            own_ledger.unfinished_epochs(FLIGHTS)
        with pytest.raises(LedgerRefused, match=weak):
            planned(own_ledger, 300)
    finally:
        own_server.restart(settings={weak: "on"})


def test_a_server_that_is_too_old_is_refused_with_what_it_lacks(
    own_server: PostgresServer, own_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockstep.postgres.connection.OLDEST", 99)
    for use in (lambda: own_ledger.unfinished_epochs(FLIGHTS), lambda: migrate(own_server.dsn())):
        with pytest.raises(LedgerRefused, match=r"server is PostgreSQL \d+: 99 or newer is needed.* no multiranges"):
            use()


@pytest.mark.fault("D9")
def test_a_replica_is_refused(
    memory_folder: Path, passfile: Path, own_server: PostgresServer, own_dsn: str, own_ledger: Ledger
) -> None:
    """A hot standby answers reads: with what was true some time ago."""
    own_server.stop()
    replica = PostgresServer(memory_folder / "replica", passfile=passfile, template=own_server)
    try:
        replica.init()
        (replica.data / "standby.signal").touch()
        replica.start()
        dsn = replica.dsn("own_ledger")
        connection = psycopg2.connect(dsn)
        assert Sql(connection).one("SELECT pg_is_in_recovery()")
        connection.close()
        ledger = Ledger(dsn)
        with pytest.raises(LedgerRefused, match="replica"):
            ledger.unfinished_epochs(FLIGHTS)
        with pytest.raises(LedgerRefused, match="replica"):
            ledger.take_token(Attempt(FLIGHTS, 1, 1), Role.STAGE)
        with pytest.raises(LedgerRefused, match="replica"):
            migrate(dsn)
        ledger.close()
    finally:
        replica.remove()
        own_server.start()


def test_a_read_only_session_is_refused(ledger: Ledger, migrated_dsn: str, sql: Sql) -> None:
    database = sql.one("SELECT current_database()")
    sql(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    sql.commit()
    fresh = Ledger(migrated_dsn)
    try:
        with pytest.raises(LedgerRefused, match="read-only"):
            planned(fresh)
    finally:
        fresh.close()
        sql("SET TRANSACTION READ WRITE")
        sql(f"ALTER DATABASE {database} RESET default_transaction_read_only")
        sql.commit()


def test_an_idle_ledger_object_holds_no_lock(ledger: Ledger, sql: Sql) -> None:
    epoch = voted(ledger, planned(ledger))
    vote(ledger, epoch, "warehouse")
    idle = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in trans%%'"
    assert sql.one(idle.replace("%%", "%")) == 0
