"""One object, read by ranges as Python reads a file."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from lockstep.connections.raw_file import RawFile

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

BLOCK = 4 << 20  #: bytes that one request asks for, unless more are wanted at once

Naming = Callable[[str], AbstractContextManager[None]]


def open_object(client: Client, path: str, etag: str | None, naming_errors: Naming) -> io.BufferedReader:
    """Every range comes from the object that was there at the opening. `naming_errors` makes OSErrors of the client's.

    What it holds of the first bytes comes with the request that finds it.
    """
    import obstore

    with naming_errors(path):
        options: Any = {"range": (0, BLOCK), **({"if_match": etag} if etag else {})}
        try:
            first = obstore.get(client, path, options=options)
            meta, content = first.meta, bytes(first.bytes())
        except obstore.exceptions.GenericError:  # an empty object has no range
            meta, content = obstore.head(client, path), b""
            if meta["size"]:
                raise
    return io.BufferedReader(_ObjectRanges(client, path, meta["size"], meta["e_tag"], content, naming_errors), BLOCK)


class _ObjectRanges(RawFile):
    def __init__(
        self, client: Client, path: str, size: int, etag: str | None, content: bytes, naming_errors: Naming
    ) -> None:
        """`content`: its first bytes."""
        super().__init__(size)
        self._client, self._path, self._etag = client, path, etag
        self._first, self._naming_errors = content, naming_errors

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._size)
        if end <= self._at:
            return 0
        if end <= len(self._first):
            data: Any = self._first[self._at : end]
        else:
            data = self._range(self._at, end)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _range(self, start: int, end: int) -> memoryview:
        import obstore

        options: Any = {"range": (start, end), **({"if_match": self._etag} if self._etag else {})}
        with self._naming_errors(self._path):
            return memoryview(obstore.get(self._client, self._path, options=options).bytes())
