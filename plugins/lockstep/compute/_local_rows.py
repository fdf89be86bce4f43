"""Rows that this process holds as Arrow: few enough that a Spark job over them would cost more than they do."""

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

VARIABLE = "LOCKSTEP_STATE_ROWS"  #: how many rows this process takes at once; 0: none, Spark does everything
_ROWS = 1_000_000
_BYTES = 64 << 20  #: of Arrow, however few rows they are
_OUTPUTS = 8  #: that this process holds at once, for however many epochs it stages side by side: half a gigabyte


def most_rows() -> int:
    """How many rows this process takes at once. Raises `NotConfigured`."""
    text = os.environ.get(VARIABLE, str(_ROWS))
    if not text.isdecimal():
        raise NotConfigured(f"{VARIABLE}={text!r} must be a whole number of rows; 0 leaves everything to Spark")
    return int(text)


class MemoryBudget:
    """Which outputs of epochs that are staged side by side this process holds: of each as much as it takes at once."""

    def __init__(self, most: int = _OUTPUTS) -> None:
        self._most, self._held, self._lock = most, 0, Lock()

    @contextmanager
    def taken(self, outputs: int) -> Iterator[bool]:
        """Until the block is left. False: others have it, and nothing is taken. An epoch alone gets it in any case."""
        with self._lock:
            fits = self._held == 0 or self._held + outputs <= self._most
            self._held += outputs if fits else 0
        try:
            yield fits
        finally:
            with self._lock:
                self._held -= outputs if fits else 0


ROOM = MemoryBudget()  #: the process's


def arrow_schema(schema: StructType) -> pa.Schema:
    """As Spark hands such rows out, and as its files have them; every column may be null."""
    from lockstep.spark._pyspark import to_arrow_schema

    found = to_arrow_schema(schema)
    return pa.schema([pa.field(one.name, one.type) for one in found])


def collect_few(frame: DataFrame) -> pa.Table | None:
    """All rows of `frame`, by one job; None if there are more than this process takes, or their types aren't Arrow's.

    Of more no row is kept; on a Connect server the job is ended.
    """
    if (most := most_rows()) == 0:
        return None
    if is_remote(frame.sparkSession):
        return _streamed(frame, most)
    kept = ObservedFrame.of(frame, rows="count(1)")  # a driver's toArrow has no end
    rows = kept.checkpoint()
    if kept.counts().get("rows", 0) > most:
        return None
    found = rows.toArrow()
    return found.cast(arrow_schema(frame.schema)) if found.nbytes <= _BYTES else None


def collect_plain(frame: DataFrame, most_bytes: int = _BYTES) -> pa.Table | None:
    """As `collect_few`, of an output that Spark's Parquet writer would take as it is, with the schema that its file
    would have; None for another one, before its job has begun. Only at Spark Connect."""
    return _streamed(frame, most_rows(), _arrow_of_plain, most_bytes) if most_rows() > 0 else None


def _arrow_of_plain(schema: StructType) -> pa.Schema | None:
    """None unless files of these columns read alike whoever wrote them; and Spark refuses two columns of one name."""
    from pyspark.sql import types

    times = (types.DateType, types.TimestampType, types.TimestampNTZType)
    plain = (types.NumericType, types.BooleanType, types.StringType, types.BinaryType, *times)
    if not schema.fields or len({field.name.lower() for field in schema.fields}) < len(schema.fields):
        return None
    if not all(isinstance(one.dataType, plain) for one in schema.fields):
        return None
    found = zip(arrow_schema(schema), schema.fields, strict=True)
    return pa.schema([one.with_nullable(field.nullable) for one, field in found])


def _streamed(
    frame: DataFrame,
    most: int,
    arrow_of: Callable[[StructType], pa.Schema | None] = arrow_schema,
    most_bytes: int = _BYTES,
) -> pa.Table | None:
    """`arrow_of` None: Spark has to do it."""
    client: Any = frame.sparkSession.client
    plan: Any = frame._plan
    schema: pa.Schema | None = None
    parts: list[pa.Table] = []
    stream = client.to_table_as_iterator(plan.to_proto(client), plan.observations)
    try:
        for part in stream:
            if not isinstance(part, pa.Table):
                cast(Any, frame)._cached_schema = part  # which else would be asked for
                if (schema := arrow_of(part)) is None:
                    return None
                continue
            parts.append(part)
            if sum(len(one) for one in parts) > most or sum(one.nbytes for one in parts) > most_bytes:
                return None
    finally:
        stream.close()
    if schema is None and (schema := arrow_of(frame.schema)) is None:
        return None
    return pa.concat_tables([one.cast(schema) for one in parts]) if parts else schema.empty_table()


@dataclass(frozen=True)
class LocalFrame(CountedFrame):
    """A DataFrame over rows that this process has; where `shown` is handed back as it is, this process writes them."""

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
        """`aggregates` says in SQL what `count` says of Arrow: who writes the rows is asked."""
        counted = CountedFrame.of(frame_of(spark, table), hidden, **aggregates)
        made = cls(**vars(counted), table=table, count=count)
        kept = table.drop_columns([hidden]) if hidden else table
        written = made._written  # what is kept of a frame must not know it, or it would stay for ever
        _known[made.shown] = _Rows(kept, lambda: written.append(True))
        return made

    def counts(self) -> dict[str, int]:
        return self.count(self.table) if self._written else super().counts()


@dataclass(frozen=True)
class _Rows:
    table: pa.Table
    written: Callable[[], None]


_known: WeakKeyDictionary[DataFrame, _Rows] = WeakKeyDictionary()


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame over these rows, and nothing that knows them again."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    if not is_remote(spark):
        return spark.createDataFrame(table, schema)
    from lockstep.compute._held_plan import HeldRows

    return HeldRows(spark, table, schema).frame()


def remember(frame: DataFrame, table: pa.Table) -> DataFrame:
    """`frame`, known to be these rows."""
    _known[frame] = _Rows(table, lambda: None)
    return frame


def rows_in(frame: DataFrame) -> pa.Table | None:
    """The rows of a frame that this process made of them, exactly this one; None for any other."""
    found = _known.get(frame)
    return found.table if found else None


def note_written(frame: DataFrame) -> None:
    """This process has written what `rows_in` gave."""
    if found := _known.get(frame):
        found.written()
