"""Airflow DAG: departures read from Kafka, windows of an hour by event time, written to Kafka and to a table.

A run takes what has arrived by then; the next epoch continues where it ended. Trigger the DAG or give it a schedule.
The pipeline is in spark_apps/kafka_windows.py, which doesn't depend on Airflow.
"""

from datetime import UTC, datetime

from lockstep import epoch_dag
from spark_apps.kafka_windows import pipeline

dag = epoch_dag(pipeline, schedule=None, start_date=datetime(2013, 1, 1, tzinfo=UTC), tags={"example"})
