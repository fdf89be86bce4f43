"""Where a source ends for good: the offsets behind which nothing of a topic is read any more."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from lockstep.epoch import Json, Position
from lockstep.errors import InvalidPipeline, SourceRefused
from lockstep.kafka.cluster import Cluster
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

    `of`: what they were made of. `ids`: of the topics whose offsets these are, as they were then. `complete`: nothing
    is looked for any more; what isn't named then isn't read.
    """

    of: Json
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)
    complete: bool = False

    @classmethod
    def of_position(cls, position: Position) -> Bound | None:
        """The one that was frozen with a position."""
        if (found := position.get("bound")) is None:
            return None
        ranges = left_topics(position) | ranges_of(position)  # older plans have the ids nowhere else
        ids = found.get("ids", {name: range.id for name, range in ranges.items() if name in found["offsets"]})
        ends = {name: found["offsets"][name] for name in ids}
        offsets = {name: {int(number): end for number, end in one.items()} for name, one in ends.items()}
        return cls(found["of"], offsets, ids, found["complete"])

    def to_json(self) -> Json:
        offsets = {name: {str(n): end for n, end in ends.items()} for name, ends in sorted(self.offsets.items())}
        return {"of": self.of, "offsets": offsets, "ids": dict(sorted(self.ids.items())), "complete": self.complete}

    def without(self, names: Collection[str]) -> Bound:
        """Without the ends of these topics."""
        offsets = {name: ends for name, ends in self.offsets.items() if name not in names}
        return replace(self, offsets=offsets, ids={name: id for name, id in self.ids.items() if name not in names})

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
        """The ends of these topics, as far as they can be told now. Once found they stay. As long as there is no topic,
        there are none: a pattern may find one later.

        Raises `SourceRefused` for a partition of which `end` should say something, and doesn't, and for a topic of
        which it says something, and that isn't there.
        """
        looked_for = [one for one in topics if not before.complete or one.topic.name not in before.offsets]
        ids = {one.topic.name: one.topic.id for one in looked_for}
        over = True
        if isinstance(self.end, datetime):
            over = datetime.now(UTC) >= self.end + self.settle
            found = {one.topic.name: self._at_time(cluster, one, self.end, before, over=over) for one in looked_for}
        else:
            if not before.complete:
                self._require_topics(cluster, ids)
            found = {one.topic.name: self._now(cluster, one) for one in looked_for}
        offsets = {**before.offsets, **found}
        if not offsets:
            _log.warning("%s: there is no topic yet that could have an end: later epochs look again", cluster.who.name)
        complete = before.complete or (over and bool(offsets))
        return replace(before, offsets=offsets, ids={**before.ids, **ids}, complete=complete)

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
        self, cluster: Cluster, bounds: TopicBounds, time: datetime, before: Bound, *, over: bool
    ) -> Mapping[int, int]:
        """Of each partition the first record of that time or later; once it is over, where there is none, the end."""
        name = bounds.topic.name
        known = before.offsets.get(name, {})
        newest = cluster.ends(name, bounds.partitions)
        found = cluster.offsets_at(name, [number for number in bounds.partitions if number not in known], time)
        told = {number: newest[number] if at is None else at for number, at in found.items() if over or at is not None}
        return {**known, **told}
