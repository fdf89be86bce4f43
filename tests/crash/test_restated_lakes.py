"""A day that turned out wrong is replaced in a table that adopts, and in Postgres, by one decision: also where its rows
were compacted with others', and wherever a process dies or stands still."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from lockstep.crash import CrashPoint
from lockstep.epoch import RunKey
from lockstep.errors import TargetChanged
from lockstep.operations.compact import compact
from lockstep.operations.renumber import renumber
from lockstep.operations.verify import Verification, verify
from stack.postgres import PostgresServer
from tests.apart import apart
from tests.crash.adopting_world import SINK, AdoptingWorld
from tests.crash.originals import copied
from tests.crash.restating_world import wrong_rows
from tests.crash.test_compaction import compacted, dead, lake_world
from tests.crash.victims import Action, Hit, overtake, sacrifice
from tests.crash.world import Rows, rows_of_day, write_others

POINTS = (
    CrashPoint.COMPACT_BEFORE_WRITE,
    CrashPoint.COMPACT_AFTER_WRITE,
    CrashPoint.PUBLISH_BEFORE_SINK_COMMIT,
    CrashPoint.PUBLISH_AFTER_SINK_COMMIT,
)
PUBLISH = "publish.lake"


@pytest.fixture(scope="module", params=["delta", "iceberg"])
def world(request: pytest.FixtureRequest, ledger_server: PostgresServer, memory_folder: Path) -> AdoptingWorld:
    return lake_world(request.param, ledger_server, memory_folder)


@pytest.fixture
def days(world: AdoptingWorld) -> list[int]:
    """Those that there are, all in one file; the last one shows wrong rows."""
    right, wrong = next(world.days), next(world.days)
    world.run(RunKey("restating", f"run {right}"), right)
    for task in world.tasks():
        world.run_task(task, RunKey("restating", f"wrong {wrong}"), wrong, write_others)
    assert shown(world, wrong) == [wrong_rows(wrong)] * 2
    compacted(world)
    return [right, wrong]


def shown(world: AdoptingWorld, day: int) -> list[Rows]:
    return [days.get(day, Counter()) for days in world.shown().values()]


def restating(day: int) -> RunKey:
    return RunKey("restating", f"right {day}", restate="the label was wrong")


def verified(world: AdoptingWorld, epoch: int) -> list[Verification]:
    def look() -> list[Verification]:
        runtime = world.runtime()
        return verify(runtime, runtime.ledger.epoch(runtime.pipeline, epoch))

    return apart(look)


def require_swapped(world: AdoptingWorld, days: list[int], old: int) -> None:
    for day in days:
        assert shown(world, day) == [Counter(rows_of_day(day))] * 2
    assert world.recover().problems == []
    assert dead(world) == [], "files that no version of the table names"
    new = world.epoch_of(days[-1]).id
    assert new != old
    for epoch, note in ((old, f"replaced by epoch {new}"), (new, None)):
        found = verified(world, epoch)
        assert [(one.problem, one.note) for one in found] == [(None, note)] * 2


def test_one_decision_swaps_a_day_in_the_table_and_in_postgres(world: AdoptingWorld, days: list[int]) -> None:
    old = world.epoch_of(days[-1]).id
    world.run(restating(days[-1]), days[-1])
    require_swapped(world, days, old)
    compacted(world)
    require_swapped(world, days, old)
    expired = apart(lambda: compact(world.runtime(), SINK, expire=timedelta(0)).expired)
    assert expired is not None and "of epochs that aren't cleaned up" not in expired.kept
    require_swapped(world, days, old)


@pytest.mark.fault("P3", "P5")
@pytest.mark.tier("all")
@pytest.mark.parametrize(
    ("kind", "lost"),
    [("iceberg", "nothing"), ("delta", "nothing"), ("delta", "the last life"), ("delta", "all of the day")],
)
def test_what_a_lost_ledger_has_swapped_is_swapped_once_more(
    ledger_server: PostgresServer, memory_folder: Path, kind: str, lost: str
) -> None:
    """`lost`: what Postgres, which has Iceberg's catalog, has lost of it, too: with rows of then or without."""
    world, days = lake_world(kind, ledger_server, memory_folder), [0, 1]
    for day in days:
        for task in world.tasks():
            world.run_task(task, RunKey("restating", f"wrong {day}"), day, write_others if day else None)
    compacted(world)
    copy, past = copied(ledger_server, world.ledger_dsn), copied(ledger_server, world.warehouse_dsn)
    world.run(restating(day), day)
    restored = replace(world, ledger_dsn=copy, warehouse_dsn=world.warehouse_dsn if lost == "nothing" else past)
    if lost == "all of the day":
        for table in ("lockstep_marker", "lockstep_range"):
            world.execute(past, f"DELETE FROM public.{table} WHERE epoch = 2 AND sink = 'warehouse'")
        world.execute(past, "DELETE FROM public.numbers WHERE day = 1")
    apart(lambda: renumber(restored.runtime(), "both", lacking=["warehouse"] if lost == "all of the day" else []))
    for why in ("once more", "and again"):
        restored.run(RunKey("restating", f"{why} {day}", restate=why), day)
        for one in days:
            assert shown(restored, one) == [Counter(rows_of_day(one))] * 2
    assert dead(restored) == [], "files that no version of the table names"
    assert all(found.problem is None for found in verified(restored, restored.epoch_of(day).id))


@pytest.mark.fault("S8")
@pytest.mark.tier("all")
def test_days_of_a_table_whose_folder_was_deleted_are_restated_by_a_persons_word(
    ledger_server: PostgresServer, memory_folder: Path
) -> None:
    world = lake_world("delta", ledger_server, memory_folder)
    for day in (0, 1):
        world.run(RunKey("restating", f"run {day}"), day)
    shutil.rmtree(world.lake.root)
    with pytest.raises(TargetChanged, match="--lacking lake"):
        world.run(restating(0), 0)
    apart(lambda: renumber(world.runtime(), "deleted by hand", lacking=["lake"]))
    for day in (0, 1):
        world.run(RunKey("restating", f"again {day}", restate="deleted by hand"), day)
    for day in (0, 1):
        assert shown(world, day) == [Counter(rows_of_day(day))] * 2


@pytest.mark.fault("N7")
@pytest.mark.sample(2)
@pytest.mark.parametrize("action", ["kill", "hang"])
@pytest.mark.parametrize("point", [CrashPoint.STAGE_BEFORE_COPY, CrashPoint.STAGE_AFTER_COPY])
def test_who_writes_rows_anew_below_a_table_may_die_or_hang(
    world: AdoptingWorld, days: list[int], point: CrashPoint, action: Action, tmp_path: Path
) -> None:
    day, keeping = days[-1], replace(world, pipeline=replace(world.pipeline, keep_wal=timedelta(days=1)))
    keeping.run(RunKey("restating", f"first {day}", restate="a test"), day)
    old = keeping.epoch_of(day).id
    for task in keeping.tasks():
        keeping.run_task(task, RunKey("restating", f"wrong again {day}", restate="a test, too"), day, write_others)
    back = RunKey("restating", f"back {day}", restate="it was right before", restore=old)
    keeping.run_task("begin", back, day)
    stage = partial(keeping.run_task, "stage", back, day, _no_job)
    victim = sacrifice([("stage", stage)], Hit("stage", point, 2), action, tmp_path / "victim.log")

    def resume() -> None:
        world.expire_leases()
        assert world.recover().problems == []
        for task in keeping.tasks():
            keeping.run_task(task, back, day, _no_job)

    def check() -> None:
        assert shown(world, day) == [Counter(rows_of_day(day))] * 2

    overtake(victim, resume, check)
    assert world.recover().problems == []
    assert dead(world) == [], "files that no version of the table names"


def _no_job(request_uri: str) -> NoReturn:
    raise AssertionError("rows that were sealed are computed again")


@pytest.mark.fault("N1")
@pytest.mark.sample(2)
@pytest.mark.parametrize("action", ["kill", "hang"])
@pytest.mark.parametrize("point", POINTS)
def test_who_publishes_in_the_place_of_compacted_rows_may_die_or_hang(
    world: AdoptingWorld, days: list[int], point: CrashPoint, action: Action, tmp_path: Path
) -> None:
    day, tasks = days[-1], world.tasks()
    old = world.epoch_of(day).id
    for task in tasks[: tasks.index(PUBLISH)]:
        world.run_task(task, restating(day), day)
    publish = partial(world.run_task, PUBLISH, restating(day), day)
    victim = sacrifice([(PUBLISH, publish)], Hit(PUBLISH, point, 1), action, tmp_path / "victim.log")
    lake = shown(world, day)[-1]
    assert lake in (wrong_rows(day), Counter(rows_of_day(day))), "a reader sees some of both, or none"
    overtake(
        victim,
        lambda: world.run(restating(day), day, start=PUBLISH),
        lambda: require_swapped(world, days, old),
    )
