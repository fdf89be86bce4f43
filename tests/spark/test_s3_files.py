"""Whole epochs whose files are on a real S3 server: the tasks list, freeze and write by obstore, Spark reads by s3a."""

from __future__ import annotations

import io
import json
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import psycopg2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep import files
from lockstep.epoch import Interval
from lockstep.errors import BadRecords, SourceChanged
from lockstep.object_store.store import ObjectStore
from lockstep.sinks import FileSink
from lockstep.sources import FileSource, SourceContext
from stack.s3 import S3Server
from tests.s3_proxy import Fault, S3Proxy
from tests.spark.test_run_epoch import DAY, Shop

ORDERS = [("ann", 1), ("bob", 2), ("ann", 1)]


class LandingOnS3(Shop):
    """The same pipeline, with its files on the store."""

    def __init__(self, spark: str, ledger: str, warehouse: str, folder: Path, uri: str, path: str) -> None:
        super().__init__(spark, ledger, warehouse, folder)
        place, _, options = uri.partition("?")
        self.landing = ObjectStore.at(f"{place}/landing?{options}")
        source = FileSource(f"{place}/{path}?{options}", schema="customer STRING, amount BIGINT")
        self.pipeline = replace(self.pipeline, sources={"orders": source})

    def land(self, name: str, *rows: tuple[str, int | str]) -> None:
        text = "customer,amount\n" + "".join(f"{customer},{amount}\n" for customer, amount in rows)
        self.landing.replace(f"{name}.csv", text.encode())


@pytest.fixture
def uri(s3_uri: str, proxy: S3Proxy) -> str:
    return f"{s3_uri}?endpoint_override={proxy.endpoint.removeprefix('http://')}&scheme=http"


@pytest.fixture
def daily(spark_on_s3: str, uri: str, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path) -> LandingOnS3:
    path = "landing/{interval_start:%Y-%m-%d}*.csv"
    return LandingOnS3(spark_on_s3, ledger_dsn, warehouse_dsn, tmp_path, uri, path)


def test_an_interval_s_objects_are_read_once_whatever_they_are_called(daily: LandingOnS3) -> None:
    odd = ["", " a b", "50%20", "{c}[d]", "é", "a?b", "a#b", "a+b=c&d"]
    for number, name in enumerate(odd):
        daily.land(f"2013-01-01{name}", (f"customer {number}", number))
    daily.land("2013-01-02", *ORDERS)
    assert daily.run(0).rows["orders"] == len(odd)
    assert daily.run(0).already_published
    assert sorted(daily.orders()) == [(f"customer {number}", number) for number in range(len(odd))]


def test_of_parquet_objects_all_rows_are_read_that_their_footers_tell(daily: LandingOnS3, uri: str) -> None:
    place, _, options = uri.partition("?")
    for name, rows in (("a", ORDERS), ("b", ORDERS[:1])):
        file = io.BytesIO()
        pq.write_table(pa.table({"customer": [one for one, _ in rows], "amount": [n for _, n in rows]}), file)
        daily.landing.replace(f"2013-01-01{name}.parquet", file.getvalue())
    source = FileSource(f"{place}/landing/{{interval_start:%Y-%m-%d}}*.parquet?{options}", format="parquet")
    opened = source.open(SourceContext("shop", "orders", lambda paths: set()))
    assert opened.rows_held(None, opened.latest(None, Interval(DAY, DAY + timedelta(days=1)))) == 4
    daily.pipeline = replace(daily.pipeline, sources={"orders": source})
    assert daily.run(0).sources["orders"]["rows"] == 4


def test_bad_records_of_an_object_go_to_quarantine_with_its_name(daily: LandingOnS3, tmp_path: Path) -> None:
    source = daily.pipeline.sources["orders"]
    assert isinstance(source, FileSource)
    daily.pipeline = replace(daily.pipeline, sources={"orders": replace(source, on_bad_records="quarantine")})
    daily.land("2013-01-01", ("ann", "no number"), ("bob", 2))
    report = daily.run(0)
    assert report.rows["orders"] == 1
    assert report.sources["orders"] == {"rows": 2, "quarantined": 1}
    [kept] = [json.loads(line) for path in tmp_path.rglob("quarantine/**/*.json") for line in path.open()]
    assert kept["file"].startswith("s3a://tests/") and "no number" in kept["record"]


def test_an_object_that_is_replaced_while_its_epoch_waits_is_refused(daily: LandingOnS3) -> None:
    daily.land("2013-01-01", ("ann", "no number"))
    with pytest.raises(BadRecords, match=r"s3a://.*/landing/2013-01-01\.csv"):
        daily.run(0, run_id="first")
    daily.land("2013-01-01", *ORDERS)
    with pytest.raises(SourceChanged, match=r"2013-01-01\.csv changed.*(ETag|size)"):
        daily.run(0, run_id="second")
    assert not daily.orders()
    daily.replan(1, "a test")
    assert daily.run(0, run_id="third").rows["orders"] == len(ORDERS)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("fault", "method", "part"),
    [
        (Fault.ERROR, "GET", "list-type=2"),
        (Fault.LOST_ANSWER, "GET", "list-type=2"),
        (Fault.SLOW_DOWN, "HEAD", "landing/"),
        (Fault.LOST_ANSWER, "GET", "landing/"),
    ],
)
def test_a_disturbed_request_loses_no_object(
    fault: Fault, method: str, part: str, daily: LandingOnS3, proxy: S3Proxy
) -> None:
    daily.land("2013-01-01", *ORDERS)
    daily.land("2013-01-01 more", ("eve", 5))
    before = proxy.hits[fault]
    proxy.plan(fault, method, part)
    assert daily.run(0).rows["orders"] == 4
    assert proxy.hits[fault] == before + 1, "it wasn't disturbed"


def test_an_epoch_goes_from_one_prefix_to_another_and_no_login_stands_in_its_plan(
    daily: LandingOnS3, uri: str, s3_server: S3Server
) -> None:
    place, _, options = uri.partition("?")
    out = f"{place}/totals?{options}"
    sinks = [replace(one, path=out) if isinstance(one, FileSink) else one for one in daily.pipeline.sinks]
    daily.pipeline = replace(daily.pipeline, sinks=sinks)
    for day in range(2):
        daily.land(f"2013-01-{day + 1:02}", *((name, amount + day) for name, amount in ORDERS))
        assert daily.run(day).rows == {"orders": 3, "totals": 2}
        assert daily.run(day).already_published
    assert [path.partition("/totals/")[2][:15] for path in files(out)] == ["totals-epoch=1-", "totals-epoch=2-"]
    store = ObjectStore.at(out)
    shown = [pq.read_table(io.BytesIO(store.read(path.partition("/totals/")[2]))) for path in files(out)]
    assert [sorted(table.to_pydict()["total"]) for table in shown] == [[2, 2], [3, 4]]
    assert list(store.find_below(".lockstep/pending")) == []
    with closing(psycopg2.connect(daily._arguments["ledger"])) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(epoch::text, '') FROM lockstep.epoch")
        [(plans,)] = cursor.fetchall()
    assert "landing/2013-01-01.csv" in plans and '"etag"' in plans
    assert s3_server.secret_key not in plans and s3_server.access_key not in plans
