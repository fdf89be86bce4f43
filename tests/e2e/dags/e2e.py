"""Airflow DAGs of the end-to-end tests, and groups in DAGs of somebody's own; their retries are quick."""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.openlineage.utils.selective_enable import enable_lineage
from airflow.sdk import DAG, get_current_context, task

from lockstep import EpochTaskGroup, epoch_dag
from lockstep.airflow._airflow import HAS_PARTITIONS, CronDataIntervalTimetable
from lockstep.airflow.dag import recovery_dag
from tests.e2e.detached import DetachedLauncher
from tests.e2e.groups import Telling, land, tell_failure, tell_lateness, write
from tests.e2e.pipelines import (
    audited,
    beside,
    grouped,
    held,
    left,
    mapped,
    mistaken,
    mistaken_submitted,
    orders,
    packed,
    refused,
    scheduled,
    sharded,
    watched,
)

QUICK: dict[str, Any] = {"retry_delay": timedelta(seconds=1), "max_retry_delay": timedelta(seconds=2), "retries": 40}
YEAR: dict[str, Any] = {
    "schedule": "@daily",
    "start_date": datetime(2024, 1, 1, tzinfo=UTC),
    "end_date": datetime(2024, 12, 31, tzinfo=UTC),
    "default_args": QUICK,
}

TIMED: dict[str, Any] = {**YEAR, "schedule": CronDataIntervalTimetable("@daily", timezone="UTC"), "default_args": {}}

orders_dag = epoch_dag(orders, **YEAR)
observed_dag = enable_lineage(epoch_dag(orders, dag_id="observed", **YEAR))
held_dag = epoch_dag(held, **YEAR)
narrow_dag = epoch_dag(held, dag_id="narrow", task_args={"prepare": {"pool": "narrow"}}, **YEAR)
refused_dag = epoch_dag(refused, **YEAR)
mistaken_dag = epoch_dag(mistaken, **YEAR)
mistaken_submitted_dag = epoch_dag(mistaken_submitted, spark_conn_id="spark_local", **YEAR)
scheduled_dag = epoch_dag(scheduled, catchup=True, **{**YEAR, "end_date": datetime(2024, 1, 2, tzinfo=UTC)})
watched_dag = epoch_dag(watched, default_args=QUICK)
packed_dag = epoch_dag(packed, pack=3, **YEAR)
left_dag = epoch_dag(
    left,
    launcher=DetachedLauncher(),
    max_active_runs=60,
    default_args={"deferrable": True, "retry_delay": timedelta(seconds=1)},
    task_args={"stage": {"pool": "staging"}},
)
audited_dag = epoch_dag(audited, **YEAR)
sharded_dag = epoch_dag(sharded, map_shards=True, **YEAR)
recovery = recovery_dag(schedule="0 0 1 1 *")

try:
    from airflow.sdk.definitions.callback import AsyncCallback
    from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference
except ImportError:  # before 3.2
    DEADLINE: dict[str, Any] = {}
else:
    DEADLINE = {
        "deadline": DeadlineAlert(
            reference=DeadlineReference.DAGRUN_QUEUED_AT,
            interval=timedelta(seconds=1),
            callback=AsyncCallback(tell_lateness),
        )
    }


def day_of(context: Any) -> str:
    """What the run is of."""
    start = context["data_interval_start"]
    return f"{start:%Y-%m-%d}"


@task(retries=0)
def extract(pipelines: list[str]) -> None:
    land(pipelines, day_of(get_current_context()))


@task(retries=0)
def report(*moved: Any) -> None:
    write("report", get_current_context()["run_id"], moved)


with DAG("groups", **TIMED, **DEADLINE):
    first = EpochTaskGroup(
        grouped,
        default_args=QUICK,
        task_args={
            "stage": {"pool": "groups", "on_failure_callback": tell_failure},
            "cleanup": {"on_success_callback": Telling("{{ ti.task_id }} of {{ data_interval_start | ds }}")},
        },
    )
    second = EpochTaskGroup(beside, group_id="other", default_args={**QUICK, "on_failure_callback": tell_failure})
    extract([grouped.name, beside.name]) >> [first, second]
    report(first.output, second.output)

with DAG("mapped", **TIMED):
    all_of_them = EpochTaskGroup.mapped(
        mapped, group_id="all", default_args=QUICK, task_args={"pack": {"max_active_tis_per_dagrun": 2}}
    )
    extract([pipeline.name for pipeline in mapped]) >> all_of_them
    report(all_of_them.output)

if HAS_PARTITIONS:
    from airflow.sdk import PartitionedAssetTimetable, RollupMapper, StartOfWeekMapper, WeekWindow

    from lockstep import missing_intervals, partitions_of

    whole_week = RollupMapper(upstream_mapper=StartOfWeekMapper(), window=WeekWindow())
    with DAG(
        "weekly",
        schedule=PartitionedAssetTimetable(
            assets=partitions_of("packed", "archive"), default_partition_mapper=whole_week
        ),
        is_paused_upon_creation=False,
    ):

        @task
        def ask(partition_key: str | None = None) -> None:
            """Is all of it there?"""
            start = datetime.fromisoformat(str(partition_key)[:10]).replace(tzinfo=UTC)
            gone = missing_intervals("packed", start, start + timedelta(days=7), "archive") or "nothing"
            print(f"{start:%Y-%m-%d} to {start + timedelta(days=6):%Y-%m-%d}, {gone} is missing")

        ask()
