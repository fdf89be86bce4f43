"""The application under spark-submit, and Spark clients that are killed or cancelled in mid-stage."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockstep.compute._local_rows import VARIABLE
from lockstep.compute.stage import stage_epoch
from lockstep.errors import BadRecords, InvalidPipeline, SparkRefused, StageFailed
from lockstep.pipeline import Pipeline
from lockstep.spark.session import cancel, connect
from lockstep.wal.file_digests import FILES, FileDigests
from lockstep.wal.manifest import SourceCount
from lockstep.wal.request import ERROR, REQUEST, RESULT, StageRequest, StageResult, read_error
from stack.processes import Processes
from stack.spark import StandaloneCluster, spark_environment
from tests.spark.pipelines import growing_pipeline, pipeline_of, slow_pipeline, slowly, udf_pipeline
from tests.spark.staged import csv, request_of, rows_in, stage
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ROOT = Path(__file__).parents[2]
NOON = "2013-01-02T12:00:00Z"
GOOD = f"id,name,at\n1,x,{NOON}\n2,y,{NOON}\n"
REFERENCE = "tests.spark.pipelines:udf_pipeline"


def land(home: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_HOME", str(home))
    (home / "landing").mkdir()
    (home / "landing" / "2013-01-02.csv").write_text(text)


def asked(request: StageRequest) -> Path:
    """Write the request where the driver looks for it; returns the execution's folder."""
    folder = Path(request.folder.removeprefix("file://"))
    (folder / REQUEST).write_text(json.dumps(request.to_json()))
    return folder


def submit(master: str, folder: Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", master]
    for setting in ("spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1", "spark.ui.enabled=false"):
        command += ["--conf", setting]
    command += [str(ROOT / "spark_apps" / "stage_epoch.py"), "--request", (folder / REQUEST).as_uri()]
    return subprocess.run(
        command, cwd=cwd, env={**spark_environment(), **environment}, capture_output=True, text=True, timeout=240
    )


def test_spark_submit_stages_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    land(tmp_path, f"{GOOD}3,not en", monkeypatch)
    folder = asked(request_of(tmp_path, growing_pipeline, reference="tests.spark.pipelines:growing_pipeline"))
    done = submit("local[2]", folder, tmp_path, SPARK_CONNECT_MODE_ENABLED="1")  # as from a client of Spark Connect
    assert done.returncode == 0, done.stderr[-3000:]
    result = StageResult.from_json(json.loads((folder / RESULT).read_text()))
    assert result.rows == {"rows": 2, "total": 1}
    assert result.sources == {"input": SourceCount(2)}
    assert rows_in(folder / "total") == [{"total": 2003}]
    assert [(row["id"], row["length"]) for row in rows_in(folder / "rows")] == [(1001, 1), (1002, 1)]


def test_spark_submit_writes_down_why_it_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    land(tmp_path, GOOD + "bad\n", monkeypatch)
    folder = asked(request_of(tmp_path, udf_pipeline, reference=REFERENCE))
    done = submit("local[2]", folder, tmp_path)
    assert done.returncode == 1
    assert "BadRecords" in done.stdout  # spark-submit gives a Python driver one stream for both
    error = read_error((folder / REQUEST).as_uri())
    assert isinstance(error, BadRecords)
    assert "2013-01-02.csv:4: another number of values than the schema's" in str(error)
    assert not (folder / RESULT).exists()


@pytest.mark.cluster
def test_a_cluster_of_two_processes_runs_the_same_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: str
) -> None:
    land(tmp_path, GOOD, monkeypatch)
    folder = asked(replace(request_of(tmp_path, udf_pipeline, reference=REFERENCE), task_seals=0))
    done = submit(cluster, folder, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert [row["id"] for row in rows_in(folder / "rows")] == [1001, 1002]
    found = FileDigests.from_json(json.loads((folder / FILES).read_text()))
    assert set(found) == {(path.parent.name, path.name) for path in folder.rglob("*.parquet")}
    assert sum(file.digested.rows for file in found.values() if file.output == "rows") == 2


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    processes = Processes(tmp_path / "cluster" / "stack.json")
    started = StandaloneCluster(processes, tmp_path / "cluster")
    try:
        started.start()
        yield started.url
    finally:
        processes.stop()


def test_a_pipeline_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    from lockstep.compute.submit.stage_epoch import load

    for reference in (
        "spark_apps.nothing:pipeline",
        "spark_apps.stage_epoch:nothing",
        "spark_apps.stage_epoch:main",
        "",
    ):
        with pytest.raises(InvalidPipeline):
            load(reference)


@pytest.mark.fault("H4")
def test_a_cancelled_execution_ends_and_leaves_nothing_to_adopt(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "0")  # where Spark writes, it shows when it has begun
    pipeline = pipeline_of(csv(tmp_path, GOOD), slowly(120))
    request = request_of(tmp_path, pipeline)
    raised: list[BaseException] = []

    def run() -> None:
        try:
            stage_epoch(session, pipeline, request)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    folder = Path(request.folder.removeprefix("file://"))
    until(lambda: any((folder / "rows").rglob("*.parquet")))  # before it has a job a server may miss an interrupt
    cancel(session, request.token)
    thread.join(60)
    assert [type(error) for error in raised] == [StageFailed]
    assert not list(folder.glob("rows/*.parquet"))


KILLED = """
import sys
from lockstep.spark.session import connect
from lockstep.compute.stage import stage_epoch
from tests.spark.staged import csv, request_of
from tests.spark.pipelines import pipeline_of, slowly
from tests.spark.test_drivers import GOOD, asked
from lockstep.compute.stage import run_request
from pathlib import Path
home = Path(sys.argv[2])
pipeline = pipeline_of(csv(home, GOOD), slowly(1.5))
request = request_of(home, pipeline)
asked(request)
run_request(request.folder + "/_request.json", connect(sys.argv[1]), pipeline, {})
"""


@pytest.mark.fault("B6", "C25")
def test_a_killed_client_leaves_a_folder_without_a_result(
    session: SparkSession, spark_connect: str, tmp_path: Path
) -> None:
    first = tmp_path / "first"
    first.mkdir()
    environment = {**spark_environment(), VARIABLE: "0"}  # Spark writes
    client = subprocess.Popen([sys.executable, "-c", KILLED, spark_connect, str(first)], env=environment)
    until(lambda: bool(list(first.glob("staging/*/rows/_temporary"))))
    os.kill(client.pid, signal.SIGKILL)
    client.wait()
    until(lambda: bool(list(first.glob("staging/*/rows/*.parquet"))))  # the server goes on without its client
    (folder,) = first.glob("staging/*")
    assert not (folder / RESULT).exists()
    assert not (folder / ERROR).exists()
    assert not (folder / "_manifest.json").exists()
    assert len(stage(session, tmp_path, pipeline_of(csv(tmp_path, GOOD))).rows()) == 2


def test_a_java_that_is_too_old_is_named(tmp_path: Path) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text('#!/bin/sh\necho \'openjdk version "11.0.2"\' >&2\n[ "$1" = -version ]\n')
    old.chmod(0o755)
    said = refusal_of_a_driver(JAVA_HOME=str(tmp_path))
    assert "SparkRefused: Spark's Java didn't start; Java 17 or newer is needed, as Spark 4 is compiled for it" in said
    assert f"found {old}: openjdk version" in said


def refusal_of_a_driver(**environment: str) -> str:
    """The last line of a process that can't start one."""
    script = "from lockstep.spark.session import connect; connect('local[1]')"
    variables = {**spark_environment(), **environment}
    done = subprocess.run([sys.executable, "-c", script], env=variables, capture_output=True, text=True, timeout=240)
    return done.stderr.splitlines()[-1]


IVY = '<ivysettings><settings defaultResolver="away"/><resolvers><filesystem name="away"/></resolvers></ivysettings>'


REFUSED = "SparkRefused: Spark's Java didn't start; its options are refused: "


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--packages org.nowhere:nothing:1.0", "SparkUnavailable: Spark's Java didn't start, found "),
        ("--driver-memory 130000g", "SparkUnavailable: Spark's Java didn't start, found "),
        ("--bogus hunter2", f"{REFUSED}Unrecognized option: --bogus"),
        ("--conf hunter2", f"{REFUSED}Invalid argument to --conf"),
        ("--driver-memory hunter2", f"{REFUSED}Invalid maximum heap size"),
    ],
)
def test_a_driver_that_may_start_next_time_is_tried_again_and_no_option_is_told(
    tmp_path: Path, options: str, told: str
) -> None:
    (tmp_path / "ivy.xml").write_text(IVY)
    settings = f"--conf spark.jars.ivySettings={tmp_path}/ivy.xml --conf spark.jars.ivy={tmp_path}/ivy"
    said = refusal_of_a_driver(PYSPARK_SUBMIT_ARGS=f"{settings} {options} pyspark-shell")
    assert told in said and "hunter2" not in said


def test_a_connect_client_cannot_become_a_driver(session: SparkSession) -> None:
    with pytest.raises(SparkRefused, match="Connect client"):
        connect("local[1]")


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
