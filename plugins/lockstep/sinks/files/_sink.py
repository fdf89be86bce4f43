"""FileSink: an epoch as files in a folder, whole or not at all for who asks `files`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import ClassVar

from lockstep.epoch import Json, require_name
from lockstep.errors import InvalidPipeline
from lockstep.home import absolute
from lockstep.sinks.base import Sink
from lockstep.sinks.files._format import FileFormat
from lockstep.sinks.files._layout import FileLayout
from lockstep.sinks.files._listing import read_marker
from lockstep.sinks.files._open_sink import OpenFileSink
from lockstep.sinks.files._target import STATE, FileTarget
from lockstep.sinks.files._writer import BYTES_PER_FILE, ROWS_PER_FILE
from lockstep.sinks.files.buckets import Buckets, buckets_of
from lockstep.sinks.handles import SinkName
from lockstep.sinks.values import SinkContext

_MAX_BUCKETS = 10_000


def files(path: str) -> list[str]:
    """The published files of the folder `path`, by epoch: of each epoch all or none.

    Reads the markers alone, so that a file that is shown before its epoch's marker stands isn't listed. An empty list
    if nothing has been published. Raises `OutcomeUnknown` if a marker is damaged.
    """
    root = Path(absolute(path))
    state = root / STATE
    markers = (*state.glob("epoch=*.json"), *state.glob("shared/*/*/*/epoch=*.json"))
    found = sorted(filter(None, map(read_marker, markers)), key=lambda one: (one.epoch, one.pipeline, one.sink))
    return [str(root / fact.name) for listing in found for fact in listing.files]


@dataclass(frozen=True, kw_only=True)
class FileSink(Sink):
    """Files of one output in one folder, exactly once.

    `path`: a folder of a file system with hard links, used by this sink alone unless every sink in it says
    `shared=True`. `format`: "parquet", "csv", "json" (lines) or "text"; all but Parquet take only what they can give
    back. `bucket`: puts rows into folders below `path` (`ByTime`, `ByColumns`, `ByFunction`); an epoch with more than
    `max_buckets` is refused. A file is closed at `max_rows_per_file`, or once it has `max_bytes_per_file`. `success`: a
    name that is created in every bucket that an epoch has rows in (without buckets: in `path`), once all its files can
    be seen; it starts with `_`, and `{epoch}` in it stands for the epoch.

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

    local_paths: ClassVar[frozenset[str]] = frozenset({"path"})

    def __post_init__(self) -> None:
        super().__post_init__()
        require_name("output", self.output)
        if "://" in self.path:
            raise InvalidPipeline(
                f"sink {self.name}: {self.path} is no local path; FileSink needs names that appear at once and are "
                "never replaced, which object stores don't give: mount a POSIX file system, or write to a table"
            )
        self._layout()

    def arguments(self) -> dict[str, Json]:
        """Without what is as usual, but for those that plans have always held."""
        bucket = None if self.bucket is None else buckets_of(self.bucket).to_json()
        given = {one.name: getattr(self, one.name) for one in fields(self)} | {"bucket": bucket}
        usual = {one.name: one.default for one in fields(self) if one.name not in ("format", "shared")}
        return {name: value for name, value in given.items() if name not in usual or value != usual[name]}

    def writes_to(self) -> frozenset[str]:
        return frozenset({f"folder {self.path}"})

    def open(self, context: SinkContext) -> OpenFileSink:
        target = FileTarget(self.path, SinkName.of(context, self.name), self.shared)
        return OpenFileSink(self, target, self._layout())

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
