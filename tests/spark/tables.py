"""A pipeline of a table and a counter, importable by a driver of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lockstep.pipeline import Pipeline
from lockstep.sources import PostgresTableSource, SequenceSource
from tests.spark.pipelines import Nowhere

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def untouched(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    return dict(inputs)


pipeline = Pipeline(
    name="tables",
    sources={
        "events": PostgresTableSource("public.events", connection="table_shop", order_by="xid"),
        "numbers": SequenceSource(50),
    },
    transform=untouched,
    sinks=[Nowhere("nowhere", taken=("events", "numbers"))],
)
