"""Files of one HDFS cluster, by its own protocol. Every call raises OSError for what goes wrong.

The NameNode decides who comes first: it creates a name, and renames to one, only if that is free, in one step that is
in its log before it answers. The answer may be lost, and a client that asks again then meets its own work: so what must
be created once is written under a name that nobody else uses, and whoever has no answer looks whether that is gone.
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
class Found:
    """A file or folder as the NameNode told of it. `mtime_ns`: nanoseconds since 1970, by its clock, in whole ms."""

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
        """The cluster of an address, as whoever the environment says: a ticket of Kerberos, HADOOP_USER_NAME, or this
        process's user. Nothing is asked of it yet. Raises `StoreRefused`, also each
        call in a child that was forked from a process which had used HDFS."""
        return cls(address.namenode, address.cluster)

    @property
    def _client(self) -> Client:
        return _clients.find(self._namenode)

    # --- looking ---

    def find(self, path: str) -> Found | None:
        """None if nothing is there."""
        try:
            return _found(self._ask(path, lambda client: client.get_file_info(path)))
        except FileNotFoundError:
            return None

    def children(self, folder: str) -> Iterator[Found]:
        """What stands in a folder, as it is told, in no order. FileNotFoundError, NotADirectoryError."""
        for status in self._ask(folder, lambda client: list(client.list_status(folder))):
            entry = _found(status)
            if entry.path == folder and not entry.is_folder:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
            yield entry

    def open(self, path: str) -> io.BufferedReader:
        """To be read bit by bit, all of one and the same file, whoever renames meanwhile."""
        return io.BufferedReader(_Ranges(self._ask(path, lambda client: client.read(path)), path), _BLOCK)

    def read(self, path: str) -> bytes:
        """All of it."""
        with self.open(path) as file:
            return file.read()

    # --- changing ---

    def make_folder(self, path: str) -> None:
        """With its parents; fine if it is there."""
        self._ask(path, lambda client: client.mkdirs(path, create_parent=True))

    def create(self, path: str, data: bytes, draft: str | None = None) -> None:
        """A new file, whole from the first look on, and durable. FileExistsError if one was there already.

        `draft`: a name of the same cluster that nobody else uses, which the bytes have before; it is gone at the end,
        unless the process dies.
        """
        draft = draft or f"{path.rpartition('/')[0]}/.{path.rpartition('/')[2]}~{secrets.token_hex(8)}"
        self._write_draft(draft, data)
        self._take_name(draft, path, lambda: self._holds(path, data))

    def replace(self, path: str, data: bytes) -> None:
        """As `create`, over whatever file is there."""
        draft = f"{path.rpartition('/')[0]}/.{path.rpartition('/')[2]}~{secrets.token_hex(8)}"
        self._write_draft(draft, data)
        self._take_name(draft, path, lambda: self._holds(path, data), overwrite=True)

    def create_folder(self, path: str, draft: str) -> None:
        """A new folder, whose parents are there; FileExistsError if anything was there already. `draft`: as of
        `create`."""
        self.make_folder(draft)
        self._take_name(draft, path, lambda: self.find(path) is not None)

    def _take_name(self, draft: str, path: str, is_done: Callable[[], bool], *, overwrite: bool = False) -> None:
        """Without an answer, a draft that is gone has been renamed: whoever deletes it will never see it renamed."""
        try:
            self.move(draft, path) if overwrite else self.rename(draft, path)
        except FileExistsError:  # the NameNode looks for the draft first: this is no echo of a rename that was done
            self.delete(draft)
            raise
        except OSError:
            if self.delete(draft) or not is_done():
                raise

    def _write_draft(self, draft: str, data: bytes) -> None:
        """Nobody else's: what stands there is this call's own, made by a request whose answer was lost."""
        try:
            with self.writing(draft, overwrite=True) as file:
                file.write(data)
        except OSError:
            with suppress(OSError):
                self.delete(draft)
            raise

    def write(self, path: str, data: bytes) -> None:
        """A new durable file; whoever looks meanwhile sees it grow. FileExistsError, and FileNotFoundError if its
        folder isn't there."""
        with self.writing(path) as file:
            file.write(data)

    @contextmanager
    def writing(self, path: str, *, overwrite: bool = False) -> Iterator[NewFile]:
        """As `write`, bit by bit: it is durable once the block is left."""
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
        """As `rename`, over whatever file is there."""
        with _naming_errors(source):
            self._client.rename(source, target, overwrite=True)

    def delete(self, path: str) -> bool:
        """Delete a file, or a folder with all that is in it; False if nothing was there, as when a first request had
        done it, whose answer was lost."""
        return self._ask(path, lambda client: client.delete(path, recursive=True))

    def delete_empty(self, folder: str) -> bool:
        """Delete a folder that nothing is in; OSError with ENOTEMPTY otherwise. Looks and deletes in one step."""
        return self._ask(folder, lambda client: client.delete(folder, recursive=False))

    def _block_size(self, path: str) -> int:
        return self._ask(path, lambda client: client.get_file_info(path)).blocksize or _LEAST_BLOCK

    def _ask(self, path: str, call: Callable[[Client], T]) -> T:
        """What may be done twice is asked again where a connection broke: the client itself doesn't always."""
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
    """A connection broke: nobody knows whether it was done."""


class NewFile:
    """A file that is being written. `block_size`: asked once that matters, in bytes."""

    def __init__(self, file: FileWriter, path: str, block_size: Callable[[], int]) -> None:
        self._file, self._path, self._block_size = file, path, block_size
        self._written = 0
        self._block: int | None = None

    def write(self, data: bytes) -> int:
        """Append `data`. A full block is had on the disks before the next one is begun: later nobody can."""
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
    """Of this process. They ask the environment once."""

    def __init__(self) -> None:
        self._user: int | None = None  #: the process whose threads serve them
        self._made: dict[tuple[str | None, ...], Client] = {}

    def __reduce__(self) -> tuple[type[_Clients], tuple[()]]:
        return _Clients, ()  # what reaches Spark's executors by value has used nothing there

    def find(self, namenode: str) -> Client:
        """The client of a cluster for whoever the environment says. A forked child would take connections to DataNodes
        that its parent's threads serve, and wait for ever. Raises `StoreRefused`."""
        if self._user is None:
            self._user = os.getpid()
        if self._user != os.getpid():
            raise StoreRefused(
                "this process was forked from one that had used HDFS, and can't use it: start it by itself (spawn), or "
                "use HDFS in the children only"
            )
        key = (namenode, *map(os.environ.get, _WHO))
        client = self._made.get(key)
        if client is None:
            client = self._made[key] = _new_client(namenode)
        return client


_clients = _Clients()


def _new_client(namenode: str) -> Client:
    with naming_extra("hdfs://"):
        from hdfs_native import Client
    with _naming_errors(namenode):
        return Client(namenode, {name: value for name, value in _RETRIES.items() if name not in configuration()})


def _found(status: FileStatus) -> Found:
    path = status.path.rstrip("/") or "/"
    return Found(path, status.length, status.modification_time * 1_000_000, status.isdir)


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
