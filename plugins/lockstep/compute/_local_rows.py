"""Rows that this process holds as Arrow, where a Spark job over so few rows would cost more."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import pyarrow as pa

from lockstep.compute._counting import CountedFrame, ObservedFrame
from lockstep.errors import NotConfigured
from lockstep.spark.session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

VARIABLE = "LOCKSTEP_STATE_ROWS"  #: rows that this process takes at once; 0: none, Spark does everything
_ROWS = 1_000_000
_BYTES = 64 << 20  #: of Arrow, however few rows they are
_MAX_OUTPUTS = 8  #: that this process holds at once, over all epochs that it stages concurrently: half a gigabyte


def most_rows() -> int:
    """Number of rows that this process takes at once. Raises `NotConfigured`."""
    text = os.environ.get(VARIABLE, str(_ROWS))
    if not text.isdecimal():
        raise NotConfigured(f"{VARIABLE}={text!r} must be a whole number of rows; 0 leaves everything to Spark")
    return int(text)


class MemoryBudget:
    """Limits the outputs whose rows this process holds at once, over epochs that are staged concurrently."""

    def __init__(self, max_outputs: int = _MAX_OUTPUTS) -> None:
        self._max_outputs, self._reserved, self._lock = max_outputs, 0, Lock()

    @contextmanager
    def reserve(self, outputs: int) -> Iterator[bool]:
        """Reserve `outputs` until the block ends. Yields false, and reserves nothing, if other epochs use the budget.

        A single epoch gets its reservation in any case."""
        with self._lock:
            fits = self._reserved == 0 or self._reserved + outputs <= self._max_outputs
            self._reserved += outputs if fits else 0
        try:
            yield fits
        finally:
            with self._lock:
                self._reserved -= outputs if fits else 0


MEMORY_BUDGET = MemoryBudget()  #: of this process


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of such rows as Spark collects and writes them; every column is nullable."""
    from lockstep.spark._pyspark import to_arrow_schema

    arrow = to_arrow_schema(schema)
    return pa.schema([pa.field(column.name, column.type) for column in arrow])


def collect_few(frame: DataFrame) -> pa.Table | None:
    """Collect all rows of `frame` by one job. None if they are more than this process takes, or have types unknown to
    Arrow.

    Then no row is kept, and on a Connect server the job is ended.
    """
    if (most := most_rows()) == 0:
        return None
    if is_remote(frame.sparkSession):
        return _streamed(frame, most)
    observed = ObservedFrame.of(frame, rows="count(1)")  # a driver's toArrow has no end
    rows = observed.checkpoint()
    if observed.counts().get("rows", 0) > most:
        return None
    table = rows.toArrow()
    return table.cast(arrow_schema(frame.schema)) if table.nbytes <= _BYTES else None


def collect_plain(frame: DataFrame, max_bytes: int = _BYTES) -> pa.Table | None:
    """As `collect_few`, with the schema that Spark's Parquet file would have; only at Spark Connect.

    None, before a job begins, for columns whose files differ by writer."""
    return _streamed(frame, most_rows(), _arrow_of_plain, max_bytes) if most_rows() > 0 else None


def _arrow_of_plain(schema: StructType) -> pa.Schema | None:
    """The schema of Spark's file, or None: nested columns depend on the writer, and Spark refuses two columns of one
    name."""
    from pyspark.sql import types

    times = (types.DateType, types.TimestampType, types.TimestampNTZType)
    plain = (types.NumericType, types.BooleanType, types.StringType, types.BinaryType, *times)
    if not schema.fields or len({field.name.lower() for field in schema.fields}) < len(schema.fields):
        return None
    if not all(isinstance(column.dataType, plain) for column in schema.fields):
        return None
    columns = zip(arrow_schema(schema), schema.fields, strict=True)
    return pa.schema([column.with_nullable(field.nullable) for column, field in columns])


def _streamed(
    frame: DataFrame,
    max_rows: int,
    arrow_of: Callable[[StructType], pa.Schema | None] = arrow_schema,
    max_bytes: int = _BYTES,
) -> pa.Table | None:
    """Collect up to `max_rows` rows and `max_bytes`; None for more, or where `arrow_of` returns None."""
    client: Any = frame.sparkSession.client
    plan: Any = frame._plan
    schema: pa.Schema | None = None
    parts: list[pa.Table] = []
    stream = client.to_table_as_iterator(plan.to_proto(client), plan.observations)
    try:
        for part in stream:
            if not isinstance(part, pa.Table):
                cast(Any, frame)._cached_schema = part  # saves a request for it
                if (schema := arrow_of(part)) is None:
                    return None
                continue
            parts.append(part)
            if sum(len(batch) for batch in parts) > max_rows or sum(batch.nbytes for batch in parts) > max_bytes:
                return None
    finally:
        stream.close()
    if schema is None and (schema := arrow_of(frame.schema)) is None:
        return None
    return pa.concat_tables([batch.cast(schema) for batch in parts]) if parts else schema.empty_table()


@dataclass(frozen=True)
class LocalFrame(CountedFrame):
    """A DataFrame over rows that this process has. Where `visible` is returned unchanged, this process writes them."""

    table: pa.Table
    count: Callable[[pa.Table], dict[str, int]]
    _written: list[bool] = field(default_factory=list)

    @classmethod
    def over(
        cls,
        spark: SparkSession,
        table: pa.Table,
        hidden: str | None,
        count: Callable[[pa.Table], dict[str, int]],
        **aggregates: str,
    ) -> LocalFrame:
        """A frame over `table`. `aggregates` counts in Spark's SQL what `count` counts on Arrow in this process."""
        counted = CountedFrame.of(frame_of(spark, table), hidden, **aggregates)
        local = cls(**vars(counted), table=table, count=count)
        visible_rows = table.drop_columns([hidden]) if hidden else table
        written = local._written  # a value that refers to its key would keep the frame alive
        _tables[local.visible] = _LocalRows(visible_rows, lambda: written.append(True))
        return local

    def counts(self) -> dict[str, int]:
        return self.count(self.table) if self._written else super().counts()


@dataclass(frozen=True)
class _LocalRows:
    table: pa.Table
    written: Callable[[], None]


_tables: WeakKeyDictionary[DataFrame, _LocalRows] = WeakKeyDictionary()


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame over these rows."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    if not is_remote(spark):
        return spark.createDataFrame(table, schema)
    from lockstep.compute._local_plan import LocalRowsPlan

    return LocalRowsPlan(spark, table, schema).frame()


def remember(frame: DataFrame, table: pa.Table) -> DataFrame:
    """Record that `frame` has exactly these rows, and return it."""
    _tables[frame] = _LocalRows(table, lambda: None)
    return frame


def rows_in(frame: DataFrame) -> pa.Table | None:
    """The rows of a frame that `remember` or `LocalFrame` recorded; None for any other object, even an equal frame."""
    entry = _tables.get(frame)
    return entry.table if entry else None


def note_written(frame: DataFrame) -> None:
    """Record that this process has written the rows of `rows_in`."""
    if entry := _tables.get(frame):
        entry.written()
