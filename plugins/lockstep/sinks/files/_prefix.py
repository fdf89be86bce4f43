"""`FileTarget` on an object store, without links and renames.

    <path>/<final name>                     the data, copies of what was prepared; buckets are folders
    <path>/…/_<success name>                an empty object, if configured
    <path>/.lockstep/target.json            the target's id and owner, created exclusively
    <path>/.lockstep/epoch=<id>.json        the marker: lists the epoch's files; created exclusively and last
    <path>/.lockstep/span=<…>.json          the same, by interval: created exclusively before a file is published
    <path>/.lockstep/files/epoch=<id>.json  the same: reserves the epoch's files exclusively before one is published
    <path>/.lockstep/replaced/epoch=<id>.json  the marker of the epoch that replaced this one: its files get deleted
    <path>/.lockstep/pending/<handle>/      one pending transaction: the files, then _vote.json
    <path>/.lockstep/pending/<handle>~<random>/     the same, written again

A shared target has one such state folder per owner, in <path>/.lockstep/shared/<deployment>/<pipeline>/<sink>/.

Exclusively means by a conditional put, which recognizes its own object after a lost response. A final name ends in a
part of its content's sha256, so every copy to it, also by a stopped process that continues, puts the same bytes.
Publishers with other bytes, and so other names, are excluded by the reservation of the epoch's files. The name of every
pending object contains the handle, so that objects put after a sweep are found by the next one. An object is put by one
request: it exists entirely, or leaves nothing, not even an invisible upload.
"""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from lockstep.connections.object_store.store import ObjectStore, StoredObject
from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Json
from lockstep.errors import LedgerConflict, OutcomeUnknown, SinkRejected
from lockstep.sinks.durable_file import Damaged, HashedFile, from_checked, to_checked
from lockstep.sinks.files._target import (
    STATE,
    EpochFiles,
    MarkedTarget,
    PublishedFile,
    Write,
    marked_epoch,
    owner_text,
    published_names,
    read_marker,
)
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import Txn

PARALLEL = 8  #: copies, and reads of markers
MAX_KEY_BYTES = 1024  #: S3's limit
_VOTE, _TARGET, _PENDING = "_vote.json", f"{STATE}/target.json", "pending"
_LAST = "_last"  #: the last object of a folder to be deleted
_HASH = 16  #: hex digits of a file's sha256 in its name

T = TypeVar("T")
R = TypeVar("R")


class PrefixTarget(MarkedTarget[str]):
    """The objects below `store`'s address; see `FileTarget`."""

    kind = "prefix"

    def __init__(self, store: ObjectStore, owner: SinkName, shared: bool) -> None:
        super().__init__(store.address.uri, owner, shared)
        self._store = store
        self._state = "/".join(self._state_names)
        self._etags: dict[str, str | None] = {}  # of the pending objects that this process put, by their paths

    # --- ownership ---

    def claim(self) -> None:
        if self._store.find(_TARGET) is None:
            self._store.require_conditional_put(self._state)
            with suppress(FileExistsError):
                self._store.create(_TARGET, self._new_target())
        self.require()

    def _read_target(self) -> bytes:
        return self._store.read(_TARGET)

    def _has_target(self) -> bool:
        return self._store.find(_TARGET) is not None

    def _delete_target(self) -> None:
        self._store.delete([_TARGET])

    # --- pending transactions ---

    def begin(self, txn: Txn) -> None:
        self.discard(txn)

    def folder(self, txn: Txn) -> str:
        return txn.handle

    def scratch(self, txn: Txn) -> str:
        return f"{txn.handle}~{secrets.token_hex(4)}"

    def write(self, folder: str, write: Write) -> tuple[PublishedFile, ...]:
        """Each file is on the local disk until it is put."""

        def keep(name: str, rows: int, file: HashedFile) -> PublishedFile:
            digest = file.finish(sync=False)
            stem, _, suffix = name.rpartition(".")
            fact = PublishedFile(f"{stem}-{digest[:_HASH]}.{suffix}", rows, file.size, digest)
            path = self._path_in(folder, fact.pending)
            self._require_keys(fact.name, path)
            self._etags[path] = self._store.put_file(path, file.path)
            file.path.unlink()
            return fact

        with tempfile.TemporaryDirectory(prefix="lockstep-") as here:
            return write(Path(here), keep)

    def vote(self, folder: str, listing: EpochFiles) -> None:
        etags = {fact.pending: self._etags.pop(self._path_in(folder, fact.pending)) for fact in listing.files}
        content = {"listing": listing.to_bytes().decode(), "etags": etags}
        self._store.replace(self._path_in(folder, _VOTE), to_checked(content))

    def read_vote(self, txn: Txn) -> EpochFiles | None:
        folder = self.folder(txn)
        try:
            vote = self._vote(folder)
            listing = EpochFiles.from_bytes(vote["listing"].encode(), _VOTE)
            self._require_as_voted(folder, listing, vote["etags"])
        except (Damaged, FileNotFoundError):
            return None
        return listing

    def _vote(self, folder: str) -> dict[str, Json]:
        return from_checked(self._store.read(self._path_in(folder, _VOTE)))

    def _require_as_voted(self, folder: str, listing: EpochFiles, etags: Mapping[str, str | None]) -> None:
        """Raise `Damaged` unless the folder's objects are those that were put there."""
        objects = {_name(entry.path): entry for entry in self._store.children(self._path_in(folder)).objects}
        for fact in listing.files:
            entry = objects.get(fact.pending)
            if entry is None or (entry.size, entry.etag) != (fact.bytes, etags.get(fact.pending, "")):
                raise Damaged(f"{self._path_in(folder, fact.pending)} isn't what was voted")

    def handles(self) -> list[str]:
        return sorted({handle for handle, _ in self._pending()})

    def discard(self, txn: Txn, *, just_published: bool = False) -> None:
        """Deletes votes first: without a vote the other objects count as incomplete."""
        paths = [path for handle, path in self._pending() if handle == txn.handle]
        if not paths:
            return
        last = list[str]()
        if not just_published and self.replaced_by(txn.epoch) is not None:
            last = [self._path_in(txn.handle, _LAST)]  # marks the folder as unfinished until its files are deleted
            self._create(last[0])
        votes = [path for path in paths if _name(path) == _VOTE]
        for batch in (votes, [path for path in paths if path not in votes + last]):
            if batch:
                self._store.delete(batch)
        if last:
            self._delete_files_of(txn.epoch)
            self._store.delete(last)

    def _pending(self) -> Iterator[tuple[str, str]]:
        """(handle, path) of each pending object; folders exist only through their objects."""
        pending = self._path_in("")
        for entry in self._store.find_below(pending):
            yield entry.path.removeprefix(f"{pending}/").partition("/")[0].partition("~")[0], entry.path

    def _path_in(self, folder: str, name: str = "") -> str:
        return "/".join(filter(None, (self._state, _PENDING, folder, name)))

    def _require_keys(self, *paths: str) -> None:
        for path in paths:
            size = len(self._store.key_of(path).partition("/")[2].encode())
            if size > MAX_KEY_BYTES:
                raise SinkRejected(
                    f"{path} would have a key of {size} bytes, the limit is {MAX_KEY_BYTES}: shorten its path"
                )

    # --- publication ---

    def _in_state(self, name: str) -> str:
        return f"{self._state}/{name}"

    def _in_words(self, path: str) -> str:
        return f"{self.place}/{path}"

    def _read_marker(self, path: str) -> EpochFiles | None:
        return read_marker(partial(self._store.read, path), f"{self.place}/{path}")

    def epochs(self) -> Iterator[int]:
        for entry in self._store.children(self._state).objects:
            if (epoch := marked_epoch(_name(entry.path))) is not None:
                yield epoch

    def publish(self, folder: str, listing: EpochFiles, success: Sequence[str] = ()) -> bool:
        """`read_vote` has compared the objects with the vote, unless this process put them itself."""
        if listing.span is not None:
            self._reserve_span(listing, listing.span)
        if not self._reserve_files(listing):
            return False
        _in_parallel(lambda fact: self._publish_file(self._path_in(folder, fact.pending), fact), listing.files)
        _in_parallel(self._create, success)
        reach(CrashPoint.PUBLISH_BEFORE_FILE_MARKER)
        created = self._create(self._marker_path(listing.epoch), listing.to_bytes())
        reach(CrashPoint.PUBLISH_AFTER_FILE_MARKER)
        return created

    def _reserve_span(self, listing: EpochFiles, span: str) -> None:
        reach(CrashPoint.PUBLISH_BEFORE_RENAME)
        self._create(self._span_path(span), listing.to_bytes())
        reach(CrashPoint.PUBLISH_AFTER_RENAME)
        self._require_reserved(listing, span)

    def _reserve_files(self, listing: EpochFiles) -> bool:
        """Reserve the epoch's files for this publication; False if the epoch is already published with others."""
        reach(CrashPoint.PUBLISH_BEFORE_RENAME)
        created = self._create(self._files(listing.epoch), listing.to_bytes())
        reach(CrashPoint.PUBLISH_AFTER_RENAME)
        if created:
            return True
        reserved = self._read_marker(self._files(listing.epoch))
        if reserved is None:  # a person has just deleted it, to publish again
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._files(listing.epoch))
        return self._is_reserved_for(listing, reserved)

    def _is_reserved_for(self, listing: EpochFiles, reserved: EpochFiles) -> bool:
        """True if `reserved` has the files of `listing`, False if the epoch is published with others; raises
        otherwise."""
        same_rows = (reserved.owner, reserved.manifest_hash) == (listing.owner, listing.manifest_hash)
        if same_rows and set(reserved.files) == set(listing.files):
            return True
        if self.find_marker(listing.epoch) is not None:
            return False
        reservation = f"{self.place}/{self._files(listing.epoch)}"
        remedy = "once no process publishes this epoch, delete the files that it lists, then it, and publish again"
        if not same_rows:
            raise LedgerConflict(
                f"{reservation} is of epoch {reserved.epoch} of {owner_text(asdict(reserved.owner))} with the manifest "
                f"{reserved.manifest_hash[:12]}, whose publication was interrupted and of which this ledger has no "
                f"record: nothing was published; {remedy}"
            )
        raise OutcomeUnknown(
            f"{reservation} lists other files than this publication would show: another one is running, or was "
            f"interrupted, and writing the epoch again gives other bytes: {remedy}"
        )

    def _publish_file(self, source: str, fact: PublishedFile) -> None:
        reach(CrashPoint.PUBLISH_BEFORE_RENAME)
        self._store.copy(source, fact.name)
        reach(CrashPoint.PUBLISH_AFTER_RENAME)

    def _create(self, path: str, data: bytes = b"") -> bool:
        try:
            self._store.create(path, data)
        except FileExistsError:
            return False
        return True

    def delete_replaced(self, txn: Txn, listing: EpochFiles) -> None:
        for epoch in listing.replaced:
            reach(CrashPoint.PUBLISH_BEFORE_TAKE_AWAY)
            self._create(
                self._replaced_path(epoch), listing.to_bytes()
            )  # a delayed publisher checks this after publishing
            reach(CrashPoint.PUBLISH_AFTER_TAKE_AWAY)
            self._delete_files_of(epoch)

    def _delete_files_of(self, epoch: int) -> None:
        if names := self._published_files_of(epoch):
            reach(CrashPoint.PUBLISH_BEFORE_TAKE_AWAY)
            self._store.delete(names)
            reach(CrashPoint.PUBLISH_AFTER_TAKE_AWAY)

    def refuse_blocked_buckets(self, buckets: Iterable[str]) -> None:
        """Nothing to check: any key is possible."""

    def refuse_unlisted(self, prefix: str, listing: EpochFiles) -> None:
        """An interrupted publication has reserved its files before the first one was visible."""
        if (reserved := self._read_marker(self._files(listing.epoch))) is not None:
            self._is_reserved_for(listing, reserved)

    def _names_with(self, prefix: str) -> Iterator[str]:
        paths = [entry.path for entry in self._store.find_below("")]
        other_targets = {path.partition(f"/{STATE}/")[0] + "/" for path in paths if f"/{STATE}/" in path}
        for path in paths:
            if _name(path).startswith(prefix) and not path.startswith((f"{STATE}/", *other_targets)):
                yield path

    def open(self, name: str) -> BinaryIO:
        return cast(BinaryIO, self._store.open(name))

    def _files(self, epoch: int) -> str:
        return self._in_state(f"files/epoch={epoch}.json")

    def _replaced_path(self, epoch: int) -> str:
        return self._in_state(f"replaced/epoch={epoch}.json")


def published(store: ObjectStore) -> list[str]:
    """Files of every marker below the store's address, by epoch. Raises `OutcomeUnknown`, OSError."""
    folders = [f"{STATE}/shared"]
    for _ in range(3):
        folders = [inner for outer in folders for inner in store.children(outer).folders]
    objects: list[StoredObject] = [entry for folder in (STATE, *folders) for entry in store.children(folder).objects]
    markers = [entry.path for entry in objects if marked_epoch(_name(entry.path)) is not None]
    uri = store.address.uri
    listings = filter(None, _in_parallel(lambda path: read_marker(partial(store.read, path), f"{uri}/{path}"), markers))
    return [f"{store.address.scheme}://{store.key_of(name)}" for name in published_names(listings)]


def _in_parallel(call: Callable[[T], R], items: Sequence[T]) -> list[R]:
    if len(items) < 2:
        return [call(item) for item in items]
    with ThreadPoolExecutor(PARALLEL) as pool:
        return list(pool.map(call, items))


def _name(path: str) -> str:
    return path.rpartition("/")[2]
