"""Values of Arrow's as Avro in a schema registry's wire format, and back: 0, the schema's id in four bytes, the value.

Arrow makes numbers of times, a column at a time, and Python objects of the rest; fastavro writes those. The same values
give the same bytes at every try: Avro leaves a choice only in the blocks of arrays and maps, which are one here, and in
the order of a map's keys, which is the WAL's.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from pyarrow import types

from lockstep.errors import SinkRejected, TargetUnreadable
from lockstep.sinks.kafka._avro_types import AvroType, Schema, unit_of

_PREFIX = struct.Struct(">bI")
_MAGIC = 0
_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_WHY = (
    "null where it allows none, more digits or parts of a second than it keeps, no symbol of it, or a map's key twice"
)


@dataclass(frozen=True)
class AvroWriter:
    """Writes values by one schema of a registry: its `id`, and its text."""

    id: int
    text: str

    def faults(self, dtype: pa.DataType, leave_out: frozenset[str] = frozenset()) -> Iterator[str]:
        """Why values of that type don't fit. `leave_out`: columns of a record that may have no field."""
        return self.schema.faults(dtype, leave_out)

    def encode(self, column: pa.Array, name: Callable[[int], str]) -> pa.Array:
        """The bytes of each value, nothing of a null one. `name`: of the row in that place, for messages. Raises
        `SinkRejected` for a value that doesn't fit."""
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
            one = column.slice(place, 1)
            if not self.takes(one):
                found = self._strange_fields(one) if types.is_struct(column.type) else []
                where = f" of {', '.join(found)}" if found else ""
                return SinkRejected(f"{name(place)}: a value{where} doesn't fit schema {self.id}: {_WHY}")
        return SinkRejected(f"{name(0)}, or one behind it: a value doesn't fit schema {self.id}")

    def is_one(self) -> bool:
        """Whether its text is a schema by itself."""
        try:
            return self.schema is not None
        except Exception:
            return False

    def takes(self, column: pa.Array) -> bool:
        """Whether every value fits."""
        try:
            self._encoded(column)
        except Exception:
            return False
        return True

    def _strange_fields(self, one: pa.StructArray) -> list[str]:
        """Which of a row's columns alone don't fit, as far as that can be told."""
        told = json.loads(self.text)
        fields = {field["name"]: field for field in told["fields"]} if isinstance(told, dict) else {}
        found = []
        for field, column in zip(one.type, one.flatten(), strict=True):
            if field.name in fields:
                alone = {"type": "record", "name": "alone", "fields": [fields[field.name]]}
                writer = AvroWriter(self.id, json.dumps(alone))
                if writer.is_one() and not writer.takes(pa.StructArray.from_arrays([column], [field.name])):
                    found.append(field.name)
        return found

    @cached_property
    def schema(self) -> Schema:
        named: dict[str, Any] = {}
        return Schema(parse_schema(json.loads(self.text), named_schemas=named), named)


def plain_values(column: pa.Array, schema: Schema, found: AvroType) -> list[Any]:
    """Each value as fastavro takes it: dicts, lists, and numbers for times. Raises `ValueError` for null where none may
    be, of which fastavro would make false, and for a map that has a key twice; what Arrow raises for a time that has no
    such number."""
    told, nullable = schema.value(found)
    if not column.null_count:
        return _whole_values(column, schema, told)
    if not nullable:
        raise ValueError("null")
    return _spread(column, _whole_values(column.drop_null(), schema, told))


def _whole_values(column: pa.Array, schema: Schema, told: AvroType) -> list[Any]:
    """Of a column without nulls."""
    dtype = column.type
    if not len(column):
        return []
    if types.is_struct(dtype):
        fields = {field["name"]: field["type"] for field in told["fields"]}
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
        items = plain_values(column.values[within], schema, told["items"])
        return [items[one] for one in spans]
    if types.is_map(dtype):
        within, spans = _extent(column)
        keys, values = column.keys[within].to_pylist(), plain_values(column.items[within], schema, told["values"])
        maps = [dict(zip(keys[one], values[one], strict=True)) for one in spans]
        if sum(map(len, maps)) != len(keys):
            raise ValueError("a key twice")
        return maps
    if types.is_temporal(dtype):
        return list(_numbers(column, told).to_pylist())
    return list(column.to_pylist())


def _spread(column: pa.Array, values: Iterable[Any]) -> list[Any]:
    """The values, which are those of a column's places that aren't null, each in its place."""
    rest = iter(values)
    return [next(rest) if valid else None for valid in column.is_valid().to_pylist()]


def _extent(column: pa.Array) -> tuple[slice, list[slice]]:
    """What of the items, which may be those of a longer column, these lists have, and which of that each has."""
    ends = column.offsets.to_pylist()
    first = ends[0]
    return slice(first, ends[-1]), [slice(start - first, end - first) for start, end in pairwise(ends)]


def _numbers(column: pa.Array, told: AvroType) -> pa.Array:
    """Days, or how many of the logical type's units since the beginning."""
    if types.is_date32(column.type):
        return column.cast(pa.int32())
    unit = unit_of(told["logicalType"])
    if types.is_timestamp(column.type):
        return column.cast(pa.timestamp(unit, column.type.tz)).cast(pa.int64())
    if unit == "ms":
        return column.cast(pa.time32(unit)).cast(pa.int32())
    return column.cast(pa.time64(unit)).cast(pa.int64())


# --- back ------------------------------------------------------------------------------------------------------------


class AvroReaders:
    """Reads what was written by any of a registry's schemas, which are known by id, as JSON."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        self._writers = {id: AvroWriter(id, text) for id, text in texts.items()}

    def decode(self, bodies: Sequence[bytes | None], dtype: pa.DataType) -> pa.Array:
        """The values; no bytes are null. Raises `TargetUnreadable` for what these schemas can't have written."""
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
    """Of what was written by one schema."""

    def __init__(self, writer: AvroWriter, dtype: pa.DataType) -> None:
        self._schema, self._dtype = writer.schema, dtype
        self._told = parse_schema(_without_times(json.loads(writer.text)))

    def value(self, body: bytes) -> Any:
        found = schemaless_reader(io.BytesIO(body[_PREFIX.size :]), self._told)
        return self._as_arrow_takes_it(found, self._dtype, self._schema.root)

    def _as_arrow_takes_it(self, value: Any, dtype: pa.DataType, found: AvroType) -> Any:
        if value is None:
            return None
        told, _ = self._schema.value(found)
        if types.is_struct(dtype):
            fields = {field["name"]: field["type"] for field in told["fields"]}
            return {one.name: self._as_arrow_takes_it(value[one.name], one.type, fields[one.name]) for one in dtype}
        if types.is_list(dtype) or types.is_large_list(dtype):
            return [self._as_arrow_takes_it(one, dtype.value_type, told["items"]) for one in value]
        if types.is_map(dtype):
            return [(key, self._as_arrow_takes_it(one, dtype.item_type, told["values"])) for key, one in value.items()]
        if types.is_timestamp(dtype) or types.is_time(dtype):
            wide, narrow = _PER_SECOND[dtype.unit], _PER_SECOND[unit_of(told["logicalType"]) or dtype.unit]
            return value * wide // narrow
        return value


def _without_times(found: AvroType) -> AvroType:
    """The same schema, by which times are read as the numbers that they are."""
    if isinstance(found, list):
        return [_without_times(one) for one in found]
    if not isinstance(found, dict):
        return found
    kept = {name: value for name, value in found.items() if name != "logicalType" or value == "decimal"}
    kept |= {part: _without_times(kept[part]) for part in ("type", "items", "values") if part in kept}
    if "fields" in kept:
        kept["fields"] = [{**one, "type": _without_times(one["type"])} for one in kept["fields"]]
    return kept
