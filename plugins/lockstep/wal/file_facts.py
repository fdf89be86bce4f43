"""Column facts from the footer of a sealed Parquet file, which a table needs to adopt it.

The seal stores them next to the manifest, so that adoption opens no file.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import takewhile
from operator import eq
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep.epoch import Json

NULLS = b"lockstep.nulls"  #: footer metadata: null counts of top-level columns without statistics, by name
LONGEST = 256  #: characters or bytes of a bound; longer ones are truncated where the two bounds differ
Leaves: TypeAlias = tuple[tuple[pa.DataType, bool], ...]  #: type, and whether it is nested
_FIELD_ID = b"PARQUET:field_id"
_FIRST = datetime(1970, 1, 1)


@dataclass(frozen=True)
class ColumnFacts:
    """Facts of one leaf column of a Parquet file, over all row groups.

    `nulls` is None if a row group lacks the count; bounds are None if the footer has none that are certain. Text and
    binary bounds longer than `LONGEST` are complete if they are equal, else truncated: see `is_cut`. Bounds are Python
    values of `type`.
    """

    path: str  #: Parquet's dotted path
    type: pa.DataType
    nested: bool
    bytes: int  #: compressed
    values: int
    nulls: int | None
    least: Any = None
    greatest: Any = None

    @property
    def is_cut(self) -> bool:
        """Whether a bound is truncated. Equal bounds are complete."""
        return self.least != self.greatest and (_is_long(self.least) or _is_long(self.greatest))


@dataclass(frozen=True)
class FileFacts:
    """Facts of one file. `schema` has field ids and no other metadata; `offsets`: start of each row group."""

    schema: pa.Schema = field(repr=False)
    rows: int
    columns: tuple[ColumnFacts, ...]
    offsets: tuple[int, ...]
    int96: tuple[str, ...] = ()  #: paths of INT96 timestamps, which many readers don't support

    @classmethod
    def of(cls, footer: pq.FileMetaData) -> FileFacts:
        """Facts from a file's footer."""
        schema, parquet = _with_ids_only(footer.schema.to_arrow_schema()), footer.schema
        leaves = leaves_of(schema)
        null_counts: Json = json.loads((footer.metadata or {}).get(NULLS, b"{}"))
        columns = tuple(_column(footer, number, null_counts, *leaf) for number, leaf in enumerate(leaves))
        physical = [parquet.column(number) for number in range(len(leaves))]
        int96 = tuple(column.path for column in physical if column.physical_type == "INT96")
        offsets = tuple(_offset(footer.row_group(group)) for group in range(footer.num_row_groups))
        return cls(schema, footer.num_rows, columns, offsets, int96)

    def to_json(self) -> Json:
        """JSON without `rows`, and without the schema if it has no field ids: those are in the manifest. Equal bounds
        are stored once."""
        value: dict[str, Json] = {
            "columns": [
                [column.path, column.bytes, column.values, column.nulls, *_bounds_to_json(column)]
                for column in self.columns
            ],
            "offsets": list(self.offsets),
        }
        if self.int96:
            value["int96"] = list(self.int96)
        if any(map(_has_id, self.schema)):
            value["schema"] = base64.b64encode(self.schema.serialize().to_pybytes()).decode("ascii")
        return value

    @classmethod
    def from_json(cls, value: Json, rows: int, schema: pa.Schema, leaves: Leaves) -> FileFacts:
        """Facts from `to_json`. `schema`: of the file, without field ids, with its `leaves`. Raises KeyError,
        TypeError, ValueError."""
        if "schema" in value:
            schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(value["schema"], validate=True)))
        columns = tuple(
            ColumnFacts(path, type, nested, size, values, nulls, *_bounds_from_json(type, *bounds))
            for (type, nested), (path, size, values, nulls, *bounds) in zip(leaves, value["columns"], strict=True)
        )
        return cls(schema, rows, columns, tuple(value["offsets"]), tuple(value.get("int96", ())))


def _with_ids_only(schema: pa.Schema) -> pa.Schema:
    if not any(map(_has_id, schema)):
        return pa.schema([column.remove_metadata() for column in schema])
    return schema.remove_metadata()


def _has_id(column: pa.Field) -> bool:
    return _FIELD_ID in (column.metadata or {}) or any(map(_has_id, _parts(column.type)))


def _parts(type: pa.DataType) -> list[pa.Field]:
    return [type.field(number) for number in range(type.num_fields)] if pa.types.is_nested(type) else []


def leaves_of(schema: Iterable[pa.Field]) -> Leaves:
    """Leaf columns that Parquet makes of these fields."""
    return tuple(leaf for column in schema for leaf in _leaves_of(column.type, nested=False))


def _leaves_of(type: pa.DataType, nested: bool) -> Iterator[tuple[pa.DataType, bool]]:
    if not pa.types.is_nested(type):
        yield type, nested
    for part in _parts(type):
        yield from _leaves_of(part.type, nested=True)


def _offset(group: pq.RowGroupMetaData) -> int:
    first = group.column(0)
    data, dictionary = first.data_page_offset, first.dictionary_page_offset
    return int(dictionary if first.has_dictionary_page and dictionary < data else data)


def _column(footer: pq.FileMetaData, number: int, noted: Json, type: pa.DataType, nested: bool) -> ColumnFacts:
    chunks = [footer.row_group(group).column(number) for group in range(footer.num_row_groups)]
    sizes = sum(chunk.total_compressed_size for chunk in chunks), sum(chunk.num_values for chunk in chunks)
    path = footer.schema.column(number).path
    with_null_count = [
        statistics
        for chunk in chunks
        if chunk.is_stats_set and (statistics := chunk.statistics) and statistics.has_null_count
    ]
    if len(with_null_count) < len(chunks):
        return ColumnFacts(path, type, nested, *sizes, None if nested else noted.get(path))
    nulls = sum(statistics.null_count for statistics in with_null_count)
    with_values = [
        statistics
        for statistics, chunk in zip(with_null_count, chunks, strict=True)
        if statistics.null_count < chunk.num_values
    ]
    return ColumnFacts(path, type, nested, *sizes, nulls, *_bounds(type, with_values))


def _bounds(type: pa.DataType, statistics: list[pq.Statistics]) -> tuple[Any, Any]:
    """Minimum and maximum, or None for both if a row group lacks one, or Python can't represent it.

    Floats have none: footers don't say whether there are NaNs, which some readers order above all numbers.
    """
    if not statistics or not all(chunk.has_min_max for chunk in statistics) or not _has_bounds(type):
        return None, None
    try:
        least, greatest = min(chunk.min for chunk in statistics), max(chunk.max for chunk in statistics)
    except (TypeError, ValueError, OverflowError, pa.ArrowException):
        return None, None
    if isinstance(least, str | bytes) and least != greatest:
        common_prefix = sum(takewhile(bool, map(eq, least, greatest)))
        length = max(LONGEST, common_prefix) + 1
        return least[:length], greatest[:length]
    return least, greatest


def _is_long(bound: Any) -> bool:
    return isinstance(bound, str | bytes) and len(bound) > LONGEST


def _has_bounds(type: pa.DataType) -> bool:
    return bool(
        pa.types.is_boolean(type)
        or pa.types.is_integer(type)
        or pa.types.is_decimal(type)
        or pa.types.is_date32(type)
        or pa.types.is_time(type)
        or pa.types.is_timestamp(type)
        or _is_text(type)
        or _is_binary(type)
    )


def _is_text(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type))


def _is_binary(type: pa.DataType) -> bool:
    is_plain = pa.types.is_binary(type) or pa.types.is_fixed_size_binary(type)
    return bool(is_plain or pa.types.is_large_binary(type) or pa.types.is_binary_view(type))


def _bounds_to_json(column: ColumnFacts) -> list[Json]:
    bounds = [_bound_to_json(column.least), _bound_to_json(column.greatest)]
    return bounds[:1] if column.least == column.greatest else bounds


def _bounds_from_json(type: pa.DataType, least: Json, *greatest: Json) -> tuple[Any, Any]:
    """Bounds from JSON. Long equal bounds stored twice were truncated by a former version: they are unknown."""
    bounds = [_bound_from_json(type, bound) for bound in (least, *greatest)]
    if len(bounds) > 2:
        raise ValueError(f"{len(bounds)} bounds of a column")
    if len(bounds) == 2 and bounds[0] == bounds[1] and _is_long(bounds[0]):
        return None, None
    return bounds[0], bounds[-1]


def _bound_to_json(value: Any) -> Json:
    match value:
        case datetime():  # before date, its base class
            moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return (moment - _FIRST) // timedelta(microseconds=1)
        case date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
    return value


def _bound_from_json(type: pa.DataType, value: Json) -> Any:
    if value is None:
        return None
    if pa.types.is_timestamp(type):
        return (_FIRST + timedelta(microseconds=value)).replace(tzinfo=UTC if type.tz else None)
    if pa.types.is_date32(type):
        return date.fromisoformat(value)
    if pa.types.is_time(type):
        return time.fromisoformat(value)
    if pa.types.is_decimal(type):
        return Decimal(value)
    if _is_binary(type):
        return base64.b64decode(value, validate=True)
    return value
