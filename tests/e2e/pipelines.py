"""Small pipelines for a running scheduler: a CSV file a day goes into a table and a folder of Parquet files, or into a
topic.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lockstep import Pipeline, crash
from lockstep.audits import Audit, row_count
from lockstep.connections.names import absolute
from lockstep.crash import CrashPoint
from lockstep.pipeline import Transform
from lockstep.sinks import FileSink, KafkaSink, PostgresSink
from lockstep.sources import FileSource

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

SCHEMA = "id INT, day STRING, amount DOUBLE"
DAILY = "{interval_start:%Y-%m-%d}.csv"
GATE_SECONDS = 90


def unchanged(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    return {"orders": inputs["orders"]}


def mistaken_column(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    return {"orders": inputs["orders"].where("amuont > 0")}


def gated(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    """Hold the Spark job up while the file gates/<day> exists; say that it got there."""
    orders = inputs["orders"]
    return {"orders": orders.mapInArrow(_hold_at(absolute("gates")), orders.schema)}


def _hold_at(gates: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def recovery_grace(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        deadline = time.monotonic() + GATE_SECONDS
        for batch in batches:
            for day in batch.column("day").unique().to_pylist():
                gate = Path(gates, day)
                if gate.exists():
                    gate.with_suffix(".reached").touch()
                while gate.exists() and time.monotonic() < deadline:
                    time.sleep(0.02)
            yield batch

    return recovery_grace


GATES = {
    CrashPoint.STAGE_BEFORE_SEAL: "sealer",
    CrashPoint.PUBLISH_AFTER_WRITE: "publisher",
}


def hold_publisher(point: CrashPoint) -> None:
    """Hold up who is the first to have rows in an open transaction while the file gates/publisher exists, or who is
    about to seal while gates/sealer does. Say which process that is."""
    gate = Path(absolute("gates"), GATES.get(point, ""))
    if point not in GATES or not gate.exists():
        return
    try:
        held = gate.rename(gate.with_suffix(".held"))
    except FileNotFoundError:  # somebody else was the first
        return
    held.write_text(str(os.getpid()))
    deadline = time.monotonic() + GATE_SECONDS
    while held.exists() and time.monotonic() < deadline:
        time.sleep(0.02)


crash.observe(hold_publisher)


def pipeline_of(
    name: str,
    transform: Transform = unchanged,
    *,
    files: str = DAILY,
    audits: Sequence[Audit] = (),
    keep_wal: int | None = None,
) -> Pipeline:
    return Pipeline(
        name=name,
        sources={"orders": FileSource(f"landing/{name}/{files}", format="csv", schema=SCHEMA)},
        transform=transform,
        sinks=[
            PostgresSink("warehouse", tables={"orders": f"public.{name}"}, connection="warehouse", create=True),
            FileSink("archive", output="orders", path=f"out/{name}", format="parquet"),
        ],
        audits=audits,
        keep_wal=keep_wal,
    )


orders = pipeline_of("orders")
held = pipeline_of("held", gated)
refused = pipeline_of("refused")
scheduled = pipeline_of("scheduled")
mistaken = pipeline_of("mistaken", mistaken_column)
mistaken_submitted = pipeline_of("mistaken_submitted", mistaken_column)
watched = pipeline_of("watched", files="*.csv")
packed = pipeline_of("packed", gated)
left = pipeline_of("left")
audited = pipeline_of("audited", audits=[row_count("orders", at_least=10)], keep_wal=10)
grouped = pipeline_of("grouped", gated)
beside = pipeline_of("beside")
mapped = [pipeline_of("mapped_a"), pipeline_of("mapped_b", gated), pipeline_of("mapped_c")]
sharded = Pipeline(
    name="sharded",
    sources={"orders": FileSource(f"landing/sharded/{DAILY}", format="csv", schema=SCHEMA)},
    transform=unchanged,
    sinks=[KafkaSink("events", output="orders", topic="sharded", connection="kafka", shards=3)],
)
