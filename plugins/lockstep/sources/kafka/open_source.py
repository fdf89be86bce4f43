"""An opened KafkaSource: each epoch reads a frozen range of offsets from each partition."""

from __future__ import annotations

import logging
import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from lockstep.connections.kafka.cluster import Cluster, Topic
from lockstep.connections.kafka.connection import hide_login, java_settings
from lockstep.epoch import Interval, Json, Position
from lockstep.errors import (
    IntervalMissing,
    OffsetsExpired,
    SourceChanged,
    SourceNotReady,
    SourceRefused,
    SourceUnavailable,
)
from lockstep.observability.redaction import list_some
from lockstep.sources.kafka._decoding import Decoding, PartEncoding
from lockstep.sources.kafka._offsets import (
    Bound,
    Ending,
    Start,
    first_offsets,
    group_of,
    group_range,
    is_finished,
    warn_of_members,
)
from lockstep.sources.kafka._ranges import (
    TopicBounds,
    TopicRange,
    cap,
    past_topics,
    position_of,
    ranges_of,
    require_same_topic,
    require_whole,
    resume_offsets,
)
from lockstep.sources.kafka._records import confirm_bad, read_ranges
from lockstep.sources.records import OpenRecordSource, SourceRecords

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.connections.kafka.schema_registry import SchemaRegistry

_RECORD_BYTES = 200  #: assumed size of a record
_SHOWN = 10  #: places in one message
_log = logging.getLogger(__name__)

_BY_CLOCK = "by_clock"  #: {"until": time, "topics": {name: [partitions whose end no record marks]}}


@dataclass(frozen=True, eq=False)
class OpenKafkaSource(OpenRecordSource):
    """Common part of epochs of offsets and epochs of intervals.

    `topics`, or topics that `pattern` matches. `accept_loss`: topics that may lack records. `subjects`: of
    the registry; empty: those of each topic's keys and values.
    """

    cluster: Cluster
    topics: tuple[str, ...]
    pattern: str | None
    accept_loss: tuple[str, ...]
    key: Decoding
    value: Decoding
    headers: bool
    on_bad_records: str
    group: str | None
    registry: SchemaRegistry | None
    subjects: tuple[str, ...]

    def close(self) -> None:
        self.cluster.close()

    # --- planning ---

    @abstractmethod
    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        """Raise `SourceChanged` or a subclass, `SourceNotReady`, `SourceUnavailable`, `SourceRefused`."""

    def _includes(self, name: str) -> bool:
        return name in self.topics if self.pattern is None else re.fullmatch(self.pattern, name) is not None

    def _look_up(self, is_needed: Callable[[str], bool] = lambda name: True) -> Iterator[Topic]:
        """Yield the existing topics that are needed. Raises `SourceRefused` for a name that the cluster lacks."""
        if self.pattern is None:
            yield from (self.cluster.require_topic(name) for name in self.topics if is_needed(name))
            return
        for name in self.cluster.topics():
            if is_needed(name) and self._includes(name) and (topic := self.cluster.topic(name)):
                yield topic

    # --- reading ---

    def check(self, start: Position | None, end: Position) -> None:
        bound = Bound.of_position(end)
        for name, range in ranges_of(end).items():
            if bound and not range.offsets and bound.is_reached(name, range):
                continue  # no further epoch reads it, so it may have been deleted
            topic = require_same_topic(self.cluster.who.name, name, range.id, self.cluster.topic(name))
            require_whole(self.cluster, range, TopicBounds.of(self.cluster, topic))

    def join(self, ends: Sequence[Position]) -> Position:
        joined: dict[str, TopicRange] = {}
        for end in ends:
            for name, range in ranges_of(end).items():
                try:
                    joined[name] = joined[name].followed_by(range) if name in joined else range
                except ValueError as gap:
                    raise SourceRefused(f"{self.cluster.who.name}: topic {name}: {gap}") from None
        return position_of(ends[-1]["cluster"], joined, past_topics(ends[-1]), ends[-1].get("bound"))

    def is_empty(self, start: Position | None, end: Position) -> bool:
        return not any(range.offsets for range in ranges_of(end).values())

    def is_finished(self, start: Position | None, end: Position) -> bool:
        return is_finished(end)

    def bytes_planned(self, start: Position | None, end: Position) -> int:
        return _RECORD_BYTES * sum(range.offsets for range in ranges_of(end).values())

    def read_records(self, spark: SparkSession, start: Position | None, end: Position) -> SourceRecords:
        """Read every record of the frozen ranges, with undecodable ones marked."""
        settings = java_settings(self.cluster.settings, self.cluster.who.name)
        hide_login(spark, settings)
        ranges = ranges_of(end)
        parts, registered = [self.key, self.value], list[tuple[Decoding, tuple[str, ...]]]()
        for number, part in enumerate(parts):
            if self.registry is None or part.encoding is not PartEncoding.AVRO:
                continue
            subjects = tuple(f"{name}-{part.column}" for name, range in ranges.items() if range.offsets)
            if subjects and self.subjects:
                subjects = self.subjects
            parts[number] = replace(part, writers=self.registry.schemas_of(subjects))  # registered before the records
            registered.append((parts[number], subjects))
        records = read_ranges(spark, ranges, settings, parts[0], parts[1], self.cluster, headers=self.headers)
        confirming = partial(confirm_bad, self.registry, registered) if self.registry and registered else None
        return replace(records, confirm_bad=confirming)

    def report_published(self, start: Position | None, end: Position) -> None:
        """Commit the range's ends as the group's offsets, for lag monitors. Lockstep doesn't read them."""
        if self.group is not None:
            self.cluster.commit_offsets(self.group, {name: range.ends for name, range in ranges_of(end).items()})


@dataclass(frozen=True, eq=False)
class IntervalKafkaSource(OpenKafkaSource):
    """An epoch has the records of its interval. `settle`: how long after it the epoch begins."""

    settle: timedelta

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        if interval is None:
            raise IntervalMissing(f"{self.cluster.who.name} needs a data interval")
        ranges, by_clock = dict[str, TopicRange](), dict[str, list[int]]()
        for topic in self._look_up():
            accepted = topic.name in self.accept_loss
            ranges[topic.name], by_clock[topic.name] = range_of_interval(
                self.cluster, topic, interval, self.settle, accept_loss=accepted
            )
        return with_clock_ends(position_of(self.cluster.id(), ranges, {}), interval, by_clock)

    def lacks(self, start: Position | None, end: Position) -> str | None:
        late = [place for name, place in find_late(self.cluster, end) if name not in self.accept_loss]
        if not late:
            return None
        return (
            f"records that came after its range was planned ({list_some(late, _SHOWN)}): their brokers' clocks are "
            f"behind this one's by more than settle, {self.settle}: increase it beyond the difference of clocks"
        )

    def late_files(self, start: Position | None, end: Position) -> Sequence[str]:
        """Return places of records."""
        return [place for _, place in find_late(self.cluster, end)]


@dataclass(frozen=True, eq=False)
class CursorKafkaSource(OpenKafkaSource):
    """An epoch continues where the last one ended. `max_offsets`: of an epoch. `ending`: the declared end, if any."""

    start: Start
    offset_reset: str
    ending: Ending | None
    max_offsets: int | None

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        known_bound = self.ending.bound_before(start) if self.ending else None
        if start is not None and known_bound:
            known_bound = self._update_clock_ends(start, known_bound)
        if start is not None and known_bound and is_finished({**start, "bound": known_bound.to_json()}):
            # without querying a broker: topics, and the cluster, may be gone by now
            return position_of(start["cluster"], {}, _ends(start), known_bound.to_json())
        id = self.cluster.id()
        before = self._ends_before(id, start)
        done = {name for name, last in before.items() if known_bound and known_bound.is_reached(name, last)}
        topics = self._topics(before, done, known_bound)
        bound = None
        if self.ending and known_bound:
            bound = self.ending.find(self.cluster, topics, known_bound.without(self._lost(known_bound, done)))
        if start is None and (group := group_of(self.start)) is not None:
            warn_of_members(self.cluster, group)
        ranges = {
            bounds.topic.name: self._next_range(bounds, before.get(bounds.topic.name), bound, first=start is None)
            for bounds in topics
        }
        past = {name: last for name, last in before.items() if name in done or not self._includes(name)}
        return position_of(id, cap(ranges, self.max_offsets), past, bound.to_json() if bound else None)

    def _update_clock_ends(self, start: Position, bound: Bound) -> Bound:
        """Update ends that are known only by the clock, once everything up to them is read.

        If topics or the cluster can't be reached, this epoch has nothing new: they may have been removed by now.
        """
        if self.ending is None or not bound.by_clock or not is_finished({**start, "bound": bound.to_json()}):
            return bound
        try:
            if self.cluster.id() != start["cluster"]:
                return bound
            topics = [topic for name in bound.by_clock if (topic := self.cluster.topic(name)) is not None]
            same = [TopicBounds.of(self.cluster, topic) for topic in topics if topic.id == bound.ids[topic.name]]
            return self.ending.find(self.cluster, same, bound)
        except (SourceUnavailable, SourceRefused) as error:
            _log.warning("can't query whether more records came before the end; a later epoch tries again: %s", error)
            return bound

    def _ends_before(self, id: str, start: Position | None) -> dict[str, TopicRange]:
        """Return where every topic ended that was read before."""
        if start is None:
            return {}
        if start["cluster"] != id and not self.accept_loss:
            raise SourceChanged(f"{self.cluster.who.name}: positions are of cluster {start['cluster']}, this is {id}")
        return _ends(start)

    def _topics(
        self, before: Mapping[str, TopicRange], done: Collection[str], bound: Bound | None
    ) -> list[TopicBounds]:
        """Return the present bounds of the topics that may have something to read.

        `done`: topics that are read to their end. `bound`: the ends that earlier epochs determined.
        """

        def is_needed(name: str) -> bool:
            return name not in done and not (bound and bound.leaves_out(name))

        read_topics = {(name, last.id) for name, last in before.items()} | set((bound.ids if bound else {}).items())
        topics: dict[str, Topic] = {}
        for name, id in sorted(read_topics):
            if self._includes(name) and is_needed(name):
                topic = self.cluster.topic(name)
                if name not in self.accept_loss:
                    topic = require_same_topic(self.cluster.who.name, name, id, topic)
                if topic is not None:
                    topics[name] = topic  # even if a list of all topics omits it
        topics |= {topic.name: topic for topic in self._look_up(lambda name: is_needed(name) and name not in topics)}
        return [TopicBounds.of(self.cluster, topic) for _, topic in sorted(topics.items())]

    def _lost(self, bound: Bound, done: Collection[str]) -> list[str]:
        """Return topics with accepted loss that no longer are the ones with known ends.

        They are looked up by name, as a list of all topics omits those that the login may not see.
        """
        ids = {name: id for name, id in bound.ids.items() if name in self.accept_loss and name not in done}
        return [name for name, id in ids.items() if (topic := self.cluster.topic(name)) is None or topic.id != id]

    def _next_range(
        self, bounds: TopicBounds, last: TopicRange | None, bound: Bound | None, *, first: bool
    ) -> TopicRange:
        """Return the range from the last epoch's end to the present end, but not beyond `bound`."""
        accepted = bounds.topic.name in self.accept_loss
        begins = {number: oldest for number, (oldest, _) in bounds.partitions.items()}
        group = group_of(self.start)
        if first and group is not None:
            last = group_range(self.cluster, bounds, group, self.offset_reset, accept_loss=accepted)
        elif first:
            begins |= first_offsets(self.cluster, bounds, self.start)
        if last is not None:
            begins |= resume_offsets(self.cluster, last, bounds) if accepted else last.ends
        range = bounds.range(
            {number: (begins[number], max(begins[number], end)) for number, (_, end) in bounds.partitions.items()}
        )
        range = bound.clip(bounds.topic.name, range) if bound else range
        require_whole(self.cluster, range, bounds)
        self._warn_of_open_transactions(bounds.topic.name, range, bound)
        if last is not None and not accepted:
            require_whole(self.cluster, last, bounds)
        return range

    def _warn_of_open_transactions(self, name: str, range: TopicRange, bound: Bound | None) -> None:
        """Log open transactions that leave the epoch nothing of a partition."""
        idle = {number: end for number, (first, end) in range.partitions.items() if first == end}
        ends = bound.offsets.get(name, {}) if bound else {}
        waiting = {number: end for number, end in idle.items() if number in ends or not (bound and bound.complete)}
        for number, newest in self.cluster.ends(name, waiting).items():
            if min(newest, ends.get(number, newest)) > idle[number]:
                _log.warning(
                    "%s: %d offsets of %s/%d wait for a transaction that is open since offset %d; if its producer is "
                    "gone, brokers abort it after its timeout, or kafka-transactions.sh does",
                    *(self.cluster.who.name, newest - idle[number], name, number, idle[number]),
                )


def _ends(start: Position) -> dict[str, TopicRange]:
    return past_topics(start) | {name: range.behind() for name, range in ranges_of(start).items()}


def range_of_interval(
    cluster: Cluster, topic: Topic, interval: Interval, settle: timedelta, *, accept_loss: bool
) -> tuple[TopicRange, list[int]]:
    """Return the interval's range, and the partitions without a record that marks the end.

    A record with the interval's end as timestamp, or a later one, fixes the end: later records come after it. A
    partition without such a record ends at its present end, because the interval is over by this machine's clock; a
    broker whose clock is behind by more than `settle` may still add records of the interval, which `find_late` finds.

    Raises `SourceNotReady`, `SourceRefused`, and `OffsetsExpired` if records of the interval may have expired.
    """
    where = cluster.who.name
    if datetime.now(UTC) - settle < interval.end:
        raise SourceNotReady(f"{where}: records of {interval} may still come, until {settle} after it")
    settings = cluster.topic_settings(topic.name)
    if (kind := settings.get("message.timestamp.type")) != "LogAppendTime":
        raise SourceRefused(
            f"{where}: topic {topic.name} has message.timestamp.type={kind}: a producer may send a record of an "
            "interval that was read already; set it to LogAppendTime, or read the topic without by_interval"
        )
    bounds = TopicBounds.of(cluster, topic)
    newest = cluster.ends(topic.name, bounds.partitions)  # first, so that records that come meanwhile are excluded
    end_offsets = cluster.offsets_at(topic.name, bounds.partitions, interval.end)
    ends = _edges(cluster, bounds, newest, end_offsets, interval.end)
    start_offsets = cluster.offsets_at(topic.name, bounds.partitions, interval.start)
    firsts = _edges(cluster, bounds, newest, start_offsets, interval.start)
    if not accept_loss and _may_have_expired(settings, datetime.now(UTC) - interval.start + settle):
        for number, (oldest, _) in bounds.partitions.items():
            if 0 < oldest == firsts[number]:  # no record from before the interval is left, and not all are there
                raise OffsetsExpired(
                    f"{where}: the records of {topic.name}/{number} before {oldest} are gone, and some of them may "
                    f"have been of {interval}; accept_loss=({topic.name!r},) reads what is left"
                )
    ranges = {number: (first, max(first, ends[number])) for number, first in firsts.items()}
    return bounds.range(ranges), [number for number, offset in end_offsets.items() if offset is None]


def _edges(
    cluster: Cluster, bounds: TopicBounds, newest: Mapping[int, int], offsets: Mapping[int, int | None], time: datetime
) -> dict[int, int]:
    """Return the offset of the first record at or after `time` where there is one, else the partition's end."""
    edges = {number: newest[number] if offset is None else offset for number, offset in offsets.items()}
    for number, edge in edges.items():
        if edge > bounds.partitions[number][1]:
            name = bounds.topic.name
            raise SourceNotReady(f"{cluster.who.name}: a transaction is open in {name}/{number}, before {time}")
    return edges


def with_clock_ends(position: Position, interval: Interval, by_clock: Mapping[str, Collection[int]]) -> Position:
    """Return the position of an interval's epoch. `by_clock`: by topic the partitions without a mark."""
    topics = {name: sorted(numbers) for name, numbers in sorted(by_clock.items()) if numbers}
    return position | ({_BY_CLOCK: {"until": interval.end.isoformat(), "topics": topics}} if topics else {})


def find_late(cluster: Cluster, position: Position) -> Iterator[tuple[str, str]]:
    """Yield topic and place of records of an interval that came after its range was planned.

    Topics that were deleted or recreated yield nothing.
    """
    by_clock: Json = position.get(_BY_CLOCK) or {"topics": {}}
    for name, numbers in by_clock["topics"].items():
        planned, topic = ranges_of(position)[name], cluster.topic(name)
        if topic is None or topic.id != planned.id:
            continue
        newest = cluster.ends(name, numbers)
        offsets = cluster.offsets_at(name, numbers, datetime.fromisoformat(by_clock["until"]))
        oldest = cluster.beginnings(name, numbers)  # last: records that are deleted meanwhile don't count
        for number, offset in offsets.items():
            first, end = max(planned.ends[number], oldest[number]), newest[number] if offset is None else offset
            if first < end:
                yield name, f"kafka:{name}/{number}@{first}" + (f" to {end - 1}" if end - 1 > first else "")


def _may_have_expired(settings: Mapping[str, str], age: timedelta) -> bool:
    """Return True if, by the topic's settings, brokers may have deleted a record of that age."""
    if "delete" not in settings.get("cleanup.policy", "delete"):
        return False
    retention, size = int(settings.get("retention.ms", "0")), int(settings.get("retention.bytes", "0"))
    return size >= 0 or (retention >= 0 and age / timedelta(milliseconds=1) > retention)
