"""Kafka through a real Spark: what is read of a frozen range, and a whole epoch from topic to topic."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient

from lockstep import Pipeline, run_epoch
from lockstep.errors import BadRecords
from lockstep.kafka.java_client import java_settings
from lockstep.ledger import migrate
from lockstep.sinks import KafkaSink
from lockstep.sources import KafkaSource
from stack.kafka import SPARK_AVRO, KafkaBroker
from tests.sinks.kafka_target import committed
from tests.sources.test_kafka_source import Topics, opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id BIGINT, name STRING"


@pytest.fixture
def topics(kafka_broker: KafkaBroker) -> Topics:
    return Topics(kafka_broker)


def test_aborted_and_later_records_are_not_read(topics: Topics, session: SparkSession) -> None:
    topic = topics.create("a", 1)
    writer = Producer({"bootstrap.servers": topics.broker.bootstrap, "transactional.id": topic, "log_level": 0})
    writer.init_transactions(30)
    for number, end in enumerate([writer.commit_transaction, writer.abort_transaction, writer.commit_transaction]):
        writer.begin_transaction()
        for record in range(3):
            writer.produce(topic, f"{number}/{record}".encode())
        writer.flush(30)
        end(30)
    source = topics.source(topic, value="string")
    position = source.latest(None, None)
    topics.send(topic, 0, ["later"])
    rows = source.read(session, None, position).orderBy("offset").collect()
    assert [row.value for row in rows] == ["0/0", "0/1", "0/2", "2/0", "2/1", "2/2"]


AVRO = json.dumps(
    {
        "type": "record",
        "name": "event",
        "fields": [{"name": "id", "type": ["null", "long"]}, {"name": "name", "type": ["null", "string"]}],
    }
)
BAD_JSON = [b"{", b'{"id": "x"}', b"7", b'[{"id": 1}]', b"", b"null", b'{"name": "\xff"}']


@pytest.mark.parametrize(
    ("encoding", "schema", "good", "bad"),
    [
        ("bytes", None, {b"x": b"x", None: None, b"\xff": b"\xff"}, []),
        ("string", None, {"ä".encode(): "ä", None: None, b"": ""}, [b"\xff\xfe"]),
        ("json", SCHEMA, {b'{"id": 1, "name": "a"}': (1, "a"), b"{}": (None, None), None: None}, BAD_JSON),
        (
            "avro",
            AVRO,
            {b"\x02\x02\x02\x02a": (1, "a"), b"\x00\x00": (None, None), None: None},
            [b"", b"\x02", b"\x09"],
        ),
        ("avro", '"long"', {b"\x02": 1, None: None}, [b""]),
    ],
)
@pytest.mark.parametrize("part", ["key", "value"])
def test_what_cant_be_decoded_is_marked_and_nothing_else(
    part: str,
    encoding: str,
    schema: str | None,
    good: dict[bytes | None, Any],
    bad: list[bytes],
    topics: Topics,
    session: SparkSession,
) -> None:
    if encoding == "avro" and not SPARK_AVRO.present:
        pytest.skip("Spark's Avro is not here: `make kafka` fetches it")
    topic, other = topics.create("a", 1), "value" if part == "key" else "key"
    topics.send_raw(topic, [{part: one, other: b"o", "headers": [("h", b"1"), ("h", None)]} for one in [*good, *bad]])
    source = topics.source(topic, headers=True, **{part: encoding, f"{part}_schema": schema})
    records = source.read_records(session, None, source.latest(None, None))
    rows = records.good().orderBy("offset").collect()
    assert [row[part] for row in rows] == list(good.values())
    assert {bytes(row[other]) for row in rows} == {b"o"}
    assert rows[0].headers == [("h", b"1"), ("h", None)]
    if bad:
        told = {row.file: json.loads(row.record) for row in records.bad().collect()}
        assert [told[f"kafka:{topic}/0@{len(good) + number}"] for number in range(len(bad))] == [
            {part: one.decode(), other: "o"}
            if _is_text(one)
            else {f"{part}_base64": b64encode(one).decode(), other: "o"}
            for one in bad
        ]


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def upper(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"rows": inputs["events"].selectExpr("key", "to_json(struct(value.id, upper(value.name) AS name)) AS value")}


def test_epochs_move_from_topic_to_topic_once(
    topics: Topics, spark_connect: str, ledger_dsn: str, tmp_path: Path, kafka_broker: KafkaBroker
) -> None:
    read, written = topics.create("in", 2), topics.create("out", 3)
    migrate(ledger_dsn)
    pipeline = Pipeline(
        name="events",
        sources={"events": _source(read)},
        transform=upper,
        sinks=[KafkaSink("out", output="rows", topic=written, connection="kafka", key="key", value="value")],
    )

    def run() -> Any:
        return run_epoch(
            pipeline,
            ledger=ledger_dsn,
            staging=str(tmp_path),
            spark=spark_connect,
            connections={"kafka": kafka_broker.bootstrap},
        )

    topics.send(read, 0, ({"id": n, "name": f"n{n}"} for n in range(20)))
    assert run().rows == {"rows": 20}
    topics.send(read, 1, ({"id": n, "name": f"n{n}"} for n in range(20, 25)))
    assert run().rows == {"rows": 5}
    assert run().rows == {"rows": 0}
    found = Counter(json.loads(message.value())["name"] for message in committed(kafka_broker, written))
    assert found == Counter(f"N{n}" for n in range(25))
    asked = ConsumerGroupTopicPartitions("monitored")
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    group = admin.list_consumer_group_offsets([asked])["monitored"].result(30)
    offsets = {place.partition: place.offset for place in group.topic_partitions}
    assert offsets == {0: 20, 1: 5}


def _source(topic: str) -> KafkaSource:
    return KafkaSource(topic, connection="kafka", value="json", value_schema=SCHEMA, group="monitored")


def test_a_record_that_isnt_what_it_should_be_fails_the_epoch_by_its_place(
    topics: Topics, spark_connect: str, ledger_dsn: str, tmp_path: Path, kafka_broker: KafkaBroker
) -> None:
    read, written = topics.create("in", 1), topics.create("out", 3)
    migrate(ledger_dsn)
    topics.send(read, 0, [{"id": 1}, "nonsense"])
    sink = KafkaSink("out", output="rows", topic=written, connection="kafka", key="key", value="value")
    pipeline = Pipeline(name="events", sources={"events": _source(read)}, transform=upper, sinks=[sink])
    with pytest.raises(BadRecords, match=f"kafka:{read}/0@1"):
        run_epoch(
            pipeline,
            ledger=ledger_dsn,
            staging=str(tmp_path),
            spark=spark_connect,
            connections={"kafka": kafka_broker.bootstrap},
        )
    assert committed(kafka_broker, written) == []


def test_javas_client_gets_the_same_login() -> None:
    given = {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}
    found = java_settings({**given, "sasl.username": "u", "sasl.password": 'p"w', "java.x": "y"}, "source s")
    assert found["sasl.jaas.config"].endswith('ScramLoginModule required username="u" password="p\\"w";')
    assert found["x"] == "y"
    assert "sasl.password" not in found


def test_a_source_is_opened_before_it_is_asked(kafka_broker: KafkaBroker) -> None:
    assert opened(KafkaSource("a", connection="kafka"), kafka_broker).connections == ("kafka",)
