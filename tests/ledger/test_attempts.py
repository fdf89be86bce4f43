"""Leases, runs and abort: who may open an attempt, and what the others' tasks then see."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lockstep.errors import EpochBusy, EpochVoid
from lockstep.ledger import Ledger
from lockstep.states import EpochState, Role
from tests.ledger.epochs import (
    CLICKS,
    FLIGHTS,
    OTHER_RUN,
    RUN,
    Sql,
    attempt_of,
    clicked,
    committed,
    let_lease_run_out,
    planned,
    seal,
)

ALWAYS = timedelta(0)


def age(sql: Sql, hours: float) -> None:
    """Everything that happened so far happened `hours` earlier."""
    with sql.unwatched():
        sql(
            "UPDATE lockstep.epoch SET attempted_at = attempted_at - %(h)s, changed_at = changed_at - %(h)s,"
            " lease_until = lease_until - %(h)s".replace("%(h)s", f"interval '{hours} hours'")
        )


def test_another_run_waits_while_the_lease_lasts(ledger: Ledger) -> None:
    epoch = planned(ledger)
    with pytest.raises(EpochBusy, match="held by run scheduled 1 of flights"):
        ledger.take_over(FLIGHTS, epoch.id, OTHER_RUN)
    assert ledger.find_run(OTHER_RUN) is None


def test_a_runs_own_retry_takes_over_at_once(ledger: Ledger) -> None:
    epoch = planned(ledger)
    again = ledger.take_over(FLIGHTS, epoch.id, RUN)
    assert again.attempt > epoch.attempt
    assert ledger.find_run(RUN) == attempt_of(again)


@pytest.mark.fault("D12")
def test_another_run_takes_over_after_the_lease(ledger: Ledger, sql: Sql) -> None:
    epoch = planned(ledger)
    let_lease_run_out(sql, epoch)
    taken = ledger.take_over(FLIGHTS, epoch.id, OTHER_RUN)
    assert taken.plan == epoch.plan
    assert ledger.find_run(OTHER_RUN) == attempt_of(taken)
    with pytest.raises(EpochBusy):
        ledger.take_over(FLIGHTS, epoch.id, RUN)


def test_a_running_task_keeps_the_lease(ledger: Ledger, sql: Sql) -> None:
    epoch = planned(ledger)
    let_lease_run_out(sql, epoch)
    assert ledger.renew_lease(attempt_of(epoch), Role.STAGE)
    with pytest.raises(EpochBusy):
        ledger.take_over(FLIGHTS, epoch.id, OTHER_RUN)


def test_a_superseded_runs_tasks_keep_their_own_attempt_and_renew_no_lease(ledger: Ledger, sql: Sql) -> None:
    """A task asks for the attempt of its run, never for the current one: so it finds out that it is fenced."""
    epoch = planned(ledger)
    let_lease_run_out(sql, epoch)
    taken = ledger.take_over(FLIGHTS, epoch.id, OTHER_RUN)
    assert ledger.find_run(RUN) == attempt_of(epoch)
    assert not ledger.renew_lease(attempt_of(epoch), Role.STAGE)
    assert ledger.renew_lease(attempt_of(taken), Role.STAGE)


def test_a_decided_epoch_has_no_lease(ledger: Ledger) -> None:
    epoch = committed(ledger, planned(ledger))
    assert not ledger.renew_lease(attempt_of(epoch), Role.PREPARE)
    assert ledger.take_over(FLIGHTS, epoch.id, OTHER_RUN) == epoch
    assert ledger.find_run(OTHER_RUN) == attempt_of(epoch)


@pytest.mark.fault("H24")
def test_an_attempt_that_waits_keeps_its_lease_until_it_looks_again_and_is_not_abandoned(
    ledger: Ledger, sql: Sql
) -> None:
    epoch = planned(ledger)
    let_lease_run_out(sql, epoch)
    sql.commit()
    assert ledger.abandoned_epochs(FLIGHTS, timedelta())
    assert ledger.renew_lease(attempt_of(epoch), Role.BEGIN, meanwhile=timedelta(minutes=4))
    assert not ledger.abandoned_epochs(FLIGHTS, timedelta())
    with pytest.raises(EpochBusy):
        ledger.take_over(FLIGHTS, epoch.id, OTHER_RUN)
    [(left,)] = sql("SELECT lease_until - now() FROM lockstep.epoch")
    assert timedelta(minutes=4) < left < timedelta(minutes=5)


@pytest.mark.fault("H26")
def test_a_task_that_works_beside_one_that_waits_does_not_cut_its_lease(ledger: Ledger, sql: Sql) -> None:
    """One sink waits for keys, another one votes: a cursor's next run must not take the epoch for abandoned."""
    attempt = attempt_of(clicked(ledger, 0))
    ledger.renew_lease(attempt, Role.BEGIN, meanwhile=timedelta(minutes=4))
    ledger.renew_lease(attempt, Role.PREPARE)
    [(left,)] = sql("SELECT lease_until - now() FROM lockstep.epoch")
    assert left > timedelta(minutes=4)


def test_a_void_epoch_is_not_taken_over(ledger: Ledger) -> None:
    epoch = planned(ledger)
    ledger.void_epoch(FLIGHTS, epoch.id, "the airport was closed")
    with pytest.raises(EpochVoid, match="the airport was closed"):
        ledger.take_over(FLIGHTS, epoch.id, RUN)


def test_abort_raises_only_the_attempt_it_was_told(ledger: Ledger) -> None:
    old = planned(ledger)
    new = ledger.take_over(FLIGHTS, old.id, RUN)
    assert ledger.raise_attempt(FLIGHTS, old.id, Role.ABORT, only=old.attempt, reason="late") == new
    aborted = ledger.raise_attempt(FLIGHTS, old.id, Role.ABORT, only=new.attempt, reason="disk full")
    assert aborted.attempt > new.attempt
    assert aborted.reason == "disk full"


@pytest.mark.fault("A6")
def test_an_aborted_epoch_is_open_to_the_next_run_with_its_plan_and_wal(ledger: Ledger) -> None:
    epoch = seal(ledger, planned(ledger))
    ledger.raise_attempt(FLIGHTS, epoch.id, Role.ABORT, reason="killed")
    taken = ledger.take_over(FLIGHTS, epoch.id, OTHER_RUN)
    assert (taken.state, taken.plan, taken.wal) == (EpochState.STAGED, epoch.plan, epoch.wal)


@pytest.mark.fault("F3")
def test_recover_leaves_a_young_or_leased_attempt_alone(ledger: Ledger, sql: Sql) -> None:
    epoch = planned(ledger)
    assert ledger.abandoned_epochs(FLIGHTS, ALWAYS) == []
    let_lease_run_out(sql, epoch)
    assert ledger.abandoned_epochs(FLIGHTS, timedelta(hours=2)) == []
    age(sql, 3)
    assert [found.id for found in ledger.abandoned_epochs(FLIGHTS, timedelta(hours=2))] == [epoch.id]


def test_hold_counts_from_the_last_sign_of_life_not_from_begin(ledger: Ledger, sql: Sql) -> None:
    """A stage of three hours kept its lease; the task after it waits for a slot."""
    epoch = planned(ledger)
    age(sql, 3)
    ledger.renew_lease(attempt_of(epoch), Role.STAGE)
    let_lease_run_out(sql, epoch)
    assert ledger.abandoned_epochs(FLIGHTS, timedelta(hours=2)) == []


def test_a_decided_epoch_is_never_abandoned(ledger: Ledger, sql: Sql) -> None:
    committed(ledger, planned(ledger))
    age(sql, 24)
    assert ledger.abandoned_epochs(FLIGHTS, ALWAYS) == []


def test_a_new_run_of_a_cursor_pipeline_finds_the_lowest_abandoned_epoch(ledger: Ledger, sql: Sql) -> None:
    first, second = clicked(ledger, 0), clicked(ledger, 1)
    assert ledger.abandoned_epoch(CLICKS) is None
    for epoch in (second, first):
        let_lease_run_out(sql, epoch)
    found = ledger.abandoned_epoch(CLICKS)
    assert found is not None
    assert found.id == first.id
