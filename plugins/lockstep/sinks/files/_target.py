"""A folder that epochs are published into: who owns it, what is pending, what is shown.

    <path>/<final name>                     the data, hard links to what was prepared; buckets are folders
    <path>/…/_<success name>                a hard link to the marker, where the sink asks for one
    <path>/.lockstep/target.json            the target's id and owner, created exclusively
    <path>/.lockstep/epoch=<id>.json        the marker: lists the epoch's files; created exclusively and last
    <path>/.lockstep/span=<…>.json          the same, by the epoch's interval: taken exclusively before a file is shown
    <path>/.lockstep/<token>/               one pending transaction: _handle, the files, then _vote.json
    <path>/.lockstep/<handle>~<random>/     a folder being made, written again, or taken away
    …/.lockstep-<owner>~<random>            a draft of target.json or a trial link, for a moment: in any of these

A shared target has one such state folder for each owner, in <path>/.lockstep/shared/<deployment>/<pipeline>/<sink>/.

The marker is a hard link to `_vote.json`, and every final name one to its pending file: a link shows a whole file at
once, and never replaces one. Pending files stay until the marker stands, so that any process can go on from any point.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Json
from lockstep.errors import LedgerConflict, OutcomeUnknown, PreflightRefused, TargetChanged, TargetFull, TargetOwned
from lockstep.sinks.durable_file import (
    Damaged,
    create_by,
    from_checked,
    link_new,
    sha256_of,
    sync_folder,
    sync_folders,
    to_checked,
    write_new,
)
from lockstep.sinks.files._listing import FileFact, Listing, read_marker
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import Txn

STATE = ".lockstep"
ROOM = 64 << 20  # bytes that must be free before an epoch begins
_FORMAT = 1  #: of target.json
_MARKER = re.compile(r"epoch=([0-9]+)\.json")
_HANDLE, _VOTE, _TARGET = "_handle", "_vote.json", "target.json"


class FileTarget:
    """The folder at `path`, as one sink sees it. Every method may raise OSError."""

    def __init__(self, path: str, owner: SinkName, shared: bool) -> None:
        self.root = Path(path)
        self.owner = owner
        self.shared = shared
        own = ("shared", owner.deployment, owner.pipeline, owner.sink) if shared else ()
        self.state = self.root.joinpath(STATE, *own)

    # --- ownership ---

    def claim(self) -> None:
        """Make the folder and take it. Raises `PreflightRefused`, `TargetOwned`, `TargetFull`."""
        self._refuse_symlinks()
        if self.root.exists() and not self.root.is_dir():
            raise PreflightRefused(f"{self.root} is not a folder; give this sink another path")
        self._make_folders()
        self._refuse_full()
        if not self._target.exists():
            content = {"format": _FORMAT, "target_id": str(uuid.uuid4()), "owner": self._owner}
            with suppress(FileNotFoundError):  # another claimer, who was first, took the draft away
                create_by(self._passing(self._target.parent), self._target, to_checked(content))
        self.require()
        self._try_links()

    def require(self) -> str:
        """The target's id, if it is this sink's. Raises `TargetChanged`, `TargetOwned`, `PreflightRefused`."""
        self._refuse_symlinks()
        try:
            content = from_checked(self._target.read_bytes())
        except (FileNotFoundError, Damaged) as error:
            raise TargetChanged(
                f"{self._target} is missing or damaged ({error}), so nobody can tell whether this folder was "
                "written before: mount or restore it"
            ) from error
        if content["owner"] != self._owner:
            raise TargetOwned(
                f"{self.root} belongs to {_told(content['owner'])}, not to {_told(self._owner)}: give every sink a "
                "folder of its own, or say shared=True in all that share one"
            )
        return str(content["target_id"])

    def disclaim(self) -> None:
        """Leave the folder to the next who claims it; one that is shared belongs to nobody anyway."""
        if self.shared or not self._target.exists():
            return
        with suppress(TargetOwned):
            self.require()
            self._target.unlink(missing_ok=True)
            sync_folder(self._target.parent)

    def _make_folders(self) -> None:
        missing = [folder for folder in (self.state, *self.state.parents) if not folder.exists()]
        self.state.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            sync_folder(folder.parent)

    @property
    def suffix(self) -> str:
        """What tells the final names of one owner from another's in a shared folder."""
        if not self.shared:
            return ""
        return "-" + self._owner_hash

    @property
    def _owner_hash(self) -> str:
        owner = f"{self.owner.deployment}:{self.owner.pipeline}:{self.owner.sink}"
        return hashlib.sha256(owner.encode()).hexdigest()[:12]

    @property
    def _target(self) -> Path:
        return self.root / STATE / _TARGET

    @property
    def _owner(self) -> Json:
        return None if self.shared else asdict(self.owner)

    def _refuse_symlinks(self) -> None:
        real = os.path.realpath(self.state)
        if real != str(self.state):
            raise PreflightRefused(f"{self.state} leads through a symlink to {real}: give the sink its real path")

    def _refuse_full(self) -> None:
        free = shutil.disk_usage(self.root).free
        if free < ROOM:
            raise TargetFull(f"{self.root} has {free >> 20} MB free, needed are {ROOM >> 20} MB: make room, try again")

    def _try_links(self) -> None:
        """Show that hard links can be made in both folders, and take away what a killed try left."""
        for folder in {self.root, self.root / STATE, self.state}:
            link_new(self._target, self._passing(folder))
            for passing in folder.glob(f"{STATE}-{self._owner_hash}~{'[0-9a-f]' * 8}"):
                passing.unlink(missing_ok=True)

    def _passing(self, folder: Path) -> Path:
        """A name for a moment that tells whose it is, so that its owner, and nobody else, takes it away."""
        return folder / f"{STATE}-{self._owner_hash}~{secrets.token_hex(4)}"

    # --- pending transactions ---

    def begin(self, txn: Txn) -> Path:
        """Make the pending folder of `txn`; what the same token left before is taken away."""
        self.discard(txn)
        made, folder = self.scratch(txn), self.folder(txn)
        sync_folder(made)
        made.rename(folder)
        sync_folder(self.state)
        return folder

    def scratch(self, txn: Txn) -> Path:
        """A folder of its own for whoever asks; nobody takes it for a pending transaction that has voted."""
        folder = self.state / f"{txn.handle}~{secrets.token_hex(4)}"
        folder.mkdir()
        write_new(folder / _HANDLE, txn.handle.encode())
        return folder

    def folder(self, txn: Txn) -> Path:
        return self.state / str(txn.token)

    def vote(self, folder: Path, listing: Listing) -> None:
        """Make a folder's files durable under the names that `listing` gives, and say so."""
        write_new(folder / _VOTE, listing.to_bytes())
        sync_folder(folder)
        sync_folder(self.state)

    def voted(self, txn: Txn) -> Listing | None:
        """What the pending folder of `txn` promises; None if it is gone, unfinished, damaged or another's."""
        folder = self.folder(txn)
        try:
            listing = Listing.read(folder / _VOTE)
            handle = (folder / _HANDLE).read_text()
        except (Damaged, FileNotFoundError, UnicodeDecodeError):
            return None
        return listing if handle == txn.handle else None

    def handles(self) -> list[str]:
        """Every handle that a folder carries, in it or in its name, foreign ones too."""
        with suppress(FileNotFoundError):
            return sorted({handle for handle, _ in self._folders()})
        return []

    def _folders(self) -> Iterator[tuple[str, Path]]:
        for path in self.state.iterdir():
            if path.is_symlink() or not path.is_dir():
                continue
            if "~" in path.name:
                yield path.name.rpartition("~")[0], path
            elif path.name.isdecimal():
                with suppress(FileNotFoundError, UnicodeDecodeError):
                    yield (path / _HANDLE).read_text(), path

    def discard(self, txn: Txn) -> None:
        """Take away every folder of `txn`, at once and then for good; fine when there is none."""
        with suppress(FileNotFoundError):
            for handle, folder in list(self._folders()):
                if handle == txn.handle:
                    self._take_away(folder, handle)

    def _take_away(self, folder: Path, handle: str) -> None:
        gone = self.state / f"{handle}~{secrets.token_hex(4)}"  # whoever still writes into it finds no folder
        with suppress(FileNotFoundError):
            folder.rename(gone)
            sync_folder(self.state)  # or a power cut could leave the folder nameless: without the handle it holds
            for file in gone.iterdir():
                file.unlink(missing_ok=True)
            gone.rmdir()
            sync_folder(self.state)

    # --- publication ---

    def shown(self, epoch: int) -> Listing | None:
        """The epoch's marker. Raises `OutcomeUnknown` if it is damaged or another's."""
        listing = read_marker(self._marker(epoch))
        if listing and (listing.owner, listing.epoch) != (self.owner, epoch):
            raise OutcomeUnknown(f"{self._marker(epoch)} is of epoch {listing.epoch} of {listing.owner}: restore it")
        return listing

    def shown_span(self, span: str) -> Listing | None:
        """What has taken a range, shown whole or not yet. Raises as `shown`."""
        listing = read_marker(self._of_span(span))
        if listing and (listing.owner, listing.span) != (self.owner, span):
            raise OutcomeUnknown(f"{self._of_span(span)} is of {listing.span} of {listing.owner}: restore it")
        return listing

    def epochs(self) -> Iterator[int]:
        """The number of every epoch that has a marker, by the markers' names."""
        with suppress(FileNotFoundError):
            for path in self.state.iterdir():
                if match := _MARKER.fullmatch(path.name):
                    yield int(match[1])

    def show(self, folder: Path, listing: Listing, success: Sequence[str] = ()) -> bool:
        """Take the range, show what `folder` holds, then the names `success`, then the marker; False if that was there
        already.

        Raises `LedgerConflict` if another number has the range, `Damaged` before anything is shown if a file isn't what
        `listing` says, FileNotFoundError if `folder` is taken away meanwhile, `OutcomeUnknown` if a final name is taken
        by other bytes, `PreflightRefused` if a bucket's folder can't be made.
        """
        for fact in listing.files:
            if not _holds(folder / fact.pending, fact):
                raise Damaged(f"{folder / fact.pending} isn't what was voted")
        if listing.span is not None:
            self._take_span(folder, listing, listing.span)
        buckets = {fact.bucket for fact in listing.files}
        for bucket in buckets:
            self._make_bucket(bucket)
        for fact in listing.files:
            reach(CrashPoint.PUBLISH_BEFORE_RENAME)
            self._show_file(folder / fact.pending, fact)
            reach(CrashPoint.PUBLISH_AFTER_RENAME)
        self._sync(buckets)
        for name in success:
            link_new(folder / _VOTE, self.root / name)
        if success:
            self._sync(buckets)
        reach(CrashPoint.PUBLISH_BEFORE_FILE_MARKER)
        created = link_new(folder / _VOTE, self._marker(listing.epoch))
        sync_folder(self.state)
        reach(CrashPoint.PUBLISH_AFTER_FILE_MARKER)
        return created

    def _take_span(self, folder: Path, listing: Listing, span: str) -> None:
        """A publication of the same epoch that was cut off may have taken it; it is this one's too."""
        reach(CrashPoint.PUBLISH_BEFORE_RENAME)
        link_new(folder / _VOTE, self._of_span(span))
        sync_folder(self.state)
        reach(CrashPoint.PUBLISH_AFTER_RENAME)
        taken = self.shown_span(span)
        if taken is not None and taken.epoch != listing.epoch:
            raise LedgerConflict(
                f"{self._of_span(span)} says that the range of epoch {listing.epoch} was shown as epoch {taken.epoch}, "
                "by a ledger that this one has no memory of: nothing was shown; see docs/ledger.md"
            )

    def refuse_blocked(self, buckets: Iterable[str]) -> None:
        """Raise `PreflightRefused` if something that is no folder stands where a bucket would be."""
        for bucket in buckets:
            for path in self._folders_of(bucket):
                if os.path.lexists(path):
                    _require_folder(path)

    def _make_bucket(self, bucket: str) -> None:
        for path in self._folders_of(bucket):
            with suppress(FileExistsError):
                path.mkdir()
            _require_folder(path)

    def _folders_of(self, bucket: str) -> Iterator[Path]:
        path = self.root
        for folder in filter(None, bucket.split("/")):
            path /= folder
            yield path

    def _sync(self, buckets: Iterable[str]) -> None:
        """Make the names in the folders of `buckets` durable, their own included."""
        sync_folders({self.root}.union(*map(self._folders_of, buckets)))

    def _show_file(self, source: Path, fact: FileFact) -> None:
        final = self.root / fact.name
        if not link_new(source, final) and not (os.path.samestat(source.lstat(), final.lstat()) or _holds(final, fact)):
            raise OutcomeUnknown(
                f"{final} holds other bytes than this publication would show there: an earlier one was cut off and "
                "pyarrow has changed since, or somebody else wrote it. No marker lists it: once no process publishes "
                "this epoch, move it away and publish again"
            )

    def refuse_strays(self, prefix: str, listing: Listing) -> None:
        """Raise `OutcomeUnknown` if final names of this epoch stand here, in any bucket, that `listing` won't show.

        A folder below with a state folder of its own is another target, whose names may look the same.
        """
        strays = set(self._named(prefix)) - {fact.name for fact in listing.files}
        if strays and self.shown(listing.epoch) is None:
            raise OutcomeUnknown(
                f"{self.root / min(strays)} was shown by a publication that was cut off, and writing the epoch again "
                "gives other files: once no process publishes this epoch, move it away and publish again"
            )

    def _named(self, prefix: str) -> Iterator[str]:
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name != STATE and not Path(folder, name, STATE).exists()]
            inner = Path(folder).relative_to(self.root)
            yield from (str(inner / name) for name in names if name.startswith(prefix))

    def _marker(self, epoch: int) -> Path:
        return self.state / f"epoch={epoch}.json"

    def _of_span(self, span: str) -> Path:
        return self.state / f"span={span.replace(':', '').replace('/', '_')}.json"


def _holds(path: Path, fact: FileFact) -> bool:
    try:
        return path.lstat().st_size == fact.bytes and sha256_of(path) == fact.sha256
    except FileNotFoundError:
        return False


def _require_folder(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        raise PreflightRefused(f"{path} is to be the folder of a bucket, and is a symlink or no folder: move it away")


def _told(owner: Json) -> str:
    if owner is None:
        return "sinks that share it"
    return f"sink {owner['sink']} of pipeline {owner['pipeline']} (deployment {owner['deployment']})"
