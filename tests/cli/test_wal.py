"""`lockstep wal list`, `wal show`, `quarantine`, `diff`: the rows of epochs under way, and of those that are kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep.audits import in_range
from lockstep.epoch import RunKey
from lockstep.wal.staging import Staging
from stack.postgres import PostgresServer
from tests.cli.conftest import Lockstep, point_to
from tests.crash.test_kept_wals import pass_time
from tests.crash.world import ROWS, World, make_world, rows_of_day, write_parquet
from tests.worlds import two_databases

DAY = timedelta(days=1)


def keeping(world: World) -> World:
    """Two epochs that are cleaned up and kept."""
    found = replace(world, pipeline=replace(world.pipeline, keep_wal=7 * DAY))
    for _ in range(2):
        day = next(found.days)
        found.run(RunKey("wal", f"run {day}"), day)
    return found


def as_the_first_day_but_one(request_uri: str) -> None:
    """The first epoch's rows, one of the two equal ones changed."""
    write_parquet(request_uri)
    folder = Path(request_uri.removeprefix("file://")).parent / "numbers"
    rows = [*rows_of_day(0)[:-1], (0, 0, "changed")]
    columns = list(zip(*rows, strict=True))
    schema = pq.read_schema(folder / "part-00000.parquet")
    table = pa.table([pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema)
    for number, name in enumerate(("part-00000.parquet", "part-00001.parquet")):
        pq.write_table(table.slice(number * ROWS // 2, ROWS // 2), folder / name)


@pytest.fixture(scope="module")
def shared(ledger_server: PostgresServer, migrated: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """And two that are staged, the second with the rows of the first day, but one."""
    with two_databases(ledger_server, migrated) as databases:
        folder = tmp_path_factory.mktemp("kept")
        found = keeping(make_world(databases["ledger"], databases["warehouse"], folder, "two_phase"))
        for job in (write_parquet, as_the_first_day_but_one):
            day = next(found.days)
            run = RunKey("wal", f"run {day}")
            found.run_task("begin", run, day)
            found.run_task("stage", run, day, job)
        yield found


@pytest.fixture
def kept(shared: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """For tests that leave it as it is."""
    point_to(shared, monkeypatch)
    return shared


def objects(day: int) -> list[dict[str, Any]]:
    return [dict(zip(("day", "number", "label"), row, strict=True)) for row in rows_of_day(day)]


def lines(output: str) -> list[Any]:
    return [json.loads(line) for line in output.splitlines()]


def test_the_list_names_what_is_there_and_how_long_it_stays(kept: World, lockstep: Lockstep) -> None:
    found = json.loads(lockstep("wal", "list", "numbers", "--json").stdout)
    assert found["keep_wal"] == {"time": 7 * 86400.0, "epochs": None}
    assert [(one["epoch"], one["state"], one["kept"] is not None) for one in found["wals"]] == [
        (4, "staged", False),
        (3, "staged", False),
        (2, "cleaned", True),
        (1, "cleaned", True),
    ]
    assert all(one["outputs"]["numbers"]["rows"] == ROWS for one in found["wals"])
    shown = lockstep("wal", "list", "numbers").output
    assert "staged" in shown and "kept for 7 days" in shown
    assert lockstep("wal", "list", "nobody").exit_code == 1


def test_rows_of_kept_and_of_pending_epochs_are_shown(kept: World, lockstep: Lockstep) -> None:
    for epoch in (1, 2, 3):
        shown = lockstep("wal", "show", "numbers", epoch, "numbers", "--limit", 0, "--json")
        assert shown.exit_code == 0, shown.output
        assert lines(shown.stdout) == objects(epoch - 1)
        shown = lockstep("wal", "show", "numbers", epoch, "numbers", "--limit", 3, "--json")
        assert lines(shown.stdout) == objects(epoch - 1)[:3]
        assert "row 0 of day" in lockstep("wal", "show", "numbers", epoch, "numbers").output


def test_a_filter_is_an_sql_expression_and_nothing_more(kept: World, lockstep: Lockstep) -> None:
    def show(where: str) -> Any:
        return lockstep("wal", "show", "numbers", 1, "numbers", "--where", where, "--json")

    assert lines(show("number IN (3, 5) AND label LIKE 'row%'").stdout) == [objects(0)[3], objects(0)[5]]
    assert lines(show("number < 0").stdout) == []
    for refused in (
        "nosuch = 1",
        "number = 'x'",
        "1; DROP TABLE numbers",
        "true) UNION ALL SELECT * FROM read_text('/etc/passwd')",
        "EXISTS (SELECT * FROM read_text('/etc/passwd'))",
        "EXISTS (SELECT * FROM refused)",
    ):
        result = show(refused)
        assert result.exit_code == 1
        assert json.loads(result.stderr)["error"] == "QueryRefused", result.stderr


def test_what_is_due_is_told_and_let_go_of_and_missed_with_what_keeps_it(world: World, lockstep: Lockstep) -> None:
    kept = keeping(world)
    assert "kept after cleanup: 2 WALs" in lockstep("status", "numbers").output
    pass_time(kept, 1, 8 * DAY)
    found = [one for one in json.loads(lockstep("doctor", "--json").stdout) if one["check"] == "wal"]
    assert [one["severity"] for one in found] == ["fine", "warning"]
    assert "kept for 7 days" in found[0]["says"]
    assert found[1]["command"] == "`lockstep recover numbers`"
    told = json.loads(lockstep("prune", "--dry-run", "--json").stdout)
    assert [one["epoch"] for one in told["wals"]["numbers"]] == [1]
    assert len(list(kept.staging_folder.glob("*/*/epoch=*"))) == 2
    assert "1 kept WALs of numbers" in lockstep("prune").output
    assert len(list(kept.staging_folder.glob("*/*/epoch=*"))) == 1
    gone = lockstep("wal", "show", "numbers", 1, "numbers")
    assert gone.exit_code == 1
    assert "WalGone" in gone.stderr and "keep_wal" in gone.stderr and "lockstep wal list numbers" in gone.stderr
    unknown = lockstep("wal", "show", "numbers", 2, "nothing")
    assert unknown.exit_code == 1
    assert "no output 'nothing'" in unknown.stderr


def test_a_flipped_bit_is_found_before_a_row_of_its_file_is_shown(kept: World, lockstep: Lockstep) -> None:
    [path] = (kept.staging_folder).glob("*/*/epoch=2/*/numbers/part-00000.parquet")
    data = path.read_bytes()
    path.write_bytes(data[:20] + bytes([data[20] ^ 1]) + data[21:])
    try:
        shown = lockstep("wal", "show", "numbers", 2, "numbers", "--json")
        filtered = lockstep("wal", "show", "numbers", 2, "numbers", "--where", "true", "--json")
        compared = lockstep("diff", "numbers", 1, 2, "numbers", "--json")
    finally:
        path.write_bytes(data)
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert {json.loads(one.stderr)["error"] for one in (shown, filtered, compared)} == {"WalCorrupt"}


def test_rows_in_quarantine_are_counted_and_shown_with_the_audits_that_they_offend(
    world: World, lockstep: Lockstep
) -> None:
    away = in_range("numbers", "number", at_most=14, name="small", quarantine=True)
    auditing, day = replace(world, pipeline=replace(world.pipeline, audits=[away])), next(world.days)
    auditing.run(RunKey("wal", f"run {day}"), day)
    number = world.epoch_of(day).id
    found = json.loads(lockstep("quarantine", "numbers", number, "--json").stdout)
    assert (found["outputs"]["numbers"]["audits"], found["sources"]) == ({"small": 4}, {})
    shown = lines(lockstep("quarantine", "numbers", number, "numbers", "--json").stdout)
    assert shown == [{**one, "lockstep_audits": "small"} for one in objects(day) if one["number"] > 14]
    one = lockstep("quarantine", "numbers", number, "numbers", "--where", "number > 17", "--json")
    assert [row["number"] for row in lines(one.stdout)] == [18]
    assert "small 4" in lockstep("quarantine", "numbers", number).output
    status = lockstep("status", "numbers").output
    assert "small (4 rows in quarantine)" in status
    assert f"4 rows of numbers: `lockstep quarantine numbers {number} numbers` shows them" in status
    assert "no audit sends rows" in lockstep("quarantine", "numbers", number, "nothing").stderr


def test_a_difference_is_told_as_rows_of_one_and_of_the_other_as_often_as_they_stand(
    kept: World, lockstep: Lockstep, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = lockstep("diff", "numbers", 1, 2, "numbers", "--by", "number", "--json")
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert found["rows"] == found["only"] == [ROWS, ROWS]
    assert found["changed"] == ROWS - 1  # two rows are equal
    assert [(one["epoch"], one["times"]) for one in found["examples"][:2]] == [(1, 2), (2, 2)]
    assert found["examples"][0]["row"] == objects(0)[0]
    shown = lockstep("diff", "numbers", 1, 2, "numbers", "--limit", 2).output
    assert "20 of 20 rows only in epoch 1" in shown and "… and 37 more rows" in shown
    assert lockstep("diff", "numbers", 1, 2, "numbers", "--by", "nosuch").exit_code == 1
    found = json.loads(lockstep("diff", "numbers", 1, 4, "numbers", "--json").stdout)
    assert found["only"] == [1, 1]
    assert [(one["row"]["number"], one["times"]) for one in found["examples"]] == [(0, 1), (0, 1)]
    monkeypatch.setattr(Staging, "open", None)
    result = lockstep("diff", "numbers", 1, 1, "numbers", "--json")
    assert result.exit_code == 0 and json.loads(result.stdout)["by_digest"] is True, "what is equal isn't read"
