"""`FileTarget` on a file system with hard links.

    <path>/<final name>                     the data, hard links to what was prepared; buckets are folders
    <path>/…/_<success name>                a hard link to the marker, if configured
    <path>/.lockstep/target.json            the target's id and owner, created exclusively
    <path>/.lockstep/epoch=<id>.json        the marker: lists the epoch's files; created exclusively and last
    <path>/.lockstep/span=<…>.json          the same, by interval: created exclusively before a file is published
    <path>/.lockstep/replaced=<id>.json     the marker of the epoch that replaced this one: its files get deleted
    <path>/.lockstep/<token>/               one pending transaction: _handle, the files, then _vote.json
    <path>/.lockstep/<handle>~<random>/     a folder being created, written again, or deleted
    …/.lockstep-<owner>~<random>            a temporary draft of target.json, or trial link, in any of these

A shared target has one such state folder per owner, in <path>/.lockstep/shared/<deployment>/<pipeline>/<sink>/.

The marker is a hard link to `_vote.json`, and every final name one to its pending file: a link is atomic and never
replaces a file. Pending files stay until the marker exists, so that any process can continue from any point.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from lockstep.crash import CrashPoint, reach
from lockstep.errors import PreflightRefused, TargetFull
from lockstep.sinks.durable_file import (
    Damaged,
    create_from_draft,
    link_new,
    sha256_of,
    sync_folder,
    sync_folders,
    write_new,
)
from lockstep.sinks.files._format import keep_synced
from lockstep.sinks.files._target import (
    STATE,
    EpochFiles,
    MarkedTarget,
    PublishedFile,
    Write,
    marked_epoch,
    other_bytes,
    owner_hash,
    published_names,
    read_marker,
)
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import Txn

MIN_FREE_BYTES = 64 << 20  # before an epoch begins
_HANDLE, _VOTE, _TARGET = "_handle", "_vote.json", "target.json"


class FolderTarget(MarkedTarget[Path]):
    """The folder at `path`; see `FileTarget`."""

    def __init__(self, path: str, owner: SinkName, shared: bool) -> None:
        super().__init__(path, owner, shared)
        self.root = Path(path)
        self.state = self.root.joinpath(*self._state_names)

    # --- ownership ---

    def claim(self) -> None:
        self._refuse_symlinks()
        if self.root.exists() and not self.root.is_dir():
            raise PreflightRefused(f"{self.root} is not a folder; give this sink another path")
        missing = [folder for folder in (self.state, *self.state.parents) if not folder.exists()]
        self.state.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            sync_folder(folder.parent)
        free = shutil.disk_usage(self.root).free
        if free < MIN_FREE_BYTES:
            raise TargetFull(
                f"{self.root} has {free >> 20} MB free, needed are {MIN_FREE_BYTES >> 20} MB: free space, try again"
            )
        if not self._target.exists():
            with suppress(FileNotFoundError):  # a concurrent claimer deleted the draft
                create_from_draft(self._temporary_path(self._target.parent), self._target, self._new_target())
        self.require()
        for folder in {self.root, self.root / STATE, self.state}:  # can hard links be created?
            link_new(self._target, self._temporary_path(folder))
            for trial in folder.glob(f"{STATE}-{owner_hash(self.owner)}~{'[0-9a-f]' * 8}"):  # of killed processes, too
                trial.unlink(missing_ok=True)

    def _read_target(self) -> bytes:
        self._refuse_symlinks()
        return self._target.read_bytes()

    def _has_target(self) -> bool:
        return self._target.exists()

    def _delete_target(self) -> None:
        self._target.unlink(missing_ok=True)
        sync_folder(self._target.parent)

    @property
    def _target(self) -> Path:
        return self.root / STATE / _TARGET

    def _refuse_symlinks(self) -> None:
        real = os.path.realpath(self.state)
        if real != str(self.state):
            raise PreflightRefused(f"{self.state} leads through a symlink to {real}: give the sink its real path")

    def _temporary_path(self, folder: Path) -> Path:
        """A temporary path named by the owner, which alone deletes it."""
        return folder / f"{STATE}-{owner_hash(self.owner)}~{secrets.token_hex(4)}"

    # --- pending transactions ---

    def begin(self, txn: Txn) -> None:
        self.discard(txn)
        draft = self.state / self.scratch(txn)
        sync_folder(draft)
        draft.rename(self.state / self.folder(txn))
        sync_folder(self.state)

    def scratch(self, txn: Txn) -> str:
        folder = f"{txn.handle}~{secrets.token_hex(4)}"
        (self.state / folder).mkdir()
        write_new(self.state / folder / _HANDLE, txn.handle.encode())
        return folder

    def folder(self, txn: Txn) -> str:
        return str(txn.token)

    def write(self, folder: str, write: Write) -> tuple[PublishedFile, ...]:
        return write(self.state / folder, keep_synced)

    def vote(self, folder: str, listing: EpochFiles) -> None:
        write_new(self.state / folder / _VOTE, listing.to_bytes())
        sync_folder(self.state / folder)
        sync_folder(self.state)

    def read_vote(self, txn: Txn) -> EpochFiles | None:
        folder = self.state / self.folder(txn)
        try:
            listing = EpochFiles.from_bytes((folder / _VOTE).read_bytes(), _VOTE)
            handle = (folder / _HANDLE).read_text()
        except (Damaged, FileNotFoundError, UnicodeDecodeError):
            return None
        return listing if handle == txn.handle else None

    def handles(self) -> list[str]:
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

    def discard(self, txn: Txn, *, just_published: bool = False) -> None:
        """Each folder is renamed at once, so that its writer loses it, then deleted."""
        with suppress(FileNotFoundError):
            for handle, folder in list(self._folders()):
                if handle == txn.handle:
                    self._delete_folder(folder, txn, just_published)

    def _delete_folder(self, folder: Path, txn: Txn, just_published: bool) -> None:
        trash = self.state / f"{txn.handle}~{secrets.token_hex(4)}"  # its writer loses the folder
        with suppress(FileNotFoundError):
            folder.rename(trash)
            sync_folder(self.state)  # before its files go: after a power cut the name tells the handle
            if not just_published and self.replaced_by(txn.epoch) is not None:
                self._delete_files_of(txn.epoch)  # while the folder still records that they may exist
            for file in trash.iterdir():
                file.unlink(missing_ok=True)
            trash.rmdir()
            sync_folder(self.state)

    # --- publication ---

    def _in_state(self, name: str) -> Path:
        return self.state / name

    def _read_marker(self, path: Path) -> EpochFiles | None:
        return read_marker(path.read_bytes, path)

    def epochs(self) -> Iterator[int]:
        with suppress(FileNotFoundError):
            for path in self.state.iterdir():
                if (epoch := marked_epoch(path.name)) is not None:
                    yield epoch

    def publish(self, name: str, listing: EpochFiles, success: Sequence[str] = ()) -> bool:
        folder = self.state / name
        for fact in listing.files:
            if not _holds(folder / fact.pending, fact):
                raise Damaged(f"{folder / fact.pending} isn't what was voted")
        if listing.span is not None:
            self._reserve_span(folder, listing, listing.span)
        buckets = {fact.bucket for fact in listing.files}
        for bucket in buckets:
            self._make_bucket(bucket)
        for fact in listing.files:
            reach(CrashPoint.PUBLISH_BEFORE_RENAME)
            self._publish_file(folder / fact.pending, fact)
            reach(CrashPoint.PUBLISH_AFTER_RENAME)
        self._sync(buckets)
        for name in success:
            link_new(folder / _VOTE, self.root / name)
        if success:
            self._sync(buckets)
        reach(CrashPoint.PUBLISH_BEFORE_FILE_MARKER)
        created = link_new(folder / _VOTE, self._marker_path(listing.epoch))
        sync_folder(self.state)
        reach(CrashPoint.PUBLISH_AFTER_FILE_MARKER)
        return created

    def _reserve_span(self, folder: Path, listing: EpochFiles, span: str) -> None:
        reach(CrashPoint.PUBLISH_BEFORE_RENAME)
        link_new(folder / _VOTE, self._span_path(span))
        sync_folder(self.state)
        reach(CrashPoint.PUBLISH_AFTER_RENAME)
        self._require_reserved(listing, span)

    def delete_replaced(self, txn: Txn, listing: EpochFiles) -> None:
        for epoch in listing.replaced:
            reach(CrashPoint.PUBLISH_BEFORE_TAKE_AWAY)
            link_new(self._marker_path(listing.epoch), self._replaced_path(epoch))
            sync_folder(self.state)  # before a file is deleted: a delayed publisher checks this after publishing
            reach(CrashPoint.PUBLISH_AFTER_TAKE_AWAY)
            self._delete_files_of(epoch)

    def _delete_files_of(self, epoch: int) -> None:
        existing = [name for name in self._published_files_of(epoch) if os.path.lexists(self.root / name)]
        for name in existing:
            reach(CrashPoint.PUBLISH_BEFORE_TAKE_AWAY)
            (self.root / name).unlink(missing_ok=True)
            reach(CrashPoint.PUBLISH_AFTER_TAKE_AWAY)
        if existing:
            self._sync({name.rpartition("/")[0] for name in existing})

    def refuse_blocked_buckets(self, buckets: Iterable[str]) -> None:
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
        """Make names in the buckets' folders durable, and those of the folders."""
        sync_folders({self.root}.union(*map(self._folders_of, buckets)))

    def _publish_file(self, source: Path, fact: PublishedFile) -> None:
        final = self.root / fact.name
        if not link_new(source, final) and not (os.path.samestat(source.lstat(), final.lstat()) or _holds(final, fact)):
            raise other_bytes(final)

    def open(self, name: str) -> BinaryIO:
        return os.fdopen(os.open(self.root / name, os.O_RDONLY | os.O_NOFOLLOW), "rb")

    def _names_with(self, prefix: str) -> Iterator[str]:
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name != STATE and not Path(folder, name, STATE).exists()]
            inner = Path(folder).relative_to(self.root)
            yield from (str(inner / name) for name in names if name.startswith(prefix))


def _holds(path: Path, fact: PublishedFile) -> bool:
    try:
        return path.lstat().st_size == fact.bytes and sha256_of(path) == fact.sha256
    except FileNotFoundError:
        return False


def _require_folder(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        raise PreflightRefused(f"{path} must be the folder of a bucket, but is a symlink or not a folder: move it away")


def published(path: str) -> list[str]:
    """Files of every marker in the folder at `path`, by epoch. Raises `OutcomeUnknown`."""
    root = Path(path)
    state = root / STATE
    markers = (*state.glob("epoch=*.json"), *state.glob("shared/*/*/*/epoch=*.json"))
    return [
        str(root / name)
        for name in published_names(filter(None, (read_marker(path.read_bytes, path) for path in markers)))
    ]
