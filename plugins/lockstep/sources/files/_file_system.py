"""Where files are listed and looked at: the one seam between a FileSource and what its path leads to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Protocol

from lockstep.sources.files._frozen_file import FrozenFile


class Entry(Protocol):
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

    def entries(self, folder: str) -> Iterator[Entry]:
        """What stands directly in `folder`, in no order."""

    def at(self, path: str) -> Iterator[Entry]:
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
