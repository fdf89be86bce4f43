"""The sinks of Lockstep, each on a fresh target, for the behaviour suite."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep.sinks.base import Sink, SinkContext
from lockstep.sinks.file_format import FileFormat, read_rows
from lockstep.sinks.files import FileSink, files
from lockstep.testing.sealed_rows import OUTPUT, SCHEMA
from lockstep.testing.under_test import SinkUnderTest


class FilesUnderTest(SinkUnderTest):
    """FileSink on a folder below `folder`."""

    def __init__(self, folder: Path, format: str) -> None:
        self.folder, self.format = folder, format
        self.path = folder / "out"

    def sink(self, *, shared: bool = False) -> FileSink:
        return FileSink("files", output=OUTPUT, path=str(self.path), format=self.format, shared=shared)

    def elsewhere(self) -> tuple[Sink, SinkContext]:
        sink = FileSink("files", output=OUTPUT, path=str(self.folder / "elsewhere"), format=self.format)
        with sink.opened(self.context()):
            sink.preflight(None)
        return sink, self.context()

    def visible(self) -> pa.Table:
        batches = [SCHEMA.empty_table(), *map(self._read, files(str(self.path)))]
        return pa.concat_tables(batches)

    def _read(self, path: str) -> pa.Table:
        if self.format == "parquet":
            return pq.ParquetFile(path).read().select(SCHEMA.names).cast(SCHEMA)
        return pa.Table.from_batches(list(read_rows(FileFormat(self.format), Path(path), SCHEMA)), SCHEMA)

    def unsettled(self) -> list[str]:
        published = set(files(str(self.path)))
        data = [str(path) for path in self.path.iterdir() if path.name != ".lockstep" and str(path) not in published]
        state = self.path / ".lockstep"
        return data + [str(p) for p in state.iterdir() if p.name != "target.json" and not p.match("epoch=*.json")]

    def lose(self, handle: str) -> None:
        lost = self.folder / f"lost-{handle}"
        with suppress(FileNotFoundError):
            (self.path / ".lockstep" / handle.split(":")[5]).rename(lost)
            shutil.rmtree(lost)
