"""The application as a client of Spark Connect, in a process of its own that no task waits for."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lockstep.compute._local_rows import VARIABLE
from lockstep.errors import BadRecords
from lockstep.pipeline import Pipeline
from lockstep.wal.manifest import SourceCount
from lockstep.wal.request import ERROR, REQUEST, RESULT, StageResult, read_error
from stack.spark import spark_environment
from tests.spark.pipelines import slow_pipeline, udf_pipeline
from tests.spark.staged import request_of, rows_in
from tests.spark.test_drivers import GOOD, asked, land
from tests.waiting import until

Start = Callable[[Path], "subprocess.Popen[str]"]


@pytest.fixture
def start(spark_connect: str, tmp_path: Path) -> Iterator[Start]:
    """Starts the application for the request in a folder."""
    started: list[subprocess.Popen[str]] = []

    def start(folder: Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "lockstep.compute.submit.stage_epoch"]
        command += ["--request", (folder / REQUEST).as_uri()]
        variables = {**spark_environment(), "SPARK_REMOTE": spark_connect, VARIABLE: "0"}  # Spark writes
        process = subprocess.Popen(command, cwd=tmp_path, env=variables, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def requested(home: Path, pipeline: Pipeline, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    land(home, text, monkeypatch)
    return asked(request_of(home, pipeline, reference=f"tests.spark.pipelines:{name}"))


def test_a_client_of_its_own_stages_what_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Start
) -> None:
    folder = requested(tmp_path, udf_pipeline, "udf_pipeline", GOOD, monkeypatch)
    client = start(folder)
    _, said = client.communicate(timeout=240)
    assert client.returncode == 0, said
    result = StageResult.from_json(json.loads((folder / RESULT).read_text()))
    assert (result.rows, result.sources) == ({"rows": 2, "total": 1}, {"input": SourceCount(2)})
    assert sorted(row["id"] for row in rows_in(folder / "rows")) == [1001, 1002]


@pytest.mark.tier("all")
def test_a_client_of_its_own_writes_down_why_it_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Start
) -> None:
    folder = requested(tmp_path, udf_pipeline, "udf_pipeline", f"{GOOD}bad\n", monkeypatch)
    client = start(folder)
    _, said = client.communicate(timeout=240)
    assert client.returncode == 1
    assert "\nBadRecords: " in f"\n{said}"
    assert isinstance(read_error((folder / REQUEST).as_uri()), BadRecords)


def terminate(client: subprocess.Popen[str], folder: Path) -> None:
    client.send_signal(signal.SIGTERM)


def withdraw(client: subprocess.Popen[str], folder: Path) -> None:
    """As recovery does with an attempt that is void."""
    (folder / REQUEST).unlink()


@pytest.mark.sample(1)
@pytest.mark.parametrize("end", [terminate, withdraw])
def test_what_runs_for_a_client_that_is_ended_ends_at_the_server(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    start: Start,
    end: Callable[[subprocess.Popen[str], Path], None],
) -> None:
    folder = requested(tmp_path, slow_pipeline, "slow_pipeline", GOOD, monkeypatch)
    client = start(folder)

    def writing() -> bool:
        return any((folder / "rows").rglob("*.parquet"))

    until(writing, seconds=90)
    end(client, folder)
    client.wait(60)
    until(lambda: not writing(), "the server works on")
    assert not (folder / RESULT).exists()
    assert not (folder / ERROR).exists()
