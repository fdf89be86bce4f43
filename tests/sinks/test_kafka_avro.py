"""KafkaSink that writes Avro in a registry's wire format: the vote has the schemas, publishing asks no registry."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from lockstep.errors import PreflightRefused, SinkRejected, SinkUnavailable
from lockstep.sinks.kafka._avro import AvroReaders
from lockstep.sinks.kafka._open_sink import shards_voted
from lockstep.sinks.kafka._records import RecordColumns
from lockstep.sinks.values import Publication
from lockstep.testing import OUTPUT, SCHEMA, SealedRows
from lockstep.testing._judge import ROWS as TRIAL_ROWS
from lockstep.testing._under_test import epoch, opened, prepare, publish
from stack.kafka import KafkaBroker
from tests.sinks.guarantees import expect_row
from tests.sinks.kafka_admin import Brokers
from tests.sinks.kafka_target import KafkaUnderTest, committed
from tests.sinks.kafka_watching import observed
from tests.sources.schema_registry import Registry, serving

AVRO: dict[str, Any] = {"value": "avro", "registry": "schemas"}
GIVEN: dict[str, Any] = {"type": "record", "name": "order", "fields": [{"name": "id", "type": "long"}]}
BOTH = {**GIVEN, "fields": [*GIVEN["fields"], {"name": "more", "type": "long", "default": 7}]}


class AvroUnderTest(KafkaUnderTest):
    """Schemas are registered unless the sink is told otherwise."""

    def __init__(self, broker: Brokers, registry: Registry, **more: Any) -> None:
        super().__init__(broker, **{**AVRO, "register": True, **more})
        self.registry, self.knows_registry = registry, True

    def connections(self) -> dict[str, str]:
        return super().connections() | ({"schemas": self.registry.url} if self.knows_registry else {})

    def texts(self) -> dict[int, str]:
        return {one["id"]: one["schema"] for all in self.registry.subjects.values() for one in all.values()}

    def visible(self) -> pa.Table:
        columns = RecordColumns(key="name", avro=frozenset({"value"}))
        messages = committed(self.broker, self.topic)
        return pa.Table.from_batches([columns.rows(messages, SCHEMA, AvroReaders(self.texts()))])


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving(Registry()) as found:
        yield found


@pytest.fixture
def target(kafka_broker: KafkaBroker, registry: Registry) -> AvroUnderTest:
    return AvroUnderTest(kafka_broker, registry)


def of_ids(*ids: int | None, **more: Any) -> list[SealedRows]:
    return [SealedRows(pa.table({"id": pa.array(ids, pa.int64())} | more), batch_rows=2)]


def bodies(target: KafkaUnderTest) -> list[tuple[int, bytes]]:
    """Ids of schemas, and what stands behind them."""
    found = [one.value() for one in committed(target.broker, target.topic)]
    assert {one[0] for one in found} <= {0}
    return sorted((struct.unpack(">I", one[1:5])[0], one[5:]) for one in found)


def read_back(target: AvroUnderTest, wal: list[SealedRows], by: str = "id") -> pa.Table:
    """As `verify` does."""
    with opened(target) as sink:
        return pa.Table.from_batches(sink.read(1, OUTPUT, wal[0].schema), wal[0].schema).sort_by(by)


# --- the suite of all sinks ------------------------------------------------------------------------------------------


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth(target: AvroUnderTest) -> None:
    """A reader reads throughout, while publishers are killed and stopped at every point."""
    with observed(target.broker, target.topic) as reader:
        expect_row("KafkaSink, Avro", target)
        epochs = {one.epoch for one in reader.finish()}
        reader.expect(dict.fromkeys(range(1, len(epochs) + 1), TRIAL_ROWS))


# --- which schema ----------------------------------------------------------------------------------------------------


def test_rows_are_written_by_the_newest_schema_of_their_subject(target: AvroUnderTest, registry: Registry) -> None:
    """The schema of values needs no field for a key."""
    target.more |= {"register": False, "key": "k"}
    with opened(target) as sink, pytest.raises(PreflightRefused, match=f"no subject {target.topic}-value: register"):
        sink.preflight(None)
    registry.register(f"{target.topic}-value", 7, GIVEN)
    registry.register(f"{target.topic}-value", 300, BOTH)
    wal = of_ids(1, -2, k=["a", "b"])
    publish(target, epoch(), prepare(target, epoch(), wal), wal)
    assert bodies(target) == [(300, b"\x02\x0e"), (300, b"\x03\x0e")]
    assert not [asked for asked in registry.asked if asked.startswith("POST")]
    assert read_back(target, wal) == wal[0].table.sort_by("id")


def test_whoever_publishes_writes_as_was_voted_and_asks_no_registry(target: AvroUnderTest, registry: Registry) -> None:
    target.more |= {"register": False, "key": None, "subject": "orders", "shards": 2}
    registry.register("orders", 7, GIVEN)
    wal = of_ids(1, 2, 3)
    vote = prepare(target, epoch(), wal)
    registry.register("orders", 8, BOTH)
    registry.asked.clear()
    target.knows_registry = False
    with opened(target) as sink:
        assert sink.publish_shard(epoch(), vote, wal, 1) is Publication.SENT
    assert publish(target, epoch(), vote, wal) is Publication.SENT
    assert bodies(target) == [(7, b"\x02"), (7, b"\x04"), (7, b"\x06")]
    assert registry.asked == []
    assert shards_voted(vote) == 2


def test_a_schema_is_registered_before_the_vote_and_once(target: AvroUnderTest, registry: Registry) -> None:
    target.more |= {"key": None, "subject": "orders"}
    with opened(target) as sink:
        sink.preflight(None)
    assert registry.subjects == {}
    for number in (1, 2):
        wal = of_ids(1)
        vote = prepare(target, epoch(number), wal)
        assert [one["id"] for one in registry.subjects["orders"].values()] == [1]
        publish(target, epoch(number), vote, wal)
    assert json.loads(registry.subjects["orders"][1]["schema"])["name"] == OUTPUT
    more = of_ids(1, other=["x"])
    prepare(target, epoch(3), more)
    assert [one["id"] for one in registry.subjects["orders"].values()] == [1, 2]
    registry.refusing = 409
    with pytest.raises(PreflightRefused, match=r"doesn't take the schema of these rows for subject orders \(409\)"):
        prepare(target, epoch(3), of_ids(1, another=["x"]))


def test_what_doesnt_fit_gets_no_vote_and_is_named(target: AvroUnderTest, registry: Registry) -> None:
    target.more |= {"key": None, "subject": "orders"}
    strange = of_ids(1, took=pa.array([1], pa.duration("us")), **{"a-b": [1]})
    with pytest.raises(PreflightRefused, match=r"took is duration.*; a-b: names in Avro"):
        prepare(target, epoch(), strange)
    assert registry.subjects == {}
    target.more["partition"] = "id"
    with pytest.raises(PreflightRefused, match="no column is left for the value"):
        prepare(target, epoch(), of_ids(1))
    del target.more["partition"]
    registry.register("orders", 7, BOTH)
    target.more["register"] = False
    with pytest.raises(PreflightRefused, match="doesn't fit schema 7 of subject orders: name is no field"):
        prepare(target, epoch(), of_ids(1, name=["x"]))
    with pytest.raises(SinkRejected, match=r"output rows, row 3 .the first is 0.: a value of id doesn't fit schema 7"):
        prepare(target, epoch(), of_ids(1, 2, 3, None))
    registry.register("orders", 8, "no schema at all")
    with pytest.raises(PreflightRefused, match="schema 8 of subject orders: it can't be parsed"):
        prepare(target, epoch(), of_ids(1))
    registry.failing = 1000
    with pytest.raises(SinkUnavailable, match="registry of connection schemas doesn't answer: 503"):
        prepare(target, epoch(), of_ids(1))


def test_keys_are_avro_of_any_type_and_stay_in_one_shard(target: AvroUnderTest, registry: Registry) -> None:
    target.more |= {"key": "id", "key_subject": "ids", "subject": "orders", "shards": 3}
    wal = of_ids(*[1, 2, 3, None] * 5, n=list(range(20)))
    vote = prepare(target, epoch(), wal)
    for shard in range(3):
        with opened(target) as sink:
            assert sink.publish_shard(epoch(), vote, wal, shard) is Publication.SENT
        keys = [one.key() for one in committed(target.broker, target.topic)]
        assert {keys.count(key) for key in set(keys) - {None}} == {5}
    [id] = {one["id"] for one in registry.subjects["ids"].values()}
    assert set(keys) == {None, *(struct.pack(">bI", 0, id) + bytes([2 * n]) for n in (1, 2, 3))}
    assert read_back(target, wal, by="n") == wal[0].table
