"""Links that die in mid-transaction, servers that don't answer, and errors that hold no secret."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

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
    committed,
    day,
    planned,
    seal,
    show,
    voted,
    whole_files,
)
from tests.ledger.proxy import LosingProxy

COMMIT = b"COMMIT"
SECRET = "s3cret"
Lose = Callable[[], None]


@pytest.fixture
def proxy(memory_server: PostgresServer, tmp_path: Path) -> Iterator[LosingProxy]:
    proxy = LosingProxy(memory_server, tmp_path / "pgpass")
    yield proxy
    proxy.close()


@pytest.fixture
def remote(ledger: Ledger, proxy: LosingProxy, sql: Sql) -> Iterator[Ledger]:
    """The ledger through the proxy, connected."""
    remote = Ledger(proxy.dsn(sql.one("SELECT current_database()")))
    remote.deployment()
    yield remote
    remote.close()


@pytest.fixture(params=["answer", "request"])
def lose(request: pytest.FixtureRequest, remote: Ledger, proxy: LosingProxy) -> Iterator[Lose]:
    """The next COMMIT is lost: on its way to the server, or its answer on the way back."""
    lose = {"answer": proxy.lose_answer, "request": proxy.lose_request}[request.param]
    yield partial(lose, COMMIT)
    assert proxy.cuts == 1


def history(sql: Sql, target: str) -> int:
    found: int = sql.one("SELECT count(*) FROM lockstep.transition WHERE target_state = %s", target)
    sql.rollback()
    return found


@pytest.mark.fault("D2")
def test_a_decision_whose_answer_is_lost_is_found(ledger: Ledger, remote: Ledger, lose: Lose, sql: Sql) -> None:
    epoch = voted(ledger, planned(ledger))
    lose()
    assert remote.commit_epoch(attempt_of(epoch)).state is EpochState.COMMITTED
    assert history(sql, "committed") == 1


@pytest.mark.fault("A2")
def test_a_plan_whose_answer_is_lost_is_found(remote: Ledger, lose: Lose, sql: Sql) -> None:
    lose()
    epoch = remote.plan_epoch(FLIGHTS, a_plan(), whole_files({"landing": ["a"]}), RUN, interval=day(1), after=None)
    assert epoch is not None
    assert remote.find_run(RUN) == attempt_of(epoch)
    assert history(sql, "planned") == 1


def test_a_cursor_plan_whose_answer_is_lost_is_found(remote: Ledger, lose: Lose, sql: Sql) -> None:
    lose()
    epoch = remote.plan_epoch(CLICKS, a_plan(), {}, RUN, interval=None, after=0)
    assert epoch is not None
    assert (epoch.id, remote.find_run(RUN)) == (1, attempt_of(epoch))
    assert history(sql, "planned") == 1


def test_a_seal_whose_answer_is_lost_is_found(ledger: Ledger, remote: Ledger, lose: Lose, sql: Sql) -> None:
    epoch = planned(ledger)
    lose()
    assert remote.seal_epoch(attempt_of(epoch), "folder", HASH, {}, "v1").wal == "folder"
    assert history(sql, "staged") == 1


def test_a_vote_whose_answer_is_lost_is_found(ledger: Ledger, remote: Ledger, lose: Lose, sql: Sql) -> None:
    epoch = seal(ledger, planned(ledger))
    token = ledger.take_token(attempt_of(epoch), Role.PREPARE, "warehouse")
    lose()
    remote.record_vote(attempt_of(epoch), "warehouse", Vote(token, "h", "t", {"flights": 7}))
    assert history(sql, "prepared") == 1


def test_a_publication_whose_answer_is_lost_is_found(ledger: Ledger, remote: Ledger, lose: Lose, sql: Sql) -> None:
    epoch = show(ledger, committed(ledger, planned(ledger)), SINKS[0])
    found = ledger.participants(FLIGHTS, epoch.id)[SINKS[1]].vote
    assert found is not None
    lose()
    done = remote.record_publication(epoch, SINKS[1], found.token, "committed", Role.PUBLISH)
    assert done.state is EpochState.PUBLISHED
    assert history(sql, ParticipantState.PUBLISHED) == len(SINKS) + 1


def test_a_discarded_seal_whose_answer_is_lost_is_found(ledger: Ledger, remote: Ledger, lose: Lose, sql: Sql) -> None:
    epoch = seal(ledger, planned(ledger))
    lose()
    discarded = remote.discard_seal(attempt_of(epoch), "torn")
    assert discarded.state is EpochState.PLANNED
    assert remote.find_run(RUN) == attempt_of(discarded)


def test_a_take_over_whose_answer_is_lost_ends_with_the_runs_own_attempt(
    ledger: Ledger, remote: Ledger, lose: Lose
) -> None:
    epoch = planned(ledger)
    lose()
    taken = remote.take_over(FLIGHTS, epoch.id, RUN)
    assert ledger.find_run(RUN) == attempt_of(taken)
    assert ledger.epoch(FLIGHTS, epoch.id).attempt == taken.attempt


def test_a_void_and_a_replan_whose_answer_is_lost_are_found(ledger: Ledger, remote: Ledger, lose: Lose) -> None:
    epoch, other = planned(ledger), planned(ledger, 2, OTHER_RUN)
    lose()
    assert remote.void_epoch(FLIGHTS, epoch.id, "no").state is EpochState.VOID
    assert remote.replan_epoch(FLIGHTS, other.id, a_plan(end=20), {}, "yes").plan == a_plan(end=20)


@pytest.mark.fault("A9", "J6")
def test_a_link_that_dies_in_mid_transaction_leaves_nothing_half_done(
    ledger: Ledger, remote: Ledger, proxy: LosingProxy, sql: Sql
) -> None:
    proxy.lose_request(b"INSERT INTO lockstep.claim")
    epoch = planned_remotely(remote)
    assert proxy.cuts == 1
    assert sql("SELECT id FROM lockstep.epoch") == [(epoch.id,)]
    assert sql.one("SELECT last_epoch FROM lockstep.pipeline WHERE name = 'flights'") == 1


def planned_remotely(remote: Ledger) -> Epoch:
    return planned(remote, 1, RunKey("flights", "remote"), claims={"landing": ["a"]})


@pytest.mark.fault("D14")
def test_a_session_that_the_server_ends_is_replaced(ledger: Ledger, sql: Sql) -> None:
    epoch = voted(ledger, planned(ledger))
    sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lockstep-ledger'"
        " AND datname = current_database()"
    )
    sql.commit()
    assert ledger.commit_epoch(attempt_of(epoch)).state is EpochState.COMMITTED


def everything_said(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error.__cause__) + repr(error.__context__)


SECRETIVE: dict[str, type[LockstepError]] = {
    f"postgresql://user:{SECRET}@127.0.0.1:1/db": LedgerUnavailable,
    f"host=127.0.0.1 port=1 user=user password={SECRET} dbname=db": LedgerUnavailable,
    f"postgresql://user:{SECRET}@127.0.0.1:port/db": LedgerRefused,
    f"postgresql://user:a{SECRET} b@127.0.0.1:1/db": LedgerUnavailable,
    f"postgresql://user:a@{SECRET}@127.0.0.1:1/db": LedgerRefused,
    f"host=127.0.0.1 password=a {SECRET}": LedgerRefused,
    f"{SECRET}": LedgerRefused,
}


def test_no_error_tells_the_password(subtests: pytest.Subtests) -> None:
    for dsn, expected in SECRETIVE.items():
        for connect in (Ledger(dsn).deployment, partial(migrate, dsn)):
            with subtests.test(dsn):
                with pytest.raises(LockstepError) as caught:
                    connect()
                assert SECRET not in everything_said(caught.value)
                assert isinstance(caught.value, expected)


def test_a_wrong_password_is_an_error_without_it(memory_server: PostgresServer) -> None:
    dsn = f"postgresql://postgres:{SECRET}@127.0.0.1:{memory_server.port}/postgres"
    with pytest.raises(LedgerUnavailable, match="password authentication failed") as caught:
        Ledger(dsn).deployment()
    assert SECRET not in everything_said(caught.value)
