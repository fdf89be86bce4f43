"""An interval whose epoch lacks records of its own: neither is it sealed, nor is anything planned behind it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from lockstep.epoch import Identity, Input, Interval, Position, RunKey
from lockstep.errors import SourceChanged
from lockstep.operations.replan import replan, void
from lockstep.sources import OpenSource, Source, SourceContext
from tests.crash.world import OpenNumbers, World, interval_of, make_world

RUN = RunKey("growing", "first")


@dataclass(frozen=True)
class Growing(Source):
    """Days into which records may come late. `name`: of another one for another place."""

    name: str = "there"
    identity = Identity.INTERVAL
    came: ClassVar[dict[int, int]] = {}  #: day → how many, by now

    def open(self, context: SourceContext) -> OpenSource:
        return OpenGrowing()


class OpenGrowing(OpenNumbers):
    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        found = super().latest(start, interval)
        return {**found, "had": Growing.came.get(found["day"], 0)}

    def lacks(self, start: Position | None, end: Position) -> str | None:
        more = Growing.came.get(end["day"], 0) - end["had"]
        return f"{more} records" if more else None


@pytest.fixture
def world(ledger_dsn: str, warehouse_dsn: str, tmp_path: Path) -> World:
    Growing.came.clear()
    made = make_world(ledger_dsn, warehouse_dsn, tmp_path, "two_phase")
    return replace(made, pipeline=replace(made.pipeline, sources={"numbers": Growing()}))


def run_of(day: int) -> RunKey:
    return RunKey("growing", f"day {day}")


def test_nothing_is_planned_behind_it_until_it_is_restated(world: World) -> None:
    world.run(run_of(0), 0)
    Growing.came[0] = 20
    with pytest.raises(SourceChanged, match=r"epoch 1 .*lacks 20 records.*lockstep restate numbers --epoch 1 --reason"):
        world.run(run_of(1), 1)
    assert world.state_of(1) is None
    world.run(RunKey("growing", "again", restate="records came late"), 0)
    world.run(run_of(1), 1)
    for day in (0, 1):
        world.require_exactly_once(day)


def test_only_the_interval_that_ends_where_one_begins_is_asked(world: World) -> None:
    world.run(run_of(1), 1)
    Growing.came[1] = 1
    for day in (0, 3):
        world.run(run_of(day), day)
    with pytest.raises(SourceChanged):
        world.run(run_of(2), 2)
    Growing.came[0] = 1
    with pytest.raises(SourceChanged):  # who plans an interval anew looks, too
        world.run(RunKey("growing", "again", restate="why not"), 1)


def test_it_is_not_sealed_and_planned_anew_it_is(world: World) -> None:
    world.run_until(RUN, 0, "begin")
    Growing.came[0] = 1
    with pytest.raises(SourceChanged, match=r"lacks 1 records.*`lockstep replan numbers 1 --reason"):
        world.run_task("stage", RUN, 0)
    with pytest.raises(SourceChanged, match="lockstep replan numbers 1 --reason"):
        world.run(run_of(1), 1)
    runtime = world.runtime()
    replan(runtime, 1, "records came late")
    runtime.ledger.close()
    world.run(RunKey("growing", "second"), 0)
    world.require_exactly_once(0)
    world.run(run_of(1), 1)


def test_one_that_was_given_up_or_is_of_another_source_keeps_nothing_up(world: World) -> None:
    world.run_until(RUN, 0, "begin")
    Growing.came[0] = 1
    runtime = world.runtime()
    void(runtime, 1, "not wanted")
    runtime.ledger.close()
    world.run(run_of(1), 1)
    Growing.came[1] = 1
    elsewhere = replace(world, pipeline=replace(world.pipeline, sources={"numbers": Growing("elsewhere")}))
    elsewhere.run(run_of(2), 2)


def test_a_decided_one_is_staged_again_and_restated_as_it_was_read(world: World) -> None:
    world.run_until(RUN, 0, "commit")
    Growing.came[0] = 1
    epoch = world.epoch_of(0)
    shutil.rmtree(world.staging_folder / str(epoch.wal))
    world.run_task("restage", RUN, 0)
    world.run(RUN, 0, start="publish.warehouse")
    world.require_exactly_once(0)
    world.run(RunKey("growing", "again", interval_of(0), restate="once more", input=Input.FROZEN), 0)
    world.require_exactly_once(0)
    with pytest.raises(SourceChanged):
        world.run(run_of(1), 1)
