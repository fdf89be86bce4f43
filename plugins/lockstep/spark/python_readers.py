"""DataFrames that Python functions read on Spark's workers: partitions, and ranges of streaming data sources.

Spark's own engine asks a streaming reader for an offset, writes it down, has it plan partitions up to there, and reads
them. So does an epoch: `next_range` is the first half, while it is planned and without Spark; `frame_of_range` the
second, as often as it takes, as a batch.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.errors import PySparkNotImplementedError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    CaseInsensitiveDict,
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.datasource_internal import _streamReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from lockstep import errors
from lockstep.errors import InvalidPipeline
from lockstep.spark._pyspark import (
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    default_limit_of,
    end_of_simple,
    is_simple,
)
from lockstep.spark.ddl import struct_of

Read = Callable[[Any], Iterator[pa.RecordBatch]]
Offset = dict[str, Any]
_LIMITS = {"rows": ReadMaxRows, "files": ReadMaxFiles, "bytes": ReadMaxBytes}


def frame_of(spark: SparkSession, schema: pa.Schema, partitions: Sequence[Any], read: Read) -> DataFrame:
    """The rows that `read` returns for each of `partitions`, as batches of `schema`.

    `read` travels by value, with its module if that is one of Lockstep's: a worker needs only what it imports. What it
    holds, such as a login, stays in memory: the pickled function goes over Spark's own connections, and into no plan's
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


def ship(exported: object) -> None:
    """Have Spark pickle `exported`'s module and `lockstep.errors` by value, if it is a module of Lockstep."""
    module = sys.modules[exported.__module__]
    if module.__name__.startswith("lockstep."):
        for ours in (module, errors):
            cloudpickle.register_pickle_by_value(ours)  # type: ignore[no-untyped-call]


def load(reference: str) -> type[DataSource]:
    """The data source class `module:Class`. Raises `InvalidPipeline`."""
    module, _, name = reference.partition(":")
    try:
        cls = getattr(importlib.import_module(module), name) if module and name else None
    except (ImportError, AttributeError) as error:
        raise InvalidPipeline(f"data source {reference!r} can't be imported: {error}") from error
    if not (isinstance(cls, type) and issubclass(cls, DataSource)):
        raise InvalidPipeline(f"{reference!r} is no subclass of pyspark.sql.datasource.DataSource")
    return cls


# --- planning --------------------------------------------------------------------------------------------------------


def next_range(
    reference: str, options: Mapping[str, str], schema: str | None, start: Offset | None, limit: tuple[str, int] | None
) -> tuple[Offset, Offset]:
    """Start and end of the next range: the start is `start`, or the reader's initial offset.

    `limit`: ("rows" | "files" | "bytes", how many), for a reader that takes limits; None: the reader's own default.
    Raises `InvalidPipeline`, and the reader's errors.
    """
    source = load(reference)(cast(Any, CaseInsensitiveDict(options)))
    reader = None
    try:
        declared = schema or source.schema()
        reader = _streamReader(source, declared if isinstance(declared, StructType) else struct_of(declared))
        begin = start if start is not None else _json(reference, reader.initialOffset())
        return begin, _json(reference, _latest(reference, reader, begin, limit))
    except PySparkNotImplementedError as error:
        raise InvalidPipeline(f"data source {reference} can't be read as a stream: {error}") from error
    finally:
        if reader is not None:
            reader.stop()


def _latest(reference: str, reader: DataSourceStreamReader, start: Offset, limit: tuple[str, int] | None) -> Offset:
    simple = is_simple(reader)
    takes_limits = not simple and len(inspect.signature(reader.latestOffset).parameters) > 0
    if limit is not None and not takes_limits:
        raise InvalidPipeline(
            f"data source {reference} takes no read limit: it needs a streamReader() whose latestOffset has the "
            "parameters start and limit; leave max_…_per_epoch away, or limit it by its own options"
        )
    if simple:
        return end_of_simple(reader, start)
    if not takes_limits:
        return cast(Offset, cast(Any, reader).latestOffset())
    return reader.latestOffset(start, _LIMITS[limit[0]](limit[1]) if limit else default_limit_of(reader))


def _json(reference: str, offset: object) -> Offset:
    """The offset as the reader gets it back: converted through JSON, as in Spark's own log."""
    if not isinstance(offset, dict):
        raise InvalidPipeline(f"data source {reference} gave the offset {offset!r}; an offset is a dict")
    return cast(Offset, json.loads(json.dumps(offset)))


# --- reading ---------------------------------------------------------------------------------------------------------


def frame_of_range(
    spark: SparkSession,
    reference: str,
    options: Mapping[str, str],
    schema: str | None,
    start: Offset,
    end: Offset,
    secrets: Sequence[str],
) -> DataFrame:
    """The rows between two offsets, in the partitions that the reader plans now. No error contains one of `secrets`."""
    source = load(reference)
    ship(source)
    ship(RangeReader)
    frozen = _frozen(source, dict(options), start, end, secrets)
    spark.dataSource.register(frozen)
    reader = spark.read.format(frozen.name())
    return (reader.schema(schema) if schema else reader).load()


def without(secrets: Sequence[str], text: str) -> str:
    """`text` with a mark in the place of each secret."""
    for secret in secrets:
        text = text.replace(secret, "***") if secret else text
    return text


@contextmanager
def discreet(secrets: Sequence[str]) -> Iterator[None]:
    """Replace any error by a `RuntimeError` with none of `secrets` in its text: Spark writes it to logs."""
    try:
        yield
    except Exception as error:
        if not secrets:
            raise
        raise RuntimeError(without(secrets, f"{type(error).__name__}: {error}")) from None


def _frozen(
    source: type[DataSource], options: dict[str, str], start: Offset, end: Offset, secrets: Sequence[str] = ()
) -> type[DataSource]:
    """A batch source of one range. The options are in the class, which is pickled, and in no plan's text."""
    called = f"lockstep_{source.name()}_{uuid.uuid4().hex}"

    class BatchRange(DataSource):
        @classmethod
        def name(cls) -> str:
            return called

        def schema(self) -> StructType | str:
            with discreet(secrets):
                return source(cast(Any, CaseInsensitiveDict(options))).schema()

        def reader(self, schema: StructType) -> DataSourceReader:
            with discreet(secrets):
                stream = _streamReader(source(cast(Any, CaseInsensitiveDict(options))), schema)
            return RangeReader(stream, start, end, secrets)

    return BatchRange


class RangeReader(DataSourceReader):
    """The range of a streaming reader as a batch. The reader's errors are raised without `secrets`."""

    def __init__(self, reader: DataSourceStreamReader, start: Offset, end: Offset, secrets: Sequence[str] = ()) -> None:
        self._reader, self._start, self._end, self._secrets = reader, start, end, secrets

    def partitions(self) -> list[InputPartition]:
        """The streaming reader's partitions; one without rows for an empty range, as Spark needs one."""
        with discreet(self._secrets):
            planned = [] if self._start == self._end else list(self._reader.partitions(self._start, self._end))
        return planned or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if type(partition) is InputPartition and partition.value is None:
            return
        with discreet(self._secrets):
            yield from self._reader.read(partition)
