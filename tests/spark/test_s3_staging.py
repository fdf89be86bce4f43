"""Whole epochs on a real S3 server: Spark reads and writes by s3a, the tasks list, freeze, seal and show by obstore."""

from __future__ import annotations

import io
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg2
import pyarrow.parquet as pq
import pytest

from lockstep import files
from lockstep.connections.object_store.store import ObjectStore
from lockstep.sinks import FileSink
from lockstep.sources import FileSource
from lockstep.states import EpochState
from lockstep.wal._storage import Storage
from lockstep.wal.parquet import Fingerprint
from stack.s3 import S3Server
from tests.s3_proxy import Fault, S3Proxy
from tests.sampling import Sampling
from tests.spark.test_run_epoch import Shop

ORDERS = [("ann", 1), ("bob", 2), ("ann", 1)]


class AllOnS3(Shop):
    """The same pipeline with its input, its WAL and its files on the store."""

    def __init__(self, spark: str, ledger: str, warehouse: str, folder: Path, uri: str) -> None:
        super().__init__(spark, ledger, warehouse, folder)
        place, _, options = uri.partition("?")
        self._arguments["staging"] = f"{place}/wal?{options}"
        self.out = f"{place}/totals?{options}"
        self.landing, self.staging = (
            ObjectStore.at(f"{place}/landing?{options}"),
            ObjectStore.at(f"{place}/wal?{options}"),
        )
        sinks = [replace(one, path=self.out) if isinstance(one, FileSink) else one for one in self.pipeline.sinks]
        path = f"{place}/landing/{{interval_start:%Y-%m-%d}}*.csv?{options}"
        source = FileSource(path, schema="customer STRING, amount BIGINT")
        self.pipeline = replace(self.pipeline, sources={"orders": source}, sinks=sinks)

    def land(self, name: str, *rows: tuple[str, int | str]) -> None:
        text = "customer,amount\n" + "".join(f"{customer},{amount}\n" for customer, amount in rows)
        self.landing.replace(f"{name}.csv", text.encode())

    def left(self) -> list[str]:
        """What staging holds, below the pipeline's folder."""
        return sorted(found.path.split("/", 2)[2] for found in self.staging.find_below(""))


@pytest.fixture
def shop(spark_on_s3: str, s3_uri: str, proxy: S3Proxy, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path) -> AllOnS3:
    uri = f"{s3_uri}?endpoint_override={proxy.endpoint.removeprefix('http://')}&scheme=http"
    return AllOnS3(spark_on_s3, ledger_dsn, warehouse_dsn, tmp_path, uri)


def test_an_epoch_moves_by_way_of_the_store_and_no_login_stands_in_its_plan(shop: AllOnS3, s3_server: S3Server) -> None:
    for day in range(2):
        shop.land(f"2013-01-{day + 1:02}", *((name, amount + day) for name, amount in ORDERS))
        report = shop.run(day)
        assert (report.state, report.rows) == (EpochState.CLEANED, {"orders": 3, "totals": 2})
        assert shop.run(day).already_published
    assert shop.orders() == Counter([*ORDERS, *((name, amount + 1) for name, amount in ORDERS)])
    shop.land("2013-01-03")
    assert shop.run(2).rows == {"orders": 0, "totals": 0}
    assert shop.left() == [f"manifests/epoch={number}.json" for number in (1, 2, 3)]
    assert [path.partition("/totals/")[2][:15] for path in files(shop.out)] == ["totals-epoch=1-", "totals-epoch=2-"]
    store = ObjectStore.at(shop.out)
    shown = [pq.read_table(io.BytesIO(store.read(path.partition("/totals/")[2]))) for path in files(shop.out)]
    assert [sorted(table.to_pydict()["total"]) for table in shown] == [[2, 2], [3, 4]]
    assert list(store.find_below(".lockstep/pending")) == []
    with closing(psycopg2.connect(shop._arguments["ledger"])) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(epoch::text, '') FROM lockstep.epoch")
        [(plans,)] = cursor.fetchall()
    assert "landing/2013-01-01.csv" in plans and '"etag"' in plans
    assert s3_server.secret_key not in plans and s3_server.access_key not in plans


def test_an_interval_s_objects_are_read_once_whatever_they_are_called(shop: AllOnS3) -> None:
    odd = ["", " a b", "50%20", "{c}[d]", "é", "a?b", "a#b", "a+b=c&d"]
    for number, name in enumerate(odd):
        shop.land(f"2013-01-01{name}", (f"customer {number}", number))
    shop.land("2013-01-02", *ORDERS)
    assert shop.run(0).rows["orders"] == len(odd)
    assert shop.run(0).already_published
    assert sorted(shop.orders()) == [(f"customer {number}", number) for number in range(len(odd))]


def test_executors_read_what_they_wrote_to_the_store(
    shop: AllOnS3, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def nothing(storage: Storage, path: str, fresh: bool = False) -> Fingerprint:
        raise AssertionError(f"the task reads {path}")

    monkeypatch.setenv("LOCKSTEP_SEAL_BYTES", "0")
    monkeypatch.setattr("lockstep.wal.sealing.fingerprint", nothing)
    shop.land("2013-01-01", *ORDERS)
    assert shop.run(0).rows == {"orders": 3, "totals": 2}, caplog.text
    assert shop.orders() == Counter(ORDERS)
    assert shop.left() == ["manifests/epoch=1.json"]


#: Each disturbs some request of the epoch, Spark's and the tasks', and is gone after that.
DISTURBED = [
    (Fault.LOST_ANSWER, "PUT", "_manifest.json"),
    (Fault.ERROR_AFTER, "PUT", "_manifest.json"),
    (Fault.CUT_UPLOAD, "PUT", "_manifest.json"),
    (Fault.LOST_ANSWER, "PUT", "/.folder"),
    (Fault.ERROR_AFTER, "PUT", "_request.json"),
    (Fault.SLOW_DOWN, "PUT", ".parquet"),
    (Fault.CUT_UPLOAD, "PUT", ".parquet"),
    (Fault.LOST_ANSWER, "POST", ".parquet"),
    (Fault.ERROR_AFTER, "POST", ".parquet"),
    (Fault.SLOW_DOWN, "GET", ".parquet"),
    (Fault.ERROR, "GET", "list-type=2"),
    (Fault.LOST_ANSWER, "POST", "?delete"),
]


@pytest.mark.fault("B21")
def test_an_epoch_gets_over_what_happens_on_the_way_to_the_store(
    shop: AllOnS3, proxy: S3Proxy, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    for day, (fault, method, part) in enumerate(sampling.sample(DISTURBED, 5)):
        with subtests.test(f"{fault}: {method} {part}"):
            shop.land(f"2013-01-{day + 1:02}", *((name, day) for name, _ in ORDERS))
            before = proxy.hits[fault]
            proxy.plan(fault, method, part)
            assert shop.run(day, run_id=f"day {day}").state is EpochState.CLEANED
            assert proxy.hits[fault] == before + 1, "it wasn't disturbed"
            shown = {name: times for (name, amount), times in shop.orders().items() if amount == day}
            assert shown == {"ann": 2, "bob": 1}
    assert {path.partition("/")[0] for path in shop.left()} == {"manifests"}
