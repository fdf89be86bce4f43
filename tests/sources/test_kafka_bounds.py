"""Kafka topics from where a consumer group stands, and up to an end, against a real broker."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from hypothesis import given
from hypothesis import strategies as st

from lockstep.errors import OffsetsExpired, SourceNotReady, SourceRefused, SourceUnavailable, TopicRecreated
from lockstep.sources import KafkaSource
from lockstep.sources.base import SourceContext
from lockstep.sources.kafka._offsets import Bound, is_finished
from lockstep.sources.kafka._ranges import TopicRange, position_of
from lockstep.sources.kafka.open_source import OpenKafkaSource
from stack.kafka import KafkaBroker
from tests.sinks.kafka_admin import delete
from tests.sources.test_kafka_source import Topics, by_pattern, expire, ranges
from tests.waiting import until


@pytest.fixture
def topics(kafka_broker: KafkaBroker) -> Topics:
    return Topics(kafka_broker)


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


# --- from where a consumer group stands ---


@pytest.mark.fault("A24")
def test_the_first_epoch_starts_where_a_group_stands_and_no_later_one_asks_for_it(topics: Topics, group: str) -> None:
    topic = topics.create("a")
    for partition in (0, 1):
        topics.send(topic, partition, range(5))
    topics.cluster.commit_offsets(group, {topic: {0: 3, 1: 5}})
    source = topics.source(topic, start=f"group:{group}")
    first = source.latest(None, None)
    assert ranges(first, topic) == {"0": [3, 5], "1": [5, 5]}
    topics.cluster.commit_offsets(group, {topic: {0: 0, 1: 1}})
    topics.send(topic, 1, range(2))
    assert ranges(source.latest(first, None), topic) == {"0": [5, 5], "1": [5, 7]}


@pytest.mark.fault("A24")
def test_a_partition_without_an_offset_of_the_group_is_refused_unless_it_is_said_where_it_starts(
    topics: Topics, group: str
) -> None:
    topic = topics.create("a", 3)
    for partition in range(3):
        topics.send(topic, partition, range(4))
    with pytest.raises(SourceRefused, match=rf"group {group} has committed no offset of {topic}/0, {topic}/1"):
        topics.source(topic, start=f"group:{group}").latest(None, None)
    topics.cluster.commit_offsets(group, {topic: {1: 2}})
    with pytest.raises(SourceRefused, match=rf"no offset of {topic}/0, {topic}/2: "):
        topics.source(topic, start=f"group:{group}").latest(None, None)
    for reset, first in (("earliest", 0), ("latest", 4)):
        source = topics.source(topic, start=f"group:{group}", offset_reset=reset)
        assert ranges(source.latest(None, None), topic) == {"0": [first, 4], "1": [2, 4], "2": [first, 4]}


@pytest.mark.fault("A24")
def test_records_that_a_group_had_still_to_read_and_that_are_gone_are_named(topics: Topics, group: str) -> None:
    topic = topics.create("a", 1)
    topics.send(topic, 0, range(9))
    topics.cluster.commit_offsets(group, {topic: {0: 2}})
    expire(topics, topic, 4)
    with pytest.raises(OffsetsExpired, match="the records 2 to 3"):
        topics.source(topic, start=f"group:{group}").latest(None, None)
    accepting = topics.source(topic, start=f"group:{group}", accept_loss=(topic,))
    assert ranges(accepting.latest(None, None), topic) == {"0": [4, 9]}


@pytest.mark.fault("A24")
def test_a_group_that_stands_behind_a_topics_end_is_refused(topics: Topics, group: str) -> None:
    topic = topics.create("a", 1)
    topics.send(topic, 0, range(9))
    topics.cluster.commit_offsets(group, {topic: {0: 9}})
    _make_anew(topics, topic)
    topics.send(topic, 0, range(2))
    topics.cluster.commit_offsets(group, {topic: {0: 9}})  # brokers forget it with the topic
    with pytest.raises(SourceRefused, match=f"group {group} has committed 9 of {topic}/0, which ends at 2"):
        topics.source(topic, start=f"group:{group}").latest(None, None)
    accepting = topics.source(topic, start=f"group:{group}", accept_loss=(topic,))
    assert ranges(accepting.latest(None, None), topic) == {"0": [0, 2]}


@pytest.mark.fault("A24")
def test_an_offset_of_a_group_behind_an_open_transaction_is_waited_for_and_one_at_it_isnt(
    topics: Topics, group: str
) -> None:
    """Who reads uncommitted records, or has read other partitions of the transaction, may stand there."""
    topic = topics.create("a", 1)
    topics.send(topic, 0, range(3))
    with _open_transaction(topics, topic) as writer:
        topics.send(topic, 0, range(2))
        source = topics.source(topic, start=f"group:{group}")
        topics.cluster.commit_offsets(group, {topic: {0: 3}})
        assert ranges(source.latest(None, None), topic) == {"0": [3, 3]}
        topics.cluster.commit_offsets(group, {topic: {0: 5}})
        with pytest.raises(SourceNotReady, match=f"is open in {topic}/0 since offset 3, before offset 5"):
            source.latest(None, None)
        writer.commit_transaction(30)
    until(lambda: _first(source, topic) is not None, "the transaction is never decided")
    assert _first(source, topic) == 5


@contextmanager
def _open_transaction(topics: Topics, topic: str) -> Iterator[Producer]:
    """One that has a record in the topic's first partition."""
    writer = _begun_transaction(topics, topic)
    writer.produce(topic, b"open", partition=0)
    writer.flush(30)
    yield writer


def _begun_transaction(topics: Topics, topic: str) -> Producer:
    writer = Producer({"bootstrap.servers": topics.broker.bootstrap, "transactional.id": topic, "log_level": 0})
    writer.init_transactions(30)
    writer.begin_transaction()
    return writer


def _make_anew(topics: Topics, topic: str) -> None:
    delete(topics.broker, topic)
    topics.cluster.create_topic(topic, 1, {})


@pytest.mark.fault("A24")
def test_offsets_that_an_open_transaction_commits_are_waited_for(topics: Topics, group: str) -> None:
    """Who reads, writes and commits in transactions has shown what is before the offset, or will never have."""
    topic = topics.create("a", 1)
    topics.send(topic, 0, range(6))
    topics.cluster.commit_offsets(group, {topic: {0: 2}})
    source = topics.source(topic, start=f"group:{group}")
    with _consumer(topics, group) as consumer:
        writer = _begun_transaction(topics, topic)
        offsets = [TopicPartition(topic, 0, 4)]
        writer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
        with pytest.raises(SourceUnavailable, match=f"offsets of group {group}"):
            source.latest(None, None)
        writer.commit_transaction(30)
    until(lambda: _first(source, topic) == 4, "the transaction's offset is never told")


def _first(source: OpenKafkaSource, topic: str) -> int | None:
    try:
        return ranges(source.latest(None, None), topic)["0"][0]
    except (SourceUnavailable, SourceNotReady):
        return None


@contextmanager
def _consumer(topics: Topics, group: str) -> Iterator[Consumer]:
    settings = {"bootstrap.servers": topics.broker.bootstrap, "group.id": group, "enable.auto.commit": "false"}
    consumer = Consumer({**settings, "log_level": 0, "auto.offset.reset": "earliest"})
    try:
        yield consumer
    finally:
        consumer.close()


def test_a_group_whose_consumers_go_on_is_told(topics: Topics, group: str, caplog: pytest.LogCaptureFixture) -> None:
    topic = topics.create("a", 1)
    topics.send(topic, 0, range(3))
    topics.cluster.commit_offsets(group, {topic: {0: 1}})
    source = topics.source(topic, start=f"group:{group}")
    source.latest(None, None)
    assert "members" not in caplog.text
    with _consumer(topics, group) as consumer:
        consumer.subscribe([topic])
        assert consumer.poll(30) is not None
        source.latest(None, None)
    assert f"group {group} has 1 members" in caplog.text


# --- up to an end ---


@pytest.mark.fault("A25")
@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("latest", {"0": (0, 4), "1": (0, 2)}),
        (datetime.fromtimestamp(3, UTC), {"0": (0, 2), "1": (0, 7)}),  # no record tells the end of the second
        ({0: 3, 1: 0}, {"0": (0, 3), "1": (0, 0)}),
    ],
    ids=["latest", "a time", "offsets"],
)
def test_nothing_behind_the_end_is_read_by_any_epoch(topics: Topics, end: Any, expected: dict[str, Any]) -> None:
    topic = topics.create("a")
    for second in (1, 2, 3, 4):
        topics.send(topic, 0, [second], timestamp=second * 1000)
    for second in (1, 2):
        topics.send(topic, 1, [second], timestamp=second * 1000)
    source = topics.source(topic, end={topic: end} if isinstance(end, dict) else end, max_rows_per_epoch=2)
    position = source.latest(None, None)
    assert not source.is_finished(None, position)
    for partition in (0, 1):
        topics.send(topic, partition, range(5), timestamp=1000)  # after the ends are frozen
    read = {number: first for number, (first, _) in ranges(position, topic).items()}
    while not source.is_finished(None, position):
        following = source.latest(position, None)
        for number, (first, end_before) in ranges(following, topic).items():
            assert first == ranges(position, topic)[number][1] <= end_before
        position = following
    assert {number: (read[number], last) for number, (_, last) in ranges(position, topic).items()} == expected
    assert source.is_empty(position, source.latest(position, None))


@pytest.mark.fault("A25")
def test_the_ends_are_those_of_the_first_epoch(topics: Topics) -> None:
    topic = topics.create("a", 1)
    topics.send(topic, 0, range(3))
    source = topics.source(topic, end="latest", max_rows_per_epoch=2)
    first = source.latest(None, None)
    topics.send(topic, 0, range(10))
    admin = AdminClient({"bootstrap.servers": topics.broker.bootstrap})
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
    until(lambda: (found := topics.cluster.topic(topic)) is not None and found.partitions == 2, "no new partition")
    topics.send(topic, 1, range(4))
    second = source.latest(first, None)
    assert ranges(second, topic) == {"0": [2, 3], "1": [0, 0]}
    assert source.is_finished(first, second)


@pytest.mark.fault("A25")
def test_a_finished_source_asks_no_broker(topics: Topics) -> None:
    """Who moved all of a topic deletes it: later epochs are empty, and no alarm."""
    topic = topics.create("a", 1)
    topics.send(topic, 0, range(3))
    source = topics.source(topic, end="latest")
    first = source.latest(None, None)
    assert source.is_finished(None, first)
    delete(topics.broker, topic)
    second = source.latest(first, None)
    source.check(first, second)
    assert (source.is_empty(first, second), source.is_finished(first, second)) == (True, True)
    assert source.latest(second, None) == second
    source.report_published(first, second)
    nobody = SourceContext("pipe", "events", lambda paths: set(), {"kafka": "127.0.0.1:1"})
    with KafkaSource(topic, connection="kafka", end="latest").opened(nobody) as alone:
        assert alone.latest(second, None) == second


@pytest.mark.fault("A25")
def test_a_topic_that_is_read_to_its_end_may_go_while_others_are_read(topics: Topics) -> None:
    small, large = topics.create("a", 1), topics.create("b", 1)
    topics.send(small, 0, range(1))
    topics.send(large, 0, range(5))
    source = topics.source(small, large, end="latest", max_rows_per_epoch=3)
    first = source.latest(None, None)
    assert (ranges(first, small), ranges(first, large)) == ({"0": [0, 1]}, {"0": [0, 2]})
    delete(topics.broker, small)
    second = source.latest(first, None)
    assert list(second["topics"]) == [large]
    assert ranges(second, large) == {"0": [2, 5]}
    assert source.is_finished(first, second)


@pytest.mark.fault("A25")
@pytest.mark.sample(1)
@pytest.mark.parametrize("end", ["latest", datetime(2013, 1, 1, tzinfo=UTC)], ids=["latest", "a time"])
def test_a_pattern_that_finds_no_topic_at_first_finds_the_ends_later(
    end: Any, topics: Topics, caplog: pytest.LogCaptureFixture
) -> None:
    source = by_pattern(topics, end=end)
    first = source.latest(None, None)
    assert (first["topics"], source.is_finished(None, first)) == ({}, False)
    topic = topics.create("a", 1)
    topics.send(topic, 0, range(3), timestamp=int(datetime(2012, 1, 1, tzinfo=UTC).timestamp() * 1000))
    second = source.latest(first, None)
    assert (ranges(second, topic), source.is_finished(first, second)) == ({"0": [0, 3]}, True)
    assert caplog.text.count("there is no topic yet") == 1


@pytest.mark.fault("A25")
def test_a_topic_that_is_found_behind_the_end_is_neither_read_nor_missed(topics: Topics) -> None:
    topic = topics.create("a", 1)
    topics.send(topic, 0, range(9))
    source = by_pattern(topics, end="latest", max_rows_per_epoch=3)
    first = source.latest(None, None)
    later = topics.create("b", 1)
    topics.send(later, 0, range(2))
    second = source.latest(first, None)
    assert list(second["topics"]) == [topic]
    delete(topics.broker, later)
    source.check(first, second)
    third = source.latest(second, None)
    assert (ranges(third, topic), source.is_finished(second, third)) == ({"0": [6, 9]}, True)


@pytest.mark.fault("A25")
def test_the_end_of_a_topic_isnt_that_of_another_one_of_its_name(topics: Topics) -> None:
    topic = topics.create("a", 1)
    topics.send(topic, 0, range(5))
    source = topics.source(topic, end="latest", max_rows_per_epoch=3)
    first = source.latest(None, None)
    _make_anew(topics, topic)
    topics.send(topic, 0, range(9))
    with pytest.raises(TopicRecreated, match=f"{topic} was deleted and recreated"):
        source.latest(first, None)
    accepting = topics.source(topic, end="latest", accept_loss=topic)
    second = accepting.latest(first, None)
    assert (ranges(second, topic), accepting.is_finished(first, second)) == ({"0": [0, 9]}, True)


def test_what_stands_in_an_open_transaction_before_the_end_is_waited_for(topics: Topics) -> None:
    topic = topics.create("a", 1)
    with _open_transaction(topics, topic) as writer:
        source = topics.source(topic, end="latest")
        first = source.latest(None, None)
        assert (ranges(first, topic), source.is_finished(None, first)) == ({"0": [0, 0]}, False)
        writer.commit_transaction(30)
    until(lambda: source.is_finished(None, source.latest(first, None)), "its end is never reached")
    assert ranges(source.latest(first, None), topic) == {"0": [0, 1]}


def test_an_end_that_lies_ahead_is_waited_for_and_another_end_goes_on_where_the_source_had_finished(
    topics: Topics,
) -> None:
    topic = topics.create("a", 1)
    topics.send(topic, 0, range(2))
    ahead = topics.source(topic, end={topic: {0: 3}})
    first = ahead.latest(None, None)
    assert (ranges(first, topic), ahead.is_finished(None, first)) == ({"0": [0, 2]}, False)
    topics.send(topic, 0, range(7))
    later = topics.source(topic, end={topic: {0: 3}}).latest(first, None)
    further = topics.source(topic, end={topic: {0: 5}})
    second = further.latest(later, None)
    assert (ranges(second, topic), further.is_finished(later, second)) == ({"0": [3, 5]}, True)
    nearer = topics.source(topic, end={topic: {0: 4}})
    third = nearer.latest(second, None)
    assert (ranges(third, topic), nearer.is_finished(second, third)) == ({"0": [5, 5]}, True)
    unbounded = topics.source(topic)
    fourth = unbounded.latest(further.latest(second, None), None)
    assert (ranges(fourth, topic), unbounded.is_finished(second, fourth)) == ({"0": [5, 9]}, False)


def test_an_end_that_leaves_a_partition_open_or_names_no_topic_is_refused(topics: Topics) -> None:
    topic = topics.create("a")
    for end, said in (({0: 1}, r"says nothing of partitions \[1\]"), ({0: 1, 1: 1, 2: 1}, r"partitions \[2\]")):
        with pytest.raises(SourceRefused, match=said):
            topics.source(topic, end={topic: end}).latest(None, None)
    missing = f"{topics.prefix}-b"
    with pytest.raises(SourceRefused, match=f"end names {missing}, which isn't there"):
        by_pattern(topics, end={topic: {0: 1, 1: 1}, missing: {0: 1}}).latest(None, None)


_SIZES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=4)


@given(_SIZES)
def test_a_range_is_clipped_at_the_end_and_nowhere_else(sizes: list[tuple[int, int, int]]) -> None:
    whole = TopicRange("1", {number: (first, first + size) for number, (first, size, _) in enumerate(sizes)})
    bound = Bound({}, {"t": {number: end for number, (_, _, end) in enumerate(sizes)}}, {"t": "1"}, complete=True)
    clipped = bound.clip("t", whole)
    for number, (first, end) in clipped.partitions.items():
        most = bound.offsets["t"][number]
        assert set(range(first, end)) == {one for one in range(*whole.partitions[number]) if one < most}
    reached = all(end >= most for end, most in zip(clipped.ends.values(), bound.offsets["t"].values(), strict=True))
    assert is_finished(position_of("c", {"t": clipped}, {}, bound.to_json())) is reached
