"""Files of one HDFS cluster, by its own protocol. Every failure raises OSError.

The NameNode creates a name, or renames to one, only if it is free, in one step that is in its log before it answers. If
the answer is lost, a repeated request meets its own work. So a file that must be created once is written under a unique
draft name, and after a lost answer the caller checks whether the draft is gone.
"""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from lockstep.connections.hdfs.address import HdfsAddress, configuration
from lockstep.connections.raw_file import RawFile
from lockstep.distribution import naming_extra
from lockstep.errors import StoreRefused

if TYPE_CHECKING:
    from hdfs_native import Client, FileReader, FileStatus, FileWriter

T = TypeVar("T")
_BLOCK = 4 << 20  #: bytes that one request asks for, unless more are wanted at once
_BROKEN = 2  #: connections, after which what may be done twice is asked again
_LEAST_BLOCK = 1 << 20  #: bytes; a NameNode allows no smaller blocks, unless it is told to
#: A cluster that doesn't answer is the task's to try again later: it must not hold a task for three minutes.
_RETRIES = {"dfs.client.failover.max.attempts": "8", "dfs.client.failover.sleep.max.millis": "1000"}
#: How the client tells what the NameNode raised: the name of a Java class, and a text with its stack.
_RAISED = re.compile(r'RPCError\("(?:[\w$]+\.)*([\w$]+)", "(.*?)(?:\\n|"\)|$)')
#: Variables that say where clusters are, and who asks.
_WHO = ("HADOOP_CONF_DIR", "HADOOP_HOME", "HADOOP_USER_NAME", "HADOOP_PROXY_USER")
_ERRNOS = {
    "AccessControlException": errno.EACCES,
    "AuthorizationException": errno.EACCES,
    "ParentNotDirectoryException": errno.ENOTDIR,
    "PathIsNotEmptyDirectoryException": errno.ENOTEMPTY,
    "FileAlreadyExistsException": errno.EEXIST,
    "FileNotFoundException": errno.ENOENT,
    "LeaseExpiredException": errno.ENOENT,  # a file that is being written was deleted
    "DSQuotaExceededException": errno.EDQUOT,
    "NSQuotaExceededException": errno.EDQUOT,
    "SafeModeException": errno.EROFS,
    "StandbyException": errno.EAGAIN,
}
#: What is told of these, in place of their text.
_TOLD = {
    "SafeModeException": "its NameNode is in safe mode and takes no changes: it leaves that by itself once enough "
    "blocks are there, or by `hdfs dfsadmin -safemode leave`",
    "StandbyException": "no NameNode that answers is the active one: wait for the failover, or give the name service, "
    "whose NameNodes HADOOP_CONF_DIR names, as the cluster",
}


@dataclass(frozen=True)
class HdfsEntry:
    """Metadata of a file or folder. `mtime_ns`: nanoseconds since 1970 by the NameNode's clock, in whole ms."""

    path: str
    size: int
    mtime_ns: int
    is_folder: bool

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class HdfsFileSystem:
    """Paths are absolute on the cluster, and not percent-encoded."""

    def __init__(self, namenode: str, name: str) -> None:
        """`name`: of the cluster, as `HdfsAddress` has it."""
        self._namenode, self.name = namenode, name

    @classmethod
    def at(cls, address: HdfsAddress) -> HdfsFileSystem:
        """The cluster of an address, as the user of the environment: a Kerberos ticket, HADOOP_USER_NAME, or this
        process's user. Makes no request yet. Raises `StoreRefused`; so does each call in a child forked from a process
        that had used HDFS."""
        return cls(address.namenode, address.cluster)

    @property
    def _client(self) -> Client:
        return _clients.find(self._namenode)

    # --- looking ---

    def find(self, path: str) -> HdfsEntry | None:
        """Metadata of a path; None if it doesn't exist."""
        try:
            return _found(self._ask(path, lambda client: client.get_file_info(path)))
        except FileNotFoundError:
            return None

    def children(self, folder: str) -> Iterator[HdfsEntry]:
        """Children of a folder, unordered. FileNotFoundError, NotADirectoryError."""
        for status in self._ask(folder, lambda client: list(client.list_status(folder))):
            entry = _found(status)
            if entry.path == folder and not entry.is_folder:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
            yield entry

    def open(self, path: str) -> io.BufferedReader:
        """Open a file for reading by ranges, all of one file even if it is renamed meanwhile."""
        return io.BufferedReader(_Ranges(self._ask(path, lambda client: client.read(path)), path), _BLOCK)

    def read(self, path: str) -> bytes:
        """All of it."""
        with self.open(path) as file:
            return file.read()

    # --- changing ---

    def make_folder(self, path: str) -> None:
        """Create a folder with its parents, unless it exists."""
        self._ask(path, lambda client: client.mkdirs(path, create_parent=True))

    def create(self, path: str, data: bytes, draft: str | None = None) -> None:
        """Create a durable file that appears whole. FileExistsError if one exists.

        `draft`: a unique name on the same cluster for the bytes until then; it is gone at the end unless the process
        dies.
        """
        draft = draft or f"{path.rpartition('/')[0]}/.{path.rpartition('/')[2]}~{secrets.token_hex(8)}"
        self._write_draft(draft, data)
        self._take_name(draft, path, lambda: self._holds(path, data))

    def replace(self, path: str, data: bytes) -> None:
        """Like `create`, replacing an existing file."""
        draft = f"{path.rpartition('/')[0]}/.{path.rpartition('/')[2]}~{secrets.token_hex(8)}"
        self._write_draft(draft, data)
        self._take_name(draft, path, lambda: self._holds(path, data), overwrite=True)

    def create_folder(self, path: str, draft: str) -> None:
        """Create a folder below existing parents. FileExistsError if the name exists. `draft`: see `create`."""
        self.make_folder(draft)
        self._take_name(draft, path, lambda: self.find(path) is not None)

    def _take_name(self, draft: str, path: str, is_done: Callable[[], bool], *, overwrite: bool = False) -> None:
        """After a lost answer, a draft that is gone has been renamed: a draft that another process deletes is never
        renamed."""
        try:
            self.move(draft, path) if overwrite else self.rename(draft, path)
        except FileExistsError:  # the NameNode looks for the draft first: this is no echo of a rename that was done
            self.delete(draft)
            raise
        except OSError:
            if self.delete(draft) or not is_done():
                raise

    def _write_draft(self, draft: str, data: bytes) -> None:
        """Drafts are unique: an existing one was created by this call, in a request whose answer was lost."""
        try:
            with self.writing(draft, overwrite=True) as file:
                file.write(data)
        except OSError:
            with suppress(OSError):
                self.delete(draft)
            raise

    def write(self, path: str, data: bytes) -> None:
        """Create a durable file that readers may see growing. FileExistsError; FileNotFoundError if its folder doesn't
        exist."""
        with self.writing(path) as file:
            file.write(data)

    @contextmanager
    def writing(self, path: str, *, overwrite: bool = False) -> Iterator[NewFile]:
        """Like `write`, piece by piece; durable when the block is left."""
        from hdfs_native import WriteOptions

        with _naming_errors(path):
            created = self._client.create(path, WriteOptions(create_parent=False, overwrite=overwrite))
        file = NewFile(created, path, lambda: self._block_size(path))
        try:
            yield file
        except BaseException:
            file.release()
            raise
        file.finish()

    def rename(self, source: str, target: str) -> None:
        """Give a file or folder another name in one step. FileExistsError if that is taken by one of its kind, OSError
        if by one of the other.

        FileNotFoundError if `source` is gone, perhaps by this very call: its answer was lost, and it was sent again.
        """
        with _naming_errors(source):
            self._client.rename(source, target, overwrite=False)

    def move(self, source: str, target: str) -> None:
        """Like `rename`, replacing an existing file."""
        with _naming_errors(source):
            self._client.rename(source, target, overwrite=True)

    def delete(self, path: str) -> bool:
        """Delete a file, or a folder with its content. False if nothing existed, also when an earlier request whose
        answer was lost has done it."""
        return self._ask(path, lambda client: client.delete(path, recursive=True))

    def delete_empty(self, folder: str) -> bool:
        """Delete a folder that nothing is in; OSError with ENOTEMPTY otherwise. Looks and deletes in one step."""
        return self._ask(folder, lambda client: client.delete(folder, recursive=False))

    def _block_size(self, path: str) -> int:
        return self._ask(path, lambda client: client.get_file_info(path)).blocksize or _LEAST_BLOCK

    def _ask(self, path: str, call: Callable[[Client], T]) -> T:
        """Repeat an idempotent request after a broken connection; the client itself doesn't always."""
        for _ in range(_BROKEN):
            with suppress(_Broken), _naming_errors(path):
                return call(self._client)
        with _naming_errors(path):
            return call(self._client)

    def _holds(self, path: str, data: bytes) -> bool:
        try:
            return self.read(path) == data
        except FileNotFoundError:
            return False


class _Broken(OSError):
    """The connection broke; the outcome of the request is unknown."""


class NewFile:
    """A file that is being written. `block_size`: asked once that matters, in bytes."""

    def __init__(self, file: FileWriter, path: str, block_size: Callable[[], int]) -> None:
        self._file, self._path, self._block_size = file, path, block_size
        self._written = 0
        self._block: int | None = None

    def write(self, data: bytes) -> int:
        """Append `data`. A full block is synced to the disks before the next one begins; later that is impossible."""
        rest = memoryview(data)
        while rest:
            piece = rest[: self._room(len(rest))]
            with _naming_errors(self._path):
                self._file.write(bytes(piece))
                self._written += len(piece)
                if self._ends_block():
                    self._file.hsync()
            rest = rest[len(piece) :]
        return len(data)

    def _room(self, size: int) -> int:
        return size if self._written + size <= _LEAST_BLOCK else self._left_of_block()

    def _ends_block(self) -> bool:
        return self._written >= _LEAST_BLOCK and self._left_of_block() == self._block

    def _left_of_block(self) -> int:
        """Bytes, at least one."""
        if self._block is None:
            self._block = self._block_size()
        return self._block - self._written % self._block

    def finish(self) -> None:
        """Have it on the disks of the DataNodes, and close it."""
        with _naming_errors(self._path):
            self._file.hsync()
            self._file.close()

    def release(self) -> None:
        """Close it as it is."""
        with suppress(Exception):  # what stands in it is of no use
            self._file.close()


class _Ranges(RawFile):
    def __init__(self, file: FileReader, path: str) -> None:
        super().__init__(len(file))
        self._file, self._path = file, path

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), self._size - self._at)
        if size <= 0:
            return 0
        with _naming_errors(self._path):
            data = self._file.read_range(self._at, size)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class _Clients:
    """The clients of this process. They read the environment once."""

    def __init__(self) -> None:
        self._user: int | None = None  #: the process whose threads serve them
        self._by_key: dict[tuple[str | None, ...], Client] = {}

    def __reduce__(self) -> tuple[type[_Clients], tuple[()]]:
        return _Clients, ()  # what reaches Spark's executors by value has used nothing there

    def find(self, namenode: str) -> Client:
        """The client of a cluster for the environment's user. A forked child would inherit connections that its
        parent's threads serve, and wait forever. Raises `StoreRefused`."""
        if self._user is None:
            self._user = os.getpid()
        if self._user != os.getpid():
            raise StoreRefused(
                "this process was forked from one that had used HDFS, and can't use it: start it by itself (spawn), or "
                "use HDFS in the children only"
            )
        key = (namenode, *map(os.environ.get, _WHO))
        client = self._by_key.get(key)
        if client is None:
            client = self._by_key[key] = _new_client(namenode)
        return client


_clients = _Clients()


def _new_client(namenode: str) -> Client:
    with naming_extra("hdfs://"):
        from hdfs_native import Client
    with _naming_errors(namenode):
        return Client(namenode, {name: value for name, value in _RETRIES.items() if name not in configuration()})


def _found(status: FileStatus) -> HdfsEntry:
    path = status.path.rstrip("/") or "/"
    return HdfsEntry(path, status.length, status.modification_time * 1_000_000, status.isdir)


@contextmanager
def _naming_errors(path: str) -> Iterator[None]:
    """Make OSErrors, with their numbers, of what the client raises."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error
    except FileExistsError as error:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from error
    except NotADirectoryError:
        raise
    except OSError as error:
        broken = "disconnected" in str(error)
        raise (_Broken if broken else OSError)(errno.EIO, f"HDFS: {error}", path) from error
    except (RuntimeError, NotImplementedError) as error:
        raise _os_error(str(error), path) from error


def _os_error(message: str, path: str) -> OSError:
    """OSError makes the class of its number, such as PermissionError."""
    if raised := _RAISED.search(message):
        name, text = raised.groups()
        return OSError(_ERRNOS.get(name, errno.EIO), f"HDFS: {_TOLD.get(name) or f'{name}: {text}'}", path)
    return OSError(errno.EIO, f"HDFS: {message}", path)
