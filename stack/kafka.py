"""A private Apache Kafka broker (KRaft) on loopback, from the jars of Maven Central.

python3 -m stack.kafka        fetches the broker, its tools, Spark's connector and its Avro into the environment
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

from stack.errors import StackError
from stack.jars import Jars
from stack.java import find_java
from stack.postgres import HOST, free_port, listens
from stack.processes import Processes, Started, wait_until
from stack.throwaway import ThrowawayServer

BROKER = Jars(
    "kafka",
    wanted=("org.apache.kafka:kafka_2.13:4.1.1",),
    alone=("org.apache.kafka:kafka-tools:4.1.1",),
)
#: Of the wanted version where the registry has it; without delegation tokens nothing of it is used.
SPARK_CONNECTOR = Jars(
    "spark-kafka",
    alone=(
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.1",
        "org.apache.commons:commons-pool2:2.12.1",
    ),
)
#: Spark's from_avro, of the version that the registry has; with Spark's own otherwise.
SPARK_AVRO = Jars("spark-avro", alone=("org.apache.spark:spark-avro_2.13:4.1.1",))
START_SECONDS = 120

Setting = str | int
DEFAULTS: Mapping[str, Setting] = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    # one node is all the replicas there are
    "node.id": 1,
    "default.replication.factor": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    # small: every partition of the two is a folder to make at the first use
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "auto.create.topics.enable": "false",
    # records of tests have times of months ago: retention would delete them within five minutes
    "log.retention.ms": -1,
    "group.initial.rebalance.delay.ms": 0,
    # a killed broker may come back once its last sign of life is that old
    "broker.heartbeat.interval.ms": 200,
    "broker.session.timeout.ms": 1000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
}


class KafkaBroker(ThrowawayServer):
    """One broker with data, log and settings under `folder`."""

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        settings: Mapping[str, Setting] | None = None,
        optimised: bool = False,
    ) -> None:
        """`port` 0 takes a free one and keeps it. `optimised`: as fast as Java gets, and slower to start."""
        self.folder, self._optimised = folder.absolute(), optimised
        self.settings: dict[str, Setting] = {**DEFAULTS, **(settings or {})}
        self._processes = Processes(self.folder / "kafka.json")
        self._wanted_port = port
        self._started: Started | None = None

    @property
    def bootstrap(self) -> str:
        """What clients call `bootstrap.servers`."""
        return f"{HOST}:{self._port}"

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
        if not self._properties.exists():
            self._format()
        self._started = self._processes.start(
            "kafka",
            self._java("kafka.Kafka", [str(self._properties)], memory="512m", log4j=self._log4j()),
            environment=dict(os.environ),
            cwd=self.folder,
            log=self.folder / "kafka.log",
        )
        wait_until(self._serves, self._started, "Kafka", START_SECONDS)

    def stop(self) -> None:
        """An orderly end."""
        self._processes.stop()
        self._started = None

    def kill(self) -> None:
        """SIGKILL: what wasn't written yet never will be."""
        if self._started is None:
            raise StackError("the broker doesn't run")
        self._started.kill()
        self._started = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run_tool(self, main: str, arguments: Sequence[str]) -> str:
        """What one of Kafka's own programs prints, for instance org.apache.kafka.tools.ProducerPerformance."""
        done = subprocess.run(self._java(main, arguments), capture_output=True, text=True, check=False, cwd=self.folder)
        if done.returncode:
            raise StackError(f"{main} failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    # --- how it is set up ---------------------------------------------------------------------------------------------

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    @property
    def _port(self) -> int:
        """The port that it listens on, or did when it last ran."""
        return int((self.folder / "port").read_text())

    def _format(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        port, controller = free_port(self._wanted_port), free_port()
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        unfinished = self.folder / "server.properties.unfinished"
        lines = {
            **self.settings,
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "log.dirs": str(self.folder / "data"),
        }
        unfinished.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        (self.folder / "port").write_text(str(port))
        # with "=": the id may begin with a dash
        format_it = ["format", f"--cluster-id={cluster}", "--config", str(unfinished)]
        self.run_tool("kafka.tools.StorageTool", format_it)
        unfinished.rename(self._properties)

    def _log4j(self) -> Path:
        path = self.folder / "log4j2.properties"
        path.write_text(
            "rootLogger.level=WARN\nrootLogger.appenderRef.out.ref=out\n"
            "appender.out.type=Console\nappender.out.name=out\n"
            "appender.out.layout.type=PatternLayout\nappender.out.layout.pattern=%d %p %c{1}: %m%n\n"
        )
        return path

    def _serves(self) -> bool:
        return listens(self._port)

    def _java(
        self, main: str, arguments: Sequence[str], *, memory: str = "256m", log4j: Path | None = None
    ) -> list[str]:
        classpath = ":".join(map(str, BROKER.paths()))
        logging = [f"-Dlog4j2.configurationFile={log4j}"] if log4j else []
        speed = [] if self._optimised else ["-XX:TieredStopAtLevel=1"]
        options = [f"-Xmx{memory}", "-XX:+UseSerialGC", *speed, *logging]
        return [str(find_java()), *options, "-cp", classpath, main, *arguments]


if __name__ == "__main__":
    try:
        for jars in (BROKER, SPARK_CONNECTOR, SPARK_AVRO):
            print(f"{jars.name}: {'here already' if jars.present else 'fetching …'}", flush=True)
            jars.fetch()
    except StackError as error:
        sys.exit(str(error))
