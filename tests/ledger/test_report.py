"""What a person reads in `lockstep status`: where each epoch stands, why it doesn't move; and what is measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lockstep.epoch import AuditResult, RunKey
from lockstep.ledger import Ledger
from lockstep.ledger._connection import LedgerConnection, Row
from lockstep.ledger.measures import Measures, SinkMeasures, measure
from lockstep.ledger.report import PATIENCE, EpochStatus, Report, Unproven
from lockstep.observability.suggestions import COMMAND, NOTEBOOK
from lockstep.states import EpochState, Role
from tests.ledger.epochs import (
    CLICKS,
    FLIGHTS,
    HASH,
    RUN,
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
    vote,
    voted,
)

AT_ONCE = timedelta(0)


@pytest.fixture
def report(migrated_dsn: str) -> Iterator[Report]:
    report = Report(migrated_dsn)
    yield report
    report.close()


def status(report: Report, pipeline: str = FLIGHTS, max_wait: timedelta = AT_ONCE) -> dict[int, EpochStatus]:
    found = report.pipeline(pipeline, max_wait=max_wait)
    assert found is not None
    return {epoch.epoch.id: epoch for epoch in found.epochs}


def test_every_pipeline_stands_there_with_its_counts(ledger: Ledger, report: Report) -> None:
    cleaned(ledger, planned(ledger, 1))
    planned(ledger, 2)
    clicks, flights = report.pipelines()
    assert (clicks.name, flights.name) == (CLICKS, FLIGHTS)
    assert flights.counts == {EpochState.CLEANED: 1, EpochState.PLANNED: 1}
    second, first = flights.epochs
    assert (first.run, first.rows, first.leased) == ("scheduled 1 of flights", {"flights": 7}, False)
    assert (second.last_run, second.rows, second.leased, second.stuck) == (RUN, {}, True, None)
    assert AT_ONCE <= second.age <= second.attempt_age + timedelta(seconds=1)
    assert (clicks.counts, clicks.epochs, clicks.last_epoch) == ({}, (), 0)
    assert report.pipeline("nobody") is None


def test_many_pipelines_are_asked_about_in_as_many_questions_as_one_and_a_brief_list_reads_no_plan(
    ledger: Ledger, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan may name ten thousand files."""
    for number in (1, 2, 3):
        cleaned(ledger, planned(ledger, number))
        cleaned(ledger, clicked(ledger, number - 1))
    asked: list[str] = []
    fetched: list[Row] = []
    read = LedgerConnection.read

    def seen(self: LedgerConnection, name: str, **parameters: Any) -> list[Row]:
        asked.append(name)
        rows = read(self, name, **parameters)
        fetched.extend(rows if name == "list_epochs" else [])
        return rows

    monkeypatch.setattr(LedgerConnection, "read", seen)
    assert [len(found.epochs) for found in report.pipelines()] == [3, 3]
    assert len(asked) == len(set(asked)) == 8
    fetched.clear()
    brief, whole = report.pipeline(FLIGHTS, brief=True), report.pipeline(FLIGHTS)
    assert brief is not None and whole is not None
    assert [row["plan"] for row in fetched[:3]] == [None] * 3
    assert "digest" not in str(fetched[:3]) and "digest" in str(fetched[3:])
    assert [one.rows for one in brief.epochs] == [one.rows for one in whole.epochs] == [{"flights": 7}] * 3
    assert [one.stuck for one in brief.epochs] == [one.stuck for one in whole.epochs]


def verified(report: Report, pipeline: str = FLIGHTS) -> int:
    found = report.pipeline(pipeline)
    assert found is not None
    return found.verified_through


def test_a_pipeline_is_verified_through_the_epoch_before_the_first_that_a_sink_lacks(
    ledger: Ledger, report: Report
) -> None:
    assert verified(report, CLICKS) == 0
    first, second, third, fourth = (planned(ledger, number) for number in (1, 2, 3, 4))
    assert verified(report) == 0
    published(ledger, second)
    assert verified(report) == 0, "epochs come in any order, the watermark in theirs"
    show(ledger, committed(ledger, first), "warehouse")
    assert verified(report) == 0, "delays lacks it"
    show(ledger, ledger.epoch(FLIGHTS, first.id), "delays")
    assert verified(report) == 2
    ledger.void_epoch(FLIGHTS, third.id, "closed")
    assert verified(report) == 3, "of what was given up nothing is to be proven"
    cleaned(ledger, fourth)
    assert verified(report) == 4


def test_what_is_found_amiss_is_unproven_until_it_agrees_again(ledger: Ledger, report: Report) -> None:
    epochs = [cleaned(ledger, planned(ledger, number)) for number in (1, 2, 3)]
    ledger.record_comparison(epochs[2], "delays", "output flights: shows 6 rows")
    ledger.record_comparison(epochs[1], "warehouse", "output flights: shows 8 rows")
    found = report.pipeline(FLIGHTS)
    assert found is not None
    assert (found.verified_through, found.unproven) == (1, Unproven(2, "warehouse", "output flights: shows 8 rows"))
    amiss = {one.sink: one for one in status(report)[2].participants}
    assert amiss["delays"].unproven is None and amiss["delays"].compared_at is None
    assert amiss["warehouse"].compared_at is not None and amiss["warehouse"].compared_by == "tester"
    ledger.record_comparison(epochs[1], "warehouse", None)
    assert verified(report) == 2
    ledger.record_comparison(epochs[2], "delays", None)
    assert verified(report) == 3
    for same in (None, "gone", "gone", None, None):
        ledger.record_comparison(epochs[0], "delays", same)
    told = [one.reason for one in report.history(FLIGHTS, 1) if one.source == one.target == "published"]
    assert told == ["gone", "verify: the rows are those that were sealed"]


def test_only_what_a_sink_has_published_can_be_compared(ledger: Ledger, report: Report) -> None:
    undecided, half = voted(ledger, planned(ledger, 1)), committed(ledger, planned(ledger, 2))
    for epoch in (undecided, half):
        ledger.record_comparison(epoch, "delays", "gone")
    ledger.record_comparison(half, "nobody", "gone")
    for one in status(report).values():
        assert all(participant.compared_at is None for participant in one.participants)
    shown = published(ledger, undecided)
    ledger.record_comparison(replace(shown, manifest_hash="b" * 64), "delays", "gone")
    found = report.pipeline(FLIGHTS)
    assert found is not None and found.unproven is None, "another manifest than the decided one says nothing"


def test_a_persons_word_proves_nothing(ledger: Ledger, report: Report) -> None:
    epoch = show(ledger, committed(ledger, planned(ledger)), "delays")
    said = ledger.participants(FLIGHTS, 1)["warehouse"].vote
    assert said is not None
    word = {"reason": "I looked", "unproven": "a person has said that it was applied: I looked"}
    ledger.record_publication(epoch, "warehouse", said.token, "resolved", Role.OPERATOR, **word)
    found = report.pipeline(FLIGHTS)
    assert found is not None
    assert (found.verified_through, found.unproven) == (0, Unproven(1, "warehouse", word["unproven"]))
    ledger.record_comparison(epoch, "warehouse", None)
    assert verified(report) == 1


def test_holes_between_intervals_are_named_and_in_a_brief_report_the_first(
    ledger: Ledger, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2, 5, 9):
        planned(ledger, number)
    ledger.void_epoch(FLIGHTS, 2, "closed")
    monkeypatch.setattr("lockstep.ledger.report.BRIEF_HOLES", 1)
    brief, whole = report.pipeline(FLIGHTS, brief=True), report.pipeline(FLIGHTS)
    assert brief is not None and whole is not None
    assert whole.holes == (day(3, 2), day(6, 3)) and brief.holes == whole.holes[:1]


def test_a_time_line_has_every_epoch_below_a_number_with_the_rows_of_all_its_outputs(
    ledger: Ledger, report: Report
) -> None:
    cleaned(ledger, planned(ledger, 1))
    ledger.void_epoch(FLIGHTS, planned(ledger, 2).id, "closed")
    planned(ledger, 3)
    found = [(one.epoch, one.interval, one.state, one.rows) for one in report.line(FLIGHTS, limit=9)]
    assert found == [
        (3, day(3), EpochState.PLANNED, None),
        (2, day(2), EpochState.VOID, None),
        (1, day(1), EpochState.CLEANED, 7),
    ]
    assert [one.epoch for one in report.line(FLIGHTS, limit=1, before=3)] == [2]


def numbers_of(report: Report, **among: int | None) -> list[int]:
    found = report.pipeline(FLIGHTS, **among)  # type: ignore[arg-type]
    assert found is not None
    return [epoch.epoch.id for epoch in found.epochs]


def test_older_epochs_are_had_page_by_page_with_some_of_the_unfinished_beside_them(
    ledger: Ledger, report: Report
) -> None:
    for number in range(1, 7):
        epoch = planned(ledger, number)
        if number not in (1, 2):
            cleaned(ledger, epoch)
    assert numbers_of(report, limit=2, before=6, unfinished=0) == [5, 4]
    assert numbers_of(report, limit=2, before=4, unfinished=0) == [3, 2]
    assert numbers_of(report, limit=1, before=None, unfinished=1) == [6, 1]
    assert numbers_of(report, limit=0, unfinished=None) == [2, 1]
    assert numbers_of(report, limit=1) == [6, 2, 1]
    first = ledger.epoch(FLIGHTS, 1)
    assert report.epoch_status(first).epoch == status(report)[1].epoch == first


def test_a_pipeline_tells_what_every_sink_shows_and_how_old_that_is(ledger: Ledger, report: Report, sql: Sql) -> None:
    found = report.pipeline(FLIGHTS)
    assert found is not None and found.shown is None
    for number in (9, 4):
        published(ledger, planned(ledger, number))
    show(ledger, committed(ledger, planned(ledger, 10)), "warehouse")
    found = report.pipeline(FLIGHTS)
    assert found is not None and found.shown is not None and found.shown.epoch == 2
    now = sql.one("SELECT now()")
    assert abs(found.shown.lag - (now - day(9).end)) < timedelta(minutes=1), "its latest interval, whenever it ran"
    for epoch in report.pipelines(limit=0):
        assert (epoch.shown is None) == (epoch.name == CLICKS)
    published(ledger, clicked(ledger, 0))
    found = report.pipeline(CLICKS)
    assert found is not None and found.shown is not None and found.shown.lag < timedelta(minutes=1)


def test_a_pipeline_knows_its_dags_a_dag_every_pipeline_that_it_moves_and_a_run_the_epoch_of_each(
    ledger: Ledger, report: Report
) -> None:
    shop = RunKey("shop", "manual 1")
    flown = cleaned(ledger, planned(ledger, 1, shop.part(FLIGHTS)))
    seen = clicked(ledger, 0, shop.part(CLICKS))
    planned(ledger, 2, RunKey("again", "manual 2"))
    planned(ledger, 3, RunKey(NOTEBOOK, "a run of nobody's"))
    for number in range(12):
        run = RunKey(COMMAND, f"flights__{number}", restate="a late file")
        new = ledger.plan_generation(ledger.epoch(FLIGHTS, flown.id), a_plan(), {}, run, "a late file")
        assert new is not None
        ledger.void_epoch(FLIGHTS, new.id, "no")
    assert report.dags([FLIGHTS, CLICKS]) == {FLIGHTS: {"shop", "again"}, CLICKS: {"shop"}}, "whoever restates"
    assert report.pipelines_of_dag("shop") == [CLICKS, FLIGHTS] and report.pipelines_of_dag("nothing") == []
    assert report.epochs_of_run(shop, [CLICKS, FLIGHTS]) == [seen, flown]
    assert report.epochs_of_run(shop, [FLIGHTS]) == [flown]
    assert report.epochs_of_run(RunKey("flights", "manual 1"), [FLIGHTS]) == []


def test_an_undecided_epoch_without_a_lease_says_what_it_lacks(ledger: Ledger, report: Report, sql: Sql) -> None:
    bare, sealed, half, full = (planned(ledger, number) for number in range(1, 5))
    for epoch in (sealed, half):
        seal(ledger, epoch)
    vote(ledger, half, "warehouse")
    voted(ledger, full)
    for epoch in (bare, sealed, half, full):
        let_lease_run_out(sql, epoch)
    found = {number: epoch.stuck or "" for number, epoch in status(report).items()}
    assert found[1].startswith("no sealed WAL, and no task is active: its lease has expired")
    assert found[2].startswith("no vote of delays, warehouse")
    assert found[3].startswith("no vote of delays,")
    assert found[4].startswith("no decision")


def test_an_attempt_that_fell_silent_may_come_back_and_a_voided_one_is_stuck_at_once_and_says_why(
    ledger: Ledger, report: Report, sql: Sql
) -> None:
    let_lease_run_out(sql, planned(ledger))
    assert status(report, max_wait=timedelta(hours=1))[1].stuck is None
    assert "its lease has expired" in (status(report)[1].stuck or "")
    ledger.raise_attempt(FLIGHTS, 1, Role.ABORT, reason="disk full")
    voided = status(report, max_wait=timedelta(hours=1))[1].stuck or ""
    assert "no task is active" in voided and "its attempt was voided (disk full)" in voided


def test_a_pipeline_tells_in_one_sentence_what_is_stuck_and_what_mends_the_first(
    ledger: Ledger, report: Report
) -> None:
    cleaned(ledger, planned(ledger, 1))
    found = report.pipeline(FLIGHTS)
    assert found is not None and found.stuck == () and found.trouble is None
    for number in (2, 3):
        ledger.raise_attempt(FLIGHTS, planned(ledger, number).id, Role.ABORT, reason="disk full")
    found = report.pipeline(FLIGHTS)
    assert found is not None and [one.epoch.id for one in found.stuck] == [2, 3]
    assert found.trouble is not None and found.trouble.startswith(
        f"pipeline {FLIGHTS}: 2 epochs are stuck (2, 3); epoch 2 (planned): no sealed WAL, and no task is active"
    )
    assert "\n" not in found.trouble and found.trouble.endswith(found.stuck[0].stuck or "")


def test_a_decided_epoch_names_the_sinks_that_have_not_published_and_then_a_wal_that_nobody_deletes(
    ledger: Ledger, report: Report
) -> None:
    half = show(ledger, committed(ledger, planned(ledger)), "warehouse")
    assert status(report, max_wait=timedelta(hours=1))[1].stuck is None
    assert (status(report)[1].stuck or "").startswith("decided, not published in delays:")
    shown = show(ledger, half, "delays")
    assert "not deleted" in (status(report)[1].stuck or "")
    ledger.record_cleanup(shown, Role.CLEANUP)
    ledger.void_epoch(FLIGHTS, planned(ledger, 2).id, "closed")
    assert [one.stuck for one in status(report).values()] == [None, None]


def let_time_pass(sql: Sql) -> None:
    """An hour, for whatever was decided or published, and for who is at publishing it."""
    with sql.unwatched():
        sql("UPDATE lockstep.epoch SET changed_at = changed_at - interval '1 h'")
        sql(
            "UPDATE lockstep.participant SET changed_at = changed_at - interval '1 h',"
            " lease_until = lease_until - interval '1 h'"
        )


def test_a_decided_epoch_is_not_stuck_while_somebody_publishes_it_however_long_that_takes(
    ledger: Ledger, report: Report, sql: Sql
) -> None:
    epoch = committed(ledger, planned(ledger))
    let_time_pass(sql)
    ledger.renew_publisher(epoch, "delays", Role.PUBLISH)
    assert status(report, max_wait=PATIENCE)[1].stuck is not None, "nobody is at warehouse"
    show(ledger, epoch, "warehouse")
    let_time_pass(sql)
    assert status(report, max_wait=PATIENCE)[1].stuck is not None
    assert ledger.renew_publisher(epoch, "delays", Role.PUBLISH)
    assert status(report, max_wait=PATIENCE)[1].stuck is None
    let_time_pass(sql)
    assert (status(report, max_wait=PATIENCE)[1].stuck or "").startswith("decided, not published in delays:")


def test_an_epoch_whose_predecessor_is_being_published_or_just_was_is_not_stuck(
    ledger: Ledger, report: Report, sql: Sql
) -> None:
    first, _, _ = [committed(ledger, clicked(ledger, after, sinks=["delays"])) for after in range(3)]
    let_time_pass(sql)
    assert {number for number, one in status(report, CLICKS, PATIENCE).items() if one.stuck} == {1, 2, 3}
    ledger.renew_publisher(first, "delays", Role.PUBLISH)
    assert not any(one.stuck for one in status(report, CLICKS, PATIENCE).values())
    let_time_pass(sql)
    show(ledger, first, "delays")
    stuck = {number: one.stuck for number, one in status(report, CLICKS, PATIENCE).items()}
    assert stuck[2] is None
    let_time_pass(sql)
    assert {number for number, one in status(report, CLICKS, PATIENCE).items() if one.stuck} == {1, 2, 3}


def test_there_is_no_sign_of_life_but_for_what_is_decided_and_not_yet_published(ledger: Ledger) -> None:
    undecided, shown = voted(ledger, planned(ledger, 1)), published(ledger, planned(ledger, 2))
    assert not ledger.renew_publisher(undecided, "delays", Role.PUBLISH)
    assert not ledger.renew_publisher(shown, "delays", Role.PUBLISH)
    half = show(ledger, committed(ledger, planned(ledger, 3)), "delays")
    assert not ledger.renew_publisher(half, "delays", Role.PUBLISH)


def test_an_epoch_that_waits_names_the_one_before(ledger: Ledger, report: Report, sql: Sql) -> None:
    first, second = clicked(ledger, 0), clicked(ledger, 1)
    let_lease_run_out(sql, second)
    assert "waits for epoch 1, which is planned" in (status(report, CLICKS)[2].stuck or "")
    for epoch in (first, second):
        committed(ledger, epoch)
    assert "the preceding epoch 1 is committed" in (status(report, CLICKS)[2].stuck or "")


# --- what the exporter and Airflow's metrics tell ---


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


def test_every_pipeline_is_measured_by_its_own_epochs_and_has_zeros_and_no_ages_without_any(
    ledger: Ledger, report: Report
) -> None:
    found = measured(report)
    assert (found.epochs, found.sinks) == (dict.fromkeys(EpochState, 0), {})
    assert (found.stuck, found.held, found.holes, found.verified_through, found.unproven) == (0, 0, 0, 0, False)
    assert (found.oldest_undecided, found.oldest_unpublished, found.lag, found.shown) == (None, None, None, None)
    assert (found.kept_wals, found.kept_bytes) == (0, 0)
    cleaned(ledger, clicked(ledger, 0))
    planned(ledger, 1)
    clicks, flights = measure(report)
    assert (clicks.pipeline, flights.pipeline) == (CLICKS, FLIGHTS)
    assert {state for state, count in clicks.epochs.items() if count} == {EpochState.CLEANED}
    assert {state for state, count in flights.epochs.items() if count} == {EpochState.PLANNED}
    assert clicks.sinks == {"delays": SinkMeasures(), "warehouse": SinkMeasures()}


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


def test_a_sink_is_behind_by_what_it_voted_for_and_what_is_decided_and_audits_hold_what_is_not_released(
    ledger: Ledger, report: Report
) -> None:
    show(ledger, committed(ledger, planned(ledger, 1)), "warehouse")
    voted(ledger, planned(ledger, 2))
    vote(ledger, seal(ledger, planned(ledger, 3)), "delays")
    assert measured(report).sinks == {"delays": SinkMeasures(3, 1), "warehouse": SinkMeasures(1, 0)}
    ledger.record_verdict(attempt_of(seal(ledger, planned(ledger, 4))), HASH, [AuditResult("unique(id)", 3, True)])
    found = measured(report)
    assert (found.held, found.stuck) == (1, 1), "audits hold it"
    ledger.release_epoch(FLIGHTS, 4, "a strike")
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
    with sql.unwatched():
        sql("DELETE FROM lockstep.transition")
    shown = measured(report).shown
    assert shown is not None and (shown.rows, shown.seconds) == ({"flights": 7}, {}), "its history was pruned"
