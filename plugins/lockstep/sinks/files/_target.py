"""Where epochs are published as files: who owns the place, what is pending there, what is shown."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias

from lockstep.epoch import Json
from lockstep.sinks.files._listing import FileFact, Listing
from lockstep.sinks.files._writer import Keep
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import Txn

STATE = ".lockstep"  #: the folder of everything that isn't data

#: Writes files into a folder of this machine, gives each to `Keep` once it has all its rows, and returns their facts.
Write: TypeAlias = Callable[[Path, Keep], tuple[FileFact, ...]]


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

    def write(self, folder: str, write: Write) -> tuple[FileFact, ...]:
        """Have files written that are durable in `folder` afterwards."""

    def vote(self, folder: str, listing: Listing) -> None:
        """Make a folder's files durable under the names that `listing` gives, and say so."""

    def voted(self, txn: Txn) -> Listing | None:
        """What the folder of `txn` promises; None if it is gone, unfinished, damaged or another's."""

    def handles(self) -> list[str]:
        """Every handle that a folder carries, foreign ones too."""

    def discard(self, txn: Txn, *, just_shown: bool = False) -> None:
        """Take away every folder of `txn`; fine when there is none. Of an epoch that was replaced the files go, too,
        that somebody may have shown once more from there; `just_shown`: it wasn't, this process has created its marker.
        """

    # --- publication ---

    def shown(self, epoch: int) -> Listing | None:
        """The epoch's marker. Raises `OutcomeUnknown` if it is damaged or another's."""

    def shown_span(self, span: str) -> Listing | None:
        """What has taken a range, shown whole or not yet. Raises as `shown`."""

    def epochs(self) -> Iterator[int]:
        """The number of every epoch that has a marker, by the markers' names."""

    def show(self, folder: str, listing: Listing, success: Sequence[str] = ()) -> bool:
        """Take the range, show what `folder` holds, then the names `success`, then the marker; False if that was there
        already.

        Raises `LedgerConflict` if another number or manifest has the range, `Damaged` before anything is shown if a
        file isn't what `listing` says, FileNotFoundError if `folder` is taken away meanwhile, `OutcomeUnknown` if a
        final name is taken by other bytes, or somebody else shows other files, `PreflightRefused` if a bucket's folder
        can't be made.
        """

    def replaced_by(self, epoch: int) -> int | None:
        """The epoch that has taken the place of another one here, whose files may be gone by now."""

    def take_away_replaced(self, txn: Txn, listing: Listing) -> None:
        """Take away the files of the epochs that `listing`, whose marker stands, has replaced. Their markers stay.
        What this needs for a moment is `txn`'s, and swept with it."""

    def refuse_blocked(self, buckets: Iterable[str]) -> None:
        """Raise `PreflightRefused` if something that is no folder stands where a bucket would be."""

    def refuse_strays(self, prefix: str, listing: Listing) -> None:
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
