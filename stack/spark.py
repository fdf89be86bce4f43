"""Spark from the pyspark wheel: a warm Connect server, or a standalone cluster of two processes. Loopback only."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from stack.errors import StackError
from stack.home import import_path
from stack.java import java_home
from stack.kafka import SPARK_AVRO, SPARK_CONNECTOR
from stack.postgres import HOST, free_port, listens
from stack.processes import Processes, Started, wait_until
from stack.s3 import SPARK_S3

CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
START_SECONDS = 240  # the wait ends with the process; this is for a machine that is busy with other things

CONFIGURATION: Mapping[str, str] = {
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # Arrow reads the default as ns, PostgreSQL refuses it
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.files.minPartitionNum": "8",  # four tasks a core: what one has finished is sealed while others are read
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
}


class ConnectServer:
    """A Spark Connect server, `local[cores]` unless told otherwise."""

    def __init__(self, processes: Processes, folder: Path, *, port: int = 0, master: str = "local[2]") -> None:
        """`port` 0 takes a free one; `folder` gets logs, warehouse and scratch space."""
        self._processes = processes
        self._folder = folder.absolute()
        self._port = port
        self._master = master

    @property
    def url(self) -> str:
        return f"sc://{HOST}:{self._port}"

    def launch(self, configuration: Mapping[str, str] | None = None) -> Started:
        """Start the process. Raises PortInUse, JavaMissing."""
        self._port = free_port(self._port)
        self._scratch.mkdir(parents=True, exist_ok=True)
        properties = self._folder / "connect.conf"
        own = {**self._own_configuration(), **connectors()}
        _write_properties(properties, {**CONFIGURATION, **own, **(configuration or {})})
        home = _connect_home()
        command = [str(home / "bin" / "spark-submit"), "--class", CONNECT_SERVER, "--master", self._master]
        command += ["--name", "lockstep-connect", "--properties-file", str(properties)]
        return self._processes.start(
            "spark-connect",
            command,
            environment=spark_environment(home),
            cwd=self._folder,
            log=self._folder / "connect.log",
        )

    def wait(self, started: Started) -> None:
        """Wait until the server has answered a query and written a file, so that the next client finds it warm."""
        wait_until(lambda: listens(self._port), started, "Spark Connect", START_SECONDS)
        warm_up(self.url, self._folder / "warm-up")

    @property
    def _scratch(self) -> Path:
        return self._folder / "scratch"

    def _own_configuration(self) -> dict[str, str]:
        return {
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.local.dir": str(self._scratch),
            # G1, the default, pays for short pauses with throughput; nobody waits for this server by the millisecond
            "spark.driver.extraJavaOptions": f'-Djava.io.tmpdir="{self._scratch}" -XX:+UseParallelGC{class_archive()}',
            "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
        }


class StandaloneCluster:
    """A master and one worker, each a process of its own."""

    def __init__(self, processes: Processes, folder: Path) -> None:
        self._processes = processes
        self._folder = folder.absolute()
        self._port = 0

    @property
    def url(self) -> str:
        return f"spark://{HOST}:{self._port}"

    def start(self, *, cores: int = 2, memory: str = "1g") -> None:
        """Start both and wait until the worker has registered."""
        self._port = free_port()
        self._folder.mkdir(parents=True, exist_ok=True)
        properties = self._folder / "cluster.conf"
        _write_properties(properties, {"spark.master.rest.enabled": "false", "spark.ui.enabled": "false"})
        address = ["--host", HOST, "--webui-port", "0", "--properties-file", str(properties)]
        master = self._launch("spark-master", MASTER, [*address, "--port", str(self._port)])
        wait_until(lambda: listens(self._port), master, "Spark's master", START_SECONDS)
        offer = ["--cores", str(cores), "--memory", memory, "--work-dir", str(self._folder / "work")]
        worker = self._launch("spark-worker", WORKER, [*address, *offer, self.url])
        wait_until(lambda: "Successfully registered" in Path(worker.log).read_text(), worker, "worker", START_SECONDS)

    def _launch(self, name: str, main: str, arguments: list[str]) -> Started:
        return self._processes.start(
            name,
            [str(_spark_home() / "bin" / "spark-class"), main, *arguments],
            environment=spark_environment(),
            cwd=self._folder,
            log=self._folder / f"{name}.log",
        )


def connectors() -> dict[str, str]:
    """What lets Spark read Kafka and S3, once `make kafka` and `make s3` have fetched it."""
    found = [str(path) for jars in (SPARK_CONNECTOR, SPARK_AVRO, SPARK_S3) if jars.present for path in jars.paths()]
    return {"spark.jars": ",".join(found)} if found else {}


def spark_environment(home: Path | None = None) -> dict[str, str]:
    """What a Spark process needs from its environment: Java, our Python, and the import path for UDFs. `home`: of its
    Spark, the one of our Python where none is named."""
    inherited = {name: value for name, value in os.environ.items() if name != "SPARK_CONNECT_MODE_ENABLED"}
    return {  # a driver must not take itself for a client because its parent is one
        **inherited,
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(home or _spark_home()),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": import_path(),
    }


def class_archive() -> str:
    """Java's option for the archive of loaded classes that SPARK_CLASS_ARCHIVE names: made at the exit, then used.

    One that is of another Java, or of other jars, is passed over by Java.
    """
    if not (named := os.environ.get("SPARK_CLASS_ARCHIVE")):
        return ""
    archive = Path(named).absolute()
    return f' -XX:{"SharedArchiveFile" if archive.exists() else "ArchiveClassesAtExit"}="{archive}"'


def warm_up(url: str, scratch: Path) -> None:
    """Write and read one Parquet file through a session of our own: the JVM loads most of what an epoch needs."""
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(url).create()
    try:
        session.range(10).write.mode("overwrite").parquet(scratch.as_uri())
        if (found := session.read.parquet(scratch.as_uri()).count()) != 10:
            raise StackError(f"Spark Connect wrote 10 rows and read {found}")
    finally:
        session.stop()


def _write_properties(path: Path, configuration: Mapping[str, str]) -> None:
    path.write_text("".join(f"{name} {value}\n" for name, value in sorted(configuration.items())))


def _connect_home() -> Path:
    """SPARK_CONNECT_HOME names another Spark for the server than the one of its clients."""
    named = os.environ.get("SPARK_CONNECT_HOME")
    return Path(named) if named else _spark_home()


def _spark_home() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise StackError("pyspark is not installed: run `make setup`")
    return Path(spec.origin).parent
