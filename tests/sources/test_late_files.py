"""Files that come for an interval which is decided already: never read, always told."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lockstep.cli import app
from lockstep.epoch import Interval, Position, RunKey
from lockstep.sources import FileSource, SourceContext
from lockstep.sources.files.open_source import OpenFileSource
from tests.crash.world import FIRST_DAY, World, interval_of, make_world

RUN = RunKey("late", "first")


class Landed(FileSource):
    """Files by interval; the world's staging job also wants the day's number."""

    def open(self, context: SourceContext) -> OpenFileSource:
        return OpenLanded(self, context)


class OpenLanded(OpenFileSource):
    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        assert interval is not None
        return {**super().latest(start, interval), "day": (interval.start - FIRST_DAY).days}


@pytest.fixture
def world(ledger_dsn: str, warehouse_dsn: str, tmp_path: Path) -> World:
    made = make_world(ledger_dsn, warehouse_dsn, tmp_path, "two_phase")
    source = Landed(f"{tmp_path}/landing/{{interval_start:%Y-%m-%d}}*.csv", schema="n INT", missing="empty")
    return replace(made, pipeline=replace(made.pipeline, sources={"numbers": source}))


def land(world: World, day: int, name: str) -> str:
    folder = world.folder / "landing"
    folder.mkdir(exist_ok=True)
    path = folder / f"{interval_of(day).start:%Y-%m-%d}{name}.csv"
    path.write_text("n\n1\n")
    return str(path)


def status(world: World, *arguments: str) -> str:
    return CliRunner().invoke(app, ["status", *arguments, "--ledger", world.ledger_dsn], env={"COLUMNS": "400"}).stdout


def late(world: World) -> dict[int, list[str]]:
    [pipeline] = json.loads(status(world, "--json"))
    return {one["epoch"]["id"]: one["late"] for one in pipeline["epochs"]}


def begin_says(world: World, day: int, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="lockstep"):
        world.run(RunKey("late", f"again {day}"), day)
    return [record.getMessage() for record in caplog.records]


def test_a_file_that_comes_after_its_epoch_was_published_is_told_and_not_read(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    land(world, 0, "")
    world.run(RUN, 0)
    assert late(world) == {1: []}
    assert begin_says(world, 0, caplog) == []
    came = land(world, 0, "-corrected")
    assert late(world) == {1: [came]}
    assert f"epoch 1 was decided without {came}" in status(world)
    [said] = begin_says(world, 0, caplog)
    assert came in said
    world.require_exactly_once(0)


def test_a_file_that_comes_for_an_empty_epoch_is_told(world: World) -> None:
    world.run(RUN, 0)
    came = land(world, 0, "")
    assert late(world) == {1: [came]}


def test_a_file_that_is_not_there_yet_or_is_of_another_epoch_is_not_late(world: World) -> None:
    land(world, 0, "")
    world.run(RUN, 0)
    (world.folder / "landing" / "2013-01-01-coming.csv.tmp").write_text("n\n")
    land(world, 1, "")
    assert late(world) == {1: []}


def test_a_plan_of_old_that_does_not_say_what_its_source_was_has_its_late_and_changed_files_told(world: World) -> None:
    land(world, 0, "")
    world.run(RUN, 0)
    world.execute(
        world.ledger_dsn,
        "BEGIN; ALTER TABLE lockstep.epoch DISABLE TRIGGER ALL; "
        "UPDATE lockstep.epoch SET plan = plan #- '{sources,numbers,spec}'; "
        "ALTER TABLE lockstep.epoch ENABLE TRIGGER ALL; COMMIT",
    )
    assert world.epoch_of(0).plan.sources["numbers"].spec is None
    came, changed = land(world, 0, "-corrected"), land(world, 0, "")
    assert late(world) == {1: [came]}
    assert f"after epoch 1 had read it: {changed}" in status(world)


def test_an_undecided_epoch_has_no_late_files_as_it_can_be_planned_anew(world: World) -> None:
    land(world, 0, "")
    world.run_until(RUN, 0, "stage")
    land(world, 0, "-more")
    assert late(world) == {1: []}


def test_an_epoch_of_a_source_that_looks_for_no_files_has_none(
    ledger_dsn: str, warehouse_dsn: str, tmp_path: Path
) -> None:
    other: Any = make_world(ledger_dsn, warehouse_dsn, tmp_path, "two_phase")
    other.run(RUN, 0)
    assert late(other) == {1: []}
