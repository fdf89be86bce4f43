"""Many epochs by one run of one task: whatever becomes of the task, or of one of them, every row shows up once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from tests.e2e.airflow_api import wait_for
from tests.e2e.groups import Row
from tests.e2e.world import World

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(900)]


def test_a_backfill_puts_up_to_a_pack_of_its_intervals_into_a_run(world: World) -> None:
    days = [f"2024-03-{day:02}" for day in range(4, 11)]  # from Monday to Sunday
    landed = {day: world.land("packed", day) for day in days}
    world.api.unpause("packed")
    world.api.backfill("packed", days[0], days[-1])
    runs = world.api.runs("packed")
    assert list(runs.values()) == ["success"] * 3
    for day in days:
        world.require_published_once("packed", day, landed[day])
    archived = [event["extra"] for event in world.api.events_of("packed.archive")]
    assert sorted(len(extra["epochs"]) for extra in archived) == [1, 3, 3]
    assert sum(extra["rows"]["orders"] for extra in archived) == sum(rows.total() for rows in landed.values())
    if world.partitions:
        require_a_week(world, days, landed)


def require_a_week(world: World, days: list[str], landed: Mapping[str, Counter[Row]]) -> None:
    """Each day is a partition, with what is of that day alone, and whoever waits for all of them has run, once."""
    partitions = world.api.events_of("packed.archive:epochs")
    told = {event["partition_key"]: event["extra"] for event in partitions}
    assert len(partitions) == len(told) and set(told) == {f"{day}T00:00:00" for day in days}
    for day in days:
        extra, epoch = told[f"{day}T00:00:00"], world.epoch("packed", day)
        assert epoch is not None
        assert (extra["epoch"], extra["rows"]) == (epoch.id, {"orders": landed[day].total()})
    wait_for(lambda: list(world.api.runs("weekly").values()) == ["success"], "the one run of the whole week")
    [run_id] = world.api.runs("weekly")
    assert "2024-03-04 to 2024-03-10, nothing is missing" in world.api.log("weekly", run_id, "ask")


def test_kill_9_of_the_task_is_retried_and_each_epoch_is_shown_once(world: World) -> None:
    days = ["2024-03-21", "2024-03-22", "2024-03-23"]
    landed = {day: world.land("packed", day) for day in days}
    world.close_gate(days[2])
    run_id = world.trigger("packed", days[0], days[-1])
    world.wait_at_gate(days[2])
    world.wait_states("packed", days[:2], "cleaned")
    world.kill_task("packed", run_id, "pack")
    world.wait_at_gate(days[2])  # the second try, while Spark still runs the first one's job
    world.open_gate(days[2])
    world.require_success("packed", run_id)
    assert world.api.tasks("packed", run_id)["pack"]["try_number"] == 2
    for day in days:
        world.require_published_once("packed", day, landed[day])
    world.api.clear_run("packed", run_id)
    world.require_success("packed", run_id)
    for day in days:
        world.require_published_once("packed", day, landed[day])
