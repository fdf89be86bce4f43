"""What a KafkaSink sends, what it refuses before the decision or names after it, and the login of its Connection."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.connections.kafka.cluster import AFTER, BEFORE
from lockstep.connections.kafka.connection import settings_of
from lockstep.errors import (
    InvalidPipeline,
    PreflightRefused,
    PublishBlocked,
    SinkRejected,
    SinkUnavailable,
    TargetUnreadable,
)
from lockstep.sinks.kafka import KafkaSink
from lockstep.sinks.kafka._open_sink import OpenKafkaSink
from lockstep.sinks.values import SinkContext
from lockstep.sources import KafkaSource
from lockstep.sources.base import SourceContext
from lockstep.sources.kafka.open_source import OpenKafkaSource
from lockstep.testing import SCHEMA, SealedRows, sealed
from lockstep.testing._under_test import DEPLOYMENT, epoch, opened, prepare, publish
from stack.kafka import KafkaBroker
from tests.sinks.kafka_admin import asking_for, configure
from tests.sinks.kafka_target import KafkaUnderTest, committed


def test_records_of_one_key_keep_the_order_of_the_wal(kafka_broker: KafkaBroker) -> None:
    target, wal = KafkaUnderTest(kafka_broker, shards=2), sealed(1000)
    publish(target, epoch(), prepare(target, epoch(), wal), wal)
    places: dict[bytes | None, list[int]] = {}
    for message in sorted(committed(kafka_broker, target.topic), key=lambda one: (one.partition(), one.offset())):
        if message.key() is not None:
            places.setdefault(message.key(), []).append(int(message.headers()[0][1].rpartition(b"/")[2]))
    assert len(places) == 6
    assert all(ordinals == sorted(ordinals) for ordinals in places.values())


def test_key_value_time_and_partition_can_be_columns(kafka_broker: KafkaBroker) -> None:
    target = KafkaUnderTest(kafka_broker, key="k", value="v", timestamp="t", partition="p")
    schema = pa.schema({"k": pa.string(), "v": pa.binary(), "t": pa.timestamp("us", "UTC"), "p": pa.int32()})
    rows = pa.table(
        {"k": ["a", None], "v": [b"\x00\xff", None], "t": [1_000_000_000_000_000, 5_000], "p": [2, 0]}, schema
    )
    wal = [SealedRows(rows)]
    publish(target, epoch(), prepare(target, epoch(), wal), wal)
    found = sorted(
        (m.key(), m.value(), m.timestamp()[1], m.partition()) for m in committed(kafka_broker, target.topic) if m.key()
    )
    assert found == [(b"a", b"\x00\xff", 1_000_000_000_000, 2)]
    with opened(target) as sink:
        assert pa.Table.from_batches(list(sink.read(1, "rows", schema)), schema).sort_by("p") == rows.sort_by("p")


def with_headers(*headers: Any, value: pa.DataType | None = None) -> list[SealedRows]:
    one = pa.struct([("key", pa.string()), ("value", value or pa.binary())])
    schema = pa.schema({"id": pa.int64(), "h": pa.list_(one)})
    return [SealedRows(pa.table({"id": range(len(headers)), "h": headers}, schema))]


def test_headers_can_be_a_column(kafka_broker: KafkaBroker) -> None:
    target = KafkaUnderTest(kafka_broker, key=None, headers="h", shards=2)
    given = [
        None,
        [],
        [{"key": "a", "value": b"\xff"}, {"key": "a", "value": None}, {"key": "", "value": b""}],
        [{"key": "b", "value": b"1"}],
    ]
    wal = with_headers(*given)
    publish(target, epoch(), prepare(target, epoch(), wal), wal)
    found = {json.loads(one.value())["id"]: one.headers() for one in committed(kafka_broker, target.topic)}
    assert {id: names[0][0] for id, names in found.items()} == dict.fromkeys(range(4), "lockstep")
    assert len({names[0][1] for names in found.values()}) == 4
    told = {id: [{"key": key, "value": value} for key, value in names[1:]] for id, names in found.items()}
    assert told == {id: headers or [] for id, headers in enumerate(given)}
    assert all(json.loads(one.value()).keys() == {"id"} for one in committed(kafka_broker, target.topic))
    texts = with_headers([{"key": "t", "value": "ä\0b"}], value=pa.string())
    publish(target, epoch(2), prepare(target, epoch(2), texts), texts)
    assert ("t", "ä\0b".encode()) in [one.headers()[-1] for one in committed(kafka_broker, target.topic)]
    with opened(target) as sink, pytest.raises(TargetUnreadable, match="null or empty"):
        list(sink.read(1, "rows", wal[0].table.schema))


def test_headers_count_for_how_large_a_record_may_be(kafka_broker: KafkaBroker) -> None:
    target = KafkaUnderTest(kafka_broker, key=None, headers="h")
    configure(kafka_broker, target.topic, "max.message.bytes", "2000")
    for size, taken in ((1500, True), (1990, False)):
        rows = with_headers([{"key": "a" * 20, "value": b"x"}] * 5 + [{"key": "b", "value": b"y" * size}], None)
        if taken:
            publish(target, epoch(), prepare(target, epoch(), rows), rows)
            continue
        with pytest.raises(SinkRejected, match=r"row 0 .the first is 0. has"):
            prepare(target, epoch(2), rows)
    assert len(committed(kafka_broker, target.topic)) == 2


@pytest.mark.fault("E19")
def test_what_brokers_would_refuse_is_refused_before_the_decision(
    kafka_broker: KafkaBroker, subtests: pytest.Subtests
) -> None:
    target, headers, one = KafkaUnderTest(kafka_broker), {"key": None, "headers": "h"}, {"value": b"1"}
    cases: list[tuple[dict[str, Any], list[SealedRows], type[Exception], str]] = [
        ({"transaction_timeout": 1000}, sealed(1), PreflightRefused, r"transaction.max.timeout.ms"),
        ({"key": "id"}, sealed(1), PreflightRefused, "cast it in the transform"),
        ({"key": "nothing"}, sealed(1), PreflightRefused, "no such column"),
        ({"value": "name"}, sealed(1), PreflightRefused, "would go nowhere"),
        ({"timestamp": "name"}, sealed(1), PreflightRefused, "no timestamp column"),
        ({"timestamp": "at"}, sealed(1), SinkRejected, "null"),
        ({"timestamp": "at"}, [SealedRows(sealed(3)[0].table.slice(1, 1))], SinkRejected, "milliseconds"),
        ({"partition": "id"}, sealed(4), SinkRejected, "partition 3, the topic has 3"),
        ({"headers": "name"}, sealed(1), PreflightRefused, "ARRAY<STRUCT"),
        (headers, with_headers(None, [{**one, "key": "a"}], [None]), SinkRejected, "row 2 .* without a name"),
        (headers, with_headers([], [{**one, "key": "lockstep-replaces"}]), SinkRejected, "row 1 .* names lockstep, "),
        (headers, with_headers([], [{**one, "key": "lockstep\0"}]), SinkRejected, "row 1 .* a NUL in its name"),
    ]
    for target.more, rows, error, says in cases:
        with subtests.test(f"{target.more} {says}"), pytest.raises(error, match=says):
            prepare(target, epoch(), rows)


HOUR = 3_600_000  # milliseconds
PASSWORD = "p@ss:w/rd%?#"
BY_PASSWORD = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}


def _timed(*ago: timedelta | None) -> list[SealedRows]:
    """Keyed rows, each that long ago by its time; None has no key and the time of now."""
    now = datetime.now(UTC).replace(microsecond=0)
    schema = pa.schema({"k": pa.string(), "v": pa.string(), "t": pa.timestamp("us", "UTC")})
    columns = {
        "k": [None if one is None else "key" for one in ago],
        "v": ["verysecret"] * len(ago),
        "t": [now - (one or timedelta()) for one in ago],
    }
    return [SealedRows(pa.table(columns, schema=schema), batch_rows=2)]


_NOW = timedelta()
#: what a topic is set to, rows that brokers refuse then, and what the vote says
REFUSED_FOR_EVER = {
    "too old": (BEFORE, str(HOUR), (_NOW, _NOW, timedelta(hours=2)), "row 2 .*past"),
    "too far ahead": (AFTER, str(HOUR), (_NOW, -timedelta(hours=2)), "row 1 .*future"),
    "no key": ("cleanup.policy", "compact", (_NOW, _NOW, _NOW, None), "row 3 .*no key"),
}


def _timed_target(broker: KafkaBroker, **more: Any) -> KafkaUnderTest:
    return KafkaUnderTest(broker, **{"key": "k", "value": "v", "timestamp": "t"} | more)


@pytest.mark.fault("L8")
def test_rows_that_a_topic_would_refuse_for_ever_get_no_vote_and_hold_the_epoch_up_after_it(
    kafka_broker: KafkaBroker, subtests: pytest.Subtests
) -> None:
    """Brokers do refuse such rows, and the setting alone is the way out."""
    for name, (setting, value, ago, says) in REFUSED_FOR_EVER.items():
        target, rows = _timed_target(kafka_broker), _timed(*ago)
        generous = str(2**63 - 1) if value == str(HOUR) else "delete"
        configure(kafka_broker, target.topic, setting, generous)
        vote = prepare(target, epoch(), rows)
        configure(kafka_broker, target.topic, setting, value)
        with subtests.test(name):
            with pytest.raises(SinkRejected, match=f"output rows.*{says}") as raised:
                prepare(target, epoch(), rows)
            assert setting in str(raised.value) and "verysecret" not in str(raised.value)
            with opened(target) as sink, pytest.raises(PublishBlocked, match=re.escape(setting)):
                sink.publish(epoch(), vote, rows)
            configure(kafka_broker, target.topic, setting, generous)
            publish(target, epoch(), vote, rows)
            assert len(committed(kafka_broker, target.topic)) == len(ago)


@pytest.mark.fault("L8")
def test_times_at_a_topics_limits_are_taken_and_what_would_be_too_old_when_it_is_sent_gets_no_vote_or_a_warning(
    kafka_broker: KafkaBroker, caplog: pytest.LogCaptureFixture
) -> None:
    target = _timed_target(kafka_broker)
    for setting in (BEFORE, AFTER):
        configure(kafka_broker, target.topic, setting, str(HOUR))
    rows = _timed(timedelta(minutes=59), -timedelta(minutes=59))
    publish(target, epoch(), prepare(target, epoch(), rows), rows)
    assert len(committed(kafka_broker, target.topic)) == 2
    target.more["transaction_timeout"] = 300
    with pytest.raises(SinkRejected, match="300 s kept back"):
        prepare(target, epoch(), _timed(timedelta(minutes=57)))
    prepare(target, epoch(), _timed(timedelta(minutes=30)))
    assert "if they are sent later, raise that" in caplog.text
    configure(kafka_broker, target.topic, "message.timestamp.type", "LogAppendTime")
    with opened(target) as sink, pytest.raises(PreflightRefused, match=r"LogAppendTime.*column t"):
        sink.preflight(None)


def test_a_record_that_is_larger_than_anything_on_its_way_takes_is_refused_before_the_decision(
    kafka_broker: KafkaBroker,
) -> None:
    target, row = KafkaUnderTest(kafka_broker), sealed(2)[0].table.slice(1, 1)

    def of(size: int) -> list[SealedRows]:
        return [SealedRows(row.set_column(1, SCHEMA.field("name"), pa.array(["x" * size])))]

    with pytest.raises(SinkRejected, match=r"max\.message\.bytes"):
        prepare(target, epoch(), of(2_000_000))
    configure(kafka_broker, target.topic, "max.message.bytes", "4000000")
    configure(kafka_broker, target.topic, "segment.bytes", "1500000")
    with pytest.raises(SinkRejected, match=r"segment\.bytes=1500000"):
        prepare(target, epoch(), of(2_000_000))
    settings = json.dumps({"bootstrap.servers": kafka_broker.bootstrap, "message.max.bytes": 5000})
    with opened(target, _context(settings)) as sink, pytest.raises(SinkRejected, match=r"message\.max\.bytes=5000"):
        sink.prepare(epoch(), of(6000))


def test_what_could_be_lost_with_one_broker_is_refused(kafka_broker: KafkaBroker) -> None:
    target, wal = KafkaUnderTest(kafka_broker), sealed(10)
    publish(target, epoch(), prepare(target, epoch(), wal), wal)
    for topic in (target.topic, target.markers, "__transaction_state"):
        configure(kafka_broker, topic, "min.insync.replicas", "2")
        try:
            with opened(target) as sink, pytest.raises(PreflightRefused, match=f"{topic}: 1 replicas are in sync"):
                sink.preflight(None)
        finally:
            configure(kafka_broker, topic, "min.insync.replicas", "1")


def test_a_sink_with_arguments_that_make_no_sense_is_refused(subtests: pytest.Subtests) -> None:
    one, two = {"topic": "t"}, {"topics": ["a", "b"], "topic_column": "to"}
    cases: list[tuple[dict[str, Any], str]] = [
        ({**one, "guarantee": "twice"}, "twice"),
        ({**one, "guarantee": "at_least_once"}, "committer"),
        ({**one, "guarantee": "none", "committer": "/tmp/x"}, "committer"),
        ({**one, "guarantee": "none", "shards": 2}, "shards"),
        ({**one, "shards": 0}, "shards"),
        ({**one, "partitioner": "mine"}, "partitioner"),
        ({**one, "transaction_timeout": 0}, "transaction_timeout"),
        ({**one, "marker_topic": "t"}, "marker"),
        ({**one, "on_restate": "drop"}, "'refuse' nor 'send'"),
        ({}, "give either topic, or topics"),
        ({**two, "topics": []}, "give either topic, or topics"),
        ({**one, "topics": ["b"]}, "give either topic, or topics"),
        ({"topics": ["a", "b"]}, "give both"),
        ({**one, "topic_column": "to"}, "give both"),
        ({**two, "topics": ["a", "lockstep.markers"]}, "topic of the markers"),
        ({**one, "value": "avro", "subject": "s"}, "give registry"),
        ({**one, "key": "k", "key_subject": "s"}, "give registry"),
        ({**one, "registry": "schemas", "value": "v"}, "registry goes with value='avro'"),
        ({**one, "registry": "schemas", "key": "k", "key_subject": "s", "subject": "s"}, "subject goes with value="),
        ({**one, "registry": "schemas", "value": "avro", "key_subject": "s"}, "key_subject goes with key="),
    ]
    for arguments, says in cases:
        with subtests.test(str(arguments)), pytest.raises(InvalidPipeline, match=says):
            KafkaSink("rows", output="rows", connection="kafka", **arguments)


def _context(settings: str) -> SinkContext:
    return SinkContext(DEPLOYMENT, "pipe", {"kafka": settings})


# --- logins ----------------------------------------------------------------------------------------------------------


def test_nothing_of_a_connection_is_told() -> None:
    sink = KafkaSink("rows", output="rows", topic="t", connection="kafka")
    settings = {"bootstrap.servers": "127.0.0.1:1", "sasl.password": "verysecret", "ssl.key.password": "verysecret"}
    with sink.opened(_context(json.dumps(settings))) as live:
        assert "verysecret" not in repr([live, *vars(live).values()])
    refused = _context(json.dumps(settings | {"acks": "1"}))
    with pytest.raises(InvalidPipeline, match="acks") as raised, sink.opened(refused):
        pass
    assert "verysecret" not in f"{raised.value} {sink.spec()}"


@pytest.fixture(scope="module")
def guarded(memory_folder: Path, kafka_jars: None) -> Iterator[KafkaBroker]:
    with KafkaBroker(memory_folder / "kafka-guarded", settings=asking_for("clerk", PASSWORD)).for_a_while() as broker:
        yield broker


def connection(broker: KafkaBroker, password: str = PASSWORD) -> str:
    host, port = broker.bootstrap.split(":")
    fields = {"conn_type": "kafka", "host": host, "port": int(port), "login": "clerk", "password": password}
    return json.dumps({**fields, "extra": BY_PASSWORD})


def look(connections: Mapping[str, str]) -> object:
    sink = KafkaSink("rows", output="rows", topic="nothing", connection="kafka")
    with sink.opened(SinkContext(DEPLOYMENT, "pipe", connections)) as live:
        assert isinstance(live, OpenKafkaSink)
        return live.cluster.id()


@pytest.mark.fault("L14")
def test_the_login_of_an_airflow_connection_opens_a_broker_and_a_wrong_one_is_refused_and_not_shown(
    guarded: KafkaBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from lockstep.airflow.connections import AirflowConnections

    monkeypatch.setenv("AIRFLOW_CONN_KAFKA", connection(guarded))
    assert look(AirflowConnections())
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA", connection(guarded, "hunter2hunter2"))
    says = "the brokers refuse the login"
    with caplog.at_level(logging.DEBUG), pytest.raises(SinkUnavailable, match=says) as refused:
        look(AirflowConnections())
    assert "hunter2" not in str(refused.value) + caplog.text


def test_a_login_that_is_refused_is_asked_for_again(guarded: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    from lockstep.airflow.connections import AirflowConnections

    class Rotating(AirflowConnections):
        """The Connection has another password by the time that its old one is tried."""

        def __getitem__(self, conn_id: str) -> str:
            monkeypatch.setenv("AIRFLOW_CONN_KAFKA", connection(guarded, "hunter2hunter2"))
            found = super().__getitem__(conn_id)
            monkeypatch.setenv("AIRFLOW_CONN_KAFKA", connection(guarded))
            return found

    assert look(Rotating())
    source = KafkaSource("rows", connection="kafka")
    with source.opened(SourceContext("pipe", "rows", lambda paths: set(), Rotating())) as live:
        assert isinstance(live, OpenKafkaSource)
        assert live.cluster.settings["sasl.password"] == PASSWORD


def uri_of(**extra: str) -> str:
    from airflow.sdk import Connection

    from lockstep.airflow.connections import dsn_of

    made = Connection(conn_id="k", conn_type="kafka", host="a:1,b:2", login="clerk", password=PASSWORD)
    made.extra = json.dumps(extra)
    return dsn_of(made)


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
