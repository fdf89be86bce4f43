"""A run id stands for one epoch, a name for one pipeline: whoever asks with them for another one is told so."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest

from lockstep import run_epoch
from lockstep.epoch import Plan, RunKey
from lockstep.errors import InvalidPipeline, NameTaken, RunMismatch
from lockstep.operations.redefine import redefine
from lockstep.pipeline import Pipeline
from lockstep.roles.abort import abort
from lockstep.roles.begin import begin
from lockstep.roles.stage import stage
from lockstep.sinks.files import FileSink
from lockstep.sinks.postgres import PostgresSink
from tests.crash.world import Numbers, Tens, World, interval_of, untouched, write_parquet

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
def test_a_run_id_of_another_pipeline_is_refused_and_its_epoch_is_not_answered(world: World) -> None:
    day, run = next(world.days), RunKey("shared", "one id")
    world.run(run, day)
    other = _named(world, "elsewhere")
    with pytest.raises(RunMismatch, match="stands for numbers epoch"):
        begin(other.runtime(), run, interval_of(day))
    with pytest.raises(RunMismatch, match="stands for numbers epoch"):
        stage(other.runtime(), run, write_parquet)
    assert other.state_of(day) is None


@pytest.mark.fault("L1")
@ONE_WORLD
def test_abort_leaves_alone_what_a_run_id_has_begun_for_another_pipeline(world: World) -> None:
    day, run = next(world.days), RunKey("shared", "abort")
    world.run_until(run, day, "stage")
    other = _named(world, "bystander")
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


@ONE_WORLD
def test_a_cleared_run_finds_its_own_epoch_with_or_without_its_interval(world: World) -> None:
    day = next(world.days)
    run = RunKey("dag", f"cleared {day}")
    world.run(run, day)
    for given in (interval_of(day), None):
        assert begin(world.runtime(), run, given) == world.epoch_of(day)


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
def test_another_pipeline_under_a_known_name_is_refused_for_published_and_for_new_intervals(world: World) -> None:
    published, new = _days(world)
    orders, refunds = _definition(world, "orders", "orders"), _definition(world, "refunds", "refunds")
    orders.run(RunKey("orders", f"{published}"), published)
    for day in (published, new):
        with pytest.raises(NameTaken, match=r"numbers of orders.*numbers of refunds.*lockstep redefine"):
            refunds.run(RunKey("refunds", f"{day}"), day)
    assert refunds.state_of(new) is None
    assert not (world.folder / "refunds").exists()


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
def test_another_definition_is_taken_once_a_person_says_so(world: World) -> None:
    before, after = _days(world)
    old, new = _definition(world, "old", "old-out"), _definition(world, "new", "new-out")
    old = replace(old, pipeline=replace(old.pipeline, name="moved"))
    new = replace(new, pipeline=replace(new.pipeline, name="moved"))
    old.run(RunKey("moved", f"{before}"), before)
    with pytest.raises(NameTaken):
        new.run(RunKey("moved", f"{after}"), after)
    redefine(new.runtime(), "the landing zone and the lake moved")
    new.run(RunKey("moved", f"{after}"), after)
    assert new.state_of(after) == "cleaned"
    [found] = world.execute(
        world.ledger_dsn, "SELECT change, reason FROM lockstep.pipeline_change WHERE pipeline = 'moved'"
    )
    assert found == ("redefined", "the landing zone and the lake moved")


@ONE_WORLD
def test_a_plan_of_old_that_says_nothing_of_its_sources_refuses_no_definition_with_a_source_of_its_name(
    world: World,
) -> None:
    day, later = _days(world)
    old = _definition(world, "old", "once")
    old = replace(old, pipeline=replace(old.pipeline, name="ancient"))
    old.run(RunKey("ancient", f"{day}"), day)
    world.execute(
        world.ledger_dsn,
        "BEGIN; ALTER TABLE lockstep.epoch DISABLE TRIGGER ALL; "
        "UPDATE lockstep.epoch SET plan = plan - 'reads' WHERE pipeline = 'ancient'; "
        "ALTER TABLE lockstep.epoch ENABLE TRIGGER ALL; COMMIT",
    )
    assert old.epoch_of(day).plan.reads == {}
    moved = _definition(world, "new", "now")
    moved = replace(moved, pipeline=replace(moved.pipeline, name="ancient"))
    moved.run(RunKey("ancient", f"{later}"), later)
    assert moved.state_of(later) == "cleaned"


def test_a_plan_says_what_it_reads_and_an_old_one_is_still_read() -> None:
    plan = Plan({}, {}, {"numbers": "numbers of orders"})
    assert Plan.from_json(plan.to_json()) == plan
    old = plan.to_json()
    del old["reads"]
    assert Plan.from_json(old).reads == {}


def test_what_a_sink_writes_to_doesnt_depend_on_how_it_is_set_up() -> None:
    def table(name: str, **more: Any) -> frozenset[str]:
        return PostgresSink(name, tables={"o": "public.orders"}, connection="warehouse", **more).writes_to()

    assert table("a") == table("b", lock_timeout=3, create=True, protocol="write_ahead")
    assert table("a").isdisjoint(PostgresSink("a", tables={"o": "public.refunds"}, connection="warehouse").writes_to())


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
