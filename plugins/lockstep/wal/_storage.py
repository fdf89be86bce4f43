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
    """What a name in a folder stands for."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "symbolic link"
    OTHER = "special file"


@dataclass(frozen=True, order=True)
class Entry:
    """One name in a folder; `path` is relative to the root."""

    path: str
    kind: Kind

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Stamp:
    """A file as a listing tells of it. `etag`: what the storage calls its bytes, None where it has no name for them; it
    is another one as soon as anything was written."""

    size: int
    etag: str | None


class ReadableFile(Protocol):
    """An open file: whole reads, like Python's buffered and Arrow's native files."""

    def read(self, size: int = -1, /) -> bytes: ...

    def seek(self, offset: int, whence: int = 0, /) -> Any: ...

    def tell(self) -> int: ...

    def close(self) -> None: ...


class Storage(Protocol):
    """What `Staging` stands on. Each call raises OSError, or `StagingRefused` for a path that leads elsewhere."""

    options: str  #: query of the URI by which it was found, such as `endpoint_override=…`; free of secrets

    removes_empty_only: bool  #: whether `remove_folder` looks and removes in one step
    shows_files_whole: bool  #: whether looking often costs nothing, and a file that a job shows is complete
    etags_prove: bool  #: whether bytes that have an etag can never be others, whoever does what

    def uri_of(self, path: str) -> str:
        """Absolute URI of `path` as Hadoop's file systems take it: not percent-encoded, free of secrets."""

    def exists(self, path: str) -> bool: ...

    def free_bytes(self) -> int | None:
        """What may still be written; None where nobody knows."""

    def children(self, folder: str) -> list[Entry]:
        """What stands in `folder`, sorted."""

    def stamps(self, folder: str) -> dict[str, Stamp]:
        """By its name, each file that stands in `folder`."""

    def stamp(self, path: str) -> Stamp:
        """Of one file. FileNotFoundError if it isn't there."""

    def make_folder(self, path: str) -> None:
        """Make `path`, with its parents, exclusively and durably. FileExistsError if it is there."""

    def create(self, path: str, data: bytes) -> None:
        """Write a small file whole, exclusively and durably. FileExistsError if it is there."""

    def put(self, path: str, data: bytes) -> None:
        """Write a new file whole, with its parents, that nothing relies on before `sync`. FileExistsError if it is
        there."""

    def replace(self, path: str, data: bytes) -> None:
        """Write a small file whole and durably, over whatever is there, with its parents."""

    def move(self, source: str, target: str) -> None:
        """Move a file durably, over whatever is there, making the target's parents."""

    def open(self, path: str, fresh: bool = False) -> ReadableFile:
        """Open a file; `fresh` asks for its bytes from the disk rather than from memory."""

    def delete(self, path: str) -> None:
        """Delete a file, or a link itself."""

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder. OSError with ENOTEMPTY if it isn't."""

    def sync(self, path: str) -> None:
        """Make a file's content, or a folder's entries, survive a power cut. '' is the root."""


@contextmanager
def naming_errors(doing: str, path: str) -> Iterator[None]:
    """Turn every OSError into `StagingUnavailable`: the file system doesn't say which of them would last."""
    try:
        yield
    except OSError as error:
        raise StagingUnavailable(f"staging can't {doing} {path or 'its root'}: {error.strerror or error}") from error


def plain_children(storage: Storage, folder: str) -> list[Entry]:
    """The files and folders in `folder`. `StagingRefused` if anything else, such as a link, is among them."""
    entries = storage.children(folder)
    for entry in entries:
        if entry.kind in (Kind.LINK, Kind.OTHER):
            raise StagingRefused(f"{entry.path} is a {entry.kind}; Lockstep follows and deletes none: remove it")
    return entries


def is_hidden(entry: Entry) -> bool:
    """_SUCCESS, _temporary, checksums, requests: what Hadoop's readers skip too."""
    return entry.name.startswith(("_", "."))


def is_wal_file(name: str) -> bool:
    return name.endswith(".parquet") and not name.startswith(("_", "."))


def finished_files(storage: Storage, folder: str, min_bytes: int) -> list[str]:
    """The Parquet files of at least so many bytes that a job, which may still run, has moved into `folder` so far."""
    files = [entry for entry in storage.children(folder) if entry.kind is Kind.FILE and not is_hidden(entry)]
    return [
        entry.path for entry in files if entry.name.endswith(".parquet") and _size(storage, entry.path) >= min_bytes
    ]


def _size(storage: Storage, path: str) -> int:
    with closing(storage.open(path)) as file:
        return int(file.seek(0, io.SEEK_END) or file.tell())


def tree(storage: Storage, folder: str) -> list[Entry]:
    """Everything under `folder`, each folder after what it holds. Raises as `plain_children` does."""
    entries = []
    for entry in plain_children(storage, folder):
        if entry.kind is Kind.FOLDER:
            with suppress(FileNotFoundError):  # somebody else deletes here too
                entries += tree(storage, entry.path)
        entries.append(entry)
    return entries


def parts_of(path: str) -> list[str]:
    """The names along `path`; `StagingRefused` for one that would lead out of the root."""
    parts = path.split("/") if path else []
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise StagingRefused(f"path {path!r} leads out of staging")
    return parts


def join(folder: str, name: str) -> str:
    """`name` inside `folder`; '' is the root."""
    return f"{folder}/{name}" if folder else name


def delete_folder(storage: Storage, folder: str, before: CrashPoint, after: CrashPoint) -> None:
    """Delete `folder` with all it holds, a crash point around each step; what is gone already is fine.

    Raises `StagingRefused`, with nothing deleted, if it holds a link; OSError (ENOTEMPTY) if somebody adds to it.
    """
    with suppress(FileNotFoundError):
        for entry in tree(storage, folder):
            delete_entry(storage, entry.path, entry.kind, before, after)
        delete_entry(storage, folder, Kind.FOLDER, before, after)


def delete_entry(storage: Storage, path: str, kind: Kind, before: CrashPoint, after: CrashPoint) -> None:
    """Delete a file or an empty folder, a crash point on either side; fine when it is gone already."""
    reach(before)
    with suppress(FileNotFoundError):
        if kind is Kind.FOLDER:
            storage.remove_folder(path)
        else:
            storage.delete(path)
    reach(after)


def remove_empty_folder(storage: Storage, folder: str, *, over: bool) -> None:
    """Remove an epoch's folder if nothing is left in it, and make what was deleted stay deleted.

    `over`: nothing of that epoch will ever be written there again. If something may be, an object store, which can't
    remove a folder only if it is empty, keeps it.
    """
    with suppress(FileNotFoundError):
        storage.sync(folder)
        if (over or storage.removes_empty_only) and not storage.children(folder):
            storage.remove_folder(folder)
            storage.sync(folder.rpartition("/")[0])


def move_files(storage: Storage, source: str, target: str) -> None:
    """Move each file below `source` to the same place below `target`, over what an earlier try left there.

    On return every file that was there has been moved, by this call or by another one at the same time.
    """
    entries: list[Entry] = []
    with suppress(FileNotFoundError):
        entries = tree(storage, source)
    for entry in entries:
        if entry.kind is Kind.FILE:
            with suppress(FileNotFoundError):  # another cleanup has moved it
                storage.move(entry.path, target + entry.path.removeprefix(source))
