"""Data files of a table from sealed files: statistics for pruning come from the files' own footers, as sealed.

pyiceberg's `add_files` would put a file without statistics into a NULL partition that no filter finds, and accept a
file that spans two partitions of some transforms; here both are refused.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyiceberg.io.fileformat import DataFileStatistics
from pyiceberg.io.pyarrow import (
    MetricModeTypes,
    StatisticsCollector,
    StatsAggregator,
    _primitive_to_physical,
    compute_statistics_plan,
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
from pyiceberg.types import BinaryType, DoubleType, FloatType, StringType

from lockstep.observability.suggestions import REPLAN
from lockstep.sinks.iceberg._columns import foreign_ids
from lockstep.wal.file_facts import LONGEST, FileFacts

_TRANSFORMS = (IdentityTransform, YearTransform, MonthTransform, DayTransform, HourTransform)
_EVERYTHING = {"write.metadata.metrics.default": "full"}
_FLOATS = (FloatType, DoubleType)


@dataclass(frozen=True)
class SealedDataFile:
    """A sealed file, with the facts of its columns."""

    uri: str
    bytes: int
    facts: FileFacts


def unsupported_partitions(metadata: TableMetadata) -> list[str]:
    """Partition fields that file statistics don't determine."""
    schema, spec = metadata.schema(), metadata.spec()
    unsupported = []
    for field in spec.fields:
        if schema.find_column_name(field.source_id) is None:  # pyiceberg would write unreadable manifests
            unsupported.append(f"{field.name}, of a dropped column")
            continue
        source = schema.find_field(field.source_id)
        if isinstance(field.transform, VoidTransform):  # a removed field in format version 1
            continue
        if not isinstance(field.transform, _TRANSFORMS) or isinstance(source.field_type, _FLOATS):
            unsupported.append(f"{field.transform}({source.name})")
    return unsupported


def all_faults(
    metadata: TableMetadata, files: Iterable[SealedDataFile], remedy: str = ""
) -> Iterator[tuple[SealedDataFile, str]]:
    """Reasons why readers of the table would misread a file's rows, one sentence each. `remedy`: for rows of several
    partitions."""
    plan, suffix = _Plan.of(metadata, _EVERYTHING), f": {remedy}" if remedy else ""
    yield from ((file, fault) for file in files for fault in _faults(metadata, plan, file, suffix))


def faults(metadata: TableMetadata, file: SealedDataFile) -> list[str]:
    """`all_faults` of one file."""
    return [fault for _, fault in all_faults(metadata, [file])]


def _faults(metadata: TableMetadata, plan: _Plan, file: SealedDataFile, remedy: str) -> list[str]:
    if old := file.facts.int96:
        return [f"{', '.join(old)} is written as INT96: set spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS"]
    arrow = file.facts.schema
    if foreign := foreign_ids(metadata, arrow):
        message = f"field ids of {', '.join(foreign)} aren't the table's: readers would see other columns, or nulls"
        return [
            f"{message}; if its columns were changed since the epoch was planned, {REPLAN} it" if remedy else message
        ]
    try:
        statistics = _statistics(plan, file.facts)
    except (ValueError, KeyError) as error:
        return [f"its statistics can't be read: {' '.join(str(error).split())}"]
    schema = metadata.schema()
    nulls = [*_nulls_in_required(schema, arrow, statistics)]
    spread = [
        fault for field in metadata.spec().fields if (fault := _partition_fault(field, schema, statistics, remedy))
    ]
    return [*nulls, *spread]


def data_files(metadata: TableMetadata, files: Iterable[SealedDataFile]) -> Iterator[DataFile]:
    """The files as a commit adds them; they must have no `faults`."""
    recorded, everything = _Plan.of(metadata, metadata.properties), _Plan.of(metadata, _EVERYTHING)
    for file in files:
        yield DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=file.uri,
            file_format=FileFormat.PARQUET,
            partition=_partition(metadata, everything, file.facts),
            file_size_in_bytes=file.bytes,
            sort_order_id=None,
            spec_id=metadata.default_spec_id,
            equality_ids=None,
            key_metadata=None,
            **_statistics(recorded, file.facts).to_serialized_dict(),
        )


def data_file(metadata: TableMetadata, file: SealedDataFile) -> DataFile:
    [entry] = data_files(metadata, [file])
    return entry


@dataclass(frozen=True)
class _Plan:
    """The statistics that a table records. `ids`: field ids by Parquet path."""

    ids: Mapping[str, int]
    collectors: Mapping[int, StatisticsCollector]

    @classmethod
    def of(cls, metadata: TableMetadata, properties: Mapping[str, str]) -> _Plan:
        schema = metadata.schema()
        return cls(parquet_path_to_id_mapping(schema), compute_statistics_plan(schema, dict(properties)))


class _Bounds(StatsAggregator):
    """Fixes pyiceberg's upper bound of a truncated text, which may end in half of a surrogate pair."""

    def max_as_bytes(self) -> bytes | None:
        text, length = self.current_max, self.trunc_length
        if not isinstance(text, str) or length is None or len(text) <= length:
            return super().max_as_bytes()
        text = text[:length].rstrip(chr(sys.maxunicode))
        greater = 0xE000 if text[-1:] == "\ud7ff" else ord(text[-1:] or "\0") + 1
        return f"{text[:-1]}{chr(greater)}".encode() if text else None


def _statistics(plan: _Plan, facts: FileFacts) -> DataFileStatistics:
    """Statistics as pyiceberg computes them from a footer, without those that only some row groups have."""
    result = DataFileStatistics(facts.rows, {}, {}, {}, {}, {}, list(facts.offsets))
    for column in facts.columns:
        number = plan.ids[column.path]
        type, mode = plan.collectors[number].iceberg_type, plan.collectors[number].mode
        result.column_sizes[number] = column.bytes
        if mode.type == MetricModeTypes.NONE:
            continue
        result.value_counts[number] = column.values
        if column.nulls is not None:
            result.null_value_counts[number] = column.nulls
        truncated = column.is_cut and (mode.length is None or mode.length > LONGEST)
        promoted = isinstance(type, StringType) and not isinstance(column.least, str)
        promoted = promoted or (isinstance(type, BinaryType) and not isinstance(column.least, bytes))
        if mode.type == MetricModeTypes.COUNTS or column.least is None or truncated or promoted:
            continue
        bounds = _Bounds(type, _primitive_to_physical(type), mode.length)
        bounds.update_min(column.least)
        bounds.update_max(column.greatest)
        result.column_aggregates[number] = bounds
    return result


def _partition(metadata: TableMetadata, everything: _Plan, facts: FileFacts) -> Record:
    if metadata.spec().is_unpartitioned():
        return Record()
    statistics, schema = _statistics(everything, facts), metadata.schema()
    values = (
        None if isinstance(field.transform, VoidTransform) else statistics._partition_value(field, schema)
        for field in metadata.spec().fields
    )
    return Record(*values)


def _nulls_in_required(schema: Schema, arrow: pa.Schema, statistics: DataFileStatistics) -> Iterator[str]:
    """Checks counts; for a nested column, which has no counts, the file's schema."""
    for field in schema.fields:
        if not field.required or field.name not in arrow.names:
            continue
        if not field.field_type.is_primitive:
            if arrow.field(field.name).nullable:
                yield f"column {field.name} is required, but may have nulls: make it non-null in the output"
        elif statistics.null_value_counts.get(field.field_id) != 0:
            yield f"column {field.name} is required, but has nulls, or no statistics"


def _partition_fault(field: PartitionField, schema: Schema, statistics: DataFileStatistics, remedy: str) -> str | None:
    """Reason why the file's rows don't have one value of a partition field."""
    if isinstance(field.transform, VoidTransform):
        return None
    source, rows = schema.find_field(field.source_id), statistics.record_count
    nulls = statistics.null_value_counts.get(field.source_id)
    bounds: Any = statistics.column_aggregates.get(field.source_id)
    if nulls is None or (nulls < rows and (bounds is None or bounds.current_min is None)):
        return f"it has no statistics of the partition column {source.name}"
    if nulls == rows:
        return None
    if nulls:
        return f"its rows belong to several partitions by {source.name}: {nulls} of {rows} have null{remedy}"
    try:
        statistics._partition_value(field, schema)
    except ValueError:
        return (
            f"its rows belong to several partitions by {field.transform}({source.name}), from {bounds.current_min} to "
            f"{bounds.current_max}{remedy}"
        )
    return None
