"""Kafka through a real Spark: what is read of a frozen range, and a whole epoch from topic to topic."""

from __future__ import annotations

import json
import math
import struct
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from lockstep import Pipeline, run_epoch
from lockstep.connections.kafka.cluster import Cluster
from lockstep.connections.kafka.connection import Asker, java_settings, settings_of
from lockstep.epoch import RunKey, SourceRange
from lockstep.errors import BadRecords, InvalidPipeline, OffsetsExpired, TopicRecreated
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger, migrate
from lockstep.pipeline import Transform
from lockstep.protocol.begin import begin
from lockstep.protocol.stage import stage as run_stage
from lockstep.run import in_process
from lockstep.sinks import FileSink
from lockstep.sources import KafkaSource
from lockstep.sources.kafka._decoding import Decoding
from lockstep.wal.manifest import SourceCount
from lockstep.wal.staging import Staging
from spark_apps.kafka_windows import pipeline
from stack.flight_feed import ORIGINS, Told, events
from stack.kafka import SPARK_AVRO, KafkaBroker
from stack.landing import FIRST_DAY
from stack.window_proof import checks
from tests.sinks.kafka_admin import PLAIN, delete, is_compacted
from tests.sinks.kafka_target import committed
from tests.sources.test_kafka_source import Topics, expire, opened
from tests.spark.kafka_decoders import decode
from tests.spark.pipelines import Nowhere
from tests.spark.staged import stage
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SCHEMA = "id BIGINT, name STRING"


@pytest.fixture
def topics(kafka_broker: KafkaBroker) -> Topics:
    return Topics(kafka_broker)


AVRO = json.dumps(
    {
        "type": "record",
        "name": "event",
        "fields": [{"name": "id", "type": ["null", "long"]}, {"name": "name", "type": ["null", "string"]}],
    }
)
BAD_JSON = [b"{", b'{"id": "x"}', b"7", b'[{"id": 1}]', b"", b"null", b'{"name": "\xff"}']
#: an object, and something behind it
BAD_JSON += [
    b'{"id": 1} x',
    b'{"id": 1}{"id": 2}',
    b'{"id": 1},{"id": 2}',
    b'{"id": 1}]',
    b'{"id": 1}}',
    b'{"id": 1}\n7',
]
#: what ends as an object does, and isn't one
BAD_JSON += [b"7}", b"null}", b'"}', b'[{"id": 1}', b"}", b'"id": 1}']
GOOD_JSON = {b'{"id": 1, "name": "a"}': (1, "a"), b' {"id": 2, "name": "}]"} \n': (2, "}]"), b"{}": (None, None)}
MANY = json.dumps(
    {"type": "record", "name": "many", "fields": [{"name": "l", "type": {"type": "array", "items": "int"}}]}
)


def number(id: int, name: bytes) -> bytes:
    return struct.pack(">q", id) + name


@pytest.mark.fault("J4")
@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("encoding", "schema", "good", "bad"),
    [
        ("bytes", None, {b"x": b"x", None: None, b"\xff": b"\xff"}, []),
        ("string", None, {"ä".encode(): "ä", None: None, b"": ""}, [b"\xff\xfe"]),
        ("json", SCHEMA, GOOD_JSON | {None: None}, BAD_JSON),
        (
            "json",
            "d DECIMAL(4,2), n STRUCT<m: MAP<STRING, INT>>",
            {b'{"d": 1.50}': (Decimal("1.50"), None), b'{"n": {"m": {}}}': (None, ({},)), None: None},
            [b'{"d": 1.505}', b'{"d": 99.999}', b'{"d": 100}'],
        ),
        ("json", "x DOUBLE", {b'{"x": Infinity}': (math.inf,), b"{'x': 1}": (1.0,)}, [b'{"x": Infinity}]']),
        (
            "avro",
            AVRO,
            {b"\x02\x02\x02\x02a": (1, "a"), b"\x00\x00": (None, None), None: None},
            [b"", b"\x02", b"\x09", b"\x00\x00\x00", b"\x02\x02\x02\x02a\x00", b"\x00\x00" * 2],
        ),
        ("avro", '"long"', {b"\x02": 1, None: None}, [b"", b"\x02\x02"]),
        (
            "tests.spark.kafka_decoders:decode",
            SCHEMA,
            {number(1, b"a"): (1, "a"), number(-7, b""): (-7, ""), b"nothing": None, None: None},
            [b"", b"short", number(1, b"\xff"), *(number(5, one) for one in (b"list", b"text", b"large", b"fraction"))],
        ),
        # one block of two, two blocks of one each with their size in front
        (
            "avro",
            MANY,
            {b"\x04\x02\x04\x00": ([1, 2],), b"\x01\x02\x02\x01\x02\x04\x00": ([1, 2],)},
            [b"\x02\x02\x00\x00"],
        ),
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


#: The type that the reader has for bytes, those of the writer, and what is read; None: the record is bad.
DECIMAL: dict[str, Any] = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
FIXED = {**DECIMAL, "type": "fixed", "name": "f", "size": 9}
MILLIS, MICROS = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
TWO_TO_64_AND_5 = (2**64 + 5).to_bytes(9, "big")
AVRO_VALUES: list[tuple[Any, Any, bytes, Any]] = [
    (DECIMAL, None, b"\x04\x30\x39", Decimal("123.45")),
    (DECIMAL, None, b"\x12" + TWO_TO_64_AND_5, None),
    (FIXED, None, TWO_TO_64_AND_5, None),
    ({"type": "array", "items": DECIMAL}, None, b"\x02\x12" + TWO_TO_64_AND_5 + b"\x00", None),
    ({**DECIMAL, "precision": 38}, {**DECIMAL, "precision": 30}, b"\x12" + TWO_TO_64_AND_5, Decimal(2**64 + 5) / 100),
    ({**DECIMAL, "scale": 4}, DECIMAL, b"\x04\x30\x39", None),
    ({**FIXED, "scale": 4}, FIXED, bytes(9), None),
    (["null", MICROS], ["null", MILLIS], b"\x02\x02", None),
    ({"type": "map", "values": "string"}, None, b"\x02\x02k\x04\xc3\xa9\x00", {"k": "é"}),
    ({"type": "map", "values": "string"}, None, b"\x02\x02\xff\x02x\x00", None),
    ({"type": "map", "values": "long"}, None, b"\x02\x02\xff\x02\x00", None),
    (["null", "string"], ["null", "string"], b"\x02\x06\xed\xa0\x80", None),
]


@pytest.mark.tier("all")
@pytest.mark.fault("X9", "W15")
def test_avro_is_read_as_its_bytes_say_or_is_bad(session: SparkSession) -> None:
    if not SPARK_AVRO.present:
        pytest.skip("Spark's Avro is not here: `make kafka` fetches it")
    for reader, writer, body, expected in AVRO_VALUES:
        types = ({"type": "record", "name": "r", "fields": [{"name": "x", "type": one}]} for one in (reader, writer))
        wanted, found = map(json.dumps, types)
        decoding = replace(Decoding.of("here", "value", "avro", wanted), writers={1: found} if writer else None)
        frame = session.createDataFrame([(b"\0\0\0\0\1" * bool(writer) + body,)], "value BINARY")
        frame = frame.selectExpr("*", f"{decoding.decode_sql} AS v")
        [(value,)] = frame.selectExpr(f"IF({decoding.fault_sql('v')}, NULL, v.x)").collect()
        assert value == expected, (reader, writer, body)


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _group_offsets(broker: KafkaBroker, group: str) -> dict[int, int]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(30)
    return {place.partition: place.offset for place in found.topic_partitions}


@pytest.mark.fault("J20")
def test_what_a_function_cant_decode_goes_to_quarantine_with_the_reason_and_nothing_of_the_record_into_messages(
    topics: Topics, session: SparkSession, tmp_path: Path
) -> None:
    read = topics.create("in", 1)
    topics.send_raw(read, [{"value": one} for one in (number(1, b"a"), b"secret", number(2, b"text"), b"nothing")])
    more: dict[str, Any] = {"connection": "kafka", "value": decode, "value_schema": SCHEMA}
    quarantining = KafkaSource(read, **more, on_bad_records="quarantine")
    planned = _range(topics, quarantining)
    found = stage(session, tmp_path, _pipeline(quarantining), planned, _connections(topics))
    assert found.result.sources == {"events": SourceCount(4, 2)}
    assert [row["value"] for row in found.rows()] == [{"id": 1, "name": "a"}, None]
    kept = [path for path in found.folder.rglob("*.json") if path.parent.name == "events"]
    told = [json.loads(line) for path in kept for line in path.read_text().splitlines()]
    assert {(one["file"], one["why"]) for one in told} == {
        (f"kafka:{read}/0@1", "decode raised error"),  # struct's
        (f"kafka:{read}/0@2", "decode returned a str for column id, which isn't int64"),
    }
    with pytest.raises(BadRecords, match="/0@2: decode returned a str for column id") as failure:
        stage(session, tmp_path, _pipeline(KafkaSource(read, **more)), planned, _connections(topics))
    assert "secret" not in str(failure.value)


@pytest.mark.tier("all")
@pytest.mark.fault("X5")
def test_records_whose_time_is_in_smaller_units_go_to_quarantine_with_their_place(
    topics: Topics, session: SparkSession, tmp_path: Path
) -> None:
    """Spark reads microseconds as the year 57971, and fails at nanoseconds."""
    read = topics.create("in", 2, message_timestamp_after_max_ms=str((1 << 63) - 1))
    good, micros, nanos = 1_767_225_600_000, 1_767_225_600_000_000, 1_767_225_600_000_000_000
    times = [good, micros, nanos, good + 1, nanos, good + 2, 253_402_300_799_999]
    topics.send_raw(read, [{"value": b"%d" % n, "timestamp": t, "partition": 0} for n, t in enumerate(times)])
    topics.send_raw(read, [{"value": b"x", "timestamp": good, "partition": 1, "headers": [("a", b"b")]}])
    source = KafkaSource(read, connection="kafka", on_bad_records="quarantine", value="string", headers=True)
    planned = _range(topics, source)
    found = stage(session, tmp_path, _pipeline(source), planned, _connections(topics))
    assert found.result.sources == {"events": SourceCount(8, 3)}
    rows = {(row["partition"], row["offset"]): row["timestamp"] for row in found.rows()}
    assert rows[0, 3] == datetime(2026, 1, 1, microsecond=1000, tzinfo=UTC)
    assert sorted(rows) == [(0, 0), (0, 3), (0, 5), (0, 6), (1, 0)]
    kept = [path for path in found.folder.rglob("*.json") if path.parent.name == "events"]
    told = [json.loads(line) for path in kept for line in path.read_text().splitlines()]
    assert {one["file"]: int(one["why"].split()[3]) for one in told} == {
        f"kafka:{read}/0@{offset}": times[offset] for offset in (1, 2, 4)
    }
    with pytest.raises(BadRecords, match=f"/0@2: its time is {nanos} ms after 1970"):
        stage(session, tmp_path, _pipeline(KafkaSource(read, connection="kafka")), planned, _connections(topics))


@pytest.mark.fault("J20")
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("away", "named"),
    # named by its class alone: its text may quote a row
    [(b"away", "ConnectionError"), (b"away for a client", "kafka_decoders.NoSchema")],
    ids=["by the system", "by a client"],
)
def test_what_the_system_refuses_a_function_is_no_bad_record(
    away: bytes, named: str, topics: Topics, session: SparkSession, tmp_path: Path
) -> None:
    read = topics.create("in", 1)
    topics.send_raw(read, [{"value": number(1, b"a")}, {"value": away}])
    source = KafkaSource(read, connection="kafka", value=decode, value_schema=SCHEMA, on_bad_records="quarantine")
    with pytest.raises(Exception, match=named):
        stage(session, tmp_path, _pipeline(source), _range(topics, source), _connections(topics))


def as_they_are(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"rows": inputs["events"]}


def _pipeline(source: KafkaSource, transform: Transform = as_they_are) -> Pipeline:
    return Pipeline(name="events", sources={"events": source}, transform=transform, sinks=[Nowhere("to")])


def _connections(topics: Topics) -> dict[str, str]:
    return {"kafka": topics.broker.bootstrap}


def _range(topics: Topics, source: KafkaSource) -> dict[str, SourceRange]:
    return {"events": SourceRange(None, opened(source, topics.broker).latest(None, None))}


def test_the_wal_has_what_readers_of_committed_records_see_each_partition_in_its_order(
    topics: Topics, session: SparkSession, tmp_path: Path, kafka_broker: KafkaBroker
) -> None:
    topic = topics.create("a", 3)
    writer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "transactional.id": topic, "log_level": 0})
    writer.init_transactions(30)
    ends = [writer.commit_transaction, writer.abort_transaction, writer.commit_transaction, None]
    for number, end in enumerate(ends):
        writer.begin_transaction()
        for record in range(300):
            value = None if record % 50 == 0 else f"{number}/{record}".encode()
            headers = [("n", b"%d" % record), ("none", None)] if record % 2 else None
            key = None if record % 3 == 0 else b"k"
            writer.produce(topic, value, key=key, partition=record % 2, headers=headers)
        writer.flush(30)
        if end is not None:
            end(30)
    topics.send(topic, 0, range(5))  # behind the open transaction
    source = KafkaSource(topic, connection="kafka", headers=True)
    found = stage(session, tmp_path, _pipeline(source), _range(topics, source), _connections(topics))
    writer.abort_transaction(30)
    assert found.result.rows == {"rows": 600}
    assert found.result.sources == {"events": SourceCount(600)}
    rows = [_seen(row) for row in found.rows()]
    for partition in (0, 1):
        sent = [_told(one) for one in committed(kafka_broker, topic) if one.partition() == partition]
        assert [row for row in rows if row[0] == partition] == sent[:300]


def _seen(row: Mapping[str, Any]) -> tuple[Any, ...]:
    headers = [(one["key"], one["value"]) for one in row["headers"]] if row["headers"] else None
    return (row["partition"], row["offset"], row["key"], row["value"], headers)


def _told(message: Any) -> tuple[Any, ...]:
    return (message.partition(), message.offset(), message.key(), message.value(), message.headers())


@pytest.mark.fault("A4")
def test_a_compacted_topic_is_no_loss(
    topics: Topics, session: SparkSession, tmp_path: Path, kafka_broker: KafkaBroker
) -> None:
    _compact_soon(kafka_broker)
    settings = {"cleanup_policy": "compact", "segment_ms": "50", "min_cleanable_dirty_ratio": "0.01"}
    topic = topics.create("a", 1, **settings)
    topics.send_raw(topic, [{"key": b"%d" % (n % 5), "value": b"%d" % n} for n in range(100)])
    source = KafkaSource(topic, connection="kafka", value="string")
    planned = _range(topics, source)

    def rolled() -> bool:
        topics.send_raw(topic, [{"key": b"later", "value": b"x"}])
        return is_compacted(kafka_broker, topic)

    until(rolled, "the topic was never compacted", 120)
    opened(source, kafka_broker).check(None, planned["events"].end)
    found = stage(session, tmp_path, _pipeline(source), planned, _connections(topics))
    assert [row["value"] for row in found.rows()] == ["95", "96", "97", "98", "99"]


def _compact_soon(broker: KafkaBroker) -> None:
    entry = ConfigEntry("log.cleaner.backoff.ms", "100", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(30)


def expired(topics: Topics, topic: str) -> None:
    expire(topics, topic, 3)


def made_anew(topics: Topics, topic: str) -> None:
    delete(topics.broker, topic)
    topics.cluster.create_topic(topic, 1, {})
    topics.send(topic, 0, range(9))


@pytest.mark.fault("A4")
@pytest.mark.sample(2)
@pytest.mark.parametrize("lose", [expired, made_anew])
@pytest.mark.parametrize("when", ["before the job", "while Spark reads", "before the seal"])
def test_what_is_lost_after_planning_fails_the_epoch_by_its_name(
    when: str,
    lose: Callable[[Topics, str], None],
    topics: Topics,
    session: SparkSession,
    ledger_dsn: str,
    tmp_path: Path,
    kafka_broker: KafkaBroker,
) -> None:
    topic = topics.create("a", 1)
    topics.send(topic, 0, range(7))

    def transform(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        if when == "while Spark reads":  # the range was checked, nothing is read yet
            lose(topics, topic)
        return as_they_are(inputs)

    sink = FileSink("out", output="rows", path=str(tmp_path / "out"))
    pipeline = replace(_pipeline(KafkaSource(topic, connection="kafka"), transform), sinks=[sink])
    run, ledger = RunKey("test", topic), Ledger(ledger_dsn)
    runtime = runtime_for("events", ledger, Staging(str(tmp_path)), {"kafka": kafka_broker.bootstrap}, pipeline)

    def launch(request_uri: str) -> None:
        if when == "before the job":
            lose(topics, topic)
        in_process(pipeline, session, {"kafka": kafka_broker.bootstrap})(request_uri)
        if when == "before the seal":
            lose(topics, topic)

    with closing(ledger):
        migrate(ledger_dsn)
        begin(runtime, run)
        with pytest.raises(OffsetsExpired if lose is expired else TopicRecreated):
            run_stage(runtime, run, launch)
        assert runtime.epoch_of(runtime.attempt_of(run)).wal is None


def test_javas_client_gets_the_same_login() -> None:
    given = {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}
    found = java_settings({**given, "sasl.username": "u", "sasl.password": 'p"w', "java.x": "y"}, "source s")
    assert found["sasl.jaas.config"].endswith('ScramLoginModule required username="u" password="p\\"w";')
    assert found["x"] == "y"
    assert "sasl.password" not in found
    for config in (f'{PLAIN} required username="u" password="hush"', f"{PLAIN} hush;", "hush"):
        with pytest.raises(InvalidPipeline) as told:
            java_settings({"bootstrap.servers": "a:1", "java.sasl.jaas.config": config}, "source s")
        assert "hush" not in str(told.value), "Java would repeat it in its errors"
    right = f'{PLAIN} required username="u" password="a\\"b;c" x=y ;'
    assert java_settings({"java.sasl.jaas.config": right}, "source s")["sasl.jaas.config"] == right


DAYS, EPOCHS = 2, 5


def _send(broker: KafkaBroker, told: list[Told]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for one in told:
        producer.produce("departures", one.value, one.origin, ORIGINS.index(one.origin))
    producer.flush()


def test_hours_that_are_told_about_out_of_order_and_late_are_those_of_a_batch(
    spark_connect: str, kafka_broker: KafkaBroker, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path
) -> None:
    cluster = Cluster(settings_of(kafka_broker.bootstrap, "test"), Asker("test"))
    for topic in ("departures", "hourly_departures"):
        cluster.create_topic(topic, len(ORIGINS), {})
    cluster.close()
    source = pipeline.sources["departures"]
    assert isinstance(source, KafkaSource)
    grouped = replace(pipeline, sources={"departures": replace(source, group="shown")})
    told = events(DAYS)
    for number in range(EPOCHS):
        _send(kafka_broker, told[len(told) * number // EPOCHS : len(told) * (number + 1) // EPOCHS])
        run_epoch(
            grouped,
            spark=spark_connect,
            ledger=ledger_dsn,
            staging=str(tmp_path / "staging"),
            connections={"warehouse": warehouse_dsn, "kafka": kafka_broker.bootstrap},
        )
    ledger = Ledger(ledger_dsn)
    epochs = ledger.sealed_epochs(pipeline.name, 1)
    ledger.close()
    until = datetime.combine(FIRST_DAY + timedelta(days=DAYS), datetime.min.time(), UTC)
    topics = ("departures", "hourly_departures")
    found = checks(epochs, warehouse_dsn, kafka_broker.bootstrap, topics, len(told), until)
    assert [check for check in found if not check.agrees] == []
    counts = [epoch.summary["balances"]["windows"] for epoch in epochs]
    assert len(epochs) == EPOCHS and all(one["in"] for one in counts)
    assert sum(one["late"] for one in counts) and sum(one["corrected"] for one in counts)
    assert sum(_group_offsets(kafka_broker, "shown").values()) == len(told)
