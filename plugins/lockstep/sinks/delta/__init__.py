"""DeltaSink: the sealed files of an epoch become files of a Delta table, by one log entry that holds the marker."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from lockstep.connections.names import Dataset, dataset_at
from lockstep.connections.object_store.address import Address
from lockstep.distribution import naming_extra
from lockstep.epoch import Json, require_name
from lockstep.errors import InvalidPipeline, StoreRefused
from lockstep.sinks.base import Sink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import SinkContext
from lockstep.wal.table_staging import TableStaging

__all__ = ["DeltaSink"]

OnNewColumns: TypeAlias = Literal["refuse", "add"]
_MISREAD = re.compile(r"%[0-9A-Fa-f]{2}|\?")  #: in a local path: an escape, the beginning of a query


@dataclass(frozen=True, kw_only=True)
class DeltaSink(Sink):
    """Writes one output into one Delta table, exactly once; needs the extra `delta`.

    `path`: the table's folder, or s3://bucket/prefix, see docs/object-stores.md. No other sink of Lockstep may use the
    table; other writers may. `create`: create the table if there is none. `partition_by`: the table's partition
    columns; an epoch is staged as files of one partition each. `on_new_columns`: what to do with columns that the table
    lacks: "refuse", or "add" them as nullable columns. `epoch_column`: the table's column for the epoch's number.

    Raises `InvalidPipeline`.
    """

    name: str = field(kw_only=False)
    output: str
    path: str
    create: bool = False
    partition_by: Sequence[str] = ()
    on_new_columns: OnNewColumns = "refuse"
    epoch_column: str = "lockstep_epoch"

    adopts: ClassVar[bool] = True
    compacts: ClassVar[bool] = True
    may_lose_commits: ClassVar[bool] = True
    local_paths: ClassVar[frozenset[str]] = frozenset({"path"})

    def __post_init__(self) -> None:
        super().__post_init__()
        require_name("output", self.output)
        if "://" in self.path:
            object.__setattr__(self, "path", _path_of(f"sink {self.name}", self.path))
        if "://" not in self.path and (escape := _MISREAD.search(self.path)):
            raise InvalidPipeline(
                f"sink {self.name}: path={self.path!r} has {escape[0]!r}, which deltalake or Spark decodes: rename it"
            )
        if isinstance(self.partition_by, str):
            raise InvalidPipeline(f"sink {self.name}: partition_by is a list of columns: give [{self.partition_by!r}]")
        object.__setattr__(self, "partition_by", tuple(self.partition_by))
        if self.on_new_columns not in ("refuse", "add"):
            raise InvalidPipeline(
                f"sink {self.name}: on_new_columns={self.on_new_columns!r} is neither 'refuse' nor 'add'"
            )
        if not self.epoch_column or self.epoch_column in self.partition_by:
            raise InvalidPipeline(
                f"sink {self.name}: epoch_column={self.epoch_column!r}: give it a name, and don't partition by it: "
                "that makes one folder per epoch"
            )

    def arguments(self) -> dict[str, Json]:
        return {**super().arguments(), "partition_by": list(self.partition_by)}

    def writes_to(self) -> frozenset[str]:
        return frozenset({f"Delta table {self.path}"})

    def datasets(self, connections: Mapping[str, str]) -> Mapping[str, Dataset]:
        return {self.output: dataset_at(self.path)}

    def home(self, context: SinkContext) -> TableStaging:
        return TableStaging(self.path, self.epoch_column, tuple(self.partition_by))

    def open(self, context: SinkContext) -> OpenSink:
        with naming_extra(f"sink {self.name}"):
            from lockstep.sinks.delta._open_sink import OpenDeltaSink

            return OpenDeltaSink(self, context)


def _path_of(label: str, uri: str) -> str:
    """The path of file:///…, or s3://… unchanged. Raises `InvalidPipeline` for any other URI."""
    if uri.startswith("file:///"):
        return uri.removeprefix("file://")
    scheme = uri.partition("://")[0]
    if scheme != "s3":
        hint = "; Spark's s3a:// is s3:// here" if scheme == "s3a" else ""
        raise InvalidPipeline(
            f"{label}: {scheme}:// isn't supported for Delta tables: give s3://bucket/prefix, or a folder of a local "
            f"or mounted file system{hint}"
        )
    try:
        address = Address.of(uri)
    except StoreRefused as error:
        raise InvalidPipeline(f"{label}: {error}") from None
    if not address.prefix or "%" in address.uri:
        raise InvalidPipeline(
            f"{label}: a Delta table on S3 is at s3://bucket/prefix, with a prefix of letters, digits, '/', '-', '_', "
            "'.' and '=': Spark and deltalake encode other characters differently"
        )
    return uri
