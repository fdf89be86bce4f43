"""Folders that epochs are published into: the interface of the three storages, markers, and what these have in
common."""

from __future__ import annotations

import hashlib
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Generic, Protocol, TypeAlias, TypeVar

from lockstep.epoch import Json
from lockstep.errors import LedgerConflict, OutcomeUnknown, TargetChanged, TargetOwned
from lockstep.sinks.durable_file import Damaged, HashedFile, from_checked, to_checked
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import Marker, Txn

_LISTING_FORMAT = 3


@dataclass(frozen=True)
class PublishedFile:
    """A file of an epoch: final name (below the target, `/` between folders), rows, size in bytes and sha256."""

    name: str
    rows: int
    bytes: int
    sha256: str

    @property
    def bucket(self) -> str:
        """Folder below the target; empty for the target itself."""
        return self.name.rpartition("/")[0]

    @property
    def pending(self) -> str:
        """Name while it is pending, unique within the epoch."""
        return self.name.rpartition("/")[2]


@dataclass(frozen=True)
class EpochFiles:
    """The files of one epoch of one sink, with the token that voted for them: content of a vote and of a marker."""

    deployment: str
    pipeline: str
    sink: str
    epoch: int
    token: int
    manifest_hash: str
    files: tuple[PublishedFile, ...]
    span: str | None = None  #: the epoch's interval, to find it whatever its number
    #: epochs that it replaces, and those that these had replaced: one marker has all
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
    def from_bytes(cls, data: bytes, name: str) -> EpochFiles:
        """Decode a marker or vote; `name` is for messages. Raises `Damaged`."""
        content = from_checked(data)
        if (written := content.pop("format", None)) != _LISTING_FORMAT:
            raise Damaged(f"{name} is of format {written}, this Lockstep reads {_LISTING_FORMAT}: upgrade it")
        files = tuple(PublishedFile(**fact) for fact in content.pop("files"))
        replaced = tuple(content.pop("replaced"))
        return cls(**content, files=files, replaced=replaced)


def not_replaced(listings: Iterable[EpochFiles]) -> list[EpochFiles]:
    """Listings that no other one has replaced, by epoch."""
    ordered = sorted(listings, key=lambda listing: (listing.epoch, listing.pipeline, listing.sink))
    replaced = {(listing.owner, epoch) for listing in ordered for epoch in listing.replaced}
    return [listing for listing in ordered if (listing.owner, listing.epoch) not in replaced]


def published_names(listings: Iterable[EpochFiles]) -> list[str]:
    """Final names of the visible files, by epoch."""
    return [fact.name for listing in not_replaced(listings) for fact in listing.files]


def read_marker(read: Callable[[], bytes], path: object) -> EpochFiles | None:
    """The marker that `read` returns; None if there is none. Raises `OutcomeUnknown` if it is damaged."""
    try:
        return EpochFiles.from_bytes(read(), str(path))
    except FileNotFoundError:
        return None
    except Damaged as error:
        raise OutcomeUnknown(f"the marker {path} is damaged ({error}): restore it from a copy") from error


#: (final name, rows, file with all of them) → what the file is once it is durable. Raises OSError, `SinkRejected`.
Keep: TypeAlias = Callable[[str, int, HashedFile], PublishedFile]

STATE = ".lockstep"  #: folder of markers, votes and pending files

#: Writes files into a local folder, calls `Keep` for each complete one, and returns what it returned
Write: TypeAlias = Callable[[Path, Keep], tuple[PublishedFile, ...]]


class FileTarget(Protocol):
    """A folder or prefix as one sink sees it, called `place` in messages. Every call may raise OSError.

    Pending files are in a folder per transaction, which calls take by its name below the target's state folder.
    """

    place: str
    owner: SinkName

    @property
    def suffix(self) -> str:
        """Part of final names that distinguishes the owners of a shared target."""

    # --- ownership ---

    def claim(self) -> None:
        """Create the target and make this sink its owner. Raises `PreflightRefused`, `TargetOwned`, `TargetFull`,
        `StoreRefused`."""

    def require(self) -> str:
        """The target's id. Raises `TargetChanged`, `TargetOwned`, `PreflightRefused` unless this sink owns it."""

    def disclaim(self) -> None:
        """Give up the ownership. A shared target has no owner."""

    # --- pending transactions ---

    def begin(self, txn: Txn) -> None:
        """Create the folder of `txn`, without what an earlier try of the same token left."""

    def folder(self, txn: Txn) -> str:
        """Name of the transaction's folder."""

    def scratch(self, txn: Txn) -> str:
        """A new folder, which is never mistaken for a pending transaction with a vote."""

    def write(self, folder: str, write: Write) -> tuple[PublishedFile, ...]:
        """Have files written that are durable in `folder` afterwards."""

    def vote(self, folder: str, listing: EpochFiles) -> None:
        """Make the files in a folder durable under the names in `listing`, then write the vote."""

    def read_vote(self, txn: Txn) -> EpochFiles | None:
        """The vote of `txn`; None if its folder is missing, unfinished, damaged or another transaction's."""

    def handles(self) -> list[str]:
        """Handles of all pending folders, also of other sinks."""

    def discard(self, txn: Txn, *, just_published: bool = False) -> None:
        """Delete all folders of `txn`, if any. If its epoch was replaced, delete also its published files, which a
        delayed publisher may have published again from there, unless `just_published`: this process has created the
        epoch's marker."""

    # --- publication ---

    def find_marker(self, epoch: int) -> EpochFiles | None:
        """The epoch's marker. Raises `OutcomeUnknown` if it is damaged or another sink's."""

    def find_marker_of_span(self, span: str) -> EpochFiles | None:
        """The listing that has reserved an interval, published or not. Raises as `find_marker`."""

    def epochs(self) -> Iterator[int]:
        """Numbers of all epochs with a marker, by the markers' names."""

    def publish(self, folder: str, listing: EpochFiles, success: Sequence[str] = ()) -> bool:
        """Reserve the range, publish the files in `folder`, then create the names `success`, then the marker. Returns
        False if the marker existed.

        Raises `LedgerConflict` if another number or manifest has the range, `Damaged` before the first file if one
        differs from `listing`, FileNotFoundError if `folder` is deleted meanwhile, `OutcomeUnknown` if a final name has
        other bytes, or another publisher shows other files, `PreflightRefused` if a bucket's folder can't be created.
        """

    def replaced_by(self, epoch: int) -> int | None:
        """The epoch that has replaced this one; the files of this one may be deleted."""

    def delete_replaced(self, txn: Txn, listing: EpochFiles) -> None:
        """Delete the files of epochs that `listing` has replaced, once its marker exists; their markers stay. Temporary
        files belong to `txn`, and are swept with it."""

    def refuse_blocked_buckets(self, buckets: Iterable[str]) -> None:
        """Raise `PreflightRefused` if a bucket's path is not a folder."""

    def refuse_unlisted(self, prefix: str, listing: EpochFiles) -> None:
        """Raise `OutcomeUnknown` if this epoch has published files that `listing` doesn't have."""

    def open(self, name: str) -> BinaryIO:
        """Open a published file."""


def owner_hash(owner: SinkName) -> str:
    """12 hex digits that identify an owner."""
    return hashlib.sha256(f"{owner.deployment}:{owner.pipeline}:{owner.sink}".encode()).hexdigest()[:12]


def other_bytes(path: object) -> OutcomeUnknown:
    """Error for a final name with other content."""
    return OutcomeUnknown(
        f"{path} has other bytes than this publication would put there: an earlier one was interrupted and pyarrow has "
        "changed since, or other software wrote it. No marker lists it: once no process publishes this epoch, move it "
        "away and publish again"
    )


def owner_text(owner: Json) -> str:
    """An owner in target.json, in words."""
    if owner is None:
        return "the sinks that share it"
    return f"sink {owner['sink']} of pipeline {owner['pipeline']} (deployment {owner['deployment']})"


P = TypeVar("P")  # by which a place names what is in it: a path of this machine, of HDFS, or a key

_TARGET_FORMAT = 1  #: of target.json
_MARKER = re.compile(r"epoch=([0-9]+)\.json")


class MarkedTarget(ABC, Generic[P]):
    """The part of a `FileTarget` that all storages share."""

    kind = "folder"  #: what a place is called

    def __init__(self, place: str, owner: SinkName, shared: bool) -> None:
        self.place, self.owner, self.shared = place, owner, shared

    @abstractmethod
    def _in_state(self, name: str) -> P:
        """Path of a name in the owner's state folder."""

    @abstractmethod
    def _read_marker(self, path: P) -> EpochFiles | None:
        """Read a marker; None if there is none. Raises `OutcomeUnknown` if it is damaged."""

    @abstractmethod
    def _read_target(self) -> bytes:
        """Read target.json. Raises FileNotFoundError."""

    @abstractmethod
    def _has_target(self) -> bool:
        """True if target.json exists."""

    @abstractmethod
    def _delete_target(self) -> None:
        """Delete target.json durably."""

    @abstractmethod
    def _names_with(self, prefix: str) -> Iterable[str]:
        """Final names, in any bucket, that begin with `prefix`, without those of nested targets: folders with a state
        folder."""

    def _in_words(self, path: P) -> str:
        """A path in messages."""
        return str(path)

    # --- ownership ---

    @property
    def suffix(self) -> str:
        return f"-{owner_hash(self.owner)}" if self.shared else ""

    @property
    def _state_names(self) -> tuple[str, ...]:
        """Path of the owner's state folder, relative to the target."""
        shared = ("shared", self.owner.deployment, self.owner.pipeline, self.owner.sink)
        return (STATE, *(shared if self.shared else ()))

    @property
    def _owner(self) -> Json:
        return None if self.shared else asdict(self.owner)

    def _new_target(self) -> bytes:
        """Content of a new target.json."""
        return to_checked({"format": _TARGET_FORMAT, "target_id": str(uuid.uuid4()), "owner": self._owner})

    def require(self) -> str:
        try:
            content = from_checked(self._read_target())
        except (FileNotFoundError, Damaged) as error:
            raise TargetChanged(
                f"{self.place}/{STATE}/target.json is missing or damaged ({error}), so it is unknown whether this "
                f"{self.kind} was written before: mount or restore it, or correct the sink's path"
            ) from error
        if content["owner"] != self._owner:
            raise TargetOwned(
                f"{self.place} belongs to {owner_text(content['owner'])}, not to {owner_text(self._owner)}: give every "
                f"sink a separate {self.kind}, set shared=True in all that share one, or give a renamed sink its old "
                "name"
            )
        return str(content["target_id"])

    def disclaim(self) -> None:
        if not self.shared and self._has_target():
            with suppress(TargetOwned):
                self.require()
                self._delete_target()

    # --- markers ---

    def find_marker(self, epoch: int) -> EpochFiles | None:
        path = self._marker_path(epoch)
        listing = self._read_marker(path)
        if listing and (listing.owner, listing.epoch) != (self.owner, epoch):
            raise OutcomeUnknown(f"{self._in_words(path)} is of epoch {listing.epoch} of {listing.owner}: restore it")
        return listing

    def find_marker_of_span(self, span: str) -> EpochFiles | None:
        path = self._span_path(span)
        listing = self._read_marker(path)
        if listing and (listing.owner, listing.span) != (self.owner, span):
            raise OutcomeUnknown(f"{self._in_words(path)} is of {listing.span} of {listing.owner}: restore it")
        return listing

    def _require_reserved(self, listing: EpochFiles, span: str) -> None:
        """Check that the range is reserved for this epoch, by this publication or an interrupted one. Raises
        `LedgerConflict`."""
        reserved = self.find_marker_of_span(span)
        if reserved is not None and (reserved.epoch, reserved.manifest_hash) != (listing.epoch, listing.manifest_hash):
            raise LedgerConflict(
                f"{self._in_words(self._span_path(span))} says that the range of epoch {listing.epoch} was shown as "
                f"epoch {reserved.epoch} of the manifest {reserved.manifest_hash[:12]}, but this ledger has no record "
                "of it: nothing was published; see docs/ledger.md"
            )

    def _published_files_of(self, epoch: int) -> list[str]:
        """Final names of a replaced epoch's files, by its marker, or by its number if the marker was deleted."""
        listing = self.find_marker(epoch)
        if listing is None:
            return list(self._names_with(f"{self.owner.sink}{self.suffix}-epoch={epoch}-"))
        return [fact.name for fact in listing.files]

    def refuse_unlisted(self, prefix: str, listing: EpochFiles) -> None:
        unlisted = set(self._names_with(prefix)) - {fact.name for fact in listing.files}
        if unlisted and self.find_marker(listing.epoch) is None:
            raise OutcomeUnknown(
                f"{self.place}/{min(unlisted)} is left by an interrupted publication, and writing the epoch again "
                "gives other files: once no process publishes this epoch, move it away and publish again"
            )

    def replaced_by(self, epoch: int) -> int | None:
        marker = self._read_marker(self._replaced_path(epoch))
        return marker.epoch if marker else None

    def _marker_path(self, epoch: int) -> P:
        return self._in_state(f"epoch={epoch}.json")

    def _replaced_path(self, epoch: int) -> P:
        return self._in_state(f"replaced={epoch}.json")

    def _span_path(self, span: str) -> P:
        return self._in_state(f"span={span.replace(':', '').replace('/', '_')}.json")


def marked_epoch(name: str) -> int | None:
    """The epoch whose marker has this name; None for any other file."""
    match = _MARKER.fullmatch(name)
    return int(match[1]) if match else None
