"""Sessions by event time: whatever the epochs, those of one batch computation over all rows that weren't late."""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg2
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lockstep import Pipeline, Sessions
from lockstep.compute import sessions as folding
from lockstep.compute._balances import Balances, collecting_balances
from lockstep.compute._local_rows import VARIABLE
from lockstep.compute._session_joining import join
from lockstep.compute._taking_back import require_deletes
from lockstep.compute._watermarks import Watermark
from lockstep.crash import CrashInjected
from lockstep.errors import BadRecords, InvalidPipeline, PlanMismatch, Unbalanced
from lockstep.sinks import FileSink, PostgresSink
from lockstep.sources import FileSource
from tests.spark.folding import AGGREGATES, SCHEMA, Epochs, Event, aggregates, batch_of_sessions, frame_of, rows_of
from tests.spark.test_windows import EITHER, Landing, cut, disordered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
GAP = 60  #: seconds
LAST: Event = ("end", 1, 10_000_000, 0)  #: closes every session before it
real_panes, real_join, real_pieces = folding._panes, join, folding._pieces


def sessions_of(**settings: Any) -> Sessions:
    asked: dict[str, Any] = {"schema": SCHEMA, "key": ["key"], "time": "at", "gap": GAP * SECOND}
    return Sessions(**{**asked, "aggregates": AGGREGATES, **settings})


@pytest.fixture(autouse=True)
def rows_in_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How many may be merged in this process."""
    rows: str = getattr(request, "param", "200000")
    monkeypatch.setenv(VARIABLE, rows)
    return rows


def standing(results: Iterable[dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    """What a sink holds that upserts by key and start, and deletes what is absorbed; revisions must grow."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for row in results:
        start = (row["key"], row["start"])
        if start in found:
            assert row["revision"] > found[start]["revision"]
        else:
            assert not row["absorbed"], "what never stood there was taken back"
        found[start] = row
    return {start: row for start, row in found.items() if not row["absorbed"]}


def told(row: dict[str, Any]) -> dict[str, Any]:
    return {**aggregates(row), "end": row["end"]}


class Model:
    """Which rows are late, said row by row in plain Python: by the watermark, and by the sessions that are kept."""

    def __init__(self, out_of_order: int, lateness: int) -> None:
        self.behind = out_of_order + lateness
        self.taken: list[Event] = []
        self.greatest: int | None = None

    def late(self, events: list[Event]) -> list[Event]:
        """Those of an epoch that has some."""
        late: list[Event] = []
        if self.greatest is not None:
            forgotten = self.greatest - self.behind
            kept = [start for start, one in batch_of_sessions(GAP, self.taken).items() if one["end"] > forgotten]
            late = [
                event
                for event in events
                if time_of(event) < forgotten
                and not any(event[0] == key and start <= time_of(event) for key, start in kept)
            ]
        self.taken += [event for event in events if event not in late]
        self.greatest = max([*map(time_of, events), *([] if self.greatest is None else [self.greatest])])
        return late


def closer(seed: int, count: int) -> list[Event]:
    """`disordered` ones, nearer to each other, of two partitions; some come 1000 seconds late."""
    events = disordered(seed, count, late_by=4000)
    return [(event[0], event[1], time_of(event) // 4, time_of(event) % 2) for event in events]


def time_of(event: Event) -> int:
    assert event[2] is not None
    return event[2]


@EITHER
def test_any_cut_into_epochs_gives_the_sessions_of_one_batch_each_once(session: SparkSession) -> None:
    events = disordered(seed=7, count=150, late_by=900)
    epochs = Epochs(session, sessions_of(out_of_order=timedelta(seconds=900)))
    for part in cut(seed=9, events=events, epochs=4):
        epochs.fold(part)
    epochs.fold([LAST])
    found = batch_of_sessions(GAP, events)
    assert 40 < len(found) < 140, "too few meet, or too many"
    assert {start: told(row) for start, row in epochs.last().items()} == found
    assert len(epochs.results) == len(found), "a session was emitted twice"
    assert {(row["revision"], row["absorbed"]) for row in epochs.results} == {(0, False)}
    assert epochs.late == []
    assert sum(one.balance["folded"] for one in epochs.told) == len(events) + 1
    assert {row["key"] for row in rows_of(epochs.state["windows"])} == {"end"}, "closed sessions are forgotten"


@EITHER
@pytest.mark.sample(3)
@pytest.mark.parametrize(("emit", "lateness"), [("final", 0), ("final", 240), ("updates", 0), ("updates", 240)])
def test_whatever_is_late_the_sessions_are_those_of_one_batch_over_the_rest(
    session: SparkSession, emit: Any, lateness: int
) -> None:
    events = closer(1, count=70)
    model, out_of_order = Model(100, lateness), 100
    epochs = Epochs(session, sessions_of(emit=emit, lateness=lateness * SECOND, out_of_order=out_of_order * SECOND))
    some = 0
    for part in cut(seed=29, events=events, epochs=4):
        late = model.late(part) if part else []
        found = epochs.fold(part)
        assert sorted((row["key"], row["at"], repr(row["value"])) for row in found.late) == sorted(
            (str(key), at, repr(value)) for key, value, at, _ in late
        )
        assert found.balance["late"] == len(late)
        some += len(late)
        now, whole = standing(epochs.results), batch_of_sessions(GAP, model.taken)
        assert {start: told(row) for start, row in now.items()}.items() <= whole.items(), "a session that is no more"
    assert some > 3, "nothing was late"
    epochs.fold([LAST])
    whole = batch_of_sessions(GAP, model.taken)
    now = standing(epochs.results)
    now.pop(("end", 10_000_000), None)
    assert {start: told(row) for start, row in now.items()} == whole


def test_both_ways_of_merging_leave_the_same_rows(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    events = closer(3, count=70)
    settings: dict[str, Any] = {"lateness": 240 * SECOND, "out_of_order": 100 * SECOND, "partition": "part"}
    ways = [Epochs(session, sessions_of(**settings)) for _ in range(2)]
    for part in cut(seed=6, events=events, epochs=4):
        for epochs, rows in zip(ways, ("200000", "0"), strict=True):
            monkeypatch.setenv(VARIABLE, rows)
            epochs.fold(part)
        here, there = (epochs.told[-1] for epochs in ways)
        assert (here.balance, here.watermark) == (there.balance, there.watermark)
        assert sorted(map(repr, here.results)) == sorted(map(repr, there.results))
        for name in ways[0].state:
            here_kept, there_kept = (epochs.state[name] for epochs in ways)
            assert here_kept.schema.names == there_kept.schema.names
            assert here_kept.exceptAll(there_kept).isEmpty() and there_kept.exceptAll(here_kept).isEmpty()
    assert any(row["absorbed"] for row in ways[0].results)


def test_sessions_are_those_of_sparks_own_session_window(session: SparkSession) -> None:
    from pyspark.sql import functions as F

    chance = random.Random(5)
    events: list[Event] = [(chance.choice("ab"), n, chance.randrange(-6000, 6000), 0) for n in range(200)]
    found = sessions_of().fold(frame_of(session, [*events, LAST]), Epochs(session, sessions_of()).before())
    # whose rows may be the gap apart: here they belong to two sessions, of which the window of neither holds both
    theirs = frame_of(session, events).groupBy("key", F.session_window("at", f"{GAP * 1_000_000 - 1} microseconds"))
    wanted = theirs.agg(F.sum("value").alias("total"), F.max("at").alias("last"))
    wanted = wanted.selectExpr("key", "session_window.start", f"last + INTERVAL {GAP} SECONDS AS end", "total")
    ours = found.results.select("key", "window_start", "window_end", "total")
    assert ours.exceptAll(wanted).isEmpty() and wanted.exceptAll(ours).isEmpty()


def test_rows_that_are_the_gap_apart_are_of_two_sessions(session: SparkSession) -> None:
    epochs = Epochs(session, sessions_of())
    epochs.fold([("a", 1, 0, 0), ("a", 2, 60, 0), ("a", 3, 119, 0)])
    epochs.fold([LAST])
    assert {start: row["rows"] for start, row in standing(epochs.results).items()} == {("a", 0): 1, ("a", 60): 2}


def test_a_row_between_two_open_sessions_makes_one_of_them(session: SparkSession) -> None:
    epochs = Epochs(session, sessions_of(out_of_order=600 * SECOND))
    epochs.fold([("a", 1, 0, 0), ("a", 2, 100, 0), ("b", 9, 50, 0)])
    epochs.fold([("a", 4, 50, 0)])
    [row] = [row for row in rows_of(epochs.state["windows"]) if row["key"] == "a"]
    assert (row["start"], row["end"], row["total"]) == (0, 160, 7)
    epochs.fold([LAST])
    assert {start: row["total"] for start, row in standing(epochs.results).items()} == {("a", 0): 7, ("b", 50): 9}


@EITHER
def test_sessions_that_were_emitted_and_are_absorbed_are_taken_back_with_what_takes_their_place(
    session: SparkSession,
) -> None:
    epochs = Epochs(session, sessions_of(lateness=600 * SECOND))
    epochs.fold([("a", 1, 100, 0), ("a", 2, 210, 0), ("x", 0, 400, 0)])
    first = epochs.fold([("a", 4, 155, 0)])  # the two are one
    assert first.balance["corrected"] == 1
    assert {(row["start"], row["total"], row["revision"], row["absorbed"]) for row in first.results} == {
        (100, 7, 1, False), (210, 2, 1, True)
    }  # fmt: skip
    earlier = epochs.fold([("a", 8, 50, 0)])  # begins earlier now
    assert {(row["start"], row["end"], row["total"], row["revision"], row["absorbed"]) for row in earlier.results} == {
        (50, 270, 15, 2, False), (100, 270, 7, 2, True)
    }  # fmt: skip
    grown = epochs.fold([("a", 16, 269, 0), ("a", 32, 328, 0), ("a", 64, 380, 0)])  # and is open again
    assert {(row["start"], row["end"], row["total"], row["revision"]) for row in grown.results} == {(50, 440, 127, 3)}
    assert epochs.fold([("x", 0, 450, 0)]).results == [], "it closes as it was emitted"
    assert {row["start"] for row in rows_of(epochs.state["windows"])} == {50, 400}


@EITHER
def test_a_row_is_late_unless_it_is_within_a_session_that_is_kept(session: SparkSession) -> None:
    epochs = Epochs(session, sessions_of(), where="value > 0")
    epochs.fold([("a", 1, 0, 0), ("a", 1, 960, 0), ("b", 1, 970, 0), ("x", 1, 1000, 0)])
    found = epochs.fold([("a", 2, 970, 0), ("b", 4, 969, 0), ("c", 8, 999, 0), ("c", 1, 1000, 0), ("a", 0, 1, 0)])
    assert {(row["key"], row["value"], row["at"], row["part"]) for row in found.late} == {
        ("b", 4, 969.0, 0), ("c", 8, 999.0, 0)
    }  # fmt: skip
    assert found.balance == {"in": 5, "filtered": 1, "corrected": 0, "folded": 2, "late": 2}
    epochs.fold([LAST])
    assert {start: row["rows"] for start, row in standing(epochs.results).items()} == {
        ("a", 0): 1, ("a", 960): 2, ("b", 970): 1, ("x", 1000): 1, ("c", 1000): 1
    }  # fmt: skip


def test_raising_lateness_never_reopens_a_session_that_was_forgotten(session: SparkSession) -> None:
    epochs = Epochs(session, sessions_of())
    epochs.fold([("a", 1, 10, 0), ("x", 0, 4200, 0)])
    epochs.windows = sessions_of(lateness=180 * MINUTE)
    raised = epochs.fold([("a", 9, 30, 0), ("b", 9, 40, 0)])
    assert (raised.results, len(raised.late)) == ([], 2)
    epochs.fold([("a", 4, 4210, 0), ("x", 0, 6000, 0)])
    kept = epochs.fold([("a", 5, 4220, 0), ("a", 6, 4190, 0)])
    assert [(row["total"], row["revision"], row["absorbed"]) for row in kept.results] == [(9, 1, False)]
    assert [row["at"] for row in kept.late] == [4190.0]
    epochs.windows = sessions_of()
    lowered = epochs.fold([("a", 1, 4225, 0), ("b", 1, 6010, 0)])
    assert ([row["at"] for row in lowered.late], lowered.balance["folded"]) == ([4225.0], 1)


@EITHER
def test_keys_of_two_columns_keep_their_sessions_apart(session: SparkSession) -> None:
    two = sessions_of(schema=f"{SCHEMA}, part INT", key=["key", "part"], out_of_order=600 * SECOND)
    epochs = Epochs(session, two)
    epochs.fold([("a", 1, 0, 1), ("a", 2, 10, 2), ("b", 4, 20, 1)])
    epochs.fold([("a", 8, 30, 1), ("b", 16, 40, 2), LAST])
    assert {(row["key"], row["part"], row["start"], row["total"]) for row in epochs.results} == {
        ("a", 1, 0, 9), ("a", 2, 10, 2), ("b", 1, 20, 4), ("b", 2, 40, 16)
    }  # fmt: skip


def test_times_whose_sessions_would_be_kept_past_the_year_9999_fail_the_epoch(session: SparkSession) -> None:
    windows, end = sessions_of(lateness=20 * MINUTE), int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())
    with pytest.raises(BadRecords, match=r"2 rows .* lies outside 0001-01-01 .* to 9999-12-31 23:38:59.999999"):
        Epochs(session, windows).fold([("a", 1, end - 1260, 0), ("a", 1, end - 1259, 0), ("a", 1, end + 10**9, 0)])


def lossy(windows: Any, rows: DataFrame) -> DataFrame:
    return real_panes(windows, rows.where("value <> 2"))


def forgetful(windows: Any, bounds: Any, panes: pa.Table, old: pa.Table) -> Any:
    return real_join(windows, bounds, panes.filter(pc.not_equal(panes["high"], 2)), old)


def forgetful_there(windows: Any, bounds: Any, panes: DataFrame, old: DataFrame) -> DataFrame:
    return real_pieces(windows, bounds, panes.where("high <> 2"), old)


@pytest.mark.fault("K10")
@EITHER
def test_rows_that_get_lost_on_the_way_stop_the_epoch(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch, rows_in_process: str
) -> None:
    merging: tuple[str, Any] = ("_pieces", forgetful_there) if rows_in_process == "0" else ("join", forgetful)
    for name, fault in (("_panes", lossy), merging):
        epochs = Epochs(session, sessions_of())
        before = Watermark().advance(epochs.windows, {"": 600 * 10**6})
        epochs.state["windows_watermark"] = before.rows(session, epochs.windows)
        with (
            monkeypatch.context() as planted,
            pytest.raises(Unbalanced, match=r"found 3 in, .* 1 folded, 1 late, 1 lost"),
        ):
            planted.setattr(folding, name, fault)
            epochs.fold([("a", 1, 0, 0), ("b", 1, 700, 0), ("b", 2, 900, 0)])


#: of an execution's work on state: while it is staged, sealed, decided and shown
POINTS = (
    "stage.after_spark",
    "stage.before_manifest",
    "stage.before_seal",
    "stage.after_seal",
    "commit.before_decision",
    "commit.after_decision",
)


def upserting(**arguments: Any) -> PostgresSink:
    tables, key = {"windows": "public.sessions"}, ["key", "window_start"]
    return PostgresSink("warehouse", tables=tables, connection="w", create=True, mode="upsert", key=key, **arguments)


def upserted(dsn: str) -> dict[tuple[str, int], dict[str, Any]]:
    """The rows of `upserting`'s table, by key and start."""
    with closing(psycopg2.connect(dsn)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT key, extract(epoch FROM window_start)::bigint, rows, total, low, high, mean FROM public.sessions"
            " WHERE NOT lockstep_deleted"
        )
        return {(key, start): dict(zip(AGGREGATES, told, strict=True)) for key, start, *told in cursor}


def appended(landing: Landing) -> list[dict[str, Any]]:
    """The rows of the sink that appends, in the order of their revisions."""
    rows = [{**row, "start": row["window_start"].timestamp()} for row in landing.rows("windows")]
    return sorted(rows, key=lambda row: int(row["revision"]))


@pytest.mark.fault("K14")
def test_epochs_that_are_killed_in_between_leave_the_sessions_of_one_batch_in_every_sink(
    spark_connect: str,
    ledger_dsn: str,
    warehouse_dsn: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows_in_process: str,
) -> None:
    if rows_in_process == "0":
        pytest.skip("epochs of both kinds follow each other")
    windows = sessions_of(out_of_order=100 * SECOND, lateness=250 * SECOND)
    events: list[Event] = [(key, abs(value or 0), at, 0) for key, value, at, _ in closer(5, count=90)]
    landing = Landing(windows, spark_connect, ledger_dsn, tmp_path, upserting(deleted="absorbed"))
    landing.connections["w"] = warehouse_dsn
    model = Model(100, 250)
    parts: list[list[Event]] = [*cut(seed=37, events=events, epochs=len(POINTS)), [LAST]]
    parts.append([("a", 5, 0, 0), ("a", 6, 10_000_001, 0)])
    late = 0
    for number, (point, part) in enumerate(zip([*POINTS, *POINTS[:2]], parts, strict=True)):
        if not part:
            continue
        landing.land(part)
        monkeypatch.setenv(VARIABLE, ("200000", "0")[number % 2])
        with monkeypatch.context() as crashing:
            crashing.setenv("LOCKSTEP_TESTING", "1")
            crashing.setenv("LOCKSTEP_CRASH", f"{point}:raise")
            with pytest.raises(CrashInjected):
                landing.run(f"run {number}")
        late += len(model.late(part))
        landing.run(f"run {number}")
    found = batch_of_sessions(GAP, [event for event in model.taken if event[0] != "end" and event[1] != 6])
    wanted = {start: aggregates(row) for start, row in found.items()}
    rows = appended(landing)
    assert {start: aggregates(row) for start, row in standing(rows).items()} == wanted
    assert upserted(warehouse_dsn) == wanted
    assert any(row["absorbed"] for row in rows)
    assert len(landing.rows("late")) == late > 1


@pytest.mark.fault("K14")
def test_sessions_of_epochs_that_are_restated_as_one_are_those_of_one_batch(
    spark_connect: str, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path, rows_in_process: str
) -> None:
    if rows_in_process == "0":
        pytest.skip("what is replaced is alike")
    windows = sessions_of(lateness=600 * SECOND)
    landing = Landing(windows, spark_connect, ledger_dsn, tmp_path, upserting(deleted="absorbed"))
    landing.connections["w"] = warehouse_dsn
    parts: list[list[Event]] = [[("a", 1, 100, 0), ("a", 2, 210, 0), ("x", 0, 400, 0)]]
    parts += [[("a", 4, 155, 0)], [("a", 8, 50, 0)]]
    for number, part in enumerate(parts):
        landing.land(part)
        landing.run(f"run {number}")
    landing.run("restating", restate="the prices were read wrongly", epoch=2)
    assert {(row["start"], row["total"], row["revision"], row["absorbed"]) for row in appended(landing)} == {
        (100, 1, 0, False), (210, 2, 0, False), (50, 15, 1, False), (100, 1, 1, True), (210, 2, 1, True)
    }  # fmt: skip
    assert {start: row["total"] for start, row in upserted(warehouse_dsn).items()} == {("a", 50): 15}
    landing.land([("a", 16, 260, 0)])
    landing.run("after it")
    assert {start: row["total"] for start, row in standing(appended(landing)).items()} == {("a", 50): 31}
    assert {start: row["total"] for start, row in upserted(warehouse_dsn).items()} == {("a", 50): 31}


@pytest.mark.fault("K14")
def test_an_epoch_whose_sink_would_keep_sessions_that_are_no_more_is_not_sealed(
    spark_connect: str, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path, rows_in_process: str
) -> None:
    if rows_in_process == "0":
        pytest.skip("what is asked is alike")
    landing = Landing(sessions_of(emit="updates"), spark_connect, ledger_dsn, tmp_path, upserting())
    landing.connections["w"] = warehouse_dsn
    landing.land([("a", 1, 0, 0)])
    with pytest.raises(InvalidPipeline, match='say deleted="absorbed"'):
        landing.run("first")


def test_kept_sessions_are_never_mixed_with_others(session: SparkSession) -> None:
    epochs = Epochs(session, sessions_of())
    epochs.fold([("a", 1, 0, 0)])
    others: list[dict[str, Any]] = [{"gap": 5 * MINUTE}, {"emit": "updates"}]
    for settings in others:
        epochs.windows = sessions_of(**settings)
        with pytest.raises(PlanMismatch, match="give the new windows another name"):
            epochs.fold([])


def test_a_sink_that_would_keep_sessions_which_are_no_more_is_refused(
    session: SparkSession, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[Any, ...]] = [
        ({"emit": "updates"}, {}, True),
        ({"lateness": MINUTE}, {}, True),
        ({"lateness": MINUTE}, {"deleted": "absorbed"}, False),
        ({}, {}, False),
    ]
    for settings, arguments, refused in cases:
        with subtests.test(settings=settings, arguments=arguments):
            windows, balances = sessions_of(**settings), Balances()
            with collecting_balances(balances):
                found = windows.fold(frame_of(session, [("a", 1, 0, 0)]), Epochs(session, windows).before())
            outputs = {"windows": found.results.where("rows > 0"), "late": found.late}
            source, late = (
                FileSource(str(tmp_path), schema="key STRING"),
                FileSink("late", output="late", path=str(tmp_path)),
            )
            pipeline = Pipeline("p", {"events": source}, lambda inputs: {}, [upserting(**arguments), late])
            if refused:
                with pytest.raises(InvalidPipeline, match=r'sink warehouse upserts windows, .* say deleted="absorbed"'):
                    require_deletes(pipeline, outputs, balances)
            else:
                require_deletes(pipeline, outputs, balances)


def test_sessions_that_make_no_sense_are_refused_before_anything_runs(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, ...]] = [
        ({"gap": timedelta(0)}, "gap 0:00:00 must be above 0"),
        ({"gap": timedelta.max}, "gap, out_of_order and lateness can't be above 4000 years"),
        ({"lateness": -MINUTE}, "can't be below 0"),
        ({"schema": "key STRING, absorbed BIGINT", "aggregates": {"absorbed": "count(*)"}}, "the windows' own"),
    ]
    for settings, found in cases:
        with subtests.test(settings=settings), pytest.raises(InvalidPipeline, match=found):
            sessions_of(**settings)
