"""Whole epochs, by a real Spark, into an Iceberg table and Postgres by one decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from lockstep import Pipeline, run_epoch
from lockstep.epoch import EpochReport
from lockstep.errors import SinkRejected
from lockstep.ledger import Ledger
from lockstep.operations.verify import Verification, verify
from lockstep.output_home import OutputHome
from lockstep.runtime import Runtime
from lockstep.sinks import IcebergSink, PostgresSink
from lockstep.sinks.values import SinkContext
from lockstep.sources import FileSource
from lockstep.states import EpochState
from lockstep.wal.staging import Staging
from tests.sinks.postgres_target import execute

DAY = datetime(2013, 1, 1, tzinfo=UTC)
SCHEMA = "id BIGINT, at TIMESTAMP, price DECIMAL(9,2), amount DECIMAL(20,4), ratio DOUBLE, origin STRING, small SHORT"


def twice(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same rows to both sinks: one adopts its output's files, the other reads those of its own."""
    orders = inputs["orders"]
    nested = orders.selectExpr("*", "named_struct('a', id, 'b', array(origin, origin)) AS nested", "date(at) AS day")
    return {"lake": nested, "warehouse": orders.select("id", "price")}


class Lake:
    """One pipeline with its ledger, its catalog and its folders."""

    def __init__(self, spark: str, ledger: str, warehouse: str, folder: Path, **arguments: Any) -> None:
        self.warehouse, self.folder, self.spark, self.ledger = warehouse, folder, spark, ledger
        (folder / "landing").mkdir()
        self.connections = {"warehouse": warehouse, "lake": warehouse}
        self.pipeline = Pipeline(
            name="shop",
            sources={
                "orders": FileSource(f"{folder}/landing/{{interval_start:%Y-%m-%d}}.csv", format="csv", schema=SCHEMA)
            },
            transform=twice,
            sinks=[
                PostgresSink("warehouse", tables={"warehouse": "public.orders"}, connection="warehouse", create=True),
                IcebergSink(
                    "lake",
                    output="lake",
                    table="db.orders",
                    catalog="lake",
                    warehouse=f"{folder}/lake",
                    create=True,
                    **arguments,
                ),
            ],
        )

    def land(self, day: int, rows: int, hours: int = 1) -> None:
        text = SCHEMA.replace(",2)", ")").replace(",4)", ")")
        lines = [",".join(column.split()[0] for column in text.split(", "))]
        for number in range(rows):
            at = DAY + timedelta(days=day, hours=number % hours)
            lines.append(f"{day * 1000 + number},{at.isoformat()},{number}.25,{number}.1234,0.5,JFK,{number % 7}")
        (self.folder / "landing" / f"{(DAY + timedelta(days=day)).date()}.csv").write_text("\n".join(lines))

    def run(self, day: int) -> EpochReport:
        return run_epoch(
            self.pipeline,
            interval=(DAY + timedelta(days=day), DAY + timedelta(days=day + 1)),
            ledger=self.ledger,
            staging=f"{self.folder}/staging",
            spark=self.spark,
            connections=self.connections,
        )

    def verify(self, epoch: int) -> list[Verification]:
        with closing(Ledger(self.ledger)) as ledger:
            runtime = Runtime.of(self.pipeline, ledger, Staging(f"{self.folder}/staging"), self.connections)
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
        lake.land(day, rows)
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


@pytest.mark.tier("all")
def test_verify_tells_compacted_rows_from_rows_that_were_rolled_back(
    spark_connect: str, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path
) -> None:
    lake = Lake(spark_connect, ledger_dsn, warehouse_dsn, tmp_path)
    for day in (0, 1):
        lake.land(day, 20)
        lake.run(day)
    table = lake.table()
    table.overwrite(table.scan().to_arrow())
    assert all(found.agrees for epoch in (1, 2) for found in lake.verify(epoch))
    lake.land(2, 20)
    lake.run(2)
    table = lake.table()
    now = table.current_snapshot()
    assert now is not None and now.parent_snapshot_id is not None
    table.manage_snapshots().rollback_to_snapshot(now.parent_snapshot_id).commit()
    [told] = [found for found in lake.verify(3) if found.sink == "lake"]
    assert told.problem is not None and "rolled the table back" in told.problem
    lake.run(2)
    assert lake.ids() == Counter([*range(20), *range(1000, 1020)]), "nobody publishes it again"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("partition_by", "files"), [(("hour(at)",), 3), (("small", "month(at)"), 7), (("day(at)", "price"), 20)]
)
def test_a_day_that_spans_partitions_is_a_file_for_each(
    spark_connect: str, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path, partition_by: tuple[str, ...], files: int
) -> None:
    lake = Lake(spark_connect, ledger_dsn, warehouse_dsn, tmp_path, partition_by=partition_by)
    lake.land(0, 20, hours=3)
    assert lake.run(0).rows == {"lake": 20, "warehouse": 20}
    assert lake.ids() == lake.ids_in_warehouse() == Counter(range(20))
    found = lake.table().inspect.files()["partition"].to_pylist()
    assert len(found) == files == len({tuple(one.values()) for one in found})
    assert all(one.agrees for one in lake.verify(1))
    lake.land(1, 0)
    assert lake.run(1).rows == {"lake": 0, "warehouse": 0}


def test_a_table_that_is_partitioned_otherwise_since_it_was_staged_is_refused_before_the_decision(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(self: IcebergSink, context: SinkContext) -> OutputHome:
        return replace(home(self, context), partition_by=())

    home = IcebergSink.home
    monkeypatch.setattr(IcebergSink, "home", meanwhile)
    lake.land(0, 30, hours=30)
    with pytest.raises(SinkRejected, match=r"several partitions by day\(at\)"):
        lake.run(0)
    assert execute(lake.warehouse, "SELECT to_regclass('public.orders')") == [(None,)]
