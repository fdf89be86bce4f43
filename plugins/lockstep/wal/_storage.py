"""The file operations that staging needs, for local and mounted file systems, object stores and HDFS.

Paths are relative to the root, use '/' and can't leave it: '..' and symbolic links raise `StagingRefused`. This guards
against mistakes, not against concurrent attackers with write access. All other failures are OSErrors, which
`naming_errors` converts to `StagingUnavailable`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from lockstep.crash import CrashPoint, reach
from lockstep.errors import StagingRefused, StagingUnavailable


class Kind(StrEnum):
    """Kind of a folder's entry."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "symbolic link"
    OTHER = "special file"


@dataclass(frozen=True, order=True)
class Entry:
    """One entry of a folder; `path` is relative to the root."""

    path: str
    kind: Kind

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Stamp:
    """A file in a listing. `etag` changes with every write; None if the storage has none."""

    size: int
    etag: str | None


class ReadableFile(Protocol):
    """An open file with complete reads, like Python's buffered and Arrow's native files."""

    def read(self, size: int = -1, /) -> bytes: ...

    def seek(self, offset: int, whence: int = 0, /) -> Any: ...

    def tell(self) -> int: ...

    def close(self) -> None: ...


class Storage(Protocol):
    """The file operations of `Staging`. Each raises OSError, or `StagingRefused` for a path outside the root."""

    options: str  #: options of the URI, such as `endpoint_override=…`; free of secrets

    removes_empty_only: bool  #: whether `remove_folder` checks and removes atomically
    shows_files_whole: bool  #: whether polling is cheap, and visible files are complete
    etags_prove: bool  #: whether equal etags prove equal bytes

    def uri_of(self, path: str) -> str:
        """Absolute URI of `path` for Hadoop: not percent-encoded, without secrets."""

    def exists(self, path: str) -> bool: ...

    def free_bytes(self) -> int | None:
        """Free bytes; None if unknown."""

    def children(self, folder: str) -> list[Entry]:
        """Entries of `folder`, sorted."""

    def stamps(self, folder: str) -> dict[str, Stamp]:
        """Files in `folder` by name."""

    def stamp(self, path: str) -> Stamp:
        """One file. Raises FileNotFoundError."""

    def make_folder(self, path: str) -> None:
        """Create `path` and its parents, exclusively and durably. Raises FileExistsError."""

    def create(self, path: str, data: bytes) -> None:
        """Write a small file atomically, exclusively and durably. Raises FileExistsError."""

    def put(self, path: str, data: bytes) -> None:
        """Write a new file and its parents atomically; not durable before `sync`. Raises FileExistsError."""

    def replace(self, path: str, data: bytes) -> None:
        """Write a small file and its parents atomically and durably, replacing an existing one."""

    def move(self, source: str, target: str) -> None:
        """Move a file durably, replacing an existing one; creates the target's parents."""

    def open(self, path: str, fresh: bool = False) -> ReadableFile:
        """Open a file; `fresh` bypasses caches where possible."""

    def delete(self, path: str) -> None:
        """Delete a file, or a link itself."""

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder. Raises OSError with ENOTEMPTY."""

    def sync(self, path: str) -> None:
        """Make a file's content, or a folder's entries, durable. '' is the root."""


@contextmanager
def naming_errors(doing: str, path: str) -> Iterator[None]:
    """Convert every OSError to `StagingUnavailable`: the file system does not say which errors are permanent."""
    try:
        yield
    except OSError as error:
        raise StagingUnavailable(f"staging can't {doing} {path or 'its root'}: {error.strerror or error}") from error


def plain_children(storage: Storage, folder: str) -> list[Entry]:
    """Files and folders in `folder`. Raises `StagingRefused` for anything else, such as a link."""
    entries = storage.children(folder)
    for entry in entries:
        if entry.kind in (Kind.LINK, Kind.OTHER):
            raise StagingRefused(f"{entry.path} is a {entry.kind}; Lockstep follows and deletes none: remove it")
    return entries


def is_hidden(entry: Entry) -> bool:
    """Whether Hadoop's readers skip the entry: _SUCCESS, _temporary, checksums, requests."""
    return entry.name.startswith(("_", "."))


def is_wal_file(name: str) -> bool:
    return name.endswith(".parquet") and not name.startswith(("_", "."))


def finished_files(storage: Storage, folder: str, min_bytes: int) -> list[str]:
    """Parquet files of at least `min_bytes` that a job, possibly still running, has moved into `folder`."""
    files = [entry for entry in storage.children(folder) if entry.kind is Kind.FILE and not is_hidden(entry)]
    return [
        entry.path for entry in files if entry.name.endswith(".parquet") and _size(storage, entry.path) >= min_bytes
    ]


def _size(storage: Storage, path: str) -> int:
    with closing(storage.open(path)) as file:
        return int(file.seek(0, io.SEEK_END) or file.tell())


def tree(storage: Storage, folder: str) -> list[Entry]:
    """All entries below `folder`, each folder after its content. Raises as `plain_children`."""
    entries = []
    for entry in plain_children(storage, folder):
        if entry.kind is Kind.FOLDER:
            with suppress(FileNotFoundError):  # concurrent deletion
                entries += tree(storage, entry.path)
        entries.append(entry)
    return entries


def parts_of(path: str) -> list[str]:
    """Names along `path`. Raises `StagingRefused` if it leads out of the root."""
    parts = path.split("/") if path else []
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise StagingRefused(f"path {path!r} leads out of staging")
    return parts


def join(folder: str, name: str) -> str:
    """`name` inside `folder`; '' is the root."""
    return f"{folder}/{name}" if folder else name


def delete_folder(storage: Storage, folder: str, before: CrashPoint, after: CrashPoint) -> None:
    """Delete `folder` and its content, with crash points around each step; already deleted parts are fine.

    Raises `StagingRefused`, before anything is deleted, for a link; OSError (ENOTEMPTY) if files are added meanwhile.
    """
    with suppress(FileNotFoundError):
        for entry in tree(storage, folder):
            delete_entry(storage, entry.path, entry.kind, before, after)
        delete_entry(storage, folder, Kind.FOLDER, before, after)


def delete_entry(storage: Storage, path: str, kind: Kind, before: CrashPoint, after: CrashPoint) -> None:
    """Delete a file or an empty folder between two crash points; fine if it is already deleted."""
    reach(before)
    with suppress(FileNotFoundError):
        if kind is Kind.FOLDER:
            storage.remove_folder(path)
        else:
            storage.delete(path)
    reach(after)


def remove_empty_folder(storage: Storage, folder: str, *, over: bool) -> None:
    """Remove an epoch's folder if it is empty, and make deletions durable.

    `over`: nothing will be written there again. Otherwise an object store, which can't remove a folder only if it is
    empty, keeps it.
    """
    with suppress(FileNotFoundError):
        storage.sync(folder)
        if (over or storage.removes_empty_only) and not storage.children(folder):
            storage.remove_folder(folder)
            storage.sync(folder.rpartition("/")[0])


def move_files(storage: Storage, source: str, target: str) -> None:
    """Move all files below `source` to `target`, replacing files of an earlier attempt.

    On return every file has been moved, by this call or a concurrent one.
    """
    entries: list[Entry] = []
    with suppress(FileNotFoundError):
        entries = tree(storage, source)
    for entry in entries:
        if entry.kind is Kind.FILE:
            with suppress(FileNotFoundError):  # moved by a concurrent cleanup
                storage.move(entry.path, target + entry.path.removeprefix(source))
