"""Avro in a schema registry's wire format through a real Spark and a real broker."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from lockstep.errors import SourceRefused
from lockstep.sources import KafkaSource
from lockstep.sources.base import SourceContext
from lockstep.sources.kafka._open_source import OpenKafkaSource
from stack.kafka import SPARK_AVRO, KafkaBroker
from tests.sources.schema_registry import Registry, serving
from tests.sources.test_kafka_source import Topics

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
