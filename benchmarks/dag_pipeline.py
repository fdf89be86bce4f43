"""The small epoch of the DAG benchmark: a thousand rows into a table and a Parquet file."""

from __future__ import annotations

from lockstep import Pipeline
from lockstep.sinks import FileSink, PostgresSink
from lockstep.sources import FileSource

pipeline = Pipeline(
    name="bench_epoch",
    sources={"rows": FileSource("landing/{interval_start:%Y-%m-%d}.csv", format="csv", schema="id INT, label STRING")},
    transform=lambda inputs: {"rows": inputs["rows"]},
    sinks=[
        PostgresSink("warehouse", tables={"rows": "public.bench_dag"}, connection="warehouse", create=True),
        FileSink("archive", output="rows", path="out/bench_dag", format="parquet"),
    ],
    version="bench",
)
