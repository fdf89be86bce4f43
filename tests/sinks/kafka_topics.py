"""A KafkaSink whose rows name their topics, as the behaviour suite sees it, whose rows name none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lockstep.sinks.kafka import KafkaSink
from lockstep.sinks.kafka._open_sink import OpenKafkaSink
from lockstep.sinks.kafka._records import RecordColumns, Records
from lockstep.sinks.values import Batches, SinkContext
from lockstep.testing import OUTPUT, SCHEMA
from tests.sinks.kafka_admin import Brokers
from tests.sinks.kafka_target import KafkaUnderTest, committed, left_held

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
        defaults: dict[str, Any] = {"key": "name", "transaction_timeout": 20}
        return InTurnSink(
            "rows",
            output=OUTPUT,
            topics=(topic, self.second),
            topic_column=COLUMN,
            connection="kafka",
            marker_topic=f"{topic}.markers",
            **defaults | self.more,
        )

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

    def records(self, batches: Batches, *more: Any) -> Iterator[Records]:
        return super().records(_Named(batches, self.topics), *more)


@dataclass(frozen=True)
class _Named:
    batches: Batches
    topics: tuple[str, ...]

    @property
    def output(self) -> str:
        return self.batches.output

    @property
    def schema(self) -> pa.Schema:
        return self.batches.schema.append(pa.field(COLUMN, pa.string()))

    @property
    def rows(self) -> int:
        return self.batches.rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        place = 0
        for batch in self.batches:
            numbers = range(place, place + batch.num_rows)
            names = pa.array([self.topics[one % len(self.topics)] for one in numbers], pa.string())
            yield pa.RecordBatch.from_arrays([*batch.columns, names], [*batch.schema.names, COLUMN])
            place += batch.num_rows
