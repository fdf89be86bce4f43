"""Where files are listed and looked at: the one seam between a FileSource and what its path leads to."""

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
from lockstep.connections.hdfs.file_system import Found as HdfsEntry
from lockstep.connections.hdfs.file_system import HdfsFileSystem
from lockstep.connections.home import absolute
from lockstep.connections.object_store.address import SCHEMES, Address, is_object_store
from lockstep.connections.object_store.store import Found as StoredObject
from lockstep.connections.object_store.store import ObjectStore
from lockstep.errors import InvalidPipeline, SourceNotReady, StoreRefused
from lockstep.sources.files.frozen import FrozenFile


class FolderEntry(Protocol):
    """One name in a folder, as `os.scandir` gives it. Both questions may raise OSError."""

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> str: ...

    def is_dir(self) -> bool: ...

    def is_file(self) -> bool: ...


class FileSystem(Protocol):
    """Paths are absolute, with '/' between names; of anything but mounted folders they begin with a scheme.

    What isn't there is nothing. What can't be looked at may be anything: that is an OSError.
    """

    #: whether a file or folder may have several names, by links and mounts: `Places` then asks the local system for the
    #: true one, by `os`; where it can't, a file's path is its name
    has_links: bool
    looks_at_once: int  #: how many calls of `facts_now` go side by side; each may be a request

    def place(self, path: str) -> str:
        """A source's path, or a pattern, as this file system's own paths are: absolute, without options."""

    def entries(self, folder: str) -> Iterator[FolderEntry]:
        """What stands directly in `folder`, in no order."""

    def at(self, path: str) -> Iterator[FolderEntry]:
        """What stands under this very name: a file or a folder, on an object store perhaps both."""

    def facts(self, path: str, name: str | None = None) -> FrozenFile:
        """The file, as the listing that found it told, where it did. `name`: by which it is claimed.

        Raises `SourceNotReady` if it is gone, or can't be looked at.
        """

    def facts_now(self, path: str, *, hashed: bool = False, name: str | None = None) -> FrozenFile:
        """The file as it is now, with `hashed` also its sha256. Raises as `facts`."""

    def open(self, path: str) -> BinaryIO:
        """The file's bytes, from any place on. Raises OSError."""

    def spark_uri(self, path: str) -> str:
        """What Spark calls it: not percent-encoded."""


class LocalFiles:
    """See `FileSystem` for what each call means."""

    has_links = True
    looks_at_once = 1

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
            os.lstat(path)  # os.path.lexists says no of what it may not look at, too
        except (FileNotFoundError, NotADirectoryError):
            return
        yield _Named(path)

    def facts(self, path: str, name: str | None = None) -> FrozenFile:
        return FrozenFile.of(path, name=name)

    def facts_now(self, path: str, *, hashed: bool = False, name: str | None = None) -> FrozenFile:
        return FrozenFile.of(path, hashed=hashed, name=name)

    def open(self, path: str) -> BinaryIO:
        return Path(path).open("rb")

    def spark_uri(self, path: str) -> str:
        return f"file://{path}"


@dataclass(frozen=True)
class _Named:
    path: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def is_dir(self) -> bool:
        return os.path.isdir(self.path)  # noqa: PTH112

    def is_file(self) -> bool:
        """Anything else: whoever looks at it is told what is wrong with it."""
        return not self.is_dir()


class HdfsFiles:
    """The files of clusters; see `FileSystem` for what each call means.

    What a listing told is kept for as long as this lives, so that a file that is found needs no request of its own.
    """

    has_links = False
    looks_at_once = 8

    def __init__(self, uri: str) -> None:
        """`uri`: a source's path. Raises `StoreRefused`. Which cluster `hdfs:///` is on, only `place` asks: where the
        epoch is planned, and the plan keeps it."""
        HdfsAddress.require(uri)
        self._listed: dict[str, HdfsEntry] = {}
        self._clusters: dict[str, HdfsFileSystem] = {}

    def place(self, path: str) -> str:
        return HdfsAddress.of(path).uri

    def entries(self, folder: str) -> Iterator[FolderEntry]:
        cluster, path = self._find(folder)
        with suppress(FileNotFoundError, NotADirectoryError):
            for found in cluster.children(path):
                yield self._entry(cluster, found)

    def at(self, path: str) -> Iterator[FolderEntry]:
        cluster, where = self._find(path)
        with suppress(NotADirectoryError):
            if found := cluster.find(where):
                yield self._entry(cluster, found)

    def facts(self, path: str, name: str | None = None) -> FrozenFile:
        listed = self._listed.get(path)
        return _frozen_file(path, listed, name) if listed else self.facts_now(path, name=name)

    def facts_now(self, path: str, *, hashed: bool = False, name: str | None = None) -> FrozenFile:
        try:
            cluster, where = self._find(path)
            found = cluster.find(where)
            if found is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return _frozen_file(path, found, name, _sha256(cluster, found) if hashed else None)
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

    def _entry(self, cluster: HdfsFileSystem, found: HdfsEntry) -> FolderEntry:
        entry = _Status(HdfsAddress(cluster.name, found.path).uri, found)
        if not found.is_folder:
            self._listed[entry.path] = found
        return entry


def _sha256(cluster: HdfsFileSystem, found: HdfsEntry) -> str:
    with cluster.open(found.path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class _Status:
    path: str
    found: HdfsEntry

    @property
    def name(self) -> str:
        return self.found.name

    def is_dir(self) -> bool:
        return self.found.is_folder

    def is_file(self) -> bool:
        return not self.found.is_folder


def _frozen_file(path: str, found: HdfsEntry, name: str | None, sha256: str | None = None) -> FrozenFile:
    return FrozenFile(found.mtime_ns, path, found.size, sha256, name if name != path else None)


_SECOND = 1_000_000_000
_WILDCARDS = frozenset("*?[")


class ObjectFiles:
    """The objects of one container; see `FileSystem` for what each call means.

    What a listing told is kept for as long as this lives, so that a file that is found needs no request of its own.
    """

    has_links = False
    looks_at_once = 16

    def __init__(self, uri: str) -> None:
        """`uri`: a source's path, whose options say how the store is reached. Raises `StoreRefused`."""
        self._address = Address.of(uri)
        if _WILDCARDS & set(self._address.container) or {"", ".", ".."} & set(self._address.prefix.split("/")[:-1]):
            raise StoreRefused(
                f"{self._address.uri} has a wildcard for its bucket, or a folder without a name: Spark can't read it"
            )
        self._root = f"{self._address.scheme}://{self._address.container}"
        self._listed: dict[str, StoredObject] = {}

    def place(self, path: str) -> str:
        prefix = Address.of(path).prefix
        return f"{self._root}/{prefix}" if prefix else self._root

    def entries(self, folder: str) -> Iterator[FolderEntry]:
        listed = self._store.children(self._key(folder))
        self._listed |= {found.path: found for found in listed.objects}
        yield from (_InFolder(self._path(key), is_folder=True) for key in listed.folders)
        yield from (_InFolder(self._path(found.path), is_folder=False) for found in listed.objects)

    def at(self, path: str) -> Iterator[FolderEntry]:
        key = self._key(path)
        if key and (found := self._store.find(key)) is not None:
            self._listed[key] = found
            yield _InFolder(path, is_folder=False)
        if self._store.has_folder(key):
            yield _InFolder(path, is_folder=True)

    def facts(self, path: str, name: str | None = None) -> FrozenFile:
        listed = self._listed.get(self._key(path))
        return _frozen_object(path, listed, name) if listed else self.facts_now(path, name=name)

    def facts_now(self, path: str, *, hashed: bool = False, name: str | None = None) -> FrozenFile:
        try:
            found = self._store.find(self._key(path))
            if found is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return _frozen_object(path, found, name, self._sha256(found) if hashed else None)
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

    def _sha256(self, found: StoredObject) -> str:
        with closing(self._store.open(found.path, found.etag)) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class _InFolder:
    path: str
    is_folder: bool

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def is_dir(self) -> bool:
        return self.is_folder

    def is_file(self) -> bool:
        return not self.is_folder


def _frozen_object(path: str, found: StoredObject, name: str | None, sha256: str | None = None) -> FrozenFile:
    """To the second: of its parts some answers tell more than others."""
    seconds = int(found.modified.timestamp()) if found.modified else 0
    known_as = name if name != path else None
    return FrozenFile(seconds * _SECOND, path, found.size, sha256, known_as, etag=found.etag)


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def is_mounted(path: str) -> bool:
    """Whether it leads to a mounted file system."""
    return _SCHEME.match(path) is None


def file_system_of(path: str) -> FileSystem:
    """What lists and looks at the files of a source's path. Asks nothing of it yet.

    Raises `InvalidPipeline`, without the path if that may hold a secret.
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
        f"{', '.join(f'{known}://' for known in (*SCHEMES, HDFS))}"
    )
