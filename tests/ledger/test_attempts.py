"""Leases, runs and people: who may open an attempt, what the others' tasks then see, and what a person may change.

Who is refused in which state is `test_operator_machine.py`'s.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from lockstep.epoch import Epoch
from lockstep.errors import EpochBusy, Fenced, IllegalTransition, NotPrepared, SourceClaimed
from lockstep.ledger import Ledger
from lockstep.states import EpochState, Role
from tests.ledger.epochs import (
    CLICKS,
    FLIGHTS,
    OTHER_RUN,
    RUN,
    Sql,
    a_plan,
    attempt_of,
    clicked,
    committed,
    let_lease_run_out,
    planned,
    seal,
    voted,
    whole_files,
)

ALWAYS = timedelta(0)


def age(sql: Sql, hours: float) -> None:
    """Everything that happened so far happened `hours` earlier."""
    with sql.unwatched():
        sql(
            "UPDATE lockstep.epoch SET attempted_at = attempted_at - %(h)s, changed_at = changed_at - %(h)s,"
            " lease_until = lease_until - %(h)s".replace("%(h)s", f"interval '{hours} hours'")
        )


@pytest.mark.fault("D12")
def test_another_run_takes_over_after_the_lease_and_the_superseded_one_keeps_its_own_attempt(
    ledger: Ledger, sql: Sql
) -> None:
    """A task asks for the attempt of its run, never for the current one: so it finds out that it is fenced."""
    epoch = planned(ledger)
    let_lease_run_out(sql, epoch)
    assert ledger.renew_lease(attempt_of(epoch), Role.STAGE)
    with pytest.raises(EpochBusy, match="held by run scheduled 1 of flights"):
        ledger.take_over(FLIGHTS, epoch.id, OTHER_RUN)
    assert ledger.find_run(OTHER_RUN) is None
    let_lease_run_out(sql, epoch)
    taken = ledger.take_over(FLIGHTS, epoch.id, OTHER_RUN)
    assert (taken.plan, ledger.find_run(OTHER_RUN)) == (epoch.plan, attempt_of(taken))
    assert ledger.find_run(RUN) == attempt_of(epoch)
    assert not ledger.renew_lease(attempt_of(epoch), Role.STAGE)
    assert ledger.renew_lease(attempt_of(taken), Role.STAGE)
    committed(ledger, taken)
    assert not ledger.renew_lease(attempt_of(taken), Role.PREPARE)


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


@pytest.mark.fault("A6")
def test_an_aborted_epoch_is_open_to_the_next_run_with_its_plan_and_wal(ledger: Ledger) -> None:
    epoch = seal(ledger, planned(ledger))
    ledger.raise_attempt(FLIGHTS, epoch.id, Role.ABORT, reason="killed")
    taken = ledger.take_over(FLIGHTS, epoch.id, OTHER_RUN)
    assert (taken.state, taken.plan, taken.wal) == (EpochState.STAGED, epoch.plan, epoch.wal)


@pytest.mark.fault("F3")
def test_recover_leaves_a_young_leased_or_decided_attempt_alone(ledger: Ledger, sql: Sql) -> None:
    epoch = planned(ledger)
    assert ledger.abandoned_epochs(FLIGHTS, ALWAYS) == []
    let_lease_run_out(sql, epoch)
    assert ledger.abandoned_epochs(FLIGHTS, timedelta(hours=2)) == []
    age(sql, 3)
    assert [found.id for found in ledger.abandoned_epochs(FLIGHTS, timedelta(hours=2))] == [epoch.id]
    ledger.renew_lease(attempt_of(epoch), Role.STAGE)  # after three hours of work, and now it waits for a slot
    let_lease_run_out(sql, epoch)
    assert ledger.abandoned_epochs(FLIGHTS, timedelta(hours=2)) == []
    committed(ledger, epoch)
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


# --- people ---


def test_void_keeps_claims_and_replan_releases_its_own_and_takes_none_of_another_epoch(ledger: Ledger) -> None:
    first = planned(ledger, 1, claims={"landing": ["a"]})
    second = planned(ledger, 2, OTHER_RUN, claims={"landing": ["b"]})
    with pytest.raises(SourceClaimed, match="epoch 1"):
        ledger.replan_epoch(FLIGHTS, second.id, a_plan(), whole_files({"landing": ["a"]}), "greedy")
    assert ledger.find_claimed_paths(FLIGHTS, "landing", ["a", "b"]) == {"a", "b"}
    assert ledger.epoch(FLIGHTS, second.id) == second
    ledger.void_epoch(FLIGHTS, first.id, "no")
    ledger.replan_epoch(FLIGHTS, second.id, a_plan(), whole_files({"landing": ["c"]}), "yes")
    assert ledger.find_claimed_paths(FLIGHTS, "landing", ["a", "b", "c"]) == {"a", "c"}


@pytest.mark.fault("H15")
def test_replan_takes_new_sinks_and_forgets_the_wal(ledger: Ledger) -> None:
    epoch = voted(ledger, planned(ledger))
    new = ledger.replan_epoch(FLIGHTS, epoch.id, a_plan(end=20, sinks=["lake"]), {}, "warehouse is gone")
    assert (new.state, new.wal, new.manifest_hash, new.summary) == (EpochState.PLANNED, None, None, None)
    assert new.plan == a_plan(end=20, sinks=["lake"])
    assert set(ledger.participants(FLIGHTS, epoch.id)) == {"lake"}
    with pytest.raises(Fenced):
        seal(ledger, epoch)
    taken = seal(ledger, ledger.take_over(FLIGHTS, epoch.id, RUN))
    with pytest.raises(NotPrepared, match="lake"):
        ledger.commit_epoch(attempt_of(taken))


def test_replan_keeps_cursor_ranges_joined(ledger: Ledger) -> None:
    for after in range(3):
        clicked(ledger, after)
    with pytest.raises(IllegalTransition, match="source landing would end at 25 and go on at 20"):
        ledger.replan_epoch(CLICKS, 2, a_plan(10, 25), {}, "more")
    with pytest.raises(IllegalTransition, match="would end at 20 and go on at 15"):
        ledger.replan_epoch(CLICKS, 3, a_plan(15, 30), {}, "more")
    assert ledger.replan_epoch(CLICKS, 2, a_plan(10, 20, ["lake"]), {}, "other sinks").id == 2
    assert ledger.replan_epoch(CLICKS, 3, a_plan(20, 35), {}, "more").plan == a_plan(20, 35)
    assert clicked_from(ledger, 35).id == 4


def test_replan_takes_no_source_away_that_a_later_epoch_goes_on_with(ledger: Ledger) -> None:
    clicked(ledger, 0)
    clicked(ledger, 1)
    weather = a_plan(source="weather")
    with pytest.raises(IllegalTransition, match="source landing would end at null and go on at 10"):
        ledger.replan_epoch(CLICKS, 1, weather, {}, "another source")
    assert ledger.replan_epoch(CLICKS, 2, weather, {}, "another source").plan == weather
    with pytest.raises(IllegalTransition, match="would end at 10 and go on at 20"):
        ledger.replan_epoch(CLICKS, 2, a_plan(20, 30), {}, "more")


def clicked_from(ledger: Ledger, start: int) -> Epoch:
    epoch = ledger.plan_epoch(CLICKS, a_plan(start, start + 10), {}, RUN, interval=None, after=3)
    assert epoch is not None
    return epoch


def test_resolve_points_a_decided_sink_to_its_new_target_and_notes_it(ledger: Ledger, sql: Sql) -> None:
    epoch = committed(ledger, planned(ledger))
    ledger.retarget_participant(epoch, "warehouse", "restored", "restored from the backup of May")
    found = ledger.participants(FLIGHTS, epoch.id)["warehouse"]
    assert found.vote is not None and found.vote.target_id == "restored"
    notes = sql("SELECT sink, role, reason FROM lockstep.transition WHERE role = 'operator'")
    assert notes == [("warehouse", "operator", "restored from the backup of May")]


@pytest.mark.fault("V7")
def test_a_reason_that_quotes_a_file_breaks_no_statement(ledger: Ledger) -> None:
    """A NUL, and half a surrogate pair."""
    epoch = planned(ledger)
    assert ledger.void_epoch(FLIGHTS, epoch.id, "header i\0d, Jos\udce9").reason == "header i\ufffdd, Jos\ufffd"
