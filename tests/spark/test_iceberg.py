"""Whole epochs, by a real Spark, into an Iceberg table and Postgres by one decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.types import DecimalType

from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger
from lockstep.operations.verify import Verification, verify
from lockstep.sinks import IcebergSink, PostgresSink
from lockstep.sources import FileSource
from lockstep.states import EpochState
from lockstep.wal.staging import Staging
from tests.sinks.postgres_target import execute
from tests.spark.test_run_epoch import DAY, Shop

SCHEMA = "id BIGINT, at TIMESTAMP, price DECIMAL(9,2), amount DECIMAL(20,4), ratio DOUBLE, origin STRING, small SHORT"


def twice(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same rows to both sinks: one adopts its output's files, the other reads those of its own."""
    orders = inputs["orders"]
    nested = orders.selectExpr("*", "named_struct('a', id, 'b', array(origin, origin)) AS nested", "date(at) AS day")
    return {"lake": nested, "warehouse": orders.select("id", "price")}


class Lake(Shop):
    """One pipeline with its ledger, its catalog and its folders."""

    def __init__(self, spark: str, ledger: str, warehouse: str, folder: Path, **arguments: Any) -> None:
        super().__init__(spark, ledger, warehouse, folder)
        self._arguments["connections"] = {"warehouse": warehouse, "lake": warehouse}
        table: dict[str, Any] = {"table": "db.orders", "catalog": "lake", "warehouse": f"{folder}/lake", **arguments}
        source = FileSource(f"{folder}/landing/{{interval_start:%Y-%m-%d}}.csv", format="csv", schema=SCHEMA)
        sinks = [
            PostgresSink("warehouse", tables={"warehouse": "public.orders"}, connection="warehouse", create=True),
            IcebergSink("lake", output="lake", create=True, **table),
        ]
        self.pipeline = replace(self.pipeline, sources={"orders": source}, transform=twice, sinks=sinks)

    def land_day(self, day: int, rows: int, hours: int = 1) -> None:
        text = SCHEMA.replace(",2)", ")").replace(",4)", ")")
        lines = [",".join(column.split()[0] for column in text.split(", "))]
        for number in range(rows):
            at = DAY + timedelta(days=day, hours=number % hours)
            lines.append(f"{day * 1000 + number},{at.isoformat()},{number}.25,{number}.1234,0.5,JFK,{number % 7}")
        (self.folder / "landing" / f"{(DAY + timedelta(days=day)).date()}.csv").write_text("\n".join(lines))

    def verify(self, epoch: int) -> list[Verification]:
        with closing(Ledger(self._arguments["ledger"])) as ledger:
            staging = Staging(self._arguments["staging"])
            runtime = runtime_for(self.pipeline, ledger, staging, self._arguments["connections"])
            return verify(runtime, ledger.epoch("shop", epoch))

    def table(self) -> Table:
        uri = self.warehouse.replace("postgresql://", "postgresql+psycopg2://")
        return SqlCatalog("lake", uri=uri).load_table("db.orders")

    def ids(self) -> Counter[int]:
        return Counter(self.table().scan().to_arrow()["id"].to_pylist())

    def ids_in_warehouse(self) -> Counter[int]:
        return Counter(number for (number,) in execute(self.warehouse, "SELECT id FROM public.orders"))


@pytest.fixture
def lake(spark_connect: str, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path) -> Lake:
    return Lake(spark_connect, ledger_dsn, warehouse_dsn, tmp_path, partition_by=("day(at)",))


def test_days_stand_in_the_table_and_in_postgres_once(lake: Lake) -> None:
    for day, rows in enumerate((40, 0, 25)):
        lake.land_day(day, rows)
        assert lake.run(day).state is EpochState.CLEANED
        assert lake.run(day).state is EpochState.CLEANED, "nothing happens twice"
    expected = Counter([*range(40), *range(2000, 2025)])
    assert lake.ids() == lake.ids_in_warehouse() == expected
    table = lake.table()
    rows_found = table.scan("at >= '2013-01-03T00:00:00+00:00'").to_arrow().to_pylist()
    assert len(rows_found) == 25 and rows_found[0]["price"] == Decimal("0.25")
    assert rows_found[3]["nested"] == {"a": 2003, "b": ["JFK", "JFK"]}
    assert {row["lockstep_epoch"] for row in rows_found} == {3}
    assert [len(lake.verify(epoch)) for epoch in (1, 2, 3)] == [2, 2, 2]
    assert all(found.agrees for epoch in (1, 2, 3) for found in lake.verify(epoch)), lake.verify(1)
    files = table.inspect.files().to_pylist()
    assert len(files) == 2, "a small epoch is one file, an empty one none"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("partition_by", "files"), [(("hour(at)",), 3), (("small", "month(at)"), 7), (("day(at)", "price"), 20)]
)
def test_a_day_that_spans_partitions_is_a_file_for_each(
    spark_connect: str, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path, partition_by: tuple[str, ...], files: int
) -> None:
    lake = Lake(spark_connect, ledger_dsn, warehouse_dsn, tmp_path, partition_by=partition_by)
    lake.land_day(0, 20, hours=3)
    assert lake.run(0).rows == {"lake": 20, "warehouse": 20}
    assert lake.ids() == lake.ids_in_warehouse() == Counter(range(20))
    found = lake.table().inspect.files()["partition"].to_pylist()
    assert len(found) == files == len({tuple(one.values()) for one in found})
    assert all(one.agrees for one in lake.verify(1))
    lake.land_day(1, 0)
    assert lake.run(1).rows == {"lake": 0, "warehouse": 0}


def flat(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"lake": inputs["orders"], "warehouse": inputs["orders"].select("id", "price")}


@pytest.mark.fault("T5")
@pytest.mark.tier("all")
@pytest.mark.parametrize("partition_by", [(), ("day(at)",)])
def test_values_stay_in_their_column_when_it_is_renamed_and_another_one_gets_its_name(
    spark_connect: str, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path, partition_by: tuple[str, ...]
) -> None:
    lake = Lake(spark_connect, ledger_dsn, warehouse_dsn, tmp_path, partition_by=partition_by)
    lake.pipeline = replace(lake.pipeline, transform=flat)
    for day in range(2):  # the table is there for the second one only
        lake.land_day(day, 5)
        assert lake.run(day).state is EpochState.CLEANED
    with lake.table().update_schema() as change:
        change.rename_column("amount", "gross")
    with lake.table().update_schema() as change:
        change.add_column("amount", DecimalType(20, 4))
    found = lake.table().scan().to_arrow()
    expected = Counter(Decimal(f"{number}.1234") for number in (*range(5), *range(5)))
    assert Counter(found["gross"].to_pylist()) == expected and found["amount"].null_count == 10
