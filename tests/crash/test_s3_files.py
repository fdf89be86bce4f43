"""kill -9 wherever a process touches a FileSink on a real S3 server, and a stopped publisher beside another one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import RunKey
from stack.postgres import PostgresServer
from tests.crash.s3_victim import S3World
from tests.crash.test_kill_and_zombie import RESUMES
from tests.crash.victims import Hit, hits_of
from tests.sampling import Sampling


@pytest.fixture
def world(s3_uri: str, ledger_server: PostgresServer, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path) -> S3World:
    return S3World.make(ledger_dsn, warehouse_dsn, tmp_path, f"{s3_uri}/wal", f"{s3_uri}/files")


def _hits(world: S3World, monkeypatch: pytest.MonkeyPatch) -> list[Hit]:
    """Where a crash-free epoch touches the sink."""
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    day, found = next(world.days), []
    for task in world.tasks():
        reached: list[CrashPoint] = []
        stop = crash.observe(reached.append)
        world.run_task(task, RunKey("dry", f"day {day}"), day)
        stop()
        if task.endswith(".files"):
            found += hits_of(task, Counter(reached))
    monkeypatch.delenv("LOCKSTEP_TESTING")
    world.require_exactly_once(day)
    world.require_tidy()
    return found


@pytest.mark.fault("E28")
@pytest.mark.parametrize("resume", sorted(RESUMES))
def test_every_row_is_shown_once_wherever_a_process_is_killed_whose_files_are_on_s3(
    world: S3World, resume: str, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    ways = sorted(RESUMES)
    mine = _hits(world, monkeypatch)[ways.index(resume) :: len(ways)]
    for hit in sampling.sample(mine, 2):
        with subtests.test(str(hit)):
            day = next(world.days)
            run = RunKey("crash", f"{hit} {day}")
            tasks = list(world.tasks())
            died = world.in_process(tasks[: tasks.index(hit.task) + 1], run, day, (hit.task, hit.point, hit.nth))
            assert died == -9, "the point was not reached"
            if hit.task.startswith("prepare"):
                world.require_nothing_shown(day)
                assert not world.bare_files(day)
            RESUMES[resume](world, run, day, hit.task)
            world.require_exactly_once(day)
    world.expire_leases()
    assert world.recover().problems == []
    world.require_tidy()


def test_an_abort_takes_away_what_was_prepared(world: S3World) -> None:
    day, run = next(world.days), RunKey("aborted", "1")
    world.run_until(run, day, "prepare.files")
    assert world.left_in_sink()
    world.run_task("abort", run, day)
    assert world.left_in_sink() == []
    world.run(run, day)
    world.require_exactly_once(day)
