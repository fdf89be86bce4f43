"""A prefix of an object store that epochs are published into: a `FileTarget` without links and renames.

    <path>/<final name>                     the data, copies of what was prepared; buckets are folders
    <path>/…/_<success name>                an empty object, where the sink asks for one
    <path>/.lockstep/target.json            the target's id and owner, created exclusively
    <path>/.lockstep/epoch=<id>.json        the marker: lists the epoch's files; created exclusively and last
    <path>/.lockstep/span=<…>.json          the same, by the epoch's interval: taken exclusively before a file is shown
    <path>/.lockstep/files/epoch=<id>.json  the same again: says exclusively, before a file is shown, which ones will be
    <path>/.lockstep/replaced/epoch=<id>.json  the marker of the epoch that took this one's place: its files are going
    <path>/.lockstep/pending/<handle>/      one pending transaction: the files, then _vote.json
    <path>/.lockstep/pending/<handle>~<random>/     the same, written again

A shared target has one such state folder for each owner, in <path>/.lockstep/shared/<deployment>/<pipeline>/<sink>/.

Exclusively: by a conditional put, which tells its own object from another's when its answer was lost. A final name ends
in a piece of its content's sha256: whoever copies to it, a stopped process that goes on included, puts the same bytes
there. Two who would show other bytes, and so other names, are kept apart by what says which the epoch's files are.
Every object of a transaction carries its whole handle, so that what a process puts after it was swept is found by the
next sweep. An object is put by one request, and so is there whole or leaves nothing, not even invisibly.
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
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from lockstep.connections.object_store.store import Found, ObjectStore
from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Json
from lockstep.errors import LedgerConflict, OutcomeUnknown, SinkRejected, TargetChanged, TargetOwned
from lockstep.sinks.durable_file import Damaged, HashedFile, from_checked, to_checked
from lockstep.sinks.files._target import (
    STATE,
    EpochFiles,
    MarkedTarget,
    PublishedFile,
    Write,
    marked_epoch,
    names_of,
    told,
)
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import Txn

AT_ONCE = 8  #: copies, and looks at markers
LONGEST_KEY = 1024  #: bytes; S3's limit
_VOTE, _TARGET, _PENDING = "_vote.json", f"{STATE}/target.json", "pending"
_LAST = "_last"  #: of a folder that is taken away: the object that goes when all is done
_HASH = 16  #: hex digits of a file's sha256 in its name

T = TypeVar("T")
R = TypeVar("R")


class PrefixTarget(MarkedTarget[str]):
    """The objects below `store`'s address, as one sink sees them; see `FileTarget` for what each call means."""

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

    def require(self) -> str:
        try:
            content = from_checked(self._store.read(_TARGET))
        except (FileNotFoundError, Damaged) as error:
            raise TargetChanged(
                f"{self.place}/{_TARGET} is missing or damaged ({error}), so nobody can tell whether this place was "
                "written before: restore it, or correct the sink's path"
            ) from error
        return self._require_own(content, self.place)

    def disclaim(self) -> None:
        if self.shared or self._store.find(_TARGET) is None:
            return
        with suppress(TargetOwned):
            self.require()
            self._store.delete([_TARGET])

    # --- pending transactions ---

    def begin(self, txn: Txn) -> None:
        self.discard(txn)

    def folder(self, txn: Txn) -> str:
        return txn.handle

    def scratch(self, txn: Txn) -> str:
        return f"{txn.handle}~{secrets.token_hex(4)}"

    def write(self, folder: str, write: Write) -> tuple[PublishedFile, ...]:
        """Each file stands on this machine's disk until it is put."""

        def keep(name: str, rows: int, file: HashedFile) -> PublishedFile:
            digest = file.finish(sync=False)
            fact = PublishedFile(_with_hash(name, digest), rows, file.size, digest)
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

    def voted(self, txn: Txn) -> EpochFiles | None:
        folder = self.folder(txn)
        try:
            vote = self._vote(folder)
            listing = EpochFiles.from_bytes(vote["listing"].encode(), _VOTE)
            self._require_whole(folder, listing, vote["etags"])
        except (Damaged, FileNotFoundError):
            return None
        return listing

    def _vote(self, folder: str) -> dict[str, Json]:
        return from_checked(self._store.read(self._path_in(folder, _VOTE)))

    def _require_whole(self, folder: str, listing: EpochFiles, etags: Mapping[str, str | None]) -> None:
        """Raise `Damaged` unless the folder's objects are those that were put there."""
        found = {_name(one.path): one for one in self._store.children(self._path_in(folder)).objects}
        for fact in listing.files:
            one = found.get(fact.pending)
            if one is None or (one.size, one.etag) != (fact.bytes, etags.get(fact.pending, "")):
                raise Damaged(f"{self._path_in(folder, fact.pending)} isn't what was voted")

    def handles(self) -> list[str]:
        return sorted({handle for handle, _ in self._pending()})

    def discard(self, txn: Txn, *, just_shown: bool = False) -> None:
        """Votes first: without one nobody takes the rest for whole."""
        paths = [path for handle, path in self._pending() if handle == txn.handle]
        if not paths:
            return
        last = list[str]()
        if not just_shown and self.replaced_by(txn.epoch) is not None:
            last = [self._path_in(txn.handle, _LAST)]  # until all is done it tells that there may be something to do
            self._create(last[0])
        votes = [path for path in paths if _name(path) == _VOTE]
        for some in (votes, [path for path in paths if path not in votes + last]):
            if some:
                self._store.delete(some)
        if last:
            self._take_away_files(txn.epoch)
            self._store.delete(last)

    def _pending(self) -> Iterator[tuple[str, str]]:
        """(handle, path) of each pending object: a folder is there only by what is in it."""
        pending = self._path_in("")
        for found in self._store.find_below(pending):
            yield found.path.removeprefix(f"{pending}/").partition("/")[0].partition("~")[0], found.path

    def _path_in(self, folder: str, name: str = "") -> str:
        return "/".join(filter(None, (self._state, _PENDING, folder, name)))

    def _require_keys(self, *paths: str) -> None:
        for path in paths:
            size = len(self._store.key_of(path).partition("/")[2].encode())
            if size > LONGEST_KEY:
                raise SinkRejected(
                    f"{path} would have a key of {size} bytes, the most are {LONGEST_KEY}: shorten its path"
                )

    # --- publication ---

    def _in_state(self, name: str) -> str:
        return f"{self._state}/{name}"

    def _told(self, path: str) -> str:
        return f"{self.place}/{path}"

    def _read_marker(self, path: str) -> EpochFiles | None:
        return _marker_at(self._store, path)

    def epochs(self) -> Iterator[int]:
        for found in self._store.children(self._state).objects:
            if (epoch := marked_epoch(_name(found.path))) is not None:
                yield epoch

    def show(self, folder: str, listing: EpochFiles, success: Sequence[str] = ()) -> bool:
        """`voted` has compared the objects with what was put, if this process didn't put them itself."""
        if listing.span is not None:
            self._take_span(listing, listing.span)
        if not self._take_files(listing):
            return False
        _at_once(lambda fact: self._show_file(self._path_in(folder, fact.pending), fact), listing.files)
        _at_once(self._create, success)
        reach(CrashPoint.PUBLISH_BEFORE_FILE_MARKER)
        created = self._create(self._marker(listing.epoch), listing.to_bytes())
        reach(CrashPoint.PUBLISH_AFTER_FILE_MARKER)
        return created

    def _take_span(self, listing: EpochFiles, span: str) -> None:
        reach(CrashPoint.PUBLISH_BEFORE_RENAME)
        self._create(self._of_span(span), listing.to_bytes())
        reach(CrashPoint.PUBLISH_AFTER_RENAME)
        self._require_range(listing, span)

    def _take_files(self, listing: EpochFiles) -> bool:
        """Say which files the epoch shows, unless it is said; False if it is published already, with others."""
        reach(CrashPoint.PUBLISH_BEFORE_RENAME)
        created = self._create(self._files(listing.epoch), listing.to_bytes())
        reach(CrashPoint.PUBLISH_AFTER_RENAME)
        if created:
            return True
        taken = self._read_marker(self._files(listing.epoch))
        if taken is None:  # taken away this very moment: by a person, who publishes again
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._files(listing.epoch))
        return self._may_show(listing, taken)

    def _may_show(self, listing: EpochFiles, taken: EpochFiles) -> bool:
        """Whether `taken`, what the epoch shows, is `listing`; otherwise the epoch has to be published already."""
        same_rows = (taken.owner, taken.manifest_hash) == (listing.owner, listing.manifest_hash)
        if same_rows and set(taken.files) == set(listing.files):
            return True
        if self.shown(listing.epoch) is not None:
            return False
        said = f"{self.place}/{self._files(listing.epoch)}"
        way_out = "once no process publishes this epoch, delete the files that it lists, then it, and publish again"
        if not same_rows:
            raise LedgerConflict(
                f"{said} is of epoch {taken.epoch} of {told(asdict(taken.owner))} with the manifest "
                f"{taken.manifest_hash[:12]}, whose publication was cut off and which this ledger has no memory of: "
                f"nothing was shown; {way_out}"
            )
        raise OutcomeUnknown(
            f"{said} lists other files than this publication would show: another one goes on, or was cut off, and "
            f"writing the epoch again gives other bytes: {way_out}"
        )

    def _show_file(self, source: str, fact: PublishedFile) -> None:
        reach(CrashPoint.PUBLISH_BEFORE_RENAME)
        self._store.copy(source, fact.name)
        reach(CrashPoint.PUBLISH_AFTER_RENAME)

    def _create(self, path: str, data: bytes = b"") -> bool:
        try:
            self._store.create(path, data)
        except FileExistsError:
            return False
        return True

    def take_away_replaced(self, txn: Txn, listing: EpochFiles) -> None:
        for epoch in listing.replaced:
            reach(CrashPoint.PUBLISH_BEFORE_TAKE_AWAY)
            self._create(self._of_replaced(epoch), listing.to_bytes())  # who goes on to show a file looks here then
            reach(CrashPoint.PUBLISH_AFTER_TAKE_AWAY)
            self._take_away_files(epoch)

    def _take_away_files(self, epoch: int) -> None:
        if names := self._files_of(epoch):
            reach(CrashPoint.PUBLISH_BEFORE_TAKE_AWAY)
            self._store.delete(names)
            reach(CrashPoint.PUBLISH_AFTER_TAKE_AWAY)

    def refuse_blocked(self, buckets: Iterable[str]) -> None:
        """Nothing blocks a key."""

    def refuse_strays(self, prefix: str, listing: EpochFiles) -> None:
        """What a publication that was cut off has shown is listed before its first file."""
        if (taken := self._read_marker(self._files(listing.epoch))) is not None:
            self._may_show(listing, taken)

    def _named(self, prefix: str) -> Iterator[str]:
        paths = [found.path for found in self._store.find_below("")]
        others = {path.partition(f"/{STATE}/")[0] + "/" for path in paths if f"/{STATE}/" in path}
        for path in paths:
            if _name(path).startswith(prefix) and not path.startswith((f"{STATE}/", *others)):
                yield path

    def open(self, name: str) -> BinaryIO:
        return cast(BinaryIO, self._store.open(name))

    def _files(self, epoch: int) -> str:
        return self._in_state(f"files/epoch={epoch}.json")

    def _of_replaced(self, epoch: int) -> str:
        return self._in_state(f"replaced/epoch={epoch}.json")


def published(store: ObjectStore) -> list[str]:
    """The files of every marker below the store's address, by epoch. Raises `OutcomeUnknown`, OSError."""
    folders = [STATE, *_folders_below(store, f"{STATE}/shared", 3)]
    found: list[Found] = [one for folder in folders for one in store.children(folder).objects]
    markers = [one.path for one in found if marked_epoch(_name(one.path)) is not None]
    listings = filter(None, _at_once(lambda path: _marker_at(store, path), markers))
    return [f"{store.address.scheme}://{store.key_of(name)}" for name in names_of(listings)]


def _folders_below(store: ObjectStore, folder: str, levels: int) -> list[str]:
    found = [folder]
    for _ in range(levels):
        found = [inner for outer in found for inner in store.children(outer).folders]
    return found


def _marker_at(store: ObjectStore, path: str) -> EpochFiles | None:
    try:
        return EpochFiles.from_bytes(store.read(path), _name(path))
    except FileNotFoundError:
        return None
    except Damaged as error:
        raise OutcomeUnknown(
            f"the marker {store.address.uri}/{path} is damaged ({error}): restore it from a copy"
        ) from error


def _at_once(call: Callable[[T], R], items: Sequence[T]) -> list[R]:
    if len(items) < 2:
        return [call(item) for item in items]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(call, items))


def _with_hash(name: str, digest: str) -> str:
    stem, _, suffix = name.rpartition(".")
    return f"{stem}-{digest[:_HASH]}.{suffix}"


def _name(path: str) -> str:
    return path.rpartition("/")[2]
