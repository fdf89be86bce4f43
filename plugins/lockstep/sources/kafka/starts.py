"""Where the first epoch of a topic starts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from lockstep.errors import InvalidPipeline, SourceNotReady, SourceRefused
from lockstep.kafka.cluster import Cluster
from lockstep.sources.kafka.ranges import Standing

Start = str | datetime | Mapping[str, Mapping[int, int]]


def check_start(where: str, start: Start, topics: Collection[str]) -> None:
    """Raises `InvalidPipeline`. `topics`: those that are read, as far as they are named."""
    if isinstance(start, str) and start not in ("earliest", "latest"):
        raise InvalidPipeline(f"{where}: start is 'earliest', 'latest', a time, or offsets by topic")
    if isinstance(start, datetime) and start.tzinfo is None:
        raise InvalidPipeline(f"{where}: start is a time without a time zone")
    if isinstance(start, Mapping) and topics and (unknown := sorted(set(start) - set(topics))):
        raise InvalidPipeline(f"{where}: start names {', '.join(unknown)}, which it doesn't read")


def first_offsets(where: str, cluster: Cluster, standing: Standing, start: Start) -> dict[int, int]:
    """The offsets that `start` means; partitions that it says nothing of start at their oldest record.

    Raises `SourceRefused`, `SourceNotReady`.
    """
    ends = {number: end for number, (_, end) in standing.partitions.items()}
    match start:
        case "earliest":
            return {}
        case "latest":
            return ends
        case datetime():
            found = cluster.offsets_at(standing.topic.name, ends, start)
            return {number: ends[number] if at is None else min(at, ends[number]) for number, at in found.items()}
        case Mapping():
            return _given(where, cluster, standing, start.get(standing.topic.name, {}))
    raise InvalidPipeline(f"{where}: start is {start!r}")


def _given(where: str, cluster: Cluster, standing: Standing, offsets: Mapping[int, int]) -> dict[int, int]:
    name = standing.topic.name
    if unknown := sorted(set(offsets) - set(standing.partitions)):
        raise SourceRefused(f"{where}: start names partitions {unknown} of {name}, which it doesn't have")
    newest = cluster.ends(name, offsets)
    for number, offset in offsets.items():
        if offset > newest[number]:
            raise SourceRefused(f"{where}: start names {offset} of {name}/{number}, which ends at {newest[number]}")
        if offset > standing.partitions[number][1]:
            raise SourceNotReady(f"{where}: a transaction is open in {name}/{number}, before offset {offset}")
    return dict(offsets)
