"""Registers Lockstep's timetables and pages with Airflow, and imports its modules once in the process that forks
tasks.

Without that every task would import the same modules again: half a second of CPU, and three seconds with Spark
Connect, whose client needs pandas. Nothing connects here: only code is forked.
"""

import importlib
import sys
from contextlib import suppress
from typing import Any

from airflow.plugins_manager import AirflowPlugin
from airflow.sdk import Asset

from lockstep.airflow.page import MOUNT, LazyApplication, external_views
from lockstep.airflow.timetables import CronIntervals, DeltaIntervals
from lockstep.distribution import __version__

TASKS_ARE_FORKED_BY = {"scheduler", "celery"}
USED_BY_TASKS = (
    "lockstep.airflow.dag",
    "lockstep.sources.files",
    "lockstep.sinks.files",
    "lockstep.sinks.postgres",
    "lockstep.compute.stage",
    "pyspark.sql.connect.session",
    "airflow.providers.apache.spark.hooks.spark_connect",
    "airflow.dag_processing.bundles.local",
    "airflow.sdk.execution_time.cache",
)


def _import_once() -> None:
    if TASKS_ARE_FORKED_BY.intersection(sys.argv[1:2]):
        for module in USED_BY_TASKS:
            with suppress(ImportError):  # not installed: the pipelines here don't use it
                importlib.import_module(module)
        Asset("lockstep://preloaded")  # the first one makes Airflow import its providers' handlers of assets


_import_once()


class LockstepPlugin(AirflowPlugin):
    """Registered with Airflow, which looks it up by name; operators come with the DAGs that use them."""

    name = "lockstep"
    version = __version__
    timetables: list[Any] = [CronIntervals, DeltaIntervals]  # noqa: RUF012 Airflow declares it so
    fastapi_apps: list[Any] = [{"app": LazyApplication(), "url_prefix": MOUNT, "name": "Lockstep"}]  # noqa: RUF012
    external_views: list[Any] = external_views()
