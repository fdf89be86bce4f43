"""Ranges of offsets, and checks that their records still exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lockstep.connections.kafka.cluster import Cluster, Topic
from lockstep.connections.kafka.consumers import Cut, truncations
from lockstep.epoch import Json, Position
from lockstep.errors import LogTruncated, OffsetsExpired, SourceChanged, SourceNotReady, TopicRecreated


@dataclass(frozen=True)
class TopicRange:
    """A topic's records: partition → [first offset, offset after the last).

    `id`: of the topic, which changes if it is recreated. `leaders`: partition → leader epoch at planning, if known.
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
        """The number of offsets, at least that of records: transaction markers have offsets, too."""
        return sum(end - first for first, end in self.partitions.values())

    @property
    def ends(self) -> dict[int, int]:
        return {number: end for number, (_, end) in self.partitions.items()}

    def followed_by(self, after: TopicRange) -> TopicRange:
        """Return both ranges as one. Raises `ValueError` if they aren't consecutive."""
        if after.id != self.id:
            raise ValueError("it was recreated between the ranges")
        for number, (first, _) in after.partitions.items():
            if self.ends.get(number, first) != first:
                raise ValueError(f"partition {number}: the ranges don't join at offset {first}")
        firsts = {number: first for number, (first, _) in self.partitions.items()}
        ends = {**self.ends, **after.ends}
        partitions = {
            number: (firsts.get(number, after.partitions.get(number, (0, 0))[0]), end) for number, end in ends.items()
        }
        return replace(after, partitions=partitions, leaders={**self.leaders, **after.leaders})

    def behind(self) -> TopicRange:
        """Return the empty range at this range's end, before which records may be deleted."""
        return replace(self, partitions={number: (end, end) for number, end in self.ends.items()})


@dataclass(frozen=True)
class TopicBounds:
    """The present bounds of a topic's partitions: (oldest offset, end of decided records)."""

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
        """Return a range of this topic."""
        return TopicRange(self.topic.id, partitions, self.leaders)

    def require_decided(self, where: str, offsets: Mapping[int, int]) -> None:
        """Raise `SourceNotReady` if an open transaction begins before an existing offset."""
        for number, offset in offsets.items():
            stable = self.partitions[number][1]
            if offset > stable:
                raise SourceNotReady(
                    f"{where}: a transaction is open in {self.topic.name}/{number} since offset {stable}, before "
                    f"offset {offset}, where reading starts: its producer has to commit or abort it; if that is "
                    "gone, brokers abort it after its timeout, or kafka-transactions.sh does"
                )


def position_of(
    cluster: str, ranges: Mapping[str, TopicRange], past: Mapping[str, TopicRange], bound: Json | None = None
) -> Position:
    """Build a position. `past`: topics of earlier epochs that aren't read any more. `bound`: the source's ends."""
    position: Position = {"cluster": cluster, "topics": _to_json(ranges)}
    return position | ({"left": _to_json(past)} if past else {}) | ({"bound": bound} if bound else {})


def _to_json(ranges: Mapping[str, TopicRange]) -> Json:
    return {name: range.to_json() for name, range in sorted(ranges.items())}


def ranges_of(position: Position) -> dict[str, TopicRange]:
    """Return the position's ranges by topic."""
    return {name: TopicRange.from_json(value) for name, value in position["topics"].items()}


def past_topics(position: Position) -> dict[str, TopicRange]:
    """Return the ranges of topics that earlier epochs read and this one didn't."""
    return {name: TopicRange.from_json(value) for name, value in position.get("left", {}).items()}


def cap(ranges: Mapping[str, TopicRange], max_offsets: int | None) -> dict[str, TopicRange]:
    """Limit the ranges to `max_offsets` offsets: one from each partition with records, the rest in proportion.

    Each partition with records contributes one even beyond the limit: otherwise it would be considered idle, and
    windows would close over its waiting records.
    """
    waiting = {(name, n): e - f for name, range in ranges.items() for n, (f, e) in range.partitions.items() if e > f}
    total = sum(waiting.values())
    if max_offsets is None or total <= max_offsets:
        return dict(ranges)
    order = sorted(waiting, key=lambda place: (-waiting[place], place))
    shares = dict.fromkeys(order, 1)
    rest, more = max(0, max_offsets - len(shares)), total - len(shares)
    for place in shares if rest else ():
        shares[place] += (waiting[place] - 1) * rest // more
    remaining = max(0, max_offsets - sum(shares.values()))
    for place in order:
        added = min(remaining, waiting[place] - shares[place])
        shares[place], remaining = shares[place] + added, remaining - added
    return {
        name: replace(
            range, partitions={n: (f, f + shares.get((name, n), 0)) for n, (f, _) in range.partitions.items()}
        )
        for name, range in ranges.items()
    }


def _remedy(name: str) -> str:
    return (
        f". Once you know what is lost, accept_loss=({name!r},) continues without it; an epoch that is planned needs "
        "`lockstep replan`"
    )


def require_same_topic(where: str, name: str, id: str, topic: Topic | None) -> Topic:
    """Raise `TopicRecreated` unless `topic` has that id."""
    if topic is None:
        raise TopicRecreated(f"{where}: topic {name} is gone, with records that no epoch has read{_remedy(name)}")
    if topic.id != id:
        raise TopicRecreated(
            f"{where}: topic {name} was deleted and recreated (id {id}, now {topic.id}): its offsets count from 0 "
            f"again{_remedy(name)}"
        )
    return topic


def require_whole(cluster: Cluster, range: TopicRange, bounds: TopicBounds) -> None:
    """Raise a subclass of `SourceChanged` unless the whole range can be read."""
    where, name = cluster.who.name, bounds.topic.name
    for number, (first, end) in range.partitions.items():
        if number not in bounds.partitions:
            raise SourceChanged(f"{where}: topic {name} has lost partition {number}")
        oldest, stable = bounds.partitions[number]
        if oldest > first and first < end:
            raise OffsetsExpired(
                f"{where}: the records {first} to {min(oldest, end) - 1} of {name}/{number} are gone, the oldest is "
                f"{oldest}{_remedy(name)}"
            )
        if stable < end:
            raise LogTruncated(
                f"{where}: {name}/{number} ends at {stable}, and epochs have read or planned up to {end}: the log was "
                f"cut, and offsets mean other records now{_remedy(name)}"
            )
    for number, cut in _cuts(cluster, range, bounds).items():
        raise LogTruncated(
            f"{where}: {name}/{number} was cut below offsets that were read or planned, and has grown again: "
            f"these mean other records now ({cut.answer}){_remedy(name)}"
        )


def _cuts(cluster: Cluster, range: TopicRange, bounds: TopicBounds) -> dict[int, Cut]:
    """Return the partitions that were truncated below the range's end. Queries those with another leader epoch."""
    if range.id != bounds.topic.id:
        return {}
    places = {
        number: (range.partitions[number][1], epoch)
        for number, epoch in range.leaders.items()
        if bounds.leaders.get(number, epoch) != epoch
    }
    return truncations(cluster.settings, cluster.who, bounds.topic.name, places) if places else {}


def resume_offsets(cluster: Cluster, last: TopicRange, bounds: TopicBounds) -> dict[int, int]:
    """Return where a topic with accepted loss resumes: at the range's end, or else where it was truncated.

    Partitions that aren't in the result resume at their oldest record. Raises `SourceNotReady` for an existing offset
    after an open transaction.
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
