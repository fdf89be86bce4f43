"""The objects below one URI. Every call raises OSError for what goes wrong, in words without any secret.

An object is there whole or not at all, and is durable once a put has returned. What only one may write is put under a
condition that the store itself checks. The answer to such a put may be lost, and a client that tries again then meets
its own object: each put marks its object with a number of its own, and looks for it.
"""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lockstep.connections.object_store.address import Address
from lockstep.connections.object_store.client import LARGE, S3Login, open_client, open_mark
from lockstep.connections.raw_file import RawFile
from lockstep.distribution import naming_extra
from lockstep.errors import StoreRefused

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

BLOCK = 4 << 20  #: bytes that one request asks for, unless more are wanted at once
_MARK = "lockstepput"  #: of an object: whose put it is; Azure's names have letters and digits only
_PAUSES = (0.05, 0.5, 2.0)  #: seconds between the tries of one conditional put
_UNREADABLE = re.compile(r'object with invalid path: .*?Path "(.*?)"(?:: | contained )', re.DOTALL)
_TOLD = re.compile(r"<Code>(\w+)</Code>|\bstatus(?: code)?:? (\d{3}(?: [A-Z][\w ]*)?)", re.IGNORECASE)


@dataclass(frozen=True)
class StoredObject:
    """An object's metadata. `etag` changes with the content, `modified` with each put."""

    path: str
    size: int
    etag: str | None
    modified: datetime | None = None


@dataclass(frozen=True)
class Children:
    """Direct children of a folder. A server may list folders with nothing below them.

    `marked`: the folder has a marker object of Hadoop's, an empty object with its name and a slash.
    """

    folders: tuple[str, ...]
    objects: tuple[StoredObject, ...]
    marked: bool


class ObjectChanged(OSError):
    """An object isn't any more what it was when it was looked at."""


class UnreadableKey(OSError):
    """The folder can't be listed as long as an object with this key exists; the message names it."""


class ObjectStore:
    """Paths are relative to the address, with '/' between names."""

    def __init__(self, client: Client, address: Address, login: S3Login | None = None) -> None:
        self.client, self.address, self._login = client, address, login
        self._large: Client | None = None
        self._marks = address.scheme != "file"  # the tests' store of local files takes no attributes

    @classmethod
    def at(cls, uri: str, login: str | None = None) -> ObjectStore:
        """`login`: a Connection as a URI, see `S3Login`; without, as docs/object-stores.md says. Asks nothing yet.

        Raises `StoreRefused`, `PackageMissing`.
        """
        return cls.of(Address.of(uri), S3Login.of(login) if login else None)

    @classmethod
    def of(cls, address: Address, login: S3Login | None = None) -> ObjectStore:
        """Like `at`, for a parsed address."""
        return cls(open_client(address, login), address, login)

    @property
    def _patient(self) -> Client:
        """A client for requests that move a whole object."""
        if self._large is None:  # no cached_property: its lock keeps the class from reaching Spark's executors by value
            local = self.address.scheme == "file"
            self._large = self.client if local else open_client(self.address, self._login, LARGE)
        return self._large

    def key_of(self, path: str) -> str:
        """`bucket/key`, as pyarrow.fs names objects: not percent-encoded."""
        return "/".join(filter(None, (self.address.container, self.address.prefix, path)))

    def uri_of(self, path: str) -> str:
        """The object's URI for Hadoop."""
        return f"{self.address.hadoop}/{path}" if path else self.address.hadoop

    # --- writing ---

    def create(self, path: str, data: bytes) -> None:
        """Put a new object, durably. FileExistsError if there is one that this very call didn't put."""
        self._put_if(path, data, None)

    def swap(self, expected: StoredObject, data: bytes) -> None:
        """Put an object in the place of exactly this one. `ObjectChanged` if it is another by now, or gone."""
        self._put_if(expected.path, data, expected)

    def replace(self, path: str, data: bytes) -> None:
        """Put an object, replacing an existing one."""
        import obstore

        with _naming_errors(path):
            obstore.put(self.client, path, data, use_multipart=False)

    def put_file(self, path: str, file: Path) -> str | None:
        """Put a file's content with one request, replacing an existing object. An interrupted request leaves nothing,
        whereas parts of a multipart upload would remain and cost. The content is held in memory. Returns the object's
        ETag."""
        import obstore

        with _naming_errors(path):
            return obstore.put(self._patient, path, file, use_multipart=False)["e_tag"]

    def upload(self, path: str, file: IO[bytes]) -> None:
        """Put an object of any size in parts, few of them in memory, replacing an existing one; it appears whole. Parts
        of an interrupted upload may remain until the bucket's rule for unfinished uploads deletes them."""
        import obstore

        with _naming_errors(path):
            obstore.put(self._patient, path, file, chunk_size=8 << 20, max_concurrency=4)

    def copy(self, source: str, target: str) -> None:
        """Copy within the store, replacing an existing object. FileNotFoundError if `source` doesn't exist."""
        import obstore

        with _naming_errors(source):
            obstore.copy(self._patient, source, target)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects, many in one request; what is gone already is fine."""
        import obstore

        pending = list(paths)
        with _naming_errors(pending[0] if pending else ""):
            obstore.delete(self.client, pending)

    def delete_mark(self, folder: str) -> None:
        """Delete the mark of Hadoop's that makes a folder of which nothing else is left."""
        import obstore

        if self.address.scheme == "s3":
            with _naming_errors(folder):
                obstore.delete(open_mark(self.address, self._login, folder), "")

    # --- reading ---

    def find(self, path: str) -> StoredObject | None:
        """The object's metadata; None if it doesn't exist."""
        import obstore

        try:
            with _naming_errors(path):
                return _found(obstore.head(self.client, path))
        except FileNotFoundError:
            return None

    def read(self, path: str) -> bytes:
        """All of it. FileNotFoundError if it isn't there."""
        import obstore

        with _naming_errors(path):
            return bytes(obstore.get(self.client, path).bytes())

    def open(self, path: str, etag: str | None = None) -> io.BufferedReader:
        """Open an object for reading by ranges, all of one version: `ObjectChanged` if it is replaced meanwhile.

        `etag`: of the expected version. FileNotFoundError if it doesn't exist.
        """
        return _open_object(self.client, path, etag)

    def children(self, folder: str) -> Children:
        """Children of `folder`, sorted; empty if it doesn't exist."""
        import obstore

        with _naming_errors(folder):
            listed = obstore.list_with_delimiter(self.client, folder or None)
        objects = sorted((_found(meta) for meta in listed["objects"]), key=lambda entry: entry.path)
        inside = tuple(entry for entry in objects if entry.path != folder)
        return Children(tuple(sorted(listed["common_prefixes"])), inside, marked=len(inside) < len(objects))

    def find_below(self, folder: str) -> Iterator[StoredObject]:
        """Every object below `folder`, at any depth, in no order; marks of Hadoop's among them."""
        return (entry for entry in self._listed(folder) if entry.path != folder)

    def has_folder(self, folder: str) -> bool:
        """True if an object is below it, or its marker object exists."""
        return next(self._listed(folder), None) is not None

    def _listed(self, folder: str) -> Iterator[StoredObject]:
        import obstore

        with _naming_errors(folder):
            for chunk in obstore.list(self.client, folder or None, chunk_size=1000):
                yield from map(_found, chunk)

    # --- what the store must be able to do ---

    def require_exclusive(self, path: str) -> None:
        """Ask for an object that is there to be created once more. Raises `StoreRefused` if the store does it."""
        self._require_refusal(path, "If-None-Match: *", lambda: self.create(path, secrets.token_bytes(16)))

    def require_conditional_put(self, folder: str) -> None:
        """Try a conditional put with an object of our own below `folder`. Raises `StoreRefused` if the store ignores
        the condition."""
        path = f"{folder}/.trial-{secrets.token_hex(8)}" if folder else f".trial-{secrets.token_hex(8)}"
        try:
            self.create(path, b"1")
            self.require_exclusive(path)
            first = self.find(path)
            if first is None:
                raise OSError(errno.EIO, "an object that was put isn't there", path)
            self.swap(first, b"3")
            self._require_refusal(path, "If-Match", lambda: self.swap(first, b"4"))
        finally:
            with suppress(OSError):  # what was found out matters more
                self.delete([path])

    def _require_refusal(self, path: str, header: str, put: Any) -> None:
        try:
            put()
        except OSError as error:
            if isinstance(error, FileExistsError | ObjectChanged):
                return
            raise
        raise StoreRefused(
            f"{self.address.uri} doesn't keep to {header}: it put {path} over what was there. Lockstep needs a store "
            "with conditional puts, see docs/object-stores.md"
        )

    # --- conditional puts ---

    def _put_if(self, path: str, data: bytes, expected: StoredObject | None) -> None:
        import obstore

        mark = secrets.token_hex(16)
        attributes = {_MARK: mark} if self._marks else None
        mode: Any = "create" if expected is None else {"e_tag": expected.etag}
        for pause in (*_PAUSES, None):
            try:
                with _naming_errors(path):
                    obstore.put(self.client, path, data, mode=mode, attributes=attributes, use_multipart=False)
                return
            except PermissionError:
                raise
            except OSError as error:
                there, its_mark = self._look(path)
                if self._marks and its_mark == mark:
                    return  # it was put, and the answer lost
                if there is not None and (expected is None or there.etag != expected.etag):
                    raise _taken(path, expected) from error
                if there is None and expected is not None:
                    raise _taken(path, expected) from error
                if pause is None:
                    raise
                time.sleep(pause)

    def _look(self, path: str) -> tuple[StoredObject | None, str | None]:
        import obstore

        try:
            with _naming_errors(path):
                result = obstore.get(self.client, path, options={"head": True})
                return _found(result.meta), dict(result.attributes).get(_MARK)
        except FileNotFoundError:
            return None, None


def _taken(path: str, expected: StoredObject | None) -> OSError:
    if expected is None:
        return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    return ObjectChanged(errno.ESTALE, "it is another object by now", path)


def _found(meta: Mapping[str, Any]) -> StoredObject:
    return StoredObject(meta["path"], meta["size"], meta["e_tag"], meta["last_modified"])


class _User:
    """The process whose threads serve the client."""

    pid: int | None = None

    def __reduce__(self) -> tuple[type[_User], tuple[()]]:
        return _User, ()  # what reaches Spark's executors by value has used nothing there


_used_by = _User()


def require_own_threads() -> None:
    """A client's threads don't survive a fork: a child that asks it would wait for ever. Raises `StoreRefused`."""
    if _used_by.pid is None:
        _used_by.pid = os.getpid()
    if _used_by.pid != os.getpid():
        raise StoreRefused(
            "this process was forked from one that had used an object store, and can't use one: start it by itself "
            "(spawn), or use the store in the children only"
        )


@contextmanager
def _naming_errors(path: str) -> Iterator[None]:
    """Make OSErrors of obstore's, with what the store said and without the request that it repeats."""
    with naming_extra("an object store"):
        from obstore import exceptions
    require_own_threads()
    try:
        yield
    except exceptions.AlreadyExistsError as error:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from error
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error
    except (exceptions.PreconditionError, exceptions.NotModifiedError) as error:
        raise ObjectChanged(errno.ESTALE, "it is another object by now", path) from error
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise PermissionError(errno.EACCES, f"the store refuses the login{what_store_said(error)}", path) from error
    except (exceptions.InvalidPathError, ValueError) as error:
        if listed := _UNREADABLE.search(str(error)):
            raise UnreadableKey(
                errno.EINVAL,
                f"somebody else's object {listed[1]!r} keeps the folder from being listed, since clients can't read a "
                "key with a control character or a folder without a name, or called . or ..: delete it, or put it "
                "elsewhere",
                path,
            ) from error
        raise StoreRefused(f"{path!r} is no path of an object") from error
    except (exceptions.NotSupportedError, NotImplementedError) as error:
        raise StoreRefused("the store can't put under a condition, see docs/object-stores.md") from error
    except exceptions.BaseError as error:
        raise OSError(errno.EIO, f"the store didn't do it{what_store_said(error)}", path) from error


def what_store_said(error: Exception) -> str:
    """': ' and the error code of the store's answer, or how the connection failed; '' if the client's error has
    neither."""
    text = str(error)
    codes = list(dict.fromkeys(code for match in _TOLD.findall(text) for code in match if code))
    if codes:
        return f": {', '.join(codes)}"
    if "incorrectly configured region" in text:
        return ": the bucket is of another region, say which: ?region=… or AWS_REGION"
    for sign in ("Connection refused", "timed out", "connection closed", "dns error"):
        if sign.lower() in text.lower():
            return f": {sign}"
    return ""


def _open_object(client: Client, path: str, etag: str | None) -> io.BufferedReader:
    """Open an object for reading by ranges, all of the version that exists now. The request that finds it brings the
    first block."""
    import obstore

    with _naming_errors(path):
        options: Any = {"range": (0, BLOCK), **({"if_match": etag} if etag else {})}
        try:
            first = obstore.get(client, path, options=options)
            meta, content = first.meta, bytes(first.bytes())
        except obstore.exceptions.GenericError:  # an empty object has no range
            meta, content = obstore.head(client, path), b""
            if meta["size"]:
                raise
    return io.BufferedReader(_ObjectRanges(client, path, meta["size"], meta["e_tag"], content), BLOCK)


class _ObjectRanges(RawFile):
    def __init__(self, client: Client, path: str, size: int, etag: str | None, first: bytes) -> None:
        super().__init__(size)
        self._client, self._path, self._etag, self._first = client, path, etag, first

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
        with _naming_errors(self._path):
            return memoryview(obstore.get(self._client, self._path, options=options).bytes())
