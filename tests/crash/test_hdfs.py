"""kill -9 wherever an epoch touches a real HDFS, with its WAL and with its files, and a NameNode that is killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lockstep.connections.hdfs.address import HdfsAddress
from lockstep.epoch import RunKey
from lockstep.errors import Retryable
from stack.hdfs import HdfsServer
from stack.postgres import PostgresServer
from tests.crash.hdfs_victim import HdfsWorld
from tests.crash.s3_victim import kill_each
from tests.crash.test_kill_and_zombie import RESUMES, hits
from tests.proxy import CuttingProxy
from tests.sampling import Sampling


@pytest.fixture(scope="module")
def proxy(hdfs_server: HdfsServer) -> Iterator[CuttingProxy]:
    host, port = hdfs_server.uri.removeprefix("hdfs://").split(":")
    with CuttingProxy(host, int(port)) as proxy:
        yield proxy


@pytest.fixture
def world(
    hdfs_uri: str,
    proxy: CuttingProxy,
    ledger_server: PostgresServer,
    ledger_dsn: str,
    warehouse_dsn: str,
    tmp_path: Path,
) -> HdfsWorld:
    uri = f"hdfs://127.0.0.1:{proxy.port}{HdfsAddress.of(hdfs_uri).path}"
    return HdfsWorld.make(ledger_dsn, warehouse_dsn, tmp_path, f"{uri}/wal", f"{uri}/out")


@pytest.mark.parametrize("resume", sorted(RESUMES))
@pytest.mark.sample(1)
def test_every_row_is_shown_once_wherever_a_process_is_killed_whose_wal_and_files_are_on_hdfs(
    world: HdfsWorld, resume: str, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    """Elsewhere each point is swept in every way."""
    ways = sorted(RESUMES)
    mine = hits(world, monkeypatch)[ways.index(resume) :: len(ways)]
    kill_each(world, ((hit, resume) for hit in sampling.sample(mine, 2)), subtests)


@pytest.mark.parametrize("asked", ["create", "complete", "rename2", "delete", "getListing"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.sample(4)
def test_connections_that_break_in_every_task_neither_lose_nor_double_a_row(
    world: HdfsWorld, proxy: CuttingProxy, asked: str, when: str, times: int
) -> None:
    day, run, before = next(world.days), RunKey("disturbed", "1"), proxy.cuts
    for task in world.tasks():
        proxy.cut_around(when, asked, times)
        _try(world, task, run, day)
    proxy.cut()
    assert proxy.cuts > before
    world.require_exactly_once(day)
    world.expire_leases()
    assert world.recover().problems == []
    world.require_tidy()


def _try(world: HdfsWorld, task: str, run: RunKey, day: int) -> None:
    """As often as Airflow would."""
    for _ in range(4):
        with suppress(Retryable):
            return world.run_task(task, run, day)
    return world.run_task(task, run, day)


def test_an_epoch_outlives_a_killed_namenode(world: HdfsWorld, hdfs_server: HdfsServer) -> None:
    day, run = next(world.days), RunKey("namenode", "killed")
    world.run_until(run, day, "stage")
    hdfs_server.kill()
    try:
        for task in ("prepare.warehouse", "prepare.files"):
            with pytest.raises(Retryable):
                world.run_task(task, run, day)
    finally:
        hdfs_server.start()
    world.run(run, day, start="prepare.warehouse")
    world.require_exactly_once(day)
    world.require_tidy()
