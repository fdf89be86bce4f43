"""Small pipelines for the tests, importable by any driver, with a sink that nothing is written to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockstep import enrich
from lockstep.pipeline import Pipeline
from lockstep.sinks.base import Sink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import SinkContext
from lockstep.sources import FileSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA = "id BIGINT, name STRING, at TIMESTAMP"
OFFSET = 1000


@dataclass(frozen=True)
class Nowhere(Sink):
    """Names the outputs that it would take."""

    name: str
    taken: tuple[str, ...] = ("rows",)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.taken

    def open(self, context: SinkContext) -> OpenSink:
        raise NotImplementedError


Transform = Callable[[Mapping[str, "DataFrame"]], Mapping[str, "DataFrame"]]


def unchanged(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    return {"rows": inputs["input"]}


def pipeline_of(source: FileSource, transform: Transform = unchanged, outputs: tuple[str, ...] = ("rows",)) -> Pipeline:
    return Pipeline("test", {"input": source}, transform, [Nowhere("nowhere", outputs)])


def plus_offset(value: int) -> int:
    """Uses a module's global and its sibling: both must reach the executors."""
    return _add(value, OFFSET)


def _add(left: int, right: int) -> int:
    return left + right


def with_udf(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    from pyspark.sql import functions as F

    shifted = F.udf(plus_offset, "bigint")
    total = inputs["input"].groupBy().agg(F.sum("id").alias("total"))
    return {"rows": inputs["input"].withColumn("id", shifted("id")), "total": total}


def _named(value: Any) -> str:
    return f"<{value}>"


def with_arrow_udf(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"name": [_named(value.as_py()) for value in batch.column("name")]})

    return {"rows": inputs["input"].mapInArrow(mapped, "name string")}


def length_of(key: dict[str, Any]) -> dict[str, Any]:
    return {"length": len(key["name"])}


def with_lookup(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    from pyspark.sql import functions as F

    rows = enrich(with_udf(inputs)["rows"], length_of, schema="length INT", keys=["name"])
    return {"rows": rows, "total": rows.groupBy().agg(F.sum("id").alias("total"))}


def slowly(seconds: float) -> Transform:
    """Takes so long for a row."""

    def transform(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        from pyspark.sql import functions as F

        def wait(value: int) -> int:
            time.sleep(seconds)
            return value

        return {"rows": inputs["input"].withColumn("id", F.udf(wait, "bigint")("id"))}

    return transform


#: For another process: lines that came to any file, with what a function in the workers knows of them.
growing_pipeline = pipeline_of(FileSource("landing", grow=True, schema=SCHEMA), with_lookup, ("rows", "total"))


#: For another process: reads what LOCKSTEP_HOME holds.
udf_pipeline = pipeline_of(
    FileSource("landing/{interval_start:%Y-%m-%d}.csv", schema=SCHEMA), with_udf, ("rows", "total")
)
slow_pipeline = pipeline_of(FileSource("landing/{interval_start:%Y-%m-%d}.csv", schema=SCHEMA), slowly(120))
