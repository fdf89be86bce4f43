"""Storage on HDFS, as pyarrow.fs reaches it: by libhdfs of a Hadoop installation."""

from __future__ import annotations

import errno
import os
import re
from urllib.parse import parse_qsl, urlsplit

import pyarrow.fs

from lockstep.errors import StagingRefused
from lockstep.wal._storage import Entry, Kind, ReadableFile, join, parts_of

_SECRET = re.compile("secret|password|token|key|sas", re.IGNORECASE)


class HadoopStorage:
    """A file is taken for durable once it is closed; nothing is to be synced.

    pyarrow.fs knows no exclusive creation. It is looked for first, and what really keeps executions apart is the token
    in the folder's name, which only one execution holds.
    """

    removes_empty_only = False
    shows_files_whole = False

    def __init__(self, filesystem: pyarrow.fs.FileSystem, base: str, scheme: str, options: str = "") -> None:
        self._filesystem, self._base = filesystem, base.rstrip("/")
        self.options = options
        self._scheme = scheme

    @classmethod
    def at(cls, uri: str) -> HadoopStorage:
        """Raises `StagingRefused` for a URI that pyarrow.fs doesn't understand, or that carries a secret."""
        parts = urlsplit(uri)
        _refuse_secrets(parts.query)
        try:
            filesystem, base = pyarrow.fs.FileSystem.from_uri(uri)
        except (ValueError, OSError) as error:
            raise StagingRefused(f"staging {uri!r} can't be reached: {error}") from error
        return cls(filesystem, base, parts.scheme, parts.query)

    def uri_of(self, path: str) -> str:
        return f"{self._scheme}://{self._locate(path)}"

    def exists(self, path: str) -> bool:
        return bool(self._filesystem.get_file_info(self._locate(path)).type != pyarrow.fs.FileType.NotFound)

    def children(self, folder: str) -> list[Entry]:
        infos = self._filesystem.get_file_info(pyarrow.fs.FileSelector(self._locate(folder)))
        return sorted(Entry(join(folder, info.base_name), _kind_of(info)) for info in infos)

    def make_folder(self, path: str) -> None:
        self._refuse_existing(path)
        self._filesystem.create_dir(self._locate(path), recursive=True)

    def create(self, path: str, data: bytes) -> None:
        self._refuse_existing(path)
        self._put(path, data)

    def put(self, path: str, data: bytes) -> None:
        self._refuse_existing(path)
        self._make_parent(path)
        self._put(path, data)

    def replace(self, path: str, data: bytes) -> None:
        self._make_parent(path)
        self._put(path, data)

    def move(self, source: str, target: str) -> None:
        self._make_parent(target)
        self._filesystem.move(self._locate(source), self._locate(target))

    def open(self, path: str, fresh: bool = False) -> ReadableFile:
        file: ReadableFile = self._filesystem.open_input_file(self._locate(path))
        return file

    def delete(self, path: str) -> None:
        self._filesystem.delete_file(self._locate(path))

    def remove_folder(self, path: str) -> None:
        if self.children(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        self._filesystem.delete_dir(self._locate(path))

    def sync(self, path: str) -> None:
        """Closed objects are durable."""

    def _locate(self, path: str) -> str:
        return "/".join([self._base, *parts_of(path)])

    def _refuse_existing(self, path: str) -> None:
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)

    def _make_parent(self, path: str) -> None:
        self._filesystem.create_dir(self._locate(path.rpartition("/")[0]), recursive=True)

    def _put(self, path: str, data: bytes) -> None:
        with self._filesystem.open_output_stream(self._locate(path), compression=None) as stream:
            stream.write(data)


def _refuse_secrets(options: str) -> None:
    """Options go on to the Spark job, in its arguments."""
    for name, value in parse_qsl(options, keep_blank_values=True):
        if _SECRET.search(name) or "@" in value:
            raise StagingRefused(
                f"the staging URI carries a secret in {name!r}: leave it out, give credentials through the environment"
            )


def _kind_of(info: pyarrow.fs.FileInfo) -> Kind:
    kinds = {pyarrow.fs.FileType.File: Kind.FILE, pyarrow.fs.FileType.Directory: Kind.FOLDER}
    return kinds.get(info.type, Kind.OTHER)
