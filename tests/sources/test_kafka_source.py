"""Where epochs of Kafka topics begin and end, against a real broker; and what is said when records are gone."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from hypothesis import given
from hypothesis import strategies as st

from lockstep.connections.kafka.cluster import Cluster
from lockstep.connections.kafka.connection import Asker
from lockstep.epoch import Interval, Position
from lockstep.errors import (
    InvalidPipeline,
    LogTruncated,
    OffsetsExpired,
    SinkUnavailable,
    SourceChanged,
    SourceNotReady,
    SourceRefused,
    TopicRecreated,
)
from lockstep.sources import KafkaSource
from lockstep.sources.base import SourceContext
from lockstep.sources.kafka._ranges import TopicRange, cap
from lockstep.sources.kafka.open_source import OpenKafkaSource
from stack.kafka import KafkaBroker
from tests.sinks.kafka_admin import cluster_of, delete
from tests.waiting import until


class Topics:
    """Topics of one test."""

    def __init__(self, broker: KafkaBroker) -> None:
        self.broker = broker
        self.prefix = f"in-{uuid.uuid4().hex[:8]}"
        self.cluster = Cluster({"bootstrap.servers": broker.bootstrap}, Asker("test"))

    def create(self, name: str, partitions: int = 2, **settings: str) -> str:
        topic = f"{self.prefix}-{name}"
        self.cluster.create_topic(topic, partitions, {n.replace("_", "."): v for n, v in settings.items()})
        return topic

    def send(self, topic: str, partition: int, values: Iterable[Any], **more: Any) -> None:
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})
        for value in values:
            producer.produce(topic, json.dumps(value).encode(), partition=partition, **more)
        assert producer.flush(30) == 0

    def send_raw(self, topic: str, records: Iterable[Mapping[str, Any]], **settings: Any) -> None:
        """Records as `Producer.produce` takes them."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "log_level": 0, **settings})
        for record in records:
            producer.produce(topic, **record)
        assert producer.flush(30) == 0

    def source(self, *topics: str, **more: Any) -> OpenKafkaSource:
        return opened(KafkaSource(topics, connection="kafka", **more), self.broker)


def opened(source: KafkaSource, broker: KafkaBroker) -> OpenKafkaSource:
    return source.open(SourceContext("pipe", "events", lambda paths: set(), {"kafka": broker.bootstrap}))


def ranges(position: Position, topic: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = position["topics"][topic]["partitions"]
    return found


@pytest.fixture
def topics(kafka_broker: KafkaBroker) -> Topics:
    return Topics(kafka_broker)


def test_each_epoch_goes_on_where_the_last_one_ended(topics: Topics) -> None:
    topic = topics.create("a")
    topics.send(topic, 0, range(5))
    source = topics.source(topic)
    first = source.latest(None, None)
    assert ranges(first, topic) == {"0": [0, 5], "1": [0, 0]}
    topics.send(topic, 1, range(3))
    second = source.latest(first, None)
    assert ranges(second, topic) == {"0": [5, 5], "1": [0, 3]}
    assert not source.is_empty(first, second)
    assert source.is_empty(second, source.latest(second, None))
    with pytest.raises(SourceChanged, match="of cluster elsewhere"):
        source.latest({**first, "cluster": "elsewhere"}, None)


def test_an_epoch_ends_before_the_oldest_open_transaction(topics: Topics, caplog: pytest.LogCaptureFixture) -> None:
    topic = topics.create("a")
    topics.send(topic, 0, range(2))
    writer = Producer({"bootstrap.servers": topics.broker.bootstrap, "transactional.id": topic, "log_level": 0})
    writer.init_transactions(30)
    writer.begin_transaction()
    writer.produce(topic, b"open", partition=0)
    writer.flush(30)
    topics.send(topic, 0, range(2))  # behind it
    source = topics.source(topic)
    first = source.latest(None, None)
    assert ranges(first, topic)["0"] == [0, 2]
    assert ranges(source.latest(first, None), topic)["0"] == [2, 2]
    assert f"3 offsets of {topic}/0 wait for a transaction that is open since offset 2" in caplog.text
    writer.commit_transaction(30)
    until(lambda: ranges(source.latest(first, None), topic)["0"] == [2, 6], "the commit's own record is the sixth")


def test_the_first_epoch_starts_where_it_is_told_to(topics: Topics, subtests: pytest.Subtests) -> None:
    topic = topics.create("a")
    for second in (1, 2, 3, 4):
        topics.send(topic, 0, [second], timestamp=second * 1000)
    starts: list[tuple[Any, list[int]]] = [
        ("earliest", [0, 4]),
        ("latest", [4, 4]),
        (datetime.fromtimestamp(3, UTC), [2, 4]),
        ({topic: {0: 3}}, [3, 4]),
    ]
    for start, expected in starts:
        with subtests.test(start=start):
            found = ranges(topics.source(topic, start=start).latest(None, None), topic)
            assert found == {"0": expected, "1": [0, 0]}


def test_a_start_that_isnt_there_is_refused(topics: Topics) -> None:
    topic = topics.create("a", 1)
    topics.send(topic, 0, range(3))
    for start, said in (({0: 4}, "ends at 3"), ({1: 0}, r"partitions \[1\]")):
        with pytest.raises(SourceRefused, match=said):
            topics.source(topic, start={topic: start}).latest(None, None)
    expire(topics, topic, 2)
    with pytest.raises(OffsetsExpired, match="the records 1 to 1"):
        topics.source(topic, start={topic: {0: 1}}).latest(None, None)


@pytest.mark.fault("A7")
def test_a_partition_that_has_a_backlog_is_in_every_epoch_whatever_the_cap(topics: Topics) -> None:
    """Windows would take one that isn't for idle, and close over what waits in it."""
    topic = topics.create("a", 3)
    for partition in range(3):
        topics.send(topic, partition, range(4))
    source = topics.source(topic, max_rows_per_epoch=1)
    position = None
    for _ in range(4):
        position = source.latest(position, None)
        assert [end - first for first, end in ranges(position, topic).values()] == [1, 1, 1]
    assert source.is_empty(None, source.latest(position, None))


def expire(topics: Topics, topic: str, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": topics.broker.bootstrap})
    admin.delete_records([TopicPartition(topic, 0, before)])[TopicPartition(topic, 0)].result(30)


@pytest.mark.fault("A7")
def test_no_partition_waits_for_ever_behind_a_cap() -> None:
    offered = {"big": TopicRange("1", {0: (0, 10**9), 1: (5, 5)}), "small": TopicRange("2", {0: (7, 10)})}
    assert cap(offered, 1_000)["small"].partitions == {0: (7, 8)}
    assert cap(offered, 1_000)["big"].partitions == {0: (0, 999), 1: (5, 5)}
    assert cap(offered, 1)["big"].partitions == {0: (0, 1), 1: (5, 5)}
    assert cap(offered, 1)["small"].partitions == {0: (7, 8)}


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8), st.integers(1, 300))
def test_a_cap_is_used_up_and_passed_only_for_one_offset_of_each_partition(sizes: list[int], most: int) -> None:
    offered = {"t": TopicRange("1", {number: (number, number + size) for number, size in enumerate(sizes)})}
    taken = cap(offered, most)["t"]
    assert taken.offsets == min(max(most, sum(size > 0 for size in sizes)), sum(sizes))
    for number, (first, end) in taken.partitions.items():
        assert number == first <= end <= number + sizes[number]


def test_new_partitions_and_topics_join_at_their_start(topics: Topics) -> None:
    topic = topics.create("a", 1)
    source = opened(KafkaSource(pattern=f"{topics.prefix}-.*", connection="kafka", start="latest"), topics.broker)
    topics.send(topic, 0, range(3))
    first = source.latest(None, None)
    assert ranges(first, topic) == {"0": [3, 3]}
    admin = AdminClient({"bootstrap.servers": topics.broker.bootstrap})
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
    later = topics.create("b", 1)
    topics.send(later, 0, range(2))
    until(lambda: _partitions(topics, topic) == 2, "no broker knows the partition")
    topics.send(topic, 1, range(4))
    second = source.latest(first, None)
    assert ranges(second, topic) == {"0": [3, 3], "1": [0, 4]}
    assert ranges(second, later) == {"0": [0, 2]}


def _partitions(topics: Topics, topic: str) -> int:
    found = topics.cluster.topic(topic)
    return found.partitions if found else 0


def test_records_that_have_expired_are_named_never_passed_over(topics: Topics) -> None:
    topic = topics.create("a", 1)
    topics.send(topic, 0, range(10))
    source = topics.source(topic, max_rows_per_epoch=4)
    first = source.latest(None, None)
    expire(topics, topic, 7)
    with pytest.raises(OffsetsExpired, match="the records 0 to 3"):
        source.check(None, first)
    with pytest.raises(OffsetsExpired, match="the records 4 to"):
        topics.source(topic).latest(first, None)
    accepting = topics.source(topic, accept_loss=(topic,))
    assert ranges(accepting.latest(first, None), topic) == {"0": [7, 10]}


@pytest.mark.fault("A5")
@pytest.mark.tier("all")
def test_a_log_that_was_cut_is_named_also_when_it_has_grown_again(memory: Path, kafka_jars: None) -> None:
    with KafkaBroker(memory / "kafka").for_a_while() as broker:
        topics = Topics(broker)
        topic = topics.create("a", 2)
        topics.send(topic, 1, range(5))
        for part in (range(4), range(1)):
            topics.send(topic, 0, part)
        source = topics.source(topic)
        first = source.latest(None, None)
        broker.stop()
        broker.start()  # a new leader, nothing lost
        until(lambda: _end(topics, topic) == 5, "no leader")
        assert ranges(source.latest(first, None), topic) == {"0": [5, 5], "1": [5, 5]}
        broker.kill()
        _cut(broker, f"{topic}-0")
        broker.start()
        until(lambda: _end(topics, topic) == 4, "no leader")
        with pytest.raises(LogTruncated, match="/0 ends at 4"):
            source.latest(first, None)
        accepting = topics.source(topic, accept_loss=(topic,))
        assert ranges(accepting.latest(first, None), topic) == {"0": [4, 4], "1": [5, 5]}
        topics.send(topic, 0, range(7))
        for attempt in (lambda: source.check(None, first), lambda: source.latest(first, None)):
            with pytest.raises(LogTruncated, match="/0 was cut below"):
                attempt()
        assert ranges(accepting.latest(first, None), topic) == {"0": [4, 11], "1": [5, 5]}


def _end(topics: Topics, topic: str) -> int | None:
    """Of the topic's first partition; None while it has no leader, which a client that knew one isn't told."""
    with suppress(SinkUnavailable), cluster_of(topics.broker) as cluster:
        return cluster.ends(topic, range(2))[0]
    return None


def _cut(broker: KafkaBroker, partition: str) -> None:
    """Take the last batch of a partition away, as a disk does that lied, or a replica that was behind and led."""
    [log] = (broker.folder / "data" / partition).glob("*.log")
    os.truncate(log, log.stat().st_size - 1)
    for index in log.parent.glob("*index"):
        index.unlink()


@pytest.mark.fault("A5")
def test_a_topic_that_was_made_anew_is_named(topics: Topics) -> None:
    topic = topics.create("a", 1)
    topics.send(topic, 0, range(3))
    source = topics.source(topic)
    first = source.latest(None, None)
    delete(topics.broker, topic)
    with pytest.raises(TopicRecreated, match="is gone"):
        source.check(None, first)
    topics.cluster.create_topic(topic, 1, {})
    topics.send(topic, 0, range(5))
    with pytest.raises(TopicRecreated, match="deleted and recreated"):
        source.latest(first, None)
    accepting = topics.source(topic, accept_loss=(topic,))
    assert ranges(accepting.latest(first, None), topic) == {"0": [0, 5]}


def test_a_topic_that_a_pattern_no_longer_finds_is_named(topics: Topics) -> None:
    gone, stays = topics.create("a", 1), topics.create("b", 1)
    source = by_pattern(topics)
    first = source.latest(None, None)
    delete(topics.broker, gone)
    with pytest.raises(TopicRecreated, match=f"{gone} is gone"):
        source.latest(first, None)
    accepting = by_pattern(topics, accept_loss=(gone,))
    assert list(accepting.latest(first, None)["topics"]) == [stays]


@pytest.mark.fault("L15")
@pytest.mark.sample(1)
@pytest.mark.parametrize("accepted", [False, True])
def test_a_topic_that_a_list_misses_goes_on_where_it_ended(
    topics: Topics, accepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    missed, listed = topics.create("a", 1), topics.create("b", 1)
    source = by_pattern(topics, accept_loss=(missed,) if accepted else ())
    topics.send(missed, 0, range(3))
    first = source.latest(None, None)
    monkeypatch.setattr(Cluster, "topics", lambda self: [listed])
    topics.send(missed, 0, range(2))
    second = source.latest(first, None)
    monkeypatch.undo()
    topics.send(missed, 0, range(1))
    third = source.latest(second, None)
    assert ranges(second, missed) == {"0": [3, 5]} and ranges(third, missed) == {"0": [5, 6]}


def by_pattern(topics: Topics, **more: Any) -> OpenKafkaSource:
    return opened(KafkaSource(pattern=f"{topics.prefix}-.*", connection="kafka", **more), topics.broker)


def test_a_topic_that_isnt_meant_for_a_while_goes_on_where_it_ended(topics: Topics) -> None:
    one, other = topics.create("a", 1), topics.create("b", 1)
    topics.send(one, 0, range(3))
    both = topics.source(one, other)
    first = both.latest(None, None)
    topics.send(one, 0, range(2))
    second = topics.source(other).latest(first, None)
    third = topics.source(other).latest(second, None)
    assert list(third["topics"]) == [other]
    assert ranges(both.latest(third, None), one) == {"0": [3, 5]}


def test_an_interval_has_the_records_of_its_time(topics: Topics) -> None:
    topic = topics.create("a", 1, message_timestamp_type="LogAppendTime")
    source = topics.source(topic, by_interval=True, settle=timedelta(0))
    topics.send(topic, 0, range(3))
    sent = datetime.now(UTC)
    until(lambda: datetime.now(UTC) > sent + timedelta(milliseconds=5), "time stands still")  # brokers count these
    middle = datetime.now(UTC)
    until(lambda: datetime.now(UTC) > middle + timedelta(milliseconds=5), "time stands still")
    topics.send(topic, 0, range(4))
    until(lambda: datetime.now(UTC) > middle + timedelta(milliseconds=10), "time stands still")
    early, late = Interval(middle - timedelta(days=1), middle), Interval(middle, datetime.now(UTC))
    assert ranges(source.latest(None, early), topic) == {"0": [0, 3]}
    assert ranges(source.latest(None, late), topic) == {"0": [3, 7]}
    with pytest.raises(SourceNotReady):
        source.latest(None, Interval(middle, middle + timedelta(days=1)))
    with pytest.raises(SourceRefused, match="LogAppendTime"):
        topics.source(topics.create("b"), by_interval=True, settle=timedelta(0)).latest(None, early)


def test_an_interval_whose_records_may_have_expired_is_named(topics: Topics) -> None:
    topic = topics.create("a", 1, message_timestamp_type="LogAppendTime", retention_ms="3600000")
    topics.send(topic, 0, range(3))
    expire(topics, topic, 2)
    now = datetime.now(UTC)
    until(lambda: datetime.now(UTC) > now + timedelta(milliseconds=5), "time stands still")
    interval = Interval(now - timedelta(days=1), now)
    more: dict[str, Any] = {"by_interval": True, "settle": timedelta(0)}
    with pytest.raises(OffsetsExpired, match="before 2 are gone"):
        topics.source(topic, **more).latest(None, interval)
    assert ranges(topics.source(topic, **more, accept_loss=(topic,)).latest(None, interval), topic) == {"0": [2, 3]}
    kept = Interval(now - timedelta(minutes=30), now)  # younger than what retention takes
    assert ranges(topics.source(topic, **more).latest(None, kept), topic) == {"0": [2, 3]}


def test_a_source_that_is_closed_leaves_no_client(topics: Topics) -> None:
    """A client has threads of its own, which are none of Python's."""
    topic = topics.create("a")
    context = SourceContext("pipe", "events", lambda paths: set(), {"kafka": topics.broker.bootstrap})
    before = {task.name for task in Path("/proc/self/task").iterdir()}
    with KafkaSource(topic, connection="kafka").opened(context) as source:
        source.latest(None, None)
    assert {task.name for task in Path("/proc/self/task").iterdir()} <= before


def test_wrong_arguments_are_refused(subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any]] = [
        {"topics": ()},
        {"topics": "a", "pattern": "b"},
        {"topics": "a", "value": "xml"},
        {"topics": "a", "value": "json"},
        {"topics": "a", "value_schema": "id INT"},
        {"topics": "a", "start": "yesterday"},
        {"topics": "a", "start": datetime(2013, 1, 1)},
        {"topics": "a", "max_rows_per_epoch": 0},
        {"topics": "a", "on_bad_records": "ignore"},
        {"topics": "a", "start": {"b": {0: 1}}},
        {"topics": "a", "value": "my.module:decode"},
        {"topics": "a", "value": "my.module:", "value_schema": "id INT"},
        {"topics": "a", "value": "my.module:decode", "value_schema": "id INT, s STRUCT<c: VARCHAR(3)>"},
        {"topics": "a", "value": "module:function"},
        {"topics": "a", "registry": "schemas"},
        {"topics": "a", "value": "avro", "value_schema": '"long"', "subjects": "b"},
        {"topics": "a", "start": "group:"},
        {"topics": "a", "start": "group:g", "offset_reset": "newest"},
        {"topics": "a", "start": "earliest", "offset_reset": "latest"},
        {"topics": "a", "start": "group:g", "by_interval": True},
        {"topics": "a", "end": "earliest"},
        {"topics": "a", "end": datetime(2013, 1, 1)},
        {"topics": "a", "end": {"b": {0: 1}}},
        {"topics": "a", "end": "latest", "by_interval": True},
        {"pattern": "(a"},
        {"topics": "a", "value": "avro", "value_schema": "no JSON"},
        {"topics": "a", "key": "avro", "key_schema": '["null", "long"]'},
    ]
    nameless: tuple[Any, ...] = (lambda data: {}, str.upper)  # no other process can import them
    cases += [{"topics": "a", "value": function, "value_schema": "id INT"} for function in nameless]
    for wrong in cases:
        with subtests.test(wrong=wrong), pytest.raises(InvalidPipeline):
            KafkaSource(connection="kafka", **wrong)
