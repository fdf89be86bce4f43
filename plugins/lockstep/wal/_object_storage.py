"""Storage on an object store: what may exist once is put under a condition that the store checks."""

from __future__ import annotations

import errno
import os
import secrets

from lockstep.connections.object_store.store import ObjectStore
from lockstep.wal._storage import Entry, Kind, ReadableFile, Stamp, join, parts_of

_FOLDER = ".folder"  #: an object that makes a folder of ours exist, and whose condition makes it exist once


class ObjectStorage:
    """An object is whole and durable once it is put; nothing is to be synced.

    A folder is there as long as an object below it is. One that `make_folder` made has such an object of its own, which
    `children` leaves out and `remove_folder` deletes.
    """

    removes_empty_only = False
    shows_files_whole = False
    etags_prove = True

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.options = store.address.query

    @classmethod
    def at(cls, uri: str) -> ObjectStorage:
        """Raises `StoreRefused` for a URI that isn't understood or carries a secret, `PackageMissing`."""
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
        # some servers go on to list a folder when nothing is below it any more
        folders = [Entry(path, Kind.FOLDER) for path in listed.folders if self._store.has_folder(path)]
        files = [Entry(found.path, Kind.FILE) for found in listed.objects if found.path != join(folder, _FOLDER)]
        if not folders and not listed.objects and not listed.marked:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
        return sorted([*folders, *files])

    def stamps(self, folder: str) -> dict[str, Stamp]:
        listed = self._store.children(_checked(folder)).objects
        return {found.path.rpartition("/")[2]: Stamp(found.size, found.etag) for found in listed}

    def stamp(self, path: str) -> Stamp:
        found = self._store.find(_checked(path))
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return Stamp(found.size, found.etag)

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
        """What is put is durable."""


def _checked(path: str) -> str:
    parts_of(path)
    return path
