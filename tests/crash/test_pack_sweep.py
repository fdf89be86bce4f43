"""Packs under kill -9 and zombies at every crash point: every row is shown once.

A scenario moves a pack of three days. It is struck in the middle of the pack's process, which has threads: whatever
they do at that moment dies, or stands still, with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import RunKey
from tests.crash.test_packs import PACK, days_of_pack, move_all, move_as_victim
from tests.crash.victims import Action, Hit, hits_of, overtake, sacrifice
from tests.crash.world import World
from tests.sampling import Sampling


def _hits(world: World, monkeypatch: pytest.MonkeyPatch) -> list[Hit]:
    """Every point that a pack reaches, the first time and the last."""
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    days, reached = days_of_pack(world), list[CrashPoint]()
    stop = crash.observe(reached.append)
    move_all(world, RunKey("packs", f"dry {days[0]}"), days)
    stop()
    monkeypatch.delenv("LOCKSTEP_TESTING")
    for day in days:
        world.require_exactly_once(day)
    counted = Counter(reached)
    assert counted[CrashPoint.BEGIN_AFTER_OPEN] == counted[CrashPoint.PREPARE_AFTER_VOTE] / 2 == PACK
    found = hits_of("pack", counted)
    found = [hit for hit in found if hit.nth in (1, counted[hit.point])]
    assert len(found) > 60
    if world.protocol == "write_ahead":
        found = [hit for hit in found if hit.point.startswith(("prepare.", "commit.", "publish."))]
    # how many are decided together is chance, so only the first decision is sure to come
    return [hit for hit in found if not hit.point.startswith("commit.") or hit.nth == 1]


def _retry(world: World, run: RunKey, days: Sequence[int]) -> None:
    """The same run again, as Airflow tries a task again."""
    move_all(world, run, days)


def _new_run(world: World, run: RunKey, days: Sequence[int]) -> None:
    """Another pack of the same intervals, in another order, once the leases are over."""
    world.expire_leases()
    move_all(world, RunKey(run.dag_id, f"{run.run_id} again"), days[::-1])


def _one_alone(world: World, run: RunKey, days: Sequence[int]) -> None:
    """The second one is moved alone by a run of its own, then a pack moves the rest and finds it."""
    world.expire_leases()
    world.run(RunKey(run.dag_id, f"{run.run_id} alone"), days[1])
    move_all(world, run, days)


def _recovery(world: World, run: RunKey, days: Sequence[int]) -> None:
    world.expire_leases()
    assert world.recover().problems == []
    move_all(world, RunKey(run.dag_id, f"{run.run_id} after recovery"), days)


RESUMES: dict[str, Callable[[World, RunKey, Sequence[int]], None]] = {
    "retry": _retry,
    "new run": _new_run,
    "one alone": _one_alone,
    "recovery": _recovery,
}
EVERY = 6  #: so many-th place of a protocol is struck, in one of its ways
SWEEPS = [
    ("two_phase", "kill", "retry"),
    ("two_phase", "kill", "one alone"),
    ("two_phase", "kill", "recovery"),
    ("two_phase", "hang", "retry"),
    ("two_phase", "hang", "new run"),
    ("two_phase", "hang", "one alone"),
    ("two_phase", "hang", "recovery"),
    ("write_ahead", "kill", "recovery"),
    ("write_ahead", "hang", "new run"),
]


@pytest.mark.parametrize(("world", "action", "resume"), SWEEPS, indirect=["world"])
def test_every_row_of_a_pack_is_shown_once_wherever_its_process(
    world: World,
    action: Action,
    resume: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    subtests: pytest.Subtests,
    sampling: Sampling,
) -> None:
    """… is killed, or hangs and is released after somebody else has finished the epochs."""
    ways = [way for way in SWEEPS if way[0] == world.protocol]
    turn = ways.index((world.protocol, action, resume))
    turned = Sampling(sampling.seed or 0)  # each place in one of its ways, however much else is swept
    for hit in turned.share(_hits(world, monkeypatch), EVERY * turn, EVERY * len(ways)):
        with subtests.test(str(hit)):
            _strike(world, hit, action, RESUMES[resume], tmp_path)
    world.expire_leases()
    assert world.recover().problems == []
    world.require_tidy()


def _end_preflights(world: World) -> None:
    """What waiting for 300 s does, as often as it takes: of a process with threads one may stand still in its preflight
    when another one reaches a crash point. A third that awaits it has its lock then, and stands still with that in
    turn; and a busy server may yet be at a statement whose thread stands still already."""
    ended = (
        "SELECT CASE WHEN state = 'active' THEN true ELSE pg_terminate_backend(pid) END FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name = 'lockstep sink warehouse' "
        "AND (state = 'idle in transaction' OR state = 'active' AND wait_event_type IS DISTINCT FROM 'Client')"
    )
    while world.execute(world.warehouse_dsn, ended):
        pass


def _strike(
    world: World, hit: Hit, action: Action, resume: Callable[[World, RunKey, Sequence[int]], None], folder: Path
) -> None:
    days = days_of_pack(world)
    run = RunKey("packs", f"{hit} {days[0]}")
    work = partial(move_as_victim, world, run, days)
    victim = sacrifice([("pack", work)], hit, action, folder / "victim.log")

    def resumed() -> None:
        _end_preflights(world)
        resume(world, run, days)

    def check() -> None:
        for day in days:
            world.require_exactly_once(day)

    overtake(victim, resumed, check)
