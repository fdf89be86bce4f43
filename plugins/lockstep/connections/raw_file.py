"""Base of files that are read by ranges: size and position."""

from __future__ import annotations

import io


class RawFile(io.RawIOBase):
    """Readable from any place; a subclass reads from `_at` on, by `readinto` or `read`."""

    def __init__(self, size: int) -> None:
        self._size, self._at = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence] + offset
        return self._at
