"""How a task gets its job to Spark: through Spark Connect in this process, or, to stage, through spark-submit or a
launcher of the user's.

All run the same staging code. Nothing is taken up again after a retry or a clear: each execution is a new job in a
folder of its own, so the provider's durable resume, which would skip the job, is not used. `jobs` of a launcher are
those that outlive the task's process, so that it may leave one to itself and come back.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from airflow.sdk import Connection

from lockstep.airflow._airflow import AirflowException
from lockstep.airflow._base_operator import DriverLog
from lockstep.airflow._cluster_jobs import KubernetesJobs, YarnJobs
from lockstep.airflow._shipping import file_of, ship
from lockstep.airflow.connections import AirflowConnections, connection
from lockstep.audits.audit import Function, Query
from lockstep.audits.evaluate import AskSpark, Found
from lockstep.connections.environment import for_driver, variables_of
from lockstep.epoch import SourceRange
from lockstep.errors import NotConfigured, StageFailed
from lockstep.launchers import Application, JobLauncher, JobState
from lockstep.pipeline import Pipeline
from lockstep.protocol.left_job import Jobs
from lockstep.sources.base import planned_source
from lockstep.wal.reading import SealedWal
from lockstep.wal.request import StageRequest, read_error, read_request

_log = logging.getLogger(__name__)
APPLICATION = "lockstep.compute.submit.stage_epoch"
POLL_SECONDS = 5.0  #: between looks at a job of a user's launcher
_RESOURCE_MANAGER = "yarn_resourcemanager_webapp_address"  #: key of the Connection's extra, as the provider has it
_NAMESPACE = "spark.kubernetes.namespace"
_CONNECT_TYPES = frozenset({"sc", "spark_connect"})
#: A driver of our own machine needs no other address, and a web page for seconds nobody needs at all.
_LOCAL_CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}


@dataclass(frozen=True)
class Submission(Mapping[str, Any]):
    """Arguments of Airflow's SparkSubmitHook. Airflow stores the arguments of a mapped task with its DAG, where whoever
    reads the DAG reads them: of what it can't serialise the text, and this one's has nothing in it."""

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


def launcher(pipeline: Pipeline, conn_id: str, submit: Mapping[str, Any], own: JobLauncher | None = None) -> Launcher:
    """The launcher that the Connection asks for, or else the user's `own`. `submit`: further arguments of Airflow's
    SparkSubmitHook."""
    if own is not None:
        return OwnLauncher(pipeline, own)
    found = connection(conn_id)
    if _is_connect(found):
        return ConnectLauncher(pipeline, conn_id)
    return SubmitLauncher(pipeline, conn_id, found, submit)


def asking(conn_id: str) -> AskSpark:
    """Asks audits of Spark Connect. Raises `NotConfigured`, when it asks, if the Connection is to another Spark."""

    def ask(
        wal: SealedWal, output: str, audits: Sequence[Query | Function], parameters: Mapping[str, object]
    ) -> Mapping[str, Found]:
        if not _is_connect(connection(conn_id)):
            raise NotConfigured(f"Connection {conn_id} is to no Spark Connect server, and no other Spark asks audits")
        from lockstep.compute.auditing import ask_spark

        return ask_spark(_url(conn_id), wal, output, audits, parameters)

    return ask


def _is_connect(found: Connection) -> bool:
    return found.conn_type in _CONNECT_TYPES or (found.host or "").startswith("sc://")


def _url(conn_id: str) -> str:
    """`sc://host:port/;…`; may hold a token, so it is for nobody's eyes."""
    from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook

    return str(SparkConnectHook(conn_id).get_connection_url())


class PackLauncher:
    """Jobs side by side, each by a launcher of its own."""

    def __init__(
        self, pipeline: Pipeline, conn_id: str, submit: Mapping[str, Any], own: JobLauncher | None = None
    ) -> None:
        self._make = partial(launcher, pipeline, conn_id, submit, own)
        first = self._make()
        self.reference = first.reference
        #: a driver of our own machine would take all of it, and those of a cluster are as many as it has room for
        self.jobs = 1 if isinstance(first, SubmitLauncher) and first.is_local else None
        self._running: list[Launcher] = []

    def __call__(self, request_uri: str) -> None:
        one = self._make()
        self._running.append(one)
        try:
            one(request_uri)
        finally:
            self._running.remove(one)

    def cancel(self) -> None:
        for one in list(self._running):
            one.cancel()


class ConnectLauncher:
    """Spark Connect: host `sc://…`, conn_type `sc` or `spark_connect`."""

    reference = ""
    jobs = None  # this process is the driver: what the transform asks and what is counted goes through it

    def __init__(self, pipeline: Pipeline, conn_id: str) -> None:
        self._pipeline = pipeline
        self._conn_id = conn_id
        self._running: tuple[Any, int] | None = None

    def __call__(self, request_uri: str) -> None:
        from lockstep.compute.stage import launch_request

        launch_request(request_uri, _url(self._conn_id), self._pipeline, AirflowConnections(), self._note)

    def _note(self, session: Any, token: int) -> None:
        self._running = session, token

    def cancel(self) -> None:
        from lockstep.spark.session import cancel

        if self._running is not None:
            cancel(*self._running)


class SubmitLauncher:
    """spark-submit for `local[*]`, `spark://…`, `yarn` and `k8s://…`, by the provider's SparkSubmitHook."""

    def __init__(self, pipeline: Pipeline, conn_id: str, found: Connection, submit: Mapping[str, Any]) -> None:
        self.reference = pipeline.reference()
        self._sources = pipeline.sources
        self._conn_id = conn_id
        self.master = _master_of(found)
        self._arguments = dict(submit)
        self._extra: Mapping[str, Any] = found.extra_dejson
        self._hook: Any = None

    @property
    def jobs(self) -> Jobs | None:
        """Those in cluster mode of whose end the cluster can be asked."""
        mode = self._arguments.get("deploy_mode") or self._extra.get("deploy-mode")
        if mode != "cluster" or "post_submit_commands" in self._arguments:  # which are for the end of the job
            return None
        if self.master.startswith("yarn"):
            return ClusterJobs(self, YarnJobs) if self._extra.get(_RESOURCE_MANAGER) else None
        namespace = self._extra.get("namespace") or (self._arguments.get("conf") or {}).get(_NAMESPACE)
        return ClusterJobs(self, KubernetesJobs) if self.master.startswith("k8s") and namespace else None

    def __call__(self, request_uri: str) -> None:
        self.submit(request_uri)

    def submit(self, request_uri: str, settings: Mapping[str, str] = MappingProxyType({}), **tracking: Any) -> Any:
        """Run spark-submit until it ends, and return its hook: with the job, or, `tracking` it, once that is handed
        in. `settings`: of Spark, unless the user says otherwise."""
        with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
            hook = self._submitting(request_uri, Path(folder), settings, tracking)
            hook.environment = self._environment(read_request(request_uri).sources)
            self._hook = hook
            try:
                self._hook.submit(str(self._application))
            except AirflowException as error:
                self._raise_told(request_uri)
                _log.error("%s", error)  # with the driver's last lines
                reason = (
                    re.sub(r"(?s)^Cannot execute: .*?\. (?=Error code is: )", "", str(error)).strip().split("\n")[0]
                )
                raise StageFailed(f"spark-submit failed, see this task's log: {reason}") from error
            return self._hook

    def cancel(self) -> None:
        if self._hook is not None:
            self._hook.on_kill()

    def _submitting(
        self, request_uri: str, folder: Path, settings: Mapping[str, str], tracking: Mapping[str, Any]
    ) -> Any:
        self._application = self._arguments.get("application") or file_of(APPLICATION)
        code = [str(ship(_packages(self.reference), folder)), self._arguments.get("py_files", "")]
        given = {"py_files": ",".join(filter(None, code)), "application_args": ["--request", request_uri]}
        return self.make_hook(settings, **given, **tracking)

    def make_hook(self, settings: Mapping[str, str] = MappingProxyType({}), **arguments: Any) -> Any:
        """Of Airflow's, for the Connection, with the user's arguments and over them these."""
        from lockstep.airflow._submitting import SubmitHook

        usual = {name: value for name, value in self._arguments.items() if name != "application"}
        conf = {**(_LOCAL_CONF if self.is_local else {}), **settings, **(usual.pop("conf", None) or {})}
        named = {"name": f"lockstep {self.reference}", **usual, **arguments}
        hook = SubmitHook(conn_id=self._conn_id, conf=conf, **named)
        hook._log = DriverLog(hook.log)
        return hook

    @property
    def is_local(self) -> bool:
        return self.master.startswith("local")

    def _environment(self, ranges: Mapping[str, SourceRange]) -> dict[str, str]:
        """spark-submit stands beside our Python; where driver and executors share its machine they share it too.

        A driver on this machine gets the sources' connections this way, under the names that the command line uses, and
        no other login of the worker's; one in a cluster inherits nothing from here, and its pod or container has to
        have them.
        """
        here = str(Path(sys.executable).parent)
        environment = {**for_driver(os.environ), "PATH": os.pathsep.join([here, os.environ.get("PATH", "")])}
        sources = [planned_source(name, planned.spec, self._sources.get(name)) for name, planned in ranges.items()]
        variables = variables_of(id for source in sources for id in source.connections)
        environment |= {variable: str(AirflowConnections()[id]) for variable, id in variables.items()}
        if self.is_local or self.master.startswith("spark://"):
            environment.setdefault("PYSPARK_PYTHON", sys.executable)
        return environment

    def _raise_told(self, request_uri: str) -> None:
        """Raise what the application wrote down before it died, if it got to."""
        with suppress(FileNotFoundError):
            raise read_error(request_uri)


class ClusterJobs:
    """Those of spark-submit that a cluster runs."""

    def __init__(self, submitting: SubmitLauncher, kind: type[YarnJobs | KubernetesJobs]) -> None:
        self._submitting = submitting
        self._cluster = kind(submitting.make_hook)

    def launch(self, request_uri: str) -> str:
        token = token_of(read_request(request_uri))
        submitted = self._submitting.submit(request_uri, self._cluster.settings(token), **self._cluster.submitting)
        handle = self._cluster.find(submitted, token)
        if handle is None:
            raise StageFailed("spark-submit has ended, and the cluster knows nothing of its job: see this task's log")
        _log.info("launched job %s", handle)
        return handle

    def state(self, handle: str) -> JobState:
        return self._cluster.state(handle)

    def cancel_job(self, handle: str) -> None:
        self._cluster.cancel(handle)


class OwnLauncher:
    """By a launcher of the user's, which is asked for the job's state until it has ended. No state is believed: a job
    that succeeded has left a result, which the seal looks for."""

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
            raise StageFailed(f"job {handle} of {type(self._jobs).__name__} failed without a word: see its own log")

    def launch(self, request_uri: str) -> str:
        with self._launched(request_uri) as handle:
            return handle

    @contextmanager
    def _launched(self, request_uri: str) -> Iterator[str]:
        """The job's handle; its files last as long as the block."""
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
    """Of its execution alone: a ledger's tokens are other ledgers', too, and the folder has the deployment's id."""
    return f"{sha256(request.folder.encode()).hexdigest()[:12]}-{request.token}"


def _packages(reference: str) -> tuple[str, ...]:
    """Top-level ones, that a driver of the pipeline imports."""
    return APPLICATION.partition(".")[0], reference.partition(":")[0].partition(".")[0]


def _master_of(found: Connection) -> str:
    """As SparkSubmitHook reads it: the scheme may stand in conn_type, the port may stand apart."""
    host = found.host or ""
    whole = found.conn_type == "spark" and ("://" in host or not found.port)
    return (host if whole else f"{found.conn_type}://{host}") + (f":{found.port}" if found.port else "")
