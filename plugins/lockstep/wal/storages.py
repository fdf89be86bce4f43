"""Storage on a local or mounted file system, on an object store and on HDFS, chosen by URI.

Local: every change is fsynced before the call returns. Object store: conditional puts create an object only once.
HDFS: the NameNode creates and renames atomically, only if the name is free.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lockstep.connections.hdfs.address import HdfsAddress, is_hdfs
from lockstep.connections.hdfs.file_system import HdfsEntry, HdfsFileSystem
from lockstep.connections.object_store.address import is_object_store
from lockstep.connections.object_store.store import ObjectStore
from lockstep.errors import StagingRefused, StoreRefused
from lockstep.wal._storage import Entry, Kind, ReadableFile, Stamp, Storage, join, parts_of


class LocalStorage:
    """A folder of a local or mounted file system, with fsync. Requires hard links."""

    removes_empty_only = True
    shows_files_whole = True
    etags_prove = False  # two writes within one clock tick have the same time

    def __init__(self, root: Path) -> None:
        self._root = root
        self.options = ""

    def uri_of(self, path: str) -> str:
        return f"file://{self._locate(path)}"

    def exists(self, path: str) -> bool:
        return os.path.lexists(self._locate(path))

    def free_bytes(self) -> int | None:
        statistics = os.statvfs(self._root)
        return statistics.f_bavail * statistics.f_frsize

    def children(self, folder: str) -> list[Entry]:
        with os.scandir(self._locate(folder)) as entries:
            return sorted(Entry(join(folder, entry.name), _kind(entry)) for entry in entries)

    def stamps(self, folder: str) -> dict[str, Stamp]:
        stamps = {}
        with os.scandir(self._locate(folder)) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    with suppress(FileNotFoundError):  # a temporary file of another process
                        stamps[entry.name] = _stamp(entry.stat())
        return stamps

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
            os.link(draft, target)  # a rename would replace an existing file
        _sync(target.parent)

    def put(self, path: str, data: bytes) -> None:
        target = self._locate(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        try:
            with draft.open("xb") as file:
                file.write(data)
            os.link(draft, target)  # visible only when complete
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
        """Absolute path of `path`. Raises `StagingRefused` if a parent is a link."""
        location = self._root
        for part in parts_of(path):
            location = location / part
            with suppress(FileNotFoundError, NotADirectoryError):
                if stat.S_ISLNK(location.lstat().st_mode):
                    raise StagingRefused(f"{path}: {part} is a symbolic link; Lockstep follows none inside staging")
        return location


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return Kind.LINK
    if entry.is_dir(follow_symlinks=False):
        return Kind.FOLDER
    return Kind.FILE if entry.is_file(follow_symlinks=False) else Kind.OTHER


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_size, f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_ctime_ns:x}")


def _make_parents(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_parents(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync(folder.parent)


@contextmanager
def _draft(target: Path, data: bytes) -> Iterator[Path]:
    """A durable temporary file with `data` in the folder of `target`; deleted at the end unless renamed."""
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


_FOLDER = ".folder"  #: marker object of a folder, created conditionally


class ObjectStorage:
    """Objects are complete and durable once they are put; `sync` does nothing.

    A folder exists while an object is below it. `make_folder` creates a marker object, which `children` omits and
    `remove_folder` deletes.
    """

    removes_empty_only = False
    shows_files_whole = False
    etags_prove = True

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.options = store.address.query

    @classmethod
    def at(cls, uri: str) -> ObjectStorage:
        """Storage for a URI. Raises `StoreRefused` for a malformed URI or one with a secret, `PackageMissing`."""
        return cls(ObjectStore.at(uri))

    def uri_of(self, path: str) -> str:
        return self._store.uri_of(_checked(path))

    def exists(self, path: str) -> bool:
        path = _checked(path)
        return (bool(path) and self._store.find(path) is not None) or self._store.has_folder(path)

    def free_bytes(self) -> int | None:
        return None

    def children(self, folder: str) -> list[Entry]:
        listed = self._store.children(_checked(folder))
        # some servers still list emptied folders
        folders = [Entry(path, Kind.FOLDER) for path in listed.folders if self._store.has_folder(path)]
        files = [Entry(item.path, Kind.FILE) for item in listed.objects if item.path != join(folder, _FOLDER)]
        if not folders and not listed.objects and not listed.marked:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
        return sorted([*folders, *files])

    def stamps(self, folder: str) -> dict[str, Stamp]:
        listed = self._store.children(_checked(folder)).objects
        return {item.path.rpartition("/")[2]: Stamp(item.size, item.etag) for item in listed}

    def stamp(self, path: str) -> Stamp:
        item = self._store.find(_checked(path))
        if item is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return Stamp(item.size, item.etag)

    def make_folder(self, path: str) -> None:
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self._store.create(join(path, _FOLDER), secrets.token_bytes(16))
        self._store.require_exclusive(join(path, _FOLDER))

    def create(self, path: str, data: bytes) -> None:
        self._store.create(_checked(path), data)

    def put(self, path: str, data: bytes) -> None:
        self._store.create(_checked(path), data)

    def replace(self, path: str, data: bytes) -> None:
        self._store.replace(_checked(path), data)

    def move(self, source: str, target: str) -> None:
        self._store.copy(_checked(source), _checked(target))
        self._store.delete([source])

    def open(self, path: str, fresh: bool = False) -> ReadableFile:
        return self._store.open(_checked(path))

    def delete(self, path: str) -> None:
        self._store.delete([_checked(path)])

    def remove_folder(self, path: str) -> None:
        if self.children(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        self._store.delete([join(path, _FOLDER)])
        if self._store.children(path).marked:
            self._store.delete_mark(path)

    def sync(self, path: str) -> None:
        """Objects are durable already."""


def _checked(path: str) -> str:
    parts_of(path)
    return path


class HdfsStorage:
    """Files created here are synced to the DataNodes' disks. Files that Spark closes are only with
    `dfs.datanode.synconclose`: see docs/hdfs.md."""

    removes_empty_only = True
    shows_files_whole = False
    etags_prove = False  # two writes within a millisecond have the same time

    def __init__(self, files: HdfsFileSystem, address: HdfsAddress) -> None:
        self._files, self._address = files, address
        self.options = ""

    @classmethod
    def at(cls, uri: str) -> HdfsStorage:
        """Storage for a URI. Raises `StoreRefused` for a malformed URI, `PackageMissing`."""
        if "?" in uri or "#" in uri:
            raise StoreRefused(f"{uri.partition('?')[0]!r}: an address of HDFS takes no options; see docs/hdfs.md")
        address = HdfsAddress.of(uri)
        return cls(HdfsFileSystem.at(address), address)

    def uri_of(self, path: str) -> str:
        return HdfsAddress(self._address.cluster, self._locate(path)).uri

    def exists(self, path: str) -> bool:
        return self._files.find(self._locate(path)) is not None

    def children(self, folder: str) -> list[Entry]:
        listed = self._files.children(self._locate(folder))
        return sorted(Entry(join(folder, item.name), Kind.FOLDER if item.is_folder else Kind.FILE) for item in listed)

    def free_bytes(self) -> int | None:
        return None

    def stamps(self, folder: str) -> dict[str, Stamp]:
        listed = self._files.children(self._locate(folder))
        return {item.name: _hdfs_stamp(item) for item in listed if not item.is_folder}

    def stamp(self, path: str) -> Stamp:
        item = self._files.find(self._locate(path))
        if item is None or item.is_folder:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return _hdfs_stamp(item)

    def make_folder(self, path: str) -> None:
        target = self._locate(path)
        self._make_parent(target)
        self._files.create_folder(target, self._locate(f".folder~{secrets.token_hex(8)}"))

    def create(self, path: str, data: bytes) -> None:
        self._files.create(self._locate(path), data)

    def put(self, path: str, data: bytes) -> None:
        target = self._locate(path)
        self._make_parent(target)
        self._files.create(target, data)

    def replace(self, path: str, data: bytes) -> None:
        target = self._locate(path)
        self._make_parent(target)
        self._files.replace(target, data)

    def move(self, source: str, target: str) -> None:
        there = self._locate(target)
        self._make_parent(there)
        self._files.move(self._locate(source), there)

    def open(self, path: str, fresh: bool = False) -> ReadableFile:
        return self._files.open(self._locate(path))

    def delete(self, path: str) -> None:
        if not self._files.delete_empty(self._locate(path)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def remove_folder(self, path: str) -> None:
        if not self._files.delete_empty(self._locate(path)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def sync(self, path: str) -> None:
        """Names are durable once the NameNode has answered."""

    def _locate(self, path: str) -> str:
        return "/".join([self._address.path.rstrip("/"), *parts_of(path)]) or "/"

    def _make_parent(self, target: str) -> None:
        self._files.make_folder(target.rpartition("/")[0] or "/")


def _hdfs_stamp(item: HdfsEntry) -> Stamp:
    return Stamp(item.size, f"{item.mtime_ns:x}")


_EXPECTED = "expected /… , file:///… , s3://… or hdfs://…"


def storage_at(uri: str) -> Storage:
    """Storage for a URI or absolute path. Raises `StagingRefused` for a malformed URI or one with credentials."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # the error may contain part of a credential
        raise StagingRefused(f"the staging URI can't be understood; {_EXPECTED}") from None
    if parts.username or parts.password or (parts.scheme not in ("", "file") and "@" in uri):
        raise StagingRefused("the staging URI contains credentials: provide them through the environment")
    try:
        if is_object_store(uri):
            return ObjectStorage.at(uri)
        if is_hdfs(uri):
            return HdfsStorage.at(uri)
    except StoreRefused as error:
        raise StagingRefused(str(error)) from error
    path = Path(unquote(parts.path) if parts.scheme else uri)
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost") or not path.is_absolute():
        place = uri.partition("?")[0]  # the rest may contain a secret
        raise StagingRefused(f"staging {place!r} is no absolute path; {_EXPECTED}")
    return LocalStorage(path)
