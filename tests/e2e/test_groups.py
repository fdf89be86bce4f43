"""`EpochTaskGroup` in somebody's DAG, as a scheduler runs it: between other tasks, twice, mapped, cleared, killed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import pytest
from psycopg2 import sql

from tests.e2e.airflow_api import wait_for
from tests.e2e.groups import rows_of
from tests.e2e.world import World, interval

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(900)]

BOTH = ("grouped", "beside")
MAPPED = ("mapped_a", "mapped_b", "mapped_c")


def trigger(world: World, dag_id: str, day: str) -> str:
    world.api.unpause(dag_id)
    found = interval(day)
    return world.api.trigger_interval(dag_id, found.start.isoformat(), found.end.isoformat())


def require_moved(world: World, pipelines: Sequence[str], day: str) -> None:
    """Each of them has what `extract` lands in its sinks, once."""
    for pipeline in pipelines:
        world.require_published_once(pipeline, day, Counter(rows_of(day)))


def told(world: World, what: str, run_id: str) -> list[Any]:
    """What the run's tasks have said of a kind, in no order."""
    found = [json.loads(path.read_text()) for path in (world.home / "told").glob("*.json") if path.read_text()]
    return [one["said"] for one in found if (one["what"], one["run"]) == (what, run_id)]


@pytest.fixture(scope="module", autouse=True)
def pool(world: World) -> None:
    """In which one task group has its `stage`."""
    world.api.set_pool("groups", 1)


def test_groups_move_their_epochs_between_tasks_of_ones_own_also_after_a_kill_and_a_clear_of_the_whole_run(
    world: World,
) -> None:
    day = "2024-06-01"
    world.close_gate(day)
    run_id = trigger(world, "groups", day)
    world.wait_at_gate(day)
    world.kill_task("groups", run_id, "grouped.stage")
    world.wait_at_gate(day)  # the second try
    world.open_gate(day)
    world.require_success("groups", run_id)
    require_moved(world, BOTH, day)
    [[first, second]] = told(world, "report", run_id)
    before = [world.epoch(pipeline, day) for pipeline in BOTH]
    for pipeline, moved, epoch in zip(BOTH, (first, second), before, strict=True):
        assert epoch is not None
        assert (moved["pipeline"], moved["epoch"], moved["state"]) == (pipeline, epoch.id, "cleaned")
    tasks = world.api.tasks("groups", run_id)
    assert tasks["extract"]["end_date"] < tasks["grouped.begin"]["start_date"]
    assert tasks["report"]["start_date"] > max(tasks[f"{name}.cleanup"]["end_date"] for name in ("grouped", "other"))
    assert (tasks["grouped.stage"]["pool"], tasks["other.stage"]["pool"]) == ("groups", "default_pool")
    assert told(world, "notice", run_id) == [f"grouped.cleanup of {day}"]
    if find_spec("airflow.sdk.definitions.callback"):  # deadlines are 3.2's
        wait_for(lambda: told(world, "late", run_id) == ["groups"], "the DAG's deadline to be told")
    world.api.clear_run("groups", run_id)
    world.require_success("groups", run_id)
    assert [world.epoch(pipeline, day) for pipeline in BOTH] == before
    require_moved(world, BOTH, day)
    assert len(told(world, "report", run_id)) == 2, "who stands behind it is run again, as in any DAG"


def test_what_fails_before_a_group_begins_no_epoch_and_a_group_that_fails_aborts_its_own_and_clears_go_on(
    world: World,
) -> None:
    day = "2024-06-04"
    lacking = world.home / "gates" / f"{day}.lacking"
    lacking.parent.mkdir(exist_ok=True)
    lacking.touch()
    columns = "id int, day text, amount float8, lockstep_epoch bigint"
    world.query(sql.SQL(f"CREATE TABLE IF NOT EXISTS public.beside ({columns})"))
    world.query(sql.SQL("ALTER TABLE public.beside RENAME COLUMN amount TO sum"))
    run_id = trigger(world, "groups", day)
    assert world.api.wait_run("groups", run_id) == "failed"
    assert all(world.epoch(pipeline, day) is None for pipeline in BOTH)
    assert told(world, "report", run_id) == []
    lacking.unlink()
    world.api.clear("groups", run_id, "extract", downstream=True)

    assert world.api.wait_run("groups", run_id) == "failed"
    states = world.api.states("groups", run_id)
    assert (states["other.abort"], states["grouped.abort"]) == ("success", "skipped")
    assert (states["report"], states["other.moved"], states["grouped.moved"]) == (
        "upstream_failed",
        "upstream_failed",
        "success",
    )
    require_moved(world, ["grouped"], day)
    world.query(sql.SQL("ALTER TABLE public.beside RENAME COLUMN sum TO amount"))
    world.require_nothing_shown("beside", day)
    wait_for(
        lambda: told(world, "failure", run_id) == ["other.prepare.warehouse"], "the callback of the task that failed"
    )

    world.api.clear("groups", run_id, "other.begin", downstream=True)
    world.require_success("groups", run_id)
    require_moved(world, BOTH, day)
    assert len(told(world, "report", run_id)) == 1


def test_a_mapped_group_moves_an_epoch_of_each_pipeline_whoever_of_them_is_killed(world: World) -> None:
    day = "2024-06-06"
    world.close_gate(day)
    run_id = trigger(world, "mapped", day)
    world.wait_at_gate(day)
    world.kill_task("mapped", run_id, "all.pack[1]")
    world.wait_at_gate(day)
    world.open_gate(day)
    world.require_success("mapped", run_id)
    require_moved(world, MAPPED, day)
    [[moved]] = told(world, "report", run_id)
    assert [one["pipeline"] for one in moved] == list(MAPPED)
    tries = {name: task["try_number"] for name, task in world.api.tasks("mapped", run_id).items() if "pack" in name}
    assert tries["all.pack[1]"] > 1
    assert (tries["all.pack[0]"], tries["all.pack[2]"]) == (1, 1)

    world.api.clear("mapped", run_id, "all.pack", downstream=True, index=2)
    world.require_success("mapped", run_id)
    require_moved(world, MAPPED, day)
