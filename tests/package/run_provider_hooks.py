"""Run by the Python of an environment that has the real providers: each launcher of docs/how-to/launchers.md, and the
logins of docs/how-to/logins.md, by the provider's own hook and its client. Only what these would speak to is a stub on
loopback. The last line that is printed says what went wrong, as JSON: by login, then by launcher for each page.

python run_provider_hooks.py PAGE…
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from threading import Thread
from traceback import format_exc
from types import ModuleType
from typing import Any, ClassVar
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

from psycopg2.extensions import parse_dsn

from lockstep.airflow.connections import AirflowConnections
from lockstep.connections.mariadb.dsn import parse_dsn as parse_uri
from lockstep.connections.object_store.client import S3Login as Keys
from lockstep.errors import LoginUnavailable
from lockstep.launchers import Application, JobLauncher, JobState

RUNNING, SUCCEEDED, FAILED = JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED
ARGUMENTS = ["--request", "s3a://staging/x/_request.json"]


@dataclass(frozen=True)
class Asked:
    method: str
    path: list[str]
    query: dict[str, str]
    host: str
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def form(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(self.body.decode()).items()}


Answer = tuple[int, Any]  #: its status, and what its body is: JSON, or a text as it is


class Stub(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer: Callable[[Asked], Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.answer = answer

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answering(BaseHTTPRequestHandler):
    server: Stub
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        host = str(self.headers["Host"])
        path = [part for part in url.path.split("/") if part]
        status, said = self.server.answer(Asked(self.command, path, query, host, self._body()))
        body = said.encode() if isinstance(said, str) else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/xml" if isinstance(said, str) else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = _answer

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def stub(answer: Callable[[Asked], Answer]) -> Iterator[Stub]:
    server = Stub(answer)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def connection(conn_id: str, **fields: Any) -> None:
    os.environ[f"AIRFLOW_CONN_{conn_id.upper()}"] = json.dumps(fields)


# --- launchers ---


class Service:
    """What a launcher speaks to: the jobs that it has, as far as it is asked for them."""

    arguments: ClassVar[dict[str, Any]]  #: of the launcher
    waiting: ClassVar[tuple[str, ...]]
    succeeded: ClassVar[str]
    failed: ClassVar[tuple[str, ...]]
    keyed: ClassVar[bool] = True  #: asked twice by one token, it has one job
    uploads: ClassVar[bool] = False

    def __init__(self) -> None:
        self.jobs: dict[str, Any] = {}  #: as each was asked for, by its handle
        self.states: dict[str, str] = {}
        self.ended: list[str] = []  #: those that were cancelled
        self.files: dict[str, bytes] = {}
        self.refuses = False

    def connect(self, url: str) -> None:
        """Have the launcher's Connection lead there."""
        raise NotImplementedError

    @contextmanager
    def served(self) -> Iterator[None]:
        def answer(asked: Asked) -> Answer:
            return (403, {"message": "not you"}) if self.refuses else self.answer(asked)

        with stub(answer) as server:
            self.connect(server.url)
            yield

    def answer(self, asked: Asked) -> Answer:
        raise NotImplementedError

    def told(self, job: Any) -> list[str]:
        """The arguments of a job's script."""
        raise NotImplementedError

    def keep(self, handle: str, job: Any, state: str) -> None:
        self.jobs[handle] = job
        self.states[handle] = state


class Kubernetes(Service):
    arguments = {"image": "orders:1", "namespace": "jobs", "service_account": "spark", "secret": "lockstep"}
    waiting: ClassVar[tuple[str, ...]] = ("", "SUBMITTED", "RUNNING")
    succeeded: ClassVar[str] = "COMPLETED"
    failed: ClassVar[tuple[str, ...]] = ("FAILED", "SUBMISSION_FAILED")
    resource = ("sparkoperator.k8s.io/v1beta2", "SparkApplication", "sparkapplications")  #: version, kind and plural
    part: ClassVar[list[str]] = []  #: of a job, that its state is read from
    deletion: ClassVar[dict[str, str]] = {}  #: what has to be said with it

    def connect(self, url: str) -> None:
        named = {"name": "stub", "cluster": {"server": url}}
        context = {"name": "stub", "context": {"cluster": "stub", "user": "stub"}}
        config = {"apiVersion": "v1", "kind": "Config", "clusters": [named], "contexts": [context]}
        config |= {"users": [{"name": "stub", "user": {"token": "t"}}], "current-context": "stub"}
        connection("kubernetes_default", conn_type="kubernetes", extra={"kube_config": json.dumps(config)})

    def answer(self, asked: Asked) -> Answer:
        version, kind, plural = self.resource
        assert asked.path[:5] == ["apis", *version.split("/"), "namespaces", "jobs"], asked
        match asked.method, asked.path[5:]:
            case "POST", [called] if called == plural:
                job = asked.json
                name = job["metadata"]["name"]
                if name in self.jobs:
                    return 409, {"kind": "Status", "reason": "AlreadyExists", "code": 409}
                assert (job["apiVersion"], job["kind"]) == (version, kind)
                assert re.fullmatch("[a-z]([-a-z0-9]{0,61}[a-z0-9])?", name), "a label of DNS"
                self.keep(name, job, "")
                return 201, job
            case "GET", [called, name, *part] if (called, part) == (plural, self.part) and name in self.jobs:
                return 200, {**self.jobs[name], **self.shown(self.states[name])}
            case "DELETE", [called, name] if called == plural and name in self.jobs:
                assert self.deletion.items() <= asked.query.items()
                self.ended.append(name)
                del self.jobs[name]
                return 200, {"kind": "Status", "status": "Success"}
        return 404, {"kind": "Status", "reason": "NotFound", "code": 404}

    def shown(self, state: str) -> dict[str, Any]:
        return {"status": {"applicationState": {"state": state}}} if state else {}

    def told(self, job: Any) -> list[str]:
        return list(job["spec"]["arguments"])


class KubernetesJobs(Kubernetes):
    """Of clients of Spark Connect, by Kubernetes itself."""

    arguments = {"image": "orders:1", "namespace": "jobs", "secret": "lockstep"}
    waiting = ("", "active", "FailureTarget", "retried")
    succeeded, failed = "Complete", ("Failed",)
    resource, part, deletion = ("batch/v1", "Job", "jobs"), ["status"], {"propagationPolicy": "Background"}

    def shown(self, state: str) -> dict[str, Any]:
        """As the API has it: a job that runs has pods at work and no condition that is true."""
        if state in ("Complete", "Failed", "FailureTarget"):
            ended = {"succeeded": 1} if state == "Complete" else {"failed": 1}
            return {"status": {"conditions": [{"type": state, "status": "True"}], **ended}}
        if state == "retried":
            return {"status": {"active": 1, "failed": 1, "conditions": [{"type": "Failed", "status": "False"}]}}
        return {"status": {state: 1} if state else {}}

    def told(self, job: Any) -> list[str]:
        [container] = job["spec"]["template"]["spec"]["containers"]
        assert container["command"][:3] == ["python", "-m", "lockstep.compute.submit.stage_epoch"]
        return list(container["command"][3:])


class Emr(Service):
    arguments = {
        "application_id": "00f1",
        "role": "arn:aws:iam::123456789012:role/job",
        "bucket": "code",
        "environment": "s3://code/e.tar.gz",
    }
    waiting = ("SUBMITTED", "PENDING", "SCHEDULED", "QUEUED", "RUNNING")
    succeeded, failed, uploads = "SUCCESS", ("FAILED", "CANCELLING", "CANCELLED"), True

    def connect(self, url: str) -> None:
        aws(endpoint_url=url)

    def answer(self, asked: Asked) -> Answer:
        match asked.method, asked.path:
            case "PUT", ["code", *key]:
                self.files["/".join(key)] = asked.body
                return 200, ""
            case "POST", ["applications", "00f1", "jobruns"]:
                job = asked.json
                known = [handle for handle, one in self.jobs.items() if one["clientToken"] == job["clientToken"]]
                handle = known[0] if known else f"00r{len(self.jobs)}"
                if not known:
                    self.keep(handle, job, "SUBMITTED")
                return 200, {"applicationId": "00f1", "jobRunId": handle, "arn": "arn:aws:emr-serverless:::/x"}
            case "GET", ["applications", "00f1", "jobruns", handle] if handle in self.jobs:
                run = {"applicationId": "00f1", "jobRunId": handle, "state": self.states[handle], "stateDetails": ""}
                return 200, {"jobRun": run}
            case "DELETE", ["applications", "00f1", "jobruns", handle] if handle in self.jobs:
                self.ended.append(handle)
                return 200, {"applicationId": "00f1", "jobRunId": handle}
        return 404, {"message": f"no {asked.path}"}

    def told(self, job: Any) -> list[str]:
        return list(job["jobDriver"]["sparkSubmit"]["entryPointArguments"])


class Databricks(Service):
    arguments = {
        "script": "/Volumes/x/stage_epoch.py",
        "cluster": {"spark_version": "17.3.x-scala2.13", "num_workers": 1},
        "libraries": [{"whl": "/Volumes/x.whl"}],
    }
    waiting = ("QUEUED", "PENDING", "RUNNING", "TERMINATING")
    succeeded = "TERMINATED SUCCESS"
    failed = ("TERMINATED FAILED", "TERMINATED CANCELED", "INTERNAL_ERROR FAILED", "SKIPPED")

    def connect(self, url: str) -> None:
        to = urlsplit(url)
        fields = {"host": to.hostname, "port": to.port, "schema": "http", "password": "t"}
        connection("databricks_default", conn_type="databricks", **fields)

    def answer(self, asked: Asked) -> Answer:
        assert asked.path[:4] == ["api", "2.2", "jobs", "runs"], asked
        match asked.method, asked.path[4:]:
            case "POST", ["submit"]:
                job = asked.json
                assert len(job["idempotency_token"]) <= 64
                known = [one for one, had in self.jobs.items() if had["idempotency_token"] == job["idempotency_token"]]
                number = known[0] if known else str(455644833 + len(self.jobs))
                if not known:
                    self.keep(number, job, "PENDING")
                return 200, {"run_id": int(number)}
            case "GET", ["get"] if asked.query["run_id"] in self.jobs:
                number = asked.query["run_id"]
                life, _, result = self.states[number].partition(" ")
                state = {"life_cycle_state": life, "state_message": "", "user_cancelled_or_timedout": False}
                return 200, {"run_id": int(number), "state": {**state, **({"result_state": result} if result else {})}}
            case "POST", ["cancel"] if str(asked.json["run_id"]) in self.jobs:
                self.ended.append(str(asked.json["run_id"]))
                return 200, {}
        return 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": f"no {asked.path}"}

    def told(self, job: Any) -> list[str]:
        return list(job["tasks"][0]["spark_python_task"]["parameters"])


class Livy(Service):
    """As https://livy.apache.org/docs/latest/rest-api.html says."""

    arguments = {"script": "hdfs:///code/stage_epoch.py", "code": "hdfs:///code/lockstep-code.zip"}
    waiting = ("not_started", "starting", "recovering", "running")
    succeeded, failed, keyed = "success", ("error", "dead", "killed"), False
    fields: ClassVar[set[str]] = {"file", "proxyUser", "className", "args", "jars", "pyFiles", "files", "archives"}
    fields |= {"driverMemory", "driverCores", "executorMemory", "executorCores", "numExecutors"}
    fields |= {"queue", "name", "conf"}

    def connect(self, url: str) -> None:
        to = urlsplit(url)
        connection("livy_default", conn_type="livy", host=to.hostname, port=to.port, schema="http")

    def answer(self, asked: Asked) -> Answer:
        match asked.method, asked.path:
            case "POST", ["batches"]:
                job = asked.json
                if unknown := job.keys() - self.fields:
                    return 400, {"msg": f"no such field: {unknown}"}
                if any(one["name"] == job["name"] for one in self.jobs.values()):
                    return 400, {"msg": f"Rejected, Reason: Duplicate session name: {job['name']}"}
                assert job["file"] == self.arguments["script"] and job["pyFiles"] == [self.arguments["code"]]
                number = str(len(self.jobs))
                self.keep(number, job, "starting")
                return 201, self.view(number)
            case "GET", ["batches", number] if number in self.jobs:
                return 200, self.view(number)
            case "GET", ["batches", number, "state"] if number in self.jobs:
                return 200, {"id": int(number), "state": self.states[number]}
            case "DELETE", ["batches", number] if number in self.jobs:
                self.ended.append(number)
                return 200, {"msg": "deleted"}
        return 404, {"msg": f"Session '{asked.path[1:2]}' not found."}

    def view(self, number: str) -> dict[str, Any]:
        nothing: dict[str, Any] = {"owner": None, "proxyUser": None, "appId": None, "log": []}
        urls = {"driverLogUrl": None, "sparkUiUrl": None}
        own = {"id": int(number), "name": self.jobs[number]["name"], "state": self.states[number]}
        return {**nothing, **own, "appInfo": urls}

    def told(self, job: Any) -> list[str]:
        return list(job["args"])


class Dataproc(Service):
    """By gRPC, which the client speaks: of its channel, only where it leads is another place. Files go by HTTP."""

    arguments = {"project_id": "shop", "region": "europe-west1", "cluster": "spark", "bucket": "code"}
    waiting = ("PENDING", "SETUP_DONE", "RUNNING", "CANCEL_PENDING", "CANCEL_STARTED")
    succeeded, failed, uploads = "DONE", ("ERROR", "CANCELLED", "ATTEMPT_FAILURE"), True

    def connect(self, url: str) -> None:
        os.environ["STORAGE_EMULATOR_HOST"] = url
        rsa = import_module("cryptography.hazmat.primitives.asymmetric.rsa")
        forms: Any = import_module("cryptography.hazmat.primitives.serialization")
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()).decode()
        account = {"type": "service_account", "project_id": "shop", "private_key_id": "1", "private_key": pem}
        account |= {"client_email": "a@shop.iam.gserviceaccount.com", "client_id": "1", "token_uri": f"{url}/token"}
        connection(
            "google_cloud_default", conn_type="google_cloud_platform", extra={"keyfile_dict": json.dumps(account)}
        )

    @contextmanager
    def served(self) -> Iterator[None]:
        import grpc

        types: Any = import_module("google.cloud.dataproc_v1")
        transport: Any = import_module("google.cloud.dataproc_v1.services.job_controller.transports")
        methods = {
            "SubmitJob": (types.SubmitJobRequest, self.submit),
            "GetJob": (types.GetJobRequest, self.get),
            "CancelJob": (types.CancelJobRequest, self.cancel),
        }

        def handled(request: Any, act: Callable[[Any], Any]) -> Any:
            def answer(asked: Any, context: Any) -> Any:
                if self.refuses:
                    context.abort(grpc.StatusCode.PERMISSION_DENIED, "not you")
                assert (asked.project_id, asked.region) == ("shop", "europe-west1")
                return act(asked)

            return grpc.unary_unary_rpc_method_handler(answer, request.deserialize, types.Job.serialize)

        handlers = {name: handled(request, act) for name, (request, act) in methods.items()}
        server = grpc.server(ThreadPoolExecutor(2))
        service = "google.cloud.dataproc.v1.JobController"
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()

        def channel(host: str, **_: Any) -> Any:
            assert host == "europe-west1-dataproc.googleapis.com:443", host
            return grpc.insecure_channel(f"127.0.0.1:{port}")

        with super().served(), patch.object(transport.JobControllerGrpcTransport, "create_channel", channel):
            yield
        server.stop(None)

    def submit(self, asked: Any) -> Any:
        name = asked.job.reference.job_id
        if not any(had.request_id == asked.request_id for had in self.jobs.values()):
            assert name not in self.jobs and asked.job.placement.cluster_name == "spark"
            self.keep(name, asked, "PENDING")
        return self.job(name)

    def get(self, asked: Any) -> Any:
        return self.job(asked.job_id)

    def cancel(self, asked: Any) -> Any:
        self.ended.append(asked.job_id)
        return self.job(asked.job_id)

    def job(self, name: str) -> Any:
        types: Any = import_module("google.cloud.dataproc_v1")
        job = types.Job(self.jobs[name].job)
        job.status = types.JobStatus(state=types.JobStatus.State[self.states[name]])
        return job

    def answer(self, asked: Asked) -> Answer:
        match asked.method, asked.path:
            case "POST", ["token"]:
                return 200, {"access_token": "t", "expires_in": 3600, "token_type": "Bearer"}
            case "POST", ["upload", "storage", "v1", "b", "code", "o"]:
                assert asked.query["uploadType"] == "multipart"
                [name] = re.findall(rb'"name": "([^"]+)"', asked.body)
                self.files[name.decode()] = asked.body
                return 200, {"name": name.decode(), "bucket": "code"}
        return 404, {"error": {"message": f"no {asked.path}"}}

    def told(self, job: Any) -> list[str]:
        return list(job.job.pyspark_job.args)


SERVICES: dict[str, type[Service]] = {
    "KubernetesLauncher": Kubernetes,
    "ConnectClientLauncher": KubernetesJobs,
    "EmrServerlessLauncher": Emr,
    "DataprocLauncher": Dataproc,
    "DatabricksLauncher": Databricks,
    "LivyLauncher": Livy,
}


def example(page: Path, name: str, **arguments: Any) -> JobLauncher:
    """The page's launcher of this name."""
    [text] = [block for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S) if f"class {name}" in block]
    module = ModuleType(f"example_{name}")
    sys.modules[module.__name__] = module  # where dataclasses look for names
    exec(compile(text, f"{page}:{name}", "exec"), vars(module))
    made: JobLauncher = vars(module)[name](**arguments)
    return made


def try_launcher(page: Path, name: str) -> None:
    """Jobs that succeed, that fail each way there is, that are launched twice, cancelled, gone, and refused."""
    service = SERVICES[name]()
    with service.served(), tempfile.TemporaryDirectory() as folder:
        application = Application(Path(folder, "stage_epoch.py"), Path(folder, "code.zip"), "lockstep orders:pipeline")
        for file in (application.file, application.code):
            file.write_text(f"this is {file.name}")
        launcher = example(page, name, **service.arguments)
        for number, end in enumerate((service.succeeded, *service.failed)):
            token = f"0123456789ab-{number}"
            handle = launcher.launch(application, ARGUMENTS, token)
            assert service.told(service.jobs[handle]) == ARGUMENTS
            assert f"lockstep-{token}" in str(service.jobs[handle])
            for file in (application.file, application.code) if service.uploads else ():
                assert f"this is {file.name}".encode() in service.files[f"lockstep/{token}/{file.name}"]
            for state in service.waiting:
                service.states[handle] = state
                assert launcher.state(handle) is RUNNING, state
            service.states[handle] = end
            assert launcher.state(handle) is (FAILED if number else SUCCEEDED), end
        had = len(service.jobs)
        if service.keyed:
            assert launcher.launch(application, ARGUMENTS, token) == handle
        else:
            must_raise(lambda: launcher.launch(application, ARGUMENTS, token))
        assert len(service.jobs) == had
        launcher.cancel(handle)
        assert service.ended == [handle]
        if isinstance(service, Kubernetes):  # a job that is gone has failed, and may be cancelled
            assert launcher.state(handle) is FAILED
            launcher.cancel(handle)
        service.refuses = True
        must_raise(lambda: launcher.launch(application, ARGUMENTS, "0123456789ab-99"))
        must_raise(lambda: launcher.state(handle))
        must_raise(lambda: launcher.cancel(handle))
        assert len(service.ended) == 1


def must_raise(act: Callable[[], object]) -> None:
    """As the service refuses it, and not as Python does an argument."""
    try:
        answer = act()
    except Exception as error:
        assert not isinstance(error, TypeError | AttributeError | NameError | AssertionError), repr(error)
        print(f"as it should: {type(error).__name__}: {str(error)[:120]}")
    else:
        raise AssertionError(f"what was refused was answered: {answer!r}")


# --- logins ---


def aws(**extra: Any) -> None:
    said = {"region_name": "eu-west-1", **extra}
    connection("aws_default", conn_type="aws", login="AKIAIOSFODNN7EXAMPLE", password="hidden", extra=said)


def must_be_signed(token: str, host: str, port: int) -> None:
    """By Amazon's client, for this user and place."""
    url = urlsplit(f"https://{token}")
    said = parse_qs(url.query)
    assert (url.hostname, url.port, said["Action"], said["DBUser"]) == (host, port, ["connect"], ["clerk"])
    [credential] = said["X-Amz-Credential"]
    assert re.fullmatch(r"AKIAIOSFODNN7EXAMPLE/\d{8}/eu-west-1/rds-db/aws4_request", credential)
    assert re.fullmatch("[0-9a-f]{64}", said["X-Amz-Signature"][0]) and said["X-Amz-Expires"] == ["900"]


def try_rds() -> None:
    aws()
    extra = {"iam": True, "aws_conn_id": "aws_default", "sslmode": "verify-full", "sslrootcert": "/etc/ssl/rds.pem"}
    for conn_type in ("postgres", "lockstep_ledger"):
        connection("there", conn_type=conn_type, host="db.example", login="clerk", schema="shop", extra=extra)
        found = parse_dsn(AirflowConnections()["there"])
        must_be_signed(found.pop("password"), "db.example", 5432)
        assert found["user"] == "clerk" and found["sslmode"] == "verify-full" and found["port"] == "5432"


def try_mysql() -> None:
    aws()
    extra = {"iam": True, "aws_conn_id": "aws_default", "ssl_ca": "/etc/ssl/rds.pem"}
    for conn_type in ("mysql", "lockstep_mariadb"):
        connection("there", conn_type=conn_type, host="db.example", login="clerk", schema="shop", extra=extra)
        found = parse_uri("there", AirflowConnections()["there"])
        must_be_signed(str(found["password"]), "db.example", 3306)
        assert (found["host"], found["port"], found["user"]) == ("db.example", 3306, "clerk")


def try_redshift() -> None:
    def answer(asked: Asked) -> Answer:
        said = asked.form
        assert (said["Action"], said["DbUser"], said["ClusterIdentifier"]) == (
            "GetClusterCredentials",
            "clerk",
            "cluster-1",
        )
        found = "<DbUser>IAM:clerk</DbUser><DbPassword>token 1</DbPassword>"
        found = f"<GetClusterCredentialsResult>{found}</GetClusterCredentialsResult>"
        return 200, f"<GetClusterCredentialsResponse>{found}</GetClusterCredentialsResponse>"

    with stub(answer) as server:
        aws(endpoint_url=server.url)
        host = "cluster-1.abc.eu-west-1.redshift.amazonaws.com"
        extra = {"iam": True, "redshift": True}
        connection("there", conn_type="postgres", host=host, login="clerk", schema="shop", extra=extra)
        found = parse_dsn(AirflowConnections()["there"])
    assert (found["user"], found["password"], found["port"]) == ("IAM:clerk", "token 1", "5439")


def try_s3() -> None:
    """Keys of a role that is assumed, anew each time, and those that the Connection has without one."""
    asked_for: list[dict[str, str]] = []

    def answer(asked: Asked) -> Answer:
        asked_for.append(asked.form)
        number = len(asked_for)
        keys = f"<AccessKeyId>key {number}</AccessKeyId><SecretAccessKey>secret {number}</SecretAccessKey>"
        keys += f"<SessionToken>token {number}</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>"
        found = f"<AssumeRoleResult><Credentials>{keys}</Credentials></AssumeRoleResult>"
        return 200, f"<AssumeRoleResponse>{found}</AssumeRoleResponse>"

    role = "arn:aws:iam::123456789012:role/orders"
    with stub(answer) as server:
        extra = {
            "role_arn": role,
            "region_name": "eu-west-1",
            "endpoint_url": "http://store:9000",
            "service_config": {"sts": {"endpoint_url": server.url}},
        }
        for conn_type in ("aws", "lockstep_s3"):
            asked_for.clear()
            connection("there", conn_type=conn_type, login="AKIAIOSFODNN7EXAMPLE", password="hidden", extra=extra)
            with patch("lockstep.airflow.connections.TOKEN_SECONDS", 0.0):
                found = Keys.of(AirflowConnections()["there"])
                given = [found.credential() for _ in range(2)]
            assert [one["access_key_id"] for one in given] == ["key 2", "key 3"], given
            assert (given[1]["secret_access_key"], given[1]["token"]) == ("secret 3", "token 3")
            assert (found.region, found.endpoint) == ("eu-west-1", "http://store:9000")
            assert {(said["Action"], said["RoleArn"]) for said in asked_for} == {("AssumeRole", role)}
    connection("there", conn_type="aws", extra={"region_name": "eu-west-1"})
    machine = {"AWS_ACCESS_KEY_ID": "key of the machine", "AWS_SECRET_ACCESS_KEY": "hidden"}
    with patch.dict(os.environ, machine):
        assert Keys.of(AirflowConnections()["there"]).credential()["access_key_id"] == "key of the machine"


AZURE = {"iam": True, "azure_conn_id": "azure_default", "sslmode": "verify-full", "sslrootcert": "/etc/ssl/azure.pem"}


def try_azure() -> None:
    """A service principal, a managed identity, and a Connection without the word that the provider's hook asks for."""
    fields = {"conn_type": "postgres", "host": "db.example", "schema": "shop", "extra": AZURE}
    connection("there", login="orders@shop.example", **fields)
    principal = {"conn_type": "azure", "login": "client-1", "password": "hidden"}
    with stub(entra) as server, everything_goes_to(server):
        connection("azure_default", **principal, extra={"tenantId": "tenant-1", "use_azure_identity_object": True})
        found = parse_dsn(AirflowConnections()["there"])
        assert (found["user"], found["password"]) == ("orders@shop.example", "token of client-1")
        assert (found["port"], found["sslmode"]) == ("5432", "verify-full")
        connection("azure_default", **principal, extra={"tenantId": "tenant-1"})
        try:
            AirflowConnections()["there"]
        except LoginUnavailable as error:
            assert "use_azure_identity_object" in str(error) and "hidden" not in str(error), error
        else:
            raise AssertionError("the page says that it has to be there")
    with stub(identity) as server, patch.dict(os.environ, IDENTITY_ENDPOINT=server.url, IDENTITY_HEADER="secret"):
        connection("azure_default", conn_type="azure", extra={"use_azure_identity_object": True})
        found = parse_dsn(AirflowConnections()["there"])
        assert (found["user"], found["password"]) == ("orders@shop.example", "token of the machine")


DATABASES = "https://ossrdbms-aad.database.windows.net"


def entra(asked: Asked) -> Answer:
    issuer = f"https://{asked.host}/tenant-1"
    match asked.method, asked.path:
        case "GET", ["tenant-1", "v2.0", ".well-known", "openid-configuration"]:
            ends = {"token_endpoint": f"{issuer}/oauth2/v2.0/token", "issuer": f"{issuer}/v2.0"}
            return 200, {**ends, "authorization_endpoint": f"{issuer}/oauth2/v2.0/authorize"}
        case "POST", ["tenant-1", "oauth2", "v2.0", "token"]:
            said = asked.form
            assert asked.host == "login.microsoftonline.com" and said["client_secret"] == "hidden"
            assert (said["grant_type"], said["scope"]) == ("client_credentials", f"{DATABASES}/.default")
            return 200, {"access_token": f"token of {said['client_id']}", "expires_in": 3600, "token_type": "Bearer"}
        case "POST", ["tenant-1", "oauth2", "token"]:  # the older client's, which has no get_token
            return 200, {"access_token": "of no use", "expires_in": 3600, "token_type": "Bearer"}
    raise AssertionError(asked)


def identity(asked: Asked) -> Answer:
    """As App Service has it for what runs there."""
    assert asked.query["resource"] == DATABASES, asked
    answer = {"access_token": "token of the machine", "expires_on": "4102444800", "token_type": "Bearer"}
    return 200, {**answer, "resource": DATABASES}


@contextmanager
def everything_goes_to(server: Stub) -> Iterator[None]:
    """Whatever is asked for by `requests`: under its own name."""
    adapter: Any = import_module("requests.adapters").HTTPAdapter
    send = adapter.send

    def rerouted(self: Any, request: Any, **said: Any) -> Any:
        url = urlsplit(request.url)
        request.headers["Host"] = url.netloc
        request.url = f"{server.url}{url.path}{'?' if url.query else ''}{url.query}"
        return send(self, request, **said)

    with patch.object(adapter, "send", rerouted):
        yield


LOGINS: dict[str, Callable[[], None]] = {
    "rds": try_rds,
    "redshift": try_redshift,
    "mysql": try_mysql,
    "azure": try_azure,
    "s3": try_s3,
}


def wrong(act: Callable[..., None], *arguments: Any) -> str:
    """What went wrong, or nothing."""
    try:
        act(*arguments)
    except Exception:
        return format_exc()
    return ""


if __name__ == "__main__":
    told = [{name: wrong(act) for name, act in LOGINS.items()}]
    told += [{name: wrong(try_launcher, Path(page), name) for name in SERVICES} for page in sys.argv[1:]]
    print(json.dumps(told))
