"""`stage` leaves its job to itself: deferred while it works, and taken up by whoever wakes the task."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from lockstep.epoch import SourceRange
from lockstep.errors import StageFailed
from lockstep.launchers import Application, JobState
from lockstep.pipeline import Pipeline
from lockstep.wal.request import StageRequest
from tests.cases import cases
from tests.crash.world import write_parquet
from tests.dags.airflow_parts import deferred, rescheduled
from tests.dags.observed import DAY, Observed
from tests.dags.pipelines import ORDERS

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

    from lockstep.airflow._airflow import TaskDeferred

REFERENCE = "tests.crash.world:pipeline"
RUNNING, SUCCEEDED, FAILED = JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED


@dataclass
class Service:
    """A launcher whose jobs do nothing before they are told to."""

    detached: bool = True
    at_once: bool = False
    requests: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def launch(self, application: Application, arguments: Sequence[str], token: str) -> str:
        assert application.file.exists() and application.code.exists()
        self.requests.append(arguments[1])
        if self.at_once:
            self.work()
        return token

    def state(self, handle: str) -> JobState:
        self.asked.append(handle)
        return SUCCEEDED if self.at_once else RUNNING

    def cancel(self, handle: str) -> None:
        raise AssertionError("nobody is to be cancelled")

    def work(self) -> None:
        write_parquet(self.requests[-1])


@pytest.fixture(autouse=True)
def no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty zip of code, as nothing runs it."""
    monkeypatch.setattr("lockstep.airflow._launching._packages", lambda reference: [])


@pytest.fixture
def begun(observed: Observed, monkeypatch: pytest.MonkeyPatch) -> Observed:
    monkeypatch.setattr(Pipeline, "reference", lambda self: REFERENCE)
    observed.run("Begin")
    return observed


def stage_by(begun: Observed, service: Service, **arguments: Any) -> BaseOperator:
    by = {"spark_conn_id": "none", "spark_submit": {}, "launcher": service}
    return begun.operator("Stage", **by, **{"retry_delay": timedelta(seconds=5), "deferrable": True, **arguments})


def wake(begun: Observed, task: Any, left: TaskDeferred, found: object = ()) -> Any:
    kwargs = json.loads(json.dumps({**(left.kwargs or {}), "event": found}))
    return task.resume_execution(left.method_name, kwargs, begun.context(task))


async def first_event(left: TaskDeferred) -> Any:
    """As a triggerer that knows nothing but what Airflow keeps."""
    from lockstep.airflow.triggers import JobTrigger

    path, arguments = left.trigger.serialize()
    assert path == f"{JobTrigger.__module__}.{JobTrigger.__qualname__}"
    trigger = JobTrigger(**json.loads(json.dumps({**arguments, "every": 0.01})))
    return (await anext(trigger.run())).payload


def sealed(begun: Observed) -> bool:
    return begun.world.epoch_of(DAY).wal is not None


def test_a_stage_that_is_deferrable_leaves_its_job_and_seals_it_when_the_trigger_saw_its_end(begun: Observed) -> None:
    service = Service()
    with deferred() as left:
        begun.execute(stage_by(begun, service))

    async def work() -> Any:
        looking = asyncio.ensure_future(first_event(left[0]))
        done, _ = await asyncio.wait([looking], timeout=0.1)
        assert not done
        service.work()
        return await asyncio.wait_for(looking, 60)

    found = asyncio.run(work())
    assert found == service.requests
    told = wake(begun, stage_by(begun, service), left[0], found)
    assert told["state"] == "staged" and sealed(begun) and len(service.requests) == 1


def test_a_job_at_work_keeps_the_epoch_from_other_runs_and_is_looked_after_within_the_longest_pause(
    begun: Observed,
) -> None:
    service = Service()
    with deferred() as left:
        begun.execute(stage_by(begun, service, max_retry_delay=timedelta(minutes=5)))
    arguments = left[0].trigger.serialize()[1]
    span = datetime.fromisoformat(arguments["until"]) - datetime.fromisoformat(arguments["since"])
    assert timedelta(minutes=4) < span < timedelta(minutes=6)
    epoch = begun.world.epoch_of(DAY)
    [(leased,)] = begun.world.execute(
        begun.world.ledger_dsn,
        "SELECT lease_until > now() + interval '5 minutes' FROM lockstep.epoch WHERE id = %s",
        (epoch.id,),
    )
    assert leased
    assert left[0].kwargs is not None
    left[0].kwargs["since"] = (datetime.now(UTC) - timedelta(days=2)).isoformat()
    with deferred() as again:  # however long it takes
        wake(begun, stage_by(begun, service, max_retry_delay=timedelta(minutes=5)), left[0])
    arguments = again[0].trigger.serialize()[1]
    assert datetime.fromisoformat(arguments["until"]) < datetime.now(UTC) + timedelta(minutes=6)
    assert len(service.requests) == 1 and len(service.asked) == 1


def test_a_triggerer_that_is_away_or_sees_an_end_alone_costs_no_try_and_no_second_job(begun: Observed) -> None:
    service = Service()
    with deferred() as left:
        begun.execute(stage_by(begun, service))
    with rescheduled():  # woken once, and not for ever
        wake(begun, stage_by(begun, service), left[0], service.requests)
    with rescheduled():
        task: Any = stage_by(begun, service)
        task.resume_execution("__fail__", {"error": "Trigger timeout"}, begun.context(task))
    service.work()
    begun.execute(stage_by(begun, service, deferrable=False))  # as Airflow runs a task that is due again
    assert sealed(begun) and len(service.requests) == 1


@pytest.mark.parametrize("service", [Service(at_once=True), Service(detached=False, at_once=True)])
def test_a_slot_is_kept_where_a_task_is_not_deferrable_or_a_job_needs_its_launchers_process(
    begun: Observed, service: Service
) -> None:
    begun.execute(stage_by(begun, service, deferrable=not service.detached))
    assert sealed(begun) and service.asked


# --- spark-submit in cluster mode ---

MANAGER = "yarn_resourcemanager_webapp_address"
YARN: dict[str, Any] = {"conn_type": "spark", "host": "yarn", "extra": {MANAGER: "http://127.0.0.1:1"}}
KUBERNETES: dict[str, Any] = {"conn_type": "spark", "host": "k8s://https://k", "extra": {"namespace": "spark"}}
CLUSTER: dict[str, Any] = {"deploy_mode": "cluster"}


def launcher_to(monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], submit: dict[str, Any]) -> Any:
    from lockstep.airflow._launching import launcher

    monkeypatch.setenv("AIRFLOW_CONN_SPARK", json.dumps(connection))
    return launcher(ORDERS, "spark", submit)


@cases(
    "connection, submit, leaves",
    [
        (YARN, CLUSTER, True),
        ({**YARN, "extra": {**YARN["extra"], "deploy-mode": "cluster"}}, {}, True),
        ({**YARN, "extra": {}}, CLUSTER, False),  # whom to ask?
        (YARN, {}, False),
        (YARN, {**CLUSTER, "post_submit_commands": ["true"]}, False),
        (KUBERNETES, CLUSTER, True),
        ({**KUBERNETES, "extra": {}}, {**CLUSTER, "conf": {"spark.kubernetes.namespace": "spark"}}, True),
        ({**KUBERNETES, "extra": {}}, CLUSTER, False),
        (KUBERNETES, {}, False),
        ({"conn_type": "spark", "host": "spark://master:7077"}, CLUSTER, False),  # takes no driver of Python
        ({"conn_type": "spark", "host": "local[*]"}, {}, False),
        ({"conn_type": "spark_connect", "host": "sc://server"}, {}, False),
    ],
)
def test_jobs_are_left_to_clusters_that_run_the_driver_and_can_be_asked(
    monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], submit: dict[str, Any], leaves: bool
) -> None:
    assert (launcher_to(monkeypatch, connection, submit).jobs is not None) == leaves


#: what spark-submit 4.2 says when the cluster has the job; of Kubernetes as Spark's sources have it
SAID = {
    "yarn": "INFO YarnClientImpl: Submitted application application_17_0001",
    "k8s": "INFO LoggingPodStatusWatcherImpl: Deployed Spark application lockstep with application ID spark-4f2 and "
    "submission ID jobs:lockstep-driver into Kubernetes",
}


@cases("cluster, connection", [("yarn", YARN), ("k8s", KUBERNETES)])
def test_spark_submit_hands_the_job_in_and_tells_by_what_id_it_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cluster: str, connection: dict[str, Any]
) -> None:
    from airflow.providers.apache.spark.hooks import spark_submit

    from lockstep.airflow._launching import token_of

    started: list[list[str]] = []
    lines = [f"{SAID[cluster]}\n"]  # if it logs so much

    def popen(command: list[str], **_: Any) -> Any:
        started.append(command)
        return SimpleNamespace(stdout=list(lines), wait=lambda: 0, poll=lambda: 0)

    monkeypatch.setattr(spark_submit, "subprocess", SimpleNamespace(Popen=popen, PIPE=-1, STDOUT=-2))
    monkeypatch.setattr(spark_submit, "kube_client", SimpleNamespace(), raising=False)
    request = StageRequest(
        REFERENCE, 1, 1, tmp_path.as_uri(), (), {"orders": SourceRange(None, {}, None)}, datetime.now(UTC)
    )
    (tmp_path / "_request.json").write_text(json.dumps(request.to_json()))
    jobs = launcher_to(monkeypatch, connection, {**CLUSTER, "conf": {"spark.eventLog.enabled": "false"}}).jobs
    handle = {"yarn": "application_17_0001", "k8s": f"lockstep-{token_of(request)}-driver"}[cluster]
    assert jobs.launch((tmp_path / "_request.json").as_uri()) == handle
    [command] = started
    assert (f"spark.kubernetes.driver.pod.name={handle}" in command) == (cluster == "k8s")
    waits = {"yarn": "spark.yarn.submit", "k8s": "spark.kubernetes.submission"}[cluster]
    assert f"{waits}.waitAppCompletion=false" in command
    assert ("spark.yarn.maxAppAttempts=1" in command) == (cluster == "yarn")
    assert "spark.eventLog.enabled=false" in command
    if cluster == "yarn":
        assert f"spark.yarn.tags=lockstep-{token_of(request)}" in command


def test_a_job_of_which_spark_submit_says_nothing_is_found_by_its_tag(
    monkeypatch: pytest.MonkeyPatch, manager: Any
) -> None:
    from lockstep.airflow._launching import YarnJobs

    extra = {"extra": {MANAGER: manager.address}}
    make_hook = launcher_to(monkeypatch, {**YARN, **extra}, CLUSTER).make_hook
    silent = SimpleNamespace(_yarn_application_id=None)
    manager.apps = {"app": [{"id": "application_17_0002"}]}
    assert YarnJobs(make_hook).find(silent, "1a2b-7") == "application_17_0002"
    assert manager.asked == ["GET /ws/v1/cluster/apps?applicationTags=lockstep-1a2b-7"]
    misread = SimpleNamespace(_yarn_application_id="application_")
    assert YarnJobs(make_hook).find(misread, "1a2b-7") == "application_17_0002"
    manager.apps = None
    assert YarnJobs(make_hook).find(silent, "1a2b-7") is None
    manager.status = 503
    with pytest.raises(StageFailed, match="none with tag lockstep-1a2b-7: HTTPError") as unknown:
        YarnJobs(make_hook).find(silent, "1a2b-7")
    assert "127.0.0.1" not in str(unknown.value)


@pytest.fixture
def manager() -> Iterator[Any]:
    """A ResourceManager that gives the answers that were written down of a real one, of Hadoop 3.5."""
    told = SimpleNamespace(status=200, app={}, apps=None, asked=[])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._answer()

        def _answer(self) -> None:
            told.asked.append(f"{self.command} {self.path}")
            body = json.dumps({"app": told.app, "apps": told.apps}).encode()
            self.send_response(told.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    told.address = f"http://127.0.0.1:{server.server_port}"
    yield told
    server.shutdown()
    server.server_close()


def test_what_yarn_tells_of_a_job(monkeypatch: pytest.MonkeyPatch, manager: Any) -> None:
    jobs = launcher_to(monkeypatch, {**YARN, "extra": {MANAGER: manager.address}}, CLUSTER).jobs
    for state, final, meant in [
        ("ACCEPTED", "UNDEFINED", RUNNING),
        ("RUNNING", "UNDEFINED", RUNNING),
        ("FINISHED", "SUCCEEDED", SUCCEEDED),
        ("FINISHED", "FAILED", FAILED),
        ("FAILED", "FAILED", FAILED),
        ("KILLED", "KILLED", FAILED),
    ]:
        manager.app = {"state": state, "finalStatus": final, "diagnostics": ""}
        assert jobs.state("application_1_0001") is meant, state
    for status, meant in ((404, FAILED), (503, RUNNING)):
        manager.status = status
        assert jobs.state("application_1_0001") is meant, status
    manager.status = 202
    jobs.cancel_job("application_1_0001")
    assert manager.asked[-1] == "PUT /ws/v1/cluster/apps/application_1_0001/state"
    unreachable = launcher_to(monkeypatch, YARN, CLUSTER).jobs
    assert unreachable.state("application_1_0001") is RUNNING, "nobody knows, so it may be"


def test_what_kubernetes_tells_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the provider's client, with answers that are written down."""
    from airflow.providers.apache.spark.hooks import spark_submit
    from urllib3.exceptions import HTTPError

    class ApiException(Exception):
        def __init__(self, status: int) -> None:
            super().__init__(status)
            self.status = status

    asked: list[tuple[str, ...]] = []
    answers: list[Any] = []

    def read(name: str, namespace: str) -> Any:
        asked.append(("read", name, namespace))
        if isinstance(answers[0], Exception):
            raise answers.pop(0)
        return SimpleNamespace(status=SimpleNamespace(phase=answers.pop(0)))

    def delete(name: str, namespace: str, **_: Any) -> None:
        asked.append(("delete", name, namespace))

    client = SimpleNamespace(read_namespaced_pod=read, delete_namespaced_pod=delete)
    stub = SimpleNamespace(get_kube_client=lambda: client, ApiException=ApiException)
    monkeypatch.setattr(spark_submit, "kube_client", stub, raising=False)
    monkeypatch.setitem(sys.modules, "kubernetes", SimpleNamespace(client=SimpleNamespace(V1DeleteOptions=dict)))
    jobs = launcher_to(monkeypatch, KUBERNETES, CLUSTER).jobs
    for answer, meant in [
        ("Pending", RUNNING),
        ("Running", RUNNING),
        ("Unknown", RUNNING),
        ("Succeeded", SUCCEEDED),
        ("Failed", FAILED),
        (ApiException(404), FAILED),
        (ApiException(500), RUNNING),
        (HTTPError("no connection"), RUNNING),
    ]:
        answers.append(answer)
        assert jobs.state("lockstep-1-driver") is meant, answer
    jobs.cancel_job("lockstep-1-driver")
    assert asked[-1] == ("delete", "lockstep-1-driver", "spark")
