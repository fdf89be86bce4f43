"""Outputs as a table adopts them: files that queries read many times, few of them, with the epoch in every row."""

from __future__ import annotations

import re
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType

from lockstep.compute._splitting import by_partition
from lockstep.definition.ddl import quote_name
from lockstep.errors import InvalidPipeline
from lockstep.wal.table_staging import TableStaging, with_field_ids

FILE_BYTES = 128 << 20  #: of what is read, by Spark's own estimate: from twice as much on there are two files
_FILES = 10_000  #: of an output; an estimate that asks for more knows nothing
_ESTIMATE = re.compile(r"sizeInBytes=([0-9.]+(?:E\+?[0-9]+)?) ([KMGTPE]i)?B")
_UNITS = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
OPTIONS = {
    "compression": "zstd",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


def adoptable(frame: DataFrame, output: str, home: TableStaging, epoch: int) -> DataFrame:
    """The rows with their epoch's column, in no more partitions than there should be files, each with rows of one
    partition of the table. Raises `InvalidPipeline`.

    Of a table without partitions rows aren't moved: an epoch that is large by its estimate is written as it comes.
    """
    require_no_epoch_column(frame.columns, output, home)
    marked = frame.withColumn(home.epoch_column, F.lit(epoch).cast("long"))
    size = _estimated_bytes(frame)
    files = max(1, size // FILE_BYTES) if size is not None else _FILES
    if home.partition_by:
        return _numbered(by_partition(marked, output, home.partition_by, files if files < _FILES else None), home)
    return _numbered(marked.coalesce(files) if files < _FILES else marked, home)


def _numbered(frame: DataFrame, home: TableStaging) -> DataFrame:
    """With the field ids that the files are to have."""
    ids, fields = home.ids_of(frame.columns), frame.schema.fields
    if not ids or any(isinstance(field.dataType, ArrayType | MapType | StructType) for field in fields):
        return frame
    metadata = {field.name: {**field.metadata, "parquet.field.id": ids[field.name]} for field in fields}
    return frame.select(*(F.col(quote_name(name)).alias(name, metadata=told) for name, told in metadata.items()))


def with_epoch(rows: pa.Table, output: str, home: TableStaging, epoch: int) -> pa.Table:
    """The same of rows that this process holds."""
    require_no_epoch_column(rows.column_names, output, home)
    marked = rows.append_column(home.epoch_column, pa.array([epoch], pa.int64()).take(pa.repeat(0, rows.num_rows)))
    return marked.cast(with_field_ids(marked.schema, home.ids_of(marked.column_names)))


def require_no_epoch_column(columns: list[str], output: str, home: TableStaging) -> None:
    """Raises `InvalidPipeline` for an output that has a column by that name."""
    if home.epoch_column.lower() in map(str.lower, columns):
        raise InvalidPipeline(
            f"output {output} has a column {home.epoch_column}, which its table keeps for the epoch's number: drop or "
            "rename it in the transform, or give the sink another epoch_column"
        )


def _estimated_bytes(frame: DataFrame) -> int | None:
    """What Spark's optimizer believes that `frame` takes; None if it doesn't say."""
    told = str(cast(Any, frame)._explain_string(mode="cost"))
    found = _ESTIMATE.search(told.partition("Optimized Logical Plan")[2])
    return int(float(found[1]) * 2 ** _UNITS[found[2] or ""]) if found else None
