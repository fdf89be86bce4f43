"""kill -9 where an epoch touches its WAL, which is on a real S3 server, and requests that a proxy disturbs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import RunKey
from lockstep.errors import SinkUnavailable, StagingUnavailable
from stack.postgres import PostgresServer
from stack.s3 import S3Server
from tests.cover import Cover
from tests.crash.s3_victim import S3World
from tests.crash.test_kill_and_zombie import RESUMES
from tests.crash.victims import Hit, hits_of
from tests.s3_proxy import Fault, S3Proxy


@pytest.fixture(scope="module")
def proxy(s3_server: S3Server) -> Iterator[S3Proxy]:
    with S3Proxy(s3_server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def world(
    s3_uri: str, proxy: S3Proxy, ledger_server: PostgresServer, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path
) -> S3World:
    uri = f"{s3_uri}/wal?endpoint_override={proxy.endpoint.removeprefix('http://')}&scheme=http"
    return S3World.make(ledger_dsn, warehouse_dsn, tmp_path, uri)


def _hits(world: S3World, monkeypatch: pytest.MonkeyPatch) -> list[Hit]:
    """Where a crash-free epoch touches the WAL, and its decision."""
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    day, found = next(world.days), []
    for task in world.tasks():
        reached: list[CrashPoint] = []
        stop = crash.observe(reached.append)
        world.run_task(task, RunKey("dry", f"day {day}"), day)
        stop()
        if task in ("begin", "stage", "prepare.warehouse", "commit", "cleanup"):
            found += hits_of(task, Counter(reached))
    monkeypatch.delenv("LOCKSTEP_TESTING")
    world.require_exactly_once(day)
    world.require_tidy()
    return found


@pytest.mark.parametrize("resume", sorted(RESUMES))
def test_every_row_is_shown_once_wherever_a_process_is_killed_whose_wal_is_on_s3(
    world: S3World, resume: str, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests, cover: Cover
) -> None:
    ways = sorted(RESUMES)
    mine = _hits(world, monkeypatch)[ways.index(resume) :: len(ways)]  # elsewhere each point is swept in every way
    struck = cover.sample(mine, 2)
    for hit in struck:
        with subtests.test(str(hit)):
            day = next(world.days)
            run = RunKey("crash", f"{hit} {day}")
            tasks = list(world.tasks())
            died = world.in_process(tasks[: tasks.index(hit.task) + 1], run, day, (hit.task, hit.point, hit.nth))
            assert died == -9, "the point was not reached"
            if hit.task.startswith(("begin", "stage", "prepare")):
                world.require_nothing_shown(day)
            RESUMES[resume](world, run, day, hit.task)
            world.require_exactly_once(day)
    world.expire_leases()
    assert world.recover().problems == []
    world.require_tidy()


#: Some request of an epoch's, whoever makes it.
DISTURBED = [
    (fault, method, part)
    for fault in Fault
    if fault is not Fault.SLOW
    for method, part in [
        ("PUT", "/.folder"),
        ("PUT", "_request.json"),
        ("PUT", "_manifest.json"),
        ("PUT", "manifests/epoch="),
        ("GET", ".parquet"),
        ("GET", "list-type=2"),
        ("POST", "?delete"),
    ]
    if fault is not Fault.CUT_UPLOAD or method == "PUT"
]


@pytest.mark.parametrize(("fault", "method", "part"), DISTURBED)
@pytest.mark.cover(8)
def test_a_request_that_is_disturbed_neither_loses_nor_doubles_a_row(
    fault: Fault, method: str, part: str, world: S3World, proxy: S3Proxy
) -> None:
    day = next(world.days)
    before = proxy.hits[fault]
    proxy.plan(fault, method, part)
    world.run(RunKey("disturbed", f"{fault} {method} {part}"), day)
    assert proxy.hits[fault] == before + 1, "it wasn't disturbed"
    world.require_exactly_once(day)
    world.require_tidy()


def test_an_epoch_outlives_a_killed_store(world: S3World, s3_server: S3Server) -> None:
    day, run = next(world.days), RunKey("store", "killed")
    world.run_until(run, day, "stage")
    s3_server.kill()
    try:
        with pytest.raises((StagingUnavailable, SinkUnavailable)):
            world.run_task("prepare.warehouse", run, day)
    finally:
        s3_server.start()
    world.run(run, day, start="prepare.warehouse")
    world.require_exactly_once(day)
    world.require_tidy()
