"""Sessions by event time: whatever the epochs, those of one batch computation over all rows that weren't late."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg2
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lockstep import Pipeline, Sessions, files, run_epoch
from lockstep.compute import sessions as folding
from lockstep.compute._local_rows import VARIABLE
from lockstep.compute._local_rows import frame_of as table_frame
from lockstep.compute._watermarks import Watermark
from lockstep.compute.sessions import join
from lockstep.crash import CrashInjected
from lockstep.errors import InvalidPipeline, Unbalanced
from lockstep.sinks import FileSink, PostgresSink
from lockstep.sinks.base import Sink
from lockstep.sources import FileSource
from tests.spark.folding import AGGREGATES, SCHEMA, Epochs, Event, aggregates, batch_of_sessions, rows_of
from tests.spark.test_windows import EITHER, cut, disordered, rows_in_process

__all__ = ["rows_in_process"]

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
GAP = 60  #: seconds
LAST: Event = ("end", 1, 10_000_000, 0)  #: closes every session before it
real_panes, real_join, real_pieces = folding._panes, join, folding._pieces


def sessions_of(**settings: Any) -> Sessions:
    asked: dict[str, Any] = {"schema": SCHEMA, "key": ["key"], "time": "at", "gap": GAP * SECOND}
    return Sessions(**{**asked, "aggregates": AGGREGATES, **settings})


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


@EITHER
def test_keys_of_two_columns_keep_their_sessions_apart(session: SparkSession) -> None:
    two = sessions_of(schema=f"{SCHEMA}, part INT", key=["key", "part"], out_of_order=600 * SECOND)
    epochs = Epochs(session, two)
    epochs.fold([("a", 1, 0, 1), ("a", 2, 10, 2), ("b", 4, 20, 1)])
    epochs.fold([("a", 8, 30, 1), ("b", 16, 40, 2), LAST])
    assert {(row["key"], row["part"], row["start"], row["total"]) for row in epochs.results} == {
        ("a", 1, 0, 9), ("a", 2, 10, 2), ("b", 1, 20, 4), ("b", 2, 40, 16)
    }  # fmt: skip


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
        epochs.state["windows_watermark"] = table_frame(session, before.table(epochs.windows))
        with (
            monkeypatch.context() as planted,
            pytest.raises(Unbalanced, match=r"found 3 in, .* 1 folded, 1 late, 1 lost"),
        ):
            planted.setattr(folding, name, fault)
            epochs.fold([("a", 1, 0, 0), ("b", 1, 700, 0), ("b", 2, 900, 0)])


class Landing:
    """A pipeline that folds the files of a folder, with its ledger and its sinks."""

    def __init__(self, windows: Sessions, spark: str, ledger: str, folder: Path, *more: Sink) -> None:
        def transform(inputs: Any, state: Any) -> Any:
            found = windows.fold(inputs["events"], state, where="value >= 0 OR value IS NULL")
            return {"windows": found.results, "late": found.late}, found.state

        (folder / "landing").mkdir()
        self.folder, self.ledger, self.staging = folder, ledger, str(folder / "staging")
        self.spark = spark
        self.connections: dict[str, str] = {}
        schema = "key STRING, value INT, at TIMESTAMP"
        self.pipeline = Pipeline(
            "folding",
            {"events": FileSource(str(folder / "landing"), schema=schema)},
            transform,
            [*(FileSink(name, output=name, path=str(folder / name)) for name in ("windows", "late")), *more],
            state=windows.state(),
            version="test",
        )

    def land(self, events: list[Event]) -> None:
        lines = [f"{key},{value},{datetime.fromtimestamp(at or 0, UTC).isoformat()}\n" for key, value, at, _ in events]
        number = len(list((self.folder / "landing").iterdir()))
        (self.folder / "landing" / f"{number}.csv").write_text("key,value,at\n" + "".join(lines))

    def run(self, name: str, **restating: Any) -> None:
        places: dict[str, Any] = {"ledger": self.ledger, "staging": self.staging, "connections": self.connections}
        run_epoch(self.pipeline, spark=self.spark, run_id=name, **places, **restating)

    def rows(self, output: str) -> list[dict[str, Any]]:
        return [row for path in files(str(self.folder / output)) for row in pq.read_table(path).to_pylist()]


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
) -> None:
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
    spark_connect: str, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path
) -> None:
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
@pytest.mark.parametrize("settings", [{"emit": "updates"}, {"lateness": MINUTE}], ids=str)
def test_an_epoch_whose_sink_would_keep_sessions_that_are_no_more_is_not_sealed(
    spark_connect: str, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path, settings: dict[str, Any]
) -> None:
    landing = Landing(sessions_of(**settings), spark_connect, ledger_dsn, tmp_path, upserting())
    landing.connections["w"] = warehouse_dsn
    landing.land([("a", 1, 0, 0)])
    with pytest.raises(InvalidPipeline, match='say deleted="absorbed"'):
        landing.run("first")


def test_sessions_that_make_no_sense_are_refused_before_anything_runs(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, ...]] = [
        ({"gap": timedelta(0)}, "gap 0:00:00 must be above 0"),
        ({"gap": timedelta.max}, "gap, out_of_order and lateness can't be above 4000 years"),
        ({"lateness": -MINUTE}, "can't be below 0"),
        ({"schema": "key STRING, absorbed BIGINT", "aggregates": {"absorbed": "count(*)"}}, "reserved for windows"),
    ]
    for settings, found in cases:
        with subtests.test(settings=settings), pytest.raises(InvalidPipeline, match=found):
            sessions_of(**settings)
