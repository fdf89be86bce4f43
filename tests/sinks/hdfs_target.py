"""FileSink on a folder of a real HDFS. Each call is made in a process apart: the client doesn't survive a fork."""

from __future__ import annotations

from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep.connections.hdfs.address import HdfsAddress
from lockstep.connections.hdfs.file_system import HdfsEntry, HdfsFileSystem
from lockstep.sinks.files import files
from lockstep.testing._sealed_rows import SCHEMA
from tests.sinks.in_clean_process import RemoteFiles
from tests.sinks.s3_target import FilesApartUnderTest

T = TypeVar("T")


class HdfsFilesUnderTest(FilesApartUnderTest):
    def __init__(self, uri: str, **more: Any) -> None:
        super().__init__(uri, **more)
        self.files, self.root = HdfsFileSystem.at(HdfsAddress.of(uri)), HdfsAddress.of(self.uri).path

    def bare(self) -> pa.Table:
        """What a reader sees who lists the folder and knows nothing of markers."""
        state = f"{self.root}/.lockstep/"

        def look() -> pa.Table:
            shown = [one.path for one in self.below() if not one.path.startswith(state)]
            return self._rows(sorted(path for path in shown if path.endswith(".parquet")))

        return self._look(look)

    def _rows(self, paths: list[str]) -> pa.Table:
        tables = [
            pq.read_table(pa.BufferReader(self.files.read(HdfsAddress.of(path).path if "://" in path else path)))
            for path in paths
        ]
        return pa.concat_tables([SCHEMA.empty_table(), *(table.select(SCHEMA.names).cast(SCHEMA) for table in tables)])

    def below(self, folder: str | None = None) -> list[HdfsEntry]:
        found: list[HdfsEntry] = []
        for one in self.files.children(folder or self.root):
            found += self.below(one.path) if one.is_folder else [one]
        return found

    def unsettled(self) -> list[str]:
        return self._look(self._unsettled)

    def _unsettled(self) -> list[str]:
        published = {HdfsAddress.of(path).path for path in files(self.uri)}
        kept = tuple(f"{self.root}/.lockstep/{name}" for name in ("target.json", "epoch=", "span=", "replaced="))
        left = [one.path for one in self.below() if not one.path.startswith(kept) and one.path not in published]
        left += [one.path for one in self.files.children(f"{self.root}/.lockstep/pending")]
        return [path for path in left if not path.rpartition("/")[2].startswith("_SUCCESS")]

    def lose(self, handle: str) -> None:
        self._look(lambda: self.files.delete(f"{self.root}/.lockstep/pending/{handle.replace(':', ',')}"))


ON_HDFS = RemoteFiles(
    "HDFS",
    HdfsFilesUnderTest,
    HdfsFileSystem,
    ("make_folder", "create", "write", "rename", "delete"),
    written="after write",
    shown="after rename",
)
