"""Departures by airport and by the hour in which the plane left: from Kafka, through windows, to Kafka and a table.

The example that made exactly-once known, as an Airflow DAG. Windows, both outputs and the offsets that were read belong
to one epoch and are decided together.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from lockstep import Pipeline, Windows
from lockstep.sinks import KafkaSink, PostgresSink
from lockstep.sources import KafkaSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.compute.state import StateRows

DEPARTURES = "carrier STRING, flight INT, origin STRING, dest STRING, departed TIMESTAMP, delay INT"

#: A departure may be told half an hour late and is still in time; for two hours more it corrects its window.
hourly = Windows(
    schema="origin STRING, flights BIGINT, delay BIGINT, worst INT, mean DECIMAL(9,2)",
    key=["origin"],
    time="departed",
    size=timedelta(hours=1),
    aggregates={"flights": "count(*)", "delay": "sum(delay)", "worst": "max(delay)", "mean": "avg(delay)"},
    out_of_order=timedelta(minutes=30),
    lateness=timedelta(hours=2),
    partition="partition",
)


def by_hour(
    inputs: Mapping[str, DataFrame], state: Mapping[str, StateRows]
) -> tuple[Mapping[str, DataFrame], Mapping[str, DataFrame]]:
    """`hourly`: each airport's hour once it is over, and again if it is corrected. `late`: what came too late for that.

    A cancelled flight never departed: it is filtered, and counted.
    """
    departures = inputs["departures"].selectExpr("value.*", "CAST(partition AS STRING) AS partition")
    found = hourly.fold(departures, state, where="departed IS NOT NULL")
    return {"hourly": found.results, "late": found.late}, found.state


pipeline = Pipeline(
    name="kafka_windows",
    sources={
        "departures": KafkaSource(
            "departures", connection="kafka", value="json", value_schema=DEPARTURES, max_rows_per_epoch=100_000
        )
    },
    transform=by_hour,
    state=hourly.state(),
    sinks=[
        KafkaSink("topic", output="hourly", topic="hourly_departures", connection="kafka", key="origin"),
        PostgresSink(
            "table",
            tables={"hourly": "public.hourly_departures"},
            connection="warehouse",
            mode="upsert",
            key=["origin", "window_start"],
            create=True,
        ),
        PostgresSink("late", tables={"late": "public.late_departures"}, connection="warehouse", create=True),
    ],
)
