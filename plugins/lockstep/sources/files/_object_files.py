"""Files on an object store. A file is its key: nothing links to it, and it is replaced as a whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

from lockstep.connections.object_store.address import Address
from lockstep.connections.object_store.store import Found, ObjectStore
from lockstep.errors import SourceNotReady, StoreRefused
from lockstep.sources.files._file_system import Entry
from lockstep.sources.files._frozen_file import FrozenFile

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
        self._listed: dict[str, Found] = {}

    def place(self, path: str) -> str:
        prefix = Address.of(path).prefix
        return f"{self._root}/{prefix}" if prefix else self._root

    def entries(self, folder: str) -> Iterator[Entry]:
        listed = self._store.children(self._key(folder))
        self._listed |= {found.path: found for found in listed.objects}
        yield from (_InFolder(self._path(key), is_folder=True) for key in listed.folders)
        yield from (_InFolder(self._path(found.path), is_folder=False) for found in listed.objects)

    def at(self, path: str) -> Iterator[Entry]:
        key = self._key(path)
        if key and (found := self._store.find(key)) is not None:
            self._listed[key] = found
            yield _InFolder(path, is_folder=False)
        if self._store.has_folder(key):
            yield _InFolder(path, is_folder=True)

    def facts(self, path: str, name: str | None = None) -> FrozenFile:
        listed = self._listed.get(self._key(path))
        return _frozen(path, listed, name) if listed else self.facts_now(path, name=name)

    def facts_now(self, path: str, *, hashed: bool = False, name: str | None = None) -> FrozenFile:
        try:
            found = self._store.find(self._key(path))
            if found is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return _frozen(path, found, name, self._sha256(found) if hashed else None)
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

    def _sha256(self, found: Found) -> str:
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


def _frozen(path: str, found: Found, name: str | None, sha256: str | None = None) -> FrozenFile:
    """To the second: of its parts some answers tell more than others."""
    seconds = int(found.modified.timestamp()) if found.modified else 0
    known_as = name if name != path else None
    return FrozenFile(seconds * _SECOND, path, found.size, sha256, known_as, etag=found.etag)
