"""Airflow DAG: departures read from Kafka, windows of an hour by event time, written to Kafka and to a table.

A run takes what has arrived by then. Trigger it, or give it a schedule: an epoch goes on where the one before ended.
The pipeline itself, which knows nothing of Airflow, is spark_apps/kafka_windows.py.
"""

from datetime import UTC, datetime

from lockstep import epoch_dag
from spark_apps.kafka_windows import pipeline

dag = epoch_dag(pipeline, schedule=None, start_date=datetime(2013, 1, 1, tzinfo=UTC), tags={"example"})
