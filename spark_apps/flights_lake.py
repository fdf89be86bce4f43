"""Every flight out of New York in a Delta table, an Iceberg table and Postgres: one epoch a day, one decision for all.

Both tables consist of the very files that Spark has written, in an object store; Postgres is sent the Delta table's. A
file can be one table's only, so the rows are two outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lockstep import Pipeline
from lockstep.sinks import DeltaSink, IcebergSink, PostgresSink
from lockstep.sources import FileSource
from spark_apps.flights import FLIGHTS, with_departure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE = "demo.flights"  #: of the catalog, which is in a PostgreSQL database


def dated(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    """Each flight twice, with the day that it was scheduled for."""
    from pyspark.sql import functions as F

    flights = with_departure(inputs["flights"]).withColumn("date", F.make_date("year", "month", "day"))
    return {"flights": flights, "flights_for_iceberg": flights}


pipeline = Pipeline(
    name="flights_lake",
    sources={
        "flights": FileSource(
            "landing/flights/{interval_start:%Y-%m-%d}.csv", format="csv", schema=FLIGHTS, options={"nullValue": "NA"}
        )
    },
    transform=dated,
    sinks=[
        DeltaSink("delta", output="flights", path="s3://lake/delta/flights", create=True, partition_by=["date"]),
        PostgresSink("postgres", tables={"flights": "public.flights"}, connection="warehouse", create=True),
        IcebergSink(
            "iceberg",
            output="flights_for_iceberg",
            table=TABLE,
            catalog="catalog",
            warehouse="s3://lake/iceberg",
            create=True,
            partition_by=("date",),
        ),
    ],
)
