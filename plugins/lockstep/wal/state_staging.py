"""Staging of keyed state, outside the epochs' folders, so that cleanup doesn't delete it with a WAL.

`<deployment>/<pipeline>/state/epoch=<id>/<token>/<state>/lockstep_bucket=<n>/part-*.parquet`. An execution writes the
changed buckets; its manifest lists them and the files of older epochs for the other buckets. A file is deleted when no
kept manifest lists it. Deleted or expiring files are never referenced again: an epoch that replaces others has copies.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from lockstep.crash import CrashPoint
from lockstep.epoch import Json
from lockstep.errors import StageFailed, WalCorrupt
from lockstep.wal._storage import (
    Entry,
    Kind,
    Storage,
    delete_entry,
    delete_folder,
    is_hidden,
    naming_errors,
    plain_children,
    remove_empty_folder,
    tree,
)
from lockstep.wal.file_digests import SealedFile
from lockstep.wal.manifest import StateFile, StateVersion, finding
from lockstep.wal.reading import verify_file
from lockstep.wal.sealing import list_files, seal_files, sync_folders

STATE = "state"
BUCKET = "lockstep_bucket"  #: the column by which Spark partitions state
_NUMBER = "(0|[1-9][0-9]{0,17})"
_EPOCH = re.compile(f"epoch={_NUMBER}")
_TOKEN = re.compile(_NUMBER)
_BUCKET = re.compile(f"{BUCKET}={_NUMBER}")
_THREADS = 4
_EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class WrittenState:
    """A job's report on one state: its declaration, the rewritten buckets, their rows, and the buckets read of the
    previous version (numbers of that version)."""

    schema: str
    key: tuple[str, ...]
    buckets: int
    expires: str | None
    rewritten: frozenset[int]
    read: frozenset[int]
    rows: int
    found_by: tuple[str, ...] = ()
    self_expiring: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "found_by", self.found_by or self.key)

    def to_json(self) -> Json:
        return {
            "schema": self.schema,
            "key": list(self.key),
            "buckets": self.buckets,
            "expires": self.expires,
            "rewritten": sorted(self.rewritten),
            "read": sorted(self.read),
            "rows": self.rows,
            **finding(self.key, self.found_by),
            **({"self_expiring": True} if self.self_expiring else {}),
        }

    @classmethod
    def from_json(cls, value: Json) -> WrittenState:
        return cls(
            value["schema"],
            tuple(value["key"]),
            value["buckets"],
            value["expires"],
            frozenset(value["rewritten"]),
            frozenset(value["read"]),
            value["rows"],
            tuple(value.get("found_by", ())),
            value.get("self_expiring", False),
        )


class StateExecution(NamedTuple):
    """State folder of one execution of `stage`, relative to staging."""

    epoch: int
    token: int
    folder: str


@dataclass(frozen=True)
class StateStaging:
    """State of one pipeline. `home`: `<deployment>/<pipeline>`. Raises as `Staging`."""

    storage: Storage
    home: str

    def folder(self, epoch: int, token: int) -> str:
        """`<home>/state/epoch=<id>/<token>`; creates nothing."""
        return f"{self.home}/{STATE}/epoch={epoch}/{token}"

    def path_of(self, name: str, file: StateFile) -> str:
        """Path of a file of state `name`, relative to staging."""
        return f"{self.folder(file.epoch, file.token)}/{name}/{BUCKET}={file.bucket}/{file.path}"

    # --- sealing and checking ---

    def seal(
        self,
        epoch: int,
        token: int,
        written: Mapping[str, WrittenState],
        before: Mapping[str, StateVersion],
        *,
        copies: bool = False,
    ) -> dict[str, StateVersion]:
        """Seal the versions of execution `token`: the rewritten buckets, and the files of `before` for the others, or
        `copies` of them.

        Verifies what was read of `before` first. Raises `WalCorrupt` if that differs, `StageFailed` if new files differ
        from the job's counts or can't be made durable.
        """
        folder = self.folder(epoch, token)
        for name, wrote in written.items():
            if name in before:
                self.check(name, [file for file in before[name].files if file.bucket in wrote.read])
        expected = [name for name, wrote in written.items() if wrote.rewritten]
        with naming_errors("list", folder), suppress(FileNotFoundError):
            wrong = [entry.name for entry in plain_children(self.storage, folder) if entry.name not in expected]
            if wrong:
                raise StageFailed(f"{folder}: the job left {wrong}, but reported {expected or 'no state'}")
        return {
            name: self._seal(StateExecution(epoch, token, folder), name, wrote, before.get(name), copies)
            for name, wrote in written.items()
        }

    def _seal(
        self, of: StateExecution, name: str, wrote: WrittenState, before: StateVersion | None, copies: bool
    ) -> StateVersion:
        new_files = self._written_files(f"{of.folder}/{name}", wrote)
        sealed = seal_files(
            self.storage, {str(bucket): entries for bucket, entries in new_files.items()}, wrote.expires
        )
        sealed_files = [file for files in sealed.values() for file in files]
        rows = sum(file.file.rows for file in sealed_files)
        if rows != wrote.rows:
            raise StageFailed(f"state {name}: Spark observed {wrote.rows} rows, the files hold {rows}")
        if any(not file.schema.equals(sealed_files[0].schema) for file in sealed_files):
            raise StageFailed(f"state {name}: its new files have different schemas")
        if wrote.rewritten:
            sync_folders(self.storage, f"{of.folder}/{name}", [f"{BUCKET}={bucket}" for bucket in new_files])
        cut = (wrote.buckets, wrote.expires, wrote.found_by)
        stays = before is not None and (before.buckets, before.expires, before.found_by) == cut
        carried = before.files if before is not None and stays else ()
        carried_files = [file for file in carried if file.bucket not in wrote.rewritten]
        if copies:
            carried_files = self._copied(of, name, carried_files)
        new = [_state_file(of, int(bucket), file) for bucket, files in sealed.items() for file in files]
        files = tuple(sorted([*carried_files, *new], key=lambda file: (file.bucket, file.epoch, file.token, file.path)))
        return StateVersion(wrote.schema, wrote.key, wrote.buckets, wrote.expires, files, wrote.found_by)

    def _copied(self, of: StateExecution, name: str, files: Iterable[StateFile]) -> list[StateFile]:
        def copied(file: StateFile) -> StateFile:
            copy = replace(file, epoch=of.epoch, token=of.token)  # one execution wrote all files of a bucket
            content, path = read_checked(self.storage, self.path_of(name, file), file), self.path_of(name, copy)
            with naming_errors("write", path):
                self.storage.replace(path, content)
            return copy

        with ThreadPoolExecutor(_THREADS, "state") as pool:
            return list(pool.map(copied, files))

    def _written_files(self, folder: str, wrote: WrittenState) -> dict[int, list[Entry]]:
        entries: list[Entry] = []
        with naming_errors("list", folder), suppress(FileNotFoundError):
            entries = [entry for entry in plain_children(self.storage, folder) if not is_hidden(entry)]
        by_bucket: dict[int, list[Entry]] = {}
        for entry in entries:
            bucket = _BUCKET.fullmatch(entry.name)
            if entry.kind is not Kind.FOLDER or bucket is None or int(bucket[1]) not in wrote.rewritten:
                raise StageFailed(
                    f"{entry.path}: the job reported only the buckets {sorted(wrote.rewritten)}; does this Spark "
                    "hash keys like the one that wrote the previous state?"
                )
            by_bucket[int(bucket[1])] = list_files(self.storage, entry.path)
        return by_bucket

    def check(self, name: str, files: Iterable[StateFile]) -> None:
        """Compare size and sha256 of files of state `name`. Raises `WalCorrupt`, `StagingUnavailable`."""

        def checked(file: StateFile) -> None:
            verify_file(self.storage, self.path_of(name, file), file.bytes, file.sha256)

        with ThreadPoolExecutor(_THREADS, "state") as pool:
            list(pool.map(checked, files))

    # --- what lies around ---

    def executions(self) -> list[StateExecution]:
        """State folders of all executions, in order. Other entries are ignored."""
        executions = []
        for epoch in self._folders(f"{self.home}/{STATE}", _EPOCH):
            number = int(epoch.name.partition("=")[2])
            executions += [
                StateExecution(number, int(entry.name), entry.path) for entry in self._folders(epoch.path, _TOKEN)
            ]
        return sorted(executions)

    def _folders(self, folder: str, name: re.Pattern[str]) -> list[Entry]:
        with naming_errors("list", folder), suppress(FileNotFoundError):
            return [
                entry
                for entry in self.storage.children(folder)
                if entry.kind is Kind.FOLDER and name.fullmatch(entry.name)
            ]
        return []

    # --- letting go ---

    def discard(self, execution: StateExecution) -> None:
        """Delete an execution's state; already deleted parts are fine. Check the ledger first."""
        before, after = CrashPoint.ROLLBACK_BEFORE_FOLDER, CrashPoint.ROLLBACK_AFTER_FOLDER
        with naming_errors("delete", execution.folder):
            delete_folder(self.storage, execution.folder, before, after)
            remove_empty_folder(self.storage, execution.folder.rpartition("/")[0], over=False)

    def release(self, execution: StateExecution, live: frozenset[str]) -> int:
        """Delete files of an execution that aren't in `live` (paths), and emptied folders; returns the number of
        deleted state files."""
        before, after, deleted = CrashPoint.CLEANUP_BEFORE_DELETE, CrashPoint.CLEANUP_AFTER_DELETE, 0
        with naming_errors("delete", execution.folder):
            entries: list[Entry] = []
            with suppress(FileNotFoundError):
                entries = [*tree(self.storage, execution.folder), Entry(execution.folder, Kind.FOLDER)]
            for entry in entries:
                with suppress(FileNotFoundError):  # on an object store, a folder vanishes with its last file
                    if entry.path in live or (entry.kind is Kind.FOLDER and self.storage.children(entry.path)):
                        continue
                    delete_entry(self.storage, entry.path, entry.kind, before, after)
                    deleted += entry.kind is Kind.FILE and not is_hidden(entry)
            remove_empty_folder(self.storage, execution.folder.rpartition("/")[0], over=True)
        return deleted


def read_checked(storage: Storage, path: str, file: StateFile) -> bytes:
    """Content of a state file, as sealed. Raises `WalCorrupt`, `StagingUnavailable`."""
    hashed = verify_file(storage, path, file.bytes, file.sha256)
    if hashed.content is not None:
        return hashed.content
    with naming_errors("read", path), closing(storage.open(path)) as opened:
        content = opened.read()
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise WalCorrupt(f"{path} changed while it was read")
    return content


def _state_file(of: StateExecution, bucket: int, sealed: SealedFile) -> StateFile:
    return StateFile(
        of.epoch,
        of.token,
        bucket,
        sealed.file.path,
        sealed.file.bytes,
        sealed.file.rows,
        sealed.file.sha256,
        sealed.digest.hexdigest(),
        None if sealed.least is None else _time(sealed.least).isoformat(),
    )


def _time(micros: int) -> datetime:
    """Microseconds since 1970 as a time, limited to Python's range."""
    try:
        return _EPOCH_START + timedelta(microseconds=micros)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if micros > 0 else datetime.min.replace(tzinfo=UTC)
