"""A topic's records of a time: the range that brokers stamped within an interval.

A record of the interval's end, or a later one, tells where that is, for good: what comes next comes behind it. A
partition without one ends where it ends now, since by this machine's clock the interval is over. Brokers have clocks of
their own, and none that could be asked: whose is behind by more than `settle` still stamps records of the interval.
Therefore plans say which ends no record has told, and those are looked at again: before the seal, when the next
interval is planned, and for reports.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from lockstep.connections.kafka.cluster import Cluster, Topic
from lockstep.epoch import Interval, Json, Position
from lockstep.errors import OffsetsExpired, SourceNotReady, SourceRefused
from lockstep.sources.kafka._ranges import TopicBounds, TopicRange, ranges_of

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
