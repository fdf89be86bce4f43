"""Markers of epochs and compactions in a table's properties, which survive expired snapshots and rollbacks.

Each commit of an epoch sets one property together with its files. The newest markers stay properties; older ones are
moved in batches to a file below the table, which another property names with its sha256. So a table with 10,000 epochs
has about 200 properties. The file keeps entire markers, not only epoch numbers: a marker proves by its manifest hash,
and a range is found by its interval.
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

MAX_UNFOLDED = 100  #: markers that stay properties; with twice as many the older half is folded
STATE = "_lockstep"  #: folder below a table's location: readers and the removal of orphans skip names with _ in front
_MARKER, _FOLDED, _SUCCESSOR = "lockstep.marker.", "lockstep.folded.", "lockstep.replaced."

Read = Callable[[str], bytes]  # reads the file at a path below the table's location


@dataclass(frozen=True)
class EpochMarker:
    """A table's record of one epoch. `snapshot`: of the commit that showed it; `replaced`: epochs whose rows that
    commit removed."""

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
    def from_json(cls, content: Json) -> EpochMarker:
        return cls(**{**content, "replaced": tuple(content["replaced"])})

    def to_text(self) -> str:
        return json.dumps(self.to_json(), separators=(",", ":"), sort_keys=True)


@dataclass(frozen=True)
class FoldedMarkers:
    """Reference to a file of markers. `starts`: the earliest and latest start of their intervals, if all have one."""

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
    """Changes that a commit makes for its marker: a file to write before, if any, and properties to change."""

    updates: Mapping[str, str]
    removals: tuple[str, ...] = ()
    file: tuple[str, bytes] | None = None


class TableMarkers:
    """Markers of one sink in a table's `properties`. `read` raises OSError for a missing file."""

    def __init__(self, owner: SinkName, properties: Mapping[str, str], read: Read) -> None:
        self._read = read
        owner_hash = hashlib.sha256(f"{owner.deployment}:{owner.pipeline}:{owner.sink}".encode()).hexdigest()[:16]
        self._owner, self._marker, self._folded = owner_hash, f"{_MARKER}{owner_hash}.", f"{_FOLDED}{owner_hash}."
        self._successor, self._properties = f"{_SUCCESSOR}{owner_hash}.", properties
        self.unfolded = {
            int(name.removeprefix(self._marker)): EpochMarker.from_json(json.loads(value))
            for name, value in properties.items()
            if name.startswith(self._marker)
        }
        self.folded = [_decode_folded(value) for name, value in properties.items() if name.startswith(self._folded)]

    def find(self, epoch: int) -> EpochMarker | None:
        """Raises `OutcomeUnknown` if the file that may contain the marker is missing or damaged."""
        if epoch in self.unfolded:
            return self.unfolded[epoch]
        files = [file for file in self.folded if file.may_hold(epoch)]
        return next((marker for file in files for marker in self._read_folded(file) if marker.epoch == epoch), None)

    def find_span(self, span: str) -> EpochMarker | None:
        """Find a marker by interval; raises as `find`."""
        files = [file for file in self.folded if file.may_hold_span(span)]
        folded = (marker for file in files for marker in self._read_folded(file))
        return next((marker for marker in chain(self.unfolded.values(), folded) if marker.span == span), None)

    def newest(self) -> list[EpochMarker]:
        """Markers with the largest epoch and with the largest token, neither of which is ever folded."""
        if not self.unfolded:
            return []
        return sorted({self.unfolded[max(self.unfolded)], max(self.unfolded.values(), key=_age)}, key=_age)

    def __iter__(self) -> Iterator[EpochMarker]:
        yield from sorted(
            [*self.unfolded.values(), *(marker for file in self.folded for marker in self._read_folded(file))],
            key=_epoch,
        )

    def is_replaced(self, epoch: int) -> bool:
        """True if another epoch has replaced this one."""
        return f"{self._successor}{epoch}" in self._properties

    def add(self, marker: EpochMarker) -> Folding:
        """The changes to make in the commit that shows the marker's epoch."""
        added = {f"{self._marker}{marker.epoch}": marker.to_text()}
        added |= {f"{self._successor}{replaced}": str(marker.epoch) for replaced in marker.replaced}
        if len(self.unfolded) < 2 * MAX_UNFOLDED:
            return Folding(added)
        last = max(self.unfolded)
        old = sorted((entry for entry in self.unfolded.values() if entry.epoch != last), key=_age)[:MAX_UNFOLDED]
        data = json.dumps([entry.to_json() for entry in sorted(old, key=_epoch)], separators=(",", ":")).encode()
        folded = self._name(old, data)
        name = f"{self._folded}{folded.first}-{folded.last}-{folded.sha256[:12]}"
        removals = tuple(f"{self._marker}{entry.epoch}" for entry in old)
        return Folding({**added, name: json.dumps(asdict(folded))}, removals, (folded.path, data))

    def _name(self, old: list[EpochMarker], data: bytes) -> FoldedMarkers:
        epochs, sha256 = [marker.epoch for marker in old], hashlib.sha256(data).hexdigest()
        spans = [start for marker in old if marker.span is not None and (start := _start(marker.span)) is not None]
        starts = (min(spans, key=datetime.fromisoformat), max(spans, key=datetime.fromisoformat)) if spans else None
        path = f"{STATE}/markers/{self._owner}/{min(epochs)}-{max(epochs)}-{sha256[:12]}.json"
        return FoldedMarkers(path, sha256, min(epochs), max(epochs), starts if len(spans) == len(old) else None)

    def _read_folded(self, file: FoldedMarkers) -> list[EpochMarker]:
        try:
            data = self._read(file.path)
        except FileNotFoundError as error:
            raise OutcomeUnknown(
                f"{file.path} below the table holds the markers of epochs {file.first} to {file.last} but is missing: "
                "restore it from a backup, or declare what the table shows with `lockstep resolve`"
            ) from error
        if hashlib.sha256(data).hexdigest() != file.sha256:
            raise OutcomeUnknown(f"{file.path} below the table differs from what its property names: restore it")
        return [EpochMarker.from_json(marker) for marker in json.loads(data)]


def _decode_folded(value: str) -> FoldedMarkers:
    content = json.loads(value)
    return FoldedMarkers(**{**content, "starts": tuple(content["starts"]) if content["starts"] else None})


def _start(span: str) -> str | None:
    """Start of the interval; None for a cursor's epoch that replaced another."""
    start = span.partition("/")[0]
    return None if start == "epoch" else start


def _age(marker: EpochMarker) -> tuple[int, int]:
    return marker.token, marker.epoch


def _epoch(marker: EpochMarker) -> int:
    return marker.epoch


_PREFIX = "lockstep.compaction."
_LAST, _DONE = "last", "done"


@dataclass(frozen=True)
class CompactionMarkers:
    """Compactions of one pipeline's sinks. `done`: committed ones, 17 bytes each; `last`: the last one committed or
    fenced; `committed`: committed by any sink, as numbers are unique."""

    prefix: str
    done: tuple[int, ...]
    last: int | None
    committed: frozenset[int]

    @classmethod
    def of(cls, owner: SinkName, properties: Mapping[str, str]) -> CompactionMarkers:
        prefix = _prefix(owner.deployment, owner.pipeline)
        last = properties.get(f"{prefix}{_LAST}")
        texts = (text for name, text in properties.items() if name.startswith(_PREFIX) and name.endswith(f".{_DONE}"))
        return cls(
            prefix,
            _numbers(properties.get(f"{prefix}{_DONE}", "")),
            int(last) if last else None,
            frozenset(number for text in texts for number in _numbers(text)),
        )

    def with_last(self, number: int) -> dict[str, str]:
        """Properties to set for a fence."""
        return {f"{self.prefix}{_LAST}": str(number)}

    def with_done(self, number: int) -> dict[str, str]:
        """Properties to set together with a compaction's files."""
        return {**self.with_last(number), f"{self.prefix}{_DONE}": " ".join(map(str, (*self.done, number)))}


def _prefix(*owner: str) -> str:
    return f"{_PREFIX}{hashlib.sha256(':'.join(owner).encode()).hexdigest()[:16]}."


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split() if number.isdecimal())
