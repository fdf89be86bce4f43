"""The DAG that compacts the tables of every pipeline of the ledger that are made of epochs' files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG

from lockstep.airflow._airflow import CronTriggerTimetable
from lockstep.airflow.dag import OWNER, TAG, require_no_dag_around, with_own
from lockstep.airflow.operators import CompactOperator, ListCompactableOperator
from lockstep.sinks.compacting import MIN_FILES, TARGET_BYTES


def compaction_dag(
    dag_id: str = "lockstep_compaction",
    *,
    schedule: str = "30 3 * * *",
    target_bytes: int = TARGET_BYTES,
    min_files: int = MIN_FILES,
    expire: timedelta | None = None,
    **dag_args: Any,
) -> DAG:
    """List the sinks of the pipelines that the ledger knows, then compact each table in a task of its own, two at once.

    `target_bytes`: of a file, about; `min_files`: small ones that a partition needs before it is touched; `expire`:
    also delete files that no version of so long ago, or later, consists of. `dag_args` are Airflow's. A task whose
    table others changed meanwhile is tried again, twice.
    """
    require_no_dag_around("compaction_dag")
    own = {
        "schedule": CronTriggerTimetable(schedule, timezone="UTC"),
        "start_date": datetime(2024, 1, 1, tzinfo=UTC),
        "default_args": {"owner": OWNER, "retries": 2, "retry_delay": timedelta(minutes=10)},
        "doc_md": __doc__,
        "tags": {TAG},
        "max_active_runs": 1,
        "catchup": False,
        "max_active_tasks": 2,
    }
    with DAG(dag_id, **with_own(own, dag_args)) as dag:
        tables = ListCompactableOperator(task_id="tables", doc_md="Asks the ledger which sinks have such tables.")
        CompactOperator.partial(
            task_id="compact",
            target_bytes=target_bytes,
            min_files=min_files,
            expire=expire,
            doc_md="Writes the small files of published epochs anew into few, by one commit of the table.",
            map_index_template="{{ task.pipeline }}.{{ task.sink }}",
        ).expand_kwargs(tables.output)
    return dag
