"""A DataFrame whose partitions are read by a function on Spark's Python workers, one task each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from lockstep import errors

Read = Callable[[Any], Iterator[pa.RecordBatch]]


def frame_of(spark: SparkSession, schema: pa.Schema, partitions: Sequence[Any], read: Read) -> DataFrame:
    """The rows that `read` gives for each of `partitions`, batches of `schema`.

    `read` travels by value, with its module if that is one of Lockstep's: a worker needs only what it imports. What it
    holds, a login say, is in memory on its way: the pickled function goes over Spark's own connections, into no plan's
    text, no log and no page.
    """
    ship(read)
    parts = list(partitions)

    def rows(indices: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in indices:
            for index in batch.column(0).to_pylist():
                yield from read(parts[index])

    types = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    if not parts:
        return spark.createDataFrame([], types)
    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(cast(Any, rows), types)


def ship(found: object) -> None:
    """Have Spark pickle what stands in `found`'s module by value, if that is a module of Lockstep, and its errors."""
    module = sys.modules[found.__module__]
    if module.__name__.startswith("lockstep."):
        for ours in (module, errors):
            cloudpickle.register_pickle_by_value(ours)  # type: ignore[no-untyped-call]
