"""The login of a Kafka Connection: used, or refused by name; never dropped, and never shown."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from lockstep.errors import InvalidPipeline, SinkUnavailable
from lockstep.kafka.connection import settings_of
from lockstep.sinks.kafka import KafkaSink
from lockstep.sinks.kafka._open_sink import OpenKafkaSink
from lockstep.sinks.values import SinkContext
from lockstep.sources import KafkaSource
from lockstep.sources.base import SourceContext
from lockstep.sources.kafka._open_source import OpenKafkaSource
from lockstep.testing._under_test import DEPLOYMENT
from stack.kafka import KafkaBroker
from tests.sinks.kafka_admin import asking_for

PASSWORD = "p@ss:w/rd%?#"
BY_PASSWORD = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}


@pytest.fixture(scope="module")
def guarded(memory_folder: Path, kafka_jars: None) -> Iterator[KafkaBroker]:
    with KafkaBroker(memory_folder / "kafka-guarded", settings=asking_for("clerk", PASSWORD)).for_a_while() as broker:
        yield broker


def connection(broker: KafkaBroker, password: str = PASSWORD) -> str:
    host, port = broker.bootstrap.split(":")
    fields = {"conn_type": "kafka", "host": host, "port": int(port), "login": "clerk", "password": password}
    return json.dumps({**fields, "extra": BY_PASSWORD})


def look(broker: KafkaBroker, connections: Mapping[str, str] | None = None) -> object:
    from lockstep.orchestration.connections import AirflowConnections

    sink = KafkaSink("rows", output="rows", topic="nothing", connection="kafka")
    found = AirflowConnections() if connections is None else connections
    with sink.opened(SinkContext(DEPLOYMENT, "pipe", found)) as opened:
        assert isinstance(opened, OpenKafkaSink)
        return opened.cluster.id()


@pytest.mark.fault("L14")
def test_the_login_of_an_airflow_connection_opens_a_broker_that_asks_for_one(
    guarded: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA", connection(guarded))
    assert look(guarded)


@pytest.mark.fault("L14")
def test_a_wrong_password_is_refused_and_not_shown(
    guarded: KafkaBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA", connection(guarded, "hunter2hunter2"))
    says = "the brokers refuse the login"
    with caplog.at_level(logging.DEBUG), pytest.raises(SinkUnavailable, match=says) as refused:
        look(guarded)
    assert "hunter2" not in str(refused.value) + caplog.text


def test_a_login_that_is_refused_is_asked_for_again(guarded: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    from lockstep.orchestration.connections import AirflowConnections

    class Rotating(AirflowConnections):
        """The Connection has another password by the time that its old one is tried."""

        def __getitem__(self, conn_id: str) -> str:
            monkeypatch.setenv("AIRFLOW_CONN_KAFKA", connection(guarded, "hunter2hunter2"))
            found = super().__getitem__(conn_id)
            monkeypatch.setenv("AIRFLOW_CONN_KAFKA", connection(guarded))
            return found

    assert look(guarded, Rotating())
    source = KafkaSource("rows", connection="kafka")
    with source.opened(SourceContext("pipe", "rows", lambda paths: set(), Rotating())) as opened:
        assert isinstance(opened, OpenKafkaSource)
        assert opened.cluster.settings["sasl.password"] == PASSWORD


def uri_of(**extra: str) -> str:
    from airflow.sdk import Connection

    from lockstep.orchestration.connections import dsn_of

    made = Connection(conn_id="k", conn_type="kafka", host="a:1,b:2", login="clerk", password=PASSWORD)
    made.extra = json.dumps(extra)
    return dsn_of(made)


def test_a_login_and_a_password_are_those_that_the_connection_has() -> None:
    found = settings_of(uri_of(**{"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}), "s")
    assert found["bootstrap.servers"] == "a:1,b:2"
    assert (found["sasl.username"], found["sasl.password"]) == ("clerk", PASSWORD)
    same = settings_of(uri_of(**BY_PASSWORD, **{"sasl.username": "clerk", "sasl.password": PASSWORD}), "s")
    assert same["sasl.password"] == PASSWORD


@pytest.mark.fault("L14")
def test_a_login_that_would_go_unused_is_refused_by_name(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str | dict[str, str], str]] = [
        ({}, "security.protocol=PLAINTEXT asks for none"),
        ({"security.protocol": "SSL"}, "security.protocol=SSL asks for none"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism=GSSAPI"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanisms": "OAUTHBEARER"}, "sasl.mechanism=OAUTHBEARER"),
        ({**BY_PASSWORD, "sasl.username": "another"}, "another one in sasl.username"),
        ("kafka://clerk@a:1/?security.protocol=SASL_SSL&sasl.mechanism=PLAIN", "a login alone"),
        (f"clerk:secret-{PASSWORD[:1]}@a:1", "an @ among its hosts"),
    ]
    for given, says in cases:
        with subtests.test(says):
            with pytest.raises(InvalidPipeline, match=says) as refused:
                settings_of(given if isinstance(given, str) else uri_of(**given), "sink s")
            assert "clerk" not in str(refused.value)
            assert PASSWORD not in str(refused.value)
