"""Tables that lack a column get it with an epoch's rows, by either protocol, wherever a process dies or stands still.

A two-phase sink writes such an epoch after its decision, as a write-ahead one does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import RunKey
from stack.postgres import PostgresServer
from tests.crash.recording import recorded
from tests.crash.restating_world import TABLES, RestatingWorld, make_restating_world
from tests.crash.victims import Action, Hit, hits_of, in_turn, overtake, sacrifice
from tests.crash.world import rows_of_day
from tests.sampling import Sampling


@pytest.fixture(scope="module")
def world(memory_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestatingWorld]:
    folder = tmp_path_factory.mktemp("columns")
    dsns = [memory_server.create_database(f"columns_{name}") for name in ("ledger", "warehouse")]
    yield make_restating_world(dsns[0], dsns[1], folder, on_new_columns="add")


def lacking(world: RestatingWorld) -> int:
    """A day whose rows bring the column `label`."""
    for name in TABLES:
        world.execute(world.warehouse_dsn, f"ALTER TABLE public.{name} DROP COLUMN IF EXISTS label")
    return next(world.days)


def run_of(day: int) -> RunKey:
    return RunKey("columns", f"run {day}")


def require_both_or_neither(world: RestatingWorld, day: int) -> None:
    """Each table has the column and the rows, or neither."""
    for name in TABLES:
        asked = f"SELECT to_jsonb(n) ->> 'label' FROM public.{name} n WHERE day = {day}"
        labels = Counter(label for (label,) in world.execute(world.warehouse_dsn, asked))
        assert labels in (Counter(), Counter(row[2] for row in rows_of_day(day))), name
        looked = f"SELECT count(*) FROM pg_attribute WHERE attrelid = 'public.{name}'::regclass AND attname = 'label'"
        assert world.execute(world.warehouse_dsn, looked) == [(bool(labels),)], name


def test_a_column_comes_with_the_rows_by_either_protocol(world: RestatingWorld) -> None:
    day = lacking(world)
    for task in world.tasks():
        for _ in range(2):
            world.run_task(task, run_of(day), day)
            assert world.prepared() == []
        if task == "commit":
            require_both_or_neither(world, day)
    world.require_exactly_once(day)
    assert world.publications(day) == {"numbers": "sent", "archive": "sent"}
    day = next(world.days)
    world.run(run_of(day), day)
    assert world.publications(day) == {"numbers": "committed", "archive": "sent"}


def _hits(world: RestatingWorld, monkeypatch: pytest.MonkeyPatch) -> list[Hit]:
    """Every point that `prepare` and `publish` reach."""
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    day, found = lacking(world), []
    for task in world.tasks():
        reached: Counter[CrashPoint] = Counter()
        stop = crash.observe(lambda point, seen=reached: seen.update([point]))  # type: ignore[misc]
        world.run_task(task, run_of(day), day)
        stop()
        found += hits_of(task, reached) if task.endswith(".numbers") else []
    monkeypatch.delenv("LOCKSTEP_TESTING")
    assert len(found) > 12
    return found


def _retry(world: RestatingWorld, day: int, task: str) -> None:
    world.run(run_of(day), day, task)


def _recovery(world: RestatingWorld, day: int, task: str) -> None:
    world.expire_leases()
    assert world.recover().problems == []
    world.run(RunKey("columns", f"new {day}"), day)


WAYS: list[tuple[Action, Callable[[RestatingWorld, int, str], None]]] = [
    ("kill", _retry),
    ("kill", _recovery),
    ("hang", _retry),
    ("hang", _recovery),
]


@pytest.mark.tier("all")
def test_columns_and_rows_come_once_wherever_a_process(
    world: RestatingWorld,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    subtests: pytest.Subtests,
    sampling: Sampling,
) -> None:
    """… is killed, or hangs and is released after another one has finished the epoch."""
    for (action, resume), hit in in_turn(sampling, _hits(world, monkeypatch), WAYS, every=3):
        day = lacking(world)
        with subtests.test(f"{action} {hit} {resume.__name__}"):
            tasks = [(task, partial(world.run_task, task, run_of(day), day)) for task in world.tasks()]
            victim = sacrifice(tasks, hit, action, tmp_path / "victim.log")
            if action == "kill":  # one that stands still may keep readers out
                require_both_or_neither(world, day)
            overtake(victim, partial(resume, world, day, hit.task), partial(world.require_exactly_once, day))
    world.expire_leases()
    assert world.recover().problems == []
    world.require_tidy()


def test_no_two_side_effects_fall_between_the_same_crash_points(
    world: RestatingWorld, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    day = lacking(world)
    for task in world.tasks():
        with subtests.test(task):
            if not task.endswith(".numbers"):
                world.run_task(task, run_of(day), day)
                continue
            with recorded(monkeypatch, world.folder) as recording:
                world.run_task(task, run_of(day), day)
            assert recording.unseparated() == []
