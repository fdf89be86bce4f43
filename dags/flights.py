"""Airflow DAG: flights and weather of New York, 2013, one epoch a day into Postgres and Parquet files.

The pipeline is in spark_apps/flights.py, which doesn't depend on Airflow.
"""

from datetime import UTC, datetime

from lockstep import epoch_dag
from spark_apps.flights import pipeline

dag = epoch_dag(
    pipeline,
    schedule="@daily",
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    end_date=datetime(2014, 1, 1, tzinfo=UTC),
    tags={"example"},
)
