"""One decision ends one life of a range and begins another: never two at once, never none."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg2
import pytest

from lockstep.epoch import Epoch, Generation, KeyedBy, RunKey
from lockstep.errors import Fenced, IllegalTransition, IntervalOverlap, NotPrepared, SourceClaimed, WalGone
from lockstep.ledger import Ledger
from lockstep.ledger.report import Report
from lockstep.states import EpochState, Role
from tests.ledger.epochs import (
    CLICKS,
    FLIGHTS,
    RUN,
    SINKS,
    Sql,
    a_plan,
    attempt_of,
    cleaned,
    clicked,
    committed,
    day,
    let_lease_run_out,
    planned,
    published,
    seal,
    show,
    vote_all,
    voted,
    whole_files,
)

AGAIN = RunKey("flights", "again")


def restated(
    ledger: Ledger, current: Epoch, run: RunKey = AGAIN, claims: Sequence[str] = (), reason: str = "a late file"
) -> Epoch:
    """Planned, to take the place of `current`."""
    found = ledger.plan_generation(current, a_plan(), whole_files({"landing": claims}), run, reason)
    assert found is not None
    return found


def test_the_decision_of_a_generation_ends_the_one_before(ledger: Ledger) -> None:
    old = cleaned(ledger, planned(ledger))
    new = restated(ledger, old)
    assert new.generation == Generation(root=old.id, number=1, replaces=old.id, reason="a late file")
    assert (new.interval, new.root) == (old.interval, old.id)
    assert ledger.epoch_of_interval(FLIGHTS, day(1)) == ledger.epoch(FLIGHTS, old.id), "until it is decided"
    new = committed(ledger, new)
    old = ledger.epoch(FLIGHTS, old.id)
    assert (old.state, new.state) == (EpochState.REPLACED, EpochState.COMMITTED)
    assert ledger.epoch_of_interval(FLIGHTS, day(1)) == new
    assert ledger.successor(old) == new
    [before] = [one for one in Report(ledger._connection.dsn).history(FLIGHTS, old.id) if one.target == "replaced"]
    assert before.role == Role.COMMIT
    for sink in SINKS:
        new = show(ledger, new, sink)
    third = restated(ledger, ledger.record_cleanup(new, Role.CLEANUP), RunKey("flights", "third"))
    assert third.generation == Generation(root=old.id, number=2, replaces=new.id, reason="a late file")
    assert [one.id for one in ledger.generations(new)] == [old.id, new.id, third.id]


def test_only_what_every_sink_shows_and_is_cleaned_up_can_be_replaced_and_once_at_a_time(ledger: Ledger) -> None:
    for number, bring in enumerate((voted, committed, published), 2):
        with pytest.raises(IllegalTransition, match="can't replace"):
            restated(ledger, bring(ledger, planned(ledger, number)))
    old = cleaned(ledger, planned(ledger))
    new = restated(ledger, old)
    assert ledger.plan_generation(old, a_plan(), {}, RUN, "another reason") is None
    assert ledger.pending_replacement(old) == new
    with pytest.raises(NotPrepared):
        ledger.commit_epoch(attempt_of(seal(ledger, new)))
    vote_all(ledger, new)
    ledger.take_over(FLIGHTS, new.id, AGAIN)
    with pytest.raises(Fenced):
        ledger.commit_epoch(attempt_of(new))
    assert ledger.epoch(FLIGHTS, old.id).state is EpochState.CLEANED
    committed(ledger, ledger.epoch(FLIGHTS, new.id))
    assert ledger.plan_generation(old, a_plan(), {}, RUN, "another reason") is None


def test_a_generation_that_is_given_up_leaves_everything_as_it_was(ledger: Ledger) -> None:
    old = cleaned(ledger, planned(ledger, claims={"landing": ["a"]}))
    given_up = restated(ledger, old, claims=["a", "late"])
    ledger.void_epoch(FLIGHTS, given_up.id, "a mistake")
    assert ledger.epoch_of_interval(FLIGHTS, day(1)) == ledger.epoch(FLIGHTS, old.id)
    assert ledger.find_claimed_paths(FLIGHTS, "landing", ["a", "late"]) == {"a"}
    new = restated(ledger, old, RunKey("flights", "third"), claims=["a", "late"])
    assert new.generation is not None and new.generation.number == 1, "nothing has taken that number"
    assert committed(ledger, new).state is EpochState.COMMITTED


def test_claims_and_interval_of_a_range_are_those_of_all_its_lives(ledger: Ledger) -> None:
    old = cleaned(ledger, planned(ledger, claims={"landing": ["a", "b"]}))
    neighbour = planned(ledger, 2, RUN, claims={"landing": ["c"]})
    with pytest.raises(SourceClaimed, match=f"c \\(epoch {neighbour.id}\\)"):
        restated(ledger, old, claims=["a", "c"])
    new = restated(ledger, old, claims=["b", "late"])
    assert ledger.find_own_paths(FLIGHTS, "landing", ["a", "b", "c", "late"], [old.id, new.id]) == {"a", "b", "late"}
    with pytest.raises(SourceClaimed, match="late"):
        planned(ledger, 3, RunKey("flights", "3"), claims={"landing": ["late"]})
    with pytest.raises(IntervalOverlap):
        ledger.plan_epoch(FLIGHTS, a_plan(), {}, RunKey("flights", "wide"), interval=day(1, days=2), after=None)
    assert ledger.plan_epoch(FLIGHTS, a_plan(), {}, RunKey("flights", "same"), interval=day(1), after=None) is None


def test_what_is_replaced_stays_published(ledger: Ledger) -> None:
    """Late publishers, cleaners and deciders of it find that all is done."""
    old = cleaned(ledger, planned(ledger))
    new = committed(ledger, restated(ledger, old))
    assert ledger.commit_epoch(attempt_of(old)).state is EpochState.REPLACED
    assert show(ledger, old, "warehouse").state is EpochState.REPLACED
    assert ledger.record_cleanup(old, Role.RECOVER).state is EpochState.REPLACED
    assert [one.id for one in ledger.unfinished_epochs(FLIGHTS)] == [new.id]


# --- of a cursor ---------------------------------------------------------------------------------------------------


def test_a_cursor_goes_on_where_the_last_original_ended(ledger: Ledger) -> None:
    first = cleaned(ledger, clicked(ledger, after=0))
    second = cleaned(ledger, clicked(ledger, after=1, run=RunKey("clicks", "2")))
    aside = ledger.plan_generation(first, first.plan, {}, AGAIN, "a bug")
    assert aside is not None and not aside.in_order
    assert ledger.last_original(CLICKS) == second
    assert ledger.source_end(CLICKS, "landing", before=10) == 20
    third = clicked(ledger, after=2, run=RunKey("clicks", "3"))
    assert third.id == 4 and ledger.predecessor(third) == second
    assert ledger.count_in_flight(CLICKS) == 1, "what takes another's place takes no room"
    committed(ledger, aside)
    assert (ledger.epoch(CLICKS, first.id).state, ledger.successor(first)) == (
        EpochState.REPLACED,
        ledger.epoch(CLICKS, aside.id),
    )
    ledger.require_predecessor_published(third, "warehouse")
    assert committed(ledger, third).state is EpochState.COMMITTED


def test_what_is_left_of_a_life_of_a_cursors_epoch_is_nobodys_and_keeps_its_range(ledger: Ledger, sql: Sql) -> None:
    first = cleaned(ledger, clicked(ledger, after=0))
    aside = ledger.plan_generation(first, first.plan, {}, AGAIN, "a bug")
    assert aside is not None
    let_lease_run_out(sql, aside)
    assert ledger.abandoned_epoch(CLICKS) is None, "who doesn't ask for it doesn't get it"
    assert ledger.replan_epoch(CLICKS, aside.id, first.plan, {}, "again").plan.sources == first.plan.sources
    with pytest.raises(IllegalTransition, match="another range"):
        ledger.replan_epoch(CLICKS, aside.id, a_plan(start=10, end=30), {}, "again")


# --- whoever writes by hand -----------------------------------------------------------------------------------------


def test_by_hand_nobody_replaces_without_a_decision_or_changes_whose_place_it_takes(ledger: Ledger, sql: Sql) -> None:
    old = cleaned(ledger, planned(ledger))
    new = voted(ledger, restated(ledger, old))
    sql.act_as("commit")
    sql("UPDATE lockstep.epoch SET state = 'committed' WHERE id = %s", new.id)
    with pytest.raises(psycopg2.Error, match="is not marked as replaced"):
        sql.commit()
    sql.rollback()
    sql.act_as("commit")
    with pytest.raises(psycopg2.Error, match="no committed epoch replaces"):
        sql("UPDATE lockstep.epoch SET state = 'replaced' WHERE id = %s", old.id)
    sql.rollback()
    for change in ("generation = 2", "replaces = id", "root = id", "restate_reason = 'x'", "restores = replaces"):
        sql.act_as("operator")
        with pytest.raises(psycopg2.Error, match="is immutable"):
            sql(f"UPDATE lockstep.epoch SET {change} WHERE id = %s", new.id)
        sql.rollback()


def test_what_was_amiss_goes_with_the_rows_and_what_is_left_of_them_is_amiss(ledger: Ledger) -> None:
    def verified() -> int:
        found = Report(ledger._connection.dsn).pipeline(FLIGHTS)
        assert found is not None
        return found.verified_through

    old = cleaned(ledger, planned(ledger))
    ledger.record_comparison(old, "delays", "shows 6 rows")
    assert verified() == 0
    new = committed(ledger, restated(ledger, old))
    assert verified() == 0, "the sink shows them until it shows those that take their place"
    ledger.record_comparison(old, "delays", "shows none")
    assert verified() == 0, "who has read before the decision says nothing of what stands behind it"
    for sink in SINKS:
        new = show(ledger, new, sink)
    assert verified() == 2
    replaced = ledger.epoch(FLIGHTS, old.id)
    ledger.record_comparison(replaced, "delays", "shows 7 rows still")
    assert verified() == 0
    ledger.record_comparison(replaced, "delays", None)
    assert verified() == 2
    found = Report(ledger._connection.dsn).pipeline(FLIGHTS)
    assert found is not None and found.counts == {EpochState.PUBLISHED: 1, EpochState.REPLACED: 1} and not found.holes


# --- the way back ----------------------------------------------------------------------------------------------------


def _kept(ledger: Ledger, epoch: Epoch) -> Epoch:
    done = published(ledger, epoch)
    assert ledger.decide_retention(done, Role.CLEANUP, ("folder", 7)) is not None
    return ledger.record_cleanup(done, Role.CLEANUP)


def _restored(ledger: Ledger, current: Epoch, wanted: Epoch) -> Epoch:
    run = RunKey("flights", f"back to {wanted.id}")
    found = ledger.plan_generation(current, a_plan(), {}, run, "it was right", restores=wanted.id)
    assert found is not None
    return found


def test_a_generation_refers_only_to_a_kept_wal_of_its_range(ledger: Ledger, sql: Sql) -> None:
    old = cleaned(ledger, planned(ledger, claims={"landing": ["a"]}))
    current = _kept(ledger, restated(ledger, old, claims=["a", "late"]))
    with pytest.raises(WalGone, match="isn't kept"):
        _restored(ledger, current, old)
    with pytest.raises(IllegalTransition, match="its WAL is not retained"):  # it is, but shown
        _restored(ledger, current, current)
    last = cleaned(ledger, restated(ledger, current, RunKey("flights", "3"), claims=["a"]))
    again = _restored(ledger, last, current)
    assert (again.restores, again.root) == (current.id, old.id)
    assert ledger.find_claimed_paths(FLIGHTS, "landing", ["a", "late"]) == {"a", "late"}
    shown = cleaned(ledger, again)
    restated(ledger, shown, RunKey("flights", "5"), claims=["a", "late"])  # they are the range's


def test_nobody_lets_go_of_a_wal_that_a_generation_refers_to(ledger: Ledger, sql: Sql) -> None:
    ledger.ensure_pipeline(FLIGHTS, KeyedBy.INTERVAL)
    old = _kept(ledger, planned(ledger))
    current = cleaned(ledger, restated(ledger, old))
    again = _restored(ledger, current, old)
    assert ledger.expiring_wals(FLIGHTS) == [], "whatever the pipeline says of how long WALs stay"
    for by_hand in ("UPDATE lockstep.retained_wal SET expired_at = now()", "DELETE FROM lockstep.retained_wal"):
        with pytest.raises(psycopg2.Error, match="is referenced"):
            sql(by_hand)
        sql.rollback()
    shown = _kept(ledger, again)
    assert [one.epoch for one in ledger.expire_wals(FLIGHTS, Role.RECOVER)] == [shown.id]
    assert [one.epoch for one in ledger.expire_wals(FLIGHTS, Role.RECOVER)] == [old.id, shown.id]


def test_which_wal_stays_is_said_once(ledger: Ledger) -> None:
    done = published(ledger, planned(ledger))
    first = ledger.decide_retention(done, Role.CLEANUP, None)
    assert first is not None and first.expired_at is not None
    assert ledger.decide_retention(done, Role.CLEANUP, ("folder", 7)) == first
    ledger.record_cleanup(done, Role.CLEANUP)
    assert ledger.kept_wals(FLIGHTS) == []
    assert ledger.decide_retention(done, Role.CLEANUP, ("folder", 7)) is None
