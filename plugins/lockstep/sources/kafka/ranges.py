"""Ranges of offsets: where an epoch of topics begins and ends, and whether it can still be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lockstep.epoch import Json
from lockstep.errors import LogTruncated, OffsetsExpired, SourceChanged, TopicRecreated
from lockstep.kafka.cluster import Cluster, Topic
from lockstep.kafka.truncation import Cut


@dataclass(frozen=True)
class TopicRange:
    """A topic's records: partition → [first offset, offset behind the last).

    `id`: of the topic as it was made. `leaders`: partition → leader epoch when the range was planned, as far as known.
    """

    id: str
    partitions: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    leaders: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Json) -> TopicRange:
        partitions = {int(number): (int(first), int(end)) for number, (first, end) in value["partitions"].items()}
        return cls(value["id"], partitions, {int(number): int(epoch) for number, epoch in value["leaders"].items()})

    def to_json(self) -> Json:
        return {
            "id": self.id,
            "partitions": {str(n): [first, end] for n, (first, end) in self.partitions.items()},
            "leaders": {str(number): epoch for number, epoch in self.leaders.items()},
        }

    @property
    def offsets(self) -> int:
        """As many records at most: transactions' own records have offsets too."""
        return sum(end - first for first, end in self.partitions.values())


@dataclass(frozen=True)
class Standing:
    """A topic now: what each of its partitions still has, as (oldest offset, end of what is decided)."""

    topic: Topic
    partitions: Mapping[int, tuple[int, int]]
    leaders: Mapping[int, int]

    @classmethod
    def of(cls, cluster: Cluster, topic: Topic) -> Standing:
        numbers = range(topic.partitions)
        oldest = cluster.beginnings(topic.name, numbers)
        ends = cluster.stable_ends(topic.name, numbers)
        leaders = {number: epoch for number, (_, epoch) in ends.items() if epoch is not None}
        return cls(topic, {number: (oldest[number], ends[number][0]) for number in numbers}, leaders)

    def range(self, partitions: Mapping[int, tuple[int, int]]) -> TopicRange:
        """A range of this topic."""
        return TopicRange(self.topic.id, partitions, self.leaders)


def _way_out(name: str) -> str:
    return (
        f". Once it is known what is lost, accept_loss=({name!r},) goes on without it; an epoch that is planned needs "
        "`lockstep replan`"
    )


def require_same_topic(where: str, name: str, id: str, topic: Topic | None) -> Topic:
    """Raises `TopicRecreated` unless `topic` is the one with that id."""
    if topic is None:
        raise TopicRecreated(f"{where}: topic {name} is gone, and with it what no epoch has read{_way_out(name)}")
    if topic.id != id:
        raise TopicRecreated(
            f"{where}: topic {name} was deleted and made anew (id {id}, now {topic.id}): its offsets count from 0 "
            f"again{_way_out(name)}"
        )
    return topic


def require_readable(where: str, name: str, number: int, first: int, end: int, now: tuple[int, int]) -> None:
    """Raises `OffsetsExpired` or `LogTruncated` unless [first, end) stands whole in what the partition has `now`."""
    oldest, stable = now
    if oldest > first and first < end:
        raise OffsetsExpired(
            f"{where}: the records {first} to {min(oldest, end) - 1} of {name}/{number} are gone, the oldest is "
            f"{oldest}{_way_out(name)}"
        )
    if stable < end:
        raise LogTruncated(
            f"{where}: {name}/{number} ends at {stable}, and epochs have read or planned up to {end}: the log was cut, "
            f"and offsets stand for other records now{_way_out(name)}"
        )


def require_whole(where: str, name: str, range: TopicRange, standing: Standing) -> None:
    """Raises `SourceChanged`, by one of its kinds, unless the whole range can be read."""
    for number, (first, end) in range.partitions.items():
        if number not in standing.partitions:
            raise SourceChanged(f"{where}: topic {name} has lost partition {number}")
        require_readable(where, name, number, first, end, standing.partitions[number])


def require_uncut(where: str, name: str, cuts: Mapping[int, Cut]) -> None:
    """Raises `LogTruncated` if any partition was cut."""
    for number, cut in cuts.items():
        raise LogTruncated(
            f"{where}: {name}/{number} was cut below offsets that epochs have read or planned, and has grown again: "
            f"these stand for other records now ({cut.said}){_way_out(name)}"
        )


def taken_up(last: TopicRange, standing: Standing, cuts: Mapping[int, Cut]) -> dict[int, int]:
    """Where a topic goes on whose loss is accepted: at its end, else where it was cut, else at its oldest record."""
    if last.id != standing.topic.id:
        return {}
    found = {}
    for number, (_, end) in last.partitions.items():
        oldest, stable = standing.partitions.get(number, (0, 0))
        cut = cuts[number].offset if number in cuts else end
        if cut is not None and oldest <= cut <= stable:
            found[number] = cut
    return found


def newly_led(range: TopicRange, standing: Standing) -> dict[int, tuple[int, int]]:
    """The partitions with another leader epoch than the range's: partition → (end of the range, its leader epoch)."""
    return {
        number: (range.partitions[number][1], epoch)
        for number, epoch in range.leaders.items()
        if standing.leaders.get(number, epoch) != epoch
    }


def capped(ranges: Mapping[str, TopicRange], most: int | None) -> dict[str, TopicRange]:
    """At most `most` offsets of all: one from each partition that has any, the rest in proportion to what they have.

    One from each also where that is more than `most`: a partition that has a backlog and gave nothing would be taken
    for one that is idle, and windows would close over what waits in it.
    """
    waiting = {(name, n): e - f for name, range in ranges.items() for n, (f, e) in range.partitions.items() if e > f}
    total = sum(waiting.values())
    if most is None or total <= most:
        return dict(ranges)
    order = sorted(waiting, key=lambda place: (-waiting[place], place))
    taken = dict.fromkeys(order, 1)
    rest, more = max(0, most - len(taken)), total - len(taken)
    for place in taken if rest else ():
        taken[place] += (waiting[place] - 1) * rest // more
    left = max(0, most - sum(taken.values()))
    for place in order:
        added = min(left, waiting[place] - taken[place])
        taken[place], left = taken[place] + added, left - added
    return {
        name: replace(range, partitions={n: (f, f + taken.get((name, n), 0)) for n, (f, _) in range.partitions.items()})
        for name, range in ranges.items()
    }
