"""A topic of a real broker, as the behaviour suite sees it."""

from __future__ import annotations

import uuid
from contextlib import closing
from typing import Any

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from lockstep.connections.kafka.cluster import Cluster
from lockstep.connections.kafka.connection import Asker, connect
from lockstep.sinks.base import Sink
from lockstep.sinks.kafka import KafkaSink
from lockstep.sinks.kafka._records import RecordColumns
from lockstep.sinks.values import Guarantee, SinkContext
from lockstep.testing import OUTPUT, SCHEMA, SinkUnderTest
from tests.sinks.kafka_admin import Brokers, held
from tests.waiting import still_there

PARTITIONS = 3
SECONDS_TO_SETTLE = 3.0


class KafkaUnderTest(SinkUnderTest):
    """Topics with names of their own. `more`: the sink's arguments."""

    votes_with_data = False

    def __init__(self, broker: Brokers, **more: Any) -> None:
        self.broker, self.more = broker, more
        self.topic = self._new_topic()
        self.markers = f"{self.topic}.markers"
        self.guarantee = Guarantee(more.get("guarantee", Guarantee.EXACTLY_ONCE))

    def _new_topic(self) -> str:
        name = f"rows-{uuid.uuid4().hex[:12]}"
        Cluster({"bootstrap.servers": self.broker.bootstrap}, Asker("test")).create_topic(name, PARTITIONS, {})
        return name

    def sink(self, *, shared: bool = False) -> Sink:
        return self._sink(self.topic)

    def _sink(self, topic: str) -> KafkaSink:
        defaults: dict[str, Any] = {"key": "name", "transaction_timeout": 20}
        return KafkaSink(
            "rows",
            output=OUTPUT,
            topic=topic,
            connection="kafka",
            marker_topic=f"{topic}.markers",
            **defaults | self.more,
        )

    def elsewhere(self) -> tuple[Sink, SinkContext]:
        sink = self._sink(self._new_topic())
        with sink.opened(self.context()) as live:
            live.preflight(None)
        return sink, self.context()

    def connections(self) -> dict[str, str]:
        return {"kafka": self.broker.bootstrap}

    def visible(self) -> pa.Table:
        messages = committed(self.broker, self.topic)
        return pa.Table.from_batches([RecordColumns(key="name").rows(messages, SCHEMA)])

    def unsettled(self) -> list[str]:
        return [f"an open transaction in partition {number}" for number in left_held(self.broker, self.topic)]

    def lose(self, handle: str) -> None:
        raise AssertionError("a redo sink has no handle")


def left_held(broker: Brokers, topic: str) -> list[int]:
    """Partitions held back by a transaction that doesn't end now.

    A broker answers when it has decided, and tells the partitions a moment later.
    """
    return still_there(lambda: held(broker, topic, PARTITIONS), SECONDS_TO_SETTLE)


def committed(broker: Brokers, topic: str, *, now: bool = False) -> list[Any]:
    """Every record that a reader of committed records sees: `now`, or once the partitions know what was ended."""
    if not now:
        left_held(broker, topic)
    reader = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "test", "isolation.level": "read_committed"}
        | {
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "log_level": 0,
            "fetch.wait.max.ms": 20,
            "reconnect.backoff.ms": 10,
        }
    )
    found, waiting = [], set(range(PARTITIONS))
    with closing(reader):
        connect(reader, topic, 30)
        reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in waiting])
        while waiting:
            message = reader.poll(30)
            assert message is not None, "the broker doesn't answer"
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                waiting.discard(message.partition())
            else:
                raise AssertionError(error)
    return found
