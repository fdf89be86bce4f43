"""Ranges of offsets: where an epoch of topics begins and ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lockstep.connections.kafka.cluster import Cluster, Topic
from lockstep.connections.kafka.truncation import Cut, truncations
from lockstep.epoch import Json, Position
from lockstep.errors import LogTruncated, OffsetsExpired, SourceChanged, SourceNotReady, TopicRecreated


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

    @property
    def ends(self) -> dict[int, int]:
        return {number: end for number, (_, end) in self.partitions.items()}

    def followed_by(self, after: TopicRange) -> TopicRange:
        """Both as one. Raises `ValueError` where they don't join."""
        if after.id != self.id:
            raise ValueError("it was made anew between the ranges")
        for number, (first, _) in after.partitions.items():
            if self.ends.get(number, first) != first:
                raise ValueError(f"partition {number}: the ranges don't join at offset {first}")
        begun = {number: first for number, (first, _) in self.partitions.items()}
        ends = {**self.ends, **after.ends}
        partitions = {
            number: (begun.get(number, after.partitions.get(number, (0, 0))[0]), end) for number, end in ends.items()
        }
        return replace(after, partitions=partitions, leaders={**self.leaders, **after.leaders})

    def behind(self) -> TopicRange:
        """Nothing but where it ends: what has been read may be gone, what comes after may not."""
        return replace(self, partitions={number: (end, end) for number, end in self.ends.items()})


@dataclass(frozen=True)
class TopicBounds:
    """What each partition of a topic has now: (oldest offset, end of what is decided)."""

    topic: Topic
    partitions: Mapping[int, tuple[int, int]]
    leaders: Mapping[int, int]

    @classmethod
    def of(cls, cluster: Cluster, topic: Topic) -> TopicBounds:
        numbers = range(topic.partitions)
        oldest = cluster.beginnings(topic.name, numbers)
        ends = cluster.stable_ends(topic.name, numbers)
        leaders = {number: epoch for number, (_, epoch) in ends.items() if epoch is not None}
        return cls(topic, {number: (oldest[number], ends[number][0]) for number in numbers}, leaders)

    def range(self, partitions: Mapping[int, tuple[int, int]]) -> TopicRange:
        """A range of this topic."""
        return TopicRange(self.topic.id, partitions, self.leaders)

    def require_decided(self, where: str, offsets: Mapping[int, int]) -> None:
        """Raises `SourceNotReady` where an open transaction stands before an offset, which is there."""
        for number, offset in offsets.items():
            stable = self.partitions[number][1]
            if offset > stable:
                raise SourceNotReady(
                    f"{where}: a transaction is open in {self.topic.name}/{number} since offset {stable}, before "
                    f"offset {offset}, where reading is to start: its producer has to commit or abort it; if that is "
                    "gone, brokers abort it after its timeout, or kafka-transactions.sh does"
                )


def position_of(
    cluster: str, ranges: Mapping[str, TopicRange], left: Mapping[str, TopicRange], bound: Json | None = None
) -> Position:
    """`left`: topics of earlier epochs that are read no more. `bound`: where the source ends for good."""
    position: Position = {"cluster": cluster, "topics": _to_json(ranges)}
    return position | ({"left": _to_json(left)} if left else {}) | ({"bound": bound} if bound else {})


def _to_json(ranges: Mapping[str, TopicRange]) -> Json:
    return {name: range.to_json() for name, range in sorted(ranges.items())}


def ranges_of(position: Position) -> dict[str, TopicRange]:
    """By topic."""
    return {name: TopicRange.from_json(value) for name, value in position["topics"].items()}


def left_topics(position: Position) -> dict[str, TopicRange]:
    """Where those ended that earlier epochs have read, and that one didn't."""
    return {name: TopicRange.from_json(value) for name, value in position.get("left", {}).items()}


def cap(ranges: Mapping[str, TopicRange], most: int | None) -> dict[str, TopicRange]:
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


def require_whole(cluster: Cluster, range: TopicRange, bounds: TopicBounds) -> None:
    """Raises `SourceChanged`, by one of its kinds, unless the whole range can be read."""
    where, name = cluster.who.name, bounds.topic.name
    for number, (first, end) in range.partitions.items():
        if number not in bounds.partitions:
            raise SourceChanged(f"{where}: topic {name} has lost partition {number}")
        _require_readable(where, name, number, first, end, bounds.partitions[number])
    for number, cut in _cuts(cluster, range, bounds).items():
        raise LogTruncated(
            f"{where}: {name}/{number} was cut below offsets that were read or planned, and has grown again: "
            f"these stand for other records now ({cut.answer}){_way_out(name)}"
        )


def _require_readable(where: str, name: str, number: int, first: int, end: int, now: tuple[int, int]) -> None:
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


def _cuts(cluster: Cluster, range: TopicRange, bounds: TopicBounds) -> dict[int, Cut]:
    """The partitions that were cut below the range's end. Brokers are asked of those with another leader epoch."""
    if range.id != bounds.topic.id:
        return {}
    places = {
        number: (range.partitions[number][1], epoch)
        for number, epoch in range.leaders.items()
        if bounds.leaders.get(number, epoch) != epoch
    }
    return truncations(cluster.settings, cluster.who, bounds.topic.name, places) if places else {}


def resume_offsets(cluster: Cluster, last: TopicRange, bounds: TopicBounds) -> dict[int, int]:
    """Where a topic goes on whose loss is accepted: at its end, else where it was cut, else at its oldest record.

    Partitions that aren't named go on at their oldest record. Raises `SourceNotReady` for an offset that is there, and
    behind an open transaction.
    """
    if last.id != bounds.topic.id:
        return {}
    cuts, offsets = _cuts(cluster, last, bounds), {}
    for number, end in last.ends.items():
        cut = cuts[number].offset if number in cuts else end
        if number in bounds.partitions and cut is not None and bounds.partitions[number][0] <= cut:
            offsets[number] = cut
    newest = cluster.ends(bounds.topic.name, offsets)
    offsets = {number: offset for number, offset in offsets.items() if offset <= newest[number]}
    bounds.require_decided(cluster.who.name, offsets)
    return offsets
