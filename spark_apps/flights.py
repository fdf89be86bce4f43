"""Every flight out of New York, and how late each hour was: one epoch a day, decided for both outputs at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lockstep import Pipeline
from lockstep.sinks import FileSink, PostgresSink
from lockstep.sources import FileSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FLIGHTS = """
    year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, sched_arr_time INT,
    arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, air_time INT, distance INT,
    hour INT, minute INT, time_hour TIMESTAMP
"""
WEATHER = """
    origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE, dewp DOUBLE, humid DOUBLE, wind_dir INT,
    wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE, time_hour TIMESTAMP
"""
HOUR = ["origin", "time_hour"]


def daily_delays(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    """`flights`: every row, with its departure. `delays`: a row per origin and hour, with its weather."""
    return {
        "flights": with_departure(inputs["flights"]),
        "delays": hourly_delays(inputs["flights"]).join(hourly_weather(inputs["weather"]), on=HOUR, how="left"),
    }


def with_departure(flights: DataFrame) -> DataFrame:
    """Add `departed_at` (UTC): the scheduled minute plus the delay; null for a flight that was cancelled."""
    from pyspark.sql import functions as F

    minutes = F.col("minute") + F.col("dep_delay")
    return flights.withColumn("departed_at", F.timestamp_add("MINUTE", minutes, F.col("time_hour")))


def hourly_delays(flights: DataFrame) -> DataFrame:
    """Departure delays in minutes; an hour whose flights were all cancelled has none."""
    from pyspark.sql import functions as F

    return flights.groupBy(HOUR).agg(
        F.count(F.lit(1)).alias("flights"),
        F.count_if(F.col("dep_delay").isNull()).alias("cancelled"),
        F.avg("dep_delay").alias("mean_dep_delay"),
        F.max("dep_delay").alias("max_dep_delay"),
    )


def hourly_weather(weather: DataFrame) -> DataFrame:
    """One row an hour: the hour that daylight saving repeats was measured twice."""
    from pyspark.sql import functions as F

    measured = ("temp", "wind_speed", "precip", "visib")
    return weather.groupBy(HOUR).agg(*(F.avg(name).alias(name) for name in measured))


pipeline = Pipeline(
    name="flights",
    sources={
        "flights": FileSource(
            "landing/flights/{interval_start:%Y-%m-%d}.csv", format="csv", schema=FLIGHTS, options={"nullValue": "NA"}
        ),
        "weather": FileSource(
            "landing/weather/{interval_start:%Y-%m-%d}.csv", format="csv", schema=WEATHER, options={"nullValue": "NA"}
        ),
    },
    transform=daily_delays,
    sinks=[
        PostgresSink("warehouse", tables={"flights": "public.flights"}, connection="warehouse", create=True),
        FileSink("delays", output="delays", path="out/delays", format="parquet"),
    ],
)
