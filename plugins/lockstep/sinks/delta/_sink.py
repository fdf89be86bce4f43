"""DeltaSink: an epoch's files as files of a Delta table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from lockstep.epoch import Json, require_name
from lockstep.errors import InvalidPipeline
from lockstep.extras import naming_extra
from lockstep.output_home import OutputHome
from lockstep.sinks.base import Sink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import SinkContext

OnNewColumns: TypeAlias = Literal["refuse", "add"]


@dataclass(frozen=True, kw_only=True)
class DeltaSink(Sink):
    """One output in one Delta table, exactly once; needs the extra `delta`.

    `path`: the table's folder, used by this sink alone among Lockstep's; anybody may write to it by other means.
    `create`: make the table where there is none, partitioned by the columns `partition_by`, of each of which a file may
    have one value only. `on_new_columns`: what becomes of columns that the table lacks, "add" makes them nullable ones
    of the table. `epoch_column`: the table's column with the epoch's number.

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
    local_paths: ClassVar[frozenset[str]] = frozenset({"path"})

    def __post_init__(self) -> None:
        super().__post_init__()
        require_name("output", self.output)
        if "://" in self.path and not self.path.startswith("file:///"):
            raise InvalidPipeline(
                f"sink {self.name}: {self.path.partition('://')[0]}:// isn't tried for Delta tables yet: give a folder "
                "of a local or mounted file system"
            )
        if self.path.startswith("file://"):
            object.__setattr__(self, "path", self.path.removeprefix("file://"))
        if isinstance(self.partition_by, str):
            raise InvalidPipeline(f"sink {self.name}: partition_by is a list of columns: say [{self.partition_by!r}]")
        object.__setattr__(self, "partition_by", tuple(self.partition_by))
        if self.on_new_columns not in ("refuse", "add"):
            raise InvalidPipeline(
                f"sink {self.name}: on_new_columns={self.on_new_columns!r} is neither 'refuse' nor 'add'"
            )
        if not self.epoch_column or self.epoch_column in self.partition_by:
            raise InvalidPipeline(
                f"sink {self.name}: epoch_column={self.epoch_column!r}: give it a name, and don't partition by it: "
                "that makes a folder an epoch"
            )

    def arguments(self) -> dict[str, Json]:
        return {**super().arguments(), "partition_by": list(self.partition_by)}

    def writes_to(self) -> frozenset[str]:
        return frozenset({f"Delta table {self.path}"})

    def home(self, context: SinkContext) -> OutputHome:
        return OutputHome(self.path, self.epoch_column)

    def open(self, context: SinkContext) -> OpenSink:
        with naming_extra(f"sink {self.name}"):
            from lockstep.sinks.delta._open_sink import OpenDeltaSink

            return OpenDeltaSink(self, context)
