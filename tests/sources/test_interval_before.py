"""An interval whose epoch lacks records of its own: neither is it sealed, nor is anything planned behind it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lockstep.epoch import Input, Interval, Position, RunKey
from lockstep.errors import SourceChanged
from lockstep.operations.replan import void
from lockstep.roles.restage import restage
from lockstep.sources import FileSource, SourceContext
from lockstep.sources.files.open_source import OpenFileSource
from stack.postgres import PostgresServer
from tests.sources.folder_world import FolderWorld, worlds, write_lines

DAYS = [Interval(datetime(2013, 1, day, tzinfo=UTC), datetime(2013, 1, day + 1, tzinfo=UTC)) for day in range(1, 5)]


class Growing(FileSource):
    """Days into which records may come late."""

    came: ClassVar[dict[int, int]] = {}  #: day → how many, by now

    def open(self, context: SourceContext) -> OpenFileSource:
        return OpenGrowing(self, context)


class OpenGrowing(OpenFileSource):
    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        assert interval is not None
        day = DAYS.index(interval)
        return {**super().latest(start, interval), "day": day, "had": Growing.came.get(day, 0)}

    def lacks(self, start: Position | None, end: Position) -> str | None:
        more = Growing.came.get(end["day"], 0) - end["had"]
        return f"{more} records" if more else None


@pytest.fixture
def world(memory_server: PostgresServer, memory: Path) -> Iterator[FolderWorld]:
    Growing.came.clear()
    with worlds(memory_server, memory) as make:
        world = make()
        for day, interval in enumerate(DAYS):
            (world.landing / f"{interval.start:%Y-%m-%d}.txt").write_text(f"{day}\n")
        yield reading(world)


def reading(world: FolderWorld, **arguments: Any) -> FolderWorld:
    path = f"{world.landing}/{{interval_start:%Y-%m-%d}}.txt"
    source = Growing(**{"path": path, "format": "text", **arguments})
    return replace(world, pipeline=replace(world.pipeline, sources={"landing": source}))


def run(world: FolderWorld, day: int, upto: str = "", **asked: Any) -> None:
    world.run(RunKey("watch", f"day {day} {' '.join(asked)}", **asked), interval=DAYS[day], upto=upto)


@pytest.mark.fault("A27")
def test_nothing_is_planned_behind_it_until_it_is_restated(world: FolderWorld) -> None:
    run(world, 0)
    Growing.came[0] = 20
    with pytest.raises(SourceChanged, match=r"epoch 1 .*lacks 20 records.*lockstep restate watch --epoch 1 --reason"):
        run(world, 1)
    assert len(world.epochs()) == 1
    run(world, 0, restate="records came late")
    run(world, 1)
    assert world.shown() == Counter("01")


def test_only_the_interval_that_ends_where_one_begins_is_asked(world: FolderWorld) -> None:
    run(world, 1)
    Growing.came[1] = 1
    for day in (0, 3):
        run(world, day)
    with pytest.raises(SourceChanged):
        run(world, 2)
    Growing.came[0] = 1
    with pytest.raises(SourceChanged):  # who plans an interval anew looks, too
        run(world, 1, restate="why not")


@pytest.mark.fault("A27")
def test_it_is_not_sealed_and_planned_anew_it_is(world: FolderWorld) -> None:
    run(world, 0, upto="begin")
    Growing.came[0] = 1
    with pytest.raises(SourceChanged, match=r"lacks 1 records.*`lockstep replan watch 1 --reason"):
        world.task("stage", "day 0 ")
    with pytest.raises(SourceChanged, match="lockstep replan watch 1 --reason"):
        run(world, 1)
    world.replan(1)
    world.run("second", interval=DAYS[0])
    assert world.shown() == Counter("0")
    run(world, 1)


def test_one_that_was_given_up_or_is_of_another_source_keeps_nothing_up(world: FolderWorld) -> None:
    run(world, 0, upto="begin")
    Growing.came[0] = 1
    with closing((runtime := world.runtime()).ledger):
        void(runtime, 1, "not wanted")
    run(world, 1)
    Growing.came[1] = 1
    run(reading(world, path=f"{world.landing}/{{interval_start:%Y-%m}}-03.txt"), 2)


@pytest.mark.fault("A27")
def test_a_decided_one_is_staged_again_and_restated_as_it_was_read(world: FolderWorld) -> None:
    run(world, 0, upto="commit")
    Growing.came[0] = 1
    shutil.rmtree(world.folder / "staging" / str(world.epochs()[0].wal))
    with closing((runtime := world.runtime()).ledger):
        restage(runtime, 1, write_lines, "a test")
    world.run("day 0 ", "publish")
    assert world.shown() == Counter("0")
    run(world, 0, restate="once more", input=Input.FROZEN)
    assert world.shown() == Counter("0")
    with pytest.raises(SourceChanged):
        run(world, 1)
