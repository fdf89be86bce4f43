"""Where a Delta table is: in a folder, whose log has to be fsynced, or in an object store, which keeps what it took."""

from __future__ import annotations

import errno
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Protocol

from deltalake import DeltaTable

from lockstep.connections.object_store.address import Address, is_object_store
from lockstep.connections.object_store.client import endpoint_of, goes_by_profile, region_of
from lockstep.connections.object_store.store import ObjectStore, require_own_threads, what_store_said
from lockstep.errors import PreflightRefused, StoreRefused
from lockstep.sinks.durable_file import create_whole, sync_folder

_LOG = "_delta_log"
_ENTRY = re.compile(r"(\d{20})\.json")
_LATEST = datetime.max.replace(tzinfo=UTC)
_TRIALS = "_lockstep"  #: the folder of the table's that readers and VACUUM pass over


def log_entry(version: int) -> str:
    """Of the log, relative to the table's folder."""
    return f"{_LOG}/{version:020}.json"


class TablePlace(Protocol):
    """`uri`: as deltalake takes it, with `options`: how it gets there, free of secrets."""

    uri: str
    options: dict[str, str] | None

    def load(self) -> DeltaTable:
        """The table's newest state. Raises TableNotFoundError, DeltaError, OSError, `StoreRefused`."""

    def require_usable(self, sink: str) -> None:
        """Raises `PreflightRefused` where no table can be."""

    def require_exclusive(self, sink: str) -> None:
        """Try out whether one writer only can create a log entry. Raises `PreflightRefused`, OSError."""

    def modified(self, path: str) -> int:
        """Milliseconds since 1970 at which the file `path`, relative to the table, was written, or later."""

    def open(self, path: str) -> IO[bytes]:
        """A file below the table's folder. Raises OSError."""

    def create(self, path: str) -> AbstractContextManager[IO[bytes]]:
        """A new one, by a name that nobody has had; durable when the block ends. Raises OSError."""

    def log_entries(self) -> dict[int, datetime]:
        """When each entry of the log that is there was written, by its version. Raises OSError."""

    def append(self, version: int, entry: bytes) -> None:
        """Create an entry of the log, whole and durable. Raises FileExistsError if there is one, OSError."""

    def make_new_durable(self) -> None:
        """What leads to a table that was made just now. Raises OSError."""

    def make_log_durable(self) -> None:
        """All of the log: an entry that is lost hides every later one. Raises OSError."""

    def checkpoint(self, table: DeltaTable) -> None:
        """Make a checkpoint of the table, durably. Raises DeltaError, OSError."""

    def said(self, error: Exception) -> str:
        """What deltalake's error tells, in one line, without the trace of its own calls."""


class Folder:
    """Local, or mounted."""

    options: dict[str, str] | None = None

    def __init__(self, path: str) -> None:
        self.uri, self._root = path, Path(path)
        self._log = self._root / _LOG

    def load(self) -> DeltaTable:
        return DeltaTable(self.uri)

    def require_usable(self, sink: str) -> None:
        if self._root.exists() and not self._root.is_dir():
            raise PreflightRefused(f"sink {sink}: {self._root} is not a folder; give this sink another path")

    def require_exclusive(self, sink: str) -> None:
        """Every file system links a name once."""

    def modified(self, path: str) -> int:
        return int((self._root / path).stat().st_mtime * 1000)

    def open(self, path: str) -> IO[bytes]:
        return (self._root / path).open("rb")

    @contextmanager
    def create(self, path: str) -> Iterator[IO[bytes]]:
        target = self._root / path
        _make_folder(target.parent)
        with target.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        sync_folder(target.parent)

    def log_entries(self) -> dict[int, datetime]:
        found = {}
        for path in self._log.iterdir():
            if (entry := _ENTRY.fullmatch(path.name)) is not None:
                with suppress(FileNotFoundError):
                    found[int(entry[1])] = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return found

    def append(self, version: int, entry: bytes) -> None:
        if not create_whole(self._root / log_entry(version), entry, self._log):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), log_entry(version))

    def make_new_durable(self) -> None:
        with suppress(PermissionError):  # who may not read it has not made the table's folder
            sync_folder(self._root.parent)

    def make_log_durable(self) -> None:
        _sync_files(self._log.iterdir())
        for folder in (self._log, self._root):
            sync_folder(folder)

    def checkpoint(self, table: DeltaTable) -> None:
        table.create_checkpoint()
        _sync_files(path for path in self._log.iterdir() if "checkpoint" in path.name)
        sync_folder(self._log)

    def said(self, error: Exception) -> str:
        return _first_line(error)


class Bucket:
    """S3, reached as staging is: the login comes from the environment, the endpoint from the URI or there.

    What a put was answered to is durable.
    """

    def __init__(self, uri: str) -> None:
        self._uri, address = uri, Address.of(uri)
        self.uri = address.uri
        self.options: dict[str, str] | None = _options(address)

    def load(self) -> DeltaTable:
        require_own_threads()
        return DeltaTable(self.uri, storage_options=self.options)

    def require_usable(self, sink: str) -> None:
        """Nothing is there that could be no folder."""

    def require_exclusive(self, sink: str) -> None:
        try:
            ObjectStore.at(self._uri).require_conditional_put(_TRIALS)
        except StoreRefused as error:
            raise PreflightRefused(f"sink {sink}: {error}") from error

    def modified(self, path: str) -> int:
        return int(time.time() * 1000)  # nothing hangs on it

    def open(self, path: str) -> IO[bytes]:
        return ObjectStore.at(self._uri).open(path)

    @contextmanager
    def create(self, path: str) -> Iterator[IO[bytes]]:
        """By way of a file on the disk: an upload takes no more memory than its parts."""
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            ObjectStore.at(self._uri).upload(path, file)

    def log_entries(self) -> dict[int, datetime]:
        found = ObjectStore.at(self._uri).children(_LOG).objects
        named = ((_ENTRY.fullmatch(one.path.rpartition("/")[2]), one.modified or _LATEST) for one in found)
        return {int(entry[1]): modified for entry, modified in named if entry is not None}

    def append(self, version: int, entry: bytes) -> None:
        ObjectStore.at(self._uri).create(log_entry(version), entry)

    def make_new_durable(self) -> None: ...

    def make_log_durable(self) -> None: ...

    def checkpoint(self, table: DeltaTable) -> None:
        table.create_checkpoint()

    def said(self, error: Exception) -> str:
        return f"{_first_line(error)}{what_store_said(error)}"


def place_of(path: str) -> TablePlace:
    """Raises `StoreRefused`."""
    return Bucket(path) if is_object_store(path) else Folder(path)


def _options(address: Address) -> dict[str, str]:
    """deltalake takes the login from the environment. What is said here counts more than the environment, which might
    have it write its log by another way than conditional puts."""
    endpoint = endpoint_of(address)
    reached = {"aws_endpoint": endpoint, "aws_endpoint_url_s3": endpoint} if endpoint else {}
    return {
        **reached,
        **({"aws_force_credential_load": "true"} if goes_by_profile(os.environ) else {}),  # else profiles aren't read
        "aws_region": region_of(address),
        "aws_allow_http": str(bool(endpoint and endpoint.startswith("http://"))).lower(),
        "aws_conditional_put": "etag",
        "max_retries": "8",
        "retry_timeout": "60s",
    }


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def _sync_files(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(FileNotFoundError, IsADirectoryError):  # of a log that is cleaned up meanwhile
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
