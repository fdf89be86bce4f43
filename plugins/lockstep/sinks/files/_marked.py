"""What every place of published files has in common: an owner, and markers of what is shown there and by whom."""

from __future__ import annotations

import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict
from typing import Generic, TypeVar

from lockstep.epoch import Json
from lockstep.errors import LedgerConflict, OutcomeUnknown, TargetOwned
from lockstep.sinks.durable_file import to_checked
from lockstep.sinks.files._listing import Listing
from lockstep.sinks.files._target import STATE, hash_of, told
from lockstep.sinks.handles import SinkName

P = TypeVar("P")  # by which a place names what is in it: a path of this machine, of HDFS, or a key

_FORMAT = 1  #: of target.json
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
    def _read_marker(self, path: P) -> Listing | None:
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
        return to_checked({"format": _FORMAT, "target_id": str(uuid.uuid4()), "owner": self._owner})

    def _require_own(self, content: Json, place: str) -> str:
        """The id in a target.json. Raises `TargetOwned`."""
        if content["owner"] != self._owner:
            raise TargetOwned(
                f"{place} belongs to {told(content['owner'])}, not to {told(self._owner)}: give every sink a "
                f"{self.kind} of its own, say shared=True in all that share one, or give a renamed sink its name back"
            )
        return str(content["target_id"])

    # --- markers ---

    def shown(self, epoch: int) -> Listing | None:
        path = self._marker(epoch)
        listing = self._read_marker(path)
        if listing and (listing.owner, listing.epoch) != (self.owner, epoch):
            raise OutcomeUnknown(f"{self._told(path)} is of epoch {listing.epoch} of {listing.owner}: restore it")
        return listing

    def shown_span(self, span: str) -> Listing | None:
        path = self._of_span(span)
        listing = self._read_marker(path)
        if listing and (listing.owner, listing.span) != (self.owner, span):
            raise OutcomeUnknown(f"{self._told(path)} is of {listing.span} of {listing.owner}: restore it")
        return listing

    def _require_range(self, listing: Listing, span: str) -> None:
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
