"""Links that die in mid-transaction, servers that don't answer, and errors that hold no secret."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from lockstep.epoch import Epoch, RunKey, Vote
from lockstep.errors import LedgerRefused, LedgerUnavailable, LockstepError
from lockstep.ledger import Ledger, migrate
from lockstep.states import EpochState, ParticipantState, Role
from stack.postgres import PostgresServer
from tests.ledger.epochs import (
    CLICKS,
    FLIGHTS,
    HASH,
    OTHER_RUN,
    RUN,
    SINKS,
    Sql,
    a_plan,
    attempt_of,
    day,
    planned,
    seal,
    voted,
    whole_files,
)
from tests.ledger.proxy import LosingProxy

SECRET = "s3cret"
T = TypeVar("T")


@pytest.fixture
def proxy(ledger_server: PostgresServer, tmp_path: Path) -> Iterator[LosingProxy]:
    proxy = LosingProxy(ledger_server, tmp_path / "pgpass")
    yield proxy
    proxy.close()


@pytest.fixture
def remote(ledger: Ledger, proxy: LosingProxy, sql: Sql) -> Iterator[Ledger]:
    """The ledger through the proxy, connected."""
    remote = Ledger(proxy.dsn(sql.one("SELECT current_database()")))
    remote.deployment()
    yield remote
    remote.close()


def history(sql: Sql, target: str) -> int:
    found: int = sql.one("SELECT count(*) FROM lockstep.transition WHERE target_state = %s", target)
    sql.rollback()
    return found


def require(found: Epoch | None) -> Epoch:
    assert found is not None
    return found


@pytest.mark.fault("A2", "D2")
@pytest.mark.parametrize("lost", ["answer", "request"])
def test_what_is_lost_at_the_commit_of_any_step_is_done_once(
    ledger: Ledger, remote: Ledger, proxy: LosingProxy, sql: Sql, lost: str
) -> None:
    """The COMMIT is lost on its way to the server, or its answer on the way back."""

    def losing(step: Callable[[], T]) -> T:
        cuts = proxy.cuts
        {"answer": proxy.lose_answer, "request": proxy.lose_request}[lost](b"COMMIT")
        done = step()
        assert proxy.cuts == cuts + 1
        return done

    files = whole_files({"landing": ["a"]})
    plan = partial(remote.plan_epoch, FLIGHTS, a_plan(), files, RUN, interval=day(1), after=None)
    epoch = require(losing(plan))
    assert remote.find_run(RUN) == attempt_of(epoch)
    next_click = partial(remote.plan_epoch, CLICKS, a_plan(), {}, OTHER_RUN, interval=None, after=0)
    click = require(losing(next_click))
    assert (click.id, remote.find_run(OTHER_RUN)) == (1, attempt_of(click))
    assert history(sql, "planned") == 2
    epoch = losing(lambda: remote.take_over(FLIGHTS, epoch.id, RUN))
    assert ledger.find_run(RUN) == attempt_of(epoch) == attempt_of(ledger.epoch(FLIGHTS, epoch.id))
    assert losing(lambda: remote.seal_epoch(attempt_of(epoch), "torn", HASH, {}, "v1")).wal == "torn"
    assert history(sql, "staged") == 1
    epoch = losing(lambda: remote.discard_seal(attempt_of(epoch), "torn"))
    assert (epoch.state, remote.find_run(RUN)) == (EpochState.PLANNED, attempt_of(epoch))
    epoch = seal(ledger, epoch)
    for sink in SINKS:
        token = ledger.take_token(attempt_of(epoch), Role.PREPARE, sink)
        losing(partial(remote.record_vote, attempt_of(epoch), sink, Vote(token, "h", "t", {"flights": 7})))
    assert history(sql, "prepared") == len(SINKS)
    assert losing(lambda: remote.commit_epoch(attempt_of(epoch))).state is EpochState.COMMITTED
    assert history(sql, "committed") == 1
    for sink in SINKS:
        found = ledger.participants(FLIGHTS, epoch.id)[sink].vote
        assert found is not None
        record = partial(remote.record_publication, epoch, sink, found.token, "committed", Role.PUBLISH)
        epoch = losing(record)
    assert epoch.state is EpochState.PUBLISHED
    assert history(sql, ParticipantState.PUBLISHED) == len(SINKS) + 1
    for number, give_up in ((2, True), (3, False)):
        other = planned(ledger, number, RunKey("flights", f"{number}"))
        if give_up:
            assert losing(lambda: remote.void_epoch(FLIGHTS, other.id, "no")).state is EpochState.VOID  # noqa: B023
        else:
            again = losing(lambda: remote.replan_epoch(FLIGHTS, other.id, a_plan(end=20), {}, "yes"))  # noqa: B023
            assert again.plan == a_plan(end=20)


@pytest.mark.fault("A9", "J6")
def test_a_link_that_dies_in_mid_transaction_leaves_nothing_half_done(
    ledger: Ledger, remote: Ledger, proxy: LosingProxy, sql: Sql
) -> None:
    proxy.lose_request(b"INSERT INTO lockstep.claim")
    epoch = planned(remote, 1, RunKey("flights", "remote"), claims={"landing": ["a"]})
    assert proxy.cuts == 1
    assert sql("SELECT id FROM lockstep.epoch") == [(epoch.id,)]
    assert sql.one("SELECT last_epoch FROM lockstep.pipeline WHERE name = 'flights'") == 1


@pytest.mark.fault("D14")
def test_a_session_that_the_server_ends_is_replaced(ledger: Ledger, sql: Sql) -> None:
    epoch = voted(ledger, planned(ledger))
    sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lockstep-ledger'"
        " AND datname = current_database()"
    )
    sql.commit()
    assert ledger.commit_epoch(attempt_of(epoch)).state is EpochState.COMMITTED


SECRETIVE: dict[str, type[LockstepError]] = {
    f"postgresql://user:{SECRET}@127.0.0.1:1/db": LedgerUnavailable,
    f"postgresql://user:{SECRET}@127.0.0.1:port/db": LedgerRefused,
    f"postgresql://user:a@{SECRET}@127.0.0.1:1/db": LedgerRefused,
    f"host=127.0.0.1 port=1 user=user password={SECRET} dbname=db": LedgerUnavailable,
    f"host=127.0.0.1 password=a {SECRET}": LedgerRefused,
}


def test_no_error_tells_the_password(ledger_server: PostgresServer) -> None:
    wrong = f"postgresql://postgres:{SECRET}@127.0.0.1:{ledger_server.port}/postgres"
    for dsn, expected in {**SECRETIVE, wrong: LedgerUnavailable}.items():
        for connect in (Ledger(dsn).deployment, partial(migrate, dsn)):
            with pytest.raises(expected) as caught:
                connect()
            error = caught.value
            said = "".join(traceback.format_exception(error)) + repr(error.__cause__) + repr(error.__context__)
            assert SECRET not in said, dsn
