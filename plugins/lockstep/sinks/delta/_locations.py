"""Location of a Delta table: a folder, whose log is fsynced here, or an object store, which makes each object
durable."""

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
from lockstep.sinks.durable_file import create_atomically, sync_folder

_LOG = "_delta_log"
_ENTRY = re.compile(r"(\d{20})\.json")
_LATEST = datetime.max.replace(tzinfo=UTC)
_TRIALS = "_lockstep"  #: a folder below the table that readers and VACUUM ignore


def log_entry(version: int) -> str:
    """Path of a log entry, relative to the table's folder."""
    return f"{_LOG}/{version:020}.json"


class TableLocation(Protocol):
    """Where a table is. `uri` and `options`: as deltalake takes them, without secrets."""

    uri: str
    options: dict[str, str] | None

    def load(self) -> DeltaTable:
        """The table's newest version. Raises TableNotFoundError, DeltaError, OSError, `StoreRefused`."""

    def require_usable(self, sink: str) -> None:
        """Raise `PreflightRefused` if no table can be here."""

    def require_exclusive(self, sink: str) -> None:
        """Test that only one of several writers can create a log entry. Raises `PreflightRefused`, OSError."""

    def modified(self, path: str) -> int:
        """Time at which the file `path`, relative to the table, was written, or a later time, in milliseconds since
        1970."""

    def open(self, path: str) -> IO[bytes]:
        """Open a file below the table's folder. Raises OSError."""

    def create(self, path: str) -> AbstractContextManager[IO[bytes]]:
        """Create a file under a unique name, durable when the block ends. Raises OSError."""

    def log_entries(self) -> dict[int, datetime]:
        """Time at which each existing log entry was written, by version. Raises OSError."""

    def append(self, version: int, entry: bytes) -> None:
        """Create a log entry atomically and durably. Raises FileExistsError, OSError."""

    def make_new_durable(self) -> None:
        """Make the path of a new table durable. Raises OSError."""

    def make_log_durable(self) -> None:
        """Make the log durable: a lost entry hides all later ones. Raises OSError."""

    def checkpoint(self, table: DeltaTable) -> None:
        """Create a durable checkpoint of the table. Raises DeltaError, OSError."""

    def describe(self, error: Exception) -> str:
        """deltalake's error in one line, without its internal stack trace."""


class FolderLocation:
    """A folder of a local or mounted file system."""

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
        """Nothing to test: every file system creates a link only once."""

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
        entries = {}
        for path in self._log.iterdir():
            if (entry := _ENTRY.fullmatch(path.name)) is not None:
                with suppress(FileNotFoundError):
                    entries[int(entry[1])] = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return entries

    def append(self, version: int, entry: bytes) -> None:
        if not create_atomically(self._root / log_entry(version), entry, self._log):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), log_entry(version))

    def make_new_durable(self) -> None:
        with suppress(PermissionError):  # then the table's folder existed before
            sync_folder(self._root.parent)

    def make_log_durable(self) -> None:
        _sync_files(self._log.iterdir())
        for folder in (self._log, self._root):
            sync_folder(folder)

    def checkpoint(self, table: DeltaTable) -> None:
        table.create_checkpoint()
        _sync_files(path for path in self._log.iterdir() if "checkpoint" in path.name)
        sync_folder(self._log)

    def describe(self, error: Exception) -> str:
        return _first_line(error)


class BucketLocation:
    """S3, accessed as staging is: the login comes from the environment, the endpoint from the URI or the environment.

    Objects are durable once their put has succeeded.
    """

    def __init__(self, uri: str) -> None:
        self._uri, address = uri, Address.of(uri)
        self.uri = address.uri
        self.options: dict[str, str] | None = _options(address)

    def load(self) -> DeltaTable:
        require_own_threads()
        return DeltaTable(self.uri, storage_options=self.options)

    def require_usable(self, sink: str) -> None:
        """Nothing to check."""

    def require_exclusive(self, sink: str) -> None:
        try:
            ObjectStore.at(self._uri).require_conditional_put(_TRIALS)
        except StoreRefused as error:
            raise PreflightRefused(f"sink {sink}: {error}") from error

    def modified(self, path: str) -> int:
        return int(time.time() * 1000)  # nothing depends on it

    def open(self, path: str) -> IO[bytes]:
        return ObjectStore.at(self._uri).open(path)

    @contextmanager
    def create(self, path: str) -> Iterator[IO[bytes]]:
        """Write to a temporary file first: an upload needs no more memory than its parts."""
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            ObjectStore.at(self._uri).upload(path, file)

    def log_entries(self) -> dict[int, datetime]:
        objects = ObjectStore.at(self._uri).children(_LOG).objects
        matches = ((_ENTRY.fullmatch(object.path.rpartition("/")[2]), object.modified or _LATEST) for object in objects)
        return {int(entry[1]): modified for entry, modified in matches if entry is not None}

    def append(self, version: int, entry: bytes) -> None:
        ObjectStore.at(self._uri).create(log_entry(version), entry)

    def make_new_durable(self) -> None: ...

    def make_log_durable(self) -> None: ...

    def checkpoint(self, table: DeltaTable) -> None:
        table.create_checkpoint()

    def describe(self, error: Exception) -> str:
        return f"{_first_line(error)}{what_store_said(error)}"


def location_of(path: str) -> TableLocation:
    """Raises `StoreRefused`."""
    return BucketLocation(path) if is_object_store(path) else FolderLocation(path)


def _options(address: Address) -> dict[str, str]:
    """Options for deltalake, which takes the login from the environment. They override the environment, which could
    make deltalake write its log without conditional puts."""
    endpoint = endpoint_of(address)
    endpoints = {"aws_endpoint": endpoint, "aws_endpoint_url_s3": endpoint} if endpoint else {}
    return {
        **endpoints,
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
        with suppress(FileNotFoundError, IsADirectoryError):  # the log may be cleaned up concurrently
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
