"""Rows as Kafka records: which column is the key, which the value, and what a row's header says.

The header `lockstep` is "<deployment>/<pipeline>/<output>/<epoch>/<ordinal>", the same at every try, as in the records
of append-only targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lockstep.errors import SinkRejected
from lockstep.sinks.append_only.records import ENVELOPE, Origin, json_lines
from lockstep.sinks.base import Batches
from lockstep.sinks.kafka.bodies import json_columns

HEADER = ENVELOPE


@dataclass(frozen=True, slots=True)
class KafkaRecord:
    """`timestamp`: milliseconds since 1970, 0 leaves it to the broker; `partition` -1 leaves it to the partitioner."""

    key: bytes | None
    value: bytes | None
    timestamp: int = 0
    partition: int = -1
    header: bytes | None = None

    def arguments(self) -> dict[str, Any]:
        """What `Producer.produce` takes."""
        return {
            "key": self.key,
            "value": self.value,
            "timestamp": self.timestamp,
            "partition": self.partition,
            "headers": [(HEADER, self.header)] if self.header is not None else None,
        }

    @property
    def name(self) -> str:
        return (self.header or b"").decode()

    @property
    def size(self) -> int:
        """Bytes of it that a limit counts; the format's own come on top."""
        return len(self.key or b"") + len(self.value or b"") + len(HEADER) + len(self.header or b"")


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

    def check(self, batches: Batches, origin: Origin, most_bytes: int, partitions: int) -> int:
        """The rows, once every record is found to be one that brokers take. Raises `SinkRejected`, naming the first."""
        rows = 0
        for record in self.records(batches, origin):
            if record.size > most_bytes:
                raise SinkRejected(
                    f"record {record.name} has {record.size} bytes, the topic's max.message.bytes leaves {most_bytes}"
                )
            if not -1 <= record.partition < partitions:
                raise SinkRejected(
                    f"record {record.name} is for partition {record.partition}, the topic has {partitions}"
                )
            rows += 1
        return rows

    def records(self, batches: Batches, origin: Origin) -> Iterator[KafkaRecord]:
        """Every row in the order of the WAL. Raises `SinkRejected`."""
        prefix = origin.key(0)[:-1]
        ordinal = 0
        for batch in batches:
            for key, value, timestamp, partition in self._columns(batch, batches.output):
                yield KafkaRecord(key, value, timestamp, partition, f"{prefix}{ordinal}".encode())
                ordinal += 1
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

    def _columns(self, batch: pa.RecordBatch, output: str) -> Iterator[tuple[bytes | None, bytes | None, int, int]]:
        nothing = [None] * batch.num_rows
        keys = _bytes(batch.column(self.key)) if self.key else nothing
        values = _bytes(batch.column(self.value)) if self.value else json_lines(self._body(batch), f"output {output}")
        times = _milliseconds(batch.column(self.timestamp)) if self.timestamp else [0] * batch.num_rows
        partitions = batch.column(self.partition).to_pylist() if self.partition else [-1] * batch.num_rows
        return zip(keys, values, times, partitions, strict=True)

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


def _bytes(column: pa.Array) -> list[bytes | None]:
    found: list[bytes | None] = column.cast(pa.binary()).to_pylist()
    return found


def _milliseconds(column: pa.Array) -> list[int]:
    """Raises `SinkRejected` for what a record's time can't say: null, parts of a millisecond, times before 1970."""
    try:
        exact = pc.cast(column, pa.timestamp("ms", column.type.tz)).cast(pa.int64())
    except pa.ArrowInvalid:
        raise SinkRejected(
            "a record's time has milliseconds: use date_trunc('millisecond', …) in the transform"
        ) from None
    if column.null_count or (len(column) and pc.min(exact).as_py() <= 0):
        raise SinkRejected("a record's time can't be null, nor before 1970")
    found: list[int] = exact.to_pylist()
    return found


def _times(milliseconds: list[int], dtype: pa.TimestampType) -> pa.Array:
    return pa.array(milliseconds, pa.int64()).cast(pa.timestamp("ms", dtype.tz)).cast(dtype)
