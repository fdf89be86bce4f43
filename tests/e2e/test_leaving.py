"""A `stage` whose job works elsewhere takes no slot: it is with the triggerer, and nothing is written twice."""

from __future__ import annotations

import os
import signal
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.e2e.airflow_api import wait_for
from tests.e2e.conftest import TestedStack
from tests.e2e.detached import GATE
from tests.e2e.world import World

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(1200)]

AT_WORK = 4
LONG = 400.0  #: seconds, for so many processes on a machine that is busy with other things
DAYS = [str(date(2024, 5, 1) + timedelta(days=day)) for day in range(AT_WORK)]
CLEARED = DAYS[0]


@pytest.mark.fault("B24")
def test_jobs_at_work_take_no_slot_and_what_they_wrote_is_shown_once_whoever_dies(
    world: World, stack: TestedStack
) -> None:
    world.api.set_pool("staging", 2)
    world.close_gate(GATE)
    landed = {day: world.land("left", day) for day in DAYS}
    runs = {day: world.trigger("left", day) for day in DAYS}

    def deferred() -> int:
        states = world.api.all_states("left", "stage")
        return sum(states.get(run_id) == "deferred" for run_id in runs.values())

    wait_for(lambda: deferred() == AT_WORK, "every job to be left to itself", LONG)
    pool = world.api.pool("staging")
    assert (pool["running_slots"], pool["queued_slots"], pool["open_slots"]) == (0, 0, 2)
    assert pool["deferred_slots"] == AT_WORK
    assert "waiting, JobAtWork: job " in world.api.log("left", runs[CLEARED], "stage")
    assert _launched(world) == AT_WORK

    world.api.clear("left", runs[CLEARED], "stage", downstream=True)
    wait_for(lambda: _launched(world) == AT_WORK + 1 and deferred() == AT_WORK, "a second job of the day")
    wait_for(lambda: _ended(world) == 1, "its first one to be cancelled")

    stack.airflow.kill("triggerer")
    world.hold_publisher("sealer")
    world.open_gate(GATE)
    wait_for(lambda: _ended(world) == AT_WORK + 1, "all jobs to end, while nobody looks", LONG)
    stack.airflow.start("triggerer")
    os.kill(world.wait_for_held_publisher("sealer"), signal.SIGKILL)  # with a manifest that the ledger doesn't know
    world.release_publisher("sealer")
    for day in DAYS:
        world.require_success("left", runs[day])
    for day in DAYS:
        world.require_published_once("left", day, landed[day])
    tries = [int(world.api.tasks("left", runs[day])["stage"]["try_number"]) for day in DAYS]
    assert sorted(tries)[:-2] == [1] * (AT_WORK - 2), "to wait cost none"
    assert AT_WORK + 2 <= _launched(world) <= sum(tries), "no try launches twice"


def _launched(world: World) -> int:
    return len(list((world.home / "jobs").glob("*.pid")))


def _ended(world: World) -> int:
    return len([place for place in (world.home / "jobs").glob("*") if not Path(place).suffix])
