"""Kafka behind a login, from Spark Connect and from a driver of its own: who sees the password, and what lacks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from confluent_kafka import Producer

from lockstep import Pipeline
from lockstep.connections.kafka.cluster import Cluster
from lockstep.connections.kafka.connection import Asker
from lockstep.epoch import SourceRange
from lockstep.sources import KafkaSource, SourceContext
from lockstep.sources.base import OpenSource
from lockstep.wal.request import REQUEST, RESULT
from stack.kafka import SPARK_CONNECTOR, KafkaBroker
from stack.spark import connectors, spark_environment
from tests.sinks.kafka_admin import asking_for
from tests.spark.pipelines import Nowhere
from tests.spark.staged import request_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
    from pyspark.sql.connect.session import SparkSession as ConnectSession


ROOT = Path(__file__).parents[2]
PASSWORD = "plugh-xyzzy"


@dataclass(frozen=True)
class Login:
    """A broker that asks for a password, with three records in its topic."""

    connection: str
    range: SourceRange

    def asked(self, folder: Path, reference: str = "") -> Path:
        """The folder of an execution that is asked for the topic's records; Spark's event log goes to `events`."""
        (folder / "events").mkdir()
        request = request_of(folder, pipeline, {"events": self.range}, reference)
        place = Path(request.folder.removeprefix("file://"))
        (place / REQUEST).write_text(json.dumps(request.to_json()))
        return place


@pytest.fixture(scope="module")
def login(memory_folder: Path, kafka_jars: None) -> Iterator[Login]:
    if not SPARK_CONNECTOR.present:
        pytest.skip("Spark's connector for Kafka is not here: `make kafka` fetches it")
    with KafkaBroker(memory_folder / "kafka-login", settings=asking_for("u", PASSWORD)).for_a_while() as broker:
        settings = {"bootstrap.servers": broker.bootstrap, "security.protocol": "SASL_PLAINTEXT"}
        settings |= {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": PASSWORD}
        Cluster(settings, Asker("test")).create_topic(TOPIC, 1, {})
        producer = Producer(settings)
        for value in (b"1", b"2", b"3"):
            producer.produce(TOPIC, value)
        assert producer.flush(30) == 0
        connection = json.dumps(settings)
        source = _opened(connection)
        yield Login(connection, SourceRange(None, source.latest(None, None)))


def _opened(connection: str) -> OpenSource:
    return pipeline.sources["events"].open(SourceContext("login", "events", lambda paths: set(), {"kafka": connection}))


def _events(folder: Path) -> dict[str, str]:
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }


def _tellers(folder: Path) -> list[str]:
    """The files below the folder that have the password."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]


def test_spark_connect_shows_no_password_with_its_requests(login: Login, session: SparkSession) -> None:
    frame = _opened(login.connection).read(session, None, login.range.end)
    assert frame.count() == 3
    request = cast("ConnectFrame", frame)._plan.to_proto(cast("ConnectSession", session).client)
    assert PASSWORD in str(request)
    hidden = session.conf.get("spark.sql.redaction.string.regex")  # Spark cuts this out of whatever it shows
    assert hidden is not None
    shown = re.sub(hidden, "***", str(request))
    assert PASSWORD not in shown
    assert "kafka.security.protocol" in shown


def test_a_driver_of_its_own_reads_with_the_jars_it_is_given_and_shows_no_password(
    login: Login, tmp_path: Path
) -> None:
    folder = login.asked(tmp_path, "tests.spark.test_kafka_login:pipeline")
    done = _submit(folder, {**_events(tmp_path), **connectors()}, login.connection)
    assert done.returncode == 0, done.stderr
    assert json.loads((folder / RESULT).read_text())["rows"] == {"rows": 3}
    assert PASSWORD not in done.stdout + done.stderr
    assert _tellers(tmp_path) == []


def _submit(folder: Path, configuration: dict[str, str], connection: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[1]"]
    own = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false"}
    for name, value in {**own, **configuration}.items():
        command += ["--conf", f"{name}={value}"]
    command += [str(ROOT / "spark_apps" / "stage_epoch.py"), "--request", (folder / REQUEST).as_uri()]
    environment = {**spark_environment(), "LOCKSTEP_KAFKA": connection}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)


TOPIC = "login"


def as_they_are(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    return {"rows": inputs["events"]}


pipeline = Pipeline(
    name="login",
    sources={"events": KafkaSource(TOPIC, connection="kafka")},
    transform=as_they_are,
    sinks=[Nowhere("to")],
)
