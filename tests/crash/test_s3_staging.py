"""kill -9 where an epoch touches a real S3 server, with WAL and files, and requests that a proxy disturbs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep.epoch import RunKey
from lockstep.errors import SinkUnavailable, StagingUnavailable
from lockstep.operations.wal_log import open_output, read_rows
from stack.postgres import PostgresServer
from stack.s3 import S3Server
from tests.crash.s3_victim import S3World, kill_each
from tests.crash.test_kill_and_zombie import RESUMES, hits
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
    return S3World.make(ledger_dsn, warehouse_dsn, tmp_path, uri, f"{s3_uri}/files")


@pytest.mark.fault("B23", "E28")
def test_every_row_is_shown_once_wherever_a_process_is_killed_whose_wal_and_files_are_on_s3(
    world: S3World, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests, sampling: Sampling
) -> None:
    """Elsewhere each point is swept in every way."""
    places = [(hit, resume) for hit in hits(world, monkeypatch) for resume in sorted(RESUMES)]
    kill_each(world, sampling.sample(places, 5), subtests)


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
