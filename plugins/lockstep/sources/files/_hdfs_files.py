"""Files on HDFS. A file is its path: nothing links to it."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

from lockstep.connections.hdfs.address import HdfsAddress
from lockstep.connections.hdfs.file_system import Found, HdfsFileSystem
from lockstep.errors import SourceNotReady
from lockstep.sources.files._file_system import Entry
from lockstep.sources.files._frozen_file import FrozenFile


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
        self._listed: dict[str, Found] = {}
        self._clusters: dict[str, HdfsFileSystem] = {}

    def place(self, path: str) -> str:
        return HdfsAddress.of(path).uri

    def entries(self, folder: str) -> Iterator[Entry]:
        cluster, path = self._find(folder)
        with suppress(FileNotFoundError, NotADirectoryError):
            for found in cluster.children(path):
                yield self._entry(cluster, found)

    def at(self, path: str) -> Iterator[Entry]:
        cluster, where = self._find(path)
        with suppress(NotADirectoryError):
            if found := cluster.find(where):
                yield self._entry(cluster, found)

    def facts(self, path: str, name: str | None = None) -> FrozenFile:
        listed = self._listed.get(path)
        return _frozen(path, listed, name) if listed else self.facts_now(path, name=name)

    def facts_now(self, path: str, *, hashed: bool = False, name: str | None = None) -> FrozenFile:
        try:
            cluster, where = self._find(path)
            found = cluster.find(where)
            if found is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return _frozen(path, found, name, _sha256(cluster, found) if hashed else None)
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

    def _entry(self, cluster: HdfsFileSystem, found: Found) -> Entry:
        entry = _Status(HdfsAddress(cluster.name, found.path).uri, found)
        if not found.is_folder:
            self._listed[entry.path] = found
        return entry


def _sha256(cluster: HdfsFileSystem, found: Found) -> str:
    with cluster.open(found.path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class _Status:
    path: str
    found: Found

    @property
    def name(self) -> str:
        return self.found.name

    def is_dir(self) -> bool:
        return self.found.is_folder

    def is_file(self) -> bool:
        return not self.found.is_folder


def _frozen(path: str, found: Found, name: str | None, sha256: str | None = None) -> FrozenFile:
    return FrozenFile(found.mtime_ns, path, found.size, sha256, name if name != path else None)
