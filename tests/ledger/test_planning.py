"""Intervals in any order, cursor numbers without a gap, files that belong to one epoch."""

from __future__ import annotations

import pytest

from lockstep.epoch import Claim, Epoch, KeyedBy
from lockstep.errors import IntervalOverlap, InvalidPipeline, OutOfOrder, SourceClaimed
from lockstep.ledger import Ledger
from tests.ledger.epochs import (
    CLICKS,
    FLIGHTS,
    OTHER_RUN,
    RUN,
    SINKS,
    a_plan,
    attempt_of,
    clicked,
    committed,
    day,
    planned,
    published,
    show,
    voted,
)


def test_an_equal_interval_is_found_not_planned_again(ledger: Ledger) -> None:
    epoch = planned(ledger)
    assert epoch.interval == day(1)  # in UTC
    assert ledger.epoch_of_interval(FLIGHTS, day(1)) == epoch
    assert ledger.plan_epoch(FLIGHTS, a_plan(), {}, OTHER_RUN, interval=day(1), after=None) is None
    assert ledger.find_run(OTHER_RUN) is None
    ledger.void_epoch(FLIGHTS, epoch.id, "no data that day")
    assert ledger.plan_epoch(FLIGHTS, a_plan(), {}, OTHER_RUN, interval=day(1), after=None) is None


@pytest.mark.fault("A8")
def test_an_overlapping_interval_is_a_named_error_and_one_that_touches_is_not(
    ledger: Ledger, subtests: pytest.Subtests
) -> None:
    ledger.plan_epoch(FLIGHTS, a_plan(), {}, RUN, interval=day(2, 3), after=None)
    for interval in (day(1, 2), day(4, 4), day(1, 9), day(3)):
        said = r"overlaps flights epoch 1 \[2013-01-02"
        with subtests.test(str(interval)), pytest.raises(IntervalOverlap, match=said):
            ledger.plan_epoch(FLIGHTS, a_plan(), {}, OTHER_RUN, interval=interval, after=None)
    assert [planned(ledger, number).id for number in (5, 1)] == [2, 3]


def test_a_pipeline_keeps_its_identity(ledger: Ledger) -> None:
    ledger.ensure_pipeline(FLIGHTS, KeyedBy.INTERVAL)
    with pytest.raises(InvalidPipeline, match="another name"):
        ledger.ensure_pipeline(FLIGHTS, KeyedBy.CURSOR)


def test_cursor_epochs_are_dense_and_each_is_planned_once(ledger: Ledger) -> None:
    assert [clicked(ledger, after).id for after in range(3)] == [1, 2, 3]
    assert ledger.plan_epoch(CLICKS, a_plan(), {}, OTHER_RUN, interval=None, after=0) is None
    last = ledger.last_epoch(CLICKS)
    assert last is not None
    assert last.id == 3


def test_a_cursor_epoch_starts_where_the_last_one_ends(ledger: Ledger) -> None:
    """Its predecessor was replanned between the look and the plan."""
    clicked(ledger, 0)
    ledger.replan_epoch(CLICKS, 1, a_plan(None, 15), {}, "more rows came")
    with pytest.raises(OutOfOrder, match="epoch 1 was replanned meanwhile"):
        clicked(ledger, 1)


def test_a_source_that_was_away_goes_on_where_it_ended(ledger: Ledger) -> None:
    """Epoch 2 has another source only; and epoch 3, in which the first one is back, is given up."""

    def follow(after: int, start: int | None, end: int, source: str = "landing") -> Epoch | None:
        return ledger.plan_epoch(CLICKS, a_plan(start, end, source=source), {}, RUN, interval=None, after=after)

    clicked(ledger, 0)
    follow(1, None, 7, source="weather")
    assert ledger.source_end(CLICKS, "landing", before=3) == 10
    assert ledger.source_end(CLICKS, "weather", before=2) is None
    with pytest.raises(OutOfOrder, match="source landing would end at 10 and go on at null"):
        follow(2, None, 20)
    follow(2, 10, 20)
    ledger.void_epoch(CLICKS, 3, "poison")
    assert ledger.source_end(CLICKS, "landing", before=4) == 20, "a void epoch's range was given up"
    with pytest.raises(OutOfOrder, match="would end at 7 and go on at null"):
        follow(3, None, 9, source="weather")
    follow(3, 7, 9, source="weather")


def test_a_source_that_a_replan_took_out_is_found_where_it_was_before(ledger: Ledger) -> None:
    clicked(ledger, 0)
    clicked(ledger, 1)
    ledger.replan_epoch(CLICKS, 2, a_plan(None, 7, source="weather"), {}, "no more of it")
    assert ledger.source_end(CLICKS, "landing", before=3) == 10
    assert ledger.source_end(CLICKS, "weather", before=3) == 7
    ledger.replan_epoch(CLICKS, 2, a_plan(10, 20), {}, "it came back")
    assert ledger.source_end(CLICKS, "landing", before=3) == 20
    assert ledger.source_end(CLICKS, "weather", before=3) is None
    with pytest.raises(OutOfOrder, match="source weather would end at null and go on at 5"):
        ledger.plan_epoch(CLICKS, a_plan(5, 9, source="weather"), {}, RUN, interval=None, after=2)


def test_the_count_in_flight_is_of_unpublished_epochs(ledger: Ledger) -> None:
    first, second, third = clicked(ledger, 0), clicked(ledger, 1), clicked(ledger, 2)
    assert ledger.count_in_flight(CLICKS) == 3
    committed(ledger, first)
    assert ledger.count_in_flight(CLICKS) == 3
    for sink in SINKS:
        show(ledger, first, sink)
    assert ledger.count_in_flight(CLICKS) == 2
    ledger.void_epoch(CLICKS, second.id, "poison")
    assert ledger.count_in_flight(CLICKS) == 1
    assert [epoch.id for epoch in ledger.unfinished_epochs(CLICKS)] == [first.id, third.id]


def test_cursor_epochs_are_decided_in_order_and_a_void_one_lets_nobody_pass_the_one_before(ledger: Ledger) -> None:
    first, second, third = (voted(ledger, clicked(ledger, after)) for after in range(3))
    for later in (second, third):
        with pytest.raises(OutOfOrder, match=r"epoch \d is staged"):
            ledger.commit_epoch(attempt_of(later))
        with pytest.raises(OutOfOrder):
            ledger.require_predecessor_decided(later)
    ledger.void_epoch(CLICKS, second.id, "poison")
    with pytest.raises(OutOfOrder, match="epoch 1 is staged"):
        ledger.commit_epoch(attempt_of(third))
    ledger.commit_epoch(attempt_of(first))
    ledger.require_predecessor_decided(third)
    decided = ledger.commit_epoch(attempt_of(third))
    with pytest.raises(OutOfOrder, match="epoch 1 is prepared in warehouse"):
        ledger.require_predecessor_published(decided, "warehouse")


@pytest.mark.fault("E9")
def test_each_sink_publishes_the_cursor_epochs_that_it_has_a_part_in_in_order(ledger: Ledger) -> None:
    first = committed(ledger, clicked(ledger, 0, sinks=["warehouse"]))
    second, third = (committed(ledger, clicked(ledger, after)) for after in (1, 2))
    ledger.require_predecessor_published(second, "delays")
    with pytest.raises(OutOfOrder, match="epoch 1 is prepared in warehouse"):
        ledger.require_predecessor_published(second, "warehouse")
    show(ledger, first, "warehouse")
    ledger.require_predecessor_published(second, "warehouse")
    with pytest.raises(OutOfOrder):
        ledger.require_predecessor_published(third, "delays")


@pytest.mark.fault("J12")
def test_a_file_belongs_to_one_epoch_of_its_source_and_stays_its_own(ledger: Ledger) -> None:
    with pytest.raises(SourceClaimed, match=r"claims b\.csv more than once"):
        planned(ledger, 1, claims={"landing": ["b.csv", "a.csv", "b.csv"]})
    assert ledger.find_claimed_paths(FLIGHTS, "landing", ["a.csv", "b.csv"]) == set()
    published(ledger, planned(ledger, 1, claims={"landing": ["a.csv", "b.csv"]}))
    with pytest.raises(SourceClaimed, match=r"b\.csv \(epoch 1\)"):
        planned(ledger, 2, OTHER_RUN, claims={"landing": ["b.csv", "c.csv"]})
    assert ledger.find_claimed_paths(FLIGHTS, "landing", ["a.csv", "b.csv", "c.csv"]) == {"a.csv", "b.csv"}
    assert ledger.epoch_of_interval(FLIGHTS, day(2)) is None
    other = planned(ledger, 2, claims={"weather": ["a.csv"]})
    assert other.id == 2, "a refused plan uses up no number"
    assert ledger.find_claimed_paths(FLIGHTS, "other", ["a.csv"]) == set()


def test_names_may_hold_whatever_a_file_system_takes(ledger: Ledger) -> None:
    odd = ['a "b", {c}.csv', "back\\slash", "new\nline", "NULL", "", "ü 'quoted' %s"]
    planned(ledger, 1, claims={"landing": odd})
    assert ledger.find_claimed_paths(FLIGHTS, "landing", [*odd, "null"]) == set(odd)
    assert set(ledger.find_claims(FLIGHTS, "landing", odd)) == set(odd)


def test_the_ranges_of_a_growing_file_join(ledger: Ledger) -> None:
    def claim(number: int, *claims: Claim) -> Epoch | None:
        return ledger.plan_epoch(FLIGHTS, a_plan(), {"logs": claims}, RUN, interval=day(number), after=None)

    first, second = Claim("a.log", 0, 10, 12, 1, "x"), Claim("a.log", 10, 25, 25, 2, "y")
    epoch = claim(1, first)
    for wrong, found in ((first, "up to byte 10"), (Claim("a.log"), "epoch 1"), (Claim("a.log", 15, 20), "byte 10")):
        with pytest.raises(SourceClaimed, match=found):
            claim(2, wrong)
    with pytest.raises(SourceClaimed, match=r"b\.log \(its beginning is unclaimed\)"):
        claim(2, Claim("b.log", 5, 9))
    claim(2, second, Claim("b.log"))
    assert ledger.find_claims(FLIGHTS, "logs", ["a.log", "b.log", "c.log"]) == {
        "a.log": second,
        "b.log": Claim("b.log"),
    }
    assert epoch is not None
    assert ledger.find_claims(FLIGHTS, "logs", ["a.log"], exclude=[2]) == {"a.log": first}
    with pytest.raises(SourceClaimed, match="epoch 2"):
        claim(3, Claim("b.log", 0, 5))
