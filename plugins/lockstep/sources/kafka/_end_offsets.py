"""Where a source ends for good: the offsets behind which nothing of a topic is read any more."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from lockstep.epoch import Json, Position
from lockstep.errors import InvalidPipeline, SourceRefused
from lockstep.kafka.cluster import Cluster
from lockstep.sources.kafka._ranges import TopicBounds, TopicRange, left_topics, ranges_of
from lockstep.sources.kafka._start_offsets import check_place, time_as_json

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

    `of`: what they were made of. `complete`: nothing is looked for any more; what isn't named then isn't read.
    """

    of: Json
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    complete: bool = False

    @classmethod
    def of_position(cls, position: Position) -> Bound | None:
        """The one that was frozen with a position."""
        if (found := position.get("bound")) is None:
            return None
        offsets = {name: {int(n): end for n, end in ends.items()} for name, ends in found["offsets"].items()}
        return cls(found["of"], offsets, found["complete"])

    def to_json(self) -> Json:
        offsets = {name: {str(n): end for n, end in ends.items()} for name, ends in sorted(self.offsets.items())}
        return {"of": self.of, "offsets": offsets, "complete": self.complete}

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
        ends = self.offsets.get(name)
        if not self.complete or ends is None:
            return False
        return all(range.ends.get(number, -1) >= end for number, end in ends.items())


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
        """Those that earlier epochs found, if they were made of the same."""
        found = Bound.of_position(position) if position is not None else None
        return found if found is not None and found.of == self.of else Bound(self.of)

    def find(self, cluster: Cluster, topics: Iterable[TopicBounds], before: Bound) -> Bound:
        """The ends of these topics, as far as they can be told now. Once found they stay.

        Raises `SourceRefused` for a partition of which `end` should say something, and doesn't.
        """
        if before.complete:
            return before
        if isinstance(self.end, datetime):
            over = datetime.now(UTC) >= self.end + self.settle
            found = {one.topic.name: self._at_time(cluster, one, self.end, before, over=over) for one in topics}
            return replace(before, offsets={**before.offsets, **found}, complete=over)
        return replace(before, offsets={one.topic.name: self._now(cluster, one) for one in topics}, complete=True)

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
