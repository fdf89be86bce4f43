"""Ranges of offsets: where an epoch of topics begins and ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lockstep.connections.kafka.cluster import Cluster, Topic
from lockstep.epoch import Json, Position
from lockstep.errors import SourceNotReady


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
