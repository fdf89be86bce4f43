"""Groups that move epochs, in DAGs of somebody's own."""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, get_current_context, task

from lockstep import EpochTaskGroup
from lockstep.orchestration._airflow import CronDataIntervalTimetable
from tests.e2e.groups import Telling, land, tell_failure, tell_lateness, write
from tests.e2e.pipelines import beside, grouped, mapped

QUICK: dict[str, Any] = {"retry_delay": timedelta(seconds=1), "max_retry_delay": timedelta(seconds=2), "retries": 40}
YEAR: dict[str, Any] = {
    "schedule": CronDataIntervalTimetable("@daily", timezone="UTC"),
    "start_date": datetime(2024, 1, 1, tzinfo=UTC),
    "end_date": datetime(2024, 12, 31, tzinfo=UTC),
}

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


with DAG("groups", **YEAR, **DEADLINE):
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

with DAG("mapped", **YEAR):
    all_of_them = EpochTaskGroup.mapped(
        mapped, group_id="all", default_args=QUICK, task_args={"pack": {"max_active_tis_per_dagrun": 2}}
    )
    extract([pipeline.name for pipeline in mapped]) >> all_of_them
    report(all_of_them.output)
