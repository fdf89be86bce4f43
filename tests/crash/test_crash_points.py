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


def _fail(request_uri: str) -> None:
    raise ZeroDivisionError


ONLY_WRITE_AHEAD = {"publish.after_marker", "publish.after_write"}  # two_phase comes here to repair
ONLY_TWO_PHASE = {"prepare.after_counts"}
ONLY_EARLY = {"prepare.after_manifest"}  # see test_early_load.py
ONLY_ADOPTED = {"stage.before_facts", "stage.before_copy", "stage.after_copy"}  # see test_adoption.py, test_restored.py
ONLY_LEFT = {"stage.after_launch", "stage.after_note"}  # see test_left_jobs.py
ONLY_COMPACTED = {point.value for point in CrashPoint if point.startswith("compact.")}  # see test_compaction.py
ONLY_KEPT = {point.value for point in CrashPoint if point.startswith("expire.")}  # see test_kept_wals.py
ONLY_REPLACING = {  # see test_restating.py, and tests/sinks
    *("prepare.after_removal", "publish.after_removal"),
    *("publish.before_take_away", "publish.after_take_away"),
}
ONLY_AUDITED = {point.value for point in CrashPoint if point.startswith("audit.")}  # see test_audits.py
ONLY_LOST = {point.value for point in CrashPoint if point.startswith("rebuild.")}  # see test_rebuilt_ledger.py
ONLY_DAMAGED = {point.value for point in CrashPoint if point.startswith("restage.")}


@BOTH
def test_every_crash_point_is_reached_somewhere(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A point that nothing reaches is a promise that nothing tests."""
    reached: set[str] = set()
    for last in ("cleanup", "prepare.files"):
        day = next(world.days)
        run = RunKey("points", f"all {day}")
        world.run_task("begin", run, day)
        with pytest.raises(ZeroDivisionError):
            world.run_task("stage", run, day, _fail)  # leaves a folder to roll back
        tasks = world.tasks()
        for task in (*tasks[: tasks.index(last) + 1], "abort", "recover"):
            reached |= {what for kind, what in _record(world, monkeypatch, task, run, day).events if kind == "point"}
    elsewhere = ONLY_WRITE_AHEAD if world.protocol == "two_phase" else ONLY_TWO_PHASE
    elsewhere |= ONLY_DAMAGED | ONLY_EARLY | ONLY_COMPACTED | ONLY_KEPT | ONLY_REPLACING | ONLY_AUDITED | ONLY_LOST
    elsewhere |= ONLY_ADOPTED | ONLY_LEFT
    assert {point.value for point in CrashPoint} - reached == elsewhere


def test_no_two_side_effects_of_a_restage_fall_between_the_same_crash_points(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = damaged(world)
    recorded = _record(world, monkeypatch, "restage", RunKey("points", "restage"), day)
    assert recorded.unseparated() == []
    assert {what for kind, what in recorded.events if kind == "point"} >= ONLY_DAMAGED
    assert world.recover().problems == []
    world.require_exactly_once(day)
