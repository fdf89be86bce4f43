"""`FileTarget` on HDFS, by renames that never replace a file.

    <path>/<final name>                     the data, renamed from what was prepared; buckets are folders
    <path>/…/_<success name>                an empty file, if configured
    <path>/.lockstep/target.json            the target's id and owner, created exclusively
    <path>/.lockstep/epoch=<id>.json        the marker: lists the epoch's files; created exclusively and last
    <path>/.lockstep/span=<…>.json          the same, by interval: created exclusively before a file is published
    <path>/.lockstep/replaced=<id>.json     the marker of the epoch that replaced this one: its files get deleted
    <path>/.lockstep/pending/<handle>/      one pending transaction: the files, then _vote.json
    <path>/.lockstep/pending/<handle>~<random>/     the same, written again
    <path>/.lockstep/pending/_target~<random>       a temporary draft of target.json

A shared target has one such state folder per owner, in <path>/.lockstep/shared/<deployment>/<pipeline>/<sink>/.

A rename is atomic, keeps size and time, and removes the pending name: a publisher looks for a file under its pending
name, then under its final one. The vote records each pending file's time, to recognize the file without reading it.
A process that was swept finds no folder to write into or to rename from.
"""

from __future__ import annotations

import hashlib
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from lockstep.connections.hdfs.address import HdfsAddress
from lockstep.connections.hdfs.file_system import HdfsEntry, HdfsFileSystem
from lockstep.crash import CrashPoint, reach
from lockstep.errors import PreflightRefused, SinkRejected
from lockstep.sinks.durable_file import Damaged, HashedFile, from_checked, to_checked
from lockstep.sinks.files._target import (
    STATE,
    EpochFiles,
    MarkedTarget,
    PublishedFile,
    Write,
    marked_epoch,
    other_bytes,
    published_names,
    read_marker,
)
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import Txn

_VOTE, _PENDING = "_vote.json", "pending"
_CHUNK = 4 << 20  # bytes


class HdfsTarget(MarkedTarget[str]):
    """The folder at `address`; see `FileTarget`."""

    def __init__(self, address: HdfsAddress, owner: SinkName, shared: bool) -> None:
        super().__init__(address.uri, owner, shared)
        self._files = HdfsFileSystem.at(address)
        self._root = address.path.rstrip("/")
        self._state = "/".join((self._root, *self._state_names))
        self._target = f"{self._root}/{STATE}/target.json"

    # --- ownership ---

    def claim(self) -> None:
        entry = self._files.find(self._root or "/")
        if entry is not None and not entry.is_folder:
            raise PreflightRefused(f"{self.place} is not a folder; give this sink another path")
        self._files.make_folder(f"{self._state}/{_PENDING}")
        if self._files.find(self._target) is None:
            try:
                self._files.create(self._target, self._new_target(), self._path_in(f"_target~{secrets.token_hex(8)}"))
            except OSError:  # a concurrent claimer may have deleted the draft
                if self._files.find(self._target) is None:
                    raise
        self.require()
        for entry in list(self._files.children(self._path_in(""))):
            if not entry.is_folder:
                self._files.delete(entry.path)

    def _read_target(self) -> bytes:
        return self._files.read(self._target)

    def _has_target(self) -> bool:
        return self._files.find(self._target) is not None

    def _delete_target(self) -> None:
        self._files.delete(self._target)

    # --- pending transactions ---

    def begin(self, txn: Txn) -> None:
        self.discard(txn)
        self._files.make_folder(self._path_in(self.folder(txn)))

    def folder(self, txn: Txn) -> str:
        return _folder_of(txn.handle)

    def scratch(self, txn: Txn) -> str:
        folder = f"{_folder_of(txn.handle)}~{secrets.token_hex(4)}"
        self._files.make_folder(self._path_in(folder))
        return folder

    def write(self, folder: str, write: Write) -> tuple[PublishedFile, ...]:
        """Each file is on the local disk until it is uploaded."""

        def keep(name: str, rows: int, file: HashedFile) -> PublishedFile:
            fact = PublishedFile(name, rows, file.size, file.finish(sync=False))
            with file.path.open("rb") as source, self._files.writing(self._path_in(folder, fact.pending)) as target:
                shutil.copyfileobj(source, target, _CHUNK)
            file.path.unlink()
            return fact

        with tempfile.TemporaryDirectory(prefix="lockstep-") as here:
            return write(Path(here), keep)

    def vote(self, folder: str, listing: EpochFiles) -> None:
        times = {entry.name: entry.mtime_ns for entry in self._files.children(self._path_in(folder))}
        content = {"listing": listing.to_bytes().decode(), "times": times}
        self._files.write(self._path_in(folder, _VOTE), to_checked(content))

    def read_vote(self, txn: Txn) -> EpochFiles | None:
        try:
            return self._vote(self.folder(txn))[0]
        except (Damaged, FileNotFoundError):
            return None

    def _vote(self, folder: str) -> tuple[EpochFiles, Mapping[str, int]]:
        content = from_checked(self._files.read(self._path_in(folder, _VOTE)))
        return EpochFiles.from_bytes(content["listing"].encode(), _VOTE), content["times"]

    def handles(self) -> list[str]:
        return sorted({handle for handle, _ in self._pending()})

    def discard(self, txn: Txn, *, just_published: bool = False) -> None:
        """Deletes each folder at once, with its vote."""
        for handle, path in list(self._pending()):
            if handle == txn.handle:
                self._delete_folder(path, txn, just_published)

    def _delete_folder(self, folder: str, txn: Txn, just_published: bool) -> None:
        if not just_published and self.replaced_by(txn.epoch) is not None:
            trash = self._path_in(f"{_folder_of(txn.handle)}~{secrets.token_hex(4)}")
            with suppress(FileNotFoundError):
                self._files.rename(folder, trash)  # no file is published from there any more
            self._delete_files_of(txn.epoch)
            folder = trash
        self._files.delete(folder)

    def _pending(self) -> Iterator[tuple[str, str]]:
        with suppress(FileNotFoundError):
            for entry in self._files.children(f"{self._state}/{_PENDING}"):
                if entry.is_folder:
                    yield _handle_of(entry.name), entry.path

    def _path_in(self, folder: str, name: str = "") -> str:
        return "/".join(filter(None, (self._state, _PENDING, folder, name)))

    # --- publication ---

    def _in_state(self, name: str) -> str:
        return f"{self._state}/{name}"

    def _read_marker(self, path: str) -> EpochFiles | None:
        return read_marker(partial(self._files.read, path), path)

    def epochs(self) -> Iterator[int]:
        with suppress(FileNotFoundError):
            for entry in self._files.children(self._state):
                if (epoch := marked_epoch(entry.name)) is not None:
                    yield epoch

    def publish(self, folder: str, listing: EpochFiles, success: Sequence[str] = ()) -> bool:
        _, times = self._vote(folder)
        self._require_as_voted(folder, listing, times)
        if listing.span is not None:
            self._reserve_span(folder, listing, listing.span)
        for bucket in {fact.bucket for fact in listing.files}:
            self._make_bucket(bucket)
        for fact in listing.files:
            reach(CrashPoint.PUBLISH_BEFORE_RENAME)
            self._publish_file(self._path_in(folder, fact.pending), fact, times)
            reach(CrashPoint.PUBLISH_AFTER_RENAME)
        for name in success:
            self._create(folder, f"{self._root}/{name}", b"")
        reach(CrashPoint.PUBLISH_BEFORE_FILE_MARKER)
        created = self._create(folder, self._marker_path(listing.epoch), listing.to_bytes())
        reach(CrashPoint.PUBLISH_AFTER_FILE_MARKER)
        return created

    def _require_as_voted(self, folder: str, listing: EpochFiles, times: Mapping[str, int]) -> None:
        """Raise `Damaged` unless each file exists as voted, under its pending name, or under its final one after an
        earlier try."""
        pending = {entry.name: entry for entry in self._files.children(self._path_in(folder))}
        for fact in listing.files:
            entry = pending.get(fact.pending)
            is_intact = _is_voted(entry, fact, times) if entry is not None else self._holds(fact, times)
            if not is_intact:
                raise Damaged(f"{self._path_in(folder, fact.pending)} isn't what was voted")

    def _reserve_span(self, folder: str, listing: EpochFiles, span: str) -> None:
        reach(CrashPoint.PUBLISH_BEFORE_RENAME)
        self._create(folder, self._span_path(span), listing.to_bytes())
        reach(CrashPoint.PUBLISH_AFTER_RENAME)
        self._require_reserved(listing, span)

    def delete_replaced(self, txn: Txn, listing: EpochFiles) -> None:
        for epoch in listing.replaced:
            reach(CrashPoint.PUBLISH_BEFORE_TAKE_AWAY)
            if self.replaced_by(epoch) is None:  # before deleting: a delayed publisher checks this after publishing
                self._create(self.scratch(txn), self._replaced_path(epoch), listing.to_bytes())
            reach(CrashPoint.PUBLISH_AFTER_TAKE_AWAY)
            self._delete_files_of(epoch)

    def _delete_files_of(self, epoch: int) -> None:
        for name in self._published_files_of(epoch):
            reach(CrashPoint.PUBLISH_BEFORE_TAKE_AWAY)
            self._files.delete(f"{self._root}/{name}")
            reach(CrashPoint.PUBLISH_AFTER_TAKE_AWAY)

    def _publish_file(self, source: str, fact: PublishedFile, times: Mapping[str, int]) -> None:
        try:
            self._files.rename(source, self._final(fact))
        except FileNotFoundError:  # renamed by another publisher, or by this one without a response
            if not self._holds(fact, times):
                raise
        except FileExistsError as error:
            if not self._holds(fact, times):
                raise other_bytes(self._final(fact)) from error

    def _holds(self, fact: PublishedFile, times: Mapping[str, int]) -> bool:
        """True if the final name has these bytes: the voted file, recognized by its time, or another one with the same
        content."""
        entry = self._files.find(self._final(fact))
        if entry is None or entry.is_folder or entry.size != fact.bytes:
            return False
        if _is_voted(entry, fact, times):
            return True
        with self._files.open(entry.path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == fact.sha256

    def _create(self, folder: str, path: str, data: bytes) -> bool:
        """Create a file by way of a draft in the transaction's folder, which is swept with it."""
        try:
            self._files.create(path, data, self._path_in(folder, f"_draft~{secrets.token_hex(8)}"))
        except FileExistsError:
            return False
        return True

    def refuse_blocked_buckets(self, buckets: Iterable[str]) -> None:
        buckets = list(buckets)
        if unnamed := [bucket for bucket in buckets if ":" in bucket]:
            raise SinkRejected(f"bucket {min(unnamed)!r} has a colon, which HDFS doesn't allow in names")
        for path in sorted({path for bucket in buckets for path in self._folders_of(bucket)}):
            entry = self._files.find(path)
            if entry is not None and not entry.is_folder:
                raise _blocked(path)

    def _make_bucket(self, bucket: str) -> None:
        path = "/".join(filter(None, (self._root, bucket)))
        try:
            self._files.make_folder(path)
        except (FileExistsError, NotADirectoryError) as error:
            raise _blocked(path) from error

    def _folders_of(self, bucket: str) -> Iterator[str]:
        path = self._root
        for folder in filter(None, bucket.split("/")):
            path = f"{path}/{folder}"
            yield path

    def _names_with(self, prefix: str, below: str | None = None) -> Iterator[str]:
        folder = self._root if below is None else below
        entries = list(self._files.children(folder or "/"))
        if folder != self._root and any(entry.name == STATE for entry in entries):
            return
        for entry in entries:
            if entry.is_folder and entry.name != STATE:
                yield from self._names_with(prefix, entry.path)
            elif not entry.is_folder and entry.name.startswith(prefix):
                yield entry.path.removeprefix(f"{self._root}/")

    def open(self, name: str) -> BinaryIO:
        return cast(BinaryIO, self._files.open(f"{self._root}/{name}"))

    def _final(self, fact: PublishedFile) -> str:
        return f"{self._root}/{fact.name}"


def _is_voted(entry: HdfsEntry, fact: PublishedFile, times: Mapping[str, int]) -> bool:
    return (entry.size, entry.mtime_ns) == (fact.bytes, times.get(fact.pending))


def published(address: HdfsAddress) -> list[str]:
    """Files of every marker below an address, by epoch. Raises `OutcomeUnknown`, OSError."""
    cluster, root = HdfsFileSystem.at(address), address.path.rstrip("/")
    folders = [f"{root}/{STATE}/shared"]
    for _ in range(3):
        folders = [inner.path for outer in folders for inner in _children(cluster, outer) if inner.is_folder]
    entries = [entry for folder in (f"{root}/{STATE}", *folders) for entry in _children(cluster, folder)]
    paths = [entry.path for entry in entries if marked_epoch(entry.name) is not None]
    listings = filter(None, (read_marker(partial(cluster.read, path), path) for path in paths))
    return [HdfsAddress(address.cluster, f"{root}/{name}").uri for name in published_names(listings)]


def _children(cluster: HdfsFileSystem, folder: str) -> Iterator[HdfsEntry]:
    with suppress(FileNotFoundError):
        yield from cluster.children(folder)


def _blocked(path: str) -> PreflightRefused:
    return PreflightRefused(f"{path} must be the folder of a bucket, but is, or is below, a file: move that away")


def _folder_of(handle: str) -> str:
    """HDFS allows no colon in names; a handle has no comma."""
    return handle.replace(":", ",")


def _handle_of(folder: str) -> str:
    return folder.partition("~")[0].replace(",", ":")
