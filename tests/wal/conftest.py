"""A staging folder in which executions are laid out as Spark lays them out."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.store import LocalStore

from lockstep.connections.object_store.address import Address
from lockstep.connections.object_store.store import ObjectStore
from lockstep.wal import parquet as parquet
from lockstep.wal.file_digests import EarlyDigests, FileDigests
from lockstep.wal.manifest import Manifest, SourceCount
from lockstep.wal.staging import Staging
from lockstep.wal.storages import ObjectStorage
from lockstep.wal.table_staging import TableStaging
from tests.cases import cases

DEPLOYMENT = "0b2f9c1e-1111-4222-8333-444455556666"
OUTPUTS = ("flights", "delays")


def rows(count: int, start: int = 0) -> pa.Table:
    """`count` rows of an id, a text that hardly compresses, and a delay that is null now and then."""
    ids = range(start, start + count)
    schema = pa.schema([("id", pa.int64()), ("tail", pa.string()), ("delay", pa.float64())])
    columns = [
        list(ids),
        [f"N{id * 2654435761 % 4294967296:x}" for id in ids],
        [None if id % 7 == 0 else id / 3 for id in ids],
    ]
    return pa.table(columns, schema=schema)


@dataclass(frozen=True)
class Staged:
    """One execution: its files are written, its seal is up to the test."""

    staging: Staging
    root: Path
    epoch: int = 3
    token: int = 17
    pipeline: str = "flights"

    @property
    def folder(self) -> str:
        return self.staging.folder(DEPLOYMENT, self.pipeline, self.epoch, self.token)

    @property
    def path(self) -> Path:
        return self.root / self.folder

    def write(self, output: str, *tables: pa.Table) -> list[Path]:
        """Write one part a table, with the files that Hadoop puts beside them."""
        folder = self.path / output
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        paths = [folder / f"part-{number:05}-5d3c0dd4-c000.snappy.parquet" for number in range(len(tables))]
        for path, table in zip(paths, tables, strict=True):
            pq.write_table(table, path)
            path.with_name(f".{path.name}.crc").write_bytes(b"crc\0")
        (folder / "_SUCCESS").touch()
        (folder / "._SUCCESS.crc").write_bytes(b"crc\0")
        return paths

    def fill(self) -> Staged:
        """Create the folder with two files of flights (500 rows) and one of delays (40 rows)."""
        self.staging.create(self.folder)
        self.write("flights", rows(300), rows(200, 300))
        self.write("delays", rows(40))
        return self

    def seal(
        self,
        outputs: tuple[str, ...] = OUTPUTS,
        early: EarlyDigests | None = None,
        homes: Mapping[str, TableStaging] | None = None,
        digests: FileDigests | None = None,
        **observed: int,
    ) -> Manifest:
        return self.staging.seal(
            self.folder,
            deployment=DEPLOYMENT,
            pipeline=self.pipeline,
            epoch=self.epoch,
            token=self.token,
            outputs=outputs,
            observed={"flights": 500, "delays": 40} | observed,
            sources={"landing": SourceCount(501, 1)},
            early=early,
            homes=homes or {},
            digests=digests or {},
        )


def object_staging(root: Path) -> Staging:
    """Staging as it is on an object store; beneath is a local folder."""
    staging = Staging(str(root))
    staging._storage = ObjectStorage(local_store(root))
    return staging


def local_store(root: Path) -> ObjectStore:
    """Objects that are files below `root`."""
    return ObjectStore(LocalStore(root, mkdir=True, automatic_cleanup=True), Address("file", "", str(root).lstrip("/")))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "staging"


@pytest.fixture
def staging(root: Path) -> Staging:
    return Staging(f"file://{root}")


def staging_of(kind: str, root: Path) -> Staging:
    return Staging(str(root)) if kind == "local" else object_staging(root)


either_storage = cases("kind", ["local", "object"])
either_way = cases("chunked", [False, True])


def read_in_chunks(chunked: bool, patch: pytest.MonkeyPatch) -> None:
    """Small files are read once, large ones in two passes: a threshold of 0 makes every file large."""
    if chunked:
        for name, value in {"IN_MEMORY": 0, "_CHUNK": 512, "_BLOCK": 2048}.items():
            patch.setattr(parquet, name, value)


@pytest.fixture(params=["local", "object"])
def any_staging(request: pytest.FixtureRequest, root: Path) -> Staging:
    return staging_of(request.param, root)


@pytest.fixture
def another(tmp_path: Path) -> Callable[[], Staged]:
    """One more execution whose job is done, in a staging folder of its own."""
    numbers = count()

    def make() -> Staged:
        root = tmp_path / f"staging {next(numbers)}"
        return Staged(Staging(str(root)), root).fill()

    return make


@pytest.fixture
def staged(staging: Staging, root: Path) -> Staged:
    """An execution whose job is done, not sealed."""
    return Staged(staging, root).fill()
