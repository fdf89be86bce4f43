"""Windows by event time: whatever the epochs, what one batch computation gives; late rows are counted and kept."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lockstep import Windows
from lockstep.compute import windows as folding
from lockstep.compute._conservation import Balances, collecting_balances
from lockstep.compute._local_rows import VARIABLE
from lockstep.compute._local_rows import frame_of as table_frame
from lockstep.compute._watermarks import Watermark
from lockstep.compute._window_merging import merge
from lockstep.compute._window_sql import Bounds, final_aggregate
from lockstep.definition.windows import Aggregate, AggregateFunction
from lockstep.errors import BadRecords, InvalidPipeline, PlanMismatch, Unbalanced
from tests.spark.folding import AGGREGATES, SCHEMA, Epochs, Event, aggregates, batch, frame_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MINUTE = timedelta(minutes=1)
real_panes, real_merged, real_late = folding._panes, folding._merged, Bounds.late
real_merge = merge
LAST: Event = ("end", 1, 10_000_000, 0)  #: closes every window before it


def windows_of(**settings: Any) -> Windows:
    asked: dict[str, Any] = {"schema": SCHEMA, "key": ["key"], "time": "at", "size": 10 * MINUTE}
    return Windows(**{**asked, "aggregates": AGGREGATES, **settings})


def disordered(seed: int, count: int, late_by: int) -> list[Event]:
    """Events in the order of their arrival, none more than `late_by` seconds after it happened."""
    chance = random.Random(seed)
    times = [chance.randrange(-3000, 6000) for _ in range(count)]
    arrivals = sorted((time + chance.randint(0, late_by), time) for time in times)
    return [(chance.choice("abc"), chance.choice([None, -5, 1, 7, 2**31 - 1]), time, 0) for _, time in arrivals]


def cut(seed: int, events: list[Event], epochs: int) -> Iterable[list[Event]]:
    """The events in so many epochs, some of them empty, each one's rows in any order."""
    chance = random.Random(seed)
    places = sorted(chance.choices(range(len(events) + 1), k=epochs - 1))
    for start, end in zip([0, *places], [*places, len(events)], strict=True):
        yield chance.sample(events[start:end], end - start)


@pytest.fixture(autouse=True)
def rows_in_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How many may be merged in this process."""
    rows: str = getattr(request, "param", "200000")
    monkeypatch.setenv(VARIABLE, rows)
    return rows


#: the property holds whichever of the two merges the windows
EITHER = pytest.mark.parametrize("rows_in_process", ["200000", "0"], ids=["in process", "in Spark"], indirect=True)


@EITHER
@pytest.mark.parametrize("slide", [None, 4], ids=["tumbling", "sliding"])
@pytest.mark.sample(2)
def test_any_cut_into_epochs_gives_the_windows_of_one_batch_each_once(session: SparkSession, slide: int | None) -> None:
    windows = windows_of(
        size=12 * MINUTE, slide=slide and slide * MINUTE, offset=MINUTE, out_of_order=timedelta(seconds=900)
    )
    events = disordered(seed=7, count=150, late_by=900)
    epochs = Epochs(session, windows)
    for part in cut(seed=8, events=events, epochs=4):
        epochs.fold(part)
    epochs.fold([LAST])
    assert {window: aggregates(row) for window, row in epochs.last().items()} == batch(windows, events)
    assert len(epochs.results) == len(epochs.last()), "a window was emitted twice"
    assert {row["revision"] for row in epochs.results} == {0}
    assert epochs.late == []
    assert sum(told.balance["folded"] for told in epochs.told) == len(events) + 1
    marks = [told.watermark for told in epochs.told if told.watermark is not None]
    assert marks == sorted(marks)
    assert {row["key"] for row in rows_of(epochs.state["windows"])} == {"end"}, "closed windows are forgotten"


def test_windows_start_where_sparks_own_do(session: SparkSession) -> None:
    from pyspark.sql import functions as F

    events = [("a", n, chance, 0) for n, chance in enumerate(random.Random(1).choices(range(-(10**9), 10**9), k=40))]
    windows = windows_of(size=15 * MINUTE, slide=5 * MINUTE, offset=2 * MINUTE)
    found = windows.fold(frame_of(session, [*events, ("end", 0, 2 * 10**9, 0)]), Epochs(session, windows).before())
    spark_window = F.window("at", "15 minutes", "5 minutes", "2 minutes")
    theirs = frame_of(session, events).groupBy("key", spark_window).agg(F.sum("value").alias("total"))
    theirs = theirs.selectExpr("key", "window.start AS window_start", "window.end AS window_end", "total")
    ours = found.results.select("key", "window_start", "window_end", "total")
    assert ours.exceptAll(theirs).isEmpty() and theirs.exceptAll(ours).isEmpty()


@EITHER
def test_a_late_row_corrects_its_window_until_that_is_forgotten_then_goes_to_the_late_output(
    session: SparkSession,
) -> None:
    windows = windows_of(lateness=20 * MINUTE)
    epochs = Epochs(session, windows, where="value > 0")
    first, second, other = ("a", 1, 10, 0), ("a", 2, 20, 0), ("b", 7, 30, 0)
    assert epochs.fold([first, ("a", 5, 600, 0), ("x", 0, 10**9, 0)]).balance == {
        "in": 3, "filtered": 1, "corrected": 0, "partly_late": 0, "folded": 2, "late": 0
    }  # fmt: skip
    corrected = epochs.fold([second, other])
    assert corrected.balance["corrected"] == 2
    assert {(row["key"], row["total"], row["revision"]) for row in corrected.results} == {("a", 3, 1), ("b", 7, 0)}
    epochs.fold([("a", 1, 1800, 0)])  # forgets what ends by 600
    too_late = epochs.fold([("a", 9, 599, 0), ("a", None, 599, 0), ("a", 4, 601, 0)])
    assert [(row["value"], row["at"], row["part"]) for row in too_late.late] == [(9, 599.0, 0)]
    assert (too_late.balance["late"], too_late.balance["filtered"], too_late.balance["folded"]) == (1, 1, 1)
    epochs.fold([LAST])
    kept = [first, second, other, ("a", 5, 600, 0), ("a", 1, 1800, 0), ("a", 4, 601, 0)]
    assert {window: aggregates(row) for window, row in epochs.last().items()} == batch(windows, kept)
    revisions: dict[Any, list[int]] = {}
    for row in epochs.results:
        revisions.setdefault((row["key"], row["start"]), []).append(row["revision"])
    assert revisions[("a", 0)] == [0, 1]
    assert revisions[("a", 600)] == [0, 1]


@EITHER
@pytest.mark.sample(1)
def test_raising_lateness_never_reopens_a_window_that_was_forgotten(session: SparkSession) -> None:
    epochs = Epochs(session, windows_of())
    epochs.fold([("a", 1, 10, 0), ("a", 2, 20, 0), ("x", 0, 4200, 0)])  # emits and forgets what ends by 4200
    epochs.windows = windows_of(lateness=180 * MINUTE)
    raised = epochs.fold([("a", 9, 30, 0), ("b", 9, 40, 0)])
    assert (raised.results, len(raised.late), raised.balance["late"]) == ([], 2, 2)
    epochs.fold([("a", 4, 4210, 0), ("x", 0, 6000, 0)])  # closes windows that are kept from now on
    late = epochs.fold([("a", 9, 50, 0), ("a", 5, 4220, 0)])
    assert [(row["total"], row["revision"]) for row in late.results] == [(9, 1)]
    assert [(row["value"], row["at"]) for row in late.late] == [(9, 50.0)]
    epochs.fold([LAST])
    assert epochs.last()[("a", 0)]["rows"] == 2, "an upserting sink shows fewer rows than were emitted before"


def test_what_was_late_stays_late_when_lateness_is_lowered_and_raised_again(session: SparkSession) -> None:
    epochs = Epochs(session, windows_of(lateness=180 * MINUTE))
    epochs.fold([("a", 1, 10, 0), ("x", 0, 4200, 0)])
    epochs.windows = windows_of()
    epochs.fold([])  # an epoch without rows forgets, too
    epochs.windows = windows_of(lateness=180 * MINUTE)
    told = epochs.fold([("a", 2, 20, 0)])
    assert (told.results, told.balance["late"]) == ([], 1)


@EITHER
@pytest.mark.sample(1)
def test_a_row_that_missed_some_of_its_windows_is_folded_into_the_others_and_shown(session: SparkSession) -> None:
    epochs = Epochs(session, windows_of(slide=5 * MINUTE))
    epochs.fold([("a", 1, 700, 0)])  # closes what ends by 600
    told = epochs.fold([("a", 2, 400, 0), ("a", 3, 200, 0), ("a", 4, 650, 0)])
    assert {(row["value"], row["windows_missed"]) for row in told.late} == {(2, 1), (3, 2)}
    assert told.balance == {"in": 3, "filtered": 0, "corrected": 0, "partly_late": 1, "folded": 2, "late": 1}
    epochs.fold([LAST])
    totals = {window: row["total"] for window, row in epochs.last().items()}
    assert totals == {("a", 300): 1 + 2 + 4, ("a", 600): 1 + 4}


@EITHER
@pytest.mark.sample(1)
def test_updates_bring_an_upserting_sink_to_the_windows_of_one_batch(session: SparkSession) -> None:
    windows = windows_of(emit="updates", out_of_order=15 * MINUTE)
    events = disordered(seed=3, count=80, late_by=900)
    epochs = Epochs(session, windows)
    for part in [events[:40], [], events[40:]]:
        told = epochs.fold(part)
        assert {(row["key"], row["start"]) for row in told.results} == set(batch(windows, part))
    assert {window: aggregates(row) for window, row in epochs.last().items()} == batch(windows, events)
    assert epochs.told[1].watermark == epochs.told[0].watermark


def test_the_slowest_partition_holds_the_watermark_until_it_is_idle() -> None:
    windows = windows_of(partition="part", idle_epochs=2, out_of_order=timedelta(microseconds=10))
    mark, bounds = Watermark(), []
    for greatest in (
        {"0": 100, "1": 9000},
        {"1": 9100},
        {},  # nothing moves, nobody is idle
        {"1": 9200},  # the second epoch without partition 0
        {"0": 200, "1": 9300},  # it comes back: behind the watermark, which stays
        {"0": 9400, "1": 9300, "2": 5},  # a new one
    ):
        mark = mark.advance(windows, greatest)
        bounds.append(mark.bound)
    assert bounds == [90, 90, 90, 9190, 9190, 9190]


@EITHER
@pytest.mark.sample(1)
def test_decimals_stay_exact_and_a_sum_that_grows_too_large_fails(session: SparkSession) -> None:
    schema = "key STRING, exact DECIMAL(12,2), mean DECIMAL(16,6), total BIGINT"
    shares = {
        "exact": "sum(value * 0.01BD)",
        "mean": "avg(value * 0.01BD)",
        "total": "sum(value * 3000000000000000000)",
    }
    windows = windows_of(schema=schema, aggregates=shares, emit="updates")
    epochs = Epochs(session, windows)
    [row] = epochs.fold([("a", 1, 0, 0), ("a", 1, 0, 0), ("a", 1, 0, 0)]).results
    assert (str(row["exact"]), str(row["mean"]), row["total"]) == ("0.03", "0.010000", 9 * 10**18)
    with pytest.raises(Exception, match="OVERFLOW"):  # with what the state holds
        epochs.fold([("a", 1, 0, 0)])


def test_a_decimal_mean_is_rounded_once(session: SparkSession) -> None:
    cases = [(2_000_001, 1_000_000), (2, -5), (3, 5), (4, 10**30 + 2), (7, 0), (2_000_001, -1_000_000), (0, None)]
    unit = Decimal("0.01")
    told = [(number, n, None if total is None else total * unit) for number, (n, total) in enumerate(cases)]
    frame = session.createDataFrame(told, "number INT, mean__count BIGINT, mean__sum DECIMAL(38,2)")
    mean = final_aggregate(Aggregate("mean", AggregateFunction.AVG, "value", "DECIMAL(38,2)"))
    found = {row["number"]: row["mean"] for row in frame.select("number", mean).collect()}
    with localcontext(prec=60, rounding=ROUND_HALF_UP):
        wanted = {number: total and (total / n).quantize(unit) for number, n, total in told}
    assert found == wanted


def test_rows_without_time_or_key_fail_the_epoch_unless_they_are_left_out_by_name(session: SparkSession) -> None:
    rows: list[Event] = [("a", 1, None, 0), (None, 1, 5, 0), ("a", 1, 5, 0)]
    with pytest.raises(BadRecords, match=r"1 rows have no event time \(at\), 1 a null in their key \['key'\]"):
        Epochs(session, windows_of()).fold(rows)
    told = Epochs(session, windows_of(), where="at IS NOT NULL AND key IS NOT NULL").fold(rows)
    assert (told.balance["in"], told.balance["filtered"], told.balance["folded"]) == (3, 2, 1)


def test_events_whose_windows_would_be_kept_past_the_year_9999_fail_the_epoch(session: SparkSession) -> None:
    windows, end = windows_of(lateness=20 * MINUTE), int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())
    rows: list[Event] = [("a", 1, end - 1800, 0), ("a", 1, end - 1799, 0), ("a", 1, end + 10**6, 0), ("a", 1, 5, 0)]
    with pytest.raises(BadRecords, match=r"2 rows .* lies outside 0001-01-01 .* to 9999-12-31 23:29:59.999999"):
        Epochs(session, windows).fold(rows)
    with pytest.raises(BadRecords, match=r"1 rows .* lies outside 0001-01-01"):
        Epochs(session, windows).fold([("a", 1, -(10**11), 0), ("a", 1, 5, 0)])
    told = Epochs(session, windows, where="at < DATE'9000-01-01'").fold(rows)
    assert (told.balance["filtered"], told.balance["folded"]) == (3, 1)


def lossy(windows: Windows, rows: DataFrame) -> DataFrame:
    return real_panes(windows, rows.where("value <> 2"))


def doubling(windows: Windows, rows: DataFrame) -> DataFrame:
    return real_panes(windows, rows.unionByName(rows.where("value = 2")))


def forgetful(*arguments: Any) -> DataFrame:
    return real_merged(*arguments).where("high <> 2")


def forgetful_here(windows: Windows, parts: pa.Table, *arguments: Any) -> Any:
    return real_merge(windows, parts.filter(pc.not_equal(parts["high"], 2)), *arguments)


def hiding(bounds: Bounds, rows: DataFrame, *arguments: Any) -> Any:
    return real_late(bounds, rows.where("value <> 1"), *arguments)


@pytest.mark.fault("K10")
@EITHER
def test_rows_that_get_lost_or_doubled_on_the_way_stop_the_epoch(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch, rows_in_process: str, subtests: pytest.Subtests
) -> None:
    merging = ("_merged", forgetful) if rows_in_process == "0" else ("merge", forgetful_here)
    faults: list[tuple[Any, str, Any, str]] = [
        (folding, "_panes", lossy, "2 folded, 1 late"),
        (folding, "_panes", doubling, "4 folded, 1 late"),
        (folding, *merging, "1 folded, 1 late"),
        (Bounds, "late", hiding, "3 folded, 0 late"),
    ]
    for place, name, fault, told in faults:
        with subtests.test(fault=fault.__name__), monkeypatch.context() as planted:
            epochs = Epochs(session, windows_of())
            before = Watermark().advance(epochs.windows, {"": 600 * 10**6})
            epochs.state["windows_watermark"] = table_frame(session, before.table(epochs.windows))
            planted.setattr(place, name, fault)
            with pytest.raises(Unbalanced, match=rf"in must be folded \+ late \+ filtered, found 4 in, .* {told}"):
                epochs.fold([("a", 1, 0, 0), ("b", 1, 700, 0), ("b", 2, 700, 0), ("c", 3, 700, 0)])


def test_a_transform_that_keeps_the_late_rows_to_itself_is_refused(session: SparkSession) -> None:
    windows, balances = windows_of(), Balances()
    with collecting_balances(balances):
        found = windows.fold(frame_of(session, [("a", 1, 0, 0)]), Epochs(session, windows).before())
        with pytest.raises(InvalidPipeline, match="two folds into windows"):
            windows.fold(frame_of(session, []), Epochs(session, windows).before())
    with pytest.raises(InvalidPipeline, match="doesn't return late: rows would be lost"):
        balances.settle_counts([found.results, *found.state.values()])


def test_kept_windows_are_never_mixed_with_others(session: SparkSession) -> None:
    epochs = Epochs(session, windows_of())
    epochs.fold([("a", 1, 0, 0)])
    others: list[dict[str, Any]] = [{"size": 5 * MINUTE}, {"slide": 5 * MINUTE}, {"offset": MINUTE}]
    others += [{"emit": "updates"}, {"aggregates": {**AGGREGATES, "low": "max(value)"}}]
    for settings in others:
        epochs.windows = windows_of(**settings)
        with pytest.raises(PlanMismatch, match="give the new windows another name"):
            epochs.fold([])


def test_types_that_would_lose_something_are_refused(session: SparkSession, subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str | None, str]] = [
        ({"time": "value"}, None, "time='value' is int, not timestamp"),
        ({}, "value", "where='value' is int, not boolean"),
        (
            {"aggregates": {**AGGREGATES, "total": "sum(value / 2)"}},
            None,
            r"sum\(value / 2\) reads double, total is bigint",
        ),
        ({"aggregates": {**AGGREGATES, "low": "min(part + 1L)"}}, None, "reads bigint, low is int"),
        ({"schema": SCHEMA.replace("key STRING", "key BIGINT")}, None, "key is string, declared bigint"),
    ]
    for settings, where, told in cases:
        with subtests.test(told=told):
            windows = windows_of(**settings)
            with pytest.raises(InvalidPipeline, match=told):
                windows.fold(frame_of(session, []), Epochs(session, windows).before(), where)


def test_windows_that_make_no_sense_are_refused_before_anything_runs(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"slide": 3 * MINUTE}, "whole multiple of slide"),
        ({"size": timedelta(0)}, "above 0"),
        ({"size": 7 * 24 * 60 * MINUTE, "slide": timedelta(seconds=1)}, "in 604800 windows, more than 10000"),
        ({"lateness": -MINUTE}, "can't be below 0"),
        ({"lateness": timedelta.max}, "can't be above 4000 years"),
        ({"emit": "all"}, "emit must be"),
        ({"idle_epochs": 2}, "needs partition="),
        ({"key": []}, "at least one of both"),
        ({"aggregates": {**AGGREGATES, "more": "count(*)"}}, "it must name each column"),
        ({"aggregates": {**AGGREGATES, "total": "sum(value) + 1"}}, "must be one of count, sum"),
        ({"aggregates": {**AGGREGATES, "total": "stddev(value)"}}, "must be one of count, sum"),
        ({"aggregates": {**AGGREGATES, "rows": "count(DISTINCT value)"}}, "must be one of count, sum"),
        ({"aggregates": {**AGGREGATES, "total": "sum(*)"}}, r"only count takes \*"),
        ({"schema": SCHEMA.replace("mean DOUBLE", "mean INT")}, r"mean is a avg: declare it DECIMAL\(p,s\) or DOUBLE"),
        ({"schema": "key STRING, due BIGINT", "aggregates": {"due": "count(*)"}}, "reserved for windows"),
        ({"schema": "key"}, "'key' is no column .* write name TYPE"),
    ]
    for settings, told in cases:
        with subtests.test(settings=settings), pytest.raises(InvalidPipeline, match=told):
            windows_of(**settings)
