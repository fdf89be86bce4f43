"""Processes that want different things of the same epochs at the same moment: one order, through the epoch's row."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from threading import Barrier
from typing import Any

import psycopg2
import pytest

from lockstep.epoch import Attempt, Epoch, RunKey, Vote
from lockstep.errors import EpochBusy, Fenced, KeysHeld, NotPrepared
from lockstep.ledger import Ledger, migrate
from lockstep.ledger._connection import migrations
from lockstep.states import UNDECIDED, EpochState, Role
from stack.postgres import PostgresServer
from tests.ledger.epochs import CLICKS, FLIGHTS, SINKS, Sql, a_plan, attempt_of, day, planned, seal, vote

ROUNDS = 500
VOTING_ROUNDS = 100
TURNS = 60
_PATIENCE = 60


def race(*racers: tuple[Callable[..., Any], tuple[Any, ...]]) -> list[Any]:
    """Run each racer on a thread and a connection of its own, with a common barrier as first argument.

    The rounds are decided in the server: threads race there as well as processes, and start quicker.
    """
    barrier = Barrier(len(racers))

    def run(racer: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        try:
            return racer(barrier, *arguments)
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(len(racers)) as pool:
        return [future.result() for future in [pool.submit(run, *racer) for racer in racers]]


@contextmanager
def _ledger(dsn: str, actor: str) -> Iterator[Ledger]:
    ledger = Ledger(dsn, actor)
    ledger.deployment()  # connect before the race
    yield ledger
    ledger.close()


def decide(barrier: Barrier, dsn: str, attempts: dict[int, int]) -> set[int]:
    """Commit each epoch; those that were committed by this process."""
    won = set()
    with _ledger(dsn, "decider") as ledger:
        for epoch, attempt in attempts.items():
            barrier.wait(_PATIENCE)
            try:
                ledger.commit_epoch(Attempt(FLIGHTS, epoch, attempt))
                won.add(epoch)
            except (Fenced, NotPrepared):
                pass
    return won


def take_turns(barrier: Barrier, dsn: str, asking: list[tuple[int, int, int]]) -> set[int]:
    """Ask for the turn for each (epoch, attempt, token), and let go of it before the next round; those that got it."""
    got = set()
    with _ledger(dsn, "asking") as ledger:
        for epoch, attempt, token in asking:
            barrier.wait(_PATIENCE)
            try:
                ledger.take_turn(Attempt(FLIGHTS, epoch, attempt), "warehouse", token)
                got.add(epoch)
            except KeysHeld:
                pass
            barrier.wait(_PATIENCE)  # nobody lets go before both have asked
            if epoch in got:
                ledger.raise_attempt(FLIGHTS, epoch, Role.ABORT)
    return got


def abort(barrier: Barrier, dsn: str, attempts: dict[int, int]) -> set[int]:
    """Raise each epoch's attempt; those that were still undecided."""
    won = set()
    with _ledger(dsn, "aborter") as ledger:
        for epoch, attempt in attempts.items():
            barrier.wait(_PATIENCE)
            if ledger.raise_attempt(FLIGHTS, epoch, Role.ABORT, only=attempt).state in UNDECIDED:
                won.add(epoch)
    return won


def vote_then_decide(barrier: Barrier, dsn: str, attempts: dict[int, int], sink: str) -> set[int]:
    """The last voter decides; both think that they may be it."""
    won = set()
    with _ledger(dsn, sink) as ledger:
        for epoch, token in attempts.items():
            attempt = Attempt(FLIGHTS, epoch, token)
            execution = ledger.take_token(attempt, Role.PREPARE, sink)
            barrier.wait(_PATIENCE)
            ledger.record_vote(attempt, sink, Vote(execution, "h", "t"))
            try:
                ledger.commit_epoch(attempt)
                won.add(epoch)
            except NotPrepared:
                pass
    return won


def take_over(barrier: Barrier, dsn: str, epochs: list[int], run_id: str) -> set[int]:
    won = set()
    with _ledger(dsn, run_id) as ledger:
        for epoch in epochs:
            barrier.wait(_PATIENCE)
            try:
                ledger.take_over(FLIGHTS, epoch, RunKey("flights", run_id))
                won.add(epoch)
            except EpochBusy:
                pass
    return won


def plan_clicks(barrier: Barrier, dsn: str, wanted: int, name: str) -> list[int]:
    """Plan `wanted` cursor epochs, each after whatever is last; their numbers."""
    numbers: list[int] = []
    with _ledger(dsn, name) as ledger:
        barrier.wait(_PATIENCE)
        while len(numbers) < wanted:
            last = ledger.last_epoch(CLICKS)
            after = last.id if last else 0
            run = RunKey("clicks", f"{name} {len(numbers)}")
            plan = a_plan(last.plan.sources["landing"].end if last else None, f"{name} {len(numbers)}")
            epoch = ledger.plan_epoch(CLICKS, plan, {}, run, interval=None, after=after)
            if epoch is not None:
                numbers.append(epoch.id)
    return numbers


def plan_days(barrier: Barrier, dsn: str, days: list[int], name: str) -> dict[int, int]:
    """Plan these days in this order; the epoch of each that this process got."""
    got = {}
    with _ledger(dsn, name) as ledger:
        for number in days:
            barrier.wait(_PATIENCE)
            run = RunKey("flights", f"{name} {number}")
            epoch = ledger.plan_epoch(FLIGHTS, a_plan(), {}, run, interval=day(number), after=None)
            if epoch is not None:
                got[number] = epoch.id
    return got


def migrating(barrier: Barrier, dsn: str) -> list[str]:
    barrier.wait(_PATIENCE)
    return migrate(dsn)


def many_epochs(sql: Sql, count: int, state: str) -> dict[int, int]:
    """That many staged epochs, `state` the state of their participants; their attempts by number."""
    sql.act_as("begin")
    tokens = (
        "INSERT INTO lockstep.execution (pipeline, epoch, role, actor)"
        " SELECT 'flights', n, 'begin', 'test' FROM generate_series(1, %s) n RETURNING epoch, token"
    )
    attempts = dict(sql(tokens, count))
    sql(
        "INSERT INTO lockstep.epoch (pipeline, id, span, state, attempt, plan)"
        " SELECT x.pipeline, x.epoch, tstzrange('2013-01-01'::timestamptz + x.epoch * interval '1 d',"
        "   '2013-01-02'::timestamptz + x.epoch * interval '1 d'), 'planned', x.token,"
        '   \'{"format": 1, "sources": {}, "reads": {}, "sinks": {"warehouse": {}, "delays": {}}}\''
        " FROM lockstep.execution x"
    )
    sql(
        "INSERT INTO lockstep.participant (pipeline, epoch, sink, state)"
        " SELECT pipeline, id, sink, 'pending' FROM lockstep.epoch, unnest(%s) sink",
        list(SINKS),
    )
    sql.act_as("stage")
    sql("UPDATE lockstep.epoch SET state = 'staged', wal = 'w', manifest_hash = repeat('a', 64)")
    if state == "prepared":
        sql.act_as("prepare")
        sql(
            "UPDATE lockstep.participant p SET state = 'prepared', attempt = e.attempt, token = e.attempt,"
            " target_id = 't' FROM lockstep.epoch e WHERE (e.pipeline, e.id) = (p.pipeline, p.epoch)"
        )
    sql("UPDATE lockstep.pipeline SET last_epoch = %s WHERE name = 'flights'", count)
    sql.commit()
    return attempts


@pytest.mark.fault("D6", "D16")
def test_commit_against_abort_has_one_winner_each_time(migrated_dsn: str, sql: Sql) -> None:
    attempts = many_epochs(sql, ROUNDS, "prepared")
    decided, aborted = race((decide, (migrated_dsn, attempts)), (abort, (migrated_dsn, attempts)))
    assert decided | aborted == attempts.keys()
    assert not decided & aborted
    assert decided, "abort won every round: no race at all"
    assert aborted, "commit won every round: no race at all"
    states = dict(sql("SELECT id, (state, attempt)::text FROM lockstep.epoch"))
    assert {epoch for epoch in states if states[epoch] == f"(committed,{attempts[epoch]})"} == decided
    voided = sql(
        "SELECT e.id FROM lockstep.epoch e JOIN lockstep.participant p ON (p.pipeline, p.epoch) = (e.pipeline, e.id)"
        " WHERE (e.state = 'committed') <> (p.state = 'prepared') OR (p.state = 'prepared' AND p.attempt <> e.attempt)"
    )
    assert voided == []


@pytest.mark.fault("D5", "D16")
def test_of_two_last_voters_at_least_one_decides(migrated_dsn: str, sql: Sql) -> None:
    attempts = many_epochs(sql, VOTING_ROUNDS, "pending")
    won = race(*[(vote_then_decide, (migrated_dsn, attempts, sink)) for sink in SINKS])
    assert won[0] | won[1] == attempts.keys()
    assert sql.one("SELECT count(*) FROM lockstep.epoch WHERE state <> 'committed'") == 0
    decisions = sql("SELECT epoch, count(*) FROM lockstep.transition WHERE target_state = 'committed' GROUP BY epoch")
    assert sorted(decisions) == [(epoch, 1) for epoch in sorted(attempts)]


@pytest.mark.fault("A3")
def test_of_two_runs_one_takes_an_epoch_over(migrated_dsn: str, sql: Sql) -> None:
    epochs = list(many_epochs(sql, 100, "pending"))
    first, second = race(*[(take_over, (migrated_dsn, epochs, f"run {n}")) for n in range(2)])
    assert first | second == set(epochs)
    assert not first & second


def test_eight_planners_make_dense_cursor_numbers(ledger: Ledger, migrated_dsn: str) -> None:
    found = race(*[(plan_clicks, (migrated_dsn, 5, f"planner {n}")) for n in range(8)])
    assert sorted(number for numbers in found for number in numbers) == list(range(1, 41))
    epochs = [ledger.epoch(CLICKS, number).plan.sources["landing"] for number in range(1, 41)]
    assert all(later.start == earlier.end for earlier, later in pairwise(epochs))


@pytest.mark.fault("H9")
def test_backfills_plan_in_any_order_and_in_parallel(ledger: Ledger, migrated_dsn: str) -> None:
    days = list(range(1, 31))
    found = race(
        (plan_days, (migrated_dsn, days, "forwards")),
        (plan_days, (migrated_dsn, days[::-1], "backwards")),
        (plan_days, (migrated_dsn, days, "beside")),
    )
    planned_days = [number for got in found for number in got]
    assert sorted(planned_days) == days
    assert sorted(epoch for got in found for epoch in got.values()) == days


@pytest.mark.fault("L10")
def test_of_two_that_ask_at_once_one_gets_the_turn(migrated_dsn: str, sql: Sql) -> None:
    attempts = many_epochs(sql, 2 * TURNS, "pending")
    pairs = list(zip(sorted(attempts)[::2], sorted(attempts)[1::2], strict=True))
    for side in (0, 1):  # each side's executions have started
        with _ledger(migrated_dsn, "starter") as ledger:
            for pair in pairs:
                ledger.take_token(Attempt(FLIGHTS, pair[side], attempts[pair[side]]), Role.PREPARE, "warehouse")
    tokens = dict(sql("SELECT epoch, execution FROM lockstep.participant WHERE sink = 'warehouse'"))
    sides = [[(pair[side], attempts[pair[side]], tokens[pair[side]]) for pair in pairs] for side in (0, 1)]
    first, second = race(*[(take_turns, (migrated_dsn, side)) for side in sides])
    winners = [(one in first) + (other in second) for one, other in pairs]
    assert winners == [1] * TURNS
    assert first and second, "one side won every round: no race at all"


def test_two_processes_migrate_once(ledger_server: PostgresServer) -> None:
    dsn = ledger_server.create_database("migrated_twice")
    first, second = race(*[(migrating, (dsn,))] * 2)
    assert sorted([first, second]) == [[], [name for _, name, _ in migrations()]]
    assert [version for version, _, _ in migrations()] == list(range(1, len(migrations()) + 1))
    assert migrate(dsn) == []
    assert len({Ledger(dsn).deployment() for _ in range(2)}) == 1


# --- what happens while somebody else holds the epoch's row ---


@pytest.fixture(params=["read committed", "repeatable read", "serializable"])
def lazy_dsn(request: pytest.FixtureRequest, migrated_dsn: str, sql: Sql) -> Iterator[str]:
    """The role and database ask for another isolation than the ledger is written for."""
    name = sql.one("SELECT current_database()")
    sql(f"ALTER ROLE postgres IN DATABASE {name} SET default_transaction_isolation = '{request.param}'")
    sql.commit()
    yield migrated_dsn
    sql(f"ALTER ROLE postgres IN DATABASE {name} RESET default_transaction_isolation")
    sql.commit()


@contextmanager
def holding_the_row(dsn: str, sql: Sql, epoch: Epoch, role: Role, told: list[object]) -> Iterator[Sql]:
    """Somebody changes participants and holds the epoch's row; a commit waits for it, and its outcome is `told`."""
    holder, decider = Sql(psycopg2.connect(dsn)), Ledger(dsn)
    decider.deployment()
    holder("BEGIN ISOLATION LEVEL READ COMMITTED")
    holder("SELECT FROM lockstep.epoch FOR UPDATE")
    holder.act_as(role)
    yield holder

    def decide_it() -> None:
        try:
            told.append(decider.commit_epoch(attempt_of(epoch)).state)
        except NotPrepared as error:
            told.append(str(error))

    thread = threading.Thread(target=decide_it)
    thread.start()
    wait_for_a_waiter(sql)
    holder.commit()
    thread.join(30)
    holder.connection.close()
    decider.close()


def test_what_the_rows_holder_did_is_counted(ledger: Ledger, sql: Sql, lazy_dsn: str) -> None:
    """Commit waits for the row while the last vote comes in: it must see it, or nobody decides."""
    epoch, told = seal(ledger, planned(ledger)), list[object]()
    vote(ledger, epoch, "warehouse")
    with holding_the_row(lazy_dsn, sql, epoch, Role.PREPARE, told) as holder:
        holder(
            "UPDATE lockstep.participant SET state = 'prepared', attempt = %s, token = 99, target_id = 't'"
            " WHERE sink = 'delays'",
            epoch.attempt,
        )
    assert told == [EpochState.COMMITTED]


@pytest.mark.fault("D16")
def test_a_vote_that_is_voided_while_commit_waits_is_not_counted(ledger: Ledger, sql: Sql, migrated_dsn: str) -> None:
    epoch, told = seal(ledger, planned(ledger)), list[object]()
    for sink in SINKS:
        vote(ledger, epoch, sink)
    with holding_the_row(migrated_dsn, sql, epoch, Role.ABORT, told) as holder:
        holder("UPDATE lockstep.participant SET state = 'pending', token = NULL, attempt = NULL")
    assert "lacks the vote of delays, warehouse" in str(told)
    assert ledger.epoch(FLIGHTS, epoch.id).state is EpochState.STAGED


def wait_for_a_waiter(sql: Sql) -> None:
    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0"
    )
    while not sql.one(waiting):
        sql.rollback()
    sql.rollback()
