"""on_stuck="merge": what a stuck epoch of a cursor had is in one epoch with what the next one would read, once."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import Epoch, RunKey
from lockstep.errors import EpochBusy, Fenced, InvalidPipeline, PlanMismatch, SourceChanged, SourceRefused
from lockstep.pipeline import Pipeline
from lockstep.protocol.abort import abort
from lockstep.sinks import FileSink
from lockstep.sources import FileSource, SequenceSource, Snapshot
from lockstep.states import EpochState
from tests.crash.victims import Hit, overtake, sacrifice
from tests.sources.folder_world import TASKS, FolderWorld, Make, lines_of, unchanged


@pytest.fixture
def world(make: Make) -> FolderWorld:
    world = make()
    world.pipeline = replace(world.pipeline, on_stuck="merge", max_in_flight=5)
    return world


def land(world: FolderWorld, *names: str) -> None:
    for name in names:
        (world.landing / f"{name}.txt").write_text(f"{name}\n")


def lines(epoch: Epoch) -> list[str]:
    return lines_of(epoch.plan.sources["landing"].end)


def stuck(world: FolderWorld) -> Epoch:
    """The epoch that run `one` has left, with line 1; line 2 came since."""
    land(world, "1")
    found = world.begin("one")
    world.leave()
    land(world, "2")
    return found


@pytest.mark.fault("A28")
def test_the_next_run_takes_what_a_stuck_epoch_had_and_what_has_come_since(world: FolderWorld) -> None:
    first = stuck(world)
    found = world.begin("two")
    assert (found.id, lines(found)) == (first.id, ["1", "2"])
    assert found.plan.sources["landing"].start == first.plan.sources["landing"].start
    assert (found.plan.sinks, found.planned_at) == (first.plan.sinks, first.planned_at)
    world.run("two", "stage")
    land(world, "3")
    world.run("three")
    assert world.shown() == {"1": 1, "2": 1, "3": 1}
    assert [epoch.state for epoch in world.epochs()] == ["cleaned", "cleaned"]


def test_an_aborted_epoch_is_merged_at_once(world: FolderWorld) -> None:
    land(world, "1")
    world.begin("one")
    with closing((runtime := world.runtime()).ledger):
        abort(runtime, RunKey("watch", "one"), "a test")
    land(world, "2")
    assert lines(world.begin("two")) == ["1", "2"]


def test_unless_that_is_said_and_in_a_run_s_own_retry_the_range_stays(world: FolderWorld) -> None:
    first = stuck(world)
    assert world.begin("one").plan == first.plan
    world.leave()
    world.pipeline = replace(world.pipeline, on_stuck="resume")
    assert world.begin("two").plan == first.plan
    world.leave()
    world.pipeline = replace(world.pipeline, on_stuck="merge")
    world.deploy(path=f"{world.landing}/[0-9].txt")  # a source that is defined otherwise
    assert world.begin("three").plan == first.plan


@pytest.mark.fault("A28")
def test_an_epoch_at_which_somebody_is_stays(world: FolderWorld) -> None:
    land(world, "1")
    first = world.begin("one")
    land(world, "2")
    second = world.begin("two")
    assert (second.id, lines(second)) == (first.id + 1, ["2"])


def test_an_epoch_that_others_follow_stays(world: FolderWorld) -> None:
    land(world, "1")
    first = world.begin("one")
    land(world, "2")
    world.begin("two")
    world.leave()
    land(world, "3")
    assert world.begin("three").plan == first.plan
    assert lines(world.begin("four")) == ["2", "3"]


def test_what_is_sealed_stays(world: FolderWorld) -> None:
    first = stuck(world)
    world.begin("two")
    world.task("stage", "two")
    world.leave()
    land(world, "3")
    found = world.begin("three")
    assert (found.id, found.state, lines(found)) == (first.id, EpochState.STAGED, ["1", "2"])


def test_an_epoch_that_nothing_new_came_for_stays(world: FolderWorld) -> None:
    land(world, "1")
    first = world.begin("one")
    world.leave()
    found = world.begin("two")
    assert (found.plan, found.reason) == (first.plan, None)


@pytest.mark.fault("A28")
@pytest.mark.parametrize("how", ["replaced", "deleted"])
def test_what_was_frozen_is_never_left_out_or_read_otherwise(world: FolderWorld, how: str) -> None:
    first = stuck(world)
    frozen = world.landing / "1.txt"
    frozen.write_text("another\n") if how == "replaced" else frozen.unlink()
    assert world.begin("two").plan == first.plan
    with pytest.raises(SourceChanged):
        world.task("stage", "two")
    world.replan(first.id)  # a person's word
    world.run("two")
    assert world.shown() == Counter({"2": 1} | ({"another": 1} if how == "replaced" else {}))


def test_a_file_that_grows_is_read_from_where_it_was_frozen_to_where_it_ends_now(world: FolderWorld) -> None:
    world.deploy(grow=True)
    file = world.landing / "a.txt"
    for number in range(3):
        with file.open("a") as grows:
            grows.write(f"{number}\n")
        found = world.begin(f"run {number}")
        world.leave()
    assert (found.id, lines(found)) == (1, ["0", "1", "2"])
    world.run("run 2", "stage")
    with file.open("a") as grows:
        grows.write("3\n")
    world.run("the next")
    assert world.shown() == {"0": 1, "1": 1, "2": 1, "3": 1}


def test_a_snapshot_is_the_one_of_the_run_that_merges(world: FolderWorld) -> None:
    (world.folder / "prices").mkdir()
    prices = world.folder / "prices" / "p.txt"
    prices.write_text("old")
    whole = Snapshot(FileSource(f"{world.folder}/prices/*.txt", format="text"))
    world.pipeline = replace(world.pipeline, sources={**world.pipeline.sources, "prices": whole})
    first = stuck(world)
    prices.write_text("newer")
    found = world.begin("two")
    assert lines(found) == ["1", "2"]
    assert (lines_of(first.plan.sources["prices"].end), found.plan.sources["prices"].snapshot) == (["newer"], True)
    assert found.plan.sources["prices"] != first.plan.sources["prices"]


def test_each_run_adds_no_more_than_an_epoch_may_have(world: FolderWorld) -> None:
    world.deploy(max_files_per_epoch=1)
    land(world, "1", "2", "3", "4")
    for number, upto in enumerate(("1", "12", "123")):
        found = world.begin(f"run {number}")
        world.leave()
        assert (found.id, sorted(lines(found))) == (1, list(upto))


@pytest.mark.fault("A28")
def test_the_run_that_comes_back_is_told_and_changes_nothing(world: FolderWorld) -> None:
    stuck(world)
    world.begin("two")
    with pytest.raises(Fenced):
        world.task("stage", "one")
    with pytest.raises(EpochBusy):
        world.begin("one")
    world.run("two", "stage")
    found = world.begin("one")
    assert (found.id, found.state) == (1, EpochState.CLEANED)
    world.run("one")
    assert world.shown() == {"1": 1, "2": 1}


def test_other_sinks_are_a_person_s_business(world: FolderWorld) -> None:
    stuck(world)
    sink = FileSink("other", output="lines", path=str(world.folder / "other"), format="parquet")
    world.pipeline = replace(world.pipeline, sinks=[*world.pipeline.sinks, sink])
    with pytest.raises(PlanMismatch):
        world.begin("two")


def test_where_no_source_can_be_asked_the_epoch_goes_on_as_it_is(world: FolderWorld) -> None:
    first = stuck(world)
    (world.landing / "3.txt").hardlink_to(world.landing / "2.txt")
    with pytest.raises(SourceRefused, match="two names"):
        replace(world, pipeline=replace(world.pipeline, name="another")).begin("asked")
    assert world.begin("two").plan == first.plan


@pytest.mark.fault("A28")
@pytest.mark.parametrize("rival", ["takes it over", "plans the next one"])
def test_nobody_is_overtaken_between_the_look_and_the_merge(
    world: FolderWorld, rival: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    first = stuck(world)
    other = replace(world, pipeline=replace(world.pipeline, on_stuck="resume"))

    def meanwhile(point: CrashPoint) -> None:
        if point is CrashPoint.BEGIN_BEFORE_OPEN:
            stop()
            other.begin("rival")
            if rival == "plans the next one":
                other.begin("the next")
                world.leave()

    stop = crash.observe(meanwhile)
    if rival == "takes it over":
        with pytest.raises(EpochBusy):
            world.begin("two")
    else:
        assert world.begin("two").plan == first.plan
    kept = world.epochs()
    assert kept[0].plan == first.plan
    assert [lines(epoch) for epoch in kept[1:]] == ([["2"]] if rival == "plans the next one" else [])


@pytest.mark.fault("A28")
@pytest.mark.parametrize(
    "hit", [Hit("stage", CrashPoint.STAGE_AFTER_SPARK, 1), Hit("begin", CrashPoint.BEGIN_AFTER_OPEN, 1)], ids=str
)
def test_an_attempt_that_stood_still_shows_nothing_of_the_range_it_had(world: FolderWorld, hit: Hit) -> None:
    land(world, "1")
    victim = sacrifice([(task, partial(world.task, task, "one")) for task in TASKS], hit, "hang", world.folder / "log")

    def resume() -> None:
        world.leave()
        land(world, "2")
        world.run("two")

    def check() -> None:
        [epoch] = world.epochs()
        assert (lines(epoch), world.shown()) == (["1", "2"], {"1": 1, "2": 1})

    overtake(victim, resume, check)


def test_only_epochs_of_a_cursor_are_merged() -> None:
    sinks = [FileSink("out", output="lines", path="out")]
    days = FileSource("{interval_start}.txt", format="text")
    with pytest.raises(InvalidPipeline, match="on_stuck='merge' is for a cursor's"):
        Pipeline("p", {"landing": days}, unchanged, sinks, on_stuck="merge")
    unknown: Any = "join"
    with pytest.raises(InvalidPipeline, match="must be 'resume' or 'merge', is 'join'"):
        Pipeline("p", {"landing": SequenceSource(3)}, unchanged, sinks, on_stuck=unknown)
