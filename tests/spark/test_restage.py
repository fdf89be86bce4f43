"""The command that stages a decided epoch again, with a real Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import psycopg2
import pytest
from typer.testing import CliRunner

from lockstep.cli import app
from lockstep.environment import variable_of
from lockstep.epoch import Epoch, Interval, RunKey
from lockstep.ledger import Ledger, migrate
from lockstep.roles.begin import begin
from lockstep.roles.commit import commit
from lockstep.roles.prepare import prepare
from lockstep.roles.stage import stage
from lockstep.run import in_process
from lockstep.runtime import Runtime
from lockstep.wal.staging import Staging
from tests.spark.test_run_epoch import DAY, Shop

RUN = RunKey("restage", "day 0")
Command = Callable[[], tuple[int, str]]


@pytest.fixture
def shop(spark_connect: str, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path) -> Shop:
    shop = Shop(spark_connect, ledger_dsn, warehouse_dsn, tmp_path)
    shop.land("2013-01-01", ("ann", 5), ("bob", 7), ("ann", 1))
    return shop


@pytest.fixture
def restage(shop: Shop, spark_connect: str, ledger_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("LOCKSTEP_LEDGER", ledger_dsn)
    monkeypatch.setenv("LOCKSTEP_STAGING", str(shop.folder / "staging"))
    monkeypatch.setenv("LOCKSTEP_SPARK", spark_connect)
    monkeypatch.setenv(variable_of("warehouse"), shop.warehouse)
    monkeypatch.setattr("lockstep.cli._commands.load_definition", lambda pipeline, definition: shop.pipeline)

    def command() -> tuple[int, str]:
        done = CliRunner().invoke(app, ["restage", "shop", "1", "--reason", "its disk was bad"])
        return done.exit_code, f"{done.output} {done.exception!r}"

    return command


def _decided_and_damaged(shop: Shop, spark: str, ledger_dsn: str) -> Epoch:
    """Its branch is gone, and a bit of its WAL is another one."""
    migrate(ledger_dsn)
    with closing(Ledger(ledger_dsn)) as ledger:
        staging = Staging(str(shop.folder / "staging"))
        runtime = Runtime.of(shop.pipeline, ledger, staging, {"warehouse": shop.warehouse})
        begin(runtime, RUN, Interval(DAY, DAY + timedelta(days=1)))
        stage(runtime, RUN, in_process(shop.pipeline, spark))
        for sink in shop.pipeline.sinks:
            prepare(runtime, RUN, sink.name)
        epoch = commit(runtime, RUN)
    connection = psycopg2.connect(shop.warehouse)
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()")
    cursor.execute("ROLLBACK PREPARED %s", cursor.fetchone())
    connection.close()
    file = next((shop.folder / "staging" / str(epoch.wal) / "orders").glob("*.parquet"))
    data = file.read_bytes()
    file.write_bytes(data[:20] + bytes([data[20] ^ 1]) + data[21:])
    return epoch


@pytest.mark.fault("L12")
def test_the_command_stages_a_damaged_decided_epoch_again_and_the_next_run_publishes_it(
    shop: Shop, restage: Command, spark_connect: str, ledger_dsn: str
) -> None:
    decided = _decided_and_damaged(shop, spark_connect, ledger_dsn)
    code, told = restage()
    assert code == 0 and "staged again: shop epoch 1" in told, told
    assert shop.run(day=0).state == "cleaned"
    assert shop.orders() == Counter([("ann", 5), ("bob", 7), ("ann", 1)])
    with closing(Ledger(ledger_dsn)) as ledger:
        assert ledger.epoch("shop", 1).manifest_hash == decided.manifest_hash


def test_the_command_refuses_a_source_that_has_changed_and_changes_nothing(
    shop: Shop, restage: Command, spark_connect: str, ledger_dsn: str
) -> None:
    decided = _decided_and_damaged(shop, spark_connect, ledger_dsn)
    shop.land("2013-01-01", ("ann", 5), ("bob", 8), ("ann", 1))
    code, told = restage()
    assert code == 1 and "SourceChanged" in told
    with closing(Ledger(ledger_dsn)) as ledger:
        assert ledger.epoch("shop", 1) == decided
