"""What comes late for an interval, and what else the roles ask of an open source: a copy of its own for each run, and
that as many rows are read as were planned."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from typing import Any, ClassVar

import pytest

from lockstep.epoch import Epoch, Input, Interval, Position, RunKey
from lockstep.errors import LockstepError, SourceChanged, StageFailed
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger
from lockstep.operations.replan import void
from lockstep.protocol.begin import begin
from lockstep.protocol.restage import restage
from lockstep.protocol.stage import stage
from lockstep.sinks import FileSink
from lockstep.sources import FileSource, SourceContext
from lockstep.sources.files.open_source import OpenFileSource
from lockstep.wal.request import RESULT
from lockstep.wal.staging import Staging
from tests.sources.folder_world import FolderWorld, Make, lines_of, warnings, write_lines

DAYS = [Interval(datetime(2013, 1, day, tzinfo=UTC), datetime(2013, 1, day + 1, tzinfo=UTC)) for day in range(1, 5)]

# --- files that come for an interval which is decided already: never read, always told ---


@pytest.fixture
def daily(make: Make) -> FolderWorld:
    world = make(missing="empty")
    world.deploy(path=f"{world.landing}/{{interval_start:%Y-%m-%d}}*.txt")
    return world


def land(world: FolderWorld, day: int, name: str, text: str = "1\n") -> str:
    path = world.landing / f"{DAYS[day].start:%Y-%m-%d}{name}.txt"
    path.write_text(text)
    return str(path)


@pytest.mark.fault("A11")
def test_a_file_that_comes_after_its_epoch_was_published_is_told_and_not_read(
    daily: FolderWorld, caplog: pytest.LogCaptureFixture
) -> None:
    land(daily, 0, "")
    daily.run("first", interval=DAYS[0])
    daily.run("empty", interval=DAYS[1])
    assert daily.told("late") == {1: [], 2: []}
    assert warnings(daily, caplog, "again", interval=DAYS[0]) == []
    came, for_the_empty = land(daily, 0, "-corrected", "2\n"), land(daily, 1, "")
    assert daily.told("late") == {1: [came], 2: [for_the_empty]}
    assert f"epoch 1 was decided without {came}" in daily.status()
    [said] = warnings(daily, caplog, "once more", interval=DAYS[0])
    assert came in said
    assert daily.shown() == Counter("1")


def test_what_is_not_there_yet_or_of_another_epoch_or_of_an_undecided_one_is_not_late(daily: FolderWorld) -> None:
    land(daily, 0, "")
    daily.run("first", interval=DAYS[0])
    (daily.landing / "2013-01-01-coming.txt.tmp").write_text("n\n")
    land(daily, 1, "")
    daily.run("second", interval=DAYS[1], upto="stage")
    land(daily, 1, "-more")  # it can be planned anew
    assert daily.told("late") == {1: [], 2: []}


# --- an interval whose epoch lacks records of its own: neither is it sealed, nor is anything planned behind it ---


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
def world(make: Make) -> FolderWorld:
    Growing.came.clear()
    world = make()
    for day, interval in enumerate(DAYS):
        (world.landing / f"{interval.start:%Y-%m-%d}.txt").write_text(f"{day}\n")
    return reading(world)


def reading(world: FolderWorld, **arguments: Any) -> FolderWorld:
    path = f"{world.landing}/{{interval_start:%Y-%m-%d}}.txt"
    source = Growing(**{"path": path, "format": "text", **arguments})
    return replace(world, pipeline=replace(world.pipeline, sources={"landing": source}))


def run_day(world: FolderWorld, day: int, upto: str = "", **asked: Any) -> None:
    world.run(RunKey("watch", f"day {day} {' '.join(asked)}", **asked), interval=DAYS[day], upto=upto)


@pytest.mark.fault("A27")
def test_nothing_is_planned_behind_it_until_it_is_restated(world: FolderWorld) -> None:
    run_day(world, 0)
    Growing.came[0] = 20
    with pytest.raises(SourceChanged, match=r"epoch 1 .*lacks 20 records.*lockstep restate watch --epoch 1 --reason"):
        run_day(world, 1)
    assert len(world.epochs()) == 1
    run_day(world, 0, restate="records came late")
    run_day(world, 1)
    assert world.shown() == Counter("01")


def test_only_the_interval_that_ends_where_one_begins_is_asked(world: FolderWorld) -> None:
    run_day(world, 1)
    Growing.came[1] = 1
    for day in (0, 3):
        run_day(world, day)
    with pytest.raises(SourceChanged):
        run_day(world, 2)
    Growing.came[0] = 1
    with pytest.raises(SourceChanged):  # who plans an interval anew looks, too
        run_day(world, 1, restate="why not")


@pytest.mark.fault("A27")
def test_it_is_not_sealed_and_planned_anew_it_is(world: FolderWorld) -> None:
    run_day(world, 0, upto="begin")
    Growing.came[0] = 1
    with pytest.raises(SourceChanged, match=r"lacks 1 records.*`lockstep replan watch 1 --reason"):
        world.task("stage", "day 0 ")
    with pytest.raises(SourceChanged, match="lockstep replan watch 1 --reason"):
        run_day(world, 1)
    world.replan(1)
    world.run("second", interval=DAYS[0])
    assert world.shown() == Counter("0")
    run_day(world, 1)


def test_one_that_was_given_up_or_is_of_another_source_keeps_nothing_up(world: FolderWorld) -> None:
    run_day(world, 0, upto="begin")
    Growing.came[0] = 1
    with closing((runtime := world.runtime()).ledger):
        void(runtime, 1, "not wanted")
    run_day(world, 1)
    Growing.came[1] = 1
    run_day(reading(world, path=f"{world.landing}/{{interval_start:%Y-%m}}-03.txt"), 2)


@pytest.mark.fault("A27")
def test_a_decided_one_is_staged_again_and_restated_as_it_was_read(world: FolderWorld) -> None:
    run_day(world, 0, upto="commit")
    Growing.came[0] = 1
    shutil.rmtree(world.folder / "staging" / str(world.epochs()[0].wal))
    with closing((runtime := world.runtime()).ledger):
        restage(runtime, 1, write_lines, "a test")
    world.run("day 0 ", "publish")
    assert world.shown() == Counter("0")
    run_day(world, 0, restate="once more", input=Input.FROZEN)
    assert world.shown() == Counter("0")
    with pytest.raises(SourceChanged):
        run_day(world, 1)


# --- each run has an open copy of its own, and as many rows are read as were planned ---

BARRIER = Barrier(2)


class MeetingSource(FileSource):
    """Two that open it go on together."""

    def open(self, context: SourceContext) -> OpenFileSource:
        BARRIER.wait(60)
        return super().open(context)


@pytest.mark.fault("A22")
def test_two_pipelines_in_two_threads_may_share_a_source(make: Make) -> None:
    world = make()
    (world.landing / "first.txt").write_text("1\n")
    world.run("first")
    (world.landing / "second.txt").write_text("2\n")
    source = MeetingSource(f"{world.landing}/*.txt", format="text")
    one = replace(world.pipeline, sources={"landing": source})
    sink = FileSink("out", output="lines", path=str(world.folder / "of-the-other"), format="parquet")
    other = replace(one, name="other", sinks=[sink])

    def lines(pipeline: Any) -> list[str]:
        with closing(Ledger(world.ledger_dsn)) as ledger:
            runtime = runtime_for(pipeline, ledger, Staging(str(world.folder / "staging")), {})
            return sorted(lines_of(begin(runtime, RunKey("shared", pipeline.name)).plan.sources["landing"].end))

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(lines, [one, other])) == [["2"], ["1", "2"]]


class CountedSource(FileSource):
    """Counts its lines when it is planned."""

    def open(self, context: SourceContext) -> OpenFileSource:
        return OpenCounted(self, context)


class OpenCounted(OpenFileSource):
    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        position = super().latest(start, interval)
        return {**position, "rows": len(lines_of(position))}

    def rows_planned(self, start: Position | None, end: Position) -> int | None:
        planned: int | None = end["rows"]
        return planned


@pytest.mark.fault("L6")
@pytest.mark.parametrize(("read", "error"), [(2, SourceChanged), (4, StageFailed), (3, None)])
def test_nothing_is_sealed_unless_as_many_rows_were_read_as_were_planned(
    make: Make, read: int, error: type[LockstepError] | None
) -> None:
    world = make()
    (world.landing / "1.txt").write_text("1\n2\n3\n")
    source = CountedSource(f"{world.landing}/*.txt", format="text")
    pipeline, run = replace(world.pipeline, sources={"landing": source}), RunKey("counted", "1")

    def launch(request_uri: str) -> None:
        write_lines(request_uri)
        result = Path(request_uri.removeprefix("file://")).parent / RESULT
        told = json.loads(result.read_text())
        told["sources"]["landing"]["rows"] = read
        result.write_text(json.dumps(told))

    def sealed() -> Epoch:
        return stage(runtime, run, launch)

    with closing(Ledger(world.ledger_dsn)) as ledger:
        runtime = runtime_for(pipeline, ledger, Staging(str(world.folder / "staging")), {})
        begin(runtime, run)
        if error is None:
            assert sealed().wal
            return
        with pytest.raises(error, match=f"3 rows of source landing were planned, and Spark read {read}"):
            sealed()
        assert ledger.epoch("watch", 1).wal is None
