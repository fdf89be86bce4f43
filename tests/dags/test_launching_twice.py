"""A launcher may launch twice: what it never recorded is as if it had never been, however late it ends."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

from lockstep import files
from lockstep.epoch import Epoch
from lockstep.errors import JobAtWork, StageFailed, StagingUnavailable
from lockstep.features.assembly import runtime_for
from lockstep.launchers import JobState
from lockstep.ledger import Ledger, migrate
from lockstep.pipeline import Pipeline
from lockstep.protocol.abort import abort
from lockstep.protocol.begin import begin
from lockstep.protocol.cleanup import cleanup
from lockstep.protocol.commit import commit
from lockstep.protocol.prepare import prepare
from lockstep.protocol.publish import publish
from lockstep.protocol.recover import recover
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage import Leaving, stage
from lockstep.states import EpochState
from lockstep.wal.request import RESULT, StageRequest, has_ended, is_requested
from lockstep.wal.staging import Staging
from stack.postgres import PostgresServer
from stack.spark import spark_environment
from stack.yarn import YarnCluster, fetched
from tests.dags import launching
from tests.dags.launching import DAY, RUN, LooseLauncher
from tests.waiting import until

SECONDS = 300  # for a driver to start


@pytest.fixture
def dsn(ledger_server: PostgresServer) -> str:
    made = ledger_server.create_database(f"launched_{uuid4().hex}")
    migrate(made)
    return made


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """Its paths count from this folder, from where it is defined. A gate is closed."""
    from lockstep.airflow import _launching

    monkeypatch.setattr(_launching, "POLL_SECONDS", 0.05)
    monkeypatch.setenv("LOCKSTEP_HOME", str(tmp_path))
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "2024-01-01.csv").write_text("id\n1\n2\n3\n")
    (tmp_path / "gate").touch()
    importlib.reload(launching)
    return launching.pipeline


@pytest.fixture
def runtime(dsn: str, pipeline: Pipeline, tmp_path: Path) -> Iterator[Runtime]:
    """Of a run that has begun."""
    with closing(Ledger(dsn, "the first try")) as ledger:
        made = runtime_for(pipeline, ledger, Staging(str(tmp_path / "staging")), {})
        begin(made, RUN, DAY)
        yield made


def show(runtime: Runtime) -> None:
    """What is staged."""
    prepare(runtime, RUN, "archive")
    commit(runtime, RUN)
    publish(runtime, RUN, "archive")


def shown_in(folder: Path) -> list[Any]:
    """Rows by file."""
    return [pq.read_table(file, columns=["id"]).to_pylist() for file in files(str(folder))]


@pytest.mark.tier("all")
def test_a_job_that_was_launched_and_never_recorded_adds_nothing_however_late_it_ends(
    tmp_path: Path, dsn: str, pipeline: Pipeline, runtime: Runtime
) -> None:
    from lockstep.airflow._launching import OwnLauncher

    gate = tmp_path / "gate"
    command = [sys.executable, "-m", "tests.dags.launching", dsn, str(tmp_path / "staging")]
    environment = {**spark_environment(), "TMPDIR": str(tmp_path)}
    died = subprocess.run(command, env=environment, capture_output=True, timeout=120, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr[-3000:]
    until(gate.with_suffix(".reached").exists, seconds=SECONDS)
    [older] = tmp_path.glob("staging/*/launched/epoch=1/*")

    job = OwnLauncher(pipeline, LooseLauncher())
    sealed = stage(runtime, RUN, job, job.reference)
    assert sealed.wal is not None and not sealed.wal.endswith(f"/{older.name}")
    show(runtime)
    assert not (older / RESULT).exists(), "it is at work all the time"
    gate.unlink()
    until((older / RESULT).exists, seconds=SECONDS)
    assert len(list(older.glob("orders/*.parquet"))) == 1, "and writes all that it was asked for"

    assert cleanup(runtime, RUN).state is EpochState.CLEANED
    assert recover(runtime).problems == []
    assert not older.exists()
    assert shown_in(tmp_path / "out") == [[{"id": 1}, {"id": 2}, {"id": 3}]]


def test_a_job_that_fails_says_why_by_what_it_has_left_and_one_that_is_cancelled_ends(
    tmp_path: Path, pipeline: Pipeline, runtime: Runtime
) -> None:
    """Of the launcher's own states alone nothing is known."""
    from lockstep.airflow._launching import OwnLauncher

    @dataclass
    class Scripted(LooseLauncher):
        """Tells these states, and what it is told; nothing runs."""

        states: list[JobState] = field(default_factory=list)
        told: list[str] = field(default_factory=list)

        def launch(self, application: object, arguments: object, token: str) -> str:
            self.told.append(f"launch {token.rpartition('-')[2]}")
            return "job 1"

        def state(self, handle: str) -> JobState:
            job.cancel() if len(self.states) == 2 else None
            return self.states.pop(0)

        def cancel(self, handle: str) -> None:
            self.told.append(f"cancel {handle}")

    failing = Scripted(states=[JobState.RUNNING, JobState.FAILED])
    job = OwnLauncher(pipeline, failing)
    with pytest.raises(StageFailed, match="job 1 of Scripted failed without a message"):
        stage(runtime, RUN, job, job.reference)
    assert failing.told[1:] == ["cancel job 1"]

    lying = Scripted(states=[JobState.SUCCEEDED])
    job = OwnLauncher(pipeline, lying)
    with pytest.raises(StageFailed, match=RESULT):
        stage(runtime, RUN, job, job.reference)
    assert runtime.ledger.epoch("launched", 1).wal is None, "nothing is sealed of a job that only says that it is done"
    tokens = {int(folder.name) for folder in tmp_path.glob("staging/*/launched/epoch=1/*")}
    assert lying.told == [f"launch {max(tokens)}"] and len(tokens) == 2


def test_a_driver_goes_on_unless_its_request_was_gone_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    from lockstep.compute.submit import stage_epoch

    class Ended(Exception):
        """The process."""

    def end(code: int) -> None:
        raise Ended

    def look(request_uri: str) -> bool:
        found = seen.pop(0)
        if found is None:
            raise StagingUnavailable("nobody can tell")
        return found

    seen = [True, False, None, False, True, False, False]
    monkeypatch.setattr(stage_epoch, "LOOK_SECONDS", 0)
    monkeypatch.setattr(stage_epoch, "is_requested", look)
    monkeypatch.setattr(os, "_exit", end)
    given_up: list[bool] = []
    with pytest.raises(Ended):
        stage_epoch._watch_request("", threading.Event(), lambda: given_up.append(True))
    assert seen == []
    assert given_up == [True]


def test_a_request_stands_unless_it_is_known_to_be_gone(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    request = f"file://{tmp_path}/7/_request.json"
    assert not is_requested(request)
    (tmp_path / "7" / "_request.json").write_text("{}")
    assert is_requested(request)
    (tmp_path / "7" / "_request.json").unlink()
    (tmp_path / "7").rmdir()
    assert not is_requested(request)
    (tmp_path / "7").touch()
    with pytest.raises(StagingUnavailable):
        is_requested(request)


def test_a_token_is_of_one_execution_of_one_deployment() -> None:
    from lockstep.airflow._launching import token_of

    def token(deployment: str, number: int) -> str:
        folder = f"s3a://staging/{deployment}/launched/epoch=1/{number}"
        return token_of(StageRequest("", 1, number, folder, (), {}, datetime.now(UTC)))

    found = [token(deployment, number) for deployment in ("one", "other") for number in (7, 8, 10**18)]
    assert len(set(found)) == len(found) and token("one", 7) == found[0]
    assert all(name.replace("-", "").isalnum() and len(name) <= 32 for name in found)


# --- a real YARN: its own id, its own word on jobs, and drivers that end when nobody wants them ---


def in_yarn(test: Any) -> Any:
    missing = pytest.mark.skipif(not fetched(), reason="YARN is not here: `make yarn` fetches it")
    for mark in (missing, pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.tier("all")):
        mark(test)
    return test


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnCluster]:
    with YarnCluster(tmp_path_factory.mktemp("yarn")).for_a_while() as cluster:
        yield cluster


@pytest.fixture
def jobs_of(yarn: YarnCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Pipeline], Any]:
    """As each process of the task makes them."""
    from lockstep.airflow._launching import launcher

    extra = {"yarn_resourcemanager_webapp_address": yarn.web}
    monkeypatch.setenv("AIRFLOW_CONN_YARN", json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra}))
    for name, value in yarn.environment.items():
        monkeypatch.setenv(name, value)
    conf = yarn.configuration({"LOCKSTEP_HOME": str(tmp_path), launching.GATE: str(tmp_path / "gate")})
    return lambda pipeline: launcher(pipeline, "yarn", {"deploy_mode": "cluster", "conf": conf}).jobs


def look(runtime: Runtime, jobs: Any) -> Epoch:
    def unexpected(request_uri: str) -> None:
        raise AssertionError("it is to be left to itself")

    return stage(runtime, RUN, unexpected, runtime.defined.reference(), leaving=Leaving(jobs))


def wait_for_gate(yarn: YarnCluster, jobs: Any, handle: str, gate: Path) -> None:
    """Wait until the job stands at its gate; fail with YARN's report and logs when it ends before, or never comes."""
    deadline = time.monotonic() + SECONDS
    while not gate.with_suffix(".reached").exists():
        if jobs.state(handle) is not JobState.RUNNING or time.monotonic() > deadline:
            logs = [*yarn.folder.glob("*.log"), *yarn.folder.glob(f"log/{handle}/*/std*")]
            tails = [f"--- {log.relative_to(yarn.folder)}\n{log.read_text(errors='replace')[-4000:]}" for log in logs]
            pytest.fail("\n".join([f"{handle} is not at its gate: {yarn.ask(f'apps/{handle}')}", *tails]))
        time.sleep(0.2)


def leave(runtime: Runtime, jobs: Any) -> tuple[str, str]:
    """A job's handle, and the address of its request."""
    with pytest.raises(JobAtWork) as left:
        look(runtime, jobs)
    [request] = left.value.places
    note = Path(request.removeprefix("file://")).parent / "_job.json"
    handle = json.loads(note.read_text())["handle"]
    assert handle.startswith("application_")
    return handle, request


@in_yarn
def test_a_job_of_yarn_is_sealed_by_another_process_when_it_has_ended(
    yarn: YarnCluster,
    runtime: Runtime,
    pipeline: Pipeline,
    jobs_of: Callable[[Pipeline], Any],
    tmp_path: Path,
) -> None:
    handle, request = leave(runtime, jobs_of(pipeline))
    jobs = jobs_of(pipeline)
    wait_for_gate(yarn, jobs, handle, tmp_path / "gate")
    assert jobs.state(handle) is JobState.RUNNING
    with pytest.raises(JobAtWork, match=handle):
        look(runtime, jobs)
    (tmp_path / "gate").unlink()
    until(lambda: has_ended(request), seconds=SECONDS)
    assert look(runtime, jobs).wal is not None
    until(lambda: bool(jobs.state(handle) is not JobState.RUNNING), seconds=SECONDS)
    assert jobs.state(handle) is JobState.SUCCEEDED
    show(runtime)
    cleanup(runtime, RUN)
    assert shown_in(tmp_path / "out") == [[{"id": 1}, {"id": 2}, {"id": 3}]]


@pytest.mark.fault("B24")
@in_yarn
def test_a_job_ends_when_it_is_cancelled_and_by_itself_when_its_attempt_is_void(
    yarn: YarnCluster, runtime: Runtime, pipeline: Pipeline, jobs_of: Callable[[Pipeline], Any], tmp_path: Path
) -> None:
    jobs = jobs_of(pipeline)
    unwanted, _ = leave(runtime, jobs)
    wait_for_gate(yarn, jobs, unwanted, tmp_path / "gate")
    abort(runtime, RUN, "a test")
    until(lambda: bool(jobs.state(unwanted) is JobState.FAILED), seconds=SECONDS)
    assert (tmp_path / "gate").exists(), "it was held up all the time"

    begin(runtime, RUN, DAY)
    cancelled, _ = leave(runtime, jobs)
    jobs.cancel_job(cancelled)
    until(lambda: bool(jobs.state(cancelled) is JobState.FAILED), seconds=SECONDS)
    assert yarn.ask(f"apps/{cancelled}")["app"]["state"] == "KILLED"
    abort(runtime, RUN, "a test")
