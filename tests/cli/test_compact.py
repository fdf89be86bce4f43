"""`lockstep compact`: what it says of an Iceberg table, and of what is none."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from lockstep.cli._commands import bytes_of, duration_of
from lockstep.epoch import RunKey
from tests.cli.conftest import Lockstep, point_to
from tests.crash.adopting_world import AdoptingWorld, make_adopting_world
from tests.crash.test_iceberg_epochs import iceberg_table


@pytest.fixture
def world(databases: dict[str, str], memory: Path, monkeypatch: pytest.MonkeyPatch) -> AdoptingWorld:
    table = iceberg_table(databases["warehouse"], memory)
    made = make_adopting_world(databases["ledger"], databases["warehouse"], memory, table)
    point_to(made, monkeypatch)
    return made


def test_it_tells_what_it_would_do_then_what_it_did_then_that_there_is_nothing_left(
    world: AdoptingWorld, lockstep: Lockstep
) -> None:
    for day in range(3):
        world.run(RunKey("cli", f"{day}"), day)
    planned = lockstep("compact", "numbers", "lake", "--plan")
    assert planned.exit_code == 0 and "lake: 6 files, 0.0 MB, would become about 1; 60 rows" in planned.output
    assert len(world.lake.files()) == 6
    done = lockstep("compact", "numbers", "lake", "--target-size", "1GiB")
    assert done.exit_code == 0 and "lake: 6 files" in done.output and "became 1, " in done.output
    assert len(world.lake.files()) == 1
    again = lockstep("compact", "numbers", "lake", "--json")
    told = json.loads(again.stdout)
    assert (told["number"], told["files_before"], told["kept"]) == (None, 0, {"too few in a partition": 1})
    assert "nothing to compact" in lockstep("compact", "numbers", "lake").output
    assert told["expired"] is None
    kept = lockstep("compact", "numbers", "lake", "--expire", "7d")
    assert "deleted: 0 files, 0.0 MB, that no version since " in kept.output
    told = json.loads(lockstep("compact", "numbers", "lake", "--expire", "0m", "--plan", "--json").stdout)["expired"]
    assert (told["files"], told["kept"]) == (0, {}), "older snapshots have them"
    verified = lockstep("verify", "numbers")
    assert verified.exit_code == 0 and verified.output.count("compacted") == 3
    told = json.loads(lockstep("verify", "numbers", "--json").stdout)
    assert {(one["sink"], one["presence"]) for one in told} == {("lake", "compacted"), ("warehouse", None)}
    refused = lockstep("compact", "numbers", "warehouse")
    assert refused.exit_code == 1 and "sink warehouse can't be compacted" in refused.stderr
    for option in ("--target-size", "--expire"):
        assert lockstep("compact", "numbers", "lake", option, "much").exit_code == 2


def test_sizes_and_times_are_read_as_people_write_them() -> None:
    told = {"512MB": 512 * 10**6, "1 GiB": 1 << 30, "7k": 7000, "100000": 100_000, "64mib": 64 << 20}
    assert {text: bytes_of(text) for text in told} == told
    times = {"7d": timedelta(days=7), "12 h": timedelta(hours=12), "90m": timedelta(minutes=90)}
    assert {text: duration_of(text) for text in times} == times
