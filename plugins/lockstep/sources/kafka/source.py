"""Kafka topics as a source: each epoch takes a frozen range of offsets from each partition (Flink: KafkaSource)."""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from lockstep.epoch import Identity, Interval, Position
from lockstep.errors import (
    IntervalMissing,
    InvalidPipeline,
    SourceChanged,
    SourceRefused,
    SourceUnavailable,
)
from lockstep.kafka.redaction import hide_login
from lockstep.sources.base import Source, SourceContext
from lockstep.sources.kafka.decoding import Decoding
from lockstep.sources.kafka.ranges import (
    Standing,
    TopicRange,
    capped,
    newly_led,
    require_same_topic,
    require_uncut,
    require_whole,
    taken_up,
)
from lockstep.sources.kafka.records import read_ranges
from lockstep.sources.kafka.starts import Start, check_start, first_offsets
from lockstep.sources.records import OpenRecordSource, Records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.kafka.cluster import Cluster, Topic
    from lockstep.kafka.connection import Asker
    from lockstep.kafka.truncation import Cut

_log = logging.getLogger(__name__)


@dataclass(eq=False, kw_only=True)
class KafkaSource(Source, OpenRecordSource):
    """Committed records of topics: `key`, `value`, `topic`, `partition`, `offset`, `timestamp`[, `headers`].

    `topics`: one name, or several; or `pattern`, a regular expression of whole names. `connection`: the id of a
    connection, see `lockstep.kafka.connection.settings_of`. `start`, for the first epoch: "earliest", "latest", a
    time, or {topic: {partition: offset}}, where what isn't named starts at its oldest record; so do partitions and
    topics that join later. `key`, `value`: "bytes", "string", "json" (with `…_schema`, Spark DDL) or "avro" (with
    `…_schema`, the Avro schema). `on_bad_records`: "fail" or "quarantine" for what isn't that. `max_rows_per_epoch`
    counts offsets. `headers`: read them too. `group`: a consumer group whose offsets follow what is published, for lag
    monitors.

    `by_interval=True`: an epoch has the records whose timestamps are in its interval, and begins `settle` after it; for
    topics with message.timestamp.type=LogAppendTime, where a record can't come late.

    A range ends before the oldest open transaction. Its records are read again, or an error says which are gone:
    `OffsetsExpired`, `LogTruncated`, `TopicRecreated`. `accept_loss=("orders",)` takes up such a topic again, where
    it was cut or where it now begins, or goes on without it. A topic that `topics` or `pattern` no longer means goes on
    where it ended when it is back. Positions are {"cluster", "topics": {name: {"id", "leaders", "partitions": {number:
    [first, end]}}}[, "left"]}.
    """

    topics: str | tuple[str, ...] = field(default=(), kw_only=False)
    pattern: str | None = None
    connection: str
    start: Start = "earliest"
    key: str = "bytes"
    key_schema: str | None = None
    value: str = "bytes"
    value_schema: str | None = None
    on_bad_records: str = "fail"
    max_rows_per_epoch: int | None = None
    headers: bool = False
    group: str | None = None
    by_interval: bool = False
    settle: timedelta = timedelta(minutes=1)
    accept_loss: str | tuple[str, ...] = ()
    identity: Identity = field(init=False, default=Identity.CURSOR)

    def __post_init__(self) -> None:
        self.topics = (self.topics,) if isinstance(self.topics, str) else tuple(self.topics)
        self.accept_loss = (self.accept_loss,) if isinstance(self.accept_loss, str) else tuple(self.accept_loss)
        self._context: SourceContext | None = None
        self.identity = Identity.INTERVAL if self.by_interval else Identity.CURSOR
        self._key = Decoding.of(self._where, "key", self.key, self.key_schema)
        self._value = Decoding.of(self._where, "value", self.value, self.value_schema)
        self._check_arguments()

    def _check_arguments(self) -> None:
        if bool(self.topics) == (self.pattern is not None):
            raise InvalidPipeline(f"{self._where}: give either topics or a pattern")
        if self.on_bad_records not in ("fail", "quarantine"):
            raise InvalidPipeline(f"{self._where}: on_bad_records is 'fail' or 'quarantine'")
        if self.pattern is not None and not _is_expression(self.pattern):
            raise InvalidPipeline(f"{self._where}: the pattern {self.pattern!r} is no regular expression")
        if self.max_rows_per_epoch is not None and self.max_rows_per_epoch < 1:
            raise InvalidPipeline(f"{self._where}: max_rows_per_epoch must be at least 1")
        check_start(self._where, self.start, self.topics)

    @property
    def _where(self) -> str:
        return f"source {self._context.source if self._context else self.pattern or ', '.join(self.topics)}"

    # --- life cycle ---

    def reads_from(self) -> str:
        return f"topics {self.pattern or ', '.join(self.topics)} of connection {self.connection}"

    @property
    def connections(self) -> tuple[str, ...]:
        return (self.connection,)

    def open(self, context: SourceContext) -> KafkaSource:
        opened = copy.copy(self)
        opened._context = context
        return opened

    @property
    def _settings(self) -> dict[str, str]:
        from lockstep.kafka.connection import settings_of

        if self._context is None:
            raise InvalidPipeline(f"{self._where} was asked for records before it was opened")
        return settings_of(self._context.dsn(self.connection), self._where)

    @contextmanager
    def _cluster(self) -> Iterator[Cluster]:
        from lockstep.kafka.cluster import Cluster

        cluster = Cluster(self._settings, self._asker)
        try:
            yield cluster
        finally:
            cluster.close()

    @property
    def _asker(self) -> Asker:
        from lockstep.kafka.connection import Asker

        return Asker(self._where, SourceUnavailable, SourceRefused)

    # --- planning ---

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        """Raises `SourceChanged` by one of its kinds, `SourceNotReady`, `SourceUnavailable`, `SourceRefused`."""
        with self._cluster() as cluster:
            id = cluster.id()
            if self.by_interval:
                if interval is None:
                    raise IntervalMissing(f"{self._where} needs a data interval")
                return _position(id, dict(self._of_interval(cluster, interval)), {})
            before = self._before(id, start)
            ranges = capped(self._following(cluster, before, first=start is None), self.max_rows_per_epoch)
        return _position(id, ranges, {name: range for name, range in before.items() if not self._means(name)})

    def _means(self, name: str) -> bool:
        return name in self.topics if self.pattern is None else re.fullmatch(self.pattern, name) is not None

    def _found(self, cluster: Cluster) -> Iterator[tuple[str, Topic]]:
        if self.pattern is None:
            yield from ((name, cluster.require_topic(name)) for name in self.topics)
            return
        for name in cluster.topics():
            if self._means(name) and (topic := cluster.topic(name)):
                yield name, topic

    def _of_interval(self, cluster: Cluster, interval: Interval) -> Iterator[tuple[str, TopicRange]]:
        from lockstep.sources.kafka.intervals import range_of_interval

        for name, topic in self._found(cluster):
            lost = name in self.accept_loss
            yield name, range_of_interval(self._where, cluster, topic, interval, self.settle, accept_loss=lost)

    def _before(self, id: str, start: Position | None) -> dict[str, TopicRange]:
        """Where every topic ended that was read before."""
        if start is None:
            return {}
        if start["cluster"] != id and not self.accept_loss:
            raise SourceChanged(f"{self._where}: positions are of cluster {start['cluster']}, this is {id}")
        left = {name: TopicRange.from_json(value) for name, value in start.get("left", {}).items()}
        return left | {name: _ends_of(range) for name, range in _ranges(start).items()}

    def _following(self, cluster: Cluster, before: Mapping[str, TopicRange], *, first: bool) -> dict[str, TopicRange]:
        """Everything between the last epoch's end and what is decided now."""
        for name, last in before.items():
            if self._means(name) and name not in self.accept_loss:
                require_same_topic(self._where, name, last.id, cluster.topic(name))
        return {
            name: self._after(cluster, Standing.of(cluster, topic), before.get(name), first=first)
            for name, topic in self._found(cluster)
        }

    def _after(self, cluster: Cluster, standing: Standing, last: TopicRange | None, *, first: bool) -> TopicRange:
        name = standing.topic.name
        begins = {number: oldest for number, (oldest, _) in standing.partitions.items()}
        if first:
            begins |= first_offsets(self._where, cluster, standing, self.start)
        if last is not None and name in self.accept_loss:
            begins |= taken_up(last, standing, self._cuts(name, last, standing))
        elif last is not None:
            begins |= {number: end for number, (_, end) in last.partitions.items()}
        found = standing.range(
            {number: (begins[number], max(begins[number], end)) for number, (_, end) in standing.partitions.items()}
        )
        self._require_whole(name, found, standing)
        self._tell_waiting(cluster, name, found)
        if last is not None and name not in self.accept_loss:
            self._require_whole(name, last, standing)
        return found

    def _tell_waiting(self, cluster: Cluster, name: str, found: TopicRange) -> None:
        """Log what an open transaction keeps from an epoch that has nothing else of its partition."""
        idle = {number: end for number, (first, end) in found.partitions.items() if first == end}
        for number, newest in cluster.ends(name, idle).items():
            if newest > idle[number]:
                _log.warning(
                    "%s: %d offsets of %s/%d wait for a transaction that is open since offset %d; if its producer is "
                    "gone, brokers abort it after its timeout, or kafka-transactions.sh does",
                    *(self._where, newest - idle[number], name, number, idle[number]),
                )

    def _require_whole(self, name: str, range: TopicRange, standing: Standing) -> None:
        require_whole(self._where, name, range, standing)
        require_uncut(self._where, name, self._cuts(name, range, standing))

    def _cuts(self, name: str, range: TopicRange, standing: Standing) -> dict[int, Cut]:
        from lockstep.kafka.truncation import truncations

        places = newly_led(range, standing) if range.id == standing.topic.id else {}
        return truncations(self._settings, self._asker, name, places) if places else {}

    def report_published(self, start: Position | None, end: Position) -> None:
        """Commit the range's ends as the group's offsets. Nothing reads them here: they are for lag monitors."""
        if self.group is not None:
            ends = {name: {n: e for n, (_, e) in range.partitions.items()} for name, range in _ranges(end).items()}
            with self._cluster() as cluster:
                cluster.commit_offsets(self.group, ends)

    # --- reading ---

    def check(self, start: Position | None, end: Position) -> None:
        with self._cluster() as cluster:
            for name, range in _ranges(end).items():
                topic = require_same_topic(self._where, name, range.id, cluster.topic(name))
                self._require_whole(name, range, Standing.of(cluster, topic))

    def is_empty(self, start: Position | None, end: Position) -> bool:
        return not any(range.offsets for range in _ranges(end).values())

    def read_records(self, spark: SparkSession, start: Position | None, end: Position) -> Records:
        """Every record of the frozen ranges, with those that can't be decoded marked."""
        from lockstep.kafka.java_client import java_settings

        settings = java_settings(self._settings, self._where)
        hide_login(spark, settings)
        return read_ranges(spark, _ranges(end), settings, self._key, self._value, headers=self.headers)


def _position(cluster: str, ranges: Mapping[str, TopicRange], left: Mapping[str, TopicRange]) -> Position:
    found: Position = {"cluster": cluster, "topics": {name: range.to_json() for name, range in sorted(ranges.items())}}
    return found | ({"left": {name: range.to_json() for name, range in sorted(left.items())}} if left else {})


def _ranges(position: Position) -> dict[str, TopicRange]:
    return {name: TopicRange.from_json(value) for name, value in position["topics"].items()}


def _ends_of(range: TopicRange) -> TopicRange:
    """Nothing but where it ends: what has been read may be gone, what comes after may not."""
    return replace(range, partitions={number: (end, end) for number, (_, end) in range.partitions.items()})


def _is_expression(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True
