"""A pipeline of a Kafka topic, importable by any driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lockstep import Pipeline
from lockstep.sources import KafkaSource
from tests.spark.pipelines import Nowhere

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOPIC = "login"


def as_they_are(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    return {"rows": inputs["events"]}


pipeline = Pipeline(
    name="login",
    sources={"events": KafkaSource(TOPIC, connection="kafka")},
    transform=as_they_are,
    sinks=[Nowhere("to")],
)
