"""Storage on a local or mounted file system: every change is fsynced before its call returns."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lockstep.errors import StagingRefused
from lockstep.wal._storage import Entry, Kind, ReadableFile, Stamp, join, parts_of


class LocalStorage:
    """A folder of a local or mounted file system, with fsync. Its file system must know hard links."""

    removes_empty_only = True
    shows_files_whole = True
    etags_prove = False  # two writes within one tick of its clock have one time

    def __init__(self, root: Path) -> None:
        self._root = root
        self.options = ""

    def uri_of(self, path: str) -> str:
        return f"file://{self._locate(path)}"

    def exists(self, path: str) -> bool:
        return os.path.lexists(self._locate(path))

    def free_bytes(self) -> int | None:
        found = os.statvfs(self._root)
        return found.f_bavail * found.f_frsize

    def children(self, folder: str) -> list[Entry]:
        with os.scandir(self._locate(folder)) as entries:
            return sorted(Entry(join(folder, entry.name), _kind(entry)) for entry in entries)

    def stamps(self, folder: str) -> dict[str, Stamp]:
        found = {}
        with os.scandir(self._locate(folder)) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    with suppress(FileNotFoundError):  # a draft of another process, which is linked and gone by now
                        found[entry.name] = _stamp(entry.stat())
        return found

    def stamp(self, path: str) -> Stamp:
        return _stamp(self._locate(path).lstat())

    def make_folder(self, path: str) -> None:
        target = self._locate(path)
        _make_parents(target.parent)
        target.mkdir()
        _sync(target.parent)

    def create(self, path: str, data: bytes) -> None:
        target = self._locate(path)
        with _draft(target, data) as draft:
            os.link(draft, target)  # a rename would take the place of a file that is there
        _sync(target.parent)

    def put(self, path: str, data: bytes) -> None:
        target = self._locate(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        try:
            with draft.open("xb") as file:
                file.write(data)
            os.link(draft, target)  # whole from the first look on
        finally:
            draft.unlink(missing_ok=True)

    def replace(self, path: str, data: bytes) -> None:
        target = self._locate(path)
        _make_parents(target.parent)
        with _draft(target, data) as draft:
            draft.replace(target)
        _sync(target.parent)

    def move(self, source: str, target: str) -> None:
        here, there = self._locate(source), self._locate(target)
        _make_parents(there.parent)
        _sync(here)
        here.replace(there)
        _sync(there.parent)

    def open(self, path: str, fresh: bool = False) -> ReadableFile:
        file = self._locate(path).open("rb")
        if fresh:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return file

    def delete(self, path: str) -> None:
        self._locate(path).unlink()

    def remove_folder(self, path: str) -> None:
        self._locate(path).rmdir()

    def sync(self, path: str) -> None:
        _sync(self._locate(path))

    def _locate(self, path: str) -> Path:
        """The absolute path of `path`, none of whose parts is a link."""
        found = self._root
        for part in parts_of(path):
            found = found / part
            with suppress(FileNotFoundError, NotADirectoryError):
                if stat.S_ISLNK(found.lstat().st_mode):
                    raise StagingRefused(f"{path}: {part} is a symbolic link; Lockstep follows none inside staging")
        return found


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return Kind.LINK
    if entry.is_dir(follow_symlinks=False):
        return Kind.FOLDER
    return Kind.FILE if entry.is_file(follow_symlinks=False) else Kind.OTHER


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_size, f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_ctime_ns:x}")


def _make_parents(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_parents(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync(folder.parent)


@contextmanager
def _draft(target: Path, data: bytes) -> Iterator[Path]:
    """A durable file with `data` beside `target`; gone at the end, unless it took the target's place."""
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with draft.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
