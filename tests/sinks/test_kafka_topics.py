"""KafkaSink whose rows name their topics: one transaction covers all, and each topic is asked what it takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.errors import PreflightRefused, SinkRejected, TargetChanged
from lockstep.sinks.kafka import KafkaSink
from lockstep.sinks.kafka._committers import ShardMarker
from lockstep.sinks.kafka._open_sink import OpenKafkaSink
from lockstep.sinks.kafka._records import RecordColumns, TopicRecords
from lockstep.sinks.values import Batches, Publication, SinkContext
from lockstep.testing import OUTPUT, SCHEMA, SealedRows, behaviours, sealed
from lockstep.testing._behaviour import Behaviour
from lockstep.testing._judge import ROWS as TRIAL_ROWS
from lockstep.testing._under_test import epoch, expect_rows, opened, prepare, publish
from stack.kafka import KafkaBroker
from tests.sinks.guarantees import expect_row
from tests.sinks.kafka_admin import Brokers, cluster_of, configure, delete
from tests.sinks.kafka_target import PARTITIONS, KafkaUnderTest, committed, left_held
from tests.sinks.kafka_watching import observed

ROWS = pa.schema({"id": pa.int64(), "k": pa.string(), "to": pa.string()})


COLUMN = "goes_to"


class TopicsUnderTest(KafkaUnderTest):
    """Two topics, which the rows go to in turn."""

    def __init__(self, broker: Brokers, **more: Any) -> None:
        super().__init__(broker, **more)
        self.second = self._new_topic()

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(sorted((self.topic, self.second)))

    def _sink(self, topic: str) -> KafkaSink:
        return self.sink_of(InTurnSink, topic, key="name", topic_column=COLUMN)

    def sink_of(self, kind: type[KafkaSink], topic: str, **defaults: Any) -> KafkaSink:
        more = {"transaction_timeout": 20, **defaults, **self.more}
        names: dict[str, Any] = {"topics": (topic, self.second), "marker_topic": f"{topic}.markers"}
        return kind("rows", output=OUTPUT, connection="kafka", **names, **more)

    def visible(self) -> pa.Table:
        messages = [one for topic in self.topics for one in committed(self.broker, topic)]
        return pa.Table.from_batches([RecordColumns(key="name").rows(messages, SCHEMA)])

    def unsettled(self) -> list[str]:
        return [f"an open transaction in {name}/{n}" for name in self.topics for n in left_held(self.broker, name)]


class InTurnSink(KafkaSink):
    """Gives each row a column more."""

    def open(self, context: SinkContext) -> OpenKafkaSink:
        found = super().open(context)
        found.columns = _InTurn(**vars(found.columns))
        return found


class _InTurn(RecordColumns):
    def faults(self, schema: pa.Schema) -> Iterator[str]:
        return super().faults(schema.append(pa.field(COLUMN, pa.string())))

    def records(self, batches: Batches, *more: Any) -> Iterator[TopicRecords]:
        rows = pa.Table.from_batches(list(batches), batches.schema)
        names = pa.array([self.topics[place % len(self.topics)] for place in range(rows.num_rows)], pa.string())
        return super().records(SealedRows(rows.append_column(COLUMN, names), claims=batches.rows), *more)


class NamedUnderTest(TopicsUnderTest):
    """Of rows that name their topics themselves."""

    def _sink(self, topic: str) -> KafkaSink:
        return self.sink_of(KafkaSink, topic, key="k", topic_column="to")


@pytest.fixture
def target(kafka_broker: KafkaBroker) -> NamedUnderTest:
    return NamedUnderTest(kafka_broker)


def rows_for(*to: str | None, key: str | None = "a") -> list[SealedRows]:
    columns = {"id": list(range(len(to))), "k": [key] * len(to), "to": list(to)}
    return [SealedRows(pa.table(columns, ROWS), batch_rows=2)]


def ids_in(target: KafkaUnderTest, topic: str) -> list[int]:
    return sorted(json.loads(one.value())["id"] for one in committed(target.broker, topic))


# --- the suite of all sinks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("behaviour", behaviours(TopicsUnderTest), ids=lambda one: one.__name__)
@pytest.mark.sample(4)  # of one topic they are run whole
def test_a_sink_of_two_topics(behaviour: Behaviour, kafka_broker: KafkaBroker) -> None:
    behaviour(TopicsUnderTest(kafka_broker))


@pytest.mark.tier("all")
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.sample(1)
def test_the_page_of_guarantees_tells_the_truth(shards: int, kafka_broker: KafkaBroker) -> None:
    """A reader of each topic reads throughout, while publishers are killed and stopped at every point."""
    target = TopicsUnderTest(kafka_broker, shards=shards)
    first, second = target.topics
    with observed(kafka_broker, first) as one, observed(kafka_broker, second) as other:
        expect_row("KafkaSink, two topics" if shards == 1 else "KafkaSink, two topics and three shards", target)
        epochs = dict.fromkeys(range(1, len({seen.epoch for seen in one.finish()}) + 1), TRIAL_ROWS)
        for number, reader in enumerate((one, other)):
            reader.expect(epochs, ordered=shards == 1, which=slice(number, None, 2))


def test_a_sink_of_two_topics_without_transactions(kafka_broker: KafkaBroker, tmp_path: Path) -> None:
    target = TopicsUnderTest(kafka_broker, guarantee="at_least_once", committer=str(tmp_path))
    wal = sealed(40)
    assert publish(target, epoch(), prepare(target, epoch(), wal), wal) is Publication.SENT
    expect_rows(target, wal)
    assert [len(committed(kafka_broker, topic)) for topic in target.topics] == [20, 20]


# --- where rows go ---------------------------------------------------------------------------------------------------


def test_each_row_goes_to_the_topic_that_it_names_and_is_read_back_from_there(target: NamedUnderTest) -> None:
    target.more["shards"] = 2
    first, second = target.topics
    wal = rows_for(first, second, second, second, second, first)
    for number in (1, 2):
        publish(target, epoch(number), prepare(target, epoch(number), wal), wal)
    assert (ids_in(target, first), ids_in(target, second)) == ([0, 0, 5, 5], [1, 1, 2, 2, 3, 3, 4, 4])
    found = committed(target.broker, first)
    assert all(json.loads(one.value()).keys() == {"id", "k"} for one in found)  # the topic says the rest
    assert sorted(one.headers()[0][1].rpartition(b"/")[2] for one in found) == [b"0", b"0", b"5", b"5"]
    with opened(target) as sink:
        back = pa.Table.from_batches(list(sink.read(2, OUTPUT, ROWS)), ROWS)
    assert back.sort_by("id") == wal[0].table


def test_a_row_for_no_topic_gets_no_vote_and_is_named(target: NamedUnderTest) -> None:
    for strange, says in {None: "is null", "s3cret": "names none of topics="}.items():
        told = f"output rows, row 3 .the first is 0.: topic_column='to' {says}"
        with pytest.raises(SinkRejected, match=told) as raised:
            prepare(target, epoch(), rows_for(target.topic, target.second, target.topic, strange, target.topic))
        assert "s3cret" not in str(raised.value)
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


@pytest.mark.parametrize("which", [0, 1])
def test_every_topic_has_to_fit_and_one_that_is_gone_or_made_anew_is_another_target(
    which: int, target: NamedUnderTest
) -> None:
    wal, topic = rows_for(*target.topics), target.topics[which]
    vote = prepare(target, epoch(), wal)
    configure(target.broker, topic, "cleanup.policy", "compact")
    target.more["key"] = None
    with pytest.raises(PreflightRefused, match=f"topic {topic} is compacted"), opened(target) as sink:
        sink.preflight(None)
    delete(target.broker, topic)
    with pytest.raises(PreflightRefused, match=f"there is no topic {topic}"), opened(target) as sink:
        sink.preflight(None)
    del target.more["key"]
    with pytest.raises(TargetChanged, match=f"topic {topic} is gone"):
        publish(target, epoch(), vote, wal)
    with cluster_of(target.broker) as cluster:
        cluster.create_topic(topic, PARTITIONS, {})
    with pytest.raises(TargetChanged, match="Nothing was sent"):
        publish(target, epoch(), vote, wal)
    assert [committed(target.broker, one) for one in target.topics] == [[], []]


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
