"""Ranges of offsets: where an epoch of topics begins and ends, and whether it can still be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lockstep.epoch import Json
from lockstep.errors import LogTruncated, OffsetsExpired, SourceChanged, TopicRecreated
from lockstep.kafka.cluster import Cluster, Topic


@dataclass(frozen=True)
class TopicRange:
    """A topic's records: partition → [first offset, offset behind the last). `id`: of the topic as it was made."""

    id: str
    partitions: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Json) -> TopicRange:
        partitions = {int(number): (int(first), int(end)) for number, (first, end) in value["partitions"].items()}
        return cls(value["id"], partitions)

    def to_json(self) -> Json:
        return {"id": self.id, "partitions": {str(n): [first, end] for n, (first, end) in self.partitions.items()}}

    @property
    def offsets(self) -> int:
        """As many records at most: transactions' own records have offsets too."""
        return sum(end - first for first, end in self.partitions.values())


@dataclass(frozen=True)
class Standing:
    """A topic now: what each of its partitions still has, as (oldest offset, end of what is decided)."""

    topic: Topic
    partitions: Mapping[int, tuple[int, int]]

    @classmethod
    def of(cls, cluster: Cluster, topic: Topic) -> Standing:
        numbers = range(topic.partitions)
        oldest = cluster.beginnings(topic.name, numbers)
        ends = cluster.ends(topic.name, numbers, stable=True)
        return cls(topic, {number: (oldest[number], ends[number]) for number in numbers})


def require_same_topic(where: str, name: str, id: str, topic: Topic | None) -> Topic:
    """Raises `TopicRecreated` unless `topic` is the one with that id."""
    if topic is None:
        raise TopicRecreated(f"{where}: topic {name} is gone, and with it records that no epoch has read")
    if topic.id != id:
        raise TopicRecreated(
            f"{where}: topic {name} was deleted and made anew (id {id}, now {topic.id}): its offsets count from 0 again"
        )
    return topic


def require_readable(where: str, name: str, number: int, first: int, end: int, now: tuple[int, int]) -> None:
    """Raises `OffsetsExpired` or `LogTruncated` unless [first, end) stands whole in what the partition has `now`."""
    oldest, stable = now
    if oldest > first and first < end:
        raise OffsetsExpired(
            f"{where}: the records {first} to {min(oldest, end) - 1} of {name}/{number} are gone, the oldest is "
            f"{oldest}"
        )
    if stable < end:
        raise LogTruncated(
            f"{where}: {name}/{number} ends at {stable}, and epochs have read or planned up to {end}: the log was cut, "
            "and offsets stand for other records now"
        )


def require_whole(where: str, name: str, range: TopicRange, standing: Standing) -> None:
    """Raises `SourceChanged`, by one of its kinds, unless the whole range can be read."""
    for number, (first, end) in range.partitions.items():
        if number not in standing.partitions:
            raise SourceChanged(f"{where}: topic {name} has lost partition {number}")
        require_readable(where, name, number, first, end, standing.partitions[number])


def capped(ranges: Mapping[str, TopicRange], most: int | None) -> dict[str, TopicRange]:
    """At most `most` offsets of all, from each partition in proportion to what it has; at least one offset."""
    total = sum(range.offsets for range in ranges.values())
    if most is None or total <= most:
        return dict(ranges)
    taken = {
        name: TopicRange(range.id, {n: (f, f + (e - f) * most // total) for n, (f, e) in range.partitions.items()})
        for name, range in ranges.items()
    }
    left = most - sum(range.offsets for range in taken.values())
    return {
        name: _filled(taken[name], range, left if name == _longest(ranges) else 0) for name, range in ranges.items()
    }


def _longest(ranges: Mapping[str, TopicRange]) -> str:
    return max(ranges, key=lambda name: (ranges[name].offsets, name))


def _filled(taken: TopicRange, whole: TopicRange, left: int) -> TopicRange:
    """`taken` with `left` offsets more, where there are any."""
    found = dict(taken.partitions)
    for number, (first, end) in taken.partitions.items():
        more = min(left, whole.partitions[number][1] - end)
        found[number] = (first, end + more)
        left -= more
    return TopicRange(taken.id, found)
