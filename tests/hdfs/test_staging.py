"""A WAL on a real HDFS: what is made once, what is moved and deleted, and a seal that is read back."""

from __future__ import annotations

import errno
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep.errors import StagingRefused, WalCorrupt
from lockstep.wal._hdfs_storage import HdfsStorage
from lockstep.wal._storage import Entry, Kind
from lockstep.wal.manifest import SourceCount
from lockstep.wal.staging import Staging, storage_at

DEPLOYMENT = "2b1d9b4e-0f6a-4a0f-9c7e-6f8f1c2d3e4f"


@pytest.fixture
def storage(hdfs_uri: str) -> HdfsStorage:
    return HdfsStorage.at(hdfs_uri)


def test_a_folder_and_a_file_are_made_once(storage: HdfsStorage) -> None:
    storage.make_folder("a/b")
    storage.create("a/b/c", b"first")
    with pytest.raises(FileExistsError):
        storage.make_folder("a/b")
    with pytest.raises(FileExistsError):
        storage.create("a/b/c", b"second")
    with pytest.raises(FileExistsError):
        storage.put("a/b/c", b"second")
    with pytest.raises(FileNotFoundError):
        storage.create("a/none/c", b"")
    storage.put("a/d/e", b"with its parents")
    assert storage.open("a/b/c").read() == b"first"
    assert storage.children("a") == [Entry("a/b", Kind.FOLDER), Entry("a/d", Kind.FOLDER)]
    assert storage.children("") == [Entry("a", Kind.FOLDER)]


def test_a_file_is_replaced_and_moved_over_what_is_there(storage: HdfsStorage) -> None:
    storage.replace("a/b", b"1")
    storage.replace("a/b", b"22")
    storage.put("c/d", b"333")
    storage.move("c/d", "a/b")
    assert storage.open("a/b").read() == b"333"
    assert storage.children("a") == [Entry("a/b", Kind.FILE)]
    assert not storage.exists("c/d") and storage.exists("c")


def test_only_an_empty_folder_is_removed(storage: HdfsStorage) -> None:
    storage.put("a/b", b"")
    with pytest.raises(OSError) as refused:
        storage.remove_folder("a")
    assert refused.value.errno == errno.ENOTEMPTY
    storage.delete("a/b")
    storage.remove_folder("a")
    with pytest.raises(FileNotFoundError):
        storage.delete("a/b")
    with pytest.raises(FileNotFoundError):
        storage.remove_folder("a")
    with pytest.raises(FileNotFoundError):
        storage.children("a")


def test_no_path_leads_out_of_it_and_no_address_has_options(storage: HdfsStorage, hdfs_uri: str) -> None:
    with pytest.raises(StagingRefused):
        storage.exists("../a")
    for uri in (f"{hdfs_uri}?user=x", "hdfs://a:hidden@b/c", "viewfs://a/b"):
        with pytest.raises(StagingRefused) as refused:
            storage_at(uri)
        assert "hidden" not in str(refused.value)


def test_a_sealed_wal_is_read_back_checked_and_deleted(hdfs_uri: str, tmp_path: Path) -> None:
    staging, table = Staging(hdfs_uri), pa.table({"id": pa.array(range(1000))})
    folder = staging.folder(DEPLOYMENT, "orders", 1, 7)
    staging.create(folder)
    with pytest.raises(StagingRefused):
        staging.create(folder)
    pq.write_table(table, tmp_path / "part.parquet")
    part = f"{folder}/rows/part-00000-5d3c0dd4-c000.snappy.parquet"
    storage = storage_at(hdfs_uri)
    storage.put(part, (tmp_path / "part.parquet").read_bytes())
    manifest = staging.seal(
        folder,
        deployment=DEPLOYMENT,
        pipeline="orders",
        epoch=1,
        token=7,
        outputs=("rows",),
        observed={"rows": 1000},
        sources={"landing": SourceCount(1000, 1)},
    )
    [output] = staging.open(folder, manifest.hash).outputs(["rows"])
    assert pa.Table.from_batches(list(output)).equals(table)
    storage.replace(part, (tmp_path / "part.parquet").read_bytes()[:-1] + b"x")
    with pytest.raises(WalCorrupt):
        staging.open(folder, manifest.hash).check()
    staging.discard(folder)
    staging.discard(folder)
    assert not storage.exists(folder)
