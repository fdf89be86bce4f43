"""Real Spark stages below a Delta table: few files with statistics, read back by deltalake and by Spark itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg2
import pyarrow as pa
import pytest

from lockstep.epoch import EpochReport
from lockstep.errors import LockstepError
from lockstep.sinks import DeltaSink
from lockstep.sources import FileSource
from stack.delta import DELTA_SPARK
from tests.apart import apart
from tests.sinks.delta_target import Log, on_table
from tests.spark.test_run_epoch import DAY, Shop

ROWS = 2000


def as_they_are(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    orders = inputs["orders"]
    return {"orders": orders.repartition(7).withColumn("at", orders["day"].cast("timestamp"))}


class Lake(Shop):
    """Orders into a Delta table and Postgres, by day."""

    def __init__(self, spark: str, ledger: str, warehouse: str, folder: Path) -> None:
        super().__init__(spark, ledger, warehouse, folder)
        self.log = Log(folder / "lake" / "orders")
        schema = "id BIGINT, customer STRING, amount DECIMAL(10,2), ratio DOUBLE, day DATE"
        source = FileSource(f"{folder}/landing/{{interval_start:%Y-%m-%d}}.csv", format="csv", schema=schema)
        lake = DeltaSink("lake", output="orders", path=str(self.log.root), create=True)
        self.change(sources={"orders": source}, transform=as_they_are, sinks=[self.pipeline.sinks[0], lake])

    def change(self, **arguments: Any) -> None:
        self.pipeline = replace(self.pipeline, **arguments)

    def land_day(self, day: int, rows: int = ROWS) -> None:
        date = DAY + timedelta(days=day)
        lines = [f"{day * 10_000 + i},customer {i % 50},{i}.25,{i / 7},{date:%Y-%m-%d}" for i in range(rows)]
        text = "\n".join(["id,customer,amount,ratio,day", *lines, ""])
        (self.folder / "landing" / f"{date:%Y-%m-%d}.csv").write_text(text)

    def run(self, day: int | None = None, run_id: str | None = None) -> EpochReport:
        return apart(partial(super().run, day, run_id))

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
def shop(spark_connect: str, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path) -> Lake:
    return Lake(spark_connect, ledger_dsn, warehouse_dsn, tmp_path)


def test_days_go_into_the_table_and_postgres_by_one_decision_each(shop: Lake) -> None:
    for day, rows in ((1, ROWS), (0, 10), (2, 0)):
        shop.land_day(day, rows)
        report = shop.run(day)
        assert (report.state, report.rows) == ("cleaned", {"orders": rows})
    again = shop.run(1)
    assert again.state == "cleaned"
    assert shop.in_warehouse() == shop.in_table()
    assert sorted(count for _, count in shop.in_table()) == [10, ROWS]
    assert list((shop.folder / "staging").rglob("*.parquet")) == [], "the rows are written once, below the table"


def test_a_small_epoch_is_one_file_with_statistics_whatever_its_partitions(shop: Lake) -> None:
    shop.land_day(0)
    shop.run(0)
    [add] = shop.log.adds().values()
    told = json.loads(add["stats"])
    assert told["numRecords"] == ROWS
    assert (told["minValues"]["id"], told["maxValues"]["id"]) == (0, ROWS - 1)
    assert (told["minValues"]["day"], told["maxValues"]["amount"]) == ("2013-01-01", ROWS - 1 + 0.25)
    assert told["nullCount"]["at"] == 0 and "at" in told["minValues"]
    assert "=" not in add["path"]
    shop.change(transform=with_a_column_by_the_name_of_the_epochs)
    shop.land_day(1)
    with pytest.raises(LockstepError, match="keeps for the epoch's number"):
        shop.run(1)


def with_a_column_by_the_name_of_the_epochs(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"orders": inputs["orders"].withColumnRenamed("id", "Lockstep_Epoch")}


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
def test_delta_spark_reads_compacts_and_appends_beside_us(shop: Lake) -> None:
    if not DELTA_SPARK.present:
        pytest.skip("delta-spark's jars are not here: `make delta` fetches them")
    for day in (0, 1):
        shop.land_day(day)
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
    shop.land_day(2)
    shop.run(2)
    assert len(shop.in_table()) == 4, "three epochs, and the rows of nobody's"
