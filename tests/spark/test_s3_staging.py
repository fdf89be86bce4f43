"""Whole epochs whose WAL is on a real S3 server: Spark writes by s3a, the tasks seal and read by obstore."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lockstep import files
from lockstep.object_store.store import ObjectStore
from lockstep.states import EpochState
from lockstep.wal._parquet import Fingerprint
from lockstep.wal._storage import Storage
from stack.s3 import S3Server
from tests.s3_proxy import Fault, S3Proxy
from tests.sampling import Sampling
from tests.spark.test_run_epoch import Shop

ORDERS = [("ann", 1), ("bob", 2), ("ann", 1)]
SHOWN = Counter({("ann", 1): 2, ("bob", 2): 1})


class S3Shop(Shop):
    """The same pipeline, with its WAL on the store."""

    def __init__(self, spark: str, ledger: str, warehouse: str, folder: Path, uri: str) -> None:
        super().__init__(spark, ledger, warehouse, folder)
        self._arguments["staging"] = uri
        self.staging = ObjectStore.at(uri)

    def left(self) -> list[str]:
        """What staging holds, below the pipeline's folder."""
        return sorted(found.path.split("/", 2)[2] for found in self.staging.find_below(""))


@pytest.fixture
def shop(spark_on_s3: str, s3_uri: str, proxy: S3Proxy, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path) -> S3Shop:
    uri = f"{s3_uri}/wal?endpoint_override={proxy.endpoint.removeprefix('http://')}&scheme=http"
    return S3Shop(spark_on_s3, ledger_dsn, warehouse_dsn, tmp_path, uri)


def test_an_epoch_moves_by_way_of_the_store_and_leaves_its_manifest(shop: S3Shop) -> None:
    shop.land("2013-01-01", *ORDERS)
    report = shop.run(0)
    assert report.state is EpochState.CLEANED
    assert report.rows == {"orders": 3, "totals": 2}
    assert shop.run(0).already_published
    assert shop.orders() == SHOWN
    assert len(files(str(shop.folder / "totals"))) == 1
    shop.land("2013-01-02")
    assert shop.run(1).rows == {"orders": 0, "totals": 0}
    assert shop.left() == ["manifests/epoch=1.json", "manifests/epoch=2.json"]


def test_executors_read_what_they_wrote_to_the_store(
    shop: S3Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def nothing(storage: Storage, path: str, fresh: bool = False) -> Fingerprint:
        raise AssertionError(f"the task reads {path}")

    monkeypatch.setenv("LOCKSTEP_SEAL_BYTES", "0")
    monkeypatch.setattr("lockstep.wal.sealing.fingerprint", nothing)
    shop.land("2013-01-01", *ORDERS)
    assert shop.run(0).rows == {"orders": 3, "totals": 2}, caplog.text
    assert shop.orders() == SHOWN
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
    shop: S3Shop, proxy: S3Proxy, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    for day, (fault, method, part) in enumerate(sampling.sample(DISTURBED, 5)):
        with subtests.test(f"{fault}: {method} {part}"):
            shop.land(f"2013-01-{day + 1:02}", *((name, day) for name, _ in ORDERS))
            before = proxy.hits[fault]
            proxy.plan(fault, method, part)
            assert shop.run(day, run_id=f"day {day}").state is EpochState.CLEANED
            assert proxy.hits[fault] == before + 1, "it wasn't disturbed"
            assert {one: times for one, times in shop.orders().items() if one[1] == day} == {
                ("ann", day): 2,
                ("bob", day): 1,
            }
    assert {path.partition("/")[0] for path in shop.left()} == {"manifests"}


def test_the_login_stands_in_no_plan_log_or_argument(
    shop: S3Shop, s3_server: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    import psutil
    import psycopg2

    shop.land("2013-01-01", *ORDERS)
    with caplog.at_level("DEBUG"):
        shop.run(0)
    connection = psycopg2.connect(shop._arguments["ledger"])
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(epoch::text, '') FROM lockstep.epoch")
        [(plans,)] = cursor.fetchall()
    connection.close()
    arguments = " ".join(" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
    for place in (plans, caplog.text, arguments):
        assert s3_server.secret_key not in place
        assert s3_server.access_key not in place
