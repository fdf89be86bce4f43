"""FileSink: an epoch as files in a folder, whole or not at all for who asks `files`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar

import lockstep.sinks.files._folder as _folder
import lockstep.sinks.files._hdfs_folder as _hdfs_folder
import lockstep.sinks.files._prefix as _prefix
from lockstep.connections.hdfs.address import HdfsAddress, is_hdfs
from lockstep.connections.names import Dataset, absolute, dataset_at
from lockstep.connections.object_store.address import Address, is_object_store
from lockstep.connections.object_store.store import ObjectStore
from lockstep.epoch import Json, require_name
from lockstep.errors import InvalidPipeline, StoreRefused
from lockstep.sinks.base import Sink
from lockstep.sinks.files._folder import FolderTarget
from lockstep.sinks.files._format import FileFormat
from lockstep.sinks.files._hdfs_folder import HdfsTarget
from lockstep.sinks.files._layout import FileLayout
from lockstep.sinks.files._open_sink import OpenFileSink
from lockstep.sinks.files._prefix import PrefixTarget
from lockstep.sinks.files._target import FileTarget
from lockstep.sinks.files._writer import BYTES_PER_FILE, ROWS_PER_FILE
from lockstep.sinks.files.buckets import Buckets, buckets_of
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import SinkContext

MOST_BYTES = 1 << 30  #: of an object of a store: it is held in memory while it is put
_MAX_BUCKETS = 10_000


def files(path: str, login: str | None = None) -> list[str]:
    """The published files of `path`, by epoch: of each epoch all or none, and none of one that another has replaced.

    Reads the markers alone, so that a file that is shown before its epoch's marker stands isn't listed. An empty list
    if nothing has been published. On an object store (`s3://…`) the files are `s3://bucket/key`, on HDFS
    `hdfs://cluster/path`, not percent-encoded; `login`: a Connection as a URI, without it the environment's. Raises
    `OutcomeUnknown` if a marker is damaged, OSError for what can't be read.
    """
    if is_object_store(path):
        return _prefix.published(ObjectStore.at(path, login))
    if is_hdfs(path):
        return _hdfs_folder.published(HdfsAddress.of(path))
    return _folder.published(absolute(path))


@dataclass(frozen=True, kw_only=True)
class FileSink(Sink):
    """Files of one output in one folder, or below one prefix of an object store, exactly once.

    `path`: a folder of a file system with hard links; or of HDFS, `hdfs://cluster/path`, where `hdfs:///path` is on the
    cluster that Hadoop's configuration names; or `s3://bucket/prefix`. It is used by this sink alone unless every sink
    in it says `shared=True`. `connection`: the id of the store's login; without it the environment's. `format`:
    "parquet", "csv", "json" (lines) or "text"; all but Parquet take only what they can give back. `bucket`: puts rows
    into folders below `path` (`ByTime`, `ByColumns`, `ByFunction`); an epoch with more than `max_buckets` is refused. A
    file is closed at `max_rows_per_file`, or once it has `max_bytes_per_file`. `success`: a name that is created in
    every bucket that an epoch has rows in (without buckets: in `path`), once all its files can be seen; it starts with
    `_`, and `{epoch}` in it stands for the epoch.

    A reader of the bare folder sees an epoch's files arrive one by one; `lockstep.files(path)` gives all or nothing.
    Raises `InvalidPipeline`.
    """

    name: str = field(kw_only=False)
    output: str
    path: str
    format: str = "parquet"
    bucket: Buckets | Mapping[str, Json] | None = None
    max_buckets: int = _MAX_BUCKETS
    max_rows_per_file: int = ROWS_PER_FILE
    max_bytes_per_file: int = BYTES_PER_FILE
    success: str | None = None
    shared: bool = False
    connection: str | None = None

    local_paths: ClassVar[frozenset[str]] = frozenset({"path"})

    def __post_init__(self) -> None:
        super().__post_init__()
        require_name("output", self.output)
        if is_hdfs(self.path):
            self._require_cluster()
        elif "://" in self.path:
            self._require_store()
        elif self.connection is not None:
            raise InvalidPipeline(f"sink {self.name}: connection is for object stores, and {self.path} is a folder")
        self._layout()

    def _require_cluster(self) -> None:
        if self.connection is not None:
            raise InvalidPipeline(f"sink {self.name}: HDFS takes no connection: the environment says who asks")
        try:
            HdfsAddress.require(self.path)
        except StoreRefused as error:  # the path may hold a secret
            raise InvalidPipeline(f"sink {self.name}: {error}") from None
        if ":" in self.path.partition("://")[2].partition("/")[2]:
            raise InvalidPipeline(f"sink {self.name}: {self.path} has a colon in it, which no name on HDFS has")

    def _require_store(self) -> None:
        if not is_object_store(self.path):
            raise InvalidPipeline(
                f"sink {self.name}: FileSink takes folders on a POSIX file system, without a scheme, object stores, as "
                f"s3://bucket/prefix, and hdfs://cluster/path: not {self.path.partition('://')[0]}://"
            )
        try:
            Address.of(self.path)
        except StoreRefused as error:  # the path may hold a secret
            raise InvalidPipeline(f"sink {self.name}: {error}") from None
        if self.max_bytes_per_file > MOST_BYTES:
            raise InvalidPipeline(
                f"sink {self.name}: max_bytes_per_file is at most {MOST_BYTES}: an object is put by one request"
            )

    def arguments(self) -> dict[str, Json]:
        """Without what is as usual, but for those that plans have always held. `hdfs:///` is on the cluster that the
        configuration names where an epoch is planned, and its plan keeps it. Raises `StoreRefused` if it names none."""
        bucket = None if self.bucket is None else buckets_of(self.bucket).to_json()
        given = {one.name: getattr(self, one.name) for one in fields(self)} | {"bucket": bucket, "path": self._place}
        usual = {one.name: one.default for one in fields(self) if one.name not in ("format", "shared")}
        return {name: value for name, value in given.items() if name not in usual or value != usual[name]}

    def writes_to(self) -> frozenset[str]:
        place = Address.of(self.path).uri if is_object_store(self.path) else self._place
        return frozenset({f"folder {place}"})

    def datasets(self, connections: Mapping[str, str]) -> Mapping[str, Dataset]:
        return {self.output: dataset_at(self.path)}

    @property
    def _place(self) -> str:
        return HdfsAddress.of(self.path).uri if is_hdfs(self.path) else self.path

    def open(self, context: SinkContext) -> OpenFileSink:
        return OpenFileSink(self, self._target(context), self._layout())

    def _target(self, context: SinkContext) -> FileTarget:
        owner = SinkName.of(context, self.name)
        if is_hdfs(self.path):
            return HdfsTarget(HdfsAddress.of(self.path), owner, self.shared)
        if not is_object_store(self.path):
            return FolderTarget(self.path, owner, self.shared)
        login = context.dsn(self.connection, self.name) if self.connection is not None else None
        return PrefixTarget(ObjectStore.at(self.path, login), owner, self.shared)

    def _layout(self) -> FileLayout:
        if self.format not in list(FileFormat):
            raise InvalidPipeline(f"format {self.format!r} must be one of {', '.join(FileFormat)}")
        return FileLayout(
            FileFormat(self.format),
            None if self.bucket is None else buckets_of(self.bucket),
            self.max_buckets,
            self.max_rows_per_file,
            self.max_bytes_per_file,
            self.success,
        )
