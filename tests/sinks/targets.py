"""The sinks of Lockstep, each on a fresh target, for the behaviour suite."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from lockstep.sinks.base import Sink
from lockstep.sinks.files import FileSink, files
from lockstep.sinks.files._format import FileFormat, read_rows
from lockstep.sinks.files.buckets import Buckets
from lockstep.sinks.values import SinkContext
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA
from lockstep.testing._under_test import SinkUnderTest


class FilesUnderTest(SinkUnderTest):
    """FileSink on a folder below `folder`; small files, so that an epoch has several."""

    replaceable = True

    def __init__(
        self,
        folder: Path,
        format: str,
        *,
        bucket: Buckets | None = None,
        rows_per_file: int = 300,
        success: str | None = None,
    ) -> None:
        self.folder, self.format, self.bucket = folder, format, bucket
        self.rows_per_file, self.success = rows_per_file, success
        self.path = folder / "out"

    def sink(self, *, shared: bool = False) -> FileSink:
        return self._sink("out", shared)

    def _sink(self, folder: str, shared: bool = False) -> FileSink:
        return FileSink(
            "files",
            output=OUTPUT,
            path=str(self.folder / folder),
            format=self.format,
            bucket=self.bucket,
            max_rows_per_file=self.rows_per_file,
            success=self.success,
            shared=shared,
        )

    def elsewhere(self) -> tuple[Sink, SinkContext]:
        sink = self._sink("elsewhere")
        with sink.opened(self.context()) as live:
            live.preflight(None)
        return sink, self.context()

    def visible(self) -> pa.Table:
        """As docs/sinks/files.md has it: who finds a file gone that was listed asks again."""
        for _ in range(100):
            with suppress(FileNotFoundError):
                return self._listed(files(str(self.path)))
        return self._listed(files(str(self.path)))

    def _listed(self, found: list[str]) -> pa.Table:
        if self.format == "parquet":
            return self._partitioned(found)
        return pa.concat_tables([SCHEMA.empty_table(), *map(self._read, found)])

    def _partitioned(self, found: list[str]) -> pa.Table:
        """As pyarrow reads partitions in Hive's style."""
        told = [SCHEMA.field(name) for name in (self.bucket.path_columns if self.bucket else ())]
        partitioning = ds.partitioning(pa.schema(told), flavor="hive")
        dataset = ds.dataset(found, SCHEMA, "parquet", partitioning=partitioning, partition_base_dir=str(self.path))
        return dataset.to_table(use_threads=False)  # its threads wouldn't live in a forked process

    def _read(self, path: str) -> pa.Table:
        with Path(path).open("rb") as file:
            return pa.Table.from_batches(list(read_rows(FileFormat(self.format), file, SCHEMA)), SCHEMA)

    def unsettled(self) -> list[str]:
        published, state = set(files(str(self.path))), self.path / ".lockstep"
        shown = [path for path in self.path.rglob("*") if path.is_file() and not path.is_relative_to(state)]
        data = [str(path) for path in shown if str(path) not in published and not path.name.startswith("_SUCCESS")]
        kept = ("target.json", "epoch=*.json", "span=*.json", "replaced=*.json")
        return data + [str(path) for path in state.iterdir() if not any(map(path.match, kept))]

    def lose(self, handle: str) -> None:
        lost = self.folder / f"lost-{handle}"
        with suppress(FileNotFoundError):
            (self.path / ".lockstep" / handle.split(":")[5]).rename(lost)
            shutil.rmtree(lost)
