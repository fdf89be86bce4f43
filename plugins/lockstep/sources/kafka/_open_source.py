"""A KafkaSource that is open: each epoch takes a frozen range of offsets from each partition."""

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
from lockstep.connections.kafka.java_client import java_settings
from lockstep.connections.kafka.redaction import hide_login
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
    left_topics,
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

_RECORD_BYTES = 200  #: of a record whose size nobody knows
_NAMED = 10  #: places in one message
_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class OpenKafkaSource(OpenRecordSource):
    """What epochs of offsets and epochs of intervals have in common.

    `topics`, or what has a name that `pattern` matches whole. `accept_loss`: topics that may lack records. `subjects`:
    of the registry; empty: a topic's own, for its keys and for its values.
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
        """Raises `SourceChanged` by one of its kinds, `SourceNotReady`, `SourceUnavailable`, `SourceRefused`."""

    def _includes(self, name: str) -> bool:
        return name in self.topics if self.pattern is None else re.fullmatch(self.pattern, name) is not None

    def _look_up(self, is_needed: Callable[[str], bool] = lambda name: True) -> Iterator[Topic]:
        """The topics that are there, and needed. Raises `SourceRefused` for a name that the cluster doesn't have."""
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
                continue  # nothing of it is read, by this epoch or a later one: it may be gone
            topic = require_same_topic(self.cluster.who.name, name, range.id, self.cluster.topic(name))
            require_whole(self.cluster, range, TopicBounds.of(self.cluster, topic))

    def join(self, ends: Sequence[Position]) -> Position:
        joined: dict[str, TopicRange] = {}
        for end in ends:
            for name, found in ranges_of(end).items():
                try:
                    joined[name] = joined[name].followed_by(found) if name in joined else found
                except ValueError as gap:
                    raise SourceRefused(f"{self.cluster.who.name}: topic {name}: {gap}") from None
        return position_of(ends[-1]["cluster"], joined, left_topics(ends[-1]), ends[-1].get("bound"))

    def is_empty(self, start: Position | None, end: Position) -> bool:
        return not any(range.offsets for range in ranges_of(end).values())

    def is_finished(self, start: Position | None, end: Position) -> bool:
        return is_finished(end)

    def bytes_planned(self, start: Position | None, end: Position) -> int:
        return _RECORD_BYTES * sum(range.offsets for range in ranges_of(end).values())

    def read_records(self, spark: SparkSession, start: Position | None, end: Position) -> SourceRecords:
        """Every record of the frozen ranges, with those that can't be decoded marked."""
        settings = java_settings(self.cluster.settings, self.cluster.who.name)
        hide_login(spark, settings)
        ranges = ranges_of(end)
        subjects = {part.column: self._subjects(part, ranges) for part in (self.key, self.value)}
        key, value = (self._with_writers(part, subjects[part.column]) for part in (self.key, self.value))
        records = read_ranges(spark, ranges, settings, key, value, self.cluster, headers=self.headers)
        asked = [(part, subjects[part.column]) for part in (key, value) if part.writers is not None]
        confirming = partial(confirm_bad, self.registry, asked) if self.registry and asked else None
        return replace(records, confirm_bad=confirming)

    def _subjects(self, part: Decoding, ranges: Mapping[str, TopicRange]) -> tuple[str, ...]:
        """Under which the schemas of a part's writers are registered."""
        named = tuple(f"{name}-{part.column}" for name, range in ranges.items() if range.offsets)
        return self.subjects or named if named else ()

    def _with_writers(self, part: Decoding, subjects: tuple[str, ...]) -> Decoding:
        """With the schemas by which the ranges' records may have been written: they were registered before that."""
        if self.registry is None or part.encoding is not PartEncoding.AVRO:
            return part
        return replace(part, writers=self.registry.schemas_of(subjects))

    def report_published(self, start: Position | None, end: Position) -> None:
        """Commit the range's ends as the group's offsets. Nothing reads them here: they are for lag monitors."""
        if self.group is not None:
            self.cluster.commit_offsets(self.group, {name: range.ends for name, range in ranges_of(end).items()})


@dataclass(frozen=True, eq=False)
class IntervalKafkaSource(OpenKafkaSource):
    """An epoch has the records of its interval. `settle`: how long after it the epoch begins."""

    settle: timedelta

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        if interval is None:
            raise IntervalMissing(f"{self.cluster.who.name} needs a data interval")
        found = {topic.name: self._range(topic, interval) for topic in self._look_up()}
        position = position_of(self.cluster.id(), {name: range for name, (range, _) in found.items()}, {})
        return with_clock_ends(position, interval, {name: numbers for name, (_, numbers) in found.items()})

    def _range(self, topic: Topic, interval: Interval) -> tuple[TopicRange, list[int]]:
        lost = topic.name in self.accept_loss
        return range_of_interval(self.cluster, topic, interval, self.settle, accept_loss=lost)

    def lacks(self, start: Position | None, end: Position) -> str | None:
        late = [place for name, place in find_late(self.cluster, end) if name not in self.accept_loss]
        if not late:
            return None
        return (
            f"records that came when its range had been planned ({list_some(late, _NAMED)}): their brokers' clocks are "
            f"behind this one's by more than settle, which is {self.settle}: have it be longer than clocks may differ"
        )

    def late_files(self, start: Position | None, end: Position) -> Sequence[str]:
        """Places of records."""
        return [place for _, place in find_late(self.cluster, end)]


@dataclass(frozen=True, eq=False)
class CursorKafkaSource(OpenKafkaSource):
    """An epoch goes on where the one before ended. `most`: offsets of an epoch. `ending`: where there is an end."""

    start: Start
    offset_reset: str
    ending: Ending | None
    most: int | None

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        found = self.ending.bound_before(start) if self.ending else None
        if start is not None and found:
            found = self._looked_at_again(start, found)
        if start is not None and found and is_finished({**start, "bound": found.to_json()}):
            # no broker is asked: topics, and the cluster, may be gone by now
            return position_of(start["cluster"], {}, _ends(start), found.to_json())
        id = self.cluster.id()
        before = self._ends_before(id, start)
        done = {name for name, last in before.items() if found and found.is_reached(name, last)}
        topics = self._topics(before, done, found)
        bound = None
        if self.ending and found:
            bound = self.ending.find(self.cluster, topics, found.without(self._lost(found, done)))
        if start is None and (group := group_of(self.start)) is not None:
            warn_of_members(self.cluster, group)
        ranges = {
            one.topic.name: self._after(one, before.get(one.topic.name), bound, first=start is None) for one in topics
        }
        left = {name: last for name, last in before.items() if name in done or not self._includes(name)}
        return position_of(id, cap(ranges, self.most), left, bound.to_json() if bound else None)

    def _looked_at_again(self, start: Position, found: Bound) -> Bound:
        """What is read to its ends, with those that no record has told as they are now. Whoever can't be asked has
        nothing new as far as this epoch goes: topics, and the cluster, may be gone by now."""
        if self.ending is None or not found.by_clock or not is_finished({**start, "bound": found.to_json()}):
            return found
        try:
            if self.cluster.id() != start["cluster"]:
                return found
            topics = [topic for name in found.by_clock if (topic := self.cluster.topic(name)) is not None]
            same = [TopicBounds.of(self.cluster, topic) for topic in topics if topic.id == found.ids[topic.name]]
            return self.ending.find(self.cluster, same, found)
        except (SourceUnavailable, SourceRefused) as error:
            _log.warning("a later epoch asks whether more came before the end, which this one couldn't: %s", error)
            return found

    def _ends_before(self, id: str, start: Position | None) -> dict[str, TopicRange]:
        """Where every topic ended that was read before."""
        if start is None:
            return {}
        if start["cluster"] != id and not self.accept_loss:
            raise SourceChanged(f"{self.cluster.who.name}: positions are of cluster {start['cluster']}, this is {id}")
        return _ends(start)

    def _topics(
        self, before: Mapping[str, TopicRange], done: Collection[str], found: Bound | None
    ) -> list[TopicBounds]:
        """What those have now of which something may be read. `done`: of which all is read. `found`: the ends that
        earlier epochs found."""

        def is_needed(name: str) -> bool:
            return name not in done and not (found and found.leaves_out(name))

        known = {(name, last.id) for name, last in before.items()} | set((found.ids if found else {}).items())
        topics: dict[str, Topic] = {}
        for name, id in sorted(known):
            if self._includes(name) and is_needed(name):
                topic = self.cluster.topic(name)
                if name not in self.accept_loss:
                    topic = require_same_topic(self.cluster.who.name, name, id, topic)
                if topic is not None:
                    topics[name] = topic  # whether a list of all topics has it or not: it goes on where it ended
        topics |= {topic.name: topic for topic in self._look_up(lambda name: is_needed(name) and name not in topics)}
        return [TopicBounds.of(self.cluster, topic) for _, topic in sorted(topics.items())]

    def _lost(self, found: Bound, done: Collection[str]) -> list[str]:
        """The topics whose ends are those of one that is gone, which is accepted. Who lists topics isn't told of those
        that the login may not see; who asks for one is."""
        asked = {name: id for name, id in found.ids.items() if name in self.accept_loss and name not in done}
        return [name for name, id in asked.items() if (now := self.cluster.topic(name)) is None or now.id != id]

    def _after(self, bounds: TopicBounds, last: TopicRange | None, bound: Bound | None, *, first: bool) -> TopicRange:
        """Everything between the last epoch's end and what is decided now, and not behind `bound`."""
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
        """Log what an open transaction keeps from an epoch that has nothing else of its partition."""
        idle = {number: end for number, (first, end) in range.partitions.items() if first == end}
        ends = bound.offsets.get(name, {}) if bound else {}
        wanted = {number: end for number, end in idle.items() if number in ends or not (bound and bound.complete)}
        for number, newest in self.cluster.ends(name, wanted).items():
            if min(newest, ends.get(number, newest)) > idle[number]:
                _log.warning(
                    "%s: %d offsets of %s/%d wait for a transaction that is open since offset %d; if its producer is "
                    "gone, brokers abort it after its timeout, or kafka-transactions.sh does",
                    *(self.cluster.who.name, newest - idle[number], name, number, idle[number]),
                )


def _ends(start: Position) -> dict[str, TopicRange]:
    return left_topics(start) | {name: range.behind() for name, range in ranges_of(start).items()}


_BY_CLOCK = "by_clock"  #: {"until": time, "topics": {name: [partitions whose end no record has told]}}


def range_of_interval(
    cluster: Cluster, topic: Topic, interval: Interval, settle: timedelta, *, accept_loss: bool
) -> tuple[TopicRange, list[int]]:
    """With the partitions whose end no record has told; that of all others is the same whenever it is asked for.

    Raises `SourceNotReady`, `SourceRefused`, and `OffsetsExpired` if records of the interval may be gone.
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
    newest = cluster.ends(topic.name, bounds.partitions)  # before all else: what comes meanwhile isn't within them
    told = cluster.offsets_at(topic.name, bounds.partitions, interval.end)
    ends = _edges(cluster, bounds, newest, told, interval.end)
    begun = cluster.offsets_at(topic.name, bounds.partitions, interval.start)
    firsts = _edges(cluster, bounds, newest, begun, interval.start)
    if not accept_loss and _may_have_expired(settings, datetime.now(UTC) - interval.start + settle):
        _require_older(where, bounds, firsts, interval)
    ranges = {number: (first, max(first, ends[number])) for number, first in firsts.items()}
    return bounds.range(ranges), [number for number, offset in told.items() if offset is None]


def _edges(
    cluster: Cluster, bounds: TopicBounds, newest: Mapping[int, int], found: Mapping[int, int | None], time: datetime
) -> dict[int, int]:
    """The offsets of the first records of that time or later, as far as they were found, else the partitions' ends."""
    edges = {number: newest[number] if offset is None else offset for number, offset in found.items()}
    for number, edge in edges.items():
        if edge > bounds.partitions[number][1]:
            name = bounds.topic.name
            raise SourceNotReady(f"{cluster.who.name}: a transaction is open in {name}/{number}, before {time}")
    return edges


def with_clock_ends(position: Position, interval: Interval, by_clock: Mapping[str, Collection[int]]) -> Position:
    """The position of an interval's epoch. `by_clock`: of each topic the partitions whose end no record has told."""
    topics = {name: sorted(numbers) for name, numbers in sorted(by_clock.items()) if numbers}
    return position | ({_BY_CLOCK: {"until": interval.end.isoformat(), "topics": topics}} if topics else {})


def find_late(cluster: Cluster, position: Position) -> Iterator[tuple[str, str]]:
    """Topic and place of records that belong to an interval, and came when its range had been planned. A topic that is
    gone, or another one by now, has nothing to tell."""
    by_clock: Json = position.get(_BY_CLOCK) or {"topics": {}}
    for name, numbers in by_clock["topics"].items():
        planned, topic = ranges_of(position)[name], cluster.topic(name)
        if topic is None or topic.id != planned.id:
            continue
        newest = cluster.ends(name, numbers)
        found = cluster.offsets_at(name, numbers, datetime.fromisoformat(by_clock["until"]))
        oldest = cluster.beginnings(name, numbers)  # after the rest: what is gone meanwhile tells nothing
        for number, told in found.items():
            first, end = max(planned.ends[number], oldest[number]), newest[number] if told is None else told
            if first < end:
                yield name, f"kafka:{name}/{number}@{first}" + (f" to {end - 1}" if end - 1 > first else "")


def _may_have_expired(settings: Mapping[str, str], age: timedelta) -> bool:
    """Whether brokers that keep to the topic's settings, and to this clock, may have taken a record of that age."""
    if "delete" not in settings.get("cleanup.policy", "delete"):
        return False
    kept, size = int(settings.get("retention.ms", "0")), int(settings.get("retention.bytes", "0"))
    return size >= 0 or (kept >= 0 and age / timedelta(milliseconds=1) > kept)


def _require_older(where: str, bounds: TopicBounds, firsts: Mapping[int, int], interval: Interval) -> None:
    """Raises `OffsetsExpired` unless each partition still has a record from before the interval, or all it ever had."""
    for number, (oldest, _) in bounds.partitions.items():
        if 0 < oldest == firsts[number]:
            name = bounds.topic.name
            raise OffsetsExpired(
                f"{where}: the records of {name}/{number} before {oldest} are gone, and some of them may have been of "
                f"{interval}; accept_loss=({name!r},) reads what is left"
            )
