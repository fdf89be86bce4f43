"""How a new table is partitioned, as a definition says it: `("origin", "day(at)")`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    YearTransform,
)

from lockstep.errors import InvalidPipeline, PreflightRefused

_TIMES: dict[str, Transform] = {  # type: ignore[type-arg]
    "year": YearTransform(),
    "month": MonthTransform(),
    "day": DayTransform(),
    "hour": HourTransform(),
}
_FIELD = re.compile(r"(?:(?P<time>[a-z]+)\((?P<of>.+)\))|(?P<column>[^()]+)")


def parse_partition(text: str, who: str) -> tuple[str, str]:
    """(column, time or ""). Raises `InvalidPipeline`."""
    found = _FIELD.fullmatch(text)
    if found is None or (found["time"] and found["time"] not in _TIMES):
        raise InvalidPipeline(
            f"{who}: partition_by has {text!r}: give a column, or {', '.join(f'{one}(column)' for one in _TIMES)}; "
            "buckets and truncated values can't be told from a file's statistics"
        )
    return found["of"] or found["column"], found["time"] or ""


def partition_spec(schema: Schema, partition_by: Sequence[str], who: str) -> PartitionSpec:
    """Of a new table. Raises `PreflightRefused` for a column that it lacks, or whose type has no such partitions."""
    fields = []
    for number, text in enumerate(partition_by):
        column, time = parse_partition(text, who)
        try:
            source = schema.find_field(column)
        except ValueError as error:
            raise PreflightRefused(f"{who}: partition_by names {column}, which the output lacks") from error
        transform = _TIMES[time] if time else IdentityTransform()
        if not transform.can_transform(source.field_type):
            raise PreflightRefused(f"{who}: {source.field_type} column {column} can't be partitioned by {text}")
        name = f"{column}_{time}" if time else column
        fields.append(PartitionField(source.field_id, PARTITION_FIELD_ID_START + number, transform, name))
    return PartitionSpec(*fields)


def texts_of(metadata: TableMetadata) -> tuple[str, ...]:
    """How a table is partitioned, as a definition says it, as far as one can: by parts of columns one can't."""
    names = {type(transform): name for name, transform in _TIMES.items()}
    found = []
    for field in metadata.spec().fields:
        column = next((one.name for one in metadata.schema().fields if one.field_id == field.source_id), None)
        if column is None:
            continue
        if isinstance(field.transform, IdentityTransform):
            found.append(column)
        elif type(field.transform) in names:
            found.append(f"{names[type(field.transform)]}({column})")
    return tuple(found)
