"""Files on a mounted file system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lockstep.connections.names import absolute
from lockstep.sources.files._file_system import Entry
from lockstep.sources.files._frozen_file import FrozenFile


class LocalFiles:
    """See `FileSystem` for what each call means."""

    has_links = True
    looks_at_once = 1

    def place(self, path: str) -> str:
        return absolute(path)

    def entries(self, folder: str) -> Iterator[Entry]:
        try:
            entries = os.scandir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        with entries:
            yield from entries

    def at(self, path: str) -> Iterator[Entry]:
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
