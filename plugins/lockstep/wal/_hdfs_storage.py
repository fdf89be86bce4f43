"""Storage on HDFS: the NameNode creates and renames a name only if it is free, in one step that it logs first."""

from __future__ import annotations

import errno
import os
import secrets

from lockstep.connections.hdfs.address import HdfsAddress
from lockstep.connections.hdfs.file_system import Found, HdfsFileSystem
from lockstep.errors import StoreRefused
from lockstep.wal._storage import Entry, Kind, ReadableFile, Stamp, join, parts_of


class HdfsStorage:
    """What is created here is on the DataNodes' disks. What Spark writes and closes they bring there when they like,
    unless `dfs.datanode.synconclose` has them do it at once: see docs/hdfs.md."""

    removes_empty_only = True
    shows_files_whole = False
    etags_prove = False  # two writes within a millisecond have one time

    def __init__(self, files: HdfsFileSystem, address: HdfsAddress) -> None:
        self._files, self._address = files, address
        self.options = ""

    @classmethod
    def at(cls, uri: str) -> HdfsStorage:
        """Raises `StoreRefused` for a URI that isn't understood, `PackageMissing`."""
        if "?" in uri or "#" in uri:
            raise StoreRefused(f"{uri.partition('?')[0]!r}: an address of HDFS takes no options; see docs/hdfs.md")
        address = HdfsAddress.of(uri)
        return cls(HdfsFileSystem.at(address), address)

    def uri_of(self, path: str) -> str:
        return HdfsAddress(self._address.cluster, self._locate(path)).uri

    def exists(self, path: str) -> bool:
        return self._files.find(self._locate(path)) is not None

    def children(self, folder: str) -> list[Entry]:
        found = self._files.children(self._locate(folder))
        return sorted(Entry(join(folder, one.name), Kind.FOLDER if one.is_folder else Kind.FILE) for one in found)

    def free_bytes(self) -> int | None:
        return None

    def stamps(self, folder: str) -> dict[str, Stamp]:
        found = self._files.children(self._locate(folder))
        return {one.name: _stamp(one) for one in found if not one.is_folder}

    def stamp(self, path: str) -> Stamp:
        found = self._files.find(self._locate(path))
        if found is None or found.is_folder:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return _stamp(found)

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


def _stamp(found: Found) -> Stamp:
    return Stamp(found.size, f"{found.mtime_ns:x}")
