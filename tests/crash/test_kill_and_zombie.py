"""kill -9 at every crash point, and the zombie sweep: stopped at every crash point, overtaken, released.

Each scenario takes an epoch of its own, strikes a real process there, finishes the epoch in one of three ways, and
compares the multiset of rows in every sink with what a crash-free run shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import RunKey
from tests.crash.victims import Action, Hit, hits_of, overtake, sacrifice
from tests.crash.world import World
from tests.sampling import Sampling


def hits(world: World, monkeypatch: pytest.MonkeyPatch) -> list[Hit]:
    """Dry run: every point that a crash-free epoch reaches, by task, if it isn't another protocol's too."""
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    day = world.struck_day()
    found = []
    for task in world.tasks():
        reached: list[CrashPoint] = []
        stop = crash.observe(reached.append)
        world.run_task(task, world.run_of(day, "dry"), day)
        stop()
        found += hits_of(task, Counter(reached))
    world.require_exactly_once(day)
    monkeypatch.delenv("LOCKSTEP_TESTING")
    assert len(found) > 40
    return [hit for hit in found if world.protocol == "two_phase" or hit.task == "commit" or "warehouse" in hit.task]


def _retry(world: World, run: RunKey, day: int, task: str) -> None:
    """Airflow tries the struck task again, under the same attempt, then goes on."""
    world.run(run, day, start=task)


def _new_run(world: World, run: RunKey, day: int, task: str) -> None:
    """Another run of the same interval, once the lease is over."""
    world.expire_leases()
    world.run(replace(run, run_id=f"{run.run_id} again"), day)


def _recovery(world: World, run: RunKey, day: int, task: str) -> None:
    """The recovery DAG; what it had to void, a new run brings."""
    world.expire_leases()
    assert world.recover().problems == []
    if not world.is_moved(day):
        world.run(replace(run, run_id=f"{run.run_id} after recovery"), day)


RESUMES = {"retry": _retry, "new run": _new_run, "recovery": _recovery}


EVERY = 3  #: so many-th place of a protocol is struck in a sample, in one of its ways

#: A process that hangs and is released does to a new run what a killed one does, and more. Of a write-ahead sink, whose
#: vote holds nothing, fewer ways differ, and only in its own tasks and the decision.
SWEEPS = [
    ("two_phase", "kill", "retry"),
    ("two_phase", "kill", "recovery"),
    ("two_phase", "hang", "retry"),
    ("two_phase", "hang", "new run"),
    ("two_phase", "hang", "recovery"),
    ("write_ahead", "kill", "recovery"),
    ("write_ahead", "hang", "retry"),
    ("write_ahead", "hang", "new run"),
]


@pytest.fixture(scope="module")
def places(world: World) -> list[Hit]:
    with pytest.MonkeyPatch.context() as environment:
        return hits(world, environment)


@pytest.mark.fault(
    "A1",
    "A2",
    "B6",
    "B7",
    "C1",
    "C2",
    "C3",
    "C15",
    "C16",
    "C24",
    "C26",
    "D1",
    "E1",
    "E2",
    "E22",
    "F1",
    "G4",
    "H1",
    "H2",
    "H3",
    "H11",
    "H12",
    "J3",
    "J8",
    "L11",
)
@pytest.mark.parametrize(("world", "action", "resume"), SWEEPS, indirect=["world"])
def test_every_row_is_shown_once_wherever_a_process(
    world: World,
    places: list[Hit],
    action: Action,
    resume: str,
    tmp_path: Path,
    subtests: pytest.Subtests,
    sampling: Sampling,
) -> None:
    """… is killed, or hangs and is released after another one has finished the epoch."""
    ways = [way for way in SWEEPS if way[0] == world.protocol]
    turn = ways.index((world.protocol, action, resume))
    struck_at = sampling.share(places, EVERY * turn, EVERY * len(ways))
    strike_each(world, (((action, resume), hit) for hit in struck_at), tmp_path, subtests)


def strike_each(
    world: World, struck_at: Iterable[tuple[tuple[Action, str], Hit]], folder: Path, subtests: pytest.Subtests
) -> list[int]:
    """Strike a day of its own at each place, and go on: every row of them all is shown once. The days."""
    days = {}
    for (action, resume), hit in struck_at:
        struck = f"{action} {hit} {resume}"
        with subtests.test(struck):
            days[struck] = strike(world, hit, action, RESUMES[resume], folder)
    world.expire_leases()
    assert world.recover().problems == []
    world.require_tidy()
    shown = world.shown()
    for struck, day in days.items():
        with subtests.test(f"{struck} after the sweep"):
            for place, rows in shown.items():
                assert rows[day] == world.expected(day), place
    return list(days.values())


def strike(
    world: World,
    hit: Hit,
    action: Action,
    resume: Callable[[World, RunKey, int, str], None],
    folder: Path,
) -> int:
    day = world.struck_day()
    run = world.run_of(day, str(hit))
    tasks = [(task, partial(world.run_task, task, run, day)) for task in world.tasks()]
    victim = sacrifice(tasks, hit, action, folder / "victim.log")

    def resumed() -> None:
        if hit.task.startswith(("begin", "stage", "prepare")):
            world.require_undecided(day)
        resume(world, run, day, hit.task)

    overtake(victim, resumed, partial(world.require_exactly_once, day))
    return day
