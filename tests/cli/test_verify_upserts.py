"""`verify` where newer rows replace older ones: what was overwritten is told, what is missing or changed is found."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from lockstep.cli import app
from lockstep.epoch import RunKey
from lockstep.ledger import migrate
from lockstep.pipeline import Pipeline
from lockstep.sinks.postgres import PostgresSink
from lockstep.wal.manifest import SourceCount
from lockstep.wal.request import RESULT, StageRequest, StageResult
from stack.postgres import PostgresServer
from tests.cases import cases
from tests.crash.world import Numbers, World, untouched

ROWS = 20
_numbers = count(1)


def write_changes(request_uri: str) -> None:
    """What Spark would leave: the same keys every day, with that day's label; key 0 is deleted on odd days."""
    folder = Path(request_uri.removeprefix("file://")).parent
    request = StageRequest.from_json(json.loads((folder / "_request.json").read_text()))
    day = request.sources["numbers"].end["day"]
    table = pa.table(
        {
            "number": list(range(ROWS)),
            "label": [f"day {day}"] * ROWS,
            "gone": [number == 0 and day % 2 == 1 for number in range(ROWS)],
        }
    )
    (folder / "numbers").mkdir()
    pq.write_table(table, folder / "numbers" / "part-00000.parquet")
    result = StageResult({"numbers": ROWS}, {"numbers": SourceCount(ROWS, 0)}, "test")
    (folder / RESULT).write_text(json.dumps(result.to_json()))


@pytest.fixture
def world(memory_server: PostgresServer, memory: Path) -> Iterator[World]:
    memory_server.start()
    names = [f"verify_{kind}_{next(_numbers)}" for kind in ("ledger", "warehouse")]
    ledger, warehouse = map(memory_server.create_database, names)
    migrate(ledger)
    sink = PostgresSink(
        "warehouse",
        tables={"numbers": "public.numbers"},
        connection="warehouse",
        create=True,
        mode="upsert",
        key=["number"],
        deleted="gone",
    )
    pipeline = Pipeline("numbers", {"numbers": Numbers()}, untouched, [sink])
    yield World(ledger, warehouse, memory, pipeline, memory / "staging")
    for name in names:
        memory_server.drop_database(name)


@pytest.fixture
def verify(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("LOCKSTEP_LEDGER", world.ledger_dsn)
    monkeypatch.setenv("LOCKSTEP_STAGING", str(world.staging_folder))
    monkeypatch.setenv("LOCKSTEP_WAREHOUSE", world.warehouse_dsn)
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: CliRunner().invoke(app, ["verify", "numbers", *map(str, arguments)])


def run(world: World, day: int, last: str = "cleanup") -> None:
    tasks = world.tasks()
    for task in tasks[: tasks.index(last) + 1]:
        world.run_task(task, RunKey("upserts", f"day {day}"), day, write_changes)


def told(result: Result) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def test_what_newer_epochs_replaced_is_told_and_agrees(world: World, verify: Callable[..., Result]) -> None:
    run(world, 3, "publish.warehouse")
    run(world, 1, "publish.warehouse")  # a backfill: all of it is old already
    first, backfill = told(verify("--json"))
    assert (first["rows_shown"], first["overwritten"], first["problem"]) == (ROWS, 0, None)
    assert (backfill["rows_shown"], backfill["overwritten"], backfill["problem"]) == (0, ROWS, None)
    run(world, 4)
    first, backfill, last = told(verify("--json"))
    assert [one["rows_shown"] for one in (first, backfill, last)] == [0, 0, ROWS]
    assert [one["overwritten"] for one in (first, backfill, last)] == [ROWS, ROWS, 0]
    shown = verify()
    assert shown.exit_code == 0
    assert "20 rows overwritten since" in shown.output
    assert "3 compared, all agree" in shown.output


@cases(
    "statement, problem",
    [
        ("DELETE FROM numbers WHERE number = 5", "1 keys are gone"),
        (
            "UPDATE numbers SET lockstep_order = 1, lockstep_epoch = 0 WHERE number < 3",
            "3 keys are gone or have an older row",
        ),
        ("UPDATE numbers SET label = 'other' WHERE number > 17", "shows 20 rows with digest"),
        ("DELETE FROM numbers WHERE number = 5; UPDATE numbers SET label = 'x' WHERE number = 6", "1 rows have other"),
    ],
)
def test_what_somebody_took_or_changed_is_found(
    world: World, verify: Callable[..., Result], statement: str, problem: str
) -> None:
    [(saved,)] = world.execute(world.warehouse_dsn, "SELECT to_regclass('saved') IS NOT NULL")
    if saved:
        world.execute(world.warehouse_dsn, "TRUNCATE numbers; INSERT INTO numbers SELECT * FROM saved RETURNING 1")
    else:
        run(world, 3, "publish.warehouse")
        world.execute(world.warehouse_dsn, "CREATE TABLE saved AS TABLE numbers")
    world.execute(world.warehouse_dsn, f"{statement}; SELECT 1")
    result = verify("--json")
    assert result.exit_code == 3
    [found] = told(result)
    assert problem in found["problem"]


def test_a_key_that_is_gone_is_missed_by_every_epoch_that_had_it(world: World, verify: Callable[..., Result]) -> None:
    for day in (1, 2):
        run(world, day, "publish.warehouse")
    world.execute(world.warehouse_dsn, "DELETE FROM numbers WHERE number = 5 RETURNING number")
    older, newer = told(verify("--json"))
    assert "1 keys are gone" in older["problem"] and older["overwritten"] == ROWS - 1
    assert "1 keys are gone" in newer["problem"] and newer["overwritten"] == 0


def test_after_cleanup_the_keys_of_the_table_are_counted(world: World, verify: Callable[..., Result]) -> None:
    run(world, 1)
    run(world, 2)
    older, newer = told(verify("--json"))
    assert (older["overwritten"], older["problem"]) == (ROWS, None)
    assert "the table has every key" in older["note"]
    assert (newer["rows_shown"], newer["note"], newer["problem"]) == (ROWS, None, None)
    world.execute(world.warehouse_dsn, "DELETE FROM numbers WHERE number IN (5, 6) RETURNING number")
    result = verify("--json")
    assert result.exit_code == 3
    assert all("lacks 2 keys" in one["problem"] for one in told(result))


def test_tombstones_that_are_taken_away_as_the_page_says_are_not_missed(
    world: World, verify: Callable[..., Result]
) -> None:
    page = (Path(__file__).resolve().parent.parent.parent / "docs" / "sinks" / "postgres.md").read_text()
    [_, purge] = re.findall(r"```sql\n(.*?)```", page, re.S)
    run(world, 1)
    run(world, 3)
    world.execute(world.warehouse_dsn, purge.replace("customers", "numbers").replace("2026-01-01", "2014-01-01"))
    assert world.execute(world.warehouse_dsn, "SELECT count(*) FROM numbers") == [(ROWS - 1,)]
    older, newer = told(verify("--json"))
    assert older["problem"] is None and newer["problem"] is None
