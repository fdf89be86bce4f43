"""Kafka topics as a source: each epoch takes a frozen range of offsets from each partition (Flink: KafkaSource)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lockstep.epoch import Identity, Interval, Position
from lockstep.errors import (
    IntervalMissing,
    InvalidPipeline,
    SourceChanged,
    SourceNotReady,
    SourceRefused,
    SourceUnavailable,
)
from lockstep.sources.base import SourceContext
from lockstep.sources.kafka.ranges import Standing, TopicRange, capped, require_same_topic, require_whole
from lockstep.sources.kafka.records import Decoding, read_ranges
from lockstep.sources.records import Records, RecordSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.kafka.cluster import Cluster, Topic

Start = str | datetime | Mapping[str, Mapping[int, int]]


@dataclass(eq=False, kw_only=True)
class KafkaSource(RecordSource):
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
    `OffsetsExpired`, `LogTruncated`, `TopicRecreated`. `accept_loss=("orders",)` takes up such a topic again where it
    now begins. Positions are {"cluster", "topics": {name: {"id", "partitions": {number: [first, end]}}}}.
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
    accept_loss: tuple[str, ...] = ()
    identity: Identity = field(init=False, default=Identity.CURSOR)

    def __post_init__(self) -> None:
        self.topics = (self.topics,) if isinstance(self.topics, str) else tuple(self.topics)
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
        if isinstance(self.start, str) and self.start not in ("earliest", "latest"):
            raise InvalidPipeline(f"{self._where}: start is 'earliest', 'latest', a time, or offsets by topic")
        if self.max_rows_per_epoch is not None and self.max_rows_per_epoch < 1:
            raise InvalidPipeline(f"{self._where}: max_rows_per_epoch must be at least 1")
        if isinstance(self.start, datetime) and self.start.tzinfo is None:
            raise InvalidPipeline(f"{self._where}: start is a time without a time zone")

    @property
    def _where(self) -> str:
        return f"source {self._context.source if self._context else self.pattern or ', '.join(self.topics)}"

    # --- life cycle ---

    @property
    def connections(self) -> tuple[str, ...]:
        return (self.connection,)

    def open(self, context: SourceContext) -> None:
        self._context = context

    @property
    def _settings(self) -> dict[str, str]:
        from lockstep.kafka.connection import settings_of

        if self._context is None:
            raise InvalidPipeline(f"{self._where} was asked for records before it was opened")
        return settings_of(self._context.dsn(self.connection), self._where)

    @contextmanager
    def _cluster(self) -> Iterator[Cluster]:
        from lockstep.kafka.cluster import Cluster
        from lockstep.kafka.connection import Asker

        cluster = Cluster(self._settings, Asker(self._where, SourceUnavailable, SourceRefused))
        try:
            yield cluster
        finally:
            cluster.close()

    # --- planning ---

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        """Raises `SourceChanged` by one of its kinds, `SourceNotReady`, `SourceUnavailable`, `SourceRefused`."""
        with self._cluster() as cluster:
            id = cluster.id()
            if self.by_interval:
                if interval is None:
                    raise IntervalMissing(f"{self._where} needs a data interval")
                ranges = {name: self._of_interval(cluster, topic, interval) for name, topic in self._found(cluster)}
            else:
                ranges = capped(self._following(cluster, id, start), self.max_rows_per_epoch)
        return {"cluster": id, "topics": {name: range.to_json() for name, range in sorted(ranges.items())}}

    def _found(self, cluster: Cluster) -> Iterator[tuple[str, Topic]]:
        if self.pattern is None:
            yield from ((name, cluster.require_topic(name)) for name in self.topics)
            return
        for name in cluster.topics():
            if re.fullmatch(self.pattern, name) and (topic := cluster.topic(name)):
                yield name, topic

    def _following(self, cluster: Cluster, id: str, start: Position | None) -> dict[str, TopicRange]:
        """Everything between the last epoch's end and what is decided now."""
        before = _ranges(start) if start is not None else {}
        if start is not None and start["cluster"] != id and not self.accept_loss:
            raise SourceChanged(f"{self._where}: positions are of cluster {start['cluster']}, this is {id}")
        now = dict(self._found(cluster))
        ranges = {}
        for name in sorted(now.keys() | before.keys() if self.pattern is None else now.keys()):
            last = before.get(name)
            if last is not None and name not in self.accept_loss:
                require_same_topic(self._where, name, last.id, now.get(name))
            if name in now:
                ranges[name] = self._after(cluster, Standing.of(cluster, now[name]), last, first=start is None)
        return ranges

    def _after(self, cluster: Cluster, standing: Standing, last: TopicRange | None, *, first: bool) -> TopicRange:
        name = standing.topic.name
        begins = {number: oldest for number, (oldest, _) in standing.partitions.items()}
        if first:
            begins |= self._first(cluster, standing)
        if last is not None and not (name in self.accept_loss and not _continues(last, standing)):
            begins |= {number: end for number, (_, end) in last.partitions.items()}
        found = TopicRange(
            standing.topic.id,
            {number: (begins[number], max(begins[number], end)) for number, (_, end) in standing.partitions.items()},
        )
        require_whole(self._where, name, found, standing)
        if last is not None and name not in self.accept_loss:
            require_whole(self._where, name, _ends_of(last), standing)
        return found

    def _first(self, cluster: Cluster, standing: Standing) -> dict[int, int]:
        """Where the first epoch starts, as far as `start` says."""
        ends = {number: end for number, (_, end) in standing.partitions.items()}
        if self.start == "earliest":
            return {}
        if self.start == "latest":
            return ends
        if isinstance(self.start, datetime):
            found = cluster.offsets_at(standing.topic.name, ends, self.start)
            return {number: min(ends[number], ends[number] if at is None else at) for number, at in found.items()}
        assert isinstance(self.start, Mapping)
        return {int(number): int(offset) for number, offset in self.start.get(standing.topic.name, {}).items()}

    def _of_interval(self, cluster: Cluster, topic: Topic, interval: Interval) -> TopicRange:
        if datetime.now(UTC) < interval.end + self.settle:
            raise SourceNotReady(f"{self._where}: records of {interval} may still come, until {self.settle} after it")
        if (kind := cluster.topic_settings(topic.name).get("message.timestamp.type")) != "LogAppendTime":
            raise SourceRefused(
                f"{self._where}: topic {topic.name} has message.timestamp.type={kind}: a producer may send a record of "
                "an interval that was read already; set it to LogAppendTime, or read the topic without by_interval"
            )
        standing = Standing.of(cluster, topic)
        firsts = self._edge(cluster, standing, interval.start)
        ends = self._edge(cluster, standing, interval.end)
        return TopicRange(topic.id, {number: (firsts[number], ends[number]) for number in standing.partitions})

    def _edge(self, cluster: Cluster, standing: Standing, time: datetime) -> dict[int, int]:
        """The offset of the first record of that time or later, the same whenever it is asked for."""
        name, edges = standing.topic.name, {}
        newest = cluster.ends(name, standing.partitions)
        for number, offset in cluster.offsets_at(name, standing.partitions, time).items():
            stable = standing.partitions[number][1]
            edge = newest[number] if offset is None else offset
            if edge > stable:
                raise SourceNotReady(f"{self._where}: a transaction is open in {name}/{number}, before {time}")
            edges[number] = edge
        return edges

    def published(self, start: Position | None, end: Position) -> None:
        """Commit the range's ends as the group's offsets. Nothing reads them here: they are for lag monitors."""
        from lockstep.kafka.connection import Asker
        from lockstep.kafka.groups import commit_offsets

        if self.group is not None:
            ends = {name: {n: e for n, (_, e) in range.partitions.items()} for name, range in _ranges(end).items()}
            commit_offsets(self._settings, Asker(self._where, SourceUnavailable, SourceRefused), self.group, ends)

    # --- reading ---

    def check(self, start: Position | None, end: Position) -> None:
        with self._cluster() as cluster:
            for name, range in _ranges(end).items():
                topic = require_same_topic(self._where, name, range.id, cluster.topic(name))
                require_whole(self._where, name, range, Standing.of(cluster, topic))

    def is_empty(self, start: Position | None, end: Position) -> bool:
        return not any(range.offsets for range in _ranges(end).values())

    def read_records(self, spark: SparkSession, start: Position | None, end: Position) -> Records:
        """Every record of the frozen ranges, with those that can't be decoded marked."""
        from lockstep.kafka.java_client import java_settings

        settings = java_settings(self._settings, self._where)
        return read_ranges(spark, _ranges(end), settings, self._key, self._value, headers=self.headers)

    def read(self, spark: SparkSession, start: Position | None, end: Position) -> DataFrame:
        return self.read_records(spark, start, end).good()


def _ranges(position: Position) -> dict[str, TopicRange]:
    return {name: TopicRange.from_json(value) for name, value in position["topics"].items()}


def _ends_of(range: TopicRange) -> TopicRange:
    """Nothing but where it ends: what has been read may be gone, what comes after may not."""
    return TopicRange(range.id, {number: (end, end) for number, (_, end) in range.partitions.items()})


def _continues(last: TopicRange, standing: Standing) -> bool:
    """Whether the topic goes on where the last epoch ended."""
    found = standing.partitions
    return last.id == standing.topic.id and all(
        number in found and found[number][0] <= end <= found[number][1] for number, (_, end) in last.partitions.items()
    )
