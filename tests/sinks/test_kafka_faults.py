"""What can happen to a KafkaSink besides its own crash: brokers die, transactions expire, topics go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.errors import InvalidPipeline, PreflightRefused, SinkRejected, TargetChanged
from lockstep.kafka.cluster import Cluster
from lockstep.kafka.connection import Asker
from lockstep.sinks.base import SinkContext
from lockstep.sinks.kafka import KafkaSink
from lockstep.testing import SCHEMA, SealedRows, sealed
from lockstep.testing.under_test import DEPLOYMENT, epoch, expect_rows, opened, prepare, publish
from stack.kafka import KafkaBroker
from tests.sinks.kafka_admin import cluster_of, configure, delete, restart
from tests.sinks.kafka_target import KafkaUnderTest, committed


def test_a_broker_that_is_killed_between_vote_and_publication_changes_nothing(kafka_broker: KafkaBroker) -> None:
    target, wal = KafkaUnderTest(kafka_broker), sealed(100)
    vote = prepare(target, epoch(), wal)
    restart(kafka_broker)
    publish(target, epoch(), vote, wal)
    expect_rows(target, wal)


def test_a_topic_that_is_made_anew_is_another_target(kafka_broker: KafkaBroker) -> None:
    target, wal = KafkaUnderTest(kafka_broker), sealed(100)
    vote = prepare(target, epoch(), wal)
    delete(kafka_broker, target.topic)
    with pytest.raises(TargetChanged, match="is gone"):
        publish(target, epoch(), vote, wal)
    with cluster_of(kafka_broker) as cluster:
        cluster.create_topic(target.topic, 3, {})
    with pytest.raises(TargetChanged, match="Nothing was sent"):
        publish(target, epoch(), vote, wal)
    expect_rows(target)


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


@pytest.mark.parametrize(
    ("more", "rows", "error", "says"),
    [
        ({"transaction_timeout": 1000}, sealed(1), PreflightRefused, r"transaction.max.timeout.ms"),
        ({"key": "id"}, sealed(1), PreflightRefused, "cast it in the transform"),
        ({"key": "nothing"}, sealed(1), PreflightRefused, "no such column"),
        ({"value": "name"}, sealed(1), PreflightRefused, "would go nowhere"),
        ({"timestamp": "name"}, sealed(1), PreflightRefused, "no timestamp column"),
        ({"timestamp": "at"}, sealed(1), SinkRejected, "null"),
        ({"timestamp": "at"}, [SealedRows(sealed(3)[0].table.slice(1, 1))], SinkRejected, "milliseconds"),
        ({"partition": "id"}, sealed(4), SinkRejected, "partition 3, the topic has 3"),
    ],
    ids=["timeout", "key's type", "no key", "columns lost", "no time", "null time", "microseconds", "partition"],
)
def test_what_brokers_would_refuse_is_refused_before_the_decision(
    more: dict[str, Any], rows: list[SealedRows], error: type[Exception], says: str, kafka_broker: KafkaBroker
) -> None:
    with pytest.raises(error, match=says):
        prepare(KafkaUnderTest(kafka_broker, **more), epoch(), rows)


def test_a_record_that_the_topic_wouldnt_take_is_refused_before_the_decision(kafka_broker: KafkaBroker) -> None:
    row = sealed(2)[0].table.slice(1, 1)
    large = row.set_column(1, SCHEMA.field("name"), pa.array(["x" * 2_000_000]))
    with pytest.raises(SinkRejected, match=r"max\.message\.bytes"):
        prepare(KafkaUnderTest(kafka_broker), epoch(), [SealedRows(large)])


def test_markers_that_would_be_forgotten_are_refused(kafka_broker: KafkaBroker) -> None:
    target = KafkaUnderTest(kafka_broker)
    cluster = Cluster({"bootstrap.servers": kafka_broker.bootstrap}, Asker("test"))
    cluster.create_topic(f"{target.topic}.markers", 1, {"cleanup.policy": "delete"})
    with pytest.raises(PreflightRefused, match=r"cleanup\.policy"):
        prepare(target, epoch(), sealed(1))


@pytest.mark.parametrize("part", ["topic", "markers", "__transaction_state"])
def test_what_could_be_lost_with_one_broker_is_refused(part: str, kafka_broker: KafkaBroker) -> None:
    target, wal = KafkaUnderTest(kafka_broker), sealed(10)
    publish(target, epoch(), prepare(target, epoch(), wal), wal)
    topic = getattr(target, part, part)
    configure(kafka_broker, topic, "min.insync.replicas", "2")
    try:
        with opened(target) as sink, pytest.raises(PreflightRefused, match=f"{topic}: 1 replicas are in sync"):
            sink.preflight(None)
    finally:
        configure(kafka_broker, topic, "min.insync.replicas", "1")


def test_a_log_of_transactions_that_would_not_last_is_refused_before_it_is_there(
    memory: Path, kafka_jars: None
) -> None:
    settings = {"transaction.state.log.replication.factor": 3, "transaction.state.log.min.isr": 1}
    broker = KafkaBroker(memory / "kafka", settings=settings)
    with broker.for_a_while():
        target = KafkaUnderTest(broker)
        with opened(target) as sink, pytest.raises(PreflightRefused, match="set that to 2"):
            sink.preflight(None)


def test_nothing_of_a_connection_is_told() -> None:
    secret = "verysecret"
    sink = KafkaSink("rows", output="rows", topic="t", connection="kafka")
    settings = f'{{"bootstrap.servers": "127.0.0.1:1", "sasl.password": "{secret}", "acks": "1"}}'
    with pytest.raises(InvalidPipeline, match="acks") as raised, sink.opened(_context(settings)):
        pass
    assert secret not in str(raised.value)
    assert secret not in str(sink.spec())


@pytest.mark.parametrize(
    "wrong",
    [
        {"guarantee": "twice"},
        {"guarantee": "at_least_once"},
        {"guarantee": "none", "committer": "/tmp/x"},
        {"guarantee": "none", "shards": 2},
        {"shards": 0},
        {"partitioner": "mine"},
        {"transaction_timeout": 0},
        {"marker_topic": "t"},
    ],
    ids=str,
)
def test_a_pipeline_with_wrong_arguments_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidPipeline):
        KafkaSink("rows", output="rows", topic="t", connection="kafka", **wrong)


def _context(settings: str) -> SinkContext:
    return SinkContext(DEPLOYMENT, "pipe", {"kafka": settings})
