"""The DAG that compacts: a task a table, at night, for tables that are made of epochs' files."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lockstep.errors import InvalidPipeline


def test_it_asks_which_tables_there_are_and_compacts_each_with_what_it_was_told() -> None:
    from lockstep.orchestration.compaction import compaction_dag

    dag: Any = compaction_dag(target_bytes=1 << 20, min_files=3, expire=timedelta(days=7))
    assert (dag.dag_id, dag.max_active_runs, dag.catchup) == ("lockstep_compaction", 1, False)
    task = dag.get_task("compact")
    assert task.upstream_task_ids == {"tables"}
    told = {name: task.partial_kwargs[name] for name in ("target_bytes", "min_files", "expire", "retries")}
    assert told == {"target_bytes": 1 << 20, "min_files": 3, "expire": timedelta(days=7), "retries": 2}


def test_within_another_dag_it_is_refused_by_name() -> None:
    from airflow.sdk import DAG

    import lockstep

    with DAG("mine"), pytest.raises(InvalidPipeline, match="compaction_dag stands inside DAG mine"):
        lockstep.compaction_dag()
