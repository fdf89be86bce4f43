"""What the exporter and Airflow's metrics tell of pipelines, from a ledger whose epochs are everywhere on their way."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from lockstep.epoch import AuditResult
from lockstep.ledger import Ledger
from lockstep.ledger.measures import Measures, SinkMeasures, measure
from lockstep.ledger.report import Report
from lockstep.states import EpochState
from tests.ledger.epochs import (
    CLICKS,
    FLIGHTS,
    HASH,
    Sql,
    attempt_of,
    cleaned,
    clicked,
    committed,
    planned,
    published,
    seal,
    show,
    vote,
    voted,
)

ZERO = dict.fromkeys(EpochState, 0)


@pytest.fixture
def report(migrated_dsn: str) -> Iterator[Report]:
    report = Report(migrated_dsn)
    yield report
    report.close()


def measured(report: Report, pipeline: str = FLIGHTS) -> Measures:
    [found] = [one for one in measure(report) if one.pipeline == pipeline]
    return found


def age(sql: Sql, number: int, seconds: int) -> None:
    """Let an epoch have been planned, and changed last, so long ago."""
    with sql.unwatched():
        sql(
            "UPDATE lockstep.epoch SET planned_at = planned_at - make_interval(secs => %s),"
            " changed_at = changed_at - make_interval(secs => %s) WHERE pipeline = %s AND id = %s",
            *(2 * seconds, seconds, FLIGHTS, number),
        )


def test_a_pipeline_without_epochs_has_zeros_and_no_ages(report: Report) -> None:
    found = measured(report)
    assert found.epochs == ZERO
    assert (found.stuck, found.held, found.holes, found.verified_through, found.unproven) == (0, 0, 0, 0, False)
    assert (found.oldest_undecided, found.oldest_unpublished, found.lag, found.shown) == (None, None, None, None)
    assert found.sinks == {}


def test_every_pipeline_is_measured_and_each_by_its_own_epochs(ledger: Ledger, report: Report) -> None:
    cleaned(ledger, clicked(ledger, 0))
    planned(ledger, 1)
    clicks, flights = measure(report)
    assert (clicks.pipeline, flights.pipeline) == (CLICKS, FLIGHTS)
    assert clicks.epochs == {**ZERO, EpochState.CLEANED: 1}
    assert flights.epochs == {**ZERO, EpochState.PLANNED: 1}
    assert clicks.shown is not None and flights.shown is None


def test_ages_are_those_of_the_oldest_of_each_kind(ledger: Ledger, report: Report, sql: Sql) -> None:
    cleaned(ledger, planned(ledger, 1))
    committed(ledger, planned(ledger, 2))
    committed(ledger, planned(ledger, 3))
    seal(ledger, planned(ledger, 4))
    planned(ledger, 5)
    for number, seconds in ((1, 9000), (2, 500), (3, 300), (4, 100), (5, 50)):
        age(sql, number, seconds)
    found, slack = measured(report), timedelta(seconds=20)
    assert found.oldest_undecided is not None and found.oldest_unpublished is not None
    assert timedelta(seconds=200) <= found.oldest_undecided < timedelta(seconds=200) + slack, "since it was planned"
    assert timedelta(seconds=500) <= found.oldest_unpublished < timedelta(seconds=500) + slack, "since it was decided"


def test_a_sink_is_behind_by_what_it_has_voted_for_and_by_what_is_decided(ledger: Ledger, report: Report) -> None:
    show(ledger, committed(ledger, planned(ledger, 1)), "warehouse")
    voted(ledger, planned(ledger, 2))
    vote(ledger, seal(ledger, planned(ledger, 3)), "delays")
    assert measured(report).sinks == {"delays": SinkMeasures(3, 1), "warehouse": SinkMeasures(1, 0)}


def test_a_sink_with_nothing_to_do_is_told_with_zeros(ledger: Ledger, report: Report) -> None:
    cleaned(ledger, planned(ledger, 1))
    assert measured(report).sinks == {"delays": SinkMeasures(), "warehouse": SinkMeasures()}


def test_what_audits_hold_is_held_and_stuck_until_it_is_released(ledger: Ledger, report: Report) -> None:
    sealed = seal(ledger, planned(ledger, 1))
    ledger.record_verdict(attempt_of(sealed), HASH, [AuditResult("unique(id)", 3, True)])
    found = measured(report)
    assert (found.held, found.stuck) == (1, 1)
    ledger.release_epoch(FLIGHTS, 1, "a strike")
    assert measured(report).held == 0


def test_of_the_newest_shown_epoch_rows_and_the_way_to_each_state_are_told(
    ledger: Ledger, report: Report, sql: Sql
) -> None:
    cleaned(ledger, planned(ledger, 1))
    published(ledger, planned(ledger, 2))
    committed(ledger, planned(ledger, 3))
    with sql.unwatched():
        for state, seconds in (("planned", 600), ("staged", 500), ("committed", 460), ("published", 450)):
            sql(
                "UPDATE lockstep.transition SET at = '2013-01-01'::timestamptz - make_interval(secs => %s)"
                " WHERE pipeline = %s AND epoch = 2 AND sink IS NULL AND target_state = %s",
                *(seconds, FLIGHTS, state),
            )
    shown = measured(report).shown
    assert shown is not None
    assert (shown.epoch, shown.rows) == (2, {"flights": 7})
    assert shown.seconds == {EpochState.STAGED: 100, EpochState.COMMITTED: 40, EpochState.PUBLISHED: 10}


def test_without_history_an_epoch_has_no_times_and_keeps_its_rows(ledger: Ledger, report: Report, sql: Sql) -> None:
    cleaned(ledger, planned(ledger, 1))
    with sql.unwatched():
        sql("DELETE FROM lockstep.transition")
    shown = measured(report).shown
    assert shown is not None
    assert (shown.rows, shown.seconds) == ({"flights": 7}, {})
