"""Avro for Kafka records: schemas of Arrow types, encoding and decoding, and the registered schemas of an epoch.

The wire format is the schema registry's: a zero byte, the schema's id in four bytes, the value. Arrow converts times to
numbers, a column at a time, and everything else to Python objects; fastavro writes those. Equal values give equal bytes
at each attempt: Avro leaves a choice only in the blocks of arrays and maps, which are one here, and in the order of a
map's keys, which is the WAL's. `Schema` resolves named types, and a fault names the path of its column.
"""

from __future__ import annotations

import io
import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from pyarrow import types

from lockstep.connections.kafka.schema_registry import SchemaRegistry
from lockstep.errors import SinkRejected, TargetUnreadable

#: as JSON has it
AvroType: TypeAlias = Any
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PRIMITIVE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_UNITS = {"millis": "ms", "micros": "us", "nanos": "ns"}  #: of logical types, by how their names end
_LOGICAL = {unit: word for word, unit in _UNITS.items()}


# --- schemas of rows --------------------------------------------------------------------------------------------------


def schema_of(rows: pa.Schema, name: str) -> tuple[str, list[str]]:
    """Return a record schema of this name as JSON, the same text each time, and why some columns have no Avro type."""
    faults: list[str] = []
    return _as_text(_record(list(rows), _legal(name), "", faults)), faults


def type_of(field: pa.Field) -> tuple[str, list[str]]:
    """Return the schema of one column that is a record's key, where null is no value; otherwise like `schema_of`."""
    faults: list[str] = []
    return _as_text(_type(field.type, _legal(field.name), field.name, faults)), faults


def _as_text(avro_type: AvroType) -> str:
    return json.dumps(avro_type, separators=(",", ":"))


def _legal(name: str) -> str:
    """Return a legal record name; readers refuse the names of Avro's types."""
    legal = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{legal}" if legal in _PRIMITIVE or not _NAME.fullmatch(legal) else legal


def _record(fields: list[pa.Field], name: str, path: str, faults: list[str]) -> AvroType:
    return {"type": "record", "name": name, "fields": [_field(field, name, path, faults) for field in fields]}


def _field(field: pa.Field, record: str, path: str, faults: list[str]) -> AvroType:
    full_path = f"{path}{field.name}"
    if not _NAME.fullmatch(field.name):
        faults.append(f"{full_path}: names in Avro have ASCII letters, digits and _ only: rename it")
    avro_type = _type(field.type, f"{record}.{field.name}", full_path, faults)
    if field.nullable:
        return {"name": field.name, "type": ["null", avro_type], "default": None}
    return {"name": field.name, "type": avro_type}


def _type(dtype: pa.DataType, name: str, path: str, faults: list[str]) -> AvroType:
    """Return the Avro type of an Arrow type. `name`: the record's name, if it is one."""
    if types.is_struct(dtype):
        return _record(list(dtype), name, f"{path}.", faults)
    if _is_list(dtype):
        return {"type": "array", "items": _element(dtype.value_field, f"{name}.item", f"{path}[]", faults)}
    if types.is_map(dtype) and _is_text(dtype.key_type):
        return {"type": "map", "values": _element(dtype.item_field, f"{name}.value", f"{path}[]", faults)}
    if types.is_decimal128(dtype) and 0 <= dtype.scale <= dtype.precision:
        return {"type": "bytes", "logicalType": "decimal", "precision": dtype.precision, "scale": dtype.scale}
    if types.is_timestamp(dtype) and dtype.unit in ("ms", "us"):
        zone = "" if dtype.tz is not None else "local-"
        return {"type": "long", "logicalType": f"{zone}timestamp-{_LOGICAL[dtype.unit]}"}
    if types.is_time64(dtype) and dtype.unit == "us":
        return {"type": "long", "logicalType": "time-micros"}
    for fits, avro_type in _PLAIN:
        if fits(dtype):
            return avro_type
    faults.append(f"{path} is {dtype}, which Avro has no type for: cast it in the transform")
    return "null"


def _element(field: pa.Field, name: str, path: str, faults: list[str]) -> AvroType:
    avro_type = _type(field.type, name, path, faults)
    return ["null", avro_type] if field.nullable else avro_type


def _is_list(dtype: pa.DataType) -> bool:
    return bool(types.is_list(dtype) or types.is_large_list(dtype))


def _is_text(dtype: pa.DataType) -> bool:
    return bool(types.is_string(dtype) or types.is_large_string(dtype))


def _is_bytes(dtype: pa.DataType) -> bool:
    return bool(types.is_binary(dtype) or types.is_large_binary(dtype))


def _is_int(dtype: pa.DataType) -> bool:
    """Return True for integers of at most 32 bits."""
    return bool(types.is_integer(dtype) and dtype.bit_width <= 32 and dtype != pa.uint32())


def _is_long(dtype: pa.DataType) -> bool:
    return bool(types.is_integer(dtype) and dtype != pa.uint64())


_PLAIN: tuple[tuple[Any, AvroType], ...] = (
    (types.is_boolean, "boolean"),
    (_is_int, "int"),
    (_is_long, "long"),
    (types.is_float32, "float"),
    (types.is_float64, "double"),
    (_is_text, "string"),
    (_is_bytes, "bytes"),
    (types.is_date32, {"type": "int", "logicalType": "date"}),
)


# --- registered schemas ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Schema:
    """A registered schema. `named_types`: by full name."""

    root: AvroType
    named_types: Mapping[str, AvroType]

    def resolve(self, avro_type: AvroType) -> AvroType:
        """Resolve the name of a type; return other types unchanged."""
        return self.named_types.get(avro_type, avro_type) if isinstance(avro_type, str) else avro_type

    def value(self, avro_type: AvroType) -> tuple[AvroType, bool]:
        """Return the non-null type, and whether null is allowed. A union of several non-null types gives None."""
        avro_type = self.resolve(avro_type)
        if not isinstance(avro_type, list):
            return avro_type, avro_type == "null"
        branches = [branch for branch in avro_type if branch != "null"]
        return (self.resolve(branches[0]) if len(branches) == 1 else None), len(branches) < len(avro_type)

    def faults(self, dtype: pa.DataType, leave_out: frozenset[str] = frozenset()) -> Iterator[str]:
        """Why values of that type don't fit. `leave_out`: columns of a record that may have no field."""
        return self._faults(dtype, self.root, "", leave_out)

    def _faults(
        self, dtype: pa.DataType, avro_type: AvroType, path: str, leave_out: frozenset[str] = frozenset()
    ) -> Iterator[str]:
        resolved, place = self.value(avro_type)[0], path or "it"
        kind = kind_of(resolved)
        if resolved is None:
            yield f"{place}: the schema has a union of several types there"
        elif kind == "record" and types.is_struct(dtype):
            yield from self._faults_of_record(dtype, resolved, f"{path}." if path else "", leave_out)
        elif kind == "array" and _is_list(dtype):
            yield from self._faults(dtype.value_type, resolved["items"], f"{path}[]")
        elif kind == "map" and types.is_map(dtype) and _is_text(dtype.key_type):
            yield from self._faults(dtype.item_type, resolved["values"], f"{path}[]")
        elif not _fits(dtype, kind, resolved if isinstance(resolved, dict) else {}):
            logical = resolved.get("logicalType") if isinstance(resolved, dict) else None
            yield f"{place} is {dtype}, the schema has {kind}{f' ({logical})' if logical else ''}"

    def _faults_of_record(
        self, dtype: pa.StructType, record: AvroType, path: str, leave_out: frozenset[str]
    ) -> Iterator[str]:
        fields, columns = {item["name"]: item for item in record["fields"]}, {item.name: item.type for item in dtype}
        for name, field in fields.items():
            if name not in columns and "default" not in field:
                yield f"{path}{name} is a field of the schema, without a default, and no column"
        for name, column in columns.items():
            if name in fields:
                yield from self._faults(column, fields[name]["type"], f"{path}{name}")
            elif name not in leave_out:
                yield f"{path}{name} is no field of the schema, so it would go nowhere"


def kind_of(avro_type: AvroType) -> str:
    return str(avro_type["type"] if isinstance(avro_type, dict) else avro_type)


def unit_of(logical: str) -> str | None:
    """Return Arrow's name for the unit of a logical type for times."""
    return _UNITS.get(logical.rpartition("-")[2])


def _fits(dtype: pa.DataType, kind: str, avro_type: Mapping[str, Any]) -> bool:
    logical = avro_type.get("logicalType", "")
    if types.is_decimal(dtype):
        integer_digits, max_integer_digits = (
            dtype.precision - dtype.scale,
            avro_type.get("precision", 0) - avro_type.get("scale", 0),
        )
        fits = 0 <= dtype.scale <= avro_type.get("scale", 0) and integer_digits <= max_integer_digits
        return bool(fits) and logical == "decimal" and kind in ("bytes", "fixed")
    if types.is_timestamp(dtype):
        zone = "" if dtype.tz is not None else "local-"
        return kind == "long" and logical in {f"{zone}timestamp-{word}" for word in _UNITS}
    if types.is_time(dtype):
        return (kind, logical) in {("int", "time-millis"), ("long", "time-micros")}
    if types.is_date32(dtype):
        return (kind, logical) == ("int", "date")
    if logical in ("decimal", "date") or unit_of(logical) is not None:
        return False
    return kind in _BY_KIND and bool(_BY_KIND[kind](dtype))


_BY_KIND: Mapping[str, Any] = {
    "null": types.is_null,
    "boolean": types.is_boolean,
    "int": _is_int,
    "long": _is_long,
    "float": types.is_float32,
    "double": lambda dtype: types.is_float32(dtype) or types.is_float64(dtype),
    "string": _is_text,
    "enum": _is_text,
    "bytes": _is_bytes,
    "fixed": lambda dtype: _is_bytes(dtype) or types.is_fixed_size_binary(dtype),
}


_PREFIX = struct.Struct(">bI")
_MAGIC = 0
_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_WHY = (
    "null where it allows none, more digits or parts of a second than it keeps, no symbol of it, or a map's key twice"
)


@dataclass(frozen=True)
class AvroWriter:
    """Writes values by one registered schema, given by `id` and `text`."""

    id: int
    text: str

    def faults(self, dtype: pa.DataType, leave_out: frozenset[str] = frozenset()) -> Iterator[str]:
        """Why values of that type don't fit. `leave_out`: columns of a record that may have no field."""
        return self.schema.faults(dtype, leave_out)

    def encode(self, column: pa.Array, name: Callable[[int], str]) -> pa.Array:
        """Return the bytes of each value; null stays null. `name`: returns a row's name for messages, by its position.
        Raises `SinkRejected` for a value that doesn't fit."""
        if not len(column):
            return pa.array([], pa.binary())
        try:
            return pa.array(self._encoded(column), pa.binary())
        except Exception:  # whatever fastavro and Arrow raise: their texts quote the value
            raise self._refusal(column, name) from None

    def _encoded(self, column: pa.Array) -> list[bytes | None]:
        values = plain_values(column.drop_null(), self.schema, self.schema.root)
        return _spread(column, map(self._written, values))

    def _written(self, value: Any) -> bytes:
        out = io.BytesIO()
        out.write(_PREFIX.pack(_MAGIC, self.id))
        schemaless_writer(out, self.schema.root, value)
        return out.getvalue()

    def _refusal(self, column: pa.Array, name: Callable[[int], str]) -> SinkRejected:
        for place in range(len(column)):
            value = column.slice(place, 1)
            if not self.takes(value):
                fields = self._unfit_fields(value) if types.is_struct(column.type) else []
                where = f" of {', '.join(fields)}" if fields else ""
                return SinkRejected(f"{name(place)}: a value{where} doesn't fit schema {self.id}: {_WHY}")
        return SinkRejected(f"{name(0)}, or one behind it: a value doesn't fit schema {self.id}")

    def is_one(self) -> bool:
        """Return True if the text parses as a schema of its own."""
        try:
            return self.schema is not None
        except Exception:
            return False

    def takes(self, column: pa.Array) -> bool:
        """Return True if every value fits."""
        try:
            self._encoded(column)
        except Exception:
            return False
        return True

    def _unfit_fields(self, row: pa.StructArray) -> list[str]:
        """Return the columns of a row that don't fit, as far as they can be checked one by one."""
        schema = json.loads(self.text)
        fields = {field["name"]: field for field in schema["fields"]} if isinstance(schema, dict) else {}
        unfit = []
        for field, column in zip(row.type, row.flatten(), strict=True):
            if field.name in fields:
                alone = {"type": "record", "name": "alone", "fields": [fields[field.name]]}
                writer = AvroWriter(self.id, json.dumps(alone))
                if writer.is_one() and not writer.takes(pa.StructArray.from_arrays([column], [field.name])):
                    unfit.append(field.name)
        return unfit

    @cached_property
    def schema(self) -> Schema:
        named_types: dict[str, Any] = {}
        return Schema(parse_schema(json.loads(self.text), named_schemas=named_types), named_types)


def plain_values(column: pa.Array, schema: Schema, avro_type: AvroType) -> list[Any]:
    """Return each value as fastavro takes it: dicts, lists, and numbers for times. Raises `ValueError` for null where
    it isn't allowed (fastavro would write false) and for a map with a key twice; Arrow raises for a time that has no
    exact number."""
    resolved, nullable = schema.value(avro_type)
    if not column.null_count:
        return _non_null_values(column, schema, resolved)
    if not nullable:
        raise ValueError("null")
    return _spread(column, _non_null_values(column.drop_null(), schema, resolved))


def _non_null_values(column: pa.Array, schema: Schema, resolved: AvroType) -> list[Any]:
    """Convert a column without nulls."""
    dtype = column.type
    if not len(column):
        return []
    if types.is_struct(dtype):
        fields = {field["name"]: field["type"] for field in resolved["fields"]}
        names = [field.name for field in dtype if field.name in fields]
        columns = [
            plain_values(child, schema, fields[field.name])
            for field, child in zip(dtype, column.flatten(), strict=True)
            if field.name in fields
        ]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        return rows or [{} for _ in range(len(column))]
    if types.is_list(dtype) or types.is_large_list(dtype):
        within, spans = _extent(column)
        items = plain_values(column.values[within], schema, resolved["items"])
        return [items[span] for span in spans]
    if types.is_map(dtype):
        within, spans = _extent(column)
        keys, values = column.keys[within].to_pylist(), plain_values(column.items[within], schema, resolved["values"])
        maps = [dict(zip(keys[span], values[span], strict=True)) for span in spans]
        if sum(map(len, maps)) != len(keys):
            raise ValueError("a key twice")
        return maps
    if types.is_temporal(dtype):
        return list(_numbers(column, resolved).to_pylist())
    return list(column.to_pylist())


def _spread(column: pa.Array, values: Iterable[Any]) -> list[Any]:
    """Put the values at the positions of the column that aren't null; the others get None."""
    rest = iter(values)
    return [next(rest) if valid else None for valid in column.is_valid().to_pylist()]


def _extent(column: pa.Array) -> tuple[slice, list[slice]]:
    """Return the slice of the items that these lists use, and each list's slice within it."""
    ends = column.offsets.to_pylist()
    first = ends[0]
    return slice(first, ends[-1]), [slice(start - first, end - first) for start, end in pairwise(ends)]


def _numbers(column: pa.Array, resolved: AvroType) -> pa.Array:
    """Return days, or the number of the logical type's units, since 1970 or midnight."""
    if types.is_date32(column.type):
        return column.cast(pa.int32())
    unit = unit_of(resolved["logicalType"])
    if types.is_timestamp(column.type):
        return column.cast(pa.timestamp(unit, column.type.tz)).cast(pa.int64())
    if unit == "ms":
        return column.cast(pa.time32(unit)).cast(pa.int32())
    return column.cast(pa.time64(unit)).cast(pa.int64())


# --- back ------------------------------------------------------------------------------------------------------------


class AvroReaders:
    """Reads values that were written by any of the registered schemas, given as JSON by id."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        self._writers = {id: AvroWriter(id, text) for id, text in texts.items()}

    def decode(self, bodies: Sequence[bytes | None], dtype: pa.DataType) -> pa.Array:
        """Return the values; None gives null. Raises `TargetUnreadable` for bytes that these schemas can't have
        written."""
        by_id: dict[int, _Reader] = {}
        try:
            values: list[Any] = []
            for body in bodies:
                if body is None:
                    values.append(None)
                    continue
                id = int(_PREFIX.unpack_from(body)[1])
                if id not in by_id:
                    by_id[id] = _Reader(self._writers[id], dtype)
                values.append(by_id[id].value(body))
            return pa.array(values, dtype)
        except KeyError as error:
            raise TargetUnreadable(f"the registry has no schema or no field {error} of these records") from None
        except Exception as error:  # whatever fastavro and Arrow raise: their texts quote the value
            raise TargetUnreadable(f"a record isn't Avro of {dtype}: {type(error).__name__}") from None


class _Reader:
    """Reads values that were written by one schema."""

    def __init__(self, writer: AvroWriter, dtype: pa.DataType) -> None:
        self._schema, self._dtype = writer.schema, dtype
        self._parsed = parse_schema(_without_times(json.loads(writer.text)))

    def value(self, body: bytes) -> Any:
        decoded = schemaless_reader(io.BytesIO(body[_PREFIX.size :]), self._parsed)
        return self._to_arrow(decoded, self._dtype, self._schema.root)

    def _to_arrow(self, value: Any, dtype: pa.DataType, avro_type: AvroType) -> Any:
        if value is None:
            return None
        resolved, _ = self._schema.value(avro_type)
        if types.is_struct(dtype):
            fields = {field["name"]: field["type"] for field in resolved["fields"]}
            return {item.name: self._to_arrow(value[item.name], item.type, fields[item.name]) for item in dtype}
        if types.is_list(dtype) or types.is_large_list(dtype):
            return [self._to_arrow(item, dtype.value_type, resolved["items"]) for item in value]
        if types.is_map(dtype):
            return [(key, self._to_arrow(item, dtype.item_type, resolved["values"])) for key, item in value.items()]
        if types.is_timestamp(dtype) or types.is_time(dtype):
            wide, narrow = _PER_SECOND[dtype.unit], _PER_SECOND[unit_of(resolved["logicalType"]) or dtype.unit]
            return value * wide // narrow
        return value


def _without_times(avro_type: AvroType) -> AvroType:
    """Return the schema without logical types for times, so that these are read as numbers."""
    if isinstance(avro_type, list):
        return [_without_times(item) for item in avro_type]
    if not isinstance(avro_type, dict):
        return avro_type
    copy = {name: value for name, value in avro_type.items() if name != "logicalType" or value == "decimal"}
    copy |= {part: _without_times(copy[part]) for part in ("type", "items", "values") if part in copy}
    if "fields" in copy:
        copy["fields"] = [{**item, "type": _without_times(item["type"])} for item in copy["fields"]]
    return copy


# --- the schemas of an epoch, found or registered before the vote ------------------------------------------------

Subjects = Mapping[str, str]  #: by topic


@dataclass(frozen=True)
class Writers:
    """The Avro writers of values and keys, by topic; empty for a part that isn't Avro."""

    values: Mapping[str, AvroWriter]
    keys: Mapping[str, AvroWriter]

    def to_text(self) -> str:
        """Return them as JSON for the vote, so that publishing doesn't need the registry."""
        schemas = {writer.id: writer.text for part in (self.values, self.keys) for writer in part.values()}
        ids = [{topic: writer.id for topic, writer in part.items()} for part in (self.values, self.keys)]
        return json.dumps({"schemas": schemas, "values": ids[0], "keys": ids[1]}, separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> Writers:
        fields = json.loads(text)
        writers = {int(id): AvroWriter(int(id), schema) for id, schema in fields["schemas"].items()}
        values, keys = ({topic: writers[id] for topic, id in fields[part].items()} for part in ("values", "keys"))
        return cls(values, keys)


@dataclass(frozen=True)
class Schemas:
    """The schemas of a sink. `connect`: returns the registry; publishing works without its login. `values`, `keys`: the
    subjects of the parts that are Avro. `register`: make a schema of the rows and register it; otherwise the subject's
    newest schema has to fit."""

    connect: Callable[[], SchemaRegistry]
    values: Subjects
    keys: Subjects
    register: bool

    @cached_property
    def registry(self) -> SchemaRegistry:
        return self.connect()

    def require_there(self) -> None:
        """Raise the asker's `refused` for a missing subject, unless schemas are registered."""
        if not self.register:
            for subject in self._subjects:
                self.registry.latest(subject)

    def find(self, output: str, rows: pa.Schema, key: pa.Field | None) -> Writers:
        """Return the writers. `rows`: the columns of a value; `key`: the column of the key. Raises the asker's
        `refused` with every column that doesn't fit, and what the registry raises."""
        if self.values and not len(rows):
            self._require_none(f"output {output}", ["no column is left for the value"])
        value_type, leave_out = pa.struct(list(rows)), frozenset({key.name} if key is not None else ())
        values = {
            subject: self._writer(subject, schema_of(rows, output), value_type, leave_out, output)
            for subject in sorted(set(self.values.values()))
        }
        keys = {
            subject: self._writer(subject, type_of(key), key.type, frozenset(), output)
            for subject in sorted(set(self.keys.values()))
            if key is not None
        }
        return Writers(
            {topic: values[subject] for topic, subject in self.values.items()},
            {topic: keys[subject] for topic, subject in self.keys.items()},
        )

    def readers(self) -> AvroReaders:
        """Return readers of everything that was written under these subjects."""
        return AvroReaders(self.registry.schemas_of(self._subjects))

    @property
    def _subjects(self) -> list[str]:
        return sorted({*self.values.values(), *self.keys.values()})

    def _writer(
        self,
        subject: str,
        schema_and_faults: tuple[str, list[str]],
        dtype: pa.DataType,
        leave_out: frozenset[str],
        output: str,
    ) -> AvroWriter:
        text, faults = schema_and_faults
        if self.register:
            self._require_none(f"output {output} has no schema", faults)
            registered = self.registry.register(subject, text)
        else:
            registered = self.registry.latest(subject)
        writer = AvroWriter(registered.id, registered.schema)
        try:
            misfits = list(writer.faults(dtype, leave_out))
        except Exception as error:  # whatever fastavro raises for a schema that it can't parse
            misfits = [f"it can't be parsed: {type(error).__name__}"]
        self._require_none(f"output {output} doesn't fit schema {registered.id} of subject {subject}", misfits)
        return writer

    def _require_none(self, what: str, faults: Iterable[str]) -> None:
        if text := "; ".join(faults):
            raise self.registry.who.refused(f"{self.registry.who.name}: {what}: {text}")
