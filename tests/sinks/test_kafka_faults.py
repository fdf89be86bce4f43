"""What can happen to a KafkaSink besides its own crash: brokers die, transactions expire, topics go."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.errors import (
    InvalidPipeline,
    PreflightRefused,
    PublishBlocked,
    SinkRejected,
    SinkUnavailable,
    TargetChanged,
    TargetUnreadable,
)
from lockstep.kafka.cluster import SECONDS as PATIENCE
from lockstep.kafka.cluster import Cluster
from lockstep.kafka.connection import Asker
from lockstep.kafka.limits import AFTER, BEFORE, EITHER, Limit, TopicLimits
from lockstep.sinks.kafka import KafkaSink
from lockstep.sinks.values import SinkContext
from lockstep.testing import SCHEMA, SealedRows, sealed
from lockstep.testing._under_test import DEPLOYMENT, epoch, expect_rows, opened, prepare, publish
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


def test_a_topic_that_isnt_there_is_missed_at_once(kafka_broker: KafkaBroker) -> None:
    target = KafkaUnderTest(kafka_broker)
    with cluster_of(kafka_broker) as cluster:
        assert cluster.ends(target.topic, range(3)) == {0: 0, 1: 0, 2: 0}
        delete(kafka_broker, target.topic)
        asked = time.monotonic()
        for topic in (target.topic, "never-made"):
            with pytest.raises(SinkUnavailable, match="UNKNOWN_TOPIC_OR_PART"):
                cluster.ends(topic, range(3))
        assert time.monotonic() - asked < PATIENCE  # it wasn't asked again and again


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


@pytest.mark.parametrize("shards", [1, 2])
def test_headers_can_be_a_column(shards: int, kafka_broker: KafkaBroker) -> None:
    target = KafkaUnderTest(kafka_broker, key=None, headers="h", shards=shards)
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

    def of(size: int) -> list[SealedRows]:
        return with_headers([{"key": "a" * 20, "value": b"x"}] * 5 + [{"key": "b", "value": b"y" * size}], None)

    taken, refused = 0, 2000
    while refused - taken > 1:
        size = (taken + refused) // 2
        try:
            prepare(target, epoch(), of(size))
            taken = size
        except SinkRejected as error:
            assert "row 0 (the first is 0) has" in str(error)
            refused = size
    assert taken > 1000
    publish(target, epoch(), prepare(target, epoch(), of(taken)), of(taken))
    assert len(committed(kafka_broker, target.topic)) == 2


@pytest.mark.fault("E19")
def test_what_brokers_would_refuse_is_refused_before_the_decision(
    kafka_broker: KafkaBroker, subtests: pytest.Subtests
) -> None:
    target = KafkaUnderTest(kafka_broker)
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
        (
            {"key": None, "headers": "h"},
            with_headers(None, [{"key": "a", "value": None}], [None]),
            SinkRejected,
            "row 2 .* without a name",
        ),
        (
            {"key": None, "headers": "h"},
            with_headers([], [{"key": "a", "value": None}, {"key": "lockstep-replaces", "value": b"1"}]),
            SinkRejected,
            "row 1 .* of the names lockstep, ",
        ),
        (
            {"key": None, "headers": "h"},
            with_headers([], [{"key": "lockstep\0", "value": b"1"}]),
            SinkRejected,
            "row 1 .* a NUL in its name",
        ),
    ]
    for target.more, rows, error, says in cases:
        with subtests.test(f"{target.more} {says}"), pytest.raises(error, match=says):
            prepare(target, epoch(), rows)


HOUR = 3_600_000  # milliseconds


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
    "no key, kept for a while": ("cleanup.policy", "compact,delete", (None,), "row 0 .*no key"),
}


def _timed_target(broker: KafkaBroker, **more: Any) -> KafkaUnderTest:
    return KafkaUnderTest(broker, **{"key": "k", "value": "v", "timestamp": "t"} | more)


@pytest.mark.fault("L8")
def test_a_row_that_brokers_would_refuse_for_ever_gets_no_vote_and_is_named(
    kafka_broker: KafkaBroker, subtests: pytest.Subtests
) -> None:
    for name, (setting, value, ago, says) in REFUSED_FOR_EVER.items():
        target = _timed_target(kafka_broker)
        configure(kafka_broker, target.topic, setting, value)
        with subtests.test(name):
            with pytest.raises(SinkRejected, match=says) as raised:
                prepare(target, epoch(), _timed(*ago))
            told = str(raised.value)
            assert "output rows" in told
            assert setting in told
            assert "verysecret" not in told


@pytest.mark.fault("L8")
def test_a_topic_that_takes_less_after_the_vote_holds_the_epoch_up_and_is_named(
    kafka_broker: KafkaBroker, subtests: pytest.Subtests
) -> None:
    """That brokers do refuse such rows, and that the setting alone is the way out."""
    for name, (setting, value, ago, _) in REFUSED_FOR_EVER.items():
        target, rows = _timed_target(kafka_broker), _timed(*ago)
        generous = str(2**63 - 1) if value == str(HOUR) else "delete"
        configure(kafka_broker, target.topic, setting, generous)
        vote = prepare(target, epoch(), rows)
        configure(kafka_broker, target.topic, setting, value)
        with subtests.test(name):
            with opened(target) as sink, pytest.raises(PublishBlocked, match=re.escape(setting)):
                sink.publish(epoch(), vote, rows)
            configure(kafka_broker, target.topic, setting, generous)
            publish(target, epoch(), vote, rows)
            assert len(committed(kafka_broker, target.topic)) == len(ago)


def test_a_topic_that_takes_less_is_named_without_transactions_too(kafka_broker: KafkaBroker, tmp_path: Path) -> None:
    target = _timed_target(kafka_broker, guarantee="at_least_once", committer=str(tmp_path))
    rows = _timed(timedelta(hours=2))
    vote = prepare(target, epoch(), rows)
    configure(kafka_broker, target.topic, BEFORE, str(HOUR))
    with opened(target) as sink, pytest.raises(PublishBlocked, match=re.escape(BEFORE)):
        sink.publish(epoch(), vote, rows)


def test_what_a_topic_takes_at_its_limits_gets_a_vote_and_is_taken(kafka_broker: KafkaBroker) -> None:
    target = _timed_target(kafka_broker, transaction_timeout=20)
    for setting, value in ((BEFORE, str(HOUR)), (AFTER, str(HOUR)), ("cleanup.policy", "compact")):
        configure(kafka_broker, target.topic, setting, value)
    [timed] = _timed(timedelta(minutes=59), -timedelta(minutes=59))
    rows = [SealedRows(timed.table.set_column(0, "k", pa.array(["", "key"])))]  # an empty key is one
    publish(target, epoch(), prepare(target, epoch(), rows), rows)
    assert len(committed(kafka_broker, target.topic)) == 2


def test_a_record_that_would_be_too_old_when_it_is_sent_gets_no_vote_or_a_warning(
    kafka_broker: KafkaBroker, caplog: pytest.LogCaptureFixture
) -> None:
    target = _timed_target(kafka_broker, transaction_timeout=300)
    configure(kafka_broker, target.topic, BEFORE, str(HOUR))
    with pytest.raises(SinkRejected, match="300 s kept back"):
        prepare(target, epoch(), _timed(timedelta(minutes=57)))
    prepare(target, epoch(), _timed(timedelta(minutes=30)))
    assert "if they are sent later, raise that" in caplog.text


def test_how_far_a_time_may_be_from_now_is_read_as_brokers_read_it() -> None:
    cases: list[tuple[dict[str, str], Limit | None, Limit | None]] = [
        ({EITHER: "5000", BEFORE: str(2**63 - 1), AFTER: str(2**63 - 1)}, (EITHER, 5000), (EITHER, 5000)),
        ({EITHER: "5000", BEFORE: "7000"}, (BEFORE, 7000), (EITHER, 5000)),
        ({AFTER: str(HOUR)}, None, (AFTER, HOUR)),
        ({AFTER: str(HOUR), "message.timestamp.type": "LogAppendTime"}, None, None),
        ({}, None, None),
    ]
    limits = [TopicLimits.of("t", 1, settings) for settings, *_ in cases]
    assert [(one.before, one.after) for one in limits] == [(before, after) for _, before, after in cases]


def test_a_connection_may_take_less_than_its_topic(kafka_broker: KafkaBroker) -> None:
    target = KafkaUnderTest(kafka_broker)
    settings = json.dumps({"bootstrap.servers": kafka_broker.bootstrap, "message.max.bytes": 5000})
    row = sealed(2)[0].table.slice(1, 1)
    large = [SealedRows(row.set_column(1, SCHEMA.field("name"), pa.array(["x" * 6000])))]
    with opened(target, _context(settings)) as sink, pytest.raises(SinkRejected, match=r"message\.max\.bytes=5000"):
        sink.prepare(epoch(), large)


def test_a_segment_may_be_smaller_than_a_message(kafka_broker: KafkaBroker) -> None:
    target = KafkaUnderTest(kafka_broker)
    configure(kafka_broker, target.topic, "max.message.bytes", "4000000")
    configure(kafka_broker, target.topic, "segment.bytes", "1500000")
    row = sealed(2)[0].table.slice(1, 1)
    large = row.set_column(1, SCHEMA.field("name"), pa.array(["x" * 2_000_000]))
    with pytest.raises(SinkRejected, match=r"segment\.bytes=1500000"):
        prepare(target, epoch(), [SealedRows(large)])


@pytest.mark.fault("L8")
def test_a_time_that_brokers_would_replace_is_refused_before_anything_runs(kafka_broker: KafkaBroker) -> None:
    target = _timed_target(kafka_broker)
    configure(kafka_broker, target.topic, "message.timestamp.type", "LogAppendTime")
    with opened(target) as sink, pytest.raises(PreflightRefused, match=r"LogAppendTime.*column t"):
        sink.preflight(None)


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


def test_no_repr_of_what_is_open_has_a_password() -> None:
    sink = KafkaSink("rows", output="rows", topic="t", connection="kafka")
    settings = {"bootstrap.servers": "127.0.0.1:1", "sasl.password": "verysecret", "ssl.key.password": "verysecret"}
    with sink.opened(_context(json.dumps(settings))) as live:
        assert "verysecret" not in repr([live, *vars(live).values()])


def test_an_error_in_open_leaves_no_client() -> None:
    """Each has threads of its own."""
    sink = KafkaSink(
        "rows", output="rows", topic="t", connection="kafka", guarantee="at_least_once", committer="postgres:nowhere"
    )
    before = _threads()
    with pytest.raises(InvalidPipeline, match="nowhere") as raised:
        sink.open(_context("127.0.0.1:1"))
    assert _threads() <= before, raised


def _threads() -> set[str]:
    """Those that the system knows: a client's are none of Python's."""
    return {task.name for task in Path("/proc/self/task").iterdir()}


def test_a_pipeline_with_wrong_arguments_is_refused(subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any]] = [
        {"guarantee": "twice"},
        {"guarantee": "at_least_once"},
        {"guarantee": "none", "committer": "/tmp/x"},
        {"guarantee": "none", "shards": 2},
        {"shards": 0},
        {"partitioner": "mine"},
        {"transaction_timeout": 0},
        {"marker_topic": "t"},
    ]
    for wrong in cases:
        with subtests.test(str(wrong)), pytest.raises(InvalidPipeline):
            KafkaSink("rows", output="rows", topic="t", connection="kafka", **wrong)


def _context(settings: str) -> SinkContext:
    return SinkContext(DEPLOYMENT, "pipe", {"kafka": settings})
