"""`verify` where newer rows replace older ones: what was overwritten is told, what is missing or changed is found."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import Result

from lockstep.epoch import RunKey
from lockstep.pipeline import Pipeline
from lockstep.sinks.postgres import PostgresSink
from lockstep.wal.manifest import SourceCount
from lockstep.wal.request import RESULT, StageRequest, StageResult
from tests.cli.conftest import Lockstep, point_to
from tests.crash.world import Numbers, World, untouched

ROWS = 20


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
def world(databases: dict[str, str], memory: Path, monkeypatch: pytest.MonkeyPatch) -> World:
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
    made = World(databases["ledger"], databases["warehouse"], memory, pipeline, memory / "staging")
    point_to(made, monkeypatch)
    return made


@pytest.fixture
def verify(lockstep: Lockstep) -> Callable[..., Result]:
    return lambda *arguments: lockstep("verify", "numbers", *arguments)


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


CHANGES = [
    ("DELETE FROM numbers WHERE number = 5", "1 keys are gone"),
    (
        "UPDATE numbers SET lockstep_order = 1, lockstep_epoch = 0 WHERE number < 3",
        "3 keys are gone or have an older row",
    ),
    ("UPDATE numbers SET label = 'other' WHERE number > 17", "shows 20 rows with digest"),
    ("DELETE FROM numbers WHERE number = 5; UPDATE numbers SET label = 'x' WHERE number = 6", "1 rows have other"),
]


def test_what_somebody_took_or_changed_is_found_and_a_key_that_is_gone_by_every_epoch_that_had_it(
    world: World, verify: Callable[..., Result], subtests: pytest.Subtests
) -> None:
    run(world, 3, "publish.warehouse")
    world.execute(world.warehouse_dsn, "CREATE TABLE saved AS TABLE numbers")
    for statement, problem in CHANGES:
        with subtests.test(statement):
            world.execute(world.warehouse_dsn, f"{statement}; SELECT 1")
            result = verify("--json")
            assert result.exit_code == 3
            [found] = told(result)
            assert problem in found["problem"]
        world.execute(world.warehouse_dsn, "TRUNCATE numbers; INSERT INTO numbers SELECT * FROM saved RETURNING 1")
    run(world, 4, "publish.warehouse")
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
