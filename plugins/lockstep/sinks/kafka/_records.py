"""Rows as Kafka records, and their checks before the decision: what brokers refuse later blocks the pipeline.

The header `lockstep` is "<deployment>/<pipeline>/<output>/<epoch>/<ordinal>", the same at each attempt, as in the
records of append-only targets. `lockstep-replaces` lists the epochs that a record's epoch replaces, separated by
commas.

Brokers compare a record's time with their clock when it arrives. A time too far in the future gets nearer while the
epoch waits; one in the past gets older, so it has to be acceptable for one more transaction.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product, repeat
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lockstep.connections.kafka.cluster import TopicLimits, is_compacted
from lockstep.connections.kafka.producers import NO_PARTITION, NO_TIME, Header, Record
from lockstep.errors import PreflightRefused, SinkRejected, TargetUnreadable
from lockstep.sinks.append_only.records import ENVELOPE, Origin
from lockstep.sinks.json_rows import json_columns, json_objects
from lockstep.sinks.values import Batches, SinkEpoch

if TYPE_CHECKING:
    from lockstep.sinks.kafka._avro import AvroReaders, Writers


HEADER, REPLACES = ENVELOPE, f"{ENVELOPE}-replaces"
HEADER_BYTES = 10  #: of a header in addition to its name and value, at most
Ordinals: TypeAlias = npt.NDArray[np.int64]


def headers_of(epoch: SinkEpoch) -> dict[str, bytes]:
    """Return the extra headers of each record of an epoch."""
    replaced = ",".join(str(replaced.id) for replaced in epoch.replaced)
    return {REPLACES: replaced.encode()} if replaced else {}


@dataclass(frozen=True)
class TopicRecords:
    """The records of one batch, shard and topic as columns, in the order of the WAL; binary except `times`,
    `partitions` and `extra`. `ordinals`: the rows' positions in the output."""

    output: str
    topic: str
    shard: int
    ordinals: Ordinals
    keys: pa.Array | None
    values: pa.Array
    partitions: pa.Array | None
    times: pa.Array | None
    headers: pa.Array
    extra: pa.Array | None  #: headers from a column, LIST<STRUCT<key, value>>

    def __len__(self) -> int:
        return len(self.headers)

    def __iter__(self) -> Iterator[Record]:
        return zip(
            _values(self.keys, None),
            self.values.to_pylist(),
            _values(self.partitions, NO_PARTITION),
            _values(self.times, NO_TIME),
            self.headers.to_pylist(),
            _header_lists(self.extra),
            strict=False,  # missing columns are endless
        )

    def name(self, place: int) -> str:
        return _name(self.output, int(self.ordinals[place]))


def _values(column: pa.Array | None, default: Any) -> Any:
    return repeat(default) if column is None else column.to_pylist()


def _header_lists(column: pa.Array | None) -> Iterator[list[Header] | None]:
    if column is None:
        return repeat(None)
    return ([_header(header) for header in headers] if headers else None for headers in column.to_pylist())


def _header(header: dict[str, Any]) -> Header:
    """Encode texts: librdkafka would cut them at the first NUL."""
    name, value = header["key"], header["value"]
    return name, value.encode() if isinstance(value, str) else value


@dataclass(frozen=True)
class RecordColumns:
    """The columns that a record is made of. `value` None: a JSON object of all columns except `timestamp`, `partition`,
    `headers` and `topic`. `topics`: column `topic` names one of them in each row; without that column there is one.

    `avro`: "key" if the key column is Avro, "value" if that object is. `writers`: the Avro writers, once known.
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
        """Yield why rows of this schema can't be such records."""
        for role, name in (("key", self.key), ("value", self.value)):
            if name is not None and (problem := _why_no_bytes(schema, name, any_type=role in self.avro)):
                yield f"{role}={name!r}: {problem}"
        if self.timestamp is not None and not _is(schema, self.timestamp, types.is_timestamp):
            yield f"timestamp={self.timestamp!r} is no timestamp column"
        if self.value is not None and (lost := sorted(set(schema.names) - {self.key, *self._special_columns()})):
            yield f"{', '.join(lost)} would go nowhere: value={self.value!r} is all that a record has"
        if self.partition is not None and not _is(schema, self.partition, types.is_integer):
            yield f"partition={self.partition!r} is no column of whole numbers"
        if self.headers is not None and not _is(schema, self.headers, _are_headers):
            yield f"headers={self.headers!r} is no column of ARRAY<STRUCT<key: STRING, value: BINARY>>"
        if self.topic is not None and not _is(schema, self.topic, _is_text):
            yield f"topic_column={self.topic!r} is no column of text"

    def records(
        self, batches: Batches, origin: Origin, shards: int = 1, shards_to_send: Collection[int] = (0,)
    ) -> Iterator[TopicRecords]:
        """Yield the rows of the shards in `shards_to_send`, for each topic in the order of the WAL; all rows of a key
        are in one shard. Raises `SinkRejected`, also for a row that names none of the topics."""
        prefix = origin.key(0)[:-1]
        ordinal = 0
        for batch in batches:
            ordinals = np.arange(ordinal, ordinal + batch.num_rows)
            if shards == 1 and self.topic is None:
                yield self._records(batch, batches.output, self.topics[0], 0, ordinals, prefix)
            else:
                shard_of = (
                    self._shards_of(batch, batches.output, ordinals, shards)
                    if shards > 1
                    else np.zeros(len(ordinals), np.int64)
                )
                topic_of = self._topics_of(batch, batches.output, ordinals)
                for shard, number in product(shards_to_send, np.unique(topic_of)):
                    if len(places := np.flatnonzero((shard_of == shard) & (topic_of == number))):
                        rows, topic = batch.take(pa.array(places)), self.topics[number]
                        yield self._records(rows, batches.output, topic, shard, ordinals[places], prefix)
            ordinal += batch.num_rows
        if ordinal != batches.rows:
            raise SinkRejected(f"output {batches.output}: the WAL gave {ordinal} rows, {batches.rows} are sealed")

    def body(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns of a value that is an object."""
        special = self._special_columns()
        return pa.schema([field for field in schema if field.name not in special])

    def rows(self, messages: Sequence[Any], schema: pa.Schema, readers: AvroReaders | None = None) -> pa.RecordBatch:
        """Return the rows from which `records` made these messages. `readers`: for Avro. Raises `TargetUnreadable` for
        types that JSON can't restore, and for headers."""
        if self.headers is not None:
            raise TargetUnreadable(f"a record doesn't show whether {self.headers} was null or empty")
        bodies = None if self.value else self._bodies([message.value() for message in messages], schema, readers)
        arrays = []
        for field in schema:
            if field.name == self.timestamp:
                arrays.append(_times([message.timestamp()[1] for message in messages], field.type))
            elif field.name == self.partition:
                arrays.append(pa.array([message.partition() for message in messages], field.type))
            elif field.name == self.topic:
                arrays.append(pa.array([message.topic() for message in messages], field.type))
            elif bodies is not None and field.name in bodies:
                arrays.append(bodies[field.name])
            else:
                from_key = field.name == self.key
                values = [message.key() if from_key else message.value() for message in messages]
                if from_key and "key" in self.avro and readers is not None:
                    arrays.append(readers.decode(values, field.type))
                else:
                    arrays.append(pa.array(values, pa.binary()).cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _bodies(
        self, values: list[bytes | None], schema: pa.Schema, readers: AvroReaders | None
    ) -> Mapping[str, pa.Array]:
        if "value" not in self.avro:
            return json_columns(values, schema)
        assert readers is not None
        fields = [field for field in self.body(schema) if field.name != self.key]  # a schema may have no field for that
        return dict(
            zip([field.name for field in fields], readers.decode(values, pa.struct(fields)).flatten(), strict=True)
        )

    def _shards_of(self, batch: pa.RecordBatch, output: str, ordinals: Ordinals, shards: int) -> Ordinals:
        """Return the shard of each row, by its key, or without a key by its position. This function must never change:
        partly sent epochs are completed by it."""
        by_place = ordinals % shards
        key_column = self._keys(batch, output, self.topics[0], ordinals)
        keys = key_column.dictionary_encode() if key_column is not None else None
        if keys is None or not len(keys.dictionary):
            return by_place
        by_key = np.array([zlib.crc32(key) % shards for key in keys.dictionary.to_pylist()])
        return np.where(keys.is_valid(), by_key[keys.indices.fill_null(0)], by_place)

    def _topics_of(self, batch: pa.RecordBatch, output: str, ordinals: Ordinals) -> Ordinals:
        """Return the number of each row's topic."""
        if self.topic is None:
            return np.zeros(len(ordinals), np.int64)
        names = batch.column(self.topic).cast(pa.string())
        numbers = pc.index_in(names, pa.array(self.topics))
        if (place := pc.index(pc.is_null(numbers), True).as_py()) >= 0:
            why = f"names none of topics={', '.join(self.topics)}" if names[place].is_valid else "is null"
            raise SinkRejected(
                f"{_name(output, int(ordinals[place]))}: topic_column={self.topic!r} {why}: leave such rows away in "
                "the transform, or declare their topic"
            )
        return np.asarray(numbers, np.int64)

    def _records(
        self, batch: pa.RecordBatch, output: str, topic: str, shard: int, ordinals: Ordinals, prefix: str
    ) -> TopicRecords:
        return TopicRecords(
            output,
            topic,
            shard,
            ordinals,
            self._keys(batch, output, topic, ordinals),
            self._values(batch, output, topic, ordinals),
            batch.column(self.partition) if self.partition else None,
            _milliseconds(batch.column(self.timestamp), output, ordinals) if self.timestamp else None,
            pc.binary_join_element_wise(prefix, pa.array(ordinals).cast(pa.string()), "").cast(pa.binary()),
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
        body = batch.select(self.body(batch.schema).names)
        if "value" not in self.avro:
            first = int(ordinals[0]) if len(ordinals) else 0
            if not len(ordinals) or ordinals[-1] - first == len(ordinals) - 1:
                return json_objects(body, f"output {output}", first)
            return json_objects(body, f"output {output}, counting from row {first} those sent with it", 0)
        assert self.writers is not None
        rows = pa.StructArray.from_arrays(body.columns, fields=list(body.schema))
        return self.writers.values[topic].encode(rows, lambda place: _name(output, int(ordinals[place])))

    def _special_columns(self) -> set[str | None]:
        return {self.value, self.timestamp, self.partition, self.headers, self.topic}


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
    members = {field.name: field.type for field in dtype.value_type}
    texts = [
        types.is_string(dtype_of_member) or types.is_binary(dtype_of_member) for dtype_of_member in members.values()
    ]
    return list(members) == ["key", "value"] and types.is_string(members["key"]) and all(texts)


def _milliseconds(column: pa.Array, output: str, ordinals: Ordinals) -> pa.Array:
    """Return milliseconds since 1970. Raises `SinkRejected` for null, parts of a millisecond, times before 1970."""
    whole = pc.cast(column, pa.timestamp("ms", column.type.tz), safe=False)
    exact = pc.fill_null(pc.equal(pc.cast(whole, column.type, safe=False), column), True)
    if (place := pc.index(exact, False).as_py()) >= 0:
        name = _name(output, int(ordinals[place]))
        raise SinkRejected(
            f"{name}: a record's time has milliseconds: use date_trunc('millisecond', …) in the transform"
        )
    milliseconds = whole.cast(pa.int64())
    after_1970 = pc.fill_null(pc.greater(milliseconds, 0), False)
    if (place := pc.index(after_1970, False).as_py()) >= 0:
        raise SinkRejected(f"{_name(output, int(ordinals[place]))}: a record's time can't be null, nor before 1970")
    return milliseconds


def _name(output: str, ordinal: int) -> str:
    """Return a row's name for messages, without any of its values."""
    return f"output {output}, row {ordinal} (the first is 0)"


def _times(milliseconds: list[int], dtype: pa.TimestampType) -> pa.Array:
    return pa.array(milliseconds, pa.int64()).cast(pa.timestamp("ms", dtype.tz)).cast(dtype)


_log = logging.getLogger(__name__)

RESERVED = (HEADER, REPLACES)  #: names of Lockstep's own headers
_ANY = 2**63 - 1
#: Warn of records that brokers will refuse within this time.
_SOON = timedelta(days=1)
_SAMPLE = 20_000  #: records for which handing them over is timed
#: Sending takes at least this many times as long as making the records, because of network and brokers.
_USUALLY = 4


def require_fitting_topic(settings: Mapping[str, str], topic: str, columns: RecordColumns, who: str) -> None:
    """Raise `PreflightRefused` for a topic that refuses every record or silently drops a column."""
    if columns.key is None and is_compacted(settings):
        raise PreflightRefused(f"{who}: topic {topic} is compacted, so each record needs a key: give key=…")
    if columns.timestamp is not None and settings.get("message.timestamp.type") == "LogAppendTime":
        raise PreflightRefused(
            f"{who}: topic {topic} has message.timestamp.type=LogAppendTime: brokers would put their own time in place "
            f"of column {columns.timestamp}. Leave timestamp={columns.timestamp!r} away and send the column in the "
            "value, or set the topic to CreateTime"
        )


class RecordChecks:
    """Checks an epoch's records against the limits of their topics, and measures the CPU time of making them.

    CPU time of this thread doesn't depend on the machine's load, and every publisher needs it.
    """

    def __init__(
        self, limits: Mapping[str, TopicLimits], who: str, now: datetime, timeout: float, extra: int = 0
    ) -> None:
        """`limits`: by topic. `timeout`: seconds that one attempt at sending may take. `extra`: bytes of the extra
        headers of each record."""
        self._header_bytes = len(HEADER) + extra
        self._limits, self._who, self._now, self._timeout = limits, who, now, timeout
        self._now_ms = int(now.timestamp() * 1000)
        self._oldest: dict[str, int] = {}  # milliseconds since 1970, by topic
        self._began, self._sampling = time.thread_time(), 0.0
        self._sampled = self._rows = 0

    def check(self, records: TopicRecords) -> None:
        """Raise `SinkRejected` with the first record that brokers would refuse. Call it right after making the
        records."""
        limits = self._limits[records.topic]
        if limits.keyed and records.keys is not None and records.keys.null_count:
            place = pc.index(pc.is_null(records.keys), True).as_py()
            raise self._refusal(records, place, "has no key, and the topic is compacted (cleanup.policy)")
        self._require_headers(records)
        self._require_size(records)
        if records.partitions is not None:
            place = _first_outside(records.partitions, 0, limits.partitions - 1)
            if place is not None:
                partition = records.partitions[place].as_py()
                why = f"is for partition {partition}, the topic has {limits.partitions}"
                raise self._refusal(records, place, why)
        self._require_time(records)
        self._rows += len(records)
        if self._sampled < _SAMPLE:
            began = time.thread_time()
            self._sampled += sum(1 for _ in records)
            self._sampling += time.thread_time() - began

    def warn_of_age(self) -> None:
        """Log a warning for each topic that will soon refuse a record which it takes now."""
        for topic, oldest in self._oldest.items():
            if (before := self._limits[topic].before) is None:
                continue
            remaining = timedelta(milliseconds=oldest + before[1] - self._now_ms)
            if remaining < _SOON:
                until = (self._now + remaining).astimezone(UTC).isoformat(timespec="seconds")
                text = "%s: topic %s takes the oldest of these records until %s (%s=%d): %s"
                _log.warning(text, self._who, topic, until, *before, "if they are sent later, raise that")

    def require_one_transaction(self, longer: str) -> None:
        """Raise `PreflightRefused` if the epoch certainly can't be sent in one transaction; warn if it may not fit.
        `longer`: the command that sets a longer timeout."""
        making = time.thread_time() - self._began - self._sampling
        handing_over = self._sampling / self._sampled * self._rows if self._sampled else 0.0
        least = making + handing_over
        text = f"{self._who}: to make these {self._rows:,} records alone takes {least:.1f} s of CPU"
        if least > self._timeout:
            raise PreflightRefused(
                f"{text}, and brokers abort a transaction after transaction_timeout={self._timeout:g} s: the epoch "
                f"could never be published. Deploy a longer transaction_timeout, or {longer}; or give an epoch less"
            )
        if least * _USUALLY > self._timeout:
            _log.warning("%s, and sending takes longer: transaction_timeout=%g s may be too short", text, self._timeout)

    def _require_size(self, records: TopicRecords) -> None:
        parts = [part for part in (records.keys, records.values, records.headers) if part is not None]
        sizes = [pc.fill_null(pc.binary_length(part), 0).cast(pa.int64()) for part in parts]
        total = sizes[0]
        for more in sizes[1:]:
            total = pc.add(total, more)
        if records.extra is not None:
            total = pc.add(total, _sizes_of_headers(records.extra))
        limits = self._limits[records.topic]
        if (place := _first_outside(total, 0, limits.record_bytes - self._header_bytes)) is not None:
            size = total[place].as_py() + self._header_bytes
            why = f"has {size} bytes, {_setting(limits.size)} leaves {limits.record_bytes}"
            raise self._refusal(records, place, why)

    def _require_headers(self, records: TopicRecords) -> None:
        if records.extra is None:
            return
        names = pc.struct_field(pc.list_flatten(records.extra), "key")
        rows = pc.list_parent_indices(records.extra)
        for bad, why in (
            (pc.is_null(names), "has a header without a name"),
            (pc.match_substring(names, "\0"), "has a header with a NUL in its name"),
            (pc.is_in(names, pa.array(RESERVED)), f"has a header of its own by one of the names {', '.join(RESERVED)}"),
        ):
            if (place := pc.index(bad, True).as_py()) >= 0:
                raise self._refusal(records, rows[place].as_py(), why)

    def _require_time(self, records: TopicRecords) -> None:
        if records.times is None or not len(records):
            return
        limits = self._limits[records.topic]
        if (after := limits.after) is not None:
            place = _first_outside(records.times, 0, min(_ANY, self._now_ms + after[1]))
            if place is not None:
                why = f"has a time further in the future than {_setting(after)} allows"
                raise self._refusal(records, place, why)
        if (before := limits.before) is not None:
            reserve = min(int(self._timeout * 1000), before[1] // 2)
            place = _first_outside(records.times, self._now_ms - before[1] + reserve, _ANY)
            if place is not None:
                why = f"has a time further in the past than {_setting(before)} allows"
                raise self._refusal(records, place, f"{why}, {reserve / 1000:.0f} s kept back to send it")
        oldest: int = pc.min(records.times).as_py()
        self._oldest[records.topic] = min(oldest, self._oldest.get(records.topic, oldest))

    def _refusal(self, records: TopicRecords, place: int, why: str) -> SinkRejected:
        return SinkRejected(
            f"{self._who}: {records.name(place)} {why}. It couldn't be sent after the decision: leave such rows "
            f"away in the transform, or change the settings of topic {records.topic}"
        )


def _sizes_of_headers(column: pa.Array) -> pa.Array:
    """Return the bytes of each row's headers."""
    headers = pc.list_flatten(column)
    parts = [pc.fill_null(pc.binary_length(pc.struct_field(headers, member)), 0) for member in ("key", "value")]
    each = pc.add(pc.add(*parts).cast(pa.int64()), HEADER_BYTES)
    rows = pc.list_parent_indices(column).to_numpy()
    return pa.array(np.bincount(rows, weights=each.to_numpy(), minlength=len(column)).astype(np.int64))


def _setting(limit: tuple[str, int]) -> str:
    return "{}={}".format(*limit)


def _first_outside(column: pa.Array, smallest: int, largest: int) -> int | None:
    """Return the position of the first value that is null or outside of `smallest` … `largest`."""
    within = pc.fill_null(pc.and_(pc.greater_equal(column, smallest), pc.less_equal(column, largest)), False)
    place: int = pc.index(within, False).as_py()
    return None if place < 0 else place
