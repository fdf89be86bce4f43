"""A crash point stands between any two side effects, so that the crash suite strikes everywhere."""

from __future__ import annotations

import pytest

from lockstep.crash import CrashPoint
from lockstep.epoch import RunKey
from tests.crash.recording import Recording, recorded
from tests.crash.test_restage import damaged
from tests.crash.world import World, write_parquet

BOTH = pytest.mark.parametrize("world", ["two_phase", "write_ahead"], indirect=True)


def _record(world: World, monkeypatch: pytest.MonkeyPatch, task: str, run: RunKey, day: int) -> Recording:
    with recorded(monkeypatch, world.folder) as recording:

        def job(request_uri: str) -> None:
            with recording.paused():
                write_parquet(request_uri)

        world.run_task(task, run, day, job)
    return recording


@BOTH
def test_no_two_side_effects_of_an_epoch_fall_between_the_same_crash_points(
    world: World, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    first = next(world.days)
    world.run(RunKey("points", "first"), first)  # tables and folders that are made once stand now
    day = next(world.days)
    for task in world.tasks():
        with subtests.test(task):
            recording = _record(world, monkeypatch, task, RunKey("points", f"{day}"), day)
            assert any(kind == "effect" for kind, _ in recording.events), recording.events
            assert recording.unseparated() == []
    world.require_exactly_once(day)


def test_no_two_side_effects_of_going_back_fall_between_the_same_crash_points(
    world: World, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    day = next(world.days)
    run = RunKey("points", f"back {day}")
    world.run_until(run, day, "prepare.files")
    for task in ("abort", "begin", "recover"):
        with subtests.test(task):
            world.expire_leases()
            assert _record(world, monkeypatch, task, run, day).unseparated() == []
            world.run(run, day, "begin") if task == "recover" else world.run_until(run, day, "prepare.files")
    world.require_exactly_once(day)


def test_no_two_side_effects_of_a_restage_fall_between_the_same_crash_points(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = damaged(world)
    recorded = _record(world, monkeypatch, "restage", RunKey("points", "restage"), day)
    assert recorded.unseparated() == []
    assert {what for kind, what in recorded.events if kind == "point"} >= {
        point for point in CrashPoint if point.startswith("restage.")
    }
    assert world.recover().problems == []
    world.require_exactly_once(day)
