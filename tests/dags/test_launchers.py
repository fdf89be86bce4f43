"""The launchers of docs/how-to/launchers.md against answers that were written down: no service answers here.

What stands for a provider's hook has that hook's signatures, read from the sources of the versions that the page names:
cncf.kubernetes 10.25.0, amazon 9.39.0, google 22.8.0, databricks 7.23.0, apache.livy 4.6.4. The hooks themselves run in
tests/package/test_provider_hooks.py.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lockstep.launchers import Application, JobLauncher, JobState
from tests.cases import cases

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "launchers.md"
TOKEN = "0123456789ab-7"
ARGUMENTS = ["--request", "s3a://staging/x/_request.json"]
APPLICATION = Application(Path("/tmp/stage_epoch.py"), Path("/tmp/lockstep-code.zip"), "lockstep orders:pipeline")


class Refused(Exception):
    """As kubernetes' ApiException."""

    def __init__(self, status: int) -> None:
        self.status = status


class Recorded:
    """What was asked, and the answers that are left."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answers: list[Any] = []

    def __call__(self, called: str, /, **said: Any) -> Any:
        self.asked.append((called, {key: value for key, value in said.items() if key not in ("self", "recorded")}))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """The providers' modules, as far as the page takes something of them."""
    found = Recorded()
    hooks = {
        "cncf.kubernetes.hooks.kubernetes": {"KubernetesHook": kubernetes_hook(found)},
        "amazon.aws.hooks.emr": {"EmrServerlessHook": emr_hook(found)},
        "amazon.aws.hooks.s3": {"S3Hook": s3_hook(found)},
        "google.cloud.hooks.dataproc": {"DataprocHook": dataproc_hook(found)},
        "google.cloud.hooks.gcs": {"GCSHook": gcs_hook(found)},
        "databricks.hooks.databricks": {"DatabricksHook": databricks_hook(found)},
        "apache.livy.hooks.livy": {"LivyHook": livy_hook(found)},
    }
    for name, offered in hooks.items():
        module = ModuleType(f"airflow.providers.{name}")
        vars(module).update(offered)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return found


def kubernetes_hook(recorded: Recorded) -> type:
    class KubernetesHook:
        def __init__(self, conn_id: str | None = "kubernetes_default") -> None: ...

        def create_custom_object(
            self, group: str, version: str, plural: str, body: str | dict[str, Any], namespace: str | None = None
        ) -> Any:
            return recorded("create", **locals())

        def get_custom_object(
            self, group: str, version: str, plural: str, name: str, namespace: str | None = None
        ) -> Any:
            return recorded("get", **locals())

        def delete_custom_object(
            self, group: str, version: str, plural: str, name: str, namespace: str | None = None, **kwargs: Any
        ) -> Any:
            return recorded("delete", **locals())

    return KubernetesHook


def emr_hook(recorded: Recorded) -> type:
    class EmrServerlessHook:
        JOB_SUCCESS_STATES = frozenset({"SUCCESS"})
        JOB_FAILURE_STATES = frozenset({"FAILED", "CANCELLING", "CANCELLED"})

        def __init__(self, *, aws_conn_id: str) -> None:
            self.conn = SimpleNamespace(
                start_job_run=lambda **said: recorded("start_job_run", **said),
                get_job_run=lambda **said: recorded("get_job_run", **said),
                cancel_job_run=lambda **said: recorded("cancel_job_run", **said),
            )

    return EmrServerlessHook


def s3_hook(recorded: Recorded) -> type:
    class S3Hook:
        def __init__(self, aws_conn_id: str | None = "aws_default") -> None: ...

        def load_file(
            self, filename: Path | str, key: str, bucket_name: str | None = None, replace: bool = False
        ) -> None:
            recorded("load_file", **locals())

    return S3Hook


def dataproc_hook(recorded: Recorded) -> type:
    class DataprocHook:
        def __init__(self, gcp_conn_id: str = "google_cloud_default") -> None: ...

        def submit_job(self, job: dict[str, Any], project_id: str, region: str, request_id: str | None = None) -> Any:
            return recorded("submit_job", **locals())

        def get_job(self, job_id: str, project_id: str, region: str) -> Any:
            return recorded("get_job", **locals())

        def cancel_job(self, job_id: str, project_id: str, region: str | None = None) -> Any:
            return recorded("cancel_job", **locals())

    return DataprocHook


def gcs_hook(recorded: Recorded) -> type:
    class GCSHook:
        def __init__(self, gcp_conn_id: str = "google_cloud_default") -> None: ...

        def upload(self, bucket_name: str, object_name: str, filename: str | None = None) -> None:
            recorded("upload", **locals())

    return GCSHook


def databricks_hook(recorded: Recorded) -> type:
    class DatabricksHook:
        def __init__(self, databricks_conn_id: str = "databricks_default") -> None: ...

        def submit_run(self, json: dict[str, Any]) -> int:
            return int(recorded("submit_run", **locals()))

        def get_run_state(self, run_id: int) -> Any:
            return recorded("get_run_state", **locals())

        def cancel_run(self, run_id: int) -> None:
            recorded("cancel_run", **locals())

    return DatabricksHook


def livy_hook(recorded: Recorded) -> type:
    class LivyHook:
        def __init__(self, livy_conn_id: str = "livy_default") -> None: ...

        def post_batch(self, *, file: str, args: Sequence[str], py_files: list[str], name: str | None = None) -> int:
            return int(recorded("post_batch", **locals()))

        def get_batch(self, session_id: int | str) -> Any:
            return {"id": session_id, "state": recorded("get_batch", **locals())}

        def delete_batch(self, session_id: int | str) -> Any:
            return recorded("delete_batch", **locals())

    return LivyHook


def example(name: str, **arguments: Any) -> JobLauncher:
    """The page's launcher of this name."""
    [text] = [block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S) if f"class {name}" in block]
    module = ModuleType(f"example_{name}")
    sys.modules[module.__name__] = module  # where dataclasses look for names
    exec(compile(text, f"{PAGE}:{name}", "exec"), vars(module))
    made: JobLauncher = vars(module)[name](**arguments)
    return made


def phase(name: str) -> Any:
    return {"status": {"applicationState": {"state": name}}}


def dataproc(state: str) -> Any:
    return SimpleNamespace(status=SimpleNamespace(state=SimpleNamespace(name=state)))


def databricks(terminal: bool, successful: bool) -> Any:
    return SimpleNamespace(is_terminal=terminal, is_successful=successful)


RUNNING, SUCCEEDED, FAILED = JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED
#: launcher, its arguments, what is answered to a launch, the handle, what is answered to `state`, and what that is
CASES: dict[str, tuple[dict[str, Any], list[Any], str, list[tuple[Any, JobState]]]] = {
    "KubernetesLauncher": (
        {"image": "orders:1", "namespace": "spark", "service_account": "spark", "secret": "lockstep"},
        [{"metadata": {"name": f"lockstep-{TOKEN}"}}],
        f"lockstep-{TOKEN}",
        [
            ({"metadata": {}}, RUNNING),
            (phase("SUBMITTED"), RUNNING),
            (phase("RUNNING"), RUNNING),
            (phase("COMPLETED"), SUCCEEDED),
            (phase("FAILED"), FAILED),
            (phase("SUBMISSION_FAILED"), FAILED),
            (Refused(404), FAILED),
        ],
    ),
    "EmrServerlessLauncher": (
        {"application_id": "00f1", "role": "arn:aws:iam::1:role/job", "bucket": "code", "environment": "s3://code/e"},
        [None, None, {"applicationId": "00f1", "jobRunId": "00f2", "arn": "arn:…"}],
        "00f2",
        [
            ({"jobRun": {"state": "SUBMITTED"}}, RUNNING),
            ({"jobRun": {"state": "QUEUED"}}, RUNNING),
            ({"jobRun": {"state": "RUNNING"}}, RUNNING),
            ({"jobRun": {"state": "SUCCESS"}}, SUCCEEDED),
            ({"jobRun": {"state": "FAILED"}}, FAILED),
            ({"jobRun": {"state": "CANCELLED"}}, FAILED),
        ],
    ),
    "DataprocLauncher": (
        {"project_id": "shop", "region": "europe-west1", "cluster": "spark", "bucket": "code"},
        [None, None, SimpleNamespace(reference=SimpleNamespace(job_id=f"lockstep-{TOKEN}"))],
        f"lockstep-{TOKEN}",
        [
            (dataproc("PENDING"), RUNNING),
            (dataproc("RUNNING"), RUNNING),
            (dataproc("CANCEL_PENDING"), RUNNING),
            (dataproc("DONE"), SUCCEEDED),
            (dataproc("ERROR"), FAILED),
            (dataproc("CANCELLED"), FAILED),
        ],
    ),
    "DatabricksLauncher": (
        {
            "script": "/Volumes/x/stage_epoch.py",
            "cluster": {"num_workers": 1},
            "libraries": [{"whl": "/Volumes/x.whl"}],
        },
        [455644833],
        "455644833",
        [
            (databricks(False, False), RUNNING),
            (databricks(True, True), SUCCEEDED),
            (databricks(True, False), FAILED),
        ],
    ),
    "LivyLauncher": (
        {"script": "hdfs:///code/stage_epoch.py", "code": "hdfs:///code/lockstep-code.zip"},
        [42],
        "42",
        [
            ("starting", RUNNING),
            ("recovering", RUNNING),
            ("running", RUNNING),
            ("success", SUCCEEDED),
            ("error", FAILED),
            ("dead", FAILED),
            ("killed", FAILED),
        ],
    ),
}


@cases("name", CASES)
def test_a_launchers_job_is_known_by_its_token_and_asked_for_by_its_handle(name: str, recorded: Recorded) -> None:
    arguments, answers, handle, states = CASES[name]
    launcher = example(name, **arguments)
    recorded.answers += answers
    assert launcher.launch(APPLICATION, ARGUMENTS, TOKEN) == handle
    assert f"lockstep-{TOKEN}" in str(recorded.asked[-1]), "the service may know it again"
    assert str(ARGUMENTS) in str(recorded.asked[-1])
    for answer, state in states:
        recorded.answers.append(answer)
        assert launcher.state(handle) is state, answer
        assert handle in str(recorded.asked[-1])
    recorded.answers.append(None)
    launcher.cancel(handle)
    assert handle in str(recorded.asked[-1])


@cases("name", CASES)
def test_what_a_service_refuses_is_no_state_of_a_job(name: str, recorded: Recorded) -> None:
    arguments, _, handle, _ = CASES[name]
    launcher = example(name, **arguments)
    calls: list[Callable[[], object]] = [
        lambda: launcher.state(handle),
        lambda: launcher.launch(APPLICATION, ARGUMENTS, TOKEN),
        lambda: launcher.cancel(handle),
    ]
    for call in calls:
        recorded.answers = [Refused(403)]
        with pytest.raises(Refused):
            call()


def test_a_job_of_kubernetes_that_was_launched_before_is_that_job_and_one_that_is_gone_is_cancelled(
    recorded: Recorded,
) -> None:
    launcher = example("KubernetesLauncher", **CASES["KubernetesLauncher"][0])
    recorded.answers += [Refused(409), Refused(404)]
    assert launcher.launch(APPLICATION, ARGUMENTS, TOKEN) == f"lockstep-{TOKEN}"
    launcher.cancel(f"lockstep-{TOKEN}")


def test_a_dag_takes_a_launcher_in_place_of_a_connection() -> None:
    from lockstep.errors import InvalidPipeline
    from lockstep.orchestration._launching import OwnLauncher, PackLauncher, launcher
    from lockstep.orchestration.dag import epoch_dag
    from tests.dags.airflow_parts import as_airflow_has_it
    from tests.dags.launching import LooseLauncher, pipeline

    mine = LooseLauncher()
    made: Any = epoch_dag(pipeline, schedule="@daily", launcher=mine)
    assert made.get_task("stage").own_launcher is mine
    assert as_airflow_has_it(made).has_task("stage")
    assert isinstance(launcher(pipeline, "no such connection", {}, mine), OwnLauncher)
    packed: Any = epoch_dag(pipeline, schedule="@daily", launcher=mine, pack=3).get_task("pack")
    assert packed.own_launcher is mine and isinstance(PackLauncher(pipeline, "none", {}, mine)._make(), OwnLauncher)
    with pytest.raises(InvalidPipeline, match="launcher, which Lockstep gives its tasks itself"):
        epoch_dag(pipeline, schedule="@daily", task_args={"stage": {"launcher": mine}})
