"""Runs the staging job on Spark: in this process through Spark Connect, through spark-submit, or through a user's
launcher.

All run the same staging code. A retry or a cleared task doesn't resume an earlier job: each execution is a new job with
a folder of its own, so the provider's durable resume, which would skip the job, is not used. `jobs` of a launcher are
those that outlive the task's process; a deferrable task may leave such a job running and come back.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

from airflow.sdk import Connection

from lockstep.airflow._airflow import AirflowException
from lockstep.airflow.connections import AirflowConnections, connection
from lockstep.audits.audit import Function, Query
from lockstep.audits.evaluate import AskSpark, Found
from lockstep.connections.environment import for_driver, variables_of
from lockstep.epoch import SourceRange
from lockstep.errors import InvalidPipeline, NotConfigured, StageFailed
from lockstep.launchers import Application, JobLauncher, JobState
from lockstep.pipeline import Pipeline
from lockstep.protocol.left_job import Jobs
from lockstep.sources.base import planned_source
from lockstep.wal.reading import SealedWal
from lockstep.wal.request import StageRequest, read_error, read_request

_log = logging.getLogger(__name__)
_APPLICATION_ID = re.compile(r"application_\d+_\d+")
_POD_NAME = "spark.kubernetes.driver.pod.name"
MakeHook = Callable[[], Any]  #: makes a SparkSubmitHook
_SHIPPED = frozenset({".py", ".sql"})
APPLICATION = "lockstep.compute.submit.stage_epoch"
POLL_SECONDS = 5.0  #: between polls of a user's launcher
_RESOURCE_MANAGER = "yarn_resourcemanager_webapp_address"  #: the provider's key of the Connection's extra
_NAMESPACE = "spark.kubernetes.namespace"
_CONNECT_TYPES = frozenset({"sc", "spark_connect"})
#: A driver on this machine needs no other address, and for a few seconds no web UI.
_LOCAL_CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}


class YarnJobs:
    """Jobs of the ResourceManager that the Connection's extra names. A handle is an application's id.

    Reports of a cluster about a job are hints that end a wait; without an answer the job counts as running. The job is
    found by a tag with the execution's token, as the output of spark-submit depends on its logging.
    """

    submitting: ClassVar[dict[str, Any]] = {}

    def __init__(self, make_hook: MakeHook) -> None:
        self._make_hook = make_hook

    @staticmethod
    def settings(token: str) -> dict[str, str]:
        return {
            "spark.yarn.submit.waitAppCompletion": "false",
            "spark.yarn.maxAppAttempts": "1",  # a folder is written once
            "spark.yarn.tags": f"lockstep-{token}",
        }

    def find(self, submitted: Any, token: str) -> str | None:
        """The handle of a job that a hook has submitted. Raises `StageFailed`."""
        application = str(submitted._yarn_application_id)  # the last word in the log that looked like an id
        return application if _APPLICATION_ID.fullmatch(application) else self._find_by_tag(f"lockstep-{token}")

    def _find_by_tag(self, tag: str) -> str | None:
        import requests

        hook = self._make_hook()
        page, login = f"{hook._get_yarn_rm_base_url()}/ws/v1/cluster/apps", hook._resolved_yarn_rm_auth
        try:
            answer = requests.get(page, {"applicationTags": tag}, auth=login, timeout=hook._HTTP_TIMEOUT)
            answer.raise_for_status()
            applications = ((answer.json().get("apps") or {}).get("app")) or []
            return str(applications[0]["id"]) if applications else None
        except (
            requests.RequestException,
            ValueError,
        ) as error:  # its text may contain a login
            raise StageFailed(
                f"spark-submit printed no id of its job, and YARN has none with tag {tag}: {type(error).__name__}"
            ) from None

    def state(self, handle: str) -> JobState:
        try:
            status = self._make_hook().query_yarn_application_status(handle)
        except RuntimeError as error:
            return JobState.FAILED if "HTTP 404" in str(error) else _unknown(handle, error)
        return {"SUCCEEDED": JobState.SUCCEEDED, "FAILED": JobState.FAILED}.get(status, JobState.RUNNING)

    def cancel(self, handle: str) -> None:
        self._make_hook()._kill_yarn_application(handle)


class KubernetesJobs:
    """Jobs of the cluster that the provider's client connects to. A handle is the name of a driver's pod."""

    submitting: ClassVar[dict[str, Any]] = {"track_driver_via_k8s_api": True}  # makes spark-submit return at once

    def __init__(self, make_hook: MakeHook) -> None:
        self._make_hook = make_hook

    @staticmethod
    def settings(token: str) -> dict[str, str]:
        return {_POD_NAME: f"lockstep-{token}-driver"}

    def find(self, submitted: Any, token: str) -> str | None:
        """The handle of a job that a hook has submitted."""
        return str(submitted._conf[_POD_NAME])

    def state(self, handle: str) -> JobState:
        from airflow.providers.apache.spark.hooks.spark_submit import kube_client  # type: ignore[attr-defined]
        from urllib3.exceptions import HTTPError

        namespace = self._make_hook()._connection["namespace"]
        try:
            pod = kube_client.get_kube_client().read_namespaced_pod(handle, namespace)
        except kube_client.ApiException as error:
            return JobState.FAILED if error.status == 404 else _unknown(handle, error)
        except HTTPError as error:  # no connection
            return _unknown(handle, error)
        return {"Succeeded": JobState.SUCCEEDED, "Failed": JobState.FAILED}.get(pod.status.phase, JobState.RUNNING)

    def cancel(self, handle: str) -> None:
        hook = self._make_hook()
        hook._kubernetes_driver_pod = handle
        hook._delete_driver_pod()


def _unknown(handle: str, error: Exception) -> JobState:
    _log.warning("the state of job %s is unknown: %s", handle, type(error).__name__)
    return JobState.RUNNING


def ship(packages: Iterable[str], folder: Path) -> Path:
    """Zip top-level `packages` into `folder`, for --py-files. Raises `InvalidPipeline` for one that can't be found."""
    archive = folder / "lockstep-code.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for package in dict.fromkeys(packages):
            for file, name in _files(package):
                target.write(file, name)
    return archive


def file_of(module: str) -> Path:
    """The file that a module is loaded from. Raises `InvalidPipeline`."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise InvalidPipeline(f"module {module} can't be found: put its package's parent folder on PYTHONPATH")
    return Path(spec.origin)


def _files(package: str) -> Iterator[tuple[Path, str]]:
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise InvalidPipeline(f"package {package} can't be found: put its parent folder on PYTHONPATH")
    if spec.submodule_search_locations is None:
        path = file_of(package)
        yield path, path.name
        return
    seen: set[str] = set()  # of a package in several folders the first one is imported
    for location in map(Path, spec.submodule_search_locations):
        for file in sorted(location.rglob("*")):
            name = f"{package}/{file.relative_to(location).as_posix()}"
            if file.suffix in _SHIPPED and file.is_file() and name not in seen:
                seen.add(name)
                yield file, name


@dataclass(frozen=True)
class Submission(Mapping[str, Any]):
    """Arguments of Airflow's SparkSubmitHook. Airflow stores the text of a mapped task's arguments with its DAG, where
    anyone who can read the DAG can read them: the text of this class doesn't contain them."""

    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arguments)

    def __len__(self) -> int:
        return len(self.arguments)


class Launcher(Protocol):
    """Runs the staging job of a request; `cancel` ends it from another thread."""

    reference: str  #: `module:name` of the pipeline for another process, "" for this one

    @property
    def jobs(self) -> Jobs | None: ...

    def __call__(self, request_uri: str) -> None: ...

    def cancel(self) -> None: ...


def launcher(
    pipeline: Pipeline, conn_id: str, submit: Mapping[str, Any], job_launcher: JobLauncher | None = None
) -> Launcher:
    """The launcher for the Connection, or for the user's `job_launcher`. `submit`: further arguments of Airflow's
    SparkSubmitHook."""
    if job_launcher is not None:
        return OwnLauncher(pipeline, job_launcher)
    conn = connection(conn_id)
    if _is_connect(conn):
        return ConnectLauncher(pipeline, conn_id)
    return SubmitLauncher(pipeline, conn_id, conn, submit)


def asking(conn_id: str) -> AskSpark:
    """A function that runs audits on Spark Connect; raises `NotConfigured` if the Connection is to another Spark."""

    def ask(
        wal: SealedWal, output: str, audits: Sequence[Query | Function], parameters: Mapping[str, object]
    ) -> Mapping[str, Found]:
        if not _is_connect(connection(conn_id)):
            raise NotConfigured(
                f"Connection {conn_id} isn't to a Spark Connect server, and no other Spark can run audits"
            )
        from lockstep.compute.auditing import ask_spark

        return ask_spark(_url(conn_id), wal, output, audits, parameters)

    return ask


def _is_connect(conn: Connection) -> bool:
    return conn.conn_type in _CONNECT_TYPES or (conn.host or "").startswith("sc://")


def _url(conn_id: str) -> str:
    """`sc://host:port/;…`; may contain a token, so it must not be shown."""
    from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook

    return str(SparkConnectHook(conn_id).get_connection_url())


class PackLauncher:
    """Runs concurrent jobs, each by a launcher of its own."""

    def __init__(
        self, pipeline: Pipeline, conn_id: str, submit: Mapping[str, Any], own: JobLauncher | None = None
    ) -> None:
        self._make = partial(launcher, pipeline, conn_id, submit, own)
        first = self._make()
        self.reference = first.reference
        #: one driver on this machine uses all of it; a cluster limits the number of its drivers itself
        self.jobs = 1 if isinstance(first, SubmitLauncher) and first.is_local else None
        self._running: list[Launcher] = []

    def __call__(self, request_uri: str) -> None:
        running = self._make()
        self._running.append(running)
        try:
            running(request_uri)
        finally:
            self._running.remove(running)

    def cancel(self) -> None:
        for running in list(self._running):
            running.cancel()


class ConnectLauncher:
    """Stages through Spark Connect: host `sc://…`, conn_type `sc` or `spark_connect`."""

    reference = ""
    jobs = None  # this process is the driver: results of the transform and counts pass through it

    def __init__(self, pipeline: Pipeline, conn_id: str) -> None:
        self._pipeline = pipeline
        self._conn_id = conn_id
        self._running: tuple[Any, int] | None = None

    def __call__(self, request_uri: str) -> None:
        from lockstep.compute.stage import launch_request

        def note(session: Any, token: int) -> None:
            self._running = session, token

        launch_request(request_uri, _url(self._conn_id), self._pipeline, AirflowConnections(), note)

    def cancel(self) -> None:
        from lockstep.spark.session import cancel

        if self._running is not None:
            cancel(*self._running)


class SubmitLauncher:
    """Stages through spark-submit, by the provider's SparkSubmitHook: for `local[*]`, `spark://…`, `yarn` and
    `k8s://…`."""

    def __init__(self, pipeline: Pipeline, conn_id: str, conn: Connection, submit: Mapping[str, Any]) -> None:
        self.reference = pipeline.reference()
        self._sources = pipeline.sources
        self._conn_id = conn_id
        self.master = _master_of(conn)
        self._arguments = dict(submit)
        self._extra: Mapping[str, Any] = conn.extra_dejson
        self._hook: Any = None

    @property
    def jobs(self) -> Jobs | None:
        """Jobs in cluster mode whose end the cluster can be asked for; else None."""
        mode = self._arguments.get("deploy_mode") or self._extra.get("deploy-mode")
        if mode != "cluster" or "post_submit_commands" in self._arguments:  # which have to run at the end of the job
            return None
        if self.master.startswith("yarn"):
            return ClusterJobs(self, YarnJobs) if self._extra.get(_RESOURCE_MANAGER) else None
        namespace = self._extra.get("namespace") or (self._arguments.get("conf") or {}).get(_NAMESPACE)
        return ClusterJobs(self, KubernetesJobs) if self.master.startswith("k8s") and namespace else None

    def __call__(self, request_uri: str) -> None:
        self.submit(request_uri)

    def submit(self, request_uri: str, settings: Mapping[str, str] = MappingProxyType({}), **tracking: Any) -> Any:
        """Run spark-submit until it ends, and return its hook. With `tracking` arguments it ends once the job is
        submitted. `settings`: of Spark, unless the user sets them."""
        with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
            code = [str(ship(_packages(self.reference), Path(folder))), self._arguments.get("py_files", "")]
            job_arguments = {"py_files": ",".join(filter(None, code)), "application_args": ["--request", request_uri]}
            hook = self.make_hook(settings, **job_arguments, **tracking)
            hook.environment = self._environment(read_request(request_uri).sources)
            self._hook = hook  # from now on `cancel` can reach it
            try:
                self._hook.submit(str(self._arguments.get("application") or file_of(APPLICATION)))
            except AirflowException as error:
                with suppress(FileNotFoundError):  # what the application wrote before it died
                    raise read_error(request_uri) from error
                _log.error("%s", error)  # with the driver's last lines
                reason = (
                    re.sub(r"(?s)^Cannot execute: .*?\. (?=Error code is: )", "", str(error)).strip().split("\n")[0]
                )
                raise StageFailed(f"spark-submit failed, see this task's log: {reason}") from error
            return self._hook

    def cancel(self) -> None:
        if self._hook is not None:
            self._hook.on_kill()

    def make_hook(self, settings: Mapping[str, str] = MappingProxyType({}), **arguments: Any) -> Any:
        """Airflow's hook for the Connection, with the user's arguments overridden by these."""
        from lockstep.airflow._submitting import SubmitHook

        usual = {name: value for name, value in self._arguments.items() if name != "application"}
        conf = {**(_LOCAL_CONF if self.is_local else {}), **settings, **(usual.pop("conf", None) or {})}
        hook_arguments = {"name": f"lockstep {self.reference}", **usual, **arguments}
        hook = SubmitHook(conn_id=self._conn_id, conf=conf, **hook_arguments)
        hook._log = DriverLog(hook.log)
        return hook

    @property
    def is_local(self) -> bool:
        return self.master.startswith("local")

    def _environment(self, ranges: Mapping[str, SourceRange]) -> dict[str, str]:
        """Environment of spark-submit: our Python, also for executors on this machine.

        A driver on this machine gets the logins of the sources' Connections, under the command line's names, and no
        other login of the worker. One in a cluster inherits nothing from here: its pod or container must have them.
        """
        here = str(Path(sys.executable).parent)
        environment = {**for_driver(os.environ), "PATH": os.pathsep.join([here, os.environ.get("PATH", "")])}
        sources = [planned_source(name, planned.spec, self._sources.get(name)) for name, planned in ranges.items()]
        variables = variables_of(id for source in sources for id in source.connections)
        environment |= {variable: str(AirflowConnections()[id]) for variable, id in variables.items()}
        if self.is_local or self.master.startswith("spark://"):
            environment.setdefault("PYSPARK_PYTHON", sys.executable)
        return environment


class DriverLog:
    """A hook's logger that logs the driver's lines at DEBUG. They come without arguments; the hook's own lines (the
    command, the application's id) have some."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def info(self, event: str, *arguments: Any, **keywords: Any) -> None:
        (self._log.info if arguments or keywords else self._log.debug)(event, *arguments, **keywords)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class ClusterJobs:
    """Jobs of spark-submit that a cluster runs."""

    def __init__(self, launcher: SubmitLauncher, kind: type[YarnJobs | KubernetesJobs]) -> None:
        self._launcher = launcher
        self._cluster = kind(launcher.make_hook)

    def launch(self, request_uri: str) -> str:
        token = token_of(read_request(request_uri))
        submitted = self._launcher.submit(request_uri, self._cluster.settings(token), **self._cluster.submitting)
        handle = self._cluster.find(submitted, token)
        if handle is None:
            raise StageFailed("spark-submit has ended, and the cluster doesn't know its job: see this task's log")
        _log.info("launched job %s", handle)
        return handle

    def state(self, handle: str) -> JobState:
        return self._cluster.state(handle)

    def cancel_job(self, handle: str) -> None:
        self._cluster.cancel(handle)


class OwnLauncher:
    """Stages by the user's launcher, which is polled for the job's state. The state isn't trusted: the seal requires a
    result."""

    def __init__(self, pipeline: Pipeline, jobs: JobLauncher) -> None:
        self.reference = pipeline.reference()
        self._jobs = jobs
        self._handle: str | None = None
        self._cancelled = False

    @property
    def jobs(self) -> Jobs | None:
        return self if getattr(self._jobs, "detached", False) else None

    def __call__(self, request_uri: str) -> None:
        with self._launched(request_uri) as handle:
            while (state := self.state(handle)) is JobState.RUNNING:
                time.sleep(POLL_SECONDS)
        if state is not JobState.SUCCEEDED:
            with suppress(FileNotFoundError):
                raise read_error(request_uri)
            raise StageFailed(f"job {handle} of {type(self._jobs).__name__} failed without a message: see its own log")

    def launch(self, request_uri: str) -> str:
        with self._launched(request_uri) as handle:
            return handle

    @contextmanager
    def _launched(self, request_uri: str) -> Iterator[str]:
        """Yield the job's handle; its files exist until the block ends."""
        token = token_of(read_request(request_uri))
        with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
            code = ship(_packages(self.reference), Path(folder))
            application = Application(file_of(APPLICATION), code, f"lockstep {self.reference}")
            self._handle = handle = self._jobs.launch(application, ["--request", request_uri], token)
            _log.info("launched job %s", handle)
            if self._cancelled:
                self._jobs.cancel(handle)
            yield handle

    def state(self, handle: str) -> JobState:
        return JobState(self._jobs.state(handle))

    def cancel_job(self, handle: str) -> None:
        self._jobs.cancel(handle)

    def cancel(self) -> None:
        self._cancelled = True
        if self._handle is not None:
            self._jobs.cancel(self._handle)


def token_of(request: StageRequest) -> str:
    """Token of one execution. The folder contains the deployment's id, as another ledger may have the same token."""
    return f"{sha256(request.folder.encode()).hexdigest()[:12]}-{request.token}"


def _packages(reference: str) -> tuple[str, ...]:
    """Top-level packages that a driver of the pipeline imports."""
    return APPLICATION.partition(".")[0], reference.partition(":")[0].partition(".")[0]


def _master_of(conn: Connection) -> str:
    """The master as SparkSubmitHook reads it: the scheme may be in conn_type, the port may be separate."""
    host = conn.host or ""
    has_master = conn.conn_type == "spark" and ("://" in host or not conn.port)
    return (host if has_master else f"{conn.conn_type}://{host}") + (f":{conn.port}" if conn.port else "")
