"""A topic's records of a time: the range that brokers stamped within an interval."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from lockstep.epoch import Interval
from lockstep.errors import OffsetsExpired, SourceNotReady, SourceRefused
from lockstep.kafka.cluster import Cluster, Topic
from lockstep.sources.kafka._ranges import TopicBounds, TopicRange


def range_of_interval(
    cluster: Cluster, topic: Topic, interval: Interval, settle: timedelta, *, accept_loss: bool
) -> TopicRange:
    """The same whenever it is asked for, once the interval is over for `settle`.

    Raises `SourceNotReady`, `SourceRefused`, and `OffsetsExpired` if records of the interval may be gone.
    """
    where = cluster.who.name
    if datetime.now(UTC) < interval.end + settle:
        raise SourceNotReady(f"{where}: records of {interval} may still come, until {settle} after it")
    settings = cluster.topic_settings(topic.name)
    if (kind := settings.get("message.timestamp.type")) != "LogAppendTime":
        raise SourceRefused(
            f"{where}: topic {topic.name} has message.timestamp.type={kind}: a producer may send a record of an "
            "interval that was read already; set it to LogAppendTime, or read the topic without by_interval"
        )
    bounds = TopicBounds.of(cluster, topic)
    firsts = _edge(cluster, bounds, interval.start)
    ends = _edge(cluster, bounds, interval.end)
    if not accept_loss and _may_have_expired(settings, interval.start):
        _require_older(where, bounds, firsts, interval)
    return bounds.range({number: (firsts[number], ends[number]) for number in bounds.partitions})


def _edge(cluster: Cluster, bounds: TopicBounds, time: datetime) -> dict[int, int]:
    """The offset of the first record of that time or later, the same whenever it is asked for."""
    name, edges = bounds.topic.name, {}
    newest = cluster.ends(name, bounds.partitions)
    for number, offset in cluster.offsets_at(name, bounds.partitions, time).items():
        stable = bounds.partitions[number][1]
        edge = newest[number] if offset is None else offset
        if edge > stable:
            raise SourceNotReady(f"{cluster.who.name}: a transaction is open in {name}/{number}, before {time}")
        edges[number] = edge
    return edges


def _may_have_expired(settings: Mapping[str, str], since: datetime) -> bool:
    """Whether brokers that keep to the topic's settings may have taken a record of that time away."""
    if "delete" not in settings.get("cleanup.policy", "delete"):
        return False
    kept, size = int(settings.get("retention.ms", "0")), int(settings.get("retention.bytes", "0"))
    return size >= 0 or (kept >= 0 and since < datetime.now(UTC) - timedelta(milliseconds=kept))


def _require_older(where: str, bounds: TopicBounds, firsts: Mapping[int, int], interval: Interval) -> None:
    """Raises `OffsetsExpired` unless each partition still has a record from before the interval, or all it ever had."""
    for number, (oldest, _) in bounds.partitions.items():
        if 0 < oldest == firsts[number]:
            name = bounds.topic.name
            raise OffsetsExpired(
                f"{where}: the records of {name}/{number} before {oldest} are gone, and some of them may have been of "
                f"{interval}; accept_loss=({name!r},) reads what is left"
            )
