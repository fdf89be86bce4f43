"""Sealed files as data files of a table: everything that a reader prunes by comes from their own footers.

pyiceberg's `add_files` would put a file without statistics into a partition NULL that no filter finds, and take one
that spans two partitions of some transforms; here both are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.fileformat import DataFileStatistics
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, FloatType

from lockstep.sinks.iceberg._columns import foreign_ids

_TRANSFORMS = (IdentityTransform, YearTransform, MonthTransform, DayTransform, HourTransform, VoidTransform)
_EVERYTHING = {"write.metadata.metrics.default": "full"}
_FLOATS = (FloatType, DoubleType)  #: bounds leave NaN out, which engines hold larger than all: they'd prune its rows


@dataclass(frozen=True)
class Footer:
    """One sealed file as its footer has it."""

    uri: str
    bytes: int
    metadata: pq.FileMetaData


def unkept_partitions(metadata: TableMetadata) -> list[str]:
    """Partition fields whose values can't be told from a file's statistics."""
    schema, spec = metadata.schema(), metadata.spec()
    found = []
    for field in spec.fields:
        source = schema.find_field(field.source_id)
        if not isinstance(field.transform, _TRANSFORMS) or isinstance(source.field_type, _FLOATS):
            found.append(f"{field.transform}({source.name})")
    return found


def faults(metadata: TableMetadata, footer: Footer) -> list[str]:
    """Why readers of the table would not see the file's rows as they are, a sentence each."""
    columns = [footer.metadata.schema.column(n) for n in range(footer.metadata.num_columns)]
    if old := [one.path for one in columns if one.physical_type == "INT96"]:
        return [f"{', '.join(old)} is written as INT96: set spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS"]
    arrow = footer.metadata.schema.to_arrow_schema()
    if foreign := foreign_ids(metadata, arrow):
        return [f"field ids of {', '.join(foreign)} aren't the table's: readers would see other columns, or nulls"]
    try:
        found = _statistics(metadata, footer.metadata, _EVERYTHING)
    except (ValueError, KeyError) as error:
        return [f"its statistics can't be read: {' '.join(str(error).split())}"]
    schema = metadata.schema()
    nulls = [*_nulls_in_required(schema, arrow, found)]
    spread = [fault for field in metadata.spec().fields if (fault := _spread(field, schema, found))]
    return [*nulls, *spread]


def data_file(metadata: TableMetadata, footer: Footer) -> DataFile:
    """The file as a commit adds it; one without `faults`."""
    schema = metadata.schema()
    told = _statistics(metadata, footer.metadata, metadata.properties).to_serialized_dict()
    for bounds in (told["lower_bounds"], told["upper_bounds"]):
        for number in [one for one in bounds if isinstance(schema.find_type(one), _FLOATS)]:
            del bounds[number]
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=footer.uri,
        file_format=FileFormat.PARQUET,
        partition=_partition(metadata, footer.metadata),
        file_size_in_bytes=footer.bytes,
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **told,
    )


def _statistics(metadata: TableMetadata, footer: pq.FileMetaData, properties: Mapping[str, str]) -> DataFileStatistics:
    """Without what only some of the row groups tell: pyiceberg passes over the others, and readers over their rows."""
    schema = metadata.schema()
    ids = parquet_path_to_id_mapping(schema)
    found = data_file_statistics_from_parquet_metadata(footer, compute_statistics_plan(schema, dict(properties)), ids)
    for chunk in _chunks(footer):
        told, number = chunk.statistics if chunk.is_stats_set else None, ids[chunk.path_in_schema]
        if told is None or not told.has_null_count:
            found.null_value_counts.pop(number, None)
            found.column_aggregates.pop(number, None)
        elif not told.has_min_max and told.null_count < chunk.num_values:  # one of its values is over some 4 kB
            found.column_aggregates.pop(number, None)
    return found


def _chunks(footer: pq.FileMetaData) -> Iterator[pq.ColumnChunkMetaData]:
    for group in map(footer.row_group, range(footer.num_row_groups)):
        yield from map(group.column, range(footer.num_columns))


def _partition(metadata: TableMetadata, footer: pq.FileMetaData) -> Record:
    if metadata.spec().is_unpartitioned():
        return Record()
    return _statistics(metadata, footer, _EVERYTHING).partition(metadata.spec(), metadata.schema())


def _nulls_in_required(schema: Schema, arrow: pa.Schema, found: DataFileStatistics) -> Iterator[str]:
    """By counts; of a nested column, of which a footer has none, by the file's own schema."""
    for field in schema.fields:
        if not field.required or field.name not in arrow.names:
            continue
        if not field.field_type.is_primitive:
            if arrow.field(field.name).nullable:
                yield f"column {field.name} is required by the table, and may have nulls: make the output's non-null"
        elif found.null_value_counts.get(field.field_id) != 0:
            yield f"column {field.name} is required by the table, and has nulls, or no statistics"


def _spread(field: PartitionField, schema: Schema, found: DataFileStatistics) -> str | None:
    """Why the file's rows have no one value of a partition field."""
    if isinstance(field.transform, VoidTransform):
        return None
    source, rows = schema.find_field(field.source_id), found.record_count
    nulls = found.null_value_counts.get(field.source_id)
    bounds: Any = found.column_aggregates.get(field.source_id)
    if nulls is None or (nulls < rows and (bounds is None or bounds.current_min is None)):
        return f"it has no statistics of {source.name}, by which the table is partitioned"
    if nulls == rows:
        return None
    if nulls:
        return f"its rows belong to several partitions by {source.name}: {nulls} of {rows} have none"
    try:
        found._partition_value(field, schema)
    except ValueError:
        return (
            f"its rows belong to several partitions by {field.transform}({source.name}), from {bounds.current_min} to "
            f"{bounds.current_max}: have the transform write one file for each (repartition by it)"
        )
    return None
