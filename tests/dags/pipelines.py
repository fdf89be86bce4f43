"""Two small pipelines, one of intervals and one of a cursor, for tests that only look at their DAGs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from lockstep.epoch import Interval, KeyedBy, Position
from lockstep.pipeline import Pipeline
from lockstep.sinks.files import FileSink
from lockstep.sinks.kafka import KafkaSink
from lockstep.sources import OpenSource, Source, SourceContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Days(Source):
    """Whatever lies in an interval."""

    identity = KeyedBy.INTERVAL

    def open(self, context: SourceContext) -> OpenSource:
        return OpenDays()


class OpenDays(OpenSource):
    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        return str(interval)

    def read(self, spark: SparkSession, start: Position | None, end: Position) -> DataFrame:
        return spark.createDataFrame([(str(end),)], "day string")


class Numbers(Days):
    """Whatever came since the last epoch."""

    identity = KeyedBy.CURSOR


def unchanged(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    return inputs


def pipeline_of(source: Source, *, recovery_grace: timedelta = timedelta(hours=2)) -> Pipeline:
    return Pipeline(
        name="orders",
        sources={"orders": source},
        transform=unchanged,
        sinks=[FileSink(name, output="orders", path=f"out/{name}", format="parquet") for name in ("raw", "copy")],
        max_in_flight=3,
        recovery_grace=recovery_grace,
    )


ORDERS = pipeline_of(Days())
NUMBERS = replace(pipeline_of(Numbers()), name="numbers")
SHARDED = Pipeline(
    name="sharded",
    sources={"orders": Days()},
    transform=unchanged,
    sinks=[
        FileSink("raw", output="orders", path="out/raw"),
        KafkaSink("totals", output="orders", topic="totals", connection="kafka", shards=3),
    ],
)
