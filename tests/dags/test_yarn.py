"""Jobs that are left to a real YARN: its own id, its own word on them, and drivers that end when nobody wants them."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

from lockstep import files
from lockstep.epoch import Epoch
from lockstep.errors import JobAtWork
from lockstep.launchers import JobState
from lockstep.ledger import Ledger, migrate
from lockstep.pipeline import Pipeline
from lockstep.roles.abort import abort
from lockstep.roles.begin import begin
from lockstep.roles.cleanup import cleanup
from lockstep.roles.commit import commit
from lockstep.roles.prepare import prepare
from lockstep.roles.publish import publish
from lockstep.roles.stage import Leaving, stage
from lockstep.runtime import Runtime
from lockstep.wal.request import has_ended
from lockstep.wal.staging import Staging
from stack.postgres import PostgresServer
from stack.yarn import YarnCluster, fetched
from tests.dags import launching
from tests.dags.launching import DAY, GATE, RUN
from tests.waiting import until

SECONDS = 300  # for a driver to start

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not fetched(), reason="YARN is not here: `make yarn` fetches it"),
]


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnCluster]:
    with YarnCluster(tmp_path_factory.mktemp("yarn")).for_a_while() as cluster:
        yield cluster


@pytest.fixture
def pipeline(tmp_path: Path, yarn: YarnCluster, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setenv("LOCKSTEP_HOME", str(tmp_path))
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "2024-01-01.csv").write_text("id\n1\n2\n3\n")
    (tmp_path / "gate").touch()
    extra = {"yarn_resourcemanager_webapp_address": yarn.web}
    monkeypatch.setenv("AIRFLOW_CONN_YARN", json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra}))
    for name, value in yarn.environment.items():
        monkeypatch.setenv(name, value)
    importlib.reload(launching)
    return launching.pipeline


@pytest.fixture
def runtime(tmp_path: Path, pipeline: Pipeline, ledger_server: PostgresServer) -> Iterator[Runtime]:
    dsn = ledger_server.create_database(f"yarn_{uuid4().hex}")
    migrate(dsn)
    with closing(Ledger(dsn, "the first try")) as ledger:
        yield Runtime.of(pipeline, ledger, Staging(str(tmp_path / "staging")), {})


def jobs_of(yarn: YarnCluster, pipeline: Pipeline, home: Path) -> Any:
    """As each process of the task makes them."""
    from lockstep.orchestration._launching import launcher

    conf = yarn.configuration({"LOCKSTEP_HOME": str(home), GATE: str(home / "gate")})
    return launcher(pipeline, "yarn", {"deploy_mode": "cluster", "conf": conf}).jobs


def look(runtime: Runtime, jobs: Any) -> Epoch:
    def unexpected(request_uri: str) -> None:
        raise AssertionError("it is to be left to itself")

    return stage(runtime, RUN, unexpected, runtime.defined.reference(), leaving=Leaving(jobs))


def leave(runtime: Runtime, jobs: Any) -> tuple[str, str]:
    """A job's handle, and the address of its request."""
    with pytest.raises(JobAtWork) as left:
        look(runtime, jobs)
    [request] = left.value.places
    note = Path(request.removeprefix("file://")).parent / "_job.json"
    handle = json.loads(note.read_text())["handle"]
    assert handle.startswith("application_")
    return handle, request


def test_a_job_of_yarn_is_sealed_by_another_process_when_it_has_ended(
    yarn: YarnCluster, runtime: Runtime, pipeline: Pipeline, tmp_path: Path
) -> None:
    begin(runtime, RUN, DAY)
    handle, request = leave(runtime, jobs_of(yarn, pipeline, tmp_path))
    jobs = jobs_of(yarn, pipeline, tmp_path)
    until((tmp_path / "gate.reached").exists, seconds=SECONDS)
    assert jobs.state(handle) is JobState.RUNNING
    with pytest.raises(JobAtWork, match=handle):
        look(runtime, jobs)
    (tmp_path / "gate").unlink()
    until(lambda: has_ended(request), seconds=SECONDS)
    assert look(runtime, jobs).wal is not None
    until(lambda: bool(jobs.state(handle) is not JobState.RUNNING), seconds=SECONDS)
    assert jobs.state(handle) is JobState.SUCCEEDED
    prepare(runtime, RUN, "archive")
    commit(runtime, RUN)
    publish(runtime, RUN, "archive")
    cleanup(runtime, RUN)
    shown = [pq.read_table(file, columns=["id"]).to_pylist() for file in files(str(tmp_path / "out"))]
    assert shown == [[{"id": 1}, {"id": 2}, {"id": 3}]]


def test_a_job_ends_when_it_is_cancelled_and_by_itself_when_its_attempt_is_void(
    yarn: YarnCluster, runtime: Runtime, pipeline: Pipeline, tmp_path: Path
) -> None:
    begin(runtime, RUN, DAY)
    jobs = jobs_of(yarn, pipeline, tmp_path)
    unwanted, _ = leave(runtime, jobs)
    until((tmp_path / "gate.reached").exists, seconds=SECONDS)
    abort(runtime, RUN, "a test")
    until(lambda: bool(jobs.state(unwanted) is JobState.FAILED), seconds=SECONDS)
    assert (tmp_path / "gate").exists(), "it was held up all the time"

    begin(runtime, RUN, DAY)
    cancelled, _ = leave(runtime, jobs)
    jobs.cancel_job(cancelled)
    until(lambda: bool(jobs.state(cancelled) is JobState.FAILED), seconds=SECONDS)
    assert yarn.ask(f"apps/{cancelled}")["app"]["state"] == "KILLED"
    abort(runtime, RUN, "a test")
