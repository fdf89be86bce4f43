"""What a topic no longer has of what epochs have read or planned, by name; and where to go on when that is accepted."""

from __future__ import annotations

from lockstep.connections.kafka.cluster import Cluster, Topic
from lockstep.connections.kafka.consumers import Cut, truncations
from lockstep.errors import LogTruncated, OffsetsExpired, SourceChanged, TopicRecreated
from lockstep.sources.kafka._ranges import TopicBounds, TopicRange


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
