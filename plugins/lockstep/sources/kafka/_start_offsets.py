"""Where the first epoch of a topic starts."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from datetime import datetime

from lockstep.connections.kafka.cluster import Cluster
from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline, SourceRefused
from lockstep.sources.kafka._ranges import TopicBounds, TopicRange

Start = str | datetime | Mapping[str, Mapping[int, int]]
#: Where partitions start of which a consumer group has committed nothing; Kafka's words (auto.offset.reset).
RESETS = ("none", "earliest", "latest")
_GROUP = "group:"
_log = logging.getLogger(__name__)


def time_as_json(time: datetime) -> Json:
    """As a plan has a start that is a time."""
    return {"time": time.isoformat()}


def start_from_json(start: Json) -> Start:
    """A start as a plan has it, where partitions are text; any other as it is."""
    match start:
        case {"time": str(time), **others} if not others:
            return datetime.fromisoformat(time)
        case Mapping():
            return {topic: {int(number): at for number, at in offsets.items()} for topic, offsets in start.items()}
    found: Start = start
    return found


def group_of(start: Start) -> str | None:
    """The consumer group from whose offsets is started, if from such."""
    return start.removeprefix(_GROUP) if isinstance(start, str) and start.startswith(_GROUP) else None


def check_start(where: str, start: Start, offset_reset: str, topics: Collection[str]) -> None:
    """Raises `InvalidPipeline`. `topics`: those that are read, as far as they are named."""
    if isinstance(start, str) and start not in ("earliest", "latest") and not group_of(start):
        raise InvalidPipeline(
            f"{where}: start is 'earliest', 'latest', 'group:' and a consumer group's id, a time, or offsets by topic"
        )
    if offset_reset not in RESETS:
        raise InvalidPipeline(f"{where}: offset_reset={offset_reset!r} is none of {', '.join(RESETS)}")
    if offset_reset != "none" and not group_of(start):
        raise InvalidPipeline(f"{where}: offset_reset goes with start='group:…', and only with that")
    check_place(where, "start", start, topics)


def check_place(where: str, name: str, place: object, topics: Collection[str]) -> None:
    """What a start and an end have in common. Raises `InvalidPipeline`."""
    if isinstance(place, datetime) and place.tzinfo is None:
        raise InvalidPipeline(f"{where}: {name} is a time without a time zone")
    if isinstance(place, Mapping) and topics and (unknown := sorted(set(place) - set(topics))):
        raise InvalidPipeline(f"{where}: {name} names {', '.join(unknown)}, which it doesn't read")


def first_offsets(cluster: Cluster, bounds: TopicBounds, start: Start) -> dict[int, int]:
    """The offsets that `start` means, if it is no group; partitions that it says nothing of start at their oldest
    record.

    Raises `SourceRefused`, `SourceNotReady`.
    """
    ends = {number: end for number, (_, end) in bounds.partitions.items()}
    match start:
        case "earliest":
            return {}
        case "latest":
            return ends
        case datetime():
            found = cluster.offsets_at(bounds.topic.name, ends, start)
            return {number: ends[number] if at is None else min(at, ends[number]) for number, at in found.items()}
        case Mapping():
            offsets = start.get(bounds.topic.name, {})
            _require_there(cluster, bounds, offsets, "start names")
            return dict(offsets)
    raise InvalidPipeline(f"{cluster.who.name}: start is {start!r}")


def group_range(
    cluster: Cluster, bounds: TopicBounds, group: str, offset_reset: str, *, accept_loss: bool
) -> TopicRange:
    """Where a consumer group stands in a topic, as if an epoch had read it up to there. Read once: whatever the group
    commits later counts for nothing.

    Raises `SourceRefused` for partitions of which it has committed nothing, unless `offset_reset` says where they
    start; and what `first_offsets` does. `SourceUnavailable`: the group's offsets are in an open transaction.
    """
    name = bounds.topic.name
    found = cluster.committed_offsets(group, name, bounds.partitions)
    missing = sorted(set(bounds.partitions) - set(found))
    if missing and offset_reset == "none":
        raise SourceRefused(
            f"{cluster.who.name}: group {group} has committed no offset of {_some(name, missing)}: is that its name, "
            "has it read this topic, and within offsets.retention.minutes? offset_reset='earliest' or 'latest' says "
            "where such partitions start"
        )
    offsets = {number: offset for number, (offset, _) in found.items()}
    if not accept_loss:
        _require_there(cluster, bounds, offsets, f"group {group} has committed")
    others = {number: bounds.partitions[number][offset_reset == "latest"] for number in missing}
    _log.info("%s: %s starts where group %s stands: %s", cluster.who.name, name, group, offsets | others)
    leaders = {number: epoch for number, (_, epoch) in found.items() if epoch is not None}
    return TopicRange(bounds.topic.id, {n: (at, at) for n, at in (offsets | others).items()}, leaders)


def warn_of_members(cluster: Cluster, group: str) -> None:
    """What consumers of the group process from now on is read here, too: nobody else can know whether that is meant."""
    if members := cluster.members(group):
        _log.warning(
            "%s: group %s has %d members, who go on: records behind the offsets that are taken from it now are "
            "processed by them as well. Stop them before the first epoch if that isn't meant",
            *(cluster.who.name, group, members),
        )


def _some(name: str, partitions: Collection[int]) -> str:
    shown = ", ".join(f"{name}/{number}" for number in list(partitions)[:5])
    return f"{shown} and {len(partitions) - 5} more" if len(partitions) > 5 else shown


def _require_there(cluster: Cluster, bounds: TopicBounds, offsets: Mapping[int, int], named: str) -> None:
    where, name = cluster.who.name, bounds.topic.name
    if unknown := sorted(set(offsets) - set(bounds.partitions)):
        raise SourceRefused(f"{where}: start names partitions {unknown} of {name}, which it doesn't have")
    newest = cluster.ends(name, offsets)
    for number, offset in offsets.items():
        if offset > newest[number]:
            raise SourceRefused(f"{where}: {named} {offset} of {name}/{number}, which ends at {newest[number]}")
    bounds.require_decided(where, offsets)
