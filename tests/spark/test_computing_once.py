"""What is looked up in a state is computed by one job, which is all that reads the input; else the input is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from lockstep import KeyedState, Pipeline, files, run_epoch
from lockstep.compute import _reading_once, stage
from lockstep.compute._inputs import SourceInput
from lockstep.compute._local_rows import VARIABLE, collect_plain
from lockstep.errors import StageFailed
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger
from lockstep.sinks import FileSink
from lockstep.sources import SequenceSource
from lockstep.wal.staging import Staging

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


ROWS, KEYS = 1000, 7
#: every type that is handed out and back, with nulls
STATE = KeyedState(
    "k BIGINT, n BIGINT, total DECIMAL(20,2), last TIMESTAMP, local TIMESTAMP_NTZ, day DATE, name STRING, raw BINARY, "
    "part DOUBLE, odd BOOLEAN",
    key=["k"],
    buckets=4,
)
_AGGREGATES = (
    "count(*) AS n",
    "CAST(sum(value) AS DECIMAL(20,2)) AS total",
    "max(timestamp_seconds(value - 5)) AS last",
    "max(CAST(timestamp_seconds(value - 5) AS TIMESTAMP_NTZ)) AS local",
    "max(date_from_unix_date(CAST(value AS INT))) AS day",
    "max(CASE WHEN value % 7 <> 1 THEN concat('ä', value) END) AS name",
    "max(CASE WHEN value % 7 <> 2 THEN CAST(concat('b', value) AS BINARY) END) AS raw",
    "max(CASE WHEN value % 7 = 3 THEN double('NaN') ELSE value / 4 END) AS part",
    "max(value % 2 = 1) AS odd",
)
Frames = Mapping[str, "DataFrame"]


def _new(inputs: Frames) -> DataFrame:
    return inputs["numbers"].groupBy((F.col("value") % KEYS).alias("k")).agg(*map(F.expr, _AGGREGATES))


def _both(old: DataFrame, new: DataFrame) -> DataFrame:
    others = ("last", "local", "day", "name", "raw", "part", "odd")
    total = F.sum("total").cast("DECIMAL(20,2)").alias("total")
    return old.unionByName(new).groupBy("k").agg(F.sum("n").alias("n"), total, *(F.max(c).alias(c) for c in others))


def added_up(inputs: Frames, state: Any) -> Any:
    new = _new(inputs)
    both = _both(state["totals"].of(new), new)
    return {"totals": both}, {"totals": both}


def used_before_and_changed(inputs: Frames, state: Any) -> Any:
    """What was made of the frame before it is looked up gets the same rows."""
    new = _new(inputs)
    few = new.where("k < 3")
    old = state["totals"].of(new.withColumn("more", F.lit(1)))
    return {"totals": few.unionByName(old.limit(0))}, {"totals": _both(old, few)}


def joined(inputs: Frames, state: Any) -> Any:
    new = _new(inputs)
    old = state["totals"].of(new).withColumnRenamed("n", "before")
    met = new.join(old, new["k"] == old["k"], "left").select(new["*"], "before")
    return {"totals": met.where("k IS NOT NULL")}, {"totals": met.drop("before")}


def deleted(inputs: Frames, state: Any) -> Any:
    new = _new(inputs)
    both = _both(state["totals"].of(new), new)
    return {"totals": both}, {"totals": both.withColumn("_deleted", F.expr("k = 2"))}


def with_rows_that_are_shown(inputs: Frames, state: Any) -> Any:
    new = _new(inputs)
    shown = _both(state["totals"].of(new), new)
    few = inputs["numbers"].where("value % 100 = 0").selectExpr("value AS k")
    return {"totals": shown.join(few, "k")}, {"totals": shown}


def nested(inputs: Frames, state: Any) -> Any:
    """Lists aren't handed out and back."""
    new = _new(inputs).withColumn("list", F.array("k"))
    both = _both(state["totals"].of(new), new.drop("list"))
    return {"totals": both}, {"totals": both}


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which inputs were kept."""
    materialized: list[str] = []
    real = SourceInput.materialize

    def noting(self: SourceInput) -> SourceInput:
        materialized.append(self.name)
        return real(self)

    monkeypatch.setattr(SourceInput, "materialize", noting)
    monkeypatch.setattr(stage, "_keeping_inputs", set())
    return materialized


@pytest.mark.sample(2)
@pytest.mark.parametrize("transform", [added_up, used_before_and_changed, joined, deleted])
def test_an_input_that_is_read_once_is_not_kept_and_all_comes_out_alike(
    session: SparkSession,
    ledger_dsn: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kept: list[str],
    transform: Callable[..., Any],
) -> None:
    found, kept_each = [], []
    for rows in ("200000", "0"):
        monkeypatch.setenv(VARIABLE, rows)
        out = tmp_path / rows
        sinks = [FileSink(f"totals-{rows}", output="totals", path=str(out))]
        sources = {"numbers": SequenceSource(ROWS)}
        pipeline = Pipeline(f"computed-{rows}", sources, transform, sinks, state={"totals": STATE}, version="1")
        staging = str(tmp_path / "staging")
        for _ in range(2):
            run_epoch(pipeline, spark=session, ledger=ledger_dsn, staging=staging, connections={})
        kept_each.append(len(kept))
        tables = [pq.ParquetFile(path).read() for path in files(str(out))]
        state = _state(pipeline, ledger_dsn, staging, 2)
        found.append(([_told(table) for table in tables], {str(table.schema) for table in tables}, state))
    assert sorted(found[0][0]) == sorted(found[1][0]) and any(found[0][0])
    assert found[0][1:] == found[1][1:]
    assert kept_each == [0, 2]


def test_an_input_that_is_read_twice_is_kept(
    session: SparkSession, ledger_dsn: str, tmp_path: Path, kept: list[str], subtests: pytest.Subtests
) -> None:
    for transform in (with_rows_that_are_shown, nested):
        with subtests.test(transform=transform.__name__):
            _run(session, ledger_dsn, tmp_path, transform, transform.__name__)
            assert kept == ["numbers"]
            assert any(_told(pq.ParquetFile(path).read()) for path in files(str(tmp_path / transform.__name__)))
        kept.clear()


def _state(pipeline: Pipeline, ledger: str, staging: str, epoch: int) -> list[str]:
    runtime = runtime_for(pipeline, Ledger(ledger), Staging(staging), {})
    found = runtime.ledger.epoch(pipeline.name, epoch)
    sealed = runtime.staging.manifest(found.wal or "", found.manifest_hash or "").state
    assert sealed is not None
    paths = [runtime.states().path_of("totals", file) for file in sealed.versions["totals"].files]
    return sorted(row for path in paths for row in _told(pq.ParquetFile(f"{staging}/{path}").read()))


def _told(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_rows_that_get_lost_on_the_way_stop_the_epoch(
    session: SparkSession, ledger_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: list[str]
) -> None:
    def losing(frame: DataFrame, most: int) -> pa.Table | None:
        found = collect_plain(frame, most)
        assert found is not None
        return found.slice(1)

    monkeypatch.setattr(_reading_once, "collect_plain", losing)
    with pytest.raises(StageFailed, match="counted 7 rows that are looked up in the state and returned 6"):
        _run(session, ledger_dsn, tmp_path, added_up)


def _run(
    session: SparkSession, ledger: str, folder: Path, transform: Callable[..., Any], name: str = "computed"
) -> None:
    sinks = [FileSink("totals", output="totals", path=str(folder / name))]
    pipeline = Pipeline(name, {"numbers": SequenceSource(ROWS)}, transform, sinks, state={"totals": STATE})
    run_epoch(pipeline, spark=session, ledger=ledger, staging=str(folder / "staging"), connections={})
