"""Whether files of a WAL can become files of a Delta table: its columns by name, and what adoption would bypass."""

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

#: writer features that ask nothing of who only adds files to a table without the property in question, and with which
#: deltalake commits
HARMLESS = frozenset(
    {
        *("appendOnly", "invariants", "checkConstraints", "generatedColumns", "changeDataFeed"),
        *("columnMapping", "timestampNtz", "deletionVectors", "v2Checkpoint", "variantType"),
    }
)
_WITH_IDENTITY = 6  #: the writer version that asks for identity columns, which deltalake can't commit to

_OF_NULLS = ("nullable", "containsNull", "valueContainsNull")
_PARTS = ("fields", "type", "elementType", "keyType", "valueType")  #: where Delta's JSON of a type has others in it
_SPARKS_TYPE = "__CHAR_VARCHAR_TYPE_STRING"  #: CHAR and VARCHAR, whose lengths Spark checks, are STRING to others
_RETENTION = "delta.setTransactionRetentionDuration"
_NAMELESS = frozenset(" ,;{}()\n\t=")  #: what a name may have only where columns are mapped


def refuse_unkept(sink: str, table: DeltaTable) -> None:
    """Raises `PreflightRefused` for a table that asks of each row, or each file, what nobody does who adopts."""
    if found := list(_bypassed(table)):
        raise PreflightRefused(
            f"sink {sink}: the table has {', '.join(found)}, with which files can't be adopted: take that away from "
            "the table, or write to another one"
        )


def _bypassed(table: DeltaTable) -> Iterator[str]:
    properties = table.metadata().configuration
    yield from (f"the constraint {name[18:]}" for name in properties if name.startswith("delta.constraints."))
    if _RETENTION in properties:  # Delta's next checkpoint would then leave out every txn that carries no time
        yield f"the property {_RETENTION} (the markers of published epochs are transactions)"
    if properties.get("delta.columnMapping.mode", "none") != "none":
        yield "column mapping"
    yield from _enforced(json.loads(table.schema().to_json()))
    protocol = table.protocol()
    yield from (f"the feature {name}" for name in sorted(set(protocol.writer_features or ()) - HARMLESS))
    if protocol.min_writer_version == _WITH_IDENTITY:
        yield f"the writer version {_WITH_IDENTITY} (identity columns)"


def _enforced(part: Json, column: str = "") -> Iterator[str]:
    """What the schema has Delta's writers check or fill in: of columns, and of parts of them at any depth."""
    if isinstance(part, list):
        for inner in part:
            yield from _enforced(inner, column)
    elif isinstance(part, dict):
        column = ".".join(filter(None, (column, part.get("name"))))
        for name, value in sorted(part.get("metadata", {}).items()):
            if name == _SPARKS_TYPE or (name.startswith("delta.") and not name.startswith("delta.columnMapping.")):
                yield f"{value if name == _SPARKS_TYPE else name} of column {column}"
        for name in _PARTS:
            yield from _enforced(part.get(name), column)


def refuse_changed_protocol(sink: str, table: DeltaTable, owner: str) -> None:
    """Raises `PreflightRefused` for a table that deltalake would have ask for variants if it set a property there: who
    knows none couldn't read it any more."""
    features = table.protocol().writer_features
    if features is not None and "variantType" not in features:
        raise PreflightRefused(
            f"sink {sink}: the table names features ({', '.join(sorted(features)) or 'none'}), to which deltalake "
            "would add variantType by setting a property, and not every reader knows that one: set it by Spark: "
            f"ALTER TABLE … SET TBLPROPERTIES ('lockstep.owner' = '{owner}')"
        )


def refuse_zoned(sink: str, schema: Schema, partition_by: Sequence[str]) -> None:
    """Raises `PreflightRefused` for partitions by instants: the log has no zone, so each reader takes its own."""
    types = {column.name: column.type for column in schema.fields}
    if zoned := [name for name in partition_by if types[name] == PrimitiveType("timestamp")]:
        raise PreflightRefused(
            f"sink {sink}: the table is partitioned by {', '.join(zoned)}, TIMESTAMP with a zone, of which the log "
            "tells none, so that each reader takes another instant for it: partition by a DATE or a TIMESTAMP_NTZ"
        )


def delta_schema(sink: str, schema: pa.Schema) -> Schema:
    """The columns of a new table, every part nullable. Raises `PreflightRefused` for what Delta doesn't have."""
    return Schema([_delta_field(sink, column) for column in schema])


def _delta_field(sink: str, column: pa.Field) -> Field:
    if wrong := sorted(_NAMELESS.intersection(column.name)):
        raise PreflightRefused(
            f"sink {sink}: column {column.name!r} has {', '.join(map(repr, wrong))} in its name, which Spark refuses "
            "in a Delta table: rename it in the transform"
        )
    if wrong := list(_unkept(column.type)):
        raise PreflightRefused(
            f"sink {sink}: column {column.name} is {column.type}; a Delta table has no {', '.join(wrong)}: cast it in "
            "the transform"
        )
    return Field.from_json(json.dumps(_nullable(_as_given(column))))


def _as_given(column: pa.Field) -> Json:
    """As Delta writes the column, with what it says of nulls."""
    [found] = Schema.from_arrow(pa.schema([column])).fields
    return {**json.loads(found.to_json()), "metadata": {}}


def _nullable(type: Json) -> Json:
    if isinstance(type, dict):
        return {name: True if name in _OF_NULLS else _nullable(value) for name, value in type.items()}
    return [_nullable(value) for value in type] if isinstance(type, list) else type


def _loosened(there: Json, given: Json) -> bool:
    """Whether a part may be null that may not be so in the table; both are of one type."""
    if isinstance(there, list):
        named = {part["name"]: part for part in given}
        return any(_loosened(part, named[part["name"]]) for part in there)
    if not isinstance(there, dict):
        return False
    if any(there.get(name) is False and given.get(name) is not False for name in _OF_NULLS):
        return True
    return any(_loosened(part, given[name]) for name, part in there.items() if name in _PARTS)


def _unkept(type: pa.DataType) -> Iterator[str]:
    if pa.types.is_nested(type):
        for number in range(type.num_fields):
            yield from _unkept(type.field(number).type)
    elif not _is_kept(type):
        yield str(type)


def _is_kept(type: pa.DataType) -> bool:
    is_whole = pa.types.is_signed_integer(type) or pa.types.is_decimal128(type)
    is_text = pa.types.is_string(type) or pa.types.is_binary(type)
    is_time = pa.types.is_date32(type) or (pa.types.is_timestamp(type) and type.unit == "us")
    is_float = pa.types.is_float32(type) or pa.types.is_float64(type)
    return bool(is_whole or is_text or is_time or is_float or pa.types.is_boolean(type))


def new_columns(sink: str, table: DeltaTable, schema: pa.Schema) -> list[Field]:
    """The columns that the table lacks. Raises `PreflightRefused` for one that it has with another type, or spells
    otherwise."""
    known = {column.name: column for column in table.schema().fields}
    spelled = {name.lower(): name for name in known}
    found = []
    for column in delta_schema(sink, schema).fields:
        if (there := known.get(column.name)) is not None:
            if _bare(there) != _bare(column):
                raise PreflightRefused(
                    f"sink {sink}: column {column.name} is {_told(there)} in the table and {_told(column)} in the "
                    "output: cast it in the transform"
                )
            if _loosened(json.loads(there.to_json())["type"], _as_given(schema.field(column.name))["type"]):
                raise PreflightRefused(
                    f"sink {sink}: parts of column {column.name} may be null in the output and are NOT NULL in the "
                    "table: make them nullable there"
                )
        elif (other := spelled.get(column.name.lower())) is not None:
            raise PreflightRefused(f"sink {sink}: column {column.name} is spelled {other} in the table: rename it")
        else:
            found.append(column)
    return found


def required_columns(table: DeltaTable) -> list[str]:
    """The columns that may not be null."""
    return [column.name for column in table.schema().fields if not column.nullable]


def _told(column: Field) -> str:
    return json.dumps(_bare(column)).strip('"')


def _bare(column: Field) -> object:
    """The type without what it says of nulls."""
    return _without_nulls(json.loads(column.to_json())["type"])


def _without_nulls(type: object) -> object:
    if isinstance(type, dict):
        left_out = (*_OF_NULLS, "metadata")
        return {name: _without_nulls(value) for name, value in type.items() if name not in left_out}
    return [_without_nulls(value) for value in type] if isinstance(type, list) else type


_COLUMNS = 32  #: with bounds, as Delta's own writers have by default; the epoch's column always
_TEXT = 32  #: characters of a text that stand in the log
_LARGEST = "\U0010ffff"
_EXACT = 10**15  #: up to which JSON's readers keep decimals apart: a double has 15 digits


def plain_columns(facts: FileFacts) -> dict[str, ColumnFacts]:
    """By name, every column that holds plain values; a part of a nested one may have the same path."""
    return {column.path: column for column in facts.columns if not column.nested}


def statistics(found: FileFacts, epoch_column: str) -> str:
    """The `stats` of an `add` action."""
    facts = plain_columns(found)
    told = [name for number, name in enumerate(facts) if number < _COLUMNS or name == epoch_column]
    least = {name: value for name in told if (value := _least(facts[name])) is not None}
    greatest = {name: value for name in told if (value := _greatest(facts[name])) is not None}
    nulls = {name: facts[name].nulls for name in told if facts[name].nulls is not None}
    return json.dumps(
        {
            "numRecords": found.rows,
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
    """Milliseconds: readers expect no more."""
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
    sink: str, path: str, found: FileFacts, partition_by: Sequence[str], if_several: str = ""
) -> dict[str, str | None]:
    """The one value that all rows of a file have in each of these columns, as Delta writes it. Raises `SinkRejected`
    for a file that has several, or that doesn't tell; `if_several` says what to do about it."""
    facts: Mapping[str, ColumnFacts] = plain_columns(found) if partition_by else {}
    remedy = f": {if_several}" if if_several else ""
    return {name: _partition_value(sink, path, name, facts[name], remedy) for name in partition_by}


def _partition_value(sink: str, path: str, column: str, facts: ColumnFacts, remedy: str) -> str | None:
    if facts.nulls == facts.values:
        return None
    if facts.nulls != 0 or facts.least is None or facts.least != facts.greatest:
        raise SinkRejected(
            f"sink {sink}: rows of {path} have several values of {column}, by which the table is partitioned, and a "
            f"file belongs to one partition{remedy}"
        )
    if (text := partition_text(facts.least)) is None:
        raise SinkRejected(f"sink {sink}: {column} is {facts.least!r} in {path}, which is no value to partition by")
    return text


def partition_text(value: object) -> str | None:
    """A value to partition by as Delta writes it; None of a null, and of what is none."""
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
