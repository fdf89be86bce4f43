"""What was acknowledged survives a crash; a server or a schema with which that can't be promised is refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psycopg2
import pytest

from lockstep.epoch import Attempt, Epoch, KeyedBy
from lockstep.errors import LedgerRefused, LedgerUnavailable
from lockstep.ledger import Ledger, migrate
from lockstep.ledger._connection import Transaction, migrations
from lockstep.states import EpochState, Role
from stack.postgres import PostgresServer
from tests.ledger.epochs import FLIGHTS, Sql, attempt_of, planned, voted
from tests.small_disk import small_disk

EPOCHS = 20


@pytest.fixture(scope="module")
def own_dsn(own_server: PostgresServer) -> str:
    dsn = own_server.create_database("own_ledger")
    migrate(dsn)
    ledger = Ledger(dsn)
    ledger.ensure_pipeline(FLIGHTS, KeyedBy.INTERVAL)
    ledger.close()
    return dsn


@pytest.fixture
def own_ledger(own_server: PostgresServer, own_dsn: str) -> Iterator[Ledger]:
    own_server.start()
    ledger = Ledger(own_dsn)
    yield ledger
    ledger.close()


def setting(ledger: Ledger) -> str:
    """synchronous_commit inside a transaction of the ledger."""

    def look(tx: Transaction) -> str:
        tx._cursor.execute("SHOW synchronous_commit")
        return str(tx._cursor.fetchall()[0]["synchronous_commit"])

    return ledger._connection.run(Role.COMMIT, look)


@pytest.mark.fault("C12", "D4")
@pytest.mark.parametrize(
    ("scope", "said", "kept"),
    [
        ("ROLE postgres IN DATABASE {}", "off", "on"),
        ("DATABASE {}", "off", "on"),
        ("DATABASE {}", "remote_apply", "remote_apply"),
    ],
)
def test_synchronous_commit_is_on_whatever_role_and_database_say_and_a_stronger_setting_is_left_alone(
    migrated_dsn: str, sql: Sql, scope: str, said: str, kept: str
) -> None:
    scope = scope.format(sql.one("SELECT current_database()"))
    sql(f"ALTER {scope} SET synchronous_commit = {said}")
    sql.commit()
    with closing(Ledger(migrated_dsn)) as fresh, closing(psycopg2.connect(migrated_dsn)) as plain:
        assert Sql(plain).one("SHOW synchronous_commit") == said
        assert setting(fresh) == kept
    sql(f"ALTER {scope} RESET synchronous_commit")
    sql.commit()


@pytest.mark.fault("D3")
def test_every_acknowledged_decision_survives_an_immediate_stop(
    own_server: PostgresServer, own_dsn: str, own_ledger: Ledger
) -> None:
    """With synchronous_commit off for the database, 9 of 10 would be lost."""
    with closing(psycopg2.connect(own_dsn)) as connection, connection, connection.cursor() as cursor:
        cursor.execute("ALTER DATABASE own_ledger SET synchronous_commit = off")
    epochs = [voted(own_ledger, planned(own_ledger, number + 1)) for number in range(EPOCHS)]
    decided = [own_ledger.commit_epoch(attempt_of(epoch)) for epoch in epochs]
    own_server.stop("immediate")
    own_server.start()
    assert [own_ledger.epoch(FLIGHTS, epoch.id) for epoch in decided] == decided
    assert {epoch.state for epoch in decided} == {EpochState.COMMITTED}


@pytest.mark.fault("A9")
def test_a_ledger_that_was_stopped_is_found_again_by_the_same_object_and_issues_no_token_twice(
    own_server: PostgresServer, own_ledger: Ledger
) -> None:
    epoch = voted(own_ledger, planned(own_ledger, 200))
    own_server.restart("immediate")
    assert own_ledger.commit_epoch(attempt_of(epoch)).state is EpochState.COMMITTED
    other = planned(own_ledger, 100)
    for _ in range(2):
        taken = own_ledger.take_token(attempt_of(other), Role.STAGE)
        own_server.restart("immediate")
        assert own_ledger.take_token(attempt_of(other), Role.STAGE) > taken


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
    monkeypatch.setattr("lockstep.connections.postgres.connection.OLDEST", 99)
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


# --- another schema than this version's ---


def test_a_database_without_a_ledger_is_refused(ledger_server: PostgresServer) -> None:
    with pytest.raises(LedgerRefused, match="holds no ledger: run `lockstep migrate`"):
        Ledger(ledger_server.dsn("postgres")).deployment()
    with pytest.raises(LedgerUnavailable, match='database "nowhere" does not exist'):
        migrate(ledger_server.dsn("nowhere"))


@pytest.mark.fault("G5", "J9")
@pytest.mark.parametrize(("version", "advice"), [(999, "upgrade Lockstep"), (0, "run the ledger's migrations")])
def test_a_schema_of_another_version_is_refused(migrated_dsn: str, sql: Sql, version: int, advice: str) -> None:
    known = migrations()[-1][0]
    sql("UPDATE lockstep.migration SET version = %s WHERE version = %s", version, known)
    sql.commit()
    try:
        with pytest.raises(LedgerRefused, match=advice):
            Ledger(migrated_dsn).deployment()
        if version > known:
            with pytest.raises(LedgerRefused, match="upgrade"):
                migrate(migrated_dsn)
    finally:
        sql("UPDATE lockstep.migration SET version = %s WHERE version = %s", known, version)
        sql.commit()


@pytest.mark.fault("G5")
def test_a_plan_of_an_unknown_format_is_refused(migrated_dsn: str, sql: Sql) -> None:
    with sql.unwatched():
        sql(
            "INSERT INTO lockstep.epoch (pipeline, id, state, attempt, plan)"
            """ VALUES ('clicks', 1, 'planned', 1, '{"format": 2}')"""
        )
    with pytest.raises(LedgerRefused, match="plan has format 2"):
        Ledger(migrated_dsn).epoch("clicks", 1)


# --- the ledger's own disk fills up ---

SIZE = "160m"
DECISIONS = 40  #: more than the pages at hand take


@pytest.fixture
def disk(servers_folder: Path) -> Iterator[Path]:
    """A file system of its own, SIZE large."""
    with small_disk(servers_folder / "full", SIZE) as folder:
        yield folder


@pytest.fixture
def small_server(disk: Path, passfile: Path, server_template: PostgresServer) -> Iterator[PostgresServer]:
    settings = {"max_wal_size": "64MB", "autovacuum": "off"}
    found = PostgresServer(disk / "ledger", passfile=passfile, template=server_template, settings=settings)
    with found.for_a_while():
        yield found


@pytest.fixture
def small_dsn(small_server: PostgresServer) -> str:
    dsn = small_server.create_database("ledger")
    migrate(dsn)
    return dsn


def fill(disk: Path) -> Path:
    """Take every byte that is left."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    assert os.statvfs(disk).f_bavail == 0
    return ballast


def decide(ledger: Ledger, epochs: list[Epoch]) -> Epoch:
    """Decide one after the other until the disk is full; the first that isn't decided."""
    for epoch in epochs:
        try:
            ledger.commit_epoch(attempt_of(epoch))
        except LedgerUnavailable as error:
            assert "No space left" in str(error)
            return epoch
    raise AssertionError(f"{len(epochs)} decisions found room")


def decisions(dsn: str, epoch: Epoch) -> int:
    connection = psycopg2.connect(dsn)
    find = "SELECT count(*) FROM lockstep.transition WHERE (epoch, target_state) = (%s, 'committed')"
    found = Sql(connection).one(find, epoch.id)
    connection.close()
    return int(found)


@pytest.mark.fault("D13", "J1")
def test_a_decision_that_finds_no_room_is_not_taken_until_there_is_even_if_the_server_dies_of_it(
    disk: Path, small_dsn: str, small_server: PostgresServer
) -> None:
    ledger = Ledger(small_dsn)
    ledger.ensure_pipeline(FLIGHTS, KeyedBy.INTERVAL)
    epochs = [voted(ledger, planned(ledger, number + 1)) for number in range(DECISIONS)]
    ballast = fill(disk)
    refused = decide(ledger, epochs[:-1])
    before = epochs[: epochs.index(refused)]
    assert ledger.epoch(FLIGHTS, refused.id) == refused
    assert decisions(small_dsn, refused) == 0
    assert {p.state.value for p in ledger.participants(FLIGHTS, refused.id).values()} == {"prepared"}
    ballast.unlink()
    decided = ledger.commit_epoch(attempt_of(refused))
    assert decided.state is EpochState.COMMITTED and decisions(small_dsn, refused) == 1
    assert {ledger.epoch(FLIGHTS, epoch.id).state for epoch in before} <= {EpochState.COMMITTED}
    ballast = fill(disk)
    use_up_the_log(small_dsn)
    with pytest.raises(LedgerUnavailable):
        ledger.commit_epoch(attempt_of(epochs[-1]))
    ballast.unlink()
    small_server.stop("immediate")
    small_server.start()
    assert ledger.epoch(FLIGHTS, refused.id) == decided
    assert ledger.epoch(FLIGHTS, epochs[-1].id) == epochs[-1]
    assert ledger.commit_epoch(attempt_of(epochs[-1])).state is EpochState.COMMITTED
    ledger.close()


def use_up_the_log(dsn: str) -> None:
    """Go to the next file of the write-ahead log until there is none: the server panics."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    with suppress(psycopg2.Error), connection.cursor() as cursor:
        while True:
            cursor.execute("SELECT pg_logical_emit_message(false, 'lockstep', repeat('x', 100000), true)")
    connection.close()
