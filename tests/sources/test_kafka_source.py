"""Where epochs of Kafka topics begin and end, against a real broker; and what is said when records are gone."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from lockstep.epoch import Interval, Position
from lockstep.errors import (
    InvalidPipeline,
    LogTruncated,
    OffsetsExpired,
    SourceChanged,
    SourceNotReady,
    SourceRefused,
    TopicRecreated,
)
from lockstep.kafka.cluster import Cluster
from lockstep.kafka.connection import Asker
from lockstep.sources import KafkaSource
from lockstep.sources.base import SourceContext
from stack.kafka import KafkaBroker
from tests.sinks.test_kafka_faults import delete, wait_until


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

    def source(self, *topics: str, **more: Any) -> KafkaSource:
        return opened(KafkaSource(topics, connection="kafka", **more), self.broker)


def opened(source: KafkaSource, broker: KafkaBroker) -> KafkaSource:
    source.open(SourceContext("pipe", "events", lambda paths: set(), {"kafka": broker.bootstrap}))
    return source


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


def test_an_epoch_ends_before_the_oldest_open_transaction(topics: Topics) -> None:
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
    writer.commit_transaction(30)
    wait_until(lambda: ranges(source.latest(first, None), topic)["0"] == [2, 6], "the commit's own record is the sixth")


def test_a_cap_takes_some_of_every_partition(topics: Topics) -> None:
    topic = topics.create("a", 3)
    topics.send(topic, 0, range(80))
    topics.send(topic, 1, range(20))
    source = topics.source(topic, max_rows_per_epoch=10)
    position, taken = None, []
    while not (position and source.is_empty(None, position)):
        position = source.latest(position, None)
        taken.append(sum(end - first for first, end in ranges(position, topic).values()))
    assert taken == [10] * 10 + [0]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("earliest", {"0": [0, 4], "1": [0, 0]}),
        ("latest", {"0": [4, 4], "1": [0, 0]}),
        (datetime.fromtimestamp(3, UTC), {"0": [2, 4], "1": [0, 0]}),
        ("offsets", {"0": [3, 4], "1": [0, 0]}),
    ],
    ids=["earliest", "latest", "a time", "offsets"],
)
def test_the_first_epoch_starts_where_it_is_told_to(topics: Topics, start: Any, expected: dict[str, list[int]]) -> None:
    topic = topics.create("a")
    for second in (1, 2, 3, 4):
        topics.send(topic, 0, [second], timestamp=second * 1000)
    begin = {topic: {0: 3}} if start == "offsets" else start
    assert ranges(topics.source(topic, start=begin).latest(None, None), topic) == expected


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
    wait_until(lambda: _partitions(topics, topic) == 2, "no broker knows the partition")
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
    admin = AdminClient({"bootstrap.servers": topics.broker.bootstrap})
    admin.delete_records([TopicPartition(topic, 0, 7)])[TopicPartition(topic, 0)].result(30)
    with pytest.raises(OffsetsExpired, match="the records 0 to 3"):
        source.check(None, first)
    with pytest.raises(OffsetsExpired, match="the records 4 to"):
        topics.source(topic).latest(first, None)
    accepting = topics.source(topic, accept_loss=(topic,))
    assert ranges(accepting.latest(first, None), topic) == {"0": [7, 10]}


def test_a_log_that_was_cut_is_named(topics: Topics) -> None:
    topic = topics.create("a", 1)
    topics.send(topic, 0, range(3))
    source = topics.source(topic)
    position = source.latest(None, None)
    position["topics"][topic]["partitions"]["0"] = [0, 5]  # as if two more had been there: no broker cuts on demand
    with pytest.raises(LogTruncated, match="ends at 3"):
        source.latest(position, None)
    with pytest.raises(LogTruncated, match="ends at 3"):
        source.check(None, position)


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
    with pytest.raises(TopicRecreated, match="made anew"):
        source.latest(first, None)
    accepting = topics.source(topic, accept_loss=(topic,))
    assert ranges(accepting.latest(first, None), topic) == {"0": [0, 5]}


def test_another_cluster_is_named(topics: Topics) -> None:
    topic = topics.create("a", 1)
    source = topics.source(topic)
    first = source.latest(None, None)
    with pytest.raises(SourceChanged, match="of cluster elsewhere"):
        source.latest({**first, "cluster": "elsewhere"}, None)


def test_an_interval_has_the_records_of_its_time(topics: Topics) -> None:
    topic = topics.create("a", 1, message_timestamp_type="LogAppendTime")
    source = topics.source(topic, by_interval=True, settle=timedelta(0))
    topics.send(topic, 0, range(3))
    middle = datetime.now(UTC)
    wait_until(lambda: datetime.now(UTC) > middle + timedelta(milliseconds=5), "time stands still")
    topics.send(topic, 0, range(4))
    wait_until(lambda: datetime.now(UTC) > middle + timedelta(milliseconds=10), "time stands still")
    early, late = Interval(middle - timedelta(days=1), middle), Interval(middle, datetime.now(UTC))
    assert ranges(source.latest(None, early), topic) == {"0": [0, 3]}
    assert ranges(source.latest(None, late), topic) == {"0": [3, 7]}
    with pytest.raises(SourceNotReady):
        source.latest(None, Interval(middle, middle + timedelta(days=1)))


def test_an_interval_of_producers_times_is_refused(topics: Topics) -> None:
    topic = topics.create("a", 1)
    day = datetime(2013, 1, 1, tzinfo=UTC)
    with pytest.raises(SourceRefused, match="LogAppendTime"):
        topics.source(topic, by_interval=True).latest(None, Interval(day, day + timedelta(days=1)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"topics": ()},
        {"topics": "a", "pattern": "b"},
        {"topics": "a", "value": "xml"},
        {"topics": "a", "value": "json"},
        {"topics": "a", "value_schema": "id INT"},
        {"topics": "a", "start": "yesterday"},
        {"topics": "a", "start": datetime(2013, 1, 1)},
        {"topics": "a", "max_rows_per_epoch": 0},
        {"topics": "a", "on_bad_records": "ignore"},
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidPipeline):
        KafkaSource(connection="kafka", **wrong)
