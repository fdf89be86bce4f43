"""Avro in a schema registry's wire format through a real Spark and a real broker."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lockstep.compute._inputs import SourceInput, settle_bad_records
from lockstep.epoch import SourceRange
from lockstep.errors import BadRecords, SourceRefused, SourceUnavailable
from lockstep.sinks import KafkaSink
from lockstep.sinks.values import SinkContext
from lockstep.sources import KafkaSource
from lockstep.sources.base import SourceContext
from lockstep.sources.kafka.open_source import OpenKafkaSource
from lockstep.testing import OUTPUT, SealedRows
from lockstep.testing._under_test import DEPLOYMENT, epoch
from lockstep.wal.manifest import SourceCount
from stack.kafka import SPARK_AVRO, KafkaBroker
from tests.sources.schema_registry import Registry, serving
from tests.sources.test_kafka_source import Topics, ranges
from tests.unit.test_avro import EMPTY, FULL, NULLS, ROWS
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ID, NAME = {"name": "id", "type": "long"}, {"name": "name", "type": "string"}
TAG = {"name": "tag", "type": ["null", "string"], "default": None}


def record(*fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "event", "fields": list(fields)}


FIRST, SECOND = record(ID, NAME), record(ID, NAME, TAG)
ONE, TWO = b"\x02\x02a", b"\x04\x02b\x02\x02x"  #: as the two have (1, "a") and (2, "b", "x")


def written(id: int, body: bytes, magic: int = 0) -> bytes:
    return struct.pack(">bI", magic, id) + body


@pytest.fixture
def topics(kafka_broker: KafkaBroker) -> Topics:
    if not SPARK_AVRO.present:
        pytest.skip("Spark's Avro is not here: `make kafka` fetches it")
    return Topics(kafka_broker)


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving(Registry()) as found:
        yield found


def opened(topics: Topics, registry: Registry, topic: str, **more: Any) -> OpenKafkaSource:
    source = KafkaSource(topic, connection="kafka", registry="schemas", **more)
    connections = {"kafka": topics.broker.bootstrap, "schemas": registry.url}
    assert set(source.connections) == set(connections)
    return source.open(SourceContext("pipe", "events", lambda paths: set(), connections))


@pytest.mark.fault("J21")
@pytest.mark.sample(1)
@pytest.mark.parametrize("part", ["key", "value"])
def test_each_record_is_read_by_the_schema_that_it_names_as_the_readers_has_it(
    part: str, topics: Topics, registry: Registry, session: SparkSession
) -> None:
    topic, other = topics.create("a", 1), "value" if part == "key" else "key"
    registry.register(f"{topic}-{part}", 7, FIRST)
    registry.register(f"{topic}-{part}", 300, SECOND)
    registry.register("another", 9, FIRST)
    good = {written(7, ONE): (1, "a", None), written(300, TWO): (2, "b", "x"), None: None}
    strange = [b"", b"\x00\x00", written(8, ONE), written(9, ONE), written(7, ONE, magic=1), ONE]
    malformed = [written(7, b""), written(7, ONE[:2]), written(7, ONE + b"\x00"), written(300, ONE), written(7, TWO)]
    sent = [*good, *strange, *malformed]
    topics.send_raw(topic, [{part: one, other: b"o"} for one in sent])
    source = opened(topics, registry, topic, **{part: "avro", f"{part}_schema": json.dumps(SECOND)})
    records = source.read_records(session, None, source.latest(None, None))
    assert [row[part] for row in records.good().orderBy("offset").collect()] == list(good.values())
    why = {int(row.file.partition("@")[2]): row.why for row in records.bad().collect()}
    assert why == {
        **{len(good) + n: f"the {part} names no schema that the registry has for it" for n in range(len(strange))},
        **{len(good) + len(strange) + n: None for n in range(len(malformed))},
    }


@pytest.mark.fault("J21")
@pytest.mark.sample(1)
@pytest.mark.parametrize("on_bad_records", ["fail", "quarantine"])
@pytest.mark.parametrize("part", ["key", "value"])
def test_a_record_whose_schema_the_registry_tells_too_late_is_tried_again(
    part: str, on_bad_records: str, topics: Topics, registry: Registry, session: SparkSession, tmp_path: Path
) -> None:
    topic, other = topics.create("a", 1), "value" if part == "key" else "key"
    registry.register(f"{topic}-{part}", 7, FIRST)
    registry.register(f"{topic}-{part}", 300, SECOND)
    registry.register("another", 9, FIRST)
    topics.send_raw(topic, [{part: one, other: b"o"} for one in (written(7, ONE), written(300, TWO), written(9, ONE))])
    more = {part: "avro", f"{part}_schema": json.dumps(SECOND), "on_bad_records": on_bad_records}
    source = opened(topics, registry, topic, **more)
    found = SourceRange(None, source.latest(None, None))
    registry.behind = {300: 1}
    late = SourceInput.plan(session, "events", source, found)
    with pytest.raises(SourceUnavailable, match=f"returned schemas 300 of {topic}-{part} only after"):
        settle_bad_records(late, SourceCount(3, 2), str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    again = SourceInput.plan(session, "events", source, found)
    assert again.records.bad().count() == 1, "that of another subject"
    if on_bad_records == "fail":
        with pytest.raises(BadRecords):
            settle_bad_records(again, SourceCount(3, 1), str(tmp_path))
    else:
        settle_bad_records(again, SourceCount(3, 1), str(tmp_path))
        assert list(tmp_path.iterdir()) != []


PERSON = {"type": "record", "name": "Person", "fields": [{"name": "name", "type": "string", "default": "?"}]}
ROBOT = {**PERSON, "name": "Robot"}
KIND = {"type": "enum", "name": "Kind", "symbols": ["A", "B"], "default": "A"}
NODE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"], "default": None}]}
BY = {"name": "by", "type": ["null", PERSON], "default": None}
ALSO = {"name": "also", "type": {"type": "array", "items": "Person"}, "default": []}
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "com.shop",
    "aliases": ["Purchase", "com.old.Order"],
    "fields": [{**ID, "default": -1}, BY, ALSO, {"name": "kind", "type": KIND, "default": "A"}],
}
Order = tuple[int, str | None, list[str], str]


def order(*fields: Any, name: str = "com.shop.Order") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def of(name: str, type: Any) -> dict[str, Any]:
    return {"name": name, "type": type}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


NOTHING: Order = (-1, None, [], "A")
ONE_ORDER: Order = (1, None, [], "A")
#: A writer's schema, and what its bytes are for the reader of ORDER: None if they aren't one.
WRITTEN: list[tuple[Any, dict[bytes, Order | None]]] = [
    (order(ID), {b"\x02": ONE_ORDER}),
    ({**order(ID), "name": "Order", "namespace": "com.shop"}, {b"\x02": ONE_ORDER}),
    (order(ID, name="com.shop.Purchase"), {b"\x02": ONE_ORDER}),  # by aliases
    (order(ID, name="com.old.Order"), {b"\x02": ONE_ORDER}),
    (order(name="com.shop.Order"), {b"": NOTHING}),
    (order(ID, name="com.shop.Refund"), {b"\x02": None}),
    (order(ID, name="com.new.Order"), {b"\x02": None}),
    (order(ID, name="Order"), {b"\x02": None}),
    (order(of("amount", "long"), name="com.shop.Refund"), {b"\x02": None}),  # nothing but defaults
    ("long", {b"\x02": None}),
    (["null", order(ID)], {b"\x00": None, b"\x02\x02": None}),
    # in a field, in a union, in an array
    (order(of("by", PERSON)), {b"\x02a": (-1, "a", [], "A")}),
    (order(of("by", ROBOT)), {b"\x02a": None}),
    (
        order(of("by", ["null", PERSON, ROBOT])),
        {b"\x00": NOTHING, b"\x02\x02a": (-1, "a", [], "A"), b"\x04\x02a": None},
    ),
    (order(of("also", array(ROBOT))), {b"\x00": NOTHING, b"\x02\x02a\x00": None}),
    (order(of("by", ["null", "string"])), {b"\x00": NOTHING, b"\x02\x02a": None}),
    (order(of("kind", KIND)), {b"\x02": (-1, None, [], "B")}),
    (order(of("kind", {**KIND, "namespace": "com.old"})), {b"\x02": None}),
    # one type in several places, some of which nobody reads
    (order(of("by", PERSON), of("also", array("Person"))), {b"\x02a\x02\x02b\x00": (-1, "a", ["b"], "A")}),
    (order(of("x", PERSON), of("by", "Person"), of("y", "Person")), {b"\x02x\x02a\x02y": (-1, "a", [], "A")}),
    (
        order(of("x", ROBOT), of("by", ["null", "Robot"]), ID),
        {b"\x02x\x00\x02": ONE_ORDER, b"\x02x\x02\x02a\x02": None},
    ),
    (order(of("x", NODE), ID), {b"\x02\x02\x00\x02": ONE_ORDER}),
    (order({**of("by", ROBOT), "default": {"name": "x"}}, {**ID, "aliases": ["x"]}), {b"\x02a\x02": None}),
]


@pytest.mark.fault("J21")
def test_a_record_of_another_name_is_none_of_the_readers_wherever_it_stands(
    topics: Topics, registry: Registry, session: SparkSession
) -> None:
    """Avro itself compares no names of records, and a reader whose fields have defaults takes any."""
    topic = topics.create("a", 1)
    expected: list[Order | None] = []
    for number, (schema, values) in enumerate(WRITTEN):
        registry.register(f"{topic}-value", number, json.dumps(schema))
        topics.send_raw(topic, [{"value": written(number, body)} for body in values])
        expected += values.values()
    source = opened(topics, registry, topic, value="avro", value_schema=json.dumps(ORDER))
    records = source.read_records(session, None, source.latest(None, None))
    found: list[Order | None] = [None] * len(expected)
    for row in records.good().collect():
        id, by, also, kind = row.value
        found[row.offset] = (id, by and by.name, [one.name for one in also], kind)
    assert found == expected
    told = {row.why for row in records.bad().collect()}
    others = ("com.shop.Refund", "com.new.Order", "Order", "long", "union")
    assert told == {None, *(f"the value is a {one}, and not com.shop.Order" for one in others)}


def test_subjects_may_be_named_and_schemas_be_of_single_values(
    topics: Topics, registry: Registry, session: SparkSession
) -> None:
    topic = topics.create("a", 1)
    registry.register("events", 7, '"long"')
    topics.send_raw(topic, [{"value": written(7, b"\x04")}, {"value": written(7, b"\x04\x04")}])
    source = opened(topics, registry, topic, subjects="events", value="avro", value_schema='"long"')
    records = source.read_records(session, None, source.latest(None, None))
    assert [row.value for row in records.good().collect()] == [2]
    assert records.bad().count() == 1


def test_without_the_subject_nothing_is_taken_for_malformed_and_an_empty_range_asks_nobody(
    topics: Topics, registry: Registry, session: SparkSession
) -> None:
    topic = topics.create("a", 1)
    source = opened(topics, registry, topic, value="avro", value_schema=json.dumps(FIRST), on_bad_records="quarantine")
    nothing = source.latest(None, None)
    frame = source.read(session, None, nothing)
    assert (frame.count(), frame.schema["value"].dataType.simpleString()) == (0, "struct<id:bigint,name:string>")
    assert registry.asked == []
    topics.send_raw(topic, [{"value": written(7, ONE)}])
    with pytest.raises(SourceRefused, match=f"no subject {topic}-value"):
        source.read(session, nothing, source.latest(nothing, None))


def test_what_the_sink_writes_is_what_the_source_reads(
    topics: Topics, registry: Registry, session: SparkSession
) -> None:
    """Decimals, times, nulls, and what is nested; keys, too."""
    topic = topics.create("a", 1)
    sink = KafkaSink(
        "out",
        output=OUTPUT,
        topic=topic,
        connection="kafka",
        marker_topic=f"{topic}.markers",
        key="id",
        key_subject=f"{topic}-key",
        value="avro",
        registry="schemas",
        register=True,
    )
    table = pa.Table.from_pylist([{**row, "id": n} for n, row in enumerate((FULL, NULLS, EMPTY))], ROWS)
    context = SinkContext(DEPLOYMENT, "pipe", {"kafka": topics.broker.bootstrap, "schemas": registry.url})
    with sink.opened(context) as live:
        live.preflight({OUTPUT: ROWS})
        vote = live.prepare(epoch(), [SealedRows(table)])
        live.publish(epoch(), vote, [SealedRows(table)])
    value, key = (registry.subjects[f"{topic}-{part}"][1]["schema"] for part in ("value", "key"))
    source = opened(topics, registry, topic, key="avro", key_schema=key, value="avro", value_schema=value)
    until(lambda: ranges(source.latest(None, None), topic) == {"0": [0, 4]}, "the commit's own record is the fourth")
    records = source.read_records(session, None, source.latest(None, None))
    assert records.bad().count() == 0
    found = records.good().selectExpr("key", "value.*").orderBy("id").toArrow()
    assert found.column("key").to_pylist() == [0, 1, 2]
    rows = found.drop_columns("key").cast(ROWS).to_pylist(maps_as_pydicts="strict")  # Spark's maps have no order
    assert rows == table.to_pylist(maps_as_pydicts="strict")
