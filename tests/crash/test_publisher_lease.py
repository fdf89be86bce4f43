"""A publication that takes long shows that somebody is at it; one whose process died doesn't."""

from __future__ import annotations

import threading

import pytest

from lockstep.crash import CrashPoint
from lockstep.epoch import Epoch, RunKey
from lockstep.ledger import Ledger
from lockstep.states import Role
from tests.crash.world import World


@pytest.mark.parametrize("recovers", [False, True])
def test_whoever_publishes_for_long_says_so_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch, recovers: bool
) -> None:
    shown, renew = threading.Event(), Ledger.renew_publisher

    def renew_and_tell(ledger: Ledger, epoch: Epoch, sink: str, role: Role) -> bool:
        renewed = renew(ledger, epoch, sink, role)
        shown.set()
        return renewed

    def take_long(point: CrashPoint) -> None:
        if point is CrashPoint.PUBLISH_BEFORE_SINK:
            assert shown.wait(20), "nobody says that the epoch is being published"
            shown.clear()

    day = next(world.days)
    run = RunKey("crash", f"publishes day {day}")
    tasks = world.tasks()
    for task in tasks[: tasks.index("commit") + 1]:
        world.run_task(task, run, day)
    monkeypatch.setattr("lockstep.steps.lease.RENEWAL", 0.01)
    monkeypatch.setattr(Ledger, "renew_publisher", renew_and_tell)
    monkeypatch.setattr("lockstep.roles.publish.reach", take_long)
    if recovers:
        world.recover()
    else:
        world.run(run, day, start=tasks[tasks.index("commit") + 1])
    assert world.epoch_of(day).state == "cleaned"
