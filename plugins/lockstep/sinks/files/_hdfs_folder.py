"""A folder of HDFS that epochs are published into: a `FileTarget` by renames that never take a name that is there.

    <path>/<final name>                     the data, renamed from what was prepared; buckets are folders
    <path>/…/_<success name>                an empty file, where the sink asks for one
    <path>/.lockstep/target.json            the target's id and owner, created exclusively
    <path>/.lockstep/epoch=<id>.json        the marker: lists the epoch's files; created exclusively and last
    <path>/.lockstep/span=<…>.json          the same, by the epoch's interval: taken exclusively before a file is shown
    <path>/.lockstep/replaced=<id>.json     the marker of the epoch that has taken this one's place: its files are going
    <path>/.lockstep/pending/<handle>/      one pending transaction: the files, then _vote.json
    <path>/.lockstep/pending/<handle>~<random>/     the same, written again
    <path>/.lockstep/pending/_target~<random>       a draft of target.json, for a moment

A shared target has one such state folder for each owner, in <path>/.lockstep/shared/<deployment>/<pipeline>/<sink>/.

A rename is one step, keeps size and time, and takes the pending file away: whoever publishes looks under the pending
name, then under the final one. The vote tells each pending file's time, by which it is known without being read again.
A process that was swept finds no folder any more, neither to write into nor to rename from.
"""

from __future__ import annotations

import hashlib
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from lockstep.connections.hdfs.address import HdfsAddress
from lockstep.connections.hdfs.file_system import Found, HdfsFileSystem
from lockstep.crash import CrashPoint, reach
from lockstep.errors import OutcomeUnknown, PreflightRefused, SinkRejected, TargetChanged, TargetOwned
from lockstep.sinks.durable_file import Damaged, HashedFile, from_checked, to_checked
from lockstep.sinks.files._target import STATE, EpochFiles, MarkedTarget, PublishedFile, Write, marked_epoch, names_of
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import Txn

_VOTE, _PENDING = "_vote.json", "pending"
_CHUNK = 4 << 20  # bytes


class HdfsTarget(MarkedTarget[str]):
    """The folder at `address`, as one sink sees it; see `FileTarget` for what each call means."""

    def __init__(self, address: HdfsAddress, owner: SinkName, shared: bool) -> None:
        super().__init__(address.uri, owner, shared)
        self._files = HdfsFileSystem.at(address)
        self._root = address.path.rstrip("/")
        self._state = "/".join((self._root, *self._state_names))
        self._target = f"{self._root}/{STATE}/target.json"

    # --- ownership ---

    def claim(self) -> None:
        found = self._files.find(self._root or "/")
        if found is not None and not found.is_folder:
            raise PreflightRefused(f"{self.place} is not a folder; give this sink another path")
        self._files.make_folder(f"{self._state}/{_PENDING}")
        if self._files.find(self._target) is None:
            self._create_target()
        self.require()
        for found in list(self._files.children(self._path_in(""))):
            if not found.is_folder:
                self._files.delete(found.path)

    def _create_target(self) -> None:
        try:
            self._files.create(self._target, self._new_target(), self._path_in(f"_target~{secrets.token_hex(8)}"))
        except OSError:  # another claimer, who was first, may have taken the draft away
            if self._files.find(self._target) is None:
                raise

    def require(self) -> str:
        try:
            content = from_checked(self._files.read(self._target))
        except (FileNotFoundError, Damaged) as error:
            raise TargetChanged(
                f"{self._target} is missing or damaged ({error}), so nobody can tell whether {self.place} was written "
                "before: restore it, or correct the sink's path"
            ) from error
        return self._require_own(content, self.place)

    def disclaim(self) -> None:
        if self.shared or self._files.find(self._target) is None:
            return
        with suppress(TargetOwned):
            self.require()
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
        """Each file stands on this machine's disk until it is sent."""

        def keep(name: str, rows: int, file: HashedFile) -> PublishedFile:
            fact = PublishedFile(name, rows, file.size, file.finish(sync=False))
            with file.path.open("rb") as source, self._files.writing(self._path_in(folder, fact.pending)) as target:
                shutil.copyfileobj(source, target, _CHUNK)
            file.path.unlink()
            return fact

        with tempfile.TemporaryDirectory(prefix="lockstep-") as here:
            return write(Path(here), keep)

    def vote(self, folder: str, listing: EpochFiles) -> None:
        times = {found.name: found.mtime_ns for found in self._files.children(self._path_in(folder))}
        content = {"listing": listing.to_bytes().decode(), "times": times}
        self._files.write(self._path_in(folder, _VOTE), to_checked(content))

    def voted(self, txn: Txn) -> EpochFiles | None:
        try:
            return self._vote(self.folder(txn))[0]
        except (Damaged, FileNotFoundError):
            return None

    def _vote(self, folder: str) -> tuple[EpochFiles, Mapping[str, int]]:
        content = from_checked(self._files.read(self._path_in(folder, _VOTE)))
        return EpochFiles.from_bytes(content["listing"].encode(), _VOTE), content["times"]

    def handles(self) -> list[str]:
        return sorted({handle for handle, _ in self._pending()})

    def discard(self, txn: Txn, *, just_shown: bool = False) -> None:
        """Each folder at once, votes and all."""
        for handle, path in list(self._pending()):
            if handle == txn.handle:
                self._take_away(path, txn, just_shown)

    def _take_away(self, folder: str, txn: Txn, just_shown: bool) -> None:
        if not just_shown and self.replaced_by(txn.epoch) is not None:
            gone = self._path_in(f"{_folder_of(txn.handle)}~{secrets.token_hex(4)}")
            with suppress(FileNotFoundError):
                self._files.rename(folder, gone)  # nobody shows a file from there any more, and its name still tells
            self._take_away_files(txn.epoch)
            folder = gone
        self._files.delete(folder)

    def _pending(self) -> Iterator[tuple[str, str]]:
        with suppress(FileNotFoundError):
            for found in self._files.children(f"{self._state}/{_PENDING}"):
                if found.is_folder:
                    yield _handle_of(found.name), found.path

    def _path_in(self, folder: str, name: str = "") -> str:
        return "/".join(filter(None, (self._state, _PENDING, folder, name)))

    # --- publication ---

    def _in_state(self, name: str) -> str:
        return f"{self._state}/{name}"

    def _read_marker(self, path: str) -> EpochFiles | None:
        return _marker_at(self._files, path)

    def epochs(self) -> Iterator[int]:
        with suppress(FileNotFoundError):
            for found in self._files.children(self._state):
                if (epoch := marked_epoch(found.name)) is not None:
                    yield epoch

    def show(self, folder: str, listing: EpochFiles, success: Sequence[str] = ()) -> bool:
        _, times = self._vote(folder)
        self._require_whole(folder, listing, times)
        if listing.span is not None:
            self._take_span(folder, listing, listing.span)
        for bucket in {fact.bucket for fact in listing.files}:
            self._make_bucket(bucket)
        for fact in listing.files:
            reach(CrashPoint.PUBLISH_BEFORE_RENAME)
            self._show_file(self._path_in(folder, fact.pending), fact, times)
            reach(CrashPoint.PUBLISH_AFTER_RENAME)
        for name in success:
            self._create(folder, f"{self._root}/{name}", b"")
        reach(CrashPoint.PUBLISH_BEFORE_FILE_MARKER)
        created = self._create(folder, self._marker(listing.epoch), listing.to_bytes())
        reach(CrashPoint.PUBLISH_AFTER_FILE_MARKER)
        return created

    def _require_whole(self, folder: str, listing: EpochFiles, times: Mapping[str, int]) -> None:
        """Raise `Damaged` unless each file stands under its pending name as it was voted, or under its final one, to
        which an earlier try renamed it."""
        pending = {found.name: found for found in self._files.children(self._path_in(folder))}
        for fact in listing.files:
            found = pending.get(fact.pending)
            whole = _is_voted(found, fact, times) if found is not None else self._holds(fact, times)
            if not whole:
                raise Damaged(f"{self._path_in(folder, fact.pending)} isn't what was voted")

    def _take_span(self, folder: str, listing: EpochFiles, span: str) -> None:
        reach(CrashPoint.PUBLISH_BEFORE_RENAME)
        self._create(folder, self._of_span(span), listing.to_bytes())
        reach(CrashPoint.PUBLISH_AFTER_RENAME)
        self._require_range(listing, span)

    def take_away_replaced(self, txn: Txn, listing: EpochFiles) -> None:
        for epoch in listing.replaced:
            reach(CrashPoint.PUBLISH_BEFORE_TAKE_AWAY)
            if self.replaced_by(epoch) is None:  # before a file goes: who goes on to show one looks here afterwards
                self._create(self.scratch(txn), self._of_replaced(epoch), listing.to_bytes())
            reach(CrashPoint.PUBLISH_AFTER_TAKE_AWAY)
            self._take_away_files(epoch)

    def _take_away_files(self, epoch: int) -> None:
        for name in self._files_of(epoch):
            reach(CrashPoint.PUBLISH_BEFORE_TAKE_AWAY)
            self._files.delete(f"{self._root}/{name}")
            reach(CrashPoint.PUBLISH_AFTER_TAKE_AWAY)

    def _show_file(self, source: str, fact: PublishedFile, times: Mapping[str, int]) -> None:
        try:
            self._files.rename(source, self._final(fact))
        except FileNotFoundError:  # another publisher renamed it, or this one, and the answer was lost
            if not self._holds(fact, times):
                raise
        except FileExistsError as error:
            if not self._holds(fact, times):
                raise OutcomeUnknown(
                    f"{self._final(fact)} holds other bytes than this publication would show there: an earlier one was "
                    "cut off and pyarrow has changed since, or somebody else wrote it. No marker lists it: once no "
                    "process publishes this epoch, move it away and publish again"
                ) from error

    def _holds(self, fact: PublishedFile, times: Mapping[str, int]) -> bool:
        """Whether these bytes stand under the final name: the file that was voted, which is known by its time, or one
        that somebody else wrote of the same rows."""
        found = self._files.find(self._final(fact))
        if found is None or found.is_folder or found.size != fact.bytes:
            return False
        if _is_voted(found, fact, times):
            return True
        with self._files.open(found.path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == fact.sha256

    def _create(self, folder: str, path: str, data: bytes) -> bool:
        """By a draft in the transaction's folder, which is swept with it."""
        try:
            self._files.create(path, data, self._path_in(folder, f"_draft~{secrets.token_hex(8)}"))
        except FileExistsError:
            return False
        return True

    def refuse_blocked(self, buckets: Iterable[str]) -> None:
        buckets = list(buckets)
        if unnamed := [bucket for bucket in buckets if ":" in bucket]:
            raise SinkRejected(f"bucket {min(unnamed)!r}: no name on HDFS has a colon in it")
        for path in sorted({path for bucket in buckets for path in self._folders_of(bucket)}):
            found = self._files.find(path)
            if found is not None and not found.is_folder:
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

    def refuse_strays(self, prefix: str, listing: EpochFiles) -> None:
        """A folder below with a state folder of its own is another target, whose names may look the same."""
        strays = set(self._named(prefix)) - {fact.name for fact in listing.files}
        if strays and self.shown(listing.epoch) is None:
            raise OutcomeUnknown(
                f"{self._root}/{min(strays)} was shown by a publication that was cut off, and writing the epoch again "
                "gives other files: once no process publishes this epoch, move it away and publish again"
            )

    def _named(self, prefix: str, below: str | None = None) -> Iterator[str]:
        folder = self._root if below is None else below
        found = list(self._files.children(folder or "/"))
        if folder != self._root and any(one.name == STATE for one in found):
            return
        for one in found:
            if one.is_folder and one.name != STATE:
                yield from self._named(prefix, one.path)
            elif not one.is_folder and one.name.startswith(prefix):
                yield one.path.removeprefix(f"{self._root}/")

    def open(self, name: str) -> BinaryIO:
        return cast(BinaryIO, self._files.open(f"{self._root}/{name}"))

    def _final(self, fact: PublishedFile) -> str:
        return f"{self._root}/{fact.name}"


def _is_voted(found: Found, fact: PublishedFile, times: Mapping[str, int]) -> bool:
    return (found.size, found.mtime_ns) == (fact.bytes, times.get(fact.pending))


def published(address: HdfsAddress) -> list[str]:
    """The files of every marker below an address, by epoch. Raises `OutcomeUnknown`, OSError."""
    cluster, root = HdfsFileSystem.at(address), address.path.rstrip("/")
    folders = [f"{root}/{STATE}/shared"]
    for _ in range(3):
        folders = [inner.path for outer in folders for inner in _in(cluster, outer) if inner.is_folder]
    found = [one for folder in (f"{root}/{STATE}", *folders) for one in _in(cluster, folder)]
    listings = filter(None, (_marker_at(cluster, one.path) for one in found if marked_epoch(one.name) is not None))
    return [HdfsAddress(address.cluster, f"{root}/{name}").uri for name in names_of(listings)]


def _in(cluster: HdfsFileSystem, folder: str) -> Iterator[Found]:
    with suppress(FileNotFoundError):
        yield from cluster.children(folder)


def _marker_at(files: HdfsFileSystem, path: str) -> EpochFiles | None:
    try:
        return EpochFiles.from_bytes(files.read(path), path)
    except FileNotFoundError:
        return None
    except Damaged as error:
        raise OutcomeUnknown(f"the marker {path} is damaged ({error}): restore it from a copy") from error


def _blocked(path: str) -> PreflightRefused:
    return PreflightRefused(f"{path} is to be the folder of a bucket, and is, or is below, a file: move that away")


def _folder_of(handle: str) -> str:
    """No name of HDFS has a colon in it, no part of a handle a comma."""
    return handle.replace(":", ",")


def _handle_of(folder: str) -> str:
    return folder.partition("~")[0].replace(",", ":")
