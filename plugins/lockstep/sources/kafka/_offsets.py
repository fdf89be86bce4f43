"""Where the first epoch of a topic starts, and where a source ends."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from lockstep.connections.kafka.cluster import Cluster
from lockstep.epoch import Json, Position
from lockstep.errors import InvalidPipeline, SourceRefused
from lockstep.sources.kafka._ranges import TopicBounds, TopicRange, past_topics, ranges_of

Start = str | datetime | Mapping[str, Mapping[int, int]]
#: Where partitions without an offset of the group start; the values of Kafka's auto.offset.reset.
RESETS = ("none", "earliest", "latest")
_GROUP = "group:"
_log = logging.getLogger(__name__)

End = str | datetime | Mapping[str, Mapping[int, int]]


def time_as_json(time: datetime) -> Json:
    """Return a start or end that is a time as plans store it."""
    return {"time": time.isoformat()}


def start_from_json(start: Json) -> Start:
    """Return a start from a plan, where partitions are text; any other value unchanged."""
    match start:
        case {"time": str(time), **rest} if not rest:
            return datetime.fromisoformat(time)
        case Mapping():
            return {topic: {int(n): offset for n, offset in offsets.items()} for topic, offsets in start.items()}
    parsed: Start = start
    return parsed


def group_of(start: Start) -> str | None:
    """Return the consumer group that determines where reading starts; None for other starts."""
    return start.removeprefix(_GROUP) if isinstance(start, str) and start.startswith(_GROUP) else None


def check_start(where: str, start: Start, offset_reset: str, topics: Collection[str]) -> None:
    """Raise `InvalidPipeline` for an invalid start. `topics`: those that are named."""
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
    """Raise `InvalidPipeline` for what is invalid as a start and as an end."""
    if isinstance(place, datetime) and place.tzinfo is None:
        raise InvalidPipeline(f"{where}: {name} is a time without a time zone")
    if isinstance(place, Mapping) and topics and (unknown := sorted(set(place) - set(topics))):
        raise InvalidPipeline(f"{where}: {name} names {', '.join(unknown)}, which it doesn't read")


def first_offsets(cluster: Cluster, bounds: TopicBounds, start: Start) -> dict[int, int]:
    """Return the offsets of a `start` that isn't a group; other partitions start at their oldest record.

    Raises `SourceRefused`, `SourceNotReady`.
    """
    ends = {number: end for number, (_, end) in bounds.partitions.items()}
    match start:
        case "earliest":
            return {}
        case "latest":
            return ends
        case datetime():
            firsts = cluster.offsets_at(bounds.topic.name, ends, start)
            return {n: ends[n] if offset is None else min(offset, ends[n]) for n, offset in firsts.items()}
        case Mapping():
            offsets = start.get(bounds.topic.name, {})
            _require_there(cluster, bounds, offsets, "start names")
            return dict(offsets)
    raise InvalidPipeline(f"{cluster.who.name}: start is {start!r}")


def group_range(
    cluster: Cluster, bounds: TopicBounds, group: str, offset_reset: str, *, accept_loss: bool
) -> TopicRange:
    """Return the committed offsets of a consumer group as an empty range that ends there, for the first epoch.

    Raises `SourceRefused` for partitions without an offset, unless `offset_reset` says where they start, and as
    `first_offsets`. Raises `SourceUnavailable` if the group's offsets are in an open transaction.
    """
    name = bounds.topic.name
    committed = cluster.committed_offsets(group, name, bounds.partitions)
    missing = sorted(set(bounds.partitions) - set(committed))
    if missing and offset_reset == "none":
        raise SourceRefused(
            f"{cluster.who.name}: group {group} has committed no offset of {_some(name, missing)}: is that its name, "
            "has it read this topic, and within offsets.retention.minutes? offset_reset='earliest' or 'latest' says "
            "where such partitions start"
        )
    offsets = {number: offset for number, (offset, _) in committed.items()}
    if not accept_loss:
        _require_there(cluster, bounds, offsets, f"group {group} has committed")
    defaults = {number: bounds.partitions[number][offset_reset == "latest"] for number in missing}
    _log.info("%s: %s starts at offsets of group %s: %s", cluster.who.name, name, group, offsets | defaults)
    leaders = {number: epoch for number, (_, epoch) in committed.items() if epoch is not None}
    return TopicRange(bounds.topic.id, {n: (first, first) for n, first in (offsets | defaults).items()}, leaders)


def warn_of_members(cluster: Cluster, group: str) -> None:
    """Warn about active consumers of the group, which also process the records that are read here."""
    if members := cluster.members(group):
        _log.warning(
            "%s: group %s has %d members: records after the offsets that are read from it now are "
            "processed by them as well. Stop them before the first epoch if that isn't intended",
            *(cluster.who.name, group, members),
        )


def _some(name: str, partitions: Collection[int]) -> str:
    text = ", ".join(f"{name}/{number}" for number in list(partitions)[:5])
    return f"{text} and {len(partitions) - 5} more" if len(partitions) > 5 else text


def _require_there(cluster: Cluster, bounds: TopicBounds, offsets: Mapping[int, int], described: str) -> None:
    where, name = cluster.who.name, bounds.topic.name
    if unknown := sorted(set(offsets) - set(bounds.partitions)):
        raise SourceRefused(f"{where}: start names partitions {unknown} of {name}, which it doesn't have")
    newest = cluster.ends(name, offsets)
    for number, offset in offsets.items():
        if offset > newest[number]:
            raise SourceRefused(f"{where}: {described} {offset} of {name}/{number}, which ends at {newest[number]}")
    bounds.require_decided(where, offsets)


def check_end(where: str, end: End | None, topics: Collection[str], *, by_interval: bool) -> None:
    """Raise `InvalidPipeline` for an invalid end. `topics`: those that are named."""
    if end is not None and by_interval:
        raise InvalidPipeline(f"{where}: with by_interval the schedule determines the end: don't set end")
    if isinstance(end, str) and end != "latest":
        raise InvalidPipeline(f"{where}: end is 'latest', a time, or offsets by topic")
    check_place(where, "end", end, topics)


@dataclass(frozen=True)
class Bound:
    """The ends that are determined so far: topic → partition → the offset after the last record to read.

    `of`: the declaration that they result from. `ids`: ids of these topics at that time. `complete`: no further topics
    or partitions are added; others are then not read. `by_clock`: by topic the partitions with ends by this machine's
    clock, without a record that marks the end. As brokers' clocks may be behind it, these ends advance with records
    that still come before the end.
    """

    of: Json
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)
    complete: bool = False
    by_clock: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of_position(cls, position: Position) -> Bound | None:
        """Return the bound that was frozen with a position."""
        if (bound := position.get("bound")) is None:
            return None
        ids = bound["ids"]
        ends = {name: bound["offsets"][name] for name in ids}
        offsets = {name: {int(number): end for number, end in by_number.items()} for name, by_number in ends.items()}
        by_clock = {name: tuple(numbers) for name, numbers in bound.get("by_clock", {}).items() if name in ids}
        return cls(bound["of"], offsets, ids, bound["complete"], by_clock)

    def to_json(self) -> Json:
        offsets = {name: {str(n): end for n, end in ends.items()} for name, ends in sorted(self.offsets.items())}
        by_clock = {name: list(numbers) for name, numbers in sorted(self.by_clock.items())}
        bound = {"of": self.of, "offsets": offsets, "ids": dict(sorted(self.ids.items())), "complete": self.complete}
        return bound | ({"by_clock": by_clock} if by_clock else {})

    def without(self, names: Collection[str]) -> Bound:
        """Return the bound without the ends of these topics."""
        offsets = {name: ends for name, ends in self.offsets.items() if name not in names}
        ids = {name: id for name, id in self.ids.items() if name not in names}
        by_clock = {name: numbers for name, numbers in self.by_clock.items() if name not in names}
        return replace(self, offsets=offsets, ids=ids, by_clock=by_clock)

    def leaves_out(self, name: str) -> bool:
        """Return True if no epoch reads anything of a topic."""
        return self.complete and name not in self.offsets

    def clip(self, name: str, range: TopicRange) -> TopicRange:
        """Return the part of a topic's range before its ends."""
        ends = self.offsets.get(name, {})
        clipped = {}
        for number, (first, end) in range.partitions.items():
            limit = ends.get(number, first if self.complete else end)
            clipped[number] = (first, max(first, min(end, limit)))
        return replace(range, partitions=clipped)

    def is_reached(self, name: str, range: TopicRange) -> bool:
        """Return True if a topic has nothing to read after the range."""
        ends = self.offsets.get(name, {})
        return self.complete and all(range.ends.get(number, -1) >= end for number, end in ends.items())


def is_finished(position: Position) -> bool:
    """Return True if nothing is ever to be read after a position."""
    bound = Bound.of_position(position)
    if bound is None or not bound.complete or not bound.offsets:
        return False
    read = past_topics(position) | ranges_of(position)
    return all(name in read and bound.is_reached(name, read[name]) for name in bound.offsets)


@dataclass(frozen=True)
class Ending:
    """The declared end. `settle`: after a time, how long until no earlier record comes any more."""

    end: End
    selection: Json  #: topics or pattern: other ones have other ends
    settle: timedelta

    @property
    def of(self) -> Json:
        end = time_as_json(self.end) if isinstance(self.end, datetime) else self.end
        return json.loads(json.dumps({"end": end, **self.selection}))

    def bound_before(self, position: Position | None) -> Bound:
        """Return the bound of earlier epochs if it results from the same declaration and has topics."""
        bound = Bound.of_position(position) if position is not None else None
        return bound if bound is not None and bound.of == self.of and bound.offsets else Bound(self.of)

    def find(self, cluster: Cluster, topics: Iterable[TopicBounds], before: Bound) -> Bound:
        """Determine the ends of these topics as far as possible now; they are then fixed. A pattern may match none yet.

        Raises `SourceRefused` for a partition that `end` should name and doesn't, and for a topic of `end` that doesn't
        exist.
        """
        decided = {name for name in before.offsets if before.complete and name not in before.by_clock}
        undecided = [bounds for bounds in topics if bounds.topic.name not in decided]
        ids = {bounds.topic.name: bounds.topic.id for bounds in undecided}
        is_over, by_clock = True, dict(before.by_clock)
        ends_by_topic: dict[str, Mapping[int, int]]
        if isinstance(self.end, datetime):
            is_over = before.complete or datetime.now(UTC) >= self.end + self.settle
            times = {bounds.topic.name: self._at_time(cluster, bounds, self.end, before) for bounds in undecided}
            ends_by_topic = {}
            for name, ends in times.items():
                ends_by_topic[name] = {n: offset for n, (offset, marked) in ends.items() if marked or is_over}
                by_clock[name] = tuple(n for n in ends_by_topic[name] if not ends[n][1])
            by_clock = {name: numbers for name, numbers in by_clock.items() if numbers}
        else:
            if isinstance(self.end, Mapping) and not before.complete and (absent := sorted(set(self.end) - set(ids))):
                raise SourceRefused(
                    f"{cluster.who.name}: end names {', '.join(absent)}, which isn't there, or isn't what the pattern "
                    "matches: create it, or remove it from end"
                )
            ends_by_topic = {bounds.topic.name: self._now(cluster, bounds) for bounds in undecided}
        offsets = {**before.offsets, **ends_by_topic}
        if not offsets:
            _log.warning("%s: there is no topic yet that could have an end: later epochs check again", cluster.who.name)
        complete = before.complete or (is_over and bool(offsets))
        return replace(before, offsets=offsets, ids={**before.ids, **ids}, complete=complete, by_clock=by_clock)

    def _now(self, cluster: Cluster, bounds: TopicBounds) -> Mapping[int, int]:
        name = bounds.topic.name
        if not isinstance(self.end, Mapping):
            return cluster.ends(name, bounds.partitions)  # records in open transactions are waited for
        ends = self.end.get(name, {})
        if missing := sorted(set(bounds.partitions) - set(ends)):
            raise SourceRefused(
                f"{cluster.who.name}: end says nothing of partitions {missing} of {name}: give the offset after the "
                "last record to read of each; 0 for none"
            )
        if unknown := sorted(set(ends) - set(bounds.partitions)):
            raise SourceRefused(f"{cluster.who.name}: end names partitions {unknown} of {name}, which it doesn't have")
        return ends

    def _at_time(
        self, cluster: Cluster, bounds: TopicBounds, time: datetime, before: Bound
    ) -> dict[int, tuple[int, bool]]:
        """Return by partition the first record's offset at or after `time`, True; or its present end, False."""
        name = bounds.topic.name
        before_ends, by_clock = before.offsets.get(name, {}), before.by_clock.get(name, ())
        new_partitions: Collection[int] = bounds.partitions if not before.complete or name not in before.offsets else ()
        expired = [n for n in by_clock if n in before_ends and before_ends[n] < bounds.partitions[n][0]]
        if expired:
            _log.warning(
                "%s: records of %s, partitions %s, are gone, and it is unknown whether they came before %s: they "
                "are considered later",
                *(cluster.who.name, name, expired, time),
            )
        numbers = [n for n in new_partitions if n not in before_ends] + [n for n in by_clock if n not in expired]
        newest = cluster.ends(name, numbers)
        offsets = cluster.offsets_at(name, numbers, time)
        ends = {
            number: (newest[number] if offset is None else offset, offset is not None)
            for number, offset in offsets.items()
        }
        return {number: (end, True) for number, end in before_ends.items()} | ends
