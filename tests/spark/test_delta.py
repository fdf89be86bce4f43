"""Real Spark stages below a Delta table: few files with statistics, read back by deltalake and by Spark itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg2
import pyarrow as pa
import pytest

from lockstep import Pipeline, run_epoch, run_epochs
from lockstep.epoch import EpochReport
from lockstep.errors import LockstepError
from lockstep.sinks import DeltaSink, PostgresSink
from lockstep.sources import FileSource
from stack.delta import DELTA_SPARK
from stack.postgres import PostgresServer
from tests.apart import apart
from tests.sinks.delta_target import Log, on_table

DAY = datetime(2013, 1, 1, tzinfo=UTC)
ROWS = 2000


def as_they_are(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    orders = inputs["orders"]
    return {"orders": orders.repartition(7).withColumn("at", orders["day"].cast("timestamp"))}


class Shop:
    """Orders into a Delta table and Postgres, by day."""

    def __init__(self, spark: str, ledger: str, warehouse: str, folder: Path, **arguments: Any) -> None:
        self.warehouse, self.log, self.folder = warehouse, Log(folder / "lake" / "orders"), folder
        source = FileSource(
            f"{folder}/landing/{{interval_start:%Y-%m-%d}}.csv",
            format="csv",
            schema="id BIGINT, customer STRING, amount DECIMAL(10,2), ratio DOUBLE, day DATE",
        )
        (folder / "landing").mkdir()
        self.pipeline = Pipeline(
            name="shop",
            sources={"orders": source},
            transform=as_they_are,
            sinks=[
                PostgresSink("warehouse", tables={"orders": "public.orders"}, connection="warehouse", create=True),
                DeltaSink("lake", output="orders", path=str(self.log.root), create=True, **arguments),
            ],
        )
        self._arguments: dict[str, Any] = {
            "ledger": ledger,
            "staging": str(folder / "staging"),
            "connections": {"warehouse": warehouse},
            "spark": spark,
        }

    def land(self, day: int, rows: int = ROWS) -> None:
        date = DAY + timedelta(days=day)
        lines = [f"{day * 10_000 + i},customer {i % 50},{i}.25,{i / 7},{date:%Y-%m-%d}" for i in range(rows)]
        text = "\n".join(["id,customer,amount,ratio,day", *lines, ""])
        (self.folder / "landing" / f"{date:%Y-%m-%d}.csv").write_text(text)

    def run(self, day: int) -> EpochReport:
        interval = (DAY + timedelta(days=day), DAY + timedelta(days=day + 1))
        return apart(lambda: run_epoch(self.pipeline, interval=interval, **self._arguments))

    def run_pack(self, *days: int) -> None:
        intervals = [(DAY + timedelta(days=day), DAY + timedelta(days=day + 1)) for day in days]
        apart(lambda: run_epochs(self.pipeline, intervals=intervals, **self._arguments) and None)

    def in_warehouse(self) -> list[tuple[int, int]]:
        """Rows by epoch."""
        connection = psycopg2.connect(self.warehouse)
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT lockstep_epoch, count(*) FROM public.orders GROUP BY 1 ORDER BY 1")
                return cursor.fetchall()
        finally:
            connection.close()

    def in_table(self) -> list[tuple[int, int]]:
        def count(found: Any) -> list[tuple[int, int]]:
            rows = pa.table(found.scan(columns=["lockstep_epoch"]).read_all())
            counts = rows["lockstep_epoch"].value_counts().to_pylist()
            return sorted((one["values"] or 0, one["counts"]) for one in counts)

        return on_table(self.log.root, count)


@pytest.fixture
def shop(spark_connect: str, ledger_server: PostgresServer, warehouse_server: PostgresServer, tmp_path: Path) -> Shop:
    from lockstep.ledger import migrate

    name = f"delta_{tmp_path.name.replace('-', '_')}_{tmp_path.parent.name.replace('-', '_')}"[:60]
    ledger_server.create_database(name)
    warehouse_server.create_database(name)
    migrate(ledger_server.dsn(name))
    return Shop(spark_connect, ledger_server.dsn(name), warehouse_server.dsn(name), tmp_path)


def test_days_go_into_the_table_and_postgres_by_one_decision_each(shop: Shop) -> None:
    for day, rows in ((1, ROWS), (0, 10), (2, 0)):
        shop.land(day, rows)
        report = shop.run(day)
        assert (report.state, report.rows) == ("cleaned", {"orders": rows})
    again = shop.run(1)
    assert again.state == "cleaned"
    assert shop.in_warehouse() == shop.in_table()
    assert sorted(count for _, count in shop.in_table()) == [10, ROWS]
    assert list((shop.folder / "staging").rglob("*.parquet")) == [], "the rows are written once, below the table"


@pytest.mark.tier("all")
def test_a_day_that_executors_have_read_is_adopted_as_any_other(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_SEAL_BYTES", "0")
    shop.land(0)
    shop.run(0)
    assert shop.in_warehouse() == shop.in_table()
    assert [count for _, count in shop.in_table()] == [ROWS]


def test_a_pack_of_days_is_adopted_day_by_day(shop: Shop) -> None:
    for day in range(3):
        shop.land(day, 100)
    shop.run_pack(0, 1, 2)
    assert shop.in_warehouse() == shop.in_table()
    assert [count for _, count in shop.in_table()] == [100] * 3
    assert len(shop.log.files) == 3
    assert list((shop.folder / "staging").rglob("*.parquet")) == []


def test_a_small_epoch_is_one_file_with_statistics_whatever_its_partitions(shop: Shop) -> None:
    shop.land(0)
    shop.run(0)
    [add] = shop.log.adds().values()
    told = json.loads(add["stats"])
    assert told["numRecords"] == ROWS
    assert (told["minValues"]["id"], told["maxValues"]["id"]) == (0, ROWS - 1)
    assert (told["minValues"]["day"], told["maxValues"]["amount"]) == ("2013-01-01", ROWS - 1 + 0.25)
    assert told["nullCount"]["at"] == 0 and "at" in told["minValues"]
    assert "=" not in add["path"]


def by_customer(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Some of nobody's."""
    orders = inputs["orders"]
    return {"orders": orders.withColumn("customer", orders["customer"].substr(0, 11)).replace("customer 4", None)}


def test_an_epoch_of_several_partitions_is_a_file_for_each(shop: Shop) -> None:
    object.__setattr__(shop.pipeline, "transform", by_customer)
    [warehouse, lake] = shop.pipeline.sinks
    assert isinstance(lake, DeltaSink)
    object.__setattr__(shop.pipeline, "sinks", [warehouse, replace(lake, partition_by=["day", "customer"])])
    for day, rows in ((0, 500), (1, 0), (2, 3)):
        shop.land(day, rows)
        assert shop.run(day).rows == {"orders": rows}
    assert shop.in_warehouse() == shop.in_table()
    told = [(add["partitionValues"]["day"], add["partitionValues"]["customer"]) for add in shop.log.adds().values()]
    customers = {f"customer {n}" for n in range(50)} - {"customer 4"} | {None}
    assert sorted(told, key=str) == sorted(
        [*(("2013-01-01", one) for one in customers), *(("2013-01-03", f"customer {n}") for n in range(3))], key=str
    )
    assert not any("=" in path for path in shop.log.files)


def test_a_column_by_the_name_of_the_epochs_is_refused_by_name(shop: Shop) -> None:
    shop.land(0)
    object.__setattr__(
        shop.pipeline,
        "transform",
        lambda inputs: {"orders": inputs["orders"].withColumnRenamed("id", "Lockstep_Epoch")},
    )
    with pytest.raises(LockstepError, match="keeps for the epoch's number"):
        shop.run(0)


READ = """
import json, sys
from pyspark.sql import SparkSession, functions as F
spark = (SparkSession.builder.master("local[1]").config("spark.jars", sys.argv[1]).config("spark.ui.enabled", "false")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog").getOrCreate())
path = sys.argv[2]
table = spark.read.format("delta").load(path)
told = {
    "epochs": sorted(map(tuple, table.groupBy("lockstep_epoch").count().collect())),
    "filtered": table.where("id >= 10005 AND id < 10015").count(),
    "by day": table.where("day = DATE'2013-01-02'").count(),
    "by time": table.where("at >= TIMESTAMP'2013-01-02 00:00:00'").count(),
    "sum": str(table.agg(F.sum("amount")).first()[0]),
}
spark.sql(f"OPTIMIZE delta.`{path}`")
told["optimized"] = spark.read.format("delta").load(path).count()
spark.range(5).selectExpr("id", "CAST(NULL AS STRING) AS customer").write.format("delta").mode("append").save(path)
told["appended"] = spark.read.format("delta").load(path).count()
print("TOLD " + json.dumps(told))
"""


@pytest.mark.tier("all")
@pytest.mark.slow
def test_delta_spark_reads_compacts_and_appends_beside_us(shop: Shop) -> None:
    if not DELTA_SPARK.present:
        pytest.skip("delta-spark's jars are not here: `make delta` fetches them")
    for day in (0, 1):
        shop.land(day)
        shop.run(day)
    jars = ",".join(map(str, DELTA_SPARK.paths()))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    command = [sys.executable, "-c", READ, jars, str(shop.log.root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, env=environment)
    told = [line for line in done.stdout.splitlines() if line.startswith("TOLD ")]
    assert told, done.stderr[-3000:]
    found = json.loads(told[0][5:])
    assert [count for _, count in found["epochs"]] == [ROWS, ROWS]
    assert (found["filtered"], found["by day"], found["by time"]) == (10, ROWS, ROWS)
    assert found["sum"] == str(2 * sum(range(ROWS)) + ROWS // 2) + ".00"
    assert (found["optimized"], found["appended"]) == (2 * ROWS, 2 * ROWS + 5)
    shop.land(2)
    shop.run(2)
    assert len(shop.in_table()) == 4, "three epochs, and the rows of nobody's"
