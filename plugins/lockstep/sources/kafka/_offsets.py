"""Where the first epoch of a topic starts."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from lockstep.connections.kafka.cluster import Cluster
from lockstep.epoch import Json, Position
from lockstep.errors import InvalidPipeline, SourceRefused
from lockstep.sources.kafka._ranges import TopicBounds, TopicRange, left_topics, ranges_of

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


End = str | datetime | Mapping[str, Mapping[int, int]]


def check_end(where: str, end: End | None, topics: Collection[str], *, by_interval: bool) -> None:
    """Raises `InvalidPipeline`. `topics`: those that are read, as far as they are named."""
    if end is not None and by_interval:
        raise InvalidPipeline(f"{where}: with by_interval the schedule says where it ends, leave end away")
    if isinstance(end, str) and end != "latest":
        raise InvalidPipeline(f"{where}: end is 'latest', a time, or offsets by topic")
    check_place(where, "end", end, topics)


@dataclass(frozen=True)
class Bound:
    """The ends that were found so far: topic → partition → the offset behind the last record that is read.

    `of`: what they were made of. `ids`: of the topics whose offsets these are, as they were then. `complete`: no topic
    or partition is looked for any more; what isn't named then isn't read. `by_clock`: of each topic the partitions
    whose end no record has told, only this machine's clock: brokers' clocks may be behind it, so these ends move on
    with what still comes before such a record.
    """

    of: Json
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)
    complete: bool = False
    by_clock: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of_position(cls, position: Position) -> Bound | None:
        """The one that was frozen with a position."""
        if (found := position.get("bound")) is None:
            return None
        ids = found["ids"]
        ends = {name: found["offsets"][name] for name in ids}
        offsets = {name: {int(number): end for number, end in one.items()} for name, one in ends.items()}
        by_clock = {name: tuple(numbers) for name, numbers in found.get("by_clock", {}).items() if name in ids}
        return cls(found["of"], offsets, ids, found["complete"], by_clock)

    def to_json(self) -> Json:
        offsets = {name: {str(n): end for n, end in ends.items()} for name, ends in sorted(self.offsets.items())}
        by_clock = {name: list(numbers) for name, numbers in sorted(self.by_clock.items())}
        found = {"of": self.of, "offsets": offsets, "ids": dict(sorted(self.ids.items())), "complete": self.complete}
        return found | ({"by_clock": by_clock} if by_clock else {})

    def without(self, names: Collection[str]) -> Bound:
        """Without the ends of these topics."""
        offsets = {name: ends for name, ends in self.offsets.items() if name not in names}
        ids = {name: id for name, id in self.ids.items() if name not in names}
        by_clock = {name: numbers for name, numbers in self.by_clock.items() if name not in names}
        return replace(self, offsets=offsets, ids=ids, by_clock=by_clock)

    def leaves_out(self, name: str) -> bool:
        """Whether nothing of a topic is read by any epoch."""
        return self.complete and name not in self.offsets

    def clip(self, name: str, range: TopicRange) -> TopicRange:
        """What of a topic's range is before its ends."""
        ends = self.offsets.get(name, {})
        clipped = {}
        for number, (first, end) in range.partitions.items():
            most = ends.get(number, first if self.complete else end)
            clipped[number] = (first, max(first, min(end, most)))
        return replace(range, partitions=clipped)

    def is_reached(self, name: str, range: TopicRange) -> bool:
        """Whether nothing of a topic is left that has been read up to the range's end."""
        ends = self.offsets.get(name, {})
        return self.complete and all(range.ends.get(number, -1) >= end for number, end in ends.items())


def is_finished(position: Position) -> bool:
    """Whether nothing is left to read behind a position, ever."""
    bound = Bound.of_position(position)
    if bound is None or not bound.complete or not bound.offsets:
        return False
    read = left_topics(position) | ranges_of(position)
    return all(name in read and bound.is_reached(name, read[name]) for name in bound.offsets)


@dataclass(frozen=True)
class Ending:
    """How a source's ends are found. `settle`: after a time, until no record of before it comes any more."""

    end: End
    selection: Json  #: topics or pattern: other ones have other ends
    settle: timedelta

    @property
    def of(self) -> Json:
        end = time_as_json(self.end) if isinstance(self.end, datetime) else self.end
        return json.loads(json.dumps({"end": end, **self.selection}))

    def bound_before(self, position: Position | None) -> Bound:
        """Those that earlier epochs found, if they were made of the same, and are of any topic."""
        found = Bound.of_position(position) if position is not None else None
        return found if found is not None and found.of == self.of and found.offsets else Bound(self.of)

    def find(self, cluster: Cluster, topics: Iterable[TopicBounds], before: Bound) -> Bound:
        """The ends of these topics, as far as they can be told now. Once told they stay. As long as there is no topic,
        there are none: a pattern may find one later.

        Raises `SourceRefused` for a partition of which `end` should say something, and doesn't, and for a topic of
        which it says something, and that isn't there.
        """
        known = {name for name in before.offsets if before.complete and name not in before.by_clock}
        looked_for = [one for one in topics if one.topic.name not in known]
        ids = {one.topic.name: one.topic.id for one in looked_for}
        over, by_clock = True, dict(before.by_clock)
        found: dict[str, Mapping[int, int]]
        if isinstance(self.end, datetime):
            over = before.complete or datetime.now(UTC) >= self.end + self.settle
            times = {one.topic.name: self._at_time(cluster, one, self.end, before) for one in looked_for}
            found = {name: {n: at for n, (at, told) in ends.items() if told or over} for name, ends in times.items()}
            guessed = {name: tuple(n for n in found[name] if not ends[n][1]) for name, ends in times.items()}
            by_clock = {name: numbers for name, numbers in (by_clock | guessed).items() if numbers}
        else:
            if not before.complete:
                self._require_topics(cluster, ids)
            found = {one.topic.name: self._now(cluster, one) for one in looked_for}
        offsets = {**before.offsets, **found}
        if not offsets:
            _log.warning("%s: there is no topic yet that could have an end: later epochs look again", cluster.who.name)
        complete = before.complete or (over and bool(offsets))
        return replace(before, offsets=offsets, ids={**before.ids, **ids}, complete=complete, by_clock=by_clock)

    def _require_topics(self, cluster: Cluster, found: Collection[str]) -> None:
        if isinstance(self.end, Mapping) and (absent := sorted(set(self.end) - set(found))):
            raise SourceRefused(
                f"{cluster.who.name}: end names {', '.join(absent)}, which isn't there, or isn't what the pattern "
                "means: create it, or leave it out of end"
            )

    def _now(self, cluster: Cluster, bounds: TopicBounds) -> Mapping[int, int]:
        name = bounds.topic.name
        if not isinstance(self.end, Mapping):
            return cluster.ends(name, bounds.partitions)  # what is in open transactions is waited for
        ends = self.end.get(name, {})
        if missing := sorted(set(bounds.partitions) - set(ends)):
            raise SourceRefused(
                f"{cluster.who.name}: end says nothing of partitions {missing} of {name}: name the offset behind the "
                "last record that is to be read of each; 0 if none is"
            )
        if unknown := sorted(set(ends) - set(bounds.partitions)):
            raise SourceRefused(f"{cluster.who.name}: end names partitions {unknown} of {name}, which it doesn't have")
        return ends

    def _at_time(
        self, cluster: Cluster, bounds: TopicBounds, time: datetime, before: Bound
    ) -> dict[int, tuple[int, bool]]:
        """Of each partition the offset of the first record of that time or later, True; where there is none, its end
        now, False."""
        name = bounds.topic.name
        known, by_clock = before.offsets.get(name, {}), before.by_clock.get(name, ())
        joins: Collection[int] = bounds.partitions if not before.complete or name not in before.offsets else ()
        gone = [number for number in by_clock if number in known and known[number] < bounds.partitions[number][0]]
        if gone:
            _log.warning(
                "%s: records of %s, partitions %s, are gone, and nobody can tell whether they came before %s: they "
                "count as later ones",
                *(cluster.who.name, name, gone, time),
            )
        looked_for = [number for number in joins if number not in known] + [n for n in by_clock if n not in gone]
        newest = cluster.ends(name, looked_for)
        found = cluster.offsets_at(name, looked_for, time)
        ends = {number: (newest[number] if at is None else at, at is not None) for number, at in found.items()}
        return {number: (end, True) for number, end in known.items()} | ends
