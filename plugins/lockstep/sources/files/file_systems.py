"""File systems that a FileSource lists and reads, chosen by the scheme of its path."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Protocol

from lockstep.connections.hdfs.address import SCHEME as HDFS
from lockstep.connections.hdfs.address import HdfsAddress, is_hdfs
from lockstep.connections.hdfs.file_system import HdfsEntry, HdfsFileSystem
from lockstep.connections.names import absolute
from lockstep.connections.object_store.address import SCHEMES, Address, is_object_store
from lockstep.connections.object_store.store import ObjectStore, StoredObject
from lockstep.errors import InvalidPipeline, SourceNotReady, StoreRefused
from lockstep.sources.files.frozen import FrozenFile

_SECOND = 1_000_000_000
_WILDCARDS = frozenset("*?[")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class FolderEntry(Protocol):
    """An entry of a folder, like those of `os.scandir`. Both methods may raise OSError."""

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> str: ...

    def is_dir(self) -> bool: ...

    def is_file(self) -> bool: ...


class FileSystem(Protocol):
    """One kind of file system. Paths are absolute and separated by '/'; other than mounted ones begin with a scheme.

    A missing path is treated as empty. A path that can't be examined raises OSError, as it may contain anything.
    """

    #: whether a file or folder may have several names, by links and mounts, which `FileNames` resolves with `os`;
    #: elsewhere a file's path is its name
    has_links: bool
    parallel_calls: int  #: how many calls of `facts_now` run in parallel; each may be a request

    def place(self, path: str) -> str:
        """Return a source's path or pattern as an absolute path of this file system, without options."""

    def entries(self, folder: str) -> Iterator[FolderEntry]:
        """Yield the entries of `folder`, in no order."""

    def at(self, path: str) -> Iterator[FolderEntry]:
        """Yield the entries of exactly this path: a file or a folder, on an object store possibly both."""

    def facts(self, path: str, name: str | None = None) -> FrozenFile:
        """Return the file as the listing showed it, if it was listed. `name`: by which it is claimed.

        Raises `SourceNotReady` if it is missing or can't be examined.
        """

    def facts_now(self, path: str, *, hashed: bool = False, name: str | None = None) -> FrozenFile:
        """Return the file as it is now, with `hashed` including its sha256. Raises as `facts`."""

    def open(self, path: str) -> BinaryIO:
        """Open the file for random reads. Raises OSError."""

    def spark_uri(self, path: str) -> str:
        """Return the URI that Spark uses, not percent-encoded."""


@dataclass(frozen=True)
class _Entry:
    """A `FolderEntry`. Whatever isn't a folder counts as a file: reading it then raises a specific error."""

    path: str
    is_folder: bool

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def is_dir(self) -> bool:
        return self.is_folder

    def is_file(self) -> bool:
        return not self.is_folder


class LocalFiles:
    """Files on mounted file systems; see `FileSystem`."""

    has_links = True
    parallel_calls = 1

    def place(self, path: str) -> str:
        return absolute(path)

    def entries(self, folder: str) -> Iterator[FolderEntry]:
        try:
            entries = os.scandir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        with entries:
            yield from entries

    def at(self, path: str) -> Iterator[FolderEntry]:
        try:
            os.lstat(path)  # os.path.lexists also returns False if access is denied
        except (FileNotFoundError, NotADirectoryError):
            return
        yield _Entry(path, is_folder=os.path.isdir(path))  # noqa: PTH112

    def facts(self, path: str, name: str | None = None) -> FrozenFile:
        return FrozenFile.of(path, name=name)

    def facts_now(self, path: str, *, hashed: bool = False, name: str | None = None) -> FrozenFile:
        return FrozenFile.of(path, hashed=hashed, name=name)

    def open(self, path: str) -> BinaryIO:
        return Path(path).open("rb")

    def spark_uri(self, path: str) -> str:
        return f"file://{path}"


class HdfsFiles:
    """Files on HDFS clusters, where a file has only its path as name; see `FileSystem`.

    Listed entries are cached, so that a listed file needs no request of its own.
    """

    has_links = False
    parallel_calls = 8

    def __init__(self, uri: str) -> None:
        """Check a source's path. Raises `StoreRefused`. Only `place` resolves the cluster of `hdfs:///`."""
        HdfsAddress.require(uri)
        self._listed: dict[str, HdfsEntry] = {}
        self._clusters: dict[str, HdfsFileSystem] = {}

    def place(self, path: str) -> str:
        return HdfsAddress.of(path).uri

    def entries(self, folder: str) -> Iterator[FolderEntry]:
        cluster, path = self._find(folder)
        with suppress(FileNotFoundError, NotADirectoryError):
            for entry in cluster.children(path):
                yield self._entry(cluster, entry)

    def at(self, path: str) -> Iterator[FolderEntry]:
        cluster, where = self._find(path)
        with suppress(NotADirectoryError):
            if entry := cluster.find(where):
                yield self._entry(cluster, entry)

    def facts(self, path: str, name: str | None = None) -> FrozenFile:
        listed = self._listed.get(path)
        return _frozen_file(path, listed, name) if listed else self.facts_now(path, name=name)

    def facts_now(self, path: str, *, hashed: bool = False, name: str | None = None) -> FrozenFile:
        try:
            cluster, where = self._find(path)
            entry = cluster.find(where)
            if entry is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return _frozen_file(path, entry, name, _sha256(cluster, entry) if hashed else None)
        except OSError as error:
            raise SourceNotReady(f"input file {path} can't be read: {error.strerror}") from error

    def open(self, path: str) -> BinaryIO:
        cluster, where = self._find(path)
        return cluster.open(where)

    def spark_uri(self, path: str) -> str:
        return path

    def _find(self, uri: str) -> tuple[HdfsFileSystem, str]:
        address = HdfsAddress.of(uri)
        cluster = self._clusters.get(address.cluster)
        if cluster is None:
            cluster = self._clusters[address.cluster] = HdfsFileSystem.at(address)
        return cluster, address.path

    def _entry(self, cluster: HdfsFileSystem, entry: HdfsEntry) -> FolderEntry:
        uri = HdfsAddress(cluster.name, entry.path).uri
        if not entry.is_folder:
            self._listed[uri] = entry
        return _Entry(uri, entry.is_folder)


def _sha256(cluster: HdfsFileSystem, entry: HdfsEntry) -> str:
    with cluster.open(entry.path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _frozen_file(path: str, entry: HdfsEntry, name: str | None, sha256: str | None = None) -> FrozenFile:
    return FrozenFile(entry.mtime_ns, path, entry.size, sha256, name if name != path else None)


class ObjectFiles:
    """The objects of one container; see `FileSystem`. An object has only its key as name, and is replaced as a whole.

    Listed entries are cached, so that a listed object needs no request of its own.
    """

    has_links = False
    parallel_calls = 16

    def __init__(self, uri: str) -> None:
        """Parse a source's path, including the options for access to the store. Raises `StoreRefused`."""
        self._address = Address.of(uri)
        if _WILDCARDS & set(self._address.container) or {"", ".", ".."} & set(self._address.prefix.split("/")[:-1]):
            raise StoreRefused(
                f"{self._address.uri} has a wildcard in its bucket, or a folder without a name: Spark can't read it"
            )
        self._root = f"{self._address.scheme}://{self._address.container}"
        self._listed: dict[str, StoredObject] = {}

    def place(self, path: str) -> str:
        prefix = Address.of(path).prefix
        return f"{self._root}/{prefix}" if prefix else self._root

    def entries(self, folder: str) -> Iterator[FolderEntry]:
        listed = self._store.children(self._key(folder))
        self._listed |= {stored.path: stored for stored in listed.objects}
        yield from (_Entry(self._path(key), is_folder=True) for key in listed.folders)
        yield from (_Entry(self._path(stored.path), is_folder=False) for stored in listed.objects)

    def at(self, path: str) -> Iterator[FolderEntry]:
        key = self._key(path)
        if key and (stored := self._store.find(key)) is not None:
            self._listed[key] = stored
            yield _Entry(path, is_folder=False)
        if self._store.has_folder(key):
            yield _Entry(path, is_folder=True)

    def facts(self, path: str, name: str | None = None) -> FrozenFile:
        listed = self._listed.get(self._key(path))
        return _frozen_object(path, listed, name) if listed else self.facts_now(path, name=name)

    def facts_now(self, path: str, *, hashed: bool = False, name: str | None = None) -> FrozenFile:
        try:
            stored = self._store.find(self._key(path))
            if stored is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return _frozen_object(path, stored, name, self._sha256(stored) if hashed else None)
        except OSError as error:
            raise SourceNotReady(f"input file {path} can't be read: {error.strerror}") from error

    def open(self, path: str) -> BinaryIO:
        return self._store.open(self._key(path))

    def spark_uri(self, path: str) -> str:
        return f"{self._container.hadoop}/{self._key(path)}"

    @property
    def _container(self) -> Address:
        return Address(self._address.scheme, self._address.container, "", self._address.options)

    @cached_property
    def _store(self) -> ObjectStore:
        return ObjectStore.of(self._container)

    def _key(self, path: str) -> str:
        return path.removeprefix(self._root).strip("/")

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"

    def _sha256(self, stored: StoredObject) -> str:
        with closing(self._store.open(stored.path, stored.etag)) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def _frozen_object(path: str, stored: StoredObject, name: str | None, sha256: str | None = None) -> FrozenFile:
    """Return the object with its time in whole seconds: responses differ in their precision."""
    seconds = int(stored.modified.timestamp()) if stored.modified else 0
    known_as = name if name != path else None
    return FrozenFile(seconds * _SECOND, path, stored.size, sha256, known_as, etag=stored.etag)


def is_mounted(path: str) -> bool:
    """Return True if a path is on a mounted file system."""
    return _SCHEME.match(path) is None


def file_system_of(path: str) -> FileSystem:
    """Return the file system of a source's path, without accessing it.

    Raises `InvalidPipeline`, without the path if it may contain a secret.
    """
    if is_mounted(path):
        return LocalFiles()
    try:
        if is_object_store(path):
            return ObjectFiles(path)
        if is_hdfs(path):
            return HdfsFiles(path)
    except StoreRefused as error:
        raise InvalidPipeline(f"a source's path: {error}") from None
    scheme = path.partition(":")[0]
    raise InvalidPipeline(
        f"a source's path begins with {scheme}://; FileSource reads mounted folders, without a scheme, and "
        f"{', '.join(f'{prefix}://' for prefix in (*SCHEMES, HDFS))}"
    )
