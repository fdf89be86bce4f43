"""Slots are not for waiting: what waits for its input is with the triggerer, and outlives that, too."""

from __future__ import annotations

import os
import signal
from datetime import date, timedelta

import pytest

from tests.e2e.airflow_api import wait_for
from tests.e2e.conftest import TestedStack
from tests.e2e.world import World

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(900)]

WAITING = 12  #: more than there are slots
DAYS = [str(date(2024, 3, 1) + timedelta(days=day)) for day in range(WAITING)]
LANDED = DAYS[:3]


def test_epochs_that_wait_take_no_slot_and_outlive_the_triggerer_and_the_worker(
    world: World, stack: TestedStack
) -> None:
    world.api.make_pool("landing", 8)
    runs = {day: world.trigger("deferred", day) for day in DAYS}

    def waiting() -> list[str]:
        states = world.api.all_states("deferred", "begin")
        return [day for day, run_id in runs.items() if states.get(run_id) == "deferred"]

    wait_for(lambda: len(waiting()) == WAITING, "all of them to wait")
    pool = world.api.pool("landing")
    assert (pool["running_slots"], pool["queued_slots"], pool["open_slots"]) == (0, 0, 8)
    assert pool["deferred_slots"] == WAITING
    log = world.api.log("deferred", runs[DAYS[0]], "begin")
    assert "waiting, SourceNotReady: " in log and "the triggerer looks for it" in log

    stack.airflow.kill("triggerer")
    landed = {day: world.land("deferred", day) for day in LANDED}
    world.hold_publisher("beginner")
    stack.airflow.start("triggerer")
    os.kill(world.wait_for_held_publisher("beginner"), signal.SIGKILL)  # with its attempt open
    world.release_publisher("beginner")
    for day in LANDED:
        world.require_success("deferred", runs[day])
    for day in LANDED:
        world.require_published_once("deferred", day, landed[day])
    tries = sorted(world.api.tasks("deferred", runs[day])["begin"]["try_number"] for day in LANDED)
    assert tries == [1, 1, 2]  # to wait cost none

    assert waiting() == DAYS[len(LANDED) :]
    for day in DAYS[len(LANDED) :]:
        assert world.epoch("deferred", day) is None
        world.api.mark_run("deferred", runs[day], "failed")
    wait_for(lambda: world.api.pool("landing")["deferred_slots"] == 0, "nobody to wait any more")
