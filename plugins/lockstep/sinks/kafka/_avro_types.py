"""Avro's types and Arrow's: which schema rows of a type have, and whether they fit one that is there.

A fault is told by the path of its column. `Schema` resolves named types, so that everything here sees them whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import types

#: as JSON has it
AvroType: TypeAlias = Any
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PRIMITIVE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_UNITS = {"millis": "ms", "micros": "us", "nanos": "ns"}  #: of logical types, by how their names end
_LOGICAL = {unit: word for word, unit in _UNITS.items()}


# --- of rows ---------------------------------------------------------------------------------------------------------


def schema_of(rows: pa.Schema, name: str) -> tuple[str, list[str]]:
    """A record by that name as JSON, and why there is none for some of the columns. The same text each time."""
    faults: list[str] = []
    return _as_text(_record(list(rows), _legal(name), "", faults)), faults


def type_of(field: pa.Field) -> tuple[str, list[str]]:
    """As `schema_of`, of one column by itself, where null is no value: a record's key."""
    faults: list[str] = []
    return _as_text(_type(field.type, _legal(field.name), field.name, faults)), faults


def _as_text(found: AvroType) -> str:
    return json.dumps(found, separators=(",", ":"))


def _legal(name: str) -> str:
    """A record's by itself: no reader takes one that is called as a type of Avro's."""
    found = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{found}" if found in _PRIMITIVE or not _NAME.fullmatch(found) else found


def _record(fields: list[pa.Field], name: str, path: str, faults: list[str]) -> AvroType:
    return {"type": "record", "name": name, "fields": [_field(one, name, path, faults) for one in fields]}


def _field(field: pa.Field, record: str, path: str, faults: list[str]) -> AvroType:
    whole = f"{path}{field.name}"
    if not _NAME.fullmatch(field.name):
        faults.append(f"{whole}: names in Avro have letters of ASCII, digits and _ alone: call it otherwise")
    found = _type(field.type, f"{record}.{field.name}", whole, faults)
    if field.nullable:
        return {"name": field.name, "type": ["null", found], "default": None}
    return {"name": field.name, "type": found}


def _type(dtype: pa.DataType, name: str, path: str, faults: list[str]) -> AvroType:
    """`name`: of a record, if it is one."""
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
    for fits, found in _PLAIN:
        if fits(dtype):
            return found
    faults.append(f"{path} is {dtype}, which Avro has no type for: cast it in the transform")
    return "null"


def _element(field: pa.Field, name: str, path: str, faults: list[str]) -> AvroType:
    found = _type(field.type, name, path, faults)
    return ["null", found] if field.nullable else found


def _is_list(dtype: pa.DataType) -> bool:
    return bool(types.is_list(dtype) or types.is_large_list(dtype))


def _is_text(dtype: pa.DataType) -> bool:
    return bool(types.is_string(dtype) or types.is_large_string(dtype))


def _is_bytes(dtype: pa.DataType) -> bool:
    return bool(types.is_binary(dtype) or types.is_large_binary(dtype))


def _is_int(dtype: pa.DataType) -> bool:
    """Whether it is one of 32 bits."""
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


# --- of a registry ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Schema:
    """One that is there. `named`: its named types, by their full names."""

    root: AvroType
    named: Mapping[str, AvroType]

    def whole(self, found: AvroType) -> AvroType:
        """What a name stands for; everything else as it is."""
        return self.named.get(found, found) if isinstance(found, str) else found

    def value(self, found: AvroType) -> tuple[AvroType, bool]:
        """What a type is where it isn't null, and whether it may be; a union of several others is None."""
        found = self.whole(found)
        if not isinstance(found, list):
            return found, found == "null"
        others = [one for one in found if one != "null"]
        return (self.whole(others[0]) if len(others) == 1 else None), len(others) < len(found)

    def faults(self, dtype: pa.DataType, leave_out: frozenset[str] = frozenset()) -> Iterator[str]:
        """Why values of that type don't fit. `leave_out`: columns of a record that may have no field."""
        return self._faults(dtype, self.root, "", leave_out)

    def _faults(
        self, dtype: pa.DataType, found: AvroType, path: str, leave_out: frozenset[str] = frozenset()
    ) -> Iterator[str]:
        told, here = self.value(found)[0], path or "it"
        kind = kind_of(told)
        if told is None:
            yield f"{here}: the schema has a union of several types there"
        elif kind == "record" and types.is_struct(dtype):
            yield from self._faults_of_record(dtype, told, f"{path}." if path else "", leave_out)
        elif kind == "array" and _is_list(dtype):
            yield from self._faults(dtype.value_type, told["items"], f"{path}[]")
        elif kind == "map" and types.is_map(dtype) and _is_text(dtype.key_type):
            yield from self._faults(dtype.item_type, told["values"], f"{path}[]")
        elif not _fits(dtype, kind, told if isinstance(told, dict) else {}):
            logical = told.get("logicalType") if isinstance(told, dict) else None
            yield f"{here} is {dtype}, the schema has {kind}{f' ({logical})' if logical else ''}"

    def _faults_of_record(
        self, dtype: pa.StructType, told: AvroType, path: str, leave_out: frozenset[str]
    ) -> Iterator[str]:
        fields, columns = {one["name"]: one for one in told["fields"]}, {one.name: one.type for one in dtype}
        for name, field in fields.items():
            if name not in columns and "default" not in field:
                yield f"{path}{name} is a field of the schema, without a default, and no column"
        for name, column in columns.items():
            if name in fields:
                yield from self._faults(column, fields[name]["type"], f"{path}{name}")
            elif name not in leave_out:
                yield f"{path}{name} is no field of the schema, so it would go nowhere"


def kind_of(told: AvroType) -> str:
    return str(told["type"] if isinstance(told, dict) else told)


def unit_of(logical: str) -> str | None:
    """Arrow's word for the unit of a logical type of times."""
    return _UNITS.get(logical.rpartition("-")[2])


def _fits(dtype: pa.DataType, kind: str, told: Mapping[str, Any]) -> bool:
    logical = told.get("logicalType", "")
    if types.is_decimal(dtype):
        whole, most = dtype.precision - dtype.scale, told.get("precision", 0) - told.get("scale", 0)
        fits = 0 <= dtype.scale <= told.get("scale", 0) and whole <= most
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
