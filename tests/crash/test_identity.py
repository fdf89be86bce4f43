"""A run id stands for one epoch, a name for one pipeline: whoever asks with them for another one is told so."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import datetime

import pytest

from lockstep import run_epoch
from lockstep.epoch import RunKey
from lockstep.errors import InvalidPipeline, NameTaken, RunMismatch
from lockstep.operations.renumber import redefine
from lockstep.pipeline import Pipeline
from lockstep.protocol.abort import abort
from lockstep.protocol.begin import begin
from lockstep.sinks.files import FileSink
from tests.crash.world import Numbers, Tens, World, interval_of, untouched

ONE_WORLD = pytest.mark.parametrize("world", ["write_ahead"], indirect=True)


def _bounds(day: int) -> tuple[datetime, datetime]:
    span = interval_of(day)
    return span.start, span.end


def _named(world: World, name: str) -> World:
    """A world whose pipeline is another one: its own name, folder and nothing else."""
    sink = FileSink("files", output="numbers", path=str(world.folder / name))
    return replace(world, pipeline=Pipeline(name, {"numbers": Numbers()}, untouched, [sink]))


# --- runs ---


@pytest.mark.fault("L1")
@ONE_WORLD
def test_a_run_id_that_stands_for_one_interval_is_refused_for_another(world: World) -> None:
    first, second = next(world.days), next(world.days)
    world.run(RunKey("run_epoch", f"again {first}"), first)
    with pytest.raises(RunMismatch, match=r"stands for numbers epoch \d+ \[2013.*is asked for numbers \[2013"):
        run_epoch(
            world.pipeline,
            interval=_bounds(second),
            ledger=world.ledger_dsn,
            staging=str(world.staging_folder),
            spark="nobody gets that far",
            connections={"warehouse": world.warehouse_dsn},
            run_id=f"again {first}",
        )
    assert world.state_of(second) is None
    world.run(RunKey("run_epoch", f"another {second}"), second)
    world.require_exactly_once(second)


@pytest.mark.fault("L1")
@ONE_WORLD
def test_a_run_id_of_another_pipeline_is_refused_and_its_epoch_neither_answered_nor_aborted(world: World) -> None:
    day, run = next(world.days), RunKey("shared", "one id")
    world.run_until(run, day, "stage")
    other = _named(world, "elsewhere")
    for task in ("begin", "stage"):
        with pytest.raises(RunMismatch, match="stands for numbers epoch"):
            other.run_task(task, run, day)
    assert other.state_of(day) is None
    other.run(RunKey("bystander", "its own"), day)
    before = world.epoch_of(day), other.epoch_of(day)
    assert abort(other.runtime(), run, "not mine") is None
    assert (world.epoch_of(day), other.epoch_of(day)) == before
    world.run(run, day, start="prepare.warehouse")
    world.require_exactly_once(day)


@pytest.mark.fault("L1")
@ONE_WORLD
def test_tasks_of_a_run_that_came_back_for_another_interval_act_on_nothing(world: World) -> None:
    """Airflow: a run was deleted and created again under its old id, and somebody marks `begin` a success."""
    first, second = next(world.days), next(world.days)
    world.run_until(RunKey("dag", f"manual {first}", interval_of(first)), first, "prepare.files")
    again = RunKey("dag", f"manual {first}", interval_of(second))
    attempt = world.epoch_of(first).attempt
    for task in ("begin", "stage", "prepare.files", "commit", "publish.files", "cleanup"):
        with pytest.raises(RunMismatch, match="under a new run id"):
            world.run_task(task, again, second)
    world.run_task("abort", again, second)
    assert world.epoch_of(first).attempt == attempt
    assert world.state_of(second) is None


@pytest.mark.fault("L1")
@ONE_WORLD
def test_an_interval_for_a_pipeline_whose_epochs_are_numbers_is_refused(world: World) -> None:
    sink = FileSink("tens", output="numbers", path=str(world.folder / "numbered"))
    numbered = replace(world, pipeline=Pipeline("numbered", {"tens": Tens()}, untouched, [sink]))
    with pytest.raises(InvalidPipeline, match=r"its epochs are numbers.*\{interval_start"):
        begin(numbered.runtime(), RunKey("numbered", "one"), interval_of(0))
    first = begin(numbered.runtime(), RunKey("numbered", "one"))
    assert begin(numbered.runtime(), RunKey("numbered", "one")).id == first.id == 1


# --- names ---


@dataclass(eq=False)
class Landing(Numbers):
    """Numbers that come from somewhere."""

    place: str

    def reads_from(self) -> str:
        return f"numbers of {self.place}"


def _definition(world: World, place: str, *sinks: str) -> World:
    """A pipeline `named`, that reads `place` and writes each of `sinks`, under sink names that say nothing."""
    made = [
        FileSink(f"files{number}", output="numbers", path=str(world.folder / path)) for number, path in enumerate(sinks)
    ]
    return replace(world, pipeline=Pipeline(f"named-{world.folder.name}", {"numbers": Landing(place)}, untouched, made))


def _days(world: World) -> tuple[int, int]:
    return next(world.days), next(world.days)


@pytest.mark.fault("L2")
@pytest.mark.parametrize("world", ["two_phase"], indirect=True)
def test_another_pipeline_under_a_known_name_is_refused_until_a_person_says_so(world: World) -> None:
    published, new = _days(world)
    orders, refunds = _definition(world, "orders", "orders"), _definition(world, "refunds", "refunds")
    orders.run(RunKey("orders", f"{published}"), published)
    for day in (published, new):
        with pytest.raises(NameTaken, match=r"numbers of orders.*numbers of refunds.*lockstep redefine"):
            refunds.run(RunKey("refunds", f"{day}"), day)
    assert refunds.state_of(new) is None
    assert not (world.folder / "refunds").exists()
    redefine(refunds.runtime(), "the landing zone and the lake moved")
    refunds.run(RunKey("refunds", f"{new}"), new)
    assert refunds.state_of(new) == "cleaned"
    told = "SELECT change, reason FROM lockstep.pipeline_change WHERE pipeline = %s"
    [found] = world.execute(world.ledger_dsn, told, (refunds.pipeline.name,))
    assert found == ("redefined", "the landing zone and the lake moved")


@pytest.mark.fault("L2")
@ONE_WORLD
def test_a_definition_may_change_step_by_step_into_another_one(world: World) -> None:
    steps = [("a", ("one",)), ("a", ("two",)), ("b", ("two", "three")), ("c", ("two", "four"))]
    for place, sinks in steps:
        day = next(world.days)
        changed = _definition(world, place, *sinks)
        changed.run(RunKey("steps", f"{day}"), day)
        assert changed.state_of(day) == "cleaned"


@pytest.mark.fault("L2")
@ONE_WORLD
def test_other_sources_alone_are_told(world: World, caplog: pytest.LogCaptureFixture) -> None:
    day, later = _days(world)
    first, second = _definition(world, "here", "same"), _definition(world, "there", "same")
    first, second = (replace(w, pipeline=replace(w.pipeline, name="telling")) for w in (first, second))
    first.run(RunKey("telling", f"{day}"), day)
    with caplog.at_level(logging.WARNING):
        second.run(RunKey("telling", f"{later}"), later)
    assert "reads numbers of there, and its last epoch read numbers of here" in caplog.text
