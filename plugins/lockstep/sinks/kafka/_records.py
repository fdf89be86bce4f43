"""Rows as Kafka records: which column is the key, which the value, and what a row's header says.

The header `lockstep` is "<deployment>/<pipeline>/<output>/<epoch>/<ordinal>", the same at every try, as in the records
of append-only targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lockstep.errors import SinkRejected
from lockstep.kafka.producers import NO_PARTITION, NO_TIME, Record
from lockstep.sinks.append_only.records import ENVELOPE, Origin
from lockstep.sinks.json_rows import json_columns, json_objects
from lockstep.sinks.values import Batches

HEADER = ENVELOPE


@dataclass(frozen=True)
class Records:
    """The records of one batch by column, in the order of the WAL: binary but for `times` and `partitions`. `first`:
    the ordinal of the first one within the output."""

    output: str
    first: int
    keys: pa.Array | None
    values: pa.Array
    partitions: pa.Array | None
    times: pa.Array | None
    headers: pa.Array

    def __len__(self) -> int:
        return len(self.headers)

    def __iter__(self) -> Iterator[Record]:
        return zip(
            _values(self.keys, None),
            self.values.to_pylist(),
            _values(self.partitions, NO_PARTITION),
            _values(self.times, NO_TIME),
            self.headers.to_pylist(),
            strict=False,  # what is left away has no end
        )

    def name(self, place: int) -> str:
        return _name(self.output, self.first + place)


def _values(column: pa.Array | None, default: Any) -> Any:
    return repeat(default) if column is None else column.to_pylist()


@dataclass(frozen=True)
class RecordColumns:
    """The columns that a record is made of. `value` None: a JSON object of all but `timestamp` and `partition`."""

    key: str | None = None
    value: str | None = None
    timestamp: str | None = None
    partition: str | None = None

    def faults(self, schema: pa.Schema) -> Iterator[str]:
        """Why rows of this schema can't be such records."""
        for role, name in (("key", self.key), ("value", self.value)):
            if name is not None and (problem := _why_no_bytes(schema, name)):
                yield f"{role}={name!r}: {problem}"
        if self.timestamp is not None and not _is(schema, self.timestamp, types.is_timestamp):
            yield f"timestamp={self.timestamp!r} is no timestamp column"
        if self.value is not None and (lost := sorted(set(schema.names) - {self.key, *self._others()})):
            yield f"{', '.join(lost)} would go nowhere: value={self.value!r} is all that a record has"
        if self.partition is not None and not _is(schema, self.partition, types.is_integer):
            yield f"partition={self.partition!r} is no column of whole numbers"

    def records(self, batches: Batches, origin: Origin) -> Iterator[Records]:
        """Every row in the order of the WAL. Raises `SinkRejected`."""
        prefix = origin.key(0)[:-1]
        ordinal = 0
        for batch in batches:
            yield self._records(batch, batches.output, ordinal, prefix)
            ordinal += batch.num_rows
        if ordinal != batches.rows:
            raise SinkRejected(f"output {batches.output}: the WAL gave {ordinal} rows, {batches.rows} are sealed")

    def rows(self, messages: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
        """What `records` made these messages from. Raises `TargetUnreadable` for types that JSON doesn't give back."""
        bodies = None if self.value else json_columns([one.value() for one in messages], schema)
        arrays = []
        for field in schema:
            if field.name == self.timestamp:
                arrays.append(_times([one.timestamp()[1] for one in messages], field.type))
            elif field.name == self.partition:
                arrays.append(pa.array([one.partition() for one in messages], field.type))
            elif bodies is not None:
                arrays.append(bodies[field.name])
            else:
                from_key = field.name == self.key
                values = [one.key() if from_key else one.value() for one in messages]
                arrays.append(pa.array(values, pa.binary()).cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _records(self, batch: pa.RecordBatch, output: str, first: int, prefix: str) -> Records:
        where = f"output {output}"
        return Records(
            output,
            first,
            batch.column(self.key).cast(pa.binary()) if self.key else None,
            batch.column(self.value).cast(pa.binary()) if self.value else json_objects(self._body(batch), where, first),
            batch.column(self.partition) if self.partition else None,
            _milliseconds(batch.column(self.timestamp), output, first) if self.timestamp else None,
            _header_column(prefix, first, batch.num_rows),
        )

    def _others(self) -> set[str | None]:
        return {self.value, self.timestamp, self.partition}

    def _body(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        kept = [name for name in batch.schema.names if name not in (self.timestamp, self.partition)]
        return batch.select(kept)


def _why_no_bytes(schema: pa.Schema, name: str) -> str | None:
    if schema.get_field_index(name) < 0:
        return f"the output has no such column, only {', '.join(schema.names)}"
    dtype = schema.field(name).type
    fits = (
        types.is_string(dtype) or types.is_large_string(dtype) or types.is_binary(dtype) or types.is_large_binary(dtype)
    )
    return None if fits else f"its type is {dtype}, not text or bytes: cast it in the transform"


def _is(schema: pa.Schema, name: str, fits: object) -> bool:
    return schema.get_field_index(name) >= 0 and bool(fits(schema.field(name).type))  # type: ignore[operator]


def _header_column(prefix: str, first: int, rows: int) -> pa.Array:
    ordinals = pa.array(range(first, first + rows), pa.int64()).cast(pa.string())
    return pc.binary_join_element_wise(prefix, ordinals, "").cast(pa.binary())


def _milliseconds(column: pa.Array, output: str, first: int) -> pa.Array:
    """Raises `SinkRejected` for what a record's time can't say: null, parts of a millisecond, times before 1970."""
    whole = pc.cast(column, pa.timestamp("ms", column.type.tz), safe=False)
    exact = pc.fill_null(pc.equal(pc.cast(whole, column.type, safe=False), column), True)
    if (place := pc.index(exact, False).as_py()) >= 0:
        raise SinkRejected(
            f"{_name(output, first + place)}: a record's time has milliseconds: use date_trunc('millisecond', …) in "
            "the transform"
        )
    found = whole.cast(pa.int64())
    after_1970 = pc.fill_null(pc.greater(found, 0), False)
    if (place := pc.index(after_1970, False).as_py()) >= 0:
        raise SinkRejected(f"{_name(output, first + place)}: a record's time can't be null, nor before 1970")
    return found


def _name(output: str, ordinal: int) -> str:
    """How a message names a row, without anything that stands in it."""
    return f"output {output}, row {ordinal} (the first is 0)"


def _times(milliseconds: list[int], dtype: pa.TimestampType) -> pa.Array:
    return pa.array(milliseconds, pa.int64()).cast(pa.timestamp("ms", dtype.tz)).cast(dtype)
