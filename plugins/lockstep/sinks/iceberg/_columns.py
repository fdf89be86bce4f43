"""Columns and partitions of an Iceberg table: whether an output fits, which columns are missing, how field ids are
read."""

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
DROPPED = "dropped column #"  #: name of a dropped column, followed by its field id
Path: TypeAlias = tuple[str, ...]  #: of a column or a nested field


def schema_faults(metadata: TableMetadata, schema: pa.Schema, *, adds: bool) -> list[str]:
    """Reasons why rows of `schema` can't be added to the table, one sentence each. `adds`: missing columns will be
    added."""
    try:
        incoming = _pyarrow_to_schema_without_ids(schema, format_version=metadata.format_version)
    except (ValueError, TypeError, UnsupportedPyArrowTypeException) as error:
        return [f"Iceberg lacks a type for it: {_line(error)}"]
    columns = {field.name: field for field in metadata.schema().fields}
    faults, spellings = list[str](), dict[str, str]()
    for name in (*columns, *schema.names):
        if (first := spellings.setdefault(name.lower(), name)) != name:
            faults.append(f"columns {first} and {name} differ by case alone, which Spark can't distinguish")
    for name, column in columns.items():
        if column.required and name not in schema.names:
            faults.append(f"the table requires a column {name}, which the output lacks")
    for field in incoming.fields:
        if field.name in columns:
            faults += _differences(columns[field.name], field, schema.field(field.name), metadata)
        elif not adds:
            faults.append(f"the table has no column {field.name}: add it, or set on_new_columns='add'")
        elif _is_former_name(metadata.name_mapping(), field.name):
            faults.append(f"{field.name} is a former name of another column of the table: rename it")
    return faults


def new_columns(metadata: TableMetadata, schema: pa.Schema) -> pa.Schema:
    """Columns of `schema` that the table lacks, nullable."""
    existing = {field.name for field in metadata.schema().fields}
    return pa.schema([field.with_nullable(True) for field in schema if field.name not in existing])


def mapped_ids(metadata: TableMetadata, schema: pa.Schema) -> dict[str, int]:
    """Field ids by which readers take the columns of a file without ids; empty if some columns have no mapping."""
    mapped = _mapped_ids(_mapped_fields(metadata.name_mapping()))
    ids = {path[0]: number for path, number in mapped if number is not None and len(path) == 1}
    return ids if not any(map(_has_id, schema)) and set(schema.names) <= set(ids) else {}


def named_by_ids(metadata: TableMetadata, schema: pa.Schema) -> pa.Schema:
    """A file's columns with the table's current names for their field ids, or a placeholder for dropped columns."""
    names = {number: f"{DROPPED}{number}" for number in range(1, metadata.last_column_id + 1)}
    names |= {field.field_id: field.name for field in metadata.schema().fields}
    return pa.schema(
        [column.with_name(names.get(int((column.metadata or {}).get(ID_KEY, 0)), column.name)) for column in schema]
    )


def foreign_ids(metadata: TableMetadata, schema: pa.Schema) -> list[str]:
    """Columns of a file whose field ids aren't the table's, so that readers would look in the wrong place.

    A file without any ids is correct: it is read by names.
    """
    if not any(_has_id(field) for field in schema):
        return []
    try:
        file_schema = pyarrow_to_schema(schema, format_version=metadata.format_version)
    except ValueError:
        return [field.name for field in schema if not _has_id(field)] or schema.names
    table_schema = metadata.schema()
    return [name for name, number in file_schema._name_to_id.items() if table_schema._name_to_id.get(name) != number]


def _has_id(field: pa.Field) -> bool:
    nested = [field.type.field(n) for n in range(field.type.num_fields)] if pa.types.is_nested(field.type) else []
    return ID_KEY in (field.metadata or {}) or any(map(_has_id, nested))


def _differences(column: NestedField, field: NestedField, arrow: pa.Field, metadata: TableMetadata) -> Iterator[str]:
    if isinstance(column.field_type, PrimitiveType) and isinstance(field.field_type, PrimitiveType):
        try:
            fits = column.field_type == field.field_type or (
                promote(field.field_type, column.field_type) == column.field_type
            )
        except ResolveError:
            fits = False
        if not fits:
            yield f"column {field.name} is {field.field_type}, the table has {column.field_type}"
        return
    required = arrow.with_nullable(not column.required)
    try:
        incoming = pyarrow_to_schema(
            pa.schema([required]), name_mapping=metadata.schema().name_mapping, format_version=metadata.format_version
        )
    except ValueError:
        incoming = None
    if incoming is None or incoming.find_field(field.name).field_type != column.field_type:
        yield f"column {field.name} is {arrow.type}, the table has {column.field_type}"


def _is_former_name(mapping: NameMapping | None, name: str) -> bool:
    return any(name in field.names for field in _mapped_fields(mapping))


def unmapped_columns(metadata: TableMetadata, schema: pa.Schema) -> list[str]:
    """Columns and nested fields that the table's name mapping doesn't map to themselves: in files without field ids
    readers would see nulls."""
    mapping = metadata.name_mapping()
    if mapping is None:
        return []
    ids = dict(_mapped_ids(mapping.root))
    columns = [field for field in metadata.schema().fields if field.name in schema.names]
    return [".".join(path) for path, number in _paths_with_ids(columns) if ids.get(path) != number]


def _mapped_ids(fields: Iterable[MappedField], above: Path = ()) -> Iterator[tuple[Path, int | None]]:
    for field in fields:
        for name in field.names:
            yield (*above, name), field.field_id
            yield from _mapped_ids(field.fields, (*above, name))


def _paths_with_ids(fields: Iterable[NestedField], above: Path = ()) -> Iterator[tuple[Path, int]]:
    for field in fields:
        path = (*above, field.name)
        yield path, field.field_id
        yield from _paths_with_ids(_nested_fields(field.field_type), path)


def _nested_fields(type: IcebergType) -> tuple[NestedField, ...]:
    match type:
        case StructType():
            return type.fields
        case ListType():
            return (type.element_field,)
        case MapType():
            return (type.key_field, type.value_field)
    return ()


def _mapped_fields(mapping: NameMapping | None) -> list[MappedField]:
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


def parse_partition(text: str, label: str) -> tuple[str, str]:
    """(column, transform or ""). Raises `InvalidPipeline`."""
    match = _FIELD.fullmatch(text)
    if match is None or (match["time"] and match["time"] not in _TIMES):
        raise InvalidPipeline(
            f"{label}: partition_by has {text!r}: give a column, or {', '.join(f'{unit}(column)' for unit in _TIMES)}; "
            "buckets and truncated values can't be determined from a file's statistics"
        )
    return match["of"] or match["column"], match["time"] or ""


def partition_spec(schema: Schema, partition_by: Sequence[str], label: str) -> PartitionSpec:
    """Partitioning of a new table. Raises `PreflightRefused` for a missing column or an unsuitable type."""
    fields = []
    for number, text in enumerate(partition_by):
        column, time = parse_partition(text, label)
        try:
            source = schema.find_field(column)
        except ValueError as error:
            raise PreflightRefused(f"{label}: partition_by names {column}, which the output lacks") from error
        transform = _TIMES[time] if time else IdentityTransform()
        if not transform.can_transform(source.field_type):
            raise PreflightRefused(f"{label}: {source.field_type} column {column} can't be partitioned by {text}")
        name = f"{column}_{time}" if time else column
        fields.append(PartitionField(source.field_id, PARTITION_FIELD_ID_START + number, transform, name))
    return PartitionSpec(*fields)


def partition_texts(metadata: TableMetadata) -> tuple[str, ...]:
    """A table's partitioning as `partition_by` expresses it, without what it can't express, such as nested fields."""
    names = {type(transform): name for name, transform in _TIMES.items()}
    texts = []
    for field in metadata.spec().fields:
        column = next(
            (candidate.name for candidate in metadata.schema().fields if candidate.field_id == field.source_id), None
        )
        if column is None:
            continue
        if isinstance(field.transform, IdentityTransform):
            texts.append(column)
        elif type(field.transform) in names:
            texts.append(f"{names[type(field.transform)]}({column})")
    return tuple(texts)
