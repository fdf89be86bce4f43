"""Processes that want different things of the same epoch at the same moment: one order, through the epoch's row."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise

import psycopg2
import pytest

from lockstep.epoch import Epoch
from lockstep.ledger import Ledger
from lockstep.states import EpochState
from tests.ledger import racers
from tests.ledger.epochs import CLICKS, FLIGHTS, SINKS, Sql, attempt_of, planned, seal, vote

ROUNDS = 500
VOTING_ROUNDS = 100


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
        '   \'{"format": 1, "sources": {}, "sinks": {"warehouse": {}, "delays": {}}}\' FROM lockstep.execution x'
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
    decided, aborted = racers.race((racers.decide, (migrated_dsn, attempts)), (racers.abort, (migrated_dsn, attempts)))
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


@pytest.mark.fault("D5")
def test_two_processes_commit_to_one_decision(migrated_dsn: str, sql: Sql) -> None:
    attempts = many_epochs(sql, 100, "prepared")
    first, second = racers.race(*[(racers.decide, (migrated_dsn, attempts))] * 2)
    assert first == second == attempts.keys()
    decisions = sql("SELECT epoch, count(*) FROM lockstep.transition WHERE target_state = 'committed' GROUP BY epoch")
    assert decisions == [(epoch, 1) for epoch, _ in decisions]
    assert len(decisions) == len(attempts)


@pytest.mark.fault("D16")
def test_of_two_last_voters_at_least_one_decides(migrated_dsn: str, sql: Sql) -> None:
    attempts = many_epochs(sql, VOTING_ROUNDS, "pending")
    won = racers.race(*[(racers.vote_then_decide, (migrated_dsn, attempts, sink)) for sink in SINKS])
    assert won[0] | won[1] == attempts.keys()
    assert sql.one("SELECT count(*) FROM lockstep.epoch WHERE state <> 'committed'") == 0


@pytest.mark.fault("A3")
def test_of_two_runs_one_takes_an_epoch_over(migrated_dsn: str, sql: Sql) -> None:
    epochs = list(many_epochs(sql, 100, "pending"))
    first, second = racers.race(*[(racers.take_over, (migrated_dsn, epochs, f"run {n}")) for n in range(2)])
    assert first | second == set(epochs)
    assert not first & second


def test_eight_planners_make_dense_cursor_numbers(ledger: Ledger, migrated_dsn: str) -> None:
    found = racers.race(*[(racers.plan_clicks, (migrated_dsn, 5, f"planner {n}")) for n in range(8)])
    assert sorted(number for numbers in found for number in numbers) == list(range(1, 41))
    epochs = [ledger.epoch(CLICKS, number).plan.sources["landing"] for number in range(1, 41)]
    assert all(later.start == earlier.end for earlier, later in pairwise(epochs))


@pytest.mark.fault("H9")
def test_backfills_plan_in_any_order_and_in_parallel(ledger: Ledger, migrated_dsn: str) -> None:
    days = list(range(1, 31))
    found = racers.race(
        (racers.plan_days, (migrated_dsn, days, "forwards")),
        (racers.plan_days, (migrated_dsn, days[::-1], "backwards")),
        (racers.plan_days, (migrated_dsn, days, "beside")),
    )
    planned_days = [number for got in found for number in got]
    assert sorted(planned_days) == days
    assert sorted(epoch for got in found for epoch in got.values()) == days


def test_no_token_is_taken_twice(ledger: Ledger, migrated_dsn: str) -> None:
    epoch = planned(ledger)
    found = racers.race(*[(racers.take_tokens, (migrated_dsn, epoch.id, epoch.attempt, 50))] * 3)
    tokens = [token for taken in found for token in taken]
    assert len(set(tokens)) == len(tokens)
    assert min(tokens) > epoch.attempt
    assert all(taken == sorted(taken) for taken in found)


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


def test_what_the_rows_holder_did_is_counted(ledger: Ledger, sql: Sql, lazy_dsn: str) -> None:
    """Commit waits for the row while the last vote comes in: it must see it, or nobody decides."""
    epoch = seal(ledger, planned(ledger))
    vote(ledger, epoch, "warehouse")
    holder, decider = Sql(psycopg2.connect(lazy_dsn)), Ledger(lazy_dsn)
    decider.deployment()
    holder("BEGIN ISOLATION LEVEL READ COMMITTED")
    holder("SELECT FROM lockstep.epoch FOR UPDATE")
    holder.act_as("prepare")
    holder(
        "UPDATE lockstep.participant SET state = 'prepared', attempt = %s, token = 99, target_id = 't'"
        " WHERE sink = 'delays'",
        epoch.attempt,
    )
    decided: list[Epoch] = []
    thread = threading.Thread(target=lambda: decided.append(decider.commit_epoch(attempt_of(epoch))))
    thread.start()
    wait_for_a_waiter(sql)
    holder.commit()
    thread.join(30)
    assert [found.state for found in decided] == [EpochState.COMMITTED]
    holder.connection.close()
    decider.close()


@pytest.mark.fault("D16")
def test_a_vote_that_is_voided_while_commit_waits_is_not_counted(ledger: Ledger, sql: Sql, migrated_dsn: str) -> None:
    epoch = seal(ledger, planned(ledger))
    for sink in SINKS:
        vote(ledger, epoch, sink)
    holder, decider = Sql(psycopg2.connect(migrated_dsn)), Ledger(migrated_dsn)
    decider.deployment()
    holder("SELECT FROM lockstep.epoch FOR UPDATE")
    holder.act_as("abort")
    holder("UPDATE lockstep.participant SET state = 'pending', token = NULL, attempt = NULL")
    errors: list[BaseException] = []

    def decide() -> None:
        try:
            decider.commit_epoch(attempt_of(epoch))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=decide)
    thread.start()
    wait_for_a_waiter(sql)
    holder.commit()
    thread.join(30)
    assert "lacks the vote of delays, warehouse" in str(errors)
    assert ledger.epoch(FLIGHTS, epoch.id).state is EpochState.STAGED
    holder.connection.close()
    decider.close()


def wait_for_a_waiter(sql: Sql) -> None:
    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0"
    )
    while not sql.one(waiting):
        sql.rollback()
    sql.rollback()
