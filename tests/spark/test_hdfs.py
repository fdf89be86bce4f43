"""Whole epochs on a real HDFS: the tasks list, seal and write there, Spark reads and stages, by the same protocol."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lockstep import files
from lockstep.connections.hdfs.address import HdfsAddress
from lockstep.connections.hdfs.file_system import HdfsFileSystem
from lockstep.sinks import FileSink
from lockstep.sources import FileSource
from lockstep.states import EpochState
from lockstep.wal._storage import Kind, Storage, tree
from lockstep.wal.parquet import Fingerprint
from lockstep.wal.storages import storage_at
from stack.hdfs import HdfsServer
from tests.sources.landings import OnHdfs
from tests.spark.test_run_epoch import Shop

ORDERS = [("ann", 1), ("bob", 2), ("ann", 1)]


class AllOnHdfs(Shop):
    """The same pipeline with its input, its WAL and its files on the cluster that Hadoop's configuration names."""

    def __init__(self, spark: str, ledger: str, warehouse: str, folder: Path, uri: str) -> None:
        super().__init__(spark, ledger, warehouse, folder)
        place, self.landing = f"hdfs://{HdfsAddress.of(uri).path}", OnHdfs(uri)
        self.out = f"{place}/out"
        self._arguments["staging"] = f"{place}/wal"
        sinks = [replace(one, path=self.out) if isinstance(one, FileSink) else one for one in self.pipeline.sinks]
        source = FileSource(f"{place}/in/{{interval_start:%Y-%m-%d}}*.csv", schema="customer STRING, amount BIGINT")
        self.pipeline = replace(self.pipeline, sources={"orders": source}, sinks=sinks)

    def land(self, name: str, *rows: tuple[str, int | str]) -> None:
        lines = "".join(f"{customer},{amount}\n" for customer, amount in rows)
        self.landing.land(f"in/{name}.csv", f"customer,amount\n{lines}")

    def shown(self) -> list[dict[str, int]]:
        """The totals of each file that the markers list."""
        found = map(HdfsAddress.of, files(self.out))
        tables = [pq.read_table(io.BytesIO(HdfsFileSystem.at(one).read(one.path))) for one in found]
        return [dict(zip(*table.to_pydict().values(), strict=True)) for table in tables]

    def left(self) -> list[str]:
        """What staging holds, below the pipeline's folder."""
        storage = storage_at(self._arguments["staging"])
        return [entry.path.split("/", 2)[2] for entry in tree(storage, "") if entry.kind is Kind.FILE]


@pytest.fixture
def everything(
    spark_connect: str,
    hdfs_server: HdfsServer,
    hdfs_uri: str,
    ledger_dsn: str,
    warehouse_dsn: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AllOnHdfs:
    monkeypatch.setenv("HADOOP_CONF_DIR", hdfs_server.environment["HADOOP_CONF_DIR"])
    return AllOnHdfs(spark_connect, ledger_dsn, warehouse_dsn, tmp_path, hdfs_uri)


def test_an_epoch_goes_from_hdfs_to_hdfs_by_way_of_hdfs(everything: AllOnHdfs) -> None:
    for day in range(2):
        everything.land(f"2013-01-0{day + 1} a%20b{{c}}", *((name, amount + day) for name, amount in ORDERS))
        assert everything.run(day).state is EpochState.CLEANED
        assert everything.run(day).already_published
    assert everything.shown() == [{"ann": 2, "bob": 2}, {"ann": 4, "bob": 3}]
    assert sum(everything.orders().values()) == 6
    everything.land("2013-01-03")
    assert everything.run(2).rows == {"orders": 0, "totals": 0}
    assert len(everything.shown()) == 2
    assert sorted(everything.left()) == [f"manifests/epoch={number}.json" for number in (1, 2, 3)]


def test_executors_read_what_they_wrote_to_hdfs(
    everything: AllOnHdfs, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def nothing(storage: Storage, path: str, fresh: bool = False) -> Fingerprint:
        raise AssertionError(f"the task reads {path}")

    monkeypatch.setenv("LOCKSTEP_SEAL_BYTES", "0")
    monkeypatch.setattr("lockstep.wal.sealing.fingerprint", nothing)
    everything.land("2013-01-01", *ORDERS)
    assert everything.run(0).rows == {"orders": 3, "totals": 2}, caplog.text
    assert everything.orders() == Counter(ORDERS)
