"""Columns of a Delta table: whether adopted files fit its schema and features, and what the log records of each file.

Statistics have safe bounds only, because readers skip files by them: texts are truncated so that they remain bounds,
and a column that the footer has no statistics of gets none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType

from lockstep.epoch import Json
from lockstep.errors import PreflightRefused, SinkRejected
from lockstep.wal.file_facts import ColumnFacts, FileFacts

#: writer features that deltalake commits to, and that add no duty for adopted files unless a property enables them
HARMLESS = frozenset(
    {
        *("appendOnly", "invariants", "checkConstraints", "generatedColumns", "changeDataFeed"),
        *("columnMapping", "timestampNtz", "deletionVectors", "v2Checkpoint", "variantType"),
    }
)
_WITH_IDENTITY = 6  #: the writer version with identity columns, which deltalake can't commit to

_OF_NULLS = ("nullable", "containsNull", "valueContainsNull")
_PARTS = ("fields", "type", "elementType", "keyType", "valueType")  #: keys of nested types in Delta's JSON
_SPARKS_TYPE = "__CHAR_VARCHAR_TYPE_STRING"  #: metadata of CHAR and VARCHAR: only Spark checks their lengths
_RETENTION = "delta.setTransactionRetentionDuration"
_RESERVED = frozenset(" ,;{}()\n\t=")  #: characters that a name may have only with column mapping


def refuse_unsupported(sink: str, table: DeltaTable) -> None:
    """Raise `PreflightRefused` for a table with features that adoption bypasses, such as checks of each row."""
    if features := list(_bypassed(table)):
        raise PreflightRefused(
            f"sink {sink}: the table has {', '.join(features)}, with which files can't be adopted: remove that from "
            "the table, or write to another one"
        )


def _bypassed(table: DeltaTable) -> Iterator[str]:
    properties = table.metadata().configuration
    yield from (f"the constraint {name[18:]}" for name in properties if name.startswith("delta.constraints."))
    if _RETENTION in properties:  # Delta's next checkpoint would then leave out every txn that carries no time
        yield f"the property {_RETENTION} (the markers of published epochs are transactions)"
    if properties.get("delta.columnMapping.mode", "none") != "none":
        yield "column mapping"
    yield from _checked_by_writers(json.loads(table.schema().to_json()))
    protocol = table.protocol()
    yield from (f"the feature {name}" for name in sorted(set(protocol.writer_features or ()) - HARMLESS))
    if protocol.min_writer_version == _WITH_IDENTITY:
        yield f"the writer version {_WITH_IDENTITY} (identity columns)"


def _checked_by_writers(part: Json, column: str = "") -> Iterator[str]:
    """Constraints and defaults that Delta's writers apply according to the schema: of columns, and of nested fields."""
    if isinstance(part, list):
        for inner in part:
            yield from _checked_by_writers(inner, column)
    elif isinstance(part, dict):
        column = ".".join(filter(None, (column, part.get("name"))))
        for name, value in sorted(part.get("metadata", {}).items()):
            if name == _SPARKS_TYPE or (name.startswith("delta.") and not name.startswith("delta.columnMapping.")):
                yield f"{value if name == _SPARKS_TYPE else name} of column {column}"
        for name in _PARTS:
            yield from _checked_by_writers(part.get(name), column)


def refuse_changed_protocol(sink: str, table: DeltaTable, owner: str) -> None:
    """Raise `PreflightRefused` if setting a property by deltalake would add the feature variantType to the table: not
    every reader supports it."""
    features = table.protocol().writer_features
    if features is not None and "variantType" not in features:
        raise PreflightRefused(
            f"sink {sink}: the table lists features ({', '.join(sorted(features)) or 'none'}); to set a property, "
            "deltalake would add variantType, which not every reader supports: set the property with Spark: "
            f"ALTER TABLE … SET TBLPROPERTIES ('lockstep.owner' = '{owner}')"
        )


def refuse_zoned_partitions(sink: str, schema: Schema, partition_by: Sequence[str]) -> None:
    """Raise `PreflightRefused` for partitions by TIMESTAMP: the log records no zone, so readers interpret it
    differently."""
    types = {column.name: column.type for column in schema.fields}
    if zoned := [name for name in partition_by if types[name] == PrimitiveType("timestamp")]:
        raise PreflightRefused(
            f"sink {sink}: the table is partitioned by {', '.join(zoned)}, TIMESTAMP with a zone, but the log records "
            "no zone, so readers take different instants for it: partition by a DATE or a TIMESTAMP_NTZ"
        )


def delta_schema(sink: str, schema: pa.Schema) -> Schema:
    """Columns of a new table, nullable at every level. Raises `PreflightRefused` for types that Delta lacks."""
    return Schema([_delta_field(sink, column) for column in schema])


def _delta_field(sink: str, column: pa.Field) -> Field:
    if wrong := sorted(_RESERVED.intersection(column.name)):
        raise PreflightRefused(
            f"sink {sink}: the name of column {column.name!r} has {', '.join(map(repr, wrong))}, which Spark refuses "
            "in a Delta table: rename it in the transform"
        )
    if wrong := list(_unsupported_types(column.type)):
        raise PreflightRefused(
            f"sink {sink}: column {column.name} is {column.type}; a Delta table has no {', '.join(wrong)}: cast it in "
            "the transform"
        )
    return Field.from_json(json.dumps(_nullable(_delta_json(column))))


def _delta_json(column: pa.Field) -> Json:
    """Delta's JSON of the column, including nullability."""
    [field] = Schema.from_arrow(pa.schema([column])).fields
    return {**json.loads(field.to_json()), "metadata": {}}


def _nullable(type: Json) -> Json:
    if isinstance(type, dict):
        return {name: True if name in _OF_NULLS else _nullable(value) for name, value in type.items()}
    return [_nullable(value) for value in type] if isinstance(type, list) else type


def _adds_nulls(existing: Json, incoming: Json) -> bool:
    """True if a part is nullable in the output but not in the table; both have the same type."""
    if isinstance(existing, list):
        incoming_by_name = {part["name"]: part for part in incoming}
        return any(_adds_nulls(part, incoming_by_name[part["name"]]) for part in existing)
    if not isinstance(existing, dict):
        return False
    if any(existing.get(name) is False and incoming.get(name) is not False for name in _OF_NULLS):
        return True
    return any(_adds_nulls(part, incoming[name]) for name, part in existing.items() if name in _PARTS)


def _unsupported_types(type: pa.DataType) -> Iterator[str]:
    if pa.types.is_nested(type):
        for number in range(type.num_fields):
            yield from _unsupported_types(type.field(number).type)
        return
    is_integer = pa.types.is_signed_integer(type) or pa.types.is_decimal128(type)
    is_text = pa.types.is_string(type) or pa.types.is_binary(type)
    is_time = pa.types.is_date32(type) or (pa.types.is_timestamp(type) and type.unit == "us")
    is_float = pa.types.is_float32(type) or pa.types.is_float64(type)
    if not (is_integer or is_text or is_time or is_float or pa.types.is_boolean(type)):
        yield str(type)


def new_columns(sink: str, table: DeltaTable, schema: pa.Schema) -> list[Field]:
    """Columns that the table lacks. Raises `PreflightRefused` for a column with another type or spelling in the
    table."""
    existing = {column.name: column for column in table.schema().fields}
    spellings = {name.lower(): name for name in existing}
    missing = []
    for column in delta_schema(sink, schema).fields:
        if (own := existing.get(column.name)) is not None:
            if _type_of(own) != _type_of(column):
                raise PreflightRefused(
                    f"sink {sink}: column {column.name} is {_type_text(own)} in the table and {_type_text(column)} in "
                    "the output: cast it in the transform"
                )
            if _adds_nulls(json.loads(own.to_json())["type"], _delta_json(schema.field(column.name))["type"]):
                raise PreflightRefused(
                    f"sink {sink}: column {column.name} has fields that are nullable in the output and NOT NULL in the "
                    "table: make them nullable there"
                )
        elif (spelling := spellings.get(column.name.lower())) is not None:
            raise PreflightRefused(f"sink {sink}: column {column.name} is called {spelling} in the table: rename it")
        else:
            missing.append(column)
    return missing


def required_columns(table: DeltaTable) -> list[str]:
    """The table's columns that are NOT NULL."""
    return [column.name for column in table.schema().fields if not column.nullable]


def _type_text(column: Field) -> str:
    return json.dumps(_type_of(column)).strip('"')


def _type_of(column: Field) -> object:
    """The type without nullability."""
    return _without_nulls(json.loads(column.to_json())["type"])


def _without_nulls(type: object) -> object:
    if isinstance(type, dict):
        left_out = (*_OF_NULLS, "metadata")
        return {name: _without_nulls(value) for name, value in type.items() if name not in left_out}
    return [_without_nulls(value) for value in type] if isinstance(type, list) else type


_COLUMNS = 32  #: number of columns with bounds, as Delta's own writers have by default; the epoch's column always has
_TEXT = 32  #: characters of a text in the log
_LARGEST = "\U0010ffff"
_EXACT = 10**15  #: below this, decimals survive a JSON reader's double, which has 15 digits


def plain_columns(facts: FileFacts) -> dict[str, ColumnFacts]:
    """Top-level columns with statistics, by name; a nested field may have the same path."""
    return {column.path: column for column in facts.columns if not column.nested}


def statistics(facts: FileFacts, epoch_column: str) -> str:
    """JSON for `stats` of an `add` action."""
    columns = plain_columns(facts)
    names = [name for number, name in enumerate(columns) if number < _COLUMNS or name == epoch_column]
    least = {name: value for name in names if (value := _least(columns[name])) is not None}
    greatest = {name: value for name in names if (value := _greatest(columns[name])) is not None}
    nulls = {name: columns[name].nulls for name in names if columns[name].nulls is not None}
    return json.dumps(
        {
            "numRecords": facts.rows,
            "minValues": {name: value for name, value in least.items() if name in greatest},
            "maxValues": {name: value for name, value in greatest.items() if name in least},
            "nullCount": nulls,
        }
    )


def _least(facts: ColumnFacts) -> Json | None:
    match facts.least:
        case str(text):
            return text[:_TEXT]
        case datetime() as moment:
            return _moment(moment.replace(microsecond=moment.microsecond // 1000 * 1000))
        case value:
            return _plain(facts.type, value)


def _greatest(facts: ColumnFacts) -> Json | None:
    match facts.greatest:
        case str(text) if len(text) <= _TEXT:
            return text
        case str(text):
            return text[:_TEXT] + _LARGEST if text[_TEXT] != _LARGEST else None  # else what follows may be larger
        case datetime() as moment:
            try:
                return _moment(moment + timedelta(microseconds=-moment.microsecond % 1000))
            except OverflowError:
                return None
        case value:
            return _plain(facts.type, value)


def _moment(moment: datetime) -> str:
    """ISO text with milliseconds, the precision that readers expect."""
    text = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{text}Z" if moment.tzinfo else text


def _plain(type: pa.DataType, value: Any) -> Json | None:
    if pa.types.is_integer(type) and isinstance(value, int):
        return value
    if pa.types.is_date(type) and isinstance(value, date):
        return value.isoformat()
    if pa.types.is_decimal(type) and value is not None and abs(value) * 10**type.scale < _EXACT:
        return float(value) if type.scale else int(value)
    return None


def partition_values(
    sink: str, path: str, facts: FileFacts, partition_by: Sequence[str], if_several: str = ""
) -> dict[str, str | None]:
    """Values of the partition columns in all rows of a file, as Delta writes them.

    Raises `SinkRejected` if a column has several values or no statistics; `if_several` is the remedy to name.
    """
    columns: Mapping[str, ColumnFacts] = plain_columns(facts) if partition_by else {}
    remedy = f": {if_several}" if if_several else ""
    return {name: _partition_value(sink, path, name, columns[name], remedy) for name in partition_by}


def _partition_value(sink: str, path: str, column: str, facts: ColumnFacts, remedy: str) -> str | None:
    if facts.nulls == facts.values:
        return None
    if facts.nulls != 0 or facts.least is None or facts.least != facts.greatest:
        raise SinkRejected(
            f"sink {sink}: rows of {path} have several values of {column}, by which the table is partitioned, but a "
            f"file must belong to one partition{remedy}"
        )
    if (text := partition_text(facts.least)) is None:
        raise SinkRejected(f"sink {sink}: {column} is {facts.least!r} in {path}: Delta can't partition by that value")
    return text


def partition_text(value: object) -> str | None:
    """A partition value as Delta writes it; None for null and for unsupported types."""
    match value:
        case bool(flag):
            return str(flag).lower()
        case datetime() as moment:
            return moment.replace(tzinfo=None).isoformat(" ", "microseconds")
        case date() as day:
            return day.isoformat()
        case str(text) if text:
            return text
        case int(number):
            return str(number)
    return None
