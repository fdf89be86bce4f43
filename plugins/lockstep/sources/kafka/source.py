"""Kafka topics as a source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from lockstep.connections.kafka.cluster import Cluster
from lockstep.connections.kafka.connection import Asker, dataset_of, entered_settings
from lockstep.connections.names import Dataset
from lockstep.distribution import naming_extra
from lockstep.epoch import Json, KeyedBy
from lockstep.errors import InvalidPipeline, SourceRefused, SourceUnavailable
from lockstep.sources.base import Source, SourceContext
from lockstep.sources.kafka._decoding import Decoding, Function, reference_of
from lockstep.sources.kafka._offsets import (
    End,
    Ending,
    Start,
    check_end,
    check_start,
    group_of,
    start_from_json,
    time_as_json,
)
from lockstep.sources.kafka.open_source import CursorKafkaSource, IntervalKafkaSource, OpenKafkaSource


@dataclass(frozen=True, eq=False, kw_only=True)
class KafkaSource(Source):
    """Committed records of topics: `key`, `value`, `topic`, `partition`, `offset`, `timestamp`[, `headers`].

    `topics`: one or several names; or `pattern`, a regular expression that must match whole names. `connection`: the id
    of a connection, see `lockstep.connections.kafka.connection.settings_of`.

    `start`, for the first epoch: "earliest", "latest", a time, {topic: {partition: offset}}, or "group:" and a consumer
    group's id, for the offsets that it has committed when the epoch is planned. Partitions that aren't named, and
    partitions and topics that are added later, start at their oldest record. `offset_reset`: where partitions without
    an offset of the group start; "none" refuses them. `end`: later records are never read, and later epochs are empty:
    "latest" as of the first epoch, a time, or {topic: {partition: offset after the last record}}.

    `key`, `value`: "bytes", "string", "json" (with `…_schema`, Spark DDL), "avro" (with `…_schema`, the Avro schema),
    or a function of the bytes, or its "module:name", that returns a mapping by the columns of `…_schema` (Spark DDL) or
    raises. `registry`: the id of a connection to a schema registry; Avro then has its wire format, `…_schema` is the
    reader's, and `subjects` are the writers' if they aren't "<topic>-value" and "<topic>-key". `on_bad_records`:
    malformed records "fail" the epoch or go to "quarantine". `max_rows_per_epoch` counts offsets. `headers`: also read
    headers. `group`: a consumer group that gets the published offsets, for lag monitors.

    `by_interval=True`: an epoch has the records with timestamps in its interval, and begins `settle` after it; for
    topics with message.timestamp.type=LogAppendTime, to which no record comes late.

    A range ends before the oldest open transaction. Records that can't be read again are an error: `OffsetsExpired`,
    `LogTruncated`, `TopicRecreated`. `accept_loss=("orders",)` resumes such a topic where it was cut or where it now
    begins, or continues without it. A topic that `topics` or `pattern` stops matching is resumed where it ended once it
    matches again. Positions are {"cluster", "topics": {name: {"id", "leaders", "partitions": {number: [first, end]}}}},
    with "left", "bound" and "by_clock" if needed.
    """

    topics: str | tuple[str, ...] = field(default=(), kw_only=False)
    pattern: str | None = None
    connection: str
    start: Start = "earliest"
    offset_reset: str = "none"
    end: End | None = None
    key: str | Function = "bytes"
    key_schema: str | None = None
    value: str | Function = "bytes"
    value_schema: str | None = None
    on_bad_records: str = "fail"
    max_rows_per_epoch: int | None = None
    registry: str | None = None
    subjects: str | tuple[str, ...] = ()
    headers: bool = False
    group: str | None = None
    by_interval: bool = False
    settle: timedelta = timedelta(minutes=1)
    accept_loss: str | tuple[str, ...] = ()
    identity: KeyedBy = field(init=False, default=KeyedBy.CURSOR)
    operational: ClassVar[frozenset[str]] = frozenset(
        {
            *("start", "offset_reset", "end", "settle", "max_rows_per_epoch", "accept_loss"),
            *("key", "key_schema", "value", "value_schema", "on_bad_records", "registry", "subjects"),
            *("headers", "group"),
        }
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "topics", _tuple_of(self.topics))
        object.__setattr__(self, "accept_loss", _tuple_of(self.accept_loss))
        object.__setattr__(self, "subjects", _tuple_of(self.subjects))
        object.__setattr__(self, "identity", KeyedBy.INTERVAL if self.by_interval else KeyedBy.CURSOR)
        object.__setattr__(self, "start", start_from_json(self.start))
        object.__setattr__(self, "end", start_from_json(self.end))
        if isinstance(self.settle, int | float):  # seconds, as plans have it
            object.__setattr__(self, "settle", timedelta(seconds=self.settle))
        where = f"source {self._selection}"
        for part in ("key", "value"):
            object.__setattr__(self, part, reference_of(where, part, getattr(self, part)))
        if bool(self.topics) == (self.pattern is not None):
            raise InvalidPipeline(f"{where}: give either topics or a pattern")
        if self.on_bad_records not in ("fail", "quarantine"):
            raise InvalidPipeline(f"{where}: on_bad_records must be 'fail' or 'quarantine'")
        try:
            re.compile(self.pattern or "")
        except re.error:
            raise InvalidPipeline(f"{where}: the pattern {self.pattern!r} is no regular expression") from None
        if self.max_rows_per_epoch is not None and self.max_rows_per_epoch < 1:
            raise InvalidPipeline(f"{where}: max_rows_per_epoch must be at least 1")
        if self.registry is not None and "avro" not in (self.key, self.value):
            raise InvalidPipeline(f"{where}: registry goes with key='avro' or value='avro'")
        if self.subjects and self.registry is None:
            raise InvalidPipeline(f"{where}: subjects are those of a registry")
        check_start(where, self.start, self.offset_reset, self.topics)
        if self.by_interval and group_of(self.start):
            raise InvalidPipeline(f"{where}: with by_interval an epoch starts where its interval does, not at a group")
        check_end(where, self.end, self.topics, by_interval=self.by_interval)
        self._decodings(where)

    def _decodings(self, where: str) -> tuple[Decoding, Decoding]:
        """Return the decodings of keys and values. Raises `InvalidPipeline`."""
        key = Decoding.of(where, "key", str(self.key), self.key_schema)
        return key, Decoding.of(where, "value", str(self.value), self.value_schema)

    @property
    def _selection(self) -> str:
        return self.pattern or ", ".join(_tuple_of(self.topics))

    def arguments(self) -> dict[str, Json]:
        times = {"start": self.start, "end": self.end}
        times_as_json = {name: time_as_json(time) for name, time in times.items() if isinstance(time, datetime)}
        plain: Any = {"start": "earliest", "end": None}
        plain_source = replace(self, **{name: plain[name] for name in times_as_json}) if times_as_json else self
        return {**super(KafkaSource, plain_source).arguments(), **times_as_json}

    def reads_from(self) -> str:
        return f"topics {self._selection} of connection {self.connection}"

    @property
    def connections(self) -> tuple[str, ...]:
        return (self.connection,) if self.registry is None else (self.connection, self.registry)

    def datasets(self, connections: Mapping[str, str]) -> tuple[Dataset, ...]:
        """Return the named topics; none for a pattern."""
        uri, where = connections[self.connection], f"source {self._selection}"
        return tuple(dataset_of(uri, topic, where) for topic in _tuple_of(self.topics))

    def why_no_snapshot(self) -> str | None:
        return "a topic's older records go, and it is no table: keep its rows as state (docs/state.md)"

    def open(self, context: SourceContext) -> OpenKafkaSource:
        """Raise `InvalidPipeline` for a connection that isn't given or is invalid."""
        where = f"source {context.source}"
        who = Asker(where, SourceUnavailable, SourceRefused)
        settings = entered_settings(context.dsn(self.connection), who)
        key, value = self._decodings(where)
        registry = None
        if self.registry is not None:
            with naming_extra("a schema registry"):
                from lockstep.connections.kafka.schema_registry import SchemaRegistry
            registry = SchemaRegistry(self.registry, who, context.dsn(self.registry))
        topics, accept_loss = _tuple_of(self.topics), _tuple_of(self.accept_loss)
        always = (
            *(Cluster(settings, who), topics, self.pattern, accept_loss, key, value, self.headers),
            *(self.on_bad_records, self.group, registry, _tuple_of(self.subjects)),
        )
        if self.by_interval:
            return IntervalKafkaSource(*always, self.settle)
        selection = {"pattern": self.pattern} if self.pattern is not None else {"topics": sorted(topics)}
        ending = None if self.end is None else Ending(self.end, selection, self.settle)
        return CursorKafkaSource(*always, self.start, self.offset_reset, ending, self.max_rows_per_epoch)


def _tuple_of(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
