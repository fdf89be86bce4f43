"""Markers of a table: properties, which survive expired snapshots and a rollback.

Each commit of an epoch sets one property with its files. The newest stay whole; what is older goes, so many at a time,
into a file below the table that a property names with its sha256: a table with 10,000 epochs has 100 properties of
that kind, and each of its commits writes that much less. A file and not a number of epochs alone, as a marker proves by
its manifest hash, and a range is found by its interval: neither can be folded into less than it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import chain

from lockstep.epoch import Json
from lockstep.errors import OutcomeUnknown
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import Marker

WHOLE = 100  #: markers that stay properties; at twice as many the older half is folded
STATE = "_lockstep"  #: folder below a table's location: readers and the removal of orphans skip what starts with _
_MARKER, _FOLDED, _SUCCESSOR = "lockstep.marker.", "lockstep.folded.", "lockstep.replaced."

Read = Callable[[str], bytes]  # what stands at a path below the table's location


@dataclass(frozen=True)
class EpochMarker:
    """What stands in a table for one epoch. `snapshot`: of the commit that showed it; `replaced`: the epochs whose rows
    that one took away."""

    epoch: int
    token: int
    manifest: str
    span: str | None
    snapshot: int
    files: int
    rows: int
    replaced: tuple[int, ...] = ()

    @property
    def proof(self) -> Marker:
        return Marker(self.epoch, self.token, self.manifest, self.span, self.replaced)

    def to_json(self) -> Json:
        return asdict(self)

    @classmethod
    def from_json(cls, told: Json) -> EpochMarker:
        return cls(**{**told, "replaced": tuple(told["replaced"])})

    def to_text(self) -> str:
        return json.dumps(self.to_json(), separators=(",", ":"), sort_keys=True)


@dataclass(frozen=True)
class FoldedMarkers:
    """Names a file of markers; `starts`: the first and the last beginning of their intervals, if all have one."""

    path: str
    sha256: str
    first: int
    last: int
    starts: tuple[str, str] | None

    def may_hold(self, epoch: int) -> bool:
        return self.first <= epoch <= self.last

    def may_hold_span(self, span: str) -> bool:
        start = _start(span)
        if self.starts is None or start is None:
            return self.starts is None
        first, last = map(datetime.fromisoformat, self.starts)
        return first <= datetime.fromisoformat(start) <= last


@dataclass(frozen=True)
class Folding:
    """What a commit has to do for its marker: a file to be written before it, if any, and changes of properties."""

    updates: Mapping[str, str]
    removals: tuple[str, ...] = ()
    file: tuple[str, bytes] | None = None


class TableMarkers:
    """Those of one sink among a table's `properties`. `read` raises OSError for a file that is gone."""

    def __init__(self, owner: SinkName, properties: Mapping[str, str], read: Read) -> None:
        self._read = read
        told = hashlib.sha256(f"{owner.deployment}:{owner.pipeline}:{owner.sink}".encode()).hexdigest()[:16]
        self._owner, self._marker, self._folded = told, f"{_MARKER}{told}.", f"{_FOLDED}{told}."
        self._successor, self._properties = f"{_SUCCESSOR}{told}.", properties
        self.whole = {
            int(name.removeprefix(self._marker)): EpochMarker.from_json(json.loads(value))
            for name, value in properties.items()
            if name.startswith(self._marker)
        }
        self.folded = [_folded(value) for name, value in properties.items() if name.startswith(self._folded)]

    def find(self, epoch: int) -> EpochMarker | None:
        """Raises `OutcomeUnknown` if the file that may hold it is gone or damaged."""
        if epoch in self.whole:
            return self.whole[epoch]
        files = [one for one in self.folded if one.may_hold(epoch)]
        return next((marker for one in files for marker in self._unfold(one) if marker.epoch == epoch), None)

    def find_span(self, span: str) -> EpochMarker | None:
        """As `find`, by an epoch's interval."""
        files = [one for one in self.folded if one.may_hold_span(span)]
        folded = (marker for one in files for marker in self._unfold(one))
        return next((marker for marker in chain(self.whole.values(), folded) if marker.span == span), None)

    def newest(self) -> list[EpochMarker]:
        """With the largest epoch and with the largest token: both are never folded."""
        if not self.whole:
            return []
        return sorted({self.whole[max(self.whole)], max(self.whole.values(), key=_age)}, key=_age)

    def __iter__(self) -> Iterator[EpochMarker]:
        yield from sorted([*self.whole.values(), *(m for one in self.folded for m in self._unfold(one))], key=_epoch)

    def is_replaced(self, epoch: int) -> bool:
        """Whether another epoch has taken the place of this one."""
        return f"{self._successor}{epoch}" in self._properties

    def add(self, marker: EpochMarker) -> Folding:
        """What to change, in the commit that shows the marker's epoch."""
        added = {f"{self._marker}{marker.epoch}": marker.to_text()}
        added |= {f"{self._successor}{replaced}": str(marker.epoch) for replaced in marker.replaced}
        if len(self.whole) < 2 * WHOLE:
            return Folding(added)
        last = max(self.whole)
        old = sorted((one for one in self.whole.values() if one.epoch != last), key=_age)[:WHOLE]
        data = json.dumps([one.to_json() for one in sorted(old, key=_epoch)], separators=(",", ":")).encode()
        folded = self._name(old, data)
        name = f"{self._folded}{folded.first}-{folded.last}-{folded.sha256[:12]}"
        removals = tuple(f"{self._marker}{one.epoch}" for one in old)
        return Folding({**added, name: json.dumps(asdict(folded))}, removals, (folded.path, data))

    def _name(self, old: list[EpochMarker], data: bytes) -> FoldedMarkers:
        epochs, sha256 = [one.epoch for one in old], hashlib.sha256(data).hexdigest()
        spans = [start for one in old if one.span is not None and (start := _start(one.span)) is not None]
        starts = (min(spans, key=datetime.fromisoformat), max(spans, key=datetime.fromisoformat)) if spans else None
        path = f"{STATE}/markers/{self._owner}/{min(epochs)}-{max(epochs)}-{sha256[:12]}.json"
        return FoldedMarkers(path, sha256, min(epochs), max(epochs), starts if len(spans) == len(old) else None)

    def _unfold(self, one: FoldedMarkers) -> list[EpochMarker]:
        try:
            data = self._read(one.path)
        except FileNotFoundError as error:
            raise OutcomeUnknown(
                f"{one.path} below the table holds the markers of epochs {one.first} to {one.last} and is gone: "
                "bring it back from a backup, or say what the table shows by `lockstep resolve`"
            ) from error
        if hashlib.sha256(data).hexdigest() != one.sha256:
            raise OutcomeUnknown(f"{one.path} below the table isn't what its property names: bring it back as it was")
        return [EpochMarker.from_json(marker) for marker in json.loads(data)]


def _folded(value: str) -> FoldedMarkers:
    told = json.loads(value)
    return FoldedMarkers(**{**told, "starts": tuple(told["starts"]) if told["starts"] else None})


def _start(span: str) -> str | None:
    """Of its interval; None: it is that of a cursor's epoch that took another's place."""
    told = span.partition("/")[0]
    return None if told == "epoch" else told


def _age(marker: EpochMarker) -> tuple[int, int]:
    return marker.token, marker.epoch


def _epoch(marker: EpochMarker) -> int:
    return marker.epoch


_PREFIX = "lockstep.compaction."
_LAST, _DONE = "last", "done"


@dataclass(frozen=True)
class Compactions:
    """Those of one pipeline, by their numbers: its sink may get another name. `done`: committed, 17 bytes each; `last`:
    committed or fenced; `known`: committed by any sink, a number being had once."""

    prefix: str
    done: tuple[int, ...]
    last: int | None
    known: frozenset[int]

    @classmethod
    def of(cls, owner: SinkName, properties: Mapping[str, str]) -> Compactions:
        prefix = _prefix(owner.deployment, owner.pipeline)
        last = properties.get(f"{prefix}{_LAST}")
        told = (text for name, text in properties.items() if name.startswith(_PREFIX) and name.endswith(f".{_DONE}"))
        return cls(
            prefix,
            _numbers(properties.get(f"{prefix}{_DONE}", "")),
            int(last) if last else None,
            frozenset(number for text in told for number in _numbers(text)),
        )

    def with_last(self, number: int) -> dict[str, str]:
        """The properties to set for a fence."""
        return {f"{self.prefix}{_LAST}": str(number)}

    def with_done(self, number: int) -> dict[str, str]:
        """The properties to set with a compaction's files."""
        return {**self.with_last(number), f"{self.prefix}{_DONE}": " ".join(map(str, (*self.done, number)))}


def _prefix(*whose: str) -> str:
    return f"{_PREFIX}{hashlib.sha256(':'.join(whose).encode()).hexdigest()[:16]}."


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(one) for one in text.split() if one.isdecimal())
