"""Files that come for an interval which is decided already: never read, always told."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lockstep.cli import app
from lockstep.epoch import Interval
from stack.postgres import PostgresServer
from tests.sources.folder_world import FolderWorld, worlds
from tests.sources.test_source_kills import execute

DAYS = [Interval(datetime(2013, 1, day, tzinfo=UTC), datetime(2013, 1, day + 1, tzinfo=UTC)) for day in range(1, 5)]


@pytest.fixture
def world(memory_server: PostgresServer, memory: Path) -> Iterator[FolderWorld]:
    with worlds(memory_server, memory) as make:
        world = make(missing="empty")
        world.deploy(path=f"{world.landing}/{{interval_start:%Y-%m-%d}}*.txt")
        yield world


def land(world: FolderWorld, day: int, name: str, text: str = "1\n") -> str:
    path = world.landing / f"{DAYS[day].start:%Y-%m-%d}{name}.txt"
    path.write_text(text)
    return str(path)


def run(world: FolderWorld, day: int, name: str = "first", upto: str = "") -> None:
    world.run(f"{name} {day}", interval=DAYS[day], upto=upto)


def status(world: FolderWorld, *arguments: str) -> str:
    return CliRunner().invoke(app, ["status", *arguments, "--ledger", world.ledger_dsn], env={"COLUMNS": "400"}).stdout


def late(world: FolderWorld) -> dict[int, list[str]]:
    [pipeline] = json.loads(status(world, "--json"))
    return {one["epoch"]["id"]: one["late"] for one in pipeline["epochs"]}


def begin_says(world: FolderWorld, day: int, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="lockstep"):
        run(world, day, "again")
    return [record.getMessage() for record in caplog.records]


@pytest.mark.fault("A11")
def test_a_file_that_comes_after_its_epoch_was_published_is_told_and_not_read(
    world: FolderWorld, caplog: pytest.LogCaptureFixture
) -> None:
    land(world, 0, "")
    run(world, 0)
    assert late(world) == {1: []}
    assert begin_says(world, 0, caplog) == []
    came = land(world, 0, "-corrected", "2\n")
    assert late(world) == {1: [came]}
    assert f"epoch 1 was decided without {came}" in status(world)
    [said] = begin_says(world, 0, caplog)
    assert came in said
    assert world.shown() == Counter("1")


@pytest.mark.fault("A11")
def test_a_file_that_comes_for_an_empty_epoch_is_told(world: FolderWorld) -> None:
    run(world, 0)
    came = land(world, 0, "")
    assert late(world) == {1: [came]}


def test_what_is_not_there_yet_or_of_another_epoch_or_of_an_undecided_one_is_not_late(world: FolderWorld) -> None:
    land(world, 0, "")
    run(world, 0)
    (world.landing / "2013-01-01-coming.txt.tmp").write_text("n\n")
    land(world, 1, "")
    run(world, 1, upto="stage")
    land(world, 1, "-more")  # it can be planned anew
    assert late(world) == {1: [], 2: []}


def test_a_plan_of_old_that_does_not_say_what_its_source_was_has_its_late_and_changed_files_told(
    world: FolderWorld,
) -> None:
    land(world, 0, "")
    run(world, 0)
    execute(
        world.ledger_dsn,
        "ALTER TABLE lockstep.epoch DISABLE TRIGGER ALL; "
        "UPDATE lockstep.epoch SET plan = plan #- '{sources,landing,spec}'; "
        "ALTER TABLE lockstep.epoch ENABLE TRIGGER ALL",
    )
    assert world.epochs()[0].plan.sources["landing"].spec is None
    came, changed = land(world, 0, "-corrected"), land(world, 0, "", "1\n2\n")
    assert late(world) == {1: [came]}
    assert f"after epoch 1 had read it: {changed}" in status(world)
