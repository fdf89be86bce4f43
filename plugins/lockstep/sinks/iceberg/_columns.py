"""Whether an output's columns are a table's, by name; and which of them the table has yet to get."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa
from pyiceberg.exceptions import ResolveError
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException, _pyarrow_to_schema_without_ids, pyarrow_to_schema
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema, promote
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    YearTransform,
)
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, PrimitiveType, StructType

from lockstep.errors import InvalidPipeline, PreflightRefused

ID_KEY = b"PARQUET:field_id"
DROPPED = "dropped column #"  #: before the id of a file's column that the table doesn't have any more: its name
Path: TypeAlias = tuple[str, ...]  #: of a part of a column: the names that lead to it


def misfits(metadata: TableMetadata, schema: pa.Schema, *, adds: bool) -> list[str]:
    """What keeps rows of `schema` out of the table, a sentence each. `adds`: columns that it lacks are added."""
    try:
        given = _pyarrow_to_schema_without_ids(schema, format_version=metadata.format_version)
    except (ValueError, TypeError, UnsupportedPyArrowTypeException) as error:
        return [f"Iceberg has no type for it: {_line(error)}"]
    columns = {field.name: field for field in metadata.schema().fields}
    found = [*_spelled_alike([*columns, *schema.names]), *_left_out(metadata.schema(), schema)]
    for field in given.fields:
        if field.name in columns:
            found += _differences(columns[field.name], field, schema.field(field.name), metadata)
        elif not adds:
            found.append(f"the table has no column {field.name}: add it, or say on_new_columns='add'")
        elif _names_another(metadata.name_mapping(), field.name):
            found.append(f"the table knows {field.name} as a former name of another column: call it otherwise")
    return found


def new_columns(metadata: TableMetadata, schema: pa.Schema) -> pa.Schema:
    """Those of `schema` that the table lacks, nullable."""
    known = {field.name for field in metadata.schema().fields}
    return pa.schema([field.with_nullable(True) for field in schema if field.name not in known])


def mapped_ids(metadata: TableMetadata, schema: pa.Schema) -> dict[str, int]:
    """The field ids by which readers take a file's columns that has none of its own; none where some lead nowhere."""
    mapped = _mapped_ids(_mapped(metadata.name_mapping()))
    ids = {path[0]: number for path, number in mapped if number is not None and len(path) == 1}
    return ids if not any(map(_has_id, schema)) and set(schema.names) <= set(ids) else {}


def named_by_ids(metadata: TableMetadata, schema: pa.Schema) -> pa.Schema:
    """A file's columns by the names that the table has for their field ids now, or by the ids of those it dropped."""
    names = {number: f"{DROPPED}{number}" for number in range(1, metadata.last_column_id + 1)}
    names |= {field.field_id: field.name for field in metadata.schema().fields}
    return pa.schema([one.with_name(names.get(int((one.metadata or {}).get(ID_KEY, 0)), one.name)) for one in schema])


def foreign_ids(metadata: TableMetadata, schema: pa.Schema) -> list[str]:
    """Columns of a file's `schema` whose field ids aren't the table's: under these readers would look for them.

    None at all is as it should be: then names count.
    """
    if not any(_has_id(field) for field in schema):
        return []
    try:
        given = pyarrow_to_schema(schema, format_version=metadata.format_version)
    except ValueError:
        return [field.name for field in schema if not _has_id(field)] or schema.names
    known = metadata.schema()
    return [name for name, number in given._name_to_id.items() if known._name_to_id.get(name) != number]


def _has_id(field: pa.Field) -> bool:
    nested = [field.type.field(n) for n in range(field.type.num_fields)] if pa.types.is_nested(field.type) else []
    return ID_KEY in (field.metadata or {}) or any(map(_has_id, nested))


def _left_out(table: Schema, schema: pa.Schema) -> Iterator[str]:
    for field in table.fields:
        if field.required and field.name not in schema.names:
            yield f"the table requires a column {field.name}, which the output lacks"


def _spelled_alike(names: list[str]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.lower(), name)) != name:
            yield f"columns {other} and {name} differ by case alone, which Spark can't tell apart"


def _differences(column: NestedField, field: NestedField, given: pa.Field, metadata: TableMetadata) -> Iterator[str]:
    if isinstance(column.field_type, PrimitiveType) and isinstance(field.field_type, PrimitiveType):
        if column.field_type != field.field_type and not _promotes(field, column):
            yield f"column {field.name} is {field.field_type}, the table has {column.field_type}"
        return
    required = given.with_nullable(not column.required)
    try:
        told = pyarrow_to_schema(
            pa.schema([required]), name_mapping=metadata.schema().name_mapping, format_version=metadata.format_version
        )
    except ValueError:
        told = None
    if told is None or told.find_field(field.name).field_type != column.field_type:
        yield f"column {field.name} is {given.type}, the table has {column.field_type}"


def _promotes(field: NestedField, column: NestedField) -> bool:
    try:
        return bool(promote(field.field_type, column.field_type) == column.field_type)
    except ResolveError:
        return False


def _names_another(mapping: NameMapping | None, name: str) -> bool:
    return any(name in field.names for field in _mapped(mapping))


def unmapped(metadata: TableMetadata, schema: pa.Schema) -> list[str]:
    """Columns, and parts of them, that files without field ids would not be read by: the table's name mapping leads
    elsewhere, or nowhere, and readers would see nulls."""
    mapping = metadata.name_mapping()
    if mapping is None:
        return []
    ids = dict(_mapped_ids(mapping.root))
    columns = [field for field in metadata.schema().fields if field.name in schema.names]
    return [".".join(path) for path, number in _ids(columns) if ids.get(path) != number]


def _mapped_ids(fields: Iterable[MappedField], above: Path = ()) -> Iterator[tuple[Path, int | None]]:
    for field in fields:
        for name in field.names:
            yield (*above, name), field.field_id
            yield from _mapped_ids(field.fields, (*above, name))


def _ids(fields: Iterable[NestedField], above: Path = ()) -> Iterator[tuple[Path, int]]:
    for field in fields:
        path = (*above, field.name)
        yield path, field.field_id
        yield from _ids(_parts(field.field_type), path)


def _parts(type: IcebergType) -> tuple[NestedField, ...]:
    match type:
        case StructType():
            return type.fields
        case ListType():
            return (type.element_field,)
        case MapType():
            return (type.key_field, type.value_field)
    return ()


def _mapped(mapping: NameMapping | None) -> list[MappedField]:
    return list(mapping.root) if mapping is not None else []


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


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
