"""KafkaSink whose rows name their topics: one transaction covers all, and each topic is asked what it takes."""

from __future__ import annotations

import json
import logging
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.crash import CrashPoint
from lockstep.errors import InvalidPipeline, PreflightRefused, SinkRejected, TargetChanged
from lockstep.sinks.kafka import KafkaSink
from lockstep.sinks.kafka._markers import ShardMarker
from lockstep.sinks.kafka._open_sink import TransactionalKafkaSink
from lockstep.sinks.values import Publication
from lockstep.testing import OUTPUT, SealedRows, behaviours, sealed
from lockstep.testing._behaviour import CRASHES, Behaviour
from lockstep.testing._children import ended
from lockstep.testing._trial import ROWS as TRIAL_ROWS
from lockstep.testing._under_test import epoch, expect_rows, opened, prepare, publish
from stack.kafka import KafkaBroker
from tests.sinks.guarantees import expect_row
from tests.sinks.kafka_admin import configure, delete, held
from tests.sinks.kafka_observer import observed
from tests.sinks.kafka_target import PARTITIONS, KafkaUnderTest, committed
from tests.sinks.kafka_topics import TopicsUnderTest
from tests.sinks.test_kafka_shards import ROWS, STRIKES, struck
from tests.waiting import until

SCHEMA = pa.schema({"id": pa.int64(), "k": pa.string(), "to": pa.string()})


class NamedUnderTest(TopicsUnderTest):
    """Of rows that name their topics themselves."""

    def _sink(self, topic: str) -> KafkaSink:
        defaults: dict[str, Any] = {"key": "k", "topic_column": "to", "transaction_timeout": 20}
        return KafkaSink(
            "rows",
            output=OUTPUT,
            topics=(topic, self.second),
            connection="kafka",
            marker_topic=f"{topic}.markers",
            **defaults | self.more,
        )


@pytest.fixture
def target(kafka_broker: KafkaBroker) -> NamedUnderTest:
    return NamedUnderTest(kafka_broker)


def rows_for(*to: str | None, key: str | None = "a") -> list[SealedRows]:
    columns = {"id": list(range(len(to))), "k": [key] * len(to), "to": list(to)}
    return [SealedRows(pa.table(columns, SCHEMA), batch_rows=2)]


def ids_in(target: KafkaUnderTest, topic: str) -> list[int]:
    return sorted(json.loads(one.value())["id"] for one in committed(target.broker, topic))


# --- the suite of all sinks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("behaviour", behaviours(TopicsUnderTest), ids=lambda one: one.__name__)
@pytest.mark.sample(4)  # of one topic they are run whole
def test_a_sink_of_two_topics(behaviour: Behaviour, kafka_broker: KafkaBroker) -> None:
    behaviour(TopicsUnderTest(kafka_broker))


@pytest.mark.parametrize(
    "behaviour", [one for one in behaviours(TopicsUnderTest) if one not in CRASHES], ids=lambda one: one.__name__
)
@pytest.mark.sample(3)  # as above
def test_a_sink_of_two_topics_and_three_shards(behaviour: Behaviour, kafka_broker: KafkaBroker) -> None:
    behaviour(TopicsUnderTest(kafka_broker, shards=3))


@pytest.mark.tier("all")
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.sample(1)
def test_the_page_of_guarantees_tells_the_truth(shards: int, kafka_broker: KafkaBroker) -> None:
    """A reader of each topic reads throughout, while publishers are killed and stopped at every point."""
    target = TopicsUnderTest(kafka_broker, shards=shards)
    first, second = target.topics
    with observed(kafka_broker, first, PARTITIONS) as one, observed(kafka_broker, second, PARTITIONS) as other:
        expect_row("KafkaSink, two topics" if shards == 1 else "KafkaSink, two topics and three shards", target)
        epochs = dict.fromkeys(range(1, len({seen.epoch for seen in one.finish()}) + 1), TRIAL_ROWS)
        for number, reader in enumerate((one, other)):
            reader.expect(epochs, ordered=shards == 1, which=slice(number, None, 2))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped and released"])
@pytest.mark.parametrize(("point", "times"), STRIKES.values(), ids=STRIKES)
@pytest.mark.sample(3)
def test_shards_of_several_topics_may_be_struck_anywhere(
    point: CrashPoint, times: int, how: signal.Signals, kafka_broker: KafkaBroker
) -> None:
    target = TopicsUnderTest(kafka_broker, shards=3, transaction_timeout=5.0)
    wal = sealed(ROWS)
    voted = (epoch(), prepare(target, epoch(), wal), wal)
    with ended(struck(target, voted, point, times, how)) as child:
        if how is signal.SIGSTOP:
            assert child.wait_until_stopped()
        else:
            child.wait()
        publish(target, *voted)
        child.release()
        child.wait()
    until(lambda: not any(held(kafka_broker, topic, PARTITIONS) for topic in target.topics), "a transaction stays open")
    assert publish(target, *voted) is Publication.FOUND
    expect_rows(target, wal)


def test_a_sink_of_two_topics_without_transactions(kafka_broker: KafkaBroker, tmp_path: Path) -> None:
    target = TopicsUnderTest(kafka_broker, guarantee="at_least_once", committer=str(tmp_path))
    wal = sealed(40)
    assert publish(target, epoch(), prepare(target, epoch(), wal), wal) is Publication.SENT
    expect_rows(target, wal)
    assert [len(committed(kafka_broker, topic)) for topic in target.topics] == [20, 20]


# --- where rows go ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shards", [1, 2])
def test_each_row_goes_to_the_topic_that_it_names_and_is_read_back_from_there(
    shards: int, target: NamedUnderTest
) -> None:
    target.more["shards"] = shards
    first, second = target.topics
    wal = rows_for(first, second, second, second, second, first)
    for number in (1, 2):
        publish(target, epoch(number), prepare(target, epoch(number), wal), wal)
    assert (ids_in(target, first), ids_in(target, second)) == ([0, 0, 5, 5], [1, 1, 2, 2, 3, 3, 4, 4])
    found = committed(target.broker, first)
    assert all(json.loads(one.value()).keys() == {"id", "k"} for one in found)  # the topic says the rest
    assert sorted(one.headers()[0][1].rpartition(b"/")[2] for one in found) == [b"0", b"0", b"5", b"5"]
    with opened(target) as sink:
        back = pa.Table.from_batches(list(sink.read(2, OUTPUT, SCHEMA)), SCHEMA)
    assert back.sort_by("id") == wal[0].table


def test_values_that_are_a_column_go_to_topics_too(target: NamedUnderTest) -> None:
    target.more |= {"key": None, "value": "v"}
    first, second = target.topics
    rows = [SealedRows(pa.table({"v": ["x", "y"], "to": [second, first]}))]
    publish(target, epoch(), prepare(target, epoch(), rows), rows)
    assert [[one.value() for one in committed(target.broker, topic)] for topic in (first, second)] == [[b"y"], [b"x"]]


def test_a_row_for_no_topic_gets_no_vote_and_is_named(target: NamedUnderTest) -> None:
    for strange, says in {None: "is null", "s3cret": "names none of topics="}.items():
        told = f"output rows, row 3 .the first is 0.: topic_column='to' {says}"
        with pytest.raises(SinkRejected, match=told) as raised:
            prepare(target, epoch(), rows_for(target.topic, target.second, target.topic, strange, target.topic))
        assert "s3cret" not in str(raised.value)


def test_a_column_of_topics_has_to_be_there_and_text(target: NamedUnderTest) -> None:
    for column in ("id", "nothing"):
        target.more["topic_column"] = column
        with pytest.raises(PreflightRefused, match=f"topic_column='{column}' is no column of text"):
            prepare(target, epoch(), rows_for(target.topic))


# --- what each topic takes -------------------------------------------------------------------------------------------


def test_a_topic_is_asked_about_its_own_records_alone(target: NamedUnderTest) -> None:
    first, second = target.topics
    configure(target.broker, first, "cleanup.policy", "compact")
    assert prepare(target, epoch(), rows_for(second, second, key=None)).rows == {OUTPUT: 2}
    with pytest.raises(SinkRejected, match=r"row 2 .* has no key") as raised:
        prepare(target, epoch(), rows_for(second, second, first, key=None))
    assert f"settings of topic {first}" in str(raised.value)
    configure(target.broker, second, "max.message.bytes", "500")
    assert prepare(target, epoch(), rows_for(first, key="a" * 600)).rows == {OUTPUT: 1}
    with pytest.raises(SinkRejected, match=f"row 1 .*max.message.bytes=500.*settings of topic {second}"):
        prepare(target, epoch(), rows_for(first, second, key="a" * 600))


def test_times_and_partitions_are_compared_with_the_topics_own(
    target: NamedUnderTest, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = target.topics
    target.more |= {"timestamp": "t", "partition": "p"}
    now = datetime.now(UTC).replace(microsecond=0)

    def aged(*hours: float, to: str, partition: int = 0) -> list[SealedRows]:
        [rows] = rows_for(*[to] * len(hours))
        times = pa.array([now - timedelta(hours=one) for one in hours], pa.timestamp("us", "UTC"))
        partitions = pa.array([partition] * len(hours), pa.int32())
        return [SealedRows(rows.table.append_column("t", times).append_column("p", partitions))]

    configure(target.broker, second, "message.timestamp.before.max.ms", str(3_600_000))
    caplog.set_level(logging.WARNING)
    prepare(target, epoch(), aged(0.5, 20, to=first))
    assert "takes the oldest" not in caplog.text
    prepare(target, epoch(), aged(0.5, to=second))
    assert f"topic {second} takes the oldest of these records until" in caplog.text
    with pytest.raises(SinkRejected, match=f"row 1 .*past.*settings of topic {second}"):
        prepare(target, epoch(), aged(0.5, 20, to=second))
    with pytest.raises(SinkRejected, match=f"row 0 .*partition 3, the topic has 3.*settings of topic {second}"):
        prepare(target, epoch(), aged(0.1, to=second, partition=3))


@pytest.mark.parametrize("which", [0, 1])
def test_every_topic_has_to_be_there_and_fit(which: int, target: NamedUnderTest) -> None:
    topic = target.topics[which]
    target.more |= {"key": None}
    configure(target.broker, topic, "cleanup.policy", "compact")
    with pytest.raises(PreflightRefused, match=f"topic {topic} is compacted"), opened(target) as sink:
        sink.preflight(None)
    delete(target.broker, topic)
    with pytest.raises(PreflightRefused, match=f"there is no topic {topic}"), opened(target) as sink:
        sink.preflight(None)


@pytest.mark.parametrize("which", [0, 1])
def test_any_topic_that_is_made_anew_is_another_target(which: int, target: NamedUnderTest) -> None:
    first, second = target.topics
    wal = rows_for(first, second)
    vote = prepare(target, epoch(), wal)
    delete(target.broker, target.topics[which])
    with pytest.raises(TargetChanged, match=f"topic {target.topics[which]} is gone"):
        publish(target, epoch(), vote, wal)
    assert committed(target.broker, target.topics[1 - which]) == []


def test_batches_fit_the_topic_that_takes_small_ones_and_records_the_one_that_takes_large_ones(
    target: NamedUnderTest,
) -> None:
    first, second = target.topics
    configure(target.broker, first, "max.message.bytes", "3000")
    configure(target.broker, second, "max.message.bytes", "4000000")
    [rows] = rows_for(*[first] * 500, second)
    keys = pa.array([*["k" * 500] * 500, "k" * 1_900_000])
    wal = [SealedRows(rows.table.set_column(1, "k", keys))]
    publish(target, epoch(), prepare(target, epoch(), wal), wal)
    assert [len(ids_in(target, topic)) for topic in (first, second)] == [500, 1]


# --- what plans and markers say --------------------------------------------------------------------------------------


def test_an_epoch_is_read_back_from_where_each_topic_ended_before_it(target: NamedUnderTest) -> None:
    first, second = target.topics
    for number, wal in enumerate((rows_for(first, first, second), rows_for(second)), 1):
        publish(target, epoch(number), prepare(target, epoch(number), wal), wal)
    with opened(target) as sink:
        assert isinstance(sink, TransactionalKafkaSink)
        starts = sink._starts(2)
    assert {topic: sum(1 for at in starts[topic].values() if at) for topic in target.topics} == {first: 1, second: 1}


def test_a_marker_of_one_topic_says_what_it_always_has() -> None:
    one = ShardMarker.of(epoch(), {"a": {0: 7, 1: 0}}, 2)
    told = {"token": 10, "manifest": epoch().manifest_hash, "starts": {"0": 7, "1": 0}, "shards": 2}
    assert json.loads(one.to_bytes()) == told
    assert ShardMarker.from_bytes(one.to_bytes()).starts_in("a", only=True) == {0: 7, 1: 0}
    assert ShardMarker.from_bytes(one.to_bytes()).starts_in("a", only=False) == {}
    several = ShardMarker.of(epoch(), {"a": {0: 7}, "b": {0: 9}}, 1)
    assert json.loads(several.to_bytes())["starts"] == {}
    found = ShardMarker.from_bytes(several.to_bytes())
    assert found == several
    assert [found.starts_in(topic, only=True) for topic in "abc"] == [{0: 7}, {0: 9}, {}]


def described(**more: Any) -> KafkaSink:
    return KafkaSink("s", output="rows", connection="kafka", **more)


def test_a_plan_has_the_topics_in_one_order_and_of_one_topic_what_it_always_had() -> None:
    sink = described(topics=["b", "a", "b"], topic_column="to")
    assert sink.arguments()["topics"] == ["a", "b"]
    assert KafkaSink.from_spec(sink.spec()) == sink
    assert sink.writes_to() == {"topic a of connection kafka", "topic b of connection kafka"}
    assert not {"topics", "topic_column"} & described(topic="a").spec()["arguments"].keys()


def test_topics_that_are_no_choice_are_refused(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "give either topic, or topics"),
        ({"topics": [], "topic_column": "to"}, "give either topic, or topics"),
        ({"topic": "a", "topics": ["b"]}, "give either topic, or topics"),
        ({"topics": ["a", "b"]}, "give both"),
        ({"topic": "a", "topic_column": "to"}, "give both"),
        ({"topics": ["a", "lockstep.markers"], "topic_column": "to"}, "topic of the markers"),
    ]
    for more, says in cases:
        with subtests.test(str(more)), pytest.raises(InvalidPipeline, match=says):
            described(**more)
