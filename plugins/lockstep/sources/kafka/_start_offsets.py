"""Where the first epoch of a topic starts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline, SourceNotReady, SourceRefused
from lockstep.kafka.cluster import Cluster
from lockstep.sources.kafka._ranges import TopicBounds

Start = str | datetime | Mapping[str, Mapping[int, int]]


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


def check_start(where: str, start: Start, topics: Collection[str]) -> None:
    """Raises `InvalidPipeline`. `topics`: those that are read, as far as they are named."""
    if isinstance(start, str) and start not in ("earliest", "latest"):
        raise InvalidPipeline(f"{where}: start is 'earliest', 'latest', a time, or offsets by topic")
    if isinstance(start, datetime) and start.tzinfo is None:
        raise InvalidPipeline(f"{where}: start is a time without a time zone")
    if isinstance(start, Mapping) and topics and (unknown := sorted(set(start) - set(topics))):
        raise InvalidPipeline(f"{where}: start names {', '.join(unknown)}, which it doesn't read")


def first_offsets(cluster: Cluster, bounds: TopicBounds, start: Start) -> dict[int, int]:
    """The offsets that `start` means; partitions that it says nothing of start at their oldest record.

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
            return _given_offsets(cluster, bounds, start.get(bounds.topic.name, {}))
    raise InvalidPipeline(f"{cluster.who.name}: start is {start!r}")


def _given_offsets(cluster: Cluster, bounds: TopicBounds, offsets: Mapping[int, int]) -> dict[int, int]:
    where, name = cluster.who.name, bounds.topic.name
    if unknown := sorted(set(offsets) - set(bounds.partitions)):
        raise SourceRefused(f"{where}: start names partitions {unknown} of {name}, which it doesn't have")
    newest = cluster.ends(name, offsets)
    for number, offset in offsets.items():
        if offset > newest[number]:
            raise SourceRefused(f"{where}: start names {offset} of {name}/{number}, which ends at {newest[number]}")
        if offset > bounds.partitions[number][1]:
            raise SourceNotReady(f"{where}: a transaction is open in {name}/{number}, before offset {offset}")
    return dict(offsets)
