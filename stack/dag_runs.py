"""Runs of a DAG, from outside: whether its DAG is loaded, what a run came to, why it failed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from stack.airflow_api import AirflowApi
from stack.errors import StackError

POLL_SECONDS = 2.0  #: each look costs the api-server a tenth of a second
PARSE_SECONDS = 120.0
RUN_SECONDS = 600.0
LOG_LINES = 20


class RunFailed(StackError):
    """A run failed, or nothing moves any more."""


@contextmanager
def unpaused(api: AirflowApi, dag_id: str) -> Iterator[None]:
    """Airflow runs nothing of a paused DAG. It is as it was before when nobody watches any more. Raises RunFailed where
    Airflow doesn't load it."""
    _await_dag(api, dag_id)
    before = api.is_paused(dag_id)
    api.pause(dag_id, False)
    try:
        yield
    finally:
        with suppress(StackError):
            api.pause(dag_id, before)


def await_run(api: AirflowApi, dag_id: str, run_id: str) -> None:
    """Until it has succeeded. Raises RunFailed with the failed tasks and the ends of their logs."""
    deadline = time.monotonic() + RUN_SECONDS
    while (state := api.run(dag_id, run_id)["state"]) not in ("success", "failed"):
        if time.monotonic() > deadline:
            raise RunFailed(f"run {run_id} of {dag_id} is {state} after {RUN_SECONDS:.0f} s")
        time.sleep(POLL_SECONDS / 4)
    if state == "failed":
        raise RunFailed("\n".join([f"run {run_id} of {dag_id} failed", *failed_tasks(api, dag_id, run_id)]))


def failed_tasks(api: AirflowApi, dag_id: str, run_id: str) -> list[str]:
    """Which tasks of a run failed, how often, and the end of each one's log."""
    told = []
    for task in api.tries(dag_id, run_id):
        if task.state == "failed":
            told.append(f"task {task.task_id} failed after {task.tries} tries; the end of its log:")
            told += [f"  {line}" for line in api.log(dag_id, run_id, task)[-LOG_LINES:]]
    return told


def _await_dag(api: AirflowApi, dag_id: str) -> None:
    deadline = time.monotonic() + PARSE_SECONDS
    while not api.knows(dag_id):
        if time.monotonic() > deadline:
            errors = "; ".join(api.import_errors()) or "no import error is known"
            raise RunFailed(f"Airflow has not loaded the DAG {dag_id} after {PARSE_SECONDS:.0f} s: {errors}")
        time.sleep(POLL_SECONDS)
