"""Where a source ends for good: the offsets behind which nothing of a topic is read any more."""

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
from lockstep.sources.kafka._start_offsets import check_place, time_as_json

End = str | datetime | Mapping[str, Mapping[int, int]]
_log = logging.getLogger(__name__)


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
