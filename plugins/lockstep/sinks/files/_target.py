"""Where epochs are published as files: who owns the place, what is pending there, what is shown."""

from __future__ import annotations

import hashlib
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Generic, Protocol, TypeAlias, TypeVar

from lockstep.epoch import Json
from lockstep.errors import LedgerConflict, OutcomeUnknown, TargetOwned
from lockstep.sinks.durable_file import Damaged, HashedFile, from_checked, to_checked
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import Marker, Txn

_LISTING_FORMAT = 3


@dataclass(frozen=True)
class PublishedFile:
    """One file of an epoch: its final name (below the target, `/` between folders), rows, size in bytes and sha256."""

    name: str
    rows: int
    bytes: int
    sha256: str

    @property
    def bucket(self) -> str:
        """Its folder below the target; empty for the target itself."""
        return self.name.rpartition("/")[0]

    @property
    def pending(self) -> str:
        """Its name while it is pending: no two files of an epoch have the same."""
        return self.name.rpartition("/")[2]


@dataclass(frozen=True)
class EpochFiles:
    """The files of one epoch of one sink, under the token that voted for them."""

    deployment: str
    pipeline: str
    sink: str
    epoch: int
    token: int
    manifest_hash: str
    files: tuple[PublishedFile, ...]
    span: str | None = None  #: the epoch's interval, by which it is found whatever its number
    #: the epochs whose places it takes, and those whose places they had taken: one marker says all
    replaced: tuple[int, ...] = ()

    @property
    def owner(self) -> SinkName:
        return SinkName(self.deployment, self.pipeline, self.sink)

    @property
    def marker(self) -> Marker:
        return Marker(self.epoch, self.token, self.manifest_hash, self.span, self.replaced)

    def to_bytes(self) -> bytes:
        return to_checked({"format": _LISTING_FORMAT, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> EpochFiles | None:
        """None if there is no such file. Raises `Damaged` for anything else that isn't a listing."""
        try:
            return cls.from_bytes(path.read_bytes(), path.name)
        except FileNotFoundError:
            return None

    @classmethod
    def from_bytes(cls, data: bytes, name: str) -> EpochFiles:
        """`name`: what it is read from. Raises `Damaged`."""
        content = from_checked(data)
        if (written := content.pop("format", None)) != _LISTING_FORMAT:
            raise Damaged(f"{name} is of format {written}, this Lockstep reads {_LISTING_FORMAT}: upgrade it")
        files = tuple(PublishedFile(**fact) for fact in content.pop("files"))
        replaced = tuple(content.pop("replaced"))
        return cls(**content, files=files, replaced=replaced)


def standing(listings: Iterable[EpochFiles]) -> list[EpochFiles]:
    """Those that none of the others has replaced, by epoch."""
    found = sorted(listings, key=lambda one: (one.epoch, one.pipeline, one.sink))
    replaced = {(one.owner, epoch) for one in found for epoch in one.replaced}
    return [one for one in found if (one.owner, one.epoch) not in replaced]


def names_of(listings: Iterable[EpochFiles]) -> list[str]:
    """The final names of the files that are to be seen, by epoch."""
    return [fact.name for listing in standing(listings) for fact in listing.files]


def read_marker(path: Path) -> EpochFiles | None:
    """None if there is none. Raises `OutcomeUnknown` if it is damaged."""
    try:
        return EpochFiles.read(path)
    except Damaged as error:
        raise OutcomeUnknown(f"the marker {path} is damaged ({error}): restore it from a copy") from error


#: (final name, rows, file with all of them) → what the file is once it is durable. Raises OSError, `SinkRejected`.
Keep: TypeAlias = Callable[[str, int, HashedFile], PublishedFile]

STATE = ".lockstep"  #: the folder of everything that isn't data

#: Writes files into a folder of this machine, gives each to `Keep` once it has all its rows, and returns their facts.
Write: TypeAlias = Callable[[Path, Keep], tuple[PublishedFile, ...]]


class FileTarget(Protocol):
    """One place, as one sink sees it. `place`: what it is called. Every call may raise OSError.

    Pending files stand in a folder of their transaction, by whose name, below the target's state, calls go on.
    """

    place: str
    owner: SinkName

    @property
    def suffix(self) -> str:
        """What tells the final names of one owner from another's in a place that is shared."""

    # --- ownership ---

    def claim(self) -> None:
        """Make the place and take it. Raises `PreflightRefused`, `TargetOwned`, `TargetFull`, `StoreRefused`."""

    def require(self) -> str:
        """The target's id, if it is this sink's. Raises `TargetChanged`, `TargetOwned`, `PreflightRefused`."""

    def disclaim(self) -> None:
        """Leave the place to the next who claims it; one that is shared belongs to nobody anyway."""

    # --- pending transactions ---

    def begin(self, txn: Txn) -> None:
        """Make the folder of `txn`; what the same token left before is taken away."""

    def folder(self, txn: Txn) -> str:
        """The name of that folder."""

    def scratch(self, txn: Txn) -> str:
        """A folder of its own for whoever asks; nobody takes it for a pending transaction that has voted."""

    def write(self, folder: str, write: Write) -> tuple[PublishedFile, ...]:
        """Have files written that are durable in `folder` afterwards."""

    def vote(self, folder: str, listing: EpochFiles) -> None:
        """Make a folder's files durable under the names that `listing` gives, and say so."""

    def voted(self, txn: Txn) -> EpochFiles | None:
        """What the folder of `txn` promises; None if it is gone, unfinished, damaged or another's."""

    def handles(self) -> list[str]:
        """Every handle that a folder carries, foreign ones too."""

    def discard(self, txn: Txn, *, just_shown: bool = False) -> None:
        """Take away every folder of `txn`; fine when there is none. Of an epoch that was replaced the files go, too,
        that somebody may have shown once more from there; `just_shown`: it wasn't, this process has created its marker.
        """

    # --- publication ---

    def shown(self, epoch: int) -> EpochFiles | None:
        """The epoch's marker. Raises `OutcomeUnknown` if it is damaged or another's."""

    def shown_span(self, span: str) -> EpochFiles | None:
        """What has taken a range, shown whole or not yet. Raises as `shown`."""

    def epochs(self) -> Iterator[int]:
        """The number of every epoch that has a marker, by the markers' names."""

    def show(self, folder: str, listing: EpochFiles, success: Sequence[str] = ()) -> bool:
        """Take the range, show what `folder` holds, then the names `success`, then the marker; False if that was there
        already.

        Raises `LedgerConflict` if another number or manifest has the range, `Damaged` before anything is shown if a
        file isn't what `listing` says, FileNotFoundError if `folder` is taken away meanwhile, `OutcomeUnknown` if a
        final name is taken by other bytes, or somebody else shows other files, `PreflightRefused` if a bucket's folder
        can't be made.
        """

    def replaced_by(self, epoch: int) -> int | None:
        """The epoch that has taken the place of another one here, whose files may be gone by now."""

    def take_away_replaced(self, txn: Txn, listing: EpochFiles) -> None:
        """Take away the files of the epochs that `listing`, whose marker stands, has replaced. Their markers stay.
        What this needs for a moment is `txn`'s, and swept with it."""

    def refuse_blocked(self, buckets: Iterable[str]) -> None:
        """Raise `PreflightRefused` if something that is no folder stands where a bucket would be."""

    def refuse_strays(self, prefix: str, listing: EpochFiles) -> None:
        """Raise `OutcomeUnknown` if final names of this epoch stand here, in any bucket, that `listing` won't show."""

    def open(self, name: str) -> BinaryIO:
        """A published file."""


def hash_of(owner: SinkName) -> str:
    """12 hex digits that tell owners apart."""
    return hashlib.sha256(f"{owner.deployment}:{owner.pipeline}:{owner.sink}".encode()).hexdigest()[:12]


def told(owner: Json) -> str:
    """An owner, as target.json has it, in words."""
    if owner is None:
        return "sinks that share it"
    return f"sink {owner['sink']} of pipeline {owner['pipeline']} (deployment {owner['deployment']})"


P = TypeVar("P")  # by which a place names what is in it: a path of this machine, of HDFS, or a key

_TARGET_FORMAT = 1  #: of target.json
_MARKER = re.compile(r"epoch=([0-9]+)\.json")


class MarkedTarget(ABC, Generic[P]):
    """The part of a `FileTarget` that is the same wherever it is; see there for what each call means."""

    kind = "folder"  #: what a place is called

    def __init__(self, place: str, owner: SinkName, shared: bool) -> None:
        self.place, self.owner, self.shared = place, owner, shared

    @abstractmethod
    def _in_state(self, name: str) -> P:
        """What has this name in the owner's state folder."""

    @abstractmethod
    def _read_marker(self, path: P) -> EpochFiles | None:
        """None if there is none. Raises `OutcomeUnknown` if it is damaged."""

    @abstractmethod
    def _named(self, prefix: str) -> Iterable[str]:
        """The final names here, in any bucket, that begin with `prefix`; not what is another target's."""

    def _told(self, path: P) -> str:
        """In messages."""
        return str(path)

    # --- ownership ---

    @property
    def suffix(self) -> str:
        return f"-{hash_of(self.owner)}" if self.shared else ""

    @property
    def _state_names(self) -> tuple[str, ...]:
        """The owner's state folder, name by name from the place on."""
        shared = ("shared", self.owner.deployment, self.owner.pipeline, self.owner.sink)
        return (STATE, *(shared if self.shared else ()))

    @property
    def _owner(self) -> Json:
        return None if self.shared else asdict(self.owner)

    def _new_target(self) -> bytes:
        """The content of a target.json that this owner makes."""
        return to_checked({"format": _TARGET_FORMAT, "target_id": str(uuid.uuid4()), "owner": self._owner})

    def _require_own(self, content: Json, place: str) -> str:
        """The id in a target.json. Raises `TargetOwned`."""
        if content["owner"] != self._owner:
            raise TargetOwned(
                f"{place} belongs to {told(content['owner'])}, not to {told(self._owner)}: give every sink a "
                f"{self.kind} of its own, say shared=True in all that share one, or give a renamed sink its name back"
            )
        return str(content["target_id"])

    # --- markers ---

    def shown(self, epoch: int) -> EpochFiles | None:
        path = self._marker(epoch)
        listing = self._read_marker(path)
        if listing and (listing.owner, listing.epoch) != (self.owner, epoch):
            raise OutcomeUnknown(f"{self._told(path)} is of epoch {listing.epoch} of {listing.owner}: restore it")
        return listing

    def shown_span(self, span: str) -> EpochFiles | None:
        path = self._of_span(span)
        listing = self._read_marker(path)
        if listing and (listing.owner, listing.span) != (self.owner, span):
            raise OutcomeUnknown(f"{self._told(path)} is of {listing.span} of {listing.owner}: restore it")
        return listing

    def _require_range(self, listing: EpochFiles, span: str) -> None:
        """After it was taken, by whom ever. A publication of the same epoch that was cut off may have; it is this one's
        too. Raises `LedgerConflict`."""
        taken = self.shown_span(span)
        if taken is not None and (taken.epoch, taken.manifest_hash) != (listing.epoch, listing.manifest_hash):
            raise LedgerConflict(
                f"{self._told(self._of_span(span))} says that the range of epoch {listing.epoch} was shown as epoch "
                f"{taken.epoch} of the manifest {taken.manifest_hash[:12]}, by a ledger that this one has no memory "
                "of: nothing was shown; see docs/ledger.md"
            )

    def _files_of(self, epoch: int) -> list[str]:
        """The final names of an epoch that was replaced: as its marker says or, where somebody took that away, all that
        have its number."""
        listing = self.shown(epoch)
        if listing is None:
            return list(self._named(f"{self.owner.sink}{self.suffix}-epoch={epoch}-"))
        return [fact.name for fact in listing.files]

    def replaced_by(self, epoch: int) -> int | None:
        found = self._read_marker(self._of_replaced(epoch))
        return found.epoch if found else None

    def _marker(self, epoch: int) -> P:
        return self._in_state(f"epoch={epoch}.json")

    def _of_replaced(self, epoch: int) -> P:
        return self._in_state(f"replaced={epoch}.json")

    def _of_span(self, span: str) -> P:
        return self._in_state(f"span={span.replace(':', '').replace('/', '_')}.json")


def marked_epoch(name: str) -> int | None:
    """The epoch whose marker has this name; None for any other file."""
    found = _MARKER.fullmatch(name)
    return int(found[1]) if found else None
