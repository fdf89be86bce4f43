"""run_epoch with a real Spark: files in a folder move into Postgres and Parquet, once, with no Airflow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg2
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from lockstep import Pipeline, files, run_epoch, run_epochs
from lockstep.cli import app
from lockstep.connections.environment import variable_of
from lockstep.crash import CrashInjected
from lockstep.epoch import EpochReport
from lockstep.errors import (
    BadRecords,
    IntervalMissing,
    IntervalOverlap,
    InvalidPipeline,
    PackFailed,
    PackUnfinished,
    SourceChanged,
)
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger
from lockstep.operations.replan import replan
from lockstep.sinks import FileSink, PostgresSink
from lockstep.sources import FileSource
from lockstep.states import EpochState
from lockstep.wal.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


DAY = datetime(2013, 1, 1, tzinfo=UTC)


def doubled_and_counted(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    orders = inputs["orders"]
    return {
        "orders": orders,
        "totals": orders.groupBy("customer").sum("amount").withColumnRenamed("sum(amount)", "total"),
    }


class Shop:
    """One pipeline with two outputs, its ledger, warehouse and folders."""

    def __init__(self, spark: str, ledger: str, warehouse: str, folder: Path, *, watch: bool = False) -> None:
        self.warehouse, self.folder = warehouse, folder
        path = f"{folder}/landing" if watch else f"{folder}/landing/{{interval_start:%Y-%m-%d}}.csv"
        most = 1 if watch else None
        source = FileSource(path, format="csv", schema="customer STRING, amount BIGINT", max_files_per_epoch=most)
        (folder / "landing").mkdir(exist_ok=True)
        self.pipeline = Pipeline(
            name="shop",
            sources={"orders": source},
            transform=doubled_and_counted,
            sinks=[
                PostgresSink("warehouse", tables={"orders": "public.orders"}, connection="warehouse", create=True),
                FileSink("totals", output="totals", path=str(folder / "totals"), format="parquet"),
            ],
        )
        self._arguments: dict[str, Any] = {
            "ledger": ledger,
            "staging": str(folder / "staging"),
            "connections": {"warehouse": warehouse},
        }
        self._spark = spark

    def land(self, name: str, *rows: tuple[str, int | str]) -> None:
        text = "customer,amount\n" + "".join(f"{customer},{amount}\n" for customer, amount in rows)
        (self.folder / "landing" / f"{name}.csv").write_text(text)

    def run(self, day: int | None = None, run_id: str | None = None) -> EpochReport:
        interval = None if day is None else (DAY + timedelta(days=day), DAY + timedelta(days=day + 1))
        return run_epoch(self.pipeline, interval=interval, spark=self._spark, run_id=run_id, **self._arguments)

    def run_many(self, days: range | None = None, most: int | None = None) -> list[EpochReport]:
        intervals = [(DAY + timedelta(days=day), DAY + timedelta(days=day + 1)) for day in days] if days else None
        return run_epochs(self.pipeline, intervals=intervals, most=most, spark=self._spark, **self._arguments)

    def replan(self, epoch: int, reason: str) -> None:
        arguments = self._arguments
        with closing(Ledger(arguments["ledger"])) as ledger:
            staging = Staging(arguments["staging"])
            replan(runtime_for("shop", ledger, staging, arguments["connections"], self.pipeline), epoch, reason)

    def orders(self) -> Counter[tuple[str, int]]:
        connection = psycopg2.connect(self.warehouse)
        with connection, connection.cursor() as cursor:
            cursor.execute("SELECT to_regclass('public.orders') IS NOT NULL")
            if cursor.fetchone() != (True,):
                return Counter()
            cursor.execute("SELECT customer, amount FROM public.orders")
            found = Counter(cursor.fetchall())
        connection.close()
        return found


@pytest.fixture
def shop(spark_connect: str, session: SparkSession, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path) -> Shop:
    """Beside another session of this process, which is the active one of the thread: as in a notebook."""
    return Shop(spark_connect, ledger_dsn, warehouse_dsn, tmp_path)


def test_an_epoch_moves_from_its_file_into_both_sinks_and_a_second_run_changes_nothing(shop: Shop) -> None:
    shop.land("2013-01-01", ("ann", 1), ("bob", 2), ("ann", 1))
    report = shop.run(0)
    assert report.state is EpochState.CLEANED
    assert report.rows == {"orders": 3, "totals": 2}
    assert report.sources["orders"]["rows"] == 3
    assert report.publications == {"warehouse": "committed", "totals": "committed"}
    again = shop.run(0)
    assert again.already_published
    assert shop.orders() == Counter({("ann", 1): 2, ("bob", 2): 1})
    assert len(files(str(shop.folder / "totals"))) == 1


def test_many_intervals_move_at_once_and_those_that_are_shown_are_left_alone(shop: Shop) -> None:
    for day in range(3):
        shop.land(f"2013-01-0{day + 1}", ("ann", day), ("bob", day))
    shop.run(1)
    reports = shop.run_many(range(3))
    assert [report.already_published for report in reports] == [day == 1 for day in range(3)]
    assert {report.state for report in reports} == {EpochState.CLEANED}
    assert [report.interval.start for report in reports if report.interval] == [DAY + timedelta(d) for d in range(3)]
    assert shop.orders() == Counter({(name, day): 1 for name in ("ann", "bob") for day in range(3)})
    assert len(files(str(shop.folder / "totals"))) == 3


def test_an_interval_that_fails_is_named_and_the_others_go_on(shop: Shop) -> None:
    shop.land("2013-01-01", ("ann", 0))
    shop.land("2013-01-02", ("bob", "many"))
    shop.land("2013-01-03", ("ann", 2))
    with pytest.raises(PackFailed, match=r"(?s)1 of 3 epochs .* \[2013-01-02T.*BadRecords: .*2013-01-02\.csv"):
        shop.run_many(range(3))
    assert shop.orders() == Counter({("ann", 0): 1, ("ann", 2): 1})
    with pytest.raises(PackUnfinished, match="SourceNotReady"):
        shop.run_many(range(2, 4))
    assert shop.orders() == Counter({("ann", 0): 1, ("ann", 2): 1})


def test_a_bad_record_shows_nothing_and_a_mended_file_replaces_the_frozen_one_by_replan(shop: Shop) -> None:
    shop.land("2013-01-01", ("ann", 1), ("bob", "many"))
    with pytest.raises(BadRecords, match=r"2013-01-01\.csv"):
        shop.run(0)
    assert shop.orders() == Counter()
    assert not files(str(shop.folder / "totals"))
    shop.land("2013-01-01", ("ann", 1), ("bob", 2))
    with pytest.raises(SourceChanged, match=r"2013-01-01\.csv"):
        shop.run(0)
    shop.replan(1, "bob's amount is a number now")
    shop.run(0)
    assert shop.orders() == Counter({("ann", 1): 1, ("bob", 2): 1})


def test_many_epochs_of_a_watched_folder_follow_one_another_until_nothing_is_left(
    spark_connect: str, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path
) -> None:
    shop = Shop(spark_connect, ledger_dsn, warehouse_dsn, tmp_path, watch=True)
    for number in range(3):
        shop.land(f"file {number}", ("ann", number))
    assert [report.epoch for report in shop.run_many(most=2)] == [1, 2]
    assert [report.epoch for report in shop.run_many(most=10)] == [3]
    assert shop.orders() == Counter({("ann", number): 1 for number in range(3)})
    assert [report.rows["orders"] for report in shop.run_many(most=10)] == [0]
    with pytest.raises(InvalidPipeline, match="no intervals="):
        shop.run_many(range(2))
    with pytest.raises(InvalidPipeline, match="1 to 10000 epochs, not 0"):
        shop.run_many(most=0)


def test_what_no_pack_can_be_made_of_is_refused(shop: Shop) -> None:
    with pytest.raises(IntervalMissing, match="give run_epochs intervals="):
        shop.run_many(most=3)
    with pytest.raises(IntervalOverlap, match="twice"):
        run_epochs(shop.pipeline, intervals=[(DAY, DAY + timedelta(1))] * 2, spark="", **shop._arguments)


def joined(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    """Each order with its customer, if that came in the same epoch; and the customers."""
    return {
        "orders": inputs["orders"].join(inputs["customers"], on="customer", how="left"),
        "customers": inputs["customers"],
    }


def test_ranges_of_two_sources_are_frozen_and_decided_together(
    spark_connect: str, ledger_dsn: str, tmp_path: Path
) -> None:
    orders, customers = tmp_path / "orders", tmp_path / "customers.json"
    orders.mkdir()
    pipeline = Pipeline(
        "shop",
        {
            "orders": FileSource(str(orders), schema="id BIGINT, customer STRING"),
            "customers": FileSource(str(customers), format="json", schema="customer STRING, city STRING", grow=True),
        },
        joined,
        [FileSink(name, output=name, path=str(tmp_path / "out" / name)) for name in ("orders", "customers")],
    )

    def run(name: str) -> dict[str, Any]:
        places: dict[str, Any] = {"ledger": ledger_dsn, "staging": str(tmp_path / "staging"), "connections": {}}
        report = run_epoch(pipeline, spark=spark_connect, run_id=name, **places)
        return {source: count["rows"] for source, count in report.sources.items()}

    def shown(output: str) -> list[tuple[Any, ...]]:
        rows = [
            row for path in files(str(tmp_path / "out" / output)) for row in pq.ParquetFile(path).read().to_pylist()
        ]
        return sorted(tuple(value for name, value in row.items() if name != "lockstep_epoch") for row in rows)

    (orders / "1.csv").write_text("id,customer\n1,a\n2,b\n")
    customers.write_text('{"customer": "a", "city": "Oslo"}\n{"customer": "b", "ci')
    assert run("first") == {"orders": 2, "customers": 1}
    with customers.open("a") as file:
        file.write('ty": "Bari"}\n')
    assert run("second") == {"orders": 0, "customers": 1}
    (orders / "2.csv").write_text("id,customer\n3,b\n")
    customers.write_text("")
    with pytest.raises(SourceChanged, match=r"customers\.json was taken up to byte"):
        run("third")
    assert shown("orders") == [("a", 1, "Oslo"), ("b", 2, None)]
    customers.unlink()
    assert run("third") == {"orders": 1, "customers": 0}
    assert shown("orders") == [("a", 1, "Oslo"), ("b", 2, None), ("b", 3, None)]
    assert shown("customers") == [("a", "Oslo"), ("b", "Bari")]


@pytest.mark.fault("L12")
def test_the_command_stages_a_damaged_decided_epoch_again_and_the_next_run_publishes_it(
    shop: Shop, spark_connect: str, ledger_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its branch is gone, and a bit of its WAL is another one."""
    shop.land("2013-01-01", ("ann", 5), ("bob", 7), ("ann", 1))
    with monkeypatch.context() as crashing, pytest.raises(CrashInjected):
        crashing.setenv("LOCKSTEP_TESTING", "1")
        crashing.setenv("LOCKSTEP_CRASH", "commit.after_decision:raise")
        shop.run(0)
    with closing(Ledger(ledger_dsn)) as ledger:
        decided = ledger.epoch("shop", 1)
    with closing(psycopg2.connect(shop.warehouse)) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()")
        cursor.execute("ROLLBACK PREPARED %s", cursor.fetchone())
    file = next((shop.folder / "staging" / str(decided.wal) / "orders").glob("*.parquet"))
    data = file.read_bytes()
    file.write_bytes(data[:20] + bytes([data[20] ^ 1]) + data[21:])
    monkeypatch.setenv("LOCKSTEP_LEDGER", ledger_dsn)
    monkeypatch.setenv("LOCKSTEP_STAGING", str(shop.folder / "staging"))
    monkeypatch.setenv("LOCKSTEP_SPARK", spark_connect)
    monkeypatch.setenv(variable_of("warehouse"), shop.warehouse)
    monkeypatch.setattr("lockstep.cli._commands.load_definition", lambda pipeline, definition: shop.pipeline)
    done = CliRunner().invoke(app, ["restage", "shop", "1", "--reason", "its disk was bad"])
    assert done.exit_code == 0 and "staged again: shop epoch 1" in done.output, f"{done.output} {done.exception!r}"
    assert shop.run(day=0).state == "cleaned"
    assert shop.orders() == Counter([("ann", 5), ("bob", 7), ("ann", 1)])
    with closing(Ledger(ledger_dsn)) as ledger:
        assert ledger.epoch("shop", 1).manifest_hash == decided.manifest_hash
