"""Rows as Kafka records: which column is the key, which the value, and what a row's header says.

The header `lockstep` is "<deployment>/<pipeline>/<output>/<epoch>/<ordinal>", the same at every try, as in the records
of append-only targets. `lockstep-replaces` names the epochs whose place a record's own takes, with commas.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, repeat
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lockstep.connections.kafka.producers import NO_PARTITION, NO_TIME, Header, Record
from lockstep.errors import SinkRejected, TargetUnreadable
from lockstep.sinks.append_only.records import ENVELOPE, Origin
from lockstep.sinks.json_rows import json_columns, json_objects
from lockstep.sinks.values import Batches, SinkEpoch

if TYPE_CHECKING:
    from lockstep.sinks.kafka._avro import AvroReaders
    from lockstep.sinks.kafka._schemas import Writers

HEADER, REPLACES = ENVELOPE, f"{ENVELOPE}-replaces"
HEADER_BYTES = 10  #: of a header besides its name and value, at most
Ordinals: TypeAlias = npt.NDArray[np.int64]


def headers_of(epoch: SinkEpoch) -> dict[str, bytes]:
    """What each record of an epoch has besides its own header."""
    replaced = ",".join(str(one.id) for one in epoch.replaced)
    return {REPLACES: replaced.encode()} if replaced else {}


@dataclass(frozen=True)
class Records:
    """Those records of one batch that are in one shard and go to one topic, by column, in the order of the WAL: binary
    but for `times`, `partitions` and `further`. `ordinals`: of each the place within the output."""

    output: str
    topic: str
    shard: int
    ordinals: Ordinals
    keys: pa.Array | None
    values: pa.Array
    partitions: pa.Array | None
    times: pa.Array | None
    headers: pa.Array
    further: pa.Array | None  #: headers that a row has of its own, LIST<STRUCT<key, value>>

    def __len__(self) -> int:
        return len(self.headers)

    def __iter__(self) -> Iterator[Record]:
        return zip(
            _values(self.keys, None),
            self.values.to_pylist(),
            _values(self.partitions, NO_PARTITION),
            _values(self.times, NO_TIME),
            self.headers.to_pylist(),
            _header_lists(self.further),
            strict=False,  # what is left away has no end
        )

    def name(self, place: int) -> str:
        return _name(self.output, int(self.ordinals[place]))


def _values(column: pa.Array | None, default: Any) -> Any:
    return repeat(default) if column is None else column.to_pylist()


def _header_lists(column: pa.Array | None) -> Iterator[list[Header] | None]:
    if column is None:
        return repeat(None)
    return ([_header(one) for one in found] if found else None for found in column.to_pylist())


def _header(one: dict[str, Any]) -> Header:
    """Of a text librdkafka would send what stands before its first NUL."""
    name, value = one["key"], one["value"]
    return name, value.encode() if isinstance(value, str) else value


@dataclass(frozen=True)
class RecordColumns:
    """The columns that a record is made of. `value` None: a JSON object of all but `timestamp`, `partition`, `headers`
    and `topic`. `topics`: those of which `topic` names one in each row; without it there is one.

    `avro`: which of "key" and "value" are Avro: of the key's column, and of that object. `writers`: by which schemas,
    once that is known.
    """

    key: str | None = None
    value: str | None = None
    timestamp: str | None = None
    partition: str | None = None
    headers: str | None = None
    topic: str | None = None
    topics: tuple[str, ...] = ("",)
    avro: frozenset[str] = frozenset()
    writers: Writers | None = None

    def faults(self, schema: pa.Schema) -> Iterator[str]:
        """Why rows of this schema can't be such records."""
        for role, name in (("key", self.key), ("value", self.value)):
            if name is not None and (problem := _why_no_bytes(schema, name, any_type=role in self.avro)):
                yield f"{role}={name!r}: {problem}"
        if self.timestamp is not None and not _is(schema, self.timestamp, types.is_timestamp):
            yield f"timestamp={self.timestamp!r} is no timestamp column"
        if self.value is not None and (lost := sorted(set(schema.names) - {self.key, *self._others()})):
            yield f"{', '.join(lost)} would go nowhere: value={self.value!r} is all that a record has"
        if self.partition is not None and not _is(schema, self.partition, types.is_integer):
            yield f"partition={self.partition!r} is no column of whole numbers"
        if self.headers is not None and not _is(schema, self.headers, _are_headers):
            yield f"headers={self.headers!r} is no column of ARRAY<STRUCT<key: STRING, value: BINARY>>"
        if self.topic is not None and not _is(schema, self.topic, _is_text):
            yield f"topic_column={self.topic!r} is no column of text"

    def records(
        self, batches: Batches, origin: Origin, shards: int = 1, wanted: Collection[int] = (0,)
    ) -> Iterator[Records]:
        """Every row of the `wanted` shards, for each topic in the order of the WAL; the rows of a key are in one shard.
        Raises `SinkRejected`, also for a row that names none of the topics."""
        prefix = origin.key(0)[:-1]
        ordinal = 0
        for batch in batches:
            ordinals = np.arange(ordinal, ordinal + batch.num_rows)
            if shards == 1 and self.topic is None:
                yield self._records(batch, batches.output, self.topics[0], 0, ordinals, prefix)
            else:
                of = (
                    self._shards_of(batch, batches.output, ordinals, shards)
                    if shards > 1
                    else np.zeros(len(ordinals), np.int64)
                )
                into = self._topics_of(batch, batches.output, ordinals)
                for shard, number in product(wanted, np.unique(into)):
                    if len(places := np.flatnonzero((of == shard) & (into == number))):
                        mine, topic = batch.take(pa.array(places)), self.topics[number]
                        yield self._records(mine, batches.output, topic, shard, ordinals[places], prefix)
            ordinal += batch.num_rows
        if ordinal != batches.rows:
            raise SinkRejected(f"output {batches.output}: the WAL gave {ordinal} rows, {batches.rows} are sealed")

    def body(self, schema: pa.Schema) -> pa.Schema:
        """Of what a value is made of, where it isn't a column."""
        others = self._others()
        return pa.schema([field for field in schema if field.name not in others])

    def rows(self, messages: Sequence[Any], schema: pa.Schema, readers: AvroReaders | None = None) -> pa.RecordBatch:
        """What `records` made these messages from. `readers`: of Avro. Raises `TargetUnreadable` for types that JSON
        doesn't give back, and for headers."""
        if self.headers is not None:
            raise TargetUnreadable(f"a record doesn't tell whether {self.headers} was null or empty")
        bodies = None if self.value else self._bodies([one.value() for one in messages], schema, readers)
        arrays = []
        for field in schema:
            if field.name == self.timestamp:
                arrays.append(_times([one.timestamp()[1] for one in messages], field.type))
            elif field.name == self.partition:
                arrays.append(pa.array([one.partition() for one in messages], field.type))
            elif field.name == self.topic:
                arrays.append(pa.array([one.topic() for one in messages], field.type))
            elif bodies is not None and field.name in bodies:
                arrays.append(bodies[field.name])
            else:
                from_key = field.name == self.key
                values = [one.key() if from_key else one.value() for one in messages]
                arrays.append(self._from_bytes(values, field.type, readers if from_key else None))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _bodies(
        self, values: list[bytes | None], schema: pa.Schema, readers: AvroReaders | None
    ) -> Mapping[str, pa.Array]:
        if "value" not in self.avro:
            return json_columns(values, schema)
        assert readers is not None
        kept = [field for field in self.body(schema) if field.name != self.key]  # a schema may have no field for that
        return dict(zip([one.name for one in kept], readers.decode(values, pa.struct(kept)).flatten(), strict=True))

    def _from_bytes(self, values: list[bytes | None], dtype: pa.DataType, readers: AvroReaders | None) -> pa.Array:
        if "key" in self.avro and readers is not None:
            return readers.decode(values, dtype)
        return pa.array(values, pa.binary()).cast(dtype)

    def _shards_of(self, batch: pa.RecordBatch, output: str, ordinals: Ordinals, shards: int) -> Ordinals:
        """In which shard each row is: by its key, without one by its place. It never changes: epochs that were sent in
        part are finished by it."""
        by_place = ordinals % shards
        found = self._keys(batch, output, self.topics[0], ordinals)
        keys = found.dictionary_encode() if found is not None else None
        if keys is None or not len(keys.dictionary):
            return by_place
        by_key = np.array([zlib.crc32(key) % shards for key in keys.dictionary.to_pylist()])
        return np.where(keys.is_valid(), by_key[keys.indices.fill_null(0)], by_place)

    def _topics_of(self, batch: pa.RecordBatch, output: str, ordinals: Ordinals) -> Ordinals:
        """For which of the topics each row is."""
        if self.topic is None:
            return np.zeros(len(ordinals), np.int64)
        named = batch.column(self.topic).cast(pa.string())
        found = pc.index_in(named, pa.array(self.topics))
        if (place := pc.index(pc.is_null(found), True).as_py()) >= 0:
            why = f"names none of topics={', '.join(self.topics)}" if named[place].is_valid else "is null"
            raise SinkRejected(
                f"{_name(output, int(ordinals[place]))}: topic_column={self.topic!r} {why}: leave such rows away in "
                "the transform, or declare their topic"
            )
        return np.asarray(found, np.int64)

    def _records(
        self, batch: pa.RecordBatch, output: str, topic: str, shard: int, ordinals: Ordinals, prefix: str
    ) -> Records:
        return Records(
            output,
            topic,
            shard,
            ordinals,
            self._keys(batch, output, topic, ordinals),
            self._values(batch, output, topic, ordinals),
            batch.column(self.partition) if self.partition else None,
            _milliseconds(batch.column(self.timestamp), output, ordinals) if self.timestamp else None,
            _header_column(prefix, ordinals),
            batch.column(self.headers) if self.headers else None,
        )

    def _keys(self, batch: pa.RecordBatch, output: str, topic: str, ordinals: Ordinals) -> pa.Array | None:
        if self.key is None:
            return None
        if "key" not in self.avro:
            return batch.column(self.key).cast(pa.binary())
        assert self.writers is not None
        return self.writers.keys[topic].encode(
            batch.column(self.key), lambda place: _name(output, int(ordinals[place]))
        )

    def _values(self, batch: pa.RecordBatch, output: str, topic: str, ordinals: Ordinals) -> pa.Array:
        if self.value is not None:
            return batch.column(self.value).cast(pa.binary())
        if "value" not in self.avro:
            return self._objects(batch, output, ordinals)
        assert self.writers is not None
        body = self._body(batch)
        rows = pa.StructArray.from_arrays(body.columns, fields=list(body.schema))
        return self.writers.values[topic].encode(rows, lambda place: _name(output, int(ordinals[place])))

    def _objects(self, batch: pa.RecordBatch, output: str, ordinals: Ordinals) -> pa.Array:
        first = int(ordinals[0]) if len(ordinals) else 0
        whole = not len(ordinals) or ordinals[-1] - first == len(ordinals) - 1
        where = f"output {output}" if whole else f"output {output}, counting from row {first} those sent with it"
        return json_objects(self._body(batch), where, first if whole else 0)

    def _others(self) -> set[str | None]:
        return {self.value, self.timestamp, self.partition, self.headers, self.topic}

    def _body(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.select(self.body(batch.schema).names)


def _why_no_bytes(schema: pa.Schema, name: str, *, any_type: bool) -> str | None:
    if schema.get_field_index(name) < 0:
        return f"the output has no such column, only {', '.join(schema.names)}"
    dtype = schema.field(name).type
    fits = any_type or (
        types.is_string(dtype) or types.is_large_string(dtype) or types.is_binary(dtype) or types.is_large_binary(dtype)
    )
    return None if fits else f"its type is {dtype}, not text or bytes: cast it in the transform"


def _is(schema: pa.Schema, name: str, fits: object) -> bool:
    return schema.get_field_index(name) >= 0 and bool(fits(schema.field(name).type))  # type: ignore[operator]


def _is_text(dtype: pa.DataType) -> bool:
    return bool(types.is_string(dtype) or types.is_large_string(dtype))


def _are_headers(dtype: pa.DataType) -> bool:
    if not (types.is_list(dtype) or types.is_large_list(dtype)) or not types.is_struct(dtype.value_type):
        return False
    found = {field.name: field.type for field in dtype.value_type}
    texts = [types.is_string(one) or types.is_binary(one) for one in found.values()]
    return list(found) == ["key", "value"] and types.is_string(found["key"]) and all(texts)


def _header_column(prefix: str, ordinals: Ordinals) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pa.array(ordinals).cast(pa.string()), "").cast(pa.binary())


def _milliseconds(column: pa.Array, output: str, ordinals: Ordinals) -> pa.Array:
    """Raises `SinkRejected` for what a record's time can't say: null, parts of a millisecond, times before 1970."""
    whole = pc.cast(column, pa.timestamp("ms", column.type.tz), safe=False)
    exact = pc.fill_null(pc.equal(pc.cast(whole, column.type, safe=False), column), True)
    if (place := pc.index(exact, False).as_py()) >= 0:
        name = _name(output, int(ordinals[place]))
        raise SinkRejected(
            f"{name}: a record's time has milliseconds: use date_trunc('millisecond', …) in the transform"
        )
    found = whole.cast(pa.int64())
    after_1970 = pc.fill_null(pc.greater(found, 0), False)
    if (place := pc.index(after_1970, False).as_py()) >= 0:
        raise SinkRejected(f"{_name(output, int(ordinals[place]))}: a record's time can't be null, nor before 1970")
    return found


def _name(output: str, ordinal: int) -> str:
    """How a message names a row, without anything that stands in it."""
    return f"output {output}, row {ordinal} (the first is 0)"


def _times(milliseconds: list[int], dtype: pa.TimestampType) -> pa.Array:
    return pa.array(milliseconds, pa.int64()).cast(pa.timestamp("ms", dtype.tz)).cast(dtype)
