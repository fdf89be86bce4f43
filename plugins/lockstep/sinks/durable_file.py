"""Files that survive a crash entirely or not at all: written once, fsynced, created exclusively, checked when read."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from lockstep.epoch import Json

SYNCS = 8  #: concurrent fsyncs
_CHUNK = 1 << 20  # bytes


class Damaged(ValueError):
    """A file differs from what was written: truncated, altered, or of another kind."""


class HashedFile:
    """A new file, hashed while it is written; it must not exist before. Raises OSError."""

    closed = False  # read by pyarrow; the file stays open until `finish` or `release`

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o666)
        self.path = path
        self._file = os.fdopen(descriptor, "wb", _CHUNK)
        self._digest = hashlib.sha256()
        self.size = 0  #: bytes

    def write(self, data: bytes) -> int:
        """Append `data`."""
        self._digest.update(data)
        self._file.write(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        """Bytes written so far."""
        return self.size

    def flush(self) -> None:
        """Does nothing: `finish` makes the file durable."""

    def close(self) -> None:
        """Does nothing: `finish` and `release` close the file."""

    def finish(self, *, sync: bool = True) -> str:
        """Make it durable, close it and return its sha256, 64 hex digits. Its folder isn't fsynced. `sync=False`:
        without fsync."""
        with self._file as file:
            file.flush()
            if sync:
                os.fsync(file.fileno())
        return self._digest.hexdigest()

    def release(self) -> None:
        """Close it, if it is open, without making it durable."""
        with suppress(OSError):  # the buffer is discarded
            self._file.close()


def write_new(path: Path, data: bytes) -> None:
    """Write and fsync a file that must not exist; its folder isn't fsynced. Raises OSError."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def link_new(source: Path, target: Path) -> bool:
    """Link `source` to `target` atomically; False if `target` exists. Raises OSError.

    A hard link never replaces a file, unlike a rename.
    """
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        return False
    return True


def create_atomically(path: Path, data: bytes, folder: Path) -> bool:
    """Create `path` atomically and durably, by way of a file in `folder`; False if it exists. Raises OSError."""
    return create_from_draft(folder / f"{path.name}~{secrets.token_hex(4)}", path, data)


def create_from_draft(draft: Path, path: Path, data: bytes) -> bool:
    """Create `path` like `create_atomically`, by way of `draft`, a new file in the same file system."""
    write_new(draft, data)
    try:
        created = link_new(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)
    return created


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folders(paths: Collection[Path]) -> None:
    """Make the names in several folders durable, concurrently: a journal writes them at once. Raises OSError."""
    if len(paths) < 2:
        for path in paths:
            sync_folder(path)
        return
    with ThreadPoolExecutor(SYNCS) as pool:
        for done in [pool.submit(sync_folder, path) for path in paths]:
            done.result()


def sha256_of(path: Path) -> str:
    """64 hex digits of a file's content; symlinks aren't followed. Raises OSError."""
    digest = hashlib.sha256()
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def to_checked(content: dict[str, Json]) -> bytes:
    """JSON that carries the sha256 of itself under `checksum`."""
    return json.dumps({**content, "checksum": _checksum(content)}, indent=1, sort_keys=True).encode()


def from_checked(data: bytes) -> dict[str, Json]:
    """Decode JSON made by `to_checked`. Raises `Damaged`."""
    try:
        content = json.loads(data)
        checksum = content.pop("checksum")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise Damaged("it isn't JSON with a checksum") from error
    if checksum != _checksum(content):
        raise Damaged("its content doesn't match its checksum")
    return dict(content)


def _checksum(content: dict[str, Json]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
