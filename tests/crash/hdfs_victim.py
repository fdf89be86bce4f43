"""A process of its own that runs tasks of the small world with its WAL and the files of its sink on HDFS, and may die
there."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from lockstep.connections.hdfs.address import HdfsAddress
from lockstep.connections.hdfs.file_system import HdfsEntry, HdfsFileSystem
from lockstep.errors import StageFailed
from lockstep.sinks.files import files
from lockstep.wal._storage import tree
from lockstep.wal.storages import storage_at
from tests.crash.s3_victim import S3World, main, write_by
from tests.crash.world import Rows


@dataclass(frozen=True)
class HdfsWorld(S3World):
    """`staging_uri` and `files_uri` are of HDFS."""

    def left_in_staging(self) -> list[str]:
        found = [entry.path for entry in tree(storage_at(self.staging_uri), "")]
        return [path for path in found if path.split("/")[2:3] != ["manifests"] and path.count("/") > 1]

    def shown_in_files(self, day: int) -> Rows:
        return self._rows_by(self._read, [HdfsAddress.of(uri).path for uri in files(self.files_uri)], day)

    def bare_files(self, day: int) -> Rows:
        return self._rows_by(self._read, [one.path for one in self._children("") if not one.is_folder], day)

    def left_in_sink(self) -> list[str]:
        return [one.name for one in self._children("/.lockstep/pending")]

    def launch(self, request_uri: str) -> None:
        folder = HdfsAddress.of(request_uri.rpartition("/")[0])
        cluster = HdfsFileSystem.at(folder)

        def replace(path: str, data: bytes) -> None:
            target = f"{folder.path}/{path}"
            cluster.make_folder(target.rpartition("/")[0])
            cluster.write(target, data)

        try:
            write_by(lambda path: cluster.read(f"{folder.path}/{path}"), replace)
        except OSError as error:
            raise StageFailed(f"the job has failed: {error}") from error

    def _children(self, folder: str) -> list[HdfsEntry]:
        place = HdfsAddress.of(self.files_uri)
        return list(HdfsFileSystem.at(place).children(f"{place.path}{folder}"))

    def _read(self, path: str) -> bytes:
        return HdfsFileSystem.at(HdfsAddress.of(self.files_uri)).read(path)


if __name__ == "__main__":
    main(HdfsWorld, sys.argv[1])
