"""Outputs as files that a table adopts: few, each with rows of one partition of the table, with the epoch in every row.

The rows are computed once and kept, then counted by partition; each partition gets as many of Spark's as it should have
files. An epoch of one partition isn't moved, nor one of so many that its transform has to arrange them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StructType,
    TimestampType,
)

from lockstep.compute._counting import ObservedFrame
from lockstep.definition.ddl import quote_name
from lockstep.errors import InvalidPipeline
from lockstep.wal.table_staging import TableStaging, with_field_ids

MAX_PARTITIONS = 1000  #: of one epoch, each a file at least
_TIME = re.compile(r"(year|month|day|hour)\((.+)\)")
_KEY, _FIRST, _FILES = "__lockstep_partition", "__lockstep_first", "__lockstep_files"
_ROWS = 5_000_000  #: of a file, where their size is unknown
_MICROS = {"day": 86_400_000_000, "hour": 3_600_000_000}
_UNHASHED = (MapType, ArrayType, StructType)
_log = logging.getLogger(__name__)
FILE_BYTES = 128 << 20  #: of what is read, by Spark's own estimate: from twice as much on there are two files
_MAX_FILES = 10_000  #: of an output; an estimate of more is taken as unknown
_ESTIMATE = re.compile(r"sizeInBytes=([0-9.]+(?:E\+?[0-9]+)?) ([KMGTPE]i)?B")
_UNITS = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
TABLE_FILE_OPTIONS = {
    "compression": "zstd",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


def by_partition(rows: DataFrame, output: str, partition_by: Sequence[str], files: int | None) -> DataFrame:
    """Repartition `rows` so that each of Spark's partitions becomes a file with rows of one partition of the table.

    `files`: how many files all rows should fill; None: unknown. `partition_by`: as in `TableStaging`. Rows of more than
    `MAX_PARTITIONS` partitions aren't moved; the sink then refuses a file with several. Raises `InvalidPipeline` for a
    missing column.
    """
    types = {field.name: field.dataType for field in rows.schema}
    key = F.to_json(F.array(*(_value(text, types, output) for text in partition_by)))
    checkpoint = ObservedFrame.of(rows.withColumn(_KEY, key), rows="count(1)").checkpoint()
    counts = {row[_KEY]: row["count"] for row in checkpoint.groupBy(_KEY).count().limit(MAX_PARTITIONS + 1).collect()}
    if len(counts) > MAX_PARTITIONS:
        _log.warning(
            "output %s: an epoch has rows of more than %s partitions by %s: its files are left as the transform makes "
            "them, and taken if each has rows of one; otherwise have the transform repartition by it, plan shorter "
            "epochs, or partition the table by less",
            output,
            MAX_PARTITIONS,
            ", ".join(partition_by),
        )
        return checkpoint.drop(_KEY)
    total_files = files if files is not None else sum(counts.values()) // _ROWS
    if len(counts) < 2:
        return checkpoint.drop(_KEY).coalesce(max(1, total_files))
    return _moved(checkpoint, types, counts, total_files)


def _moved(rows: DataFrame, types: Mapping[str, DataType], counts: Mapping[str, int], files: int) -> DataFrame:
    total, first, places = sum(counts.values()), 0, []
    for key in sorted(counts):
        own = max(1, files * counts[key] // total)
        places.append((key, first, own))
        first += own
    ranges = rows.sparkSession.createDataFrame(places, f"{_KEY} STRING, {_FIRST} INT, {_FILES} INT")
    spread = F.xxhash64(*(F.col(quote_name(name)) for name, type in types.items() if not isinstance(type, _UNHASHED)))
    place = F.coalesce(F.col(_FIRST) + F.pmod(spread, F.col(_FILES)), F.lit(0)).cast("int")
    placed = rows.join(F.broadcast(ranges), _KEY, "left").repartitionById(first, place)
    return placed.select(*(F.col(quote_name(name)) for name in types))


def _value(text: str, types: Mapping[str, DataType], output: str) -> Column:
    """A text, or null, that differs for each value of a partition field."""
    time, name = match.groups() if (match := _TIME.fullmatch(text)) else ("", text)
    if name not in types:
        raise InvalidPipeline(
            f"output {output} has no column {name}, by which its table is partitioned: add it in the transform"
        )
    column, type = F.col(quote_name(name)), types[name]
    if not time:
        value = F.unix_micros(column) if isinstance(type, TimestampType) else column
        return F.hex(value) if isinstance(type, BinaryType) else value.cast("string")
    if time in _MICROS and isinstance(type, TimestampType):
        return _floor(column, _MICROS[time]).cast("string")
    if time == "hour":
        return F.substring_index(
            column.cast("string"), ":", 1
        )  # functions that truncate timestamps use the session's zone
    day = column.cast("date")
    if isinstance(type, TimestampType):  # as Iceberg defines it: the day in UTC
        days = F.round(_floor(column, _MICROS["day"]) / _MICROS["day"]).cast("int")
        day = F.date_add(F.lit(date(1970, 1, 1)), days)
    return {"year": F.year(day), "month": F.trunc(day, "MM"), "day": day}[time].cast("string")


def _floor(instant: Column, micros: int) -> Column:
    micros_of_instant = F.unix_micros(instant)
    return micros_of_instant - F.pmod(micros_of_instant, F.lit(micros))


def adoptable(frame: DataFrame, output: str, staging: TableStaging, epoch: int) -> DataFrame:
    """Add the epoch's column to the rows, in no more Spark partitions than there should be files, each with rows of one
    partition of the table. Raises `InvalidPipeline`.

    For a table without partitions rows aren't moved: a large epoch, by its estimate, is written as it is.
    """
    require_no_epoch_column(frame.columns, output, staging)
    marked = frame.withColumn(staging.epoch_column, F.lit(epoch).cast("long"))
    size = _estimated_bytes(frame)
    files = max(1, size // FILE_BYTES) if size is not None else _MAX_FILES
    if staging.partition_by:
        return _numbered(
            by_partition(marked, output, staging.partition_by, files if files < _MAX_FILES else None), staging
        )
    return _numbered(marked.coalesce(files) if files < _MAX_FILES else marked, staging)


def _numbered(frame: DataFrame, staging: TableStaging) -> DataFrame:
    """Add the field ids of the table to the frame's columns."""
    ids, fields = staging.ids_of(frame.columns), frame.schema.fields
    if not ids or any(isinstance(field.dataType, ArrayType | MapType | StructType) for field in fields):
        return frame
    metadata = {field.name: {**field.metadata, "parquet.field.id": ids[field.name]} for field in fields}
    return frame.select(*(F.col(quote_name(name)).alias(name, metadata=values) for name, values in metadata.items()))


def with_epoch(rows: pa.Table, output: str, staging: TableStaging, epoch: int) -> pa.Table:
    """Add the epoch's column and the table's field ids to rows in this process."""
    require_no_epoch_column(rows.column_names, output, staging)
    marked = rows.append_column(staging.epoch_column, pa.array([epoch], pa.int64()).take(pa.repeat(0, rows.num_rows)))
    return marked.cast(with_field_ids(marked.schema, staging.ids_of(marked.column_names)))


def require_no_epoch_column(columns: list[str], output: str, staging: TableStaging) -> None:
    """Raise `InvalidPipeline` if the output has a column with the name of the epoch's column."""
    if staging.epoch_column.lower() in map(str.lower, columns):
        raise InvalidPipeline(
            f"output {output} has a column {staging.epoch_column}, which its table keeps for the epoch's number: drop "
            "or rename it in the transform, or give the sink another epoch_column"
        )


def _estimated_bytes(frame: DataFrame) -> int | None:
    """Size of `frame` as estimated by Spark's optimizer; None if it has no estimate."""
    plan = str(cast(Any, frame)._explain_string(mode="cost"))
    match = _ESTIMATE.search(plan.partition("Optimized Logical Plan")[2])
    return int(float(match[1]) * 2 ** _UNITS[match[2] or ""]) if match else None
