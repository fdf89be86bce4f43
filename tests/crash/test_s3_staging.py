"""kill -9 where an epoch touches its WAL, which is on a real S3 server, and requests that a proxy disturbs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import RunKey
from lockstep.errors import SinkUnavailable, StagingUnavailable
from lockstep.ledger import migrate
from lockstep.operations.rebuild import rebuild
from lockstep.operations.wal_log import open_output, read_rows
from stack.postgres import PostgresServer
from stack.s3 import S3Server
from tests.crash.s3_victim import S3World
from tests.crash.test_kill_and_zombie import RESUMES
from tests.crash.victims import Hit, hits_of
from tests.crash.world import rows_of_day
from tests.s3_proxy import Fault, S3Proxy
from tests.sampling import Sampling


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


@pytest.mark.fault("B23")
def test_every_row_is_shown_once_wherever_a_process_is_killed_whose_wal_is_on_s3(
    world: S3World, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    places = [(hit, resume) for hit in _hits(world, monkeypatch) for resume in sorted(RESUMES)]
    for hit, resume in sampling.sample(places, 3):  # elsewhere each point is swept in every way
        with subtests.test(f"{hit} {resume}"):
            day = next(world.days)
            run = RunKey("crash", f"{hit} {resume} {day}")
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
    if fault not in (Fault.SLOW, Fault.LATE, Fault.UNCONDITIONAL)
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


@pytest.mark.fault("B21")
@pytest.mark.parametrize(("fault", "method", "part"), DISTURBED)
@pytest.mark.sample(3)
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


@pytest.mark.fault("B23")
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


def test_wals_on_s3_are_kept_read_and_let_go_of(world: S3World) -> None:
    world = replace(world, pipeline=replace(world.pipeline, keep_wal=1))
    days = [next(world.days) for _ in range(2)]
    for day in days:
        world.run(RunKey("kept", f"day {day}"), day)
    runtime = world.runtime()
    [kept] = runtime.ledger.kept_wals("numbers")
    assert kept.epoch == world.epoch_of(days[1]).id
    assert {path.partition(kept.wal)[0] for path in world.left_in_staging()} == {""}
    found = [tuple(row.values()) for batch in open_output(runtime, kept.epoch, "numbers") for row in batch.to_pylist()]
    assert Counter(found) == Counter(rows_of_day(days[1]))
    filtered = [
        row
        for batch in read_rows(open_output(runtime, kept.epoch, "numbers"), "number < 2")
        for row in batch.to_pylist()
    ]
    assert len(filtered) == 3  # two of them are equal
    runtime.ledger.close()
    for day in days:
        world.require_exactly_once(day)


@pytest.mark.tier("all")
def test_a_lost_ledger_is_rebuilt_from_manifests_and_a_wal_on_s3(
    world: S3World, ledger_server: PostgresServer, ledger_dsn: str
) -> None:
    days = [next(world.days) for _ in range(2)]
    world.run(RunKey("rebuilt", "whole"), days[0])
    world.run_until(RunKey("rebuilt", "half"), days[1], "publish.warehouse")
    empty = ledger_server.create_database(f"{ledger_dsn.rpartition('/')[2]}_rebuilt")
    migrate(empty)
    world = replace(world, ledger_dsn=empty)
    runtime = world.runtime()
    found = rebuild(runtime, "its disk is gone")
    runtime.ledger.close()
    assert [one.published for one in found.epochs] == [True, False]
    assert world.recover().problems == []
    for day in days:
        world.run(RunKey("rebuilt", f"again {day}"), day)
        world.require_exactly_once(day)
    world.require_tidy()
