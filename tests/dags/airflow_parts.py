"""What the tests take from the inside of Airflow, wherever its versions have it: imported within them."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag
    from airflow.sdk import DAG
    from airflow.serialization.definitions.dag import SerializedDAG

    from lockstep.airflow._airflow import TaskDeferred


def before_3_2() -> bool:
    import airflow.sdk

    return not hasattr(airflow.sdk, "CronDataIntervalTimetable")


def statsd_client() -> Any:
    """As the configuration of the moment has it."""
    try:
        from airflow.sdk.observability.metrics.statsd_logger import get_statsd_logger
    except ImportError:  # 3.1
        before: Any = importlib.import_module("airflow.metrics.statsd_logger")
        return before.get_statsd_logger()
    return get_statsd_logger()


def dag_bag(folder: Path) -> DagBag:
    """What the DAG processor makes of a folder."""
    try:
        from airflow.dag_processing.dagbag import DagBag
    except ImportError:  # 3.1
        from airflow.models import dagbag

        before: Any = dagbag
        return before.DagBag(dag_folder=folder, bundle_path=folder)  # type: ignore[no-any-return]
    return DagBag(dag_folder=folder, bundle_path=folder, bundle_name="tests")


def serialized(dag: DAG) -> dict[str, Any]:
    return _serialization().to_dict(dag)  # type: ignore[no-any-return]


def deserialized(dag: dict[str, Any]) -> SerializedDAG:
    return _serialization().from_dict(dag)  # type: ignore[no-any-return]


def as_airflow_has_it(dag: DAG) -> SerializedDAG:
    """As the scheduler reads it from the database."""
    return deserialized(json.loads(json.dumps(serialized(dag))))


def first_run(dag: SerializedDAG) -> Any:
    """Of the schedule, with its `data_interval`."""
    return _after_no_run(dag.next_dagrun_info)


def row_of(dag: SerializedDAG) -> Any:
    """What the scheduler stores of a DAG that had no run yet, and makes the first run by."""
    from airflow.models.dag import DagModel

    model: Any = DagModel
    row = model(dag_id=dag.dag_id)
    _after_no_run(row.calculate_dagrun_date_fields, dag=dag)
    return row


def _after_no_run(ask: Any, **arguments: Any) -> Any:
    """Each version calls the run before by another name."""
    last = next(name for name in inspect.signature(ask).parameters if name.startswith(("last", "reference")))
    return ask(**arguments, **{last: None})


@contextmanager
def deferred() -> Iterator[list[TaskDeferred]]:
    """The list gets what a task leaves to Airflow."""
    from lockstep.airflow._airflow import TaskDeferred

    caught: list[TaskDeferred] = []
    with pytest.raises(TaskDeferred) as raised:
        yield caught
    caught.append(raised.value)


@contextmanager
def rescheduled() -> Iterator[None]:
    from lockstep.airflow._airflow import AirflowRescheduleException

    with pytest.raises(AirflowRescheduleException):
        yield


def weighs_by(task: Any) -> str:
    """The rule of its priority: 3.1 has an object for each."""
    rule = task.weight_rule
    return rule if isinstance(rule, str) else type(rule).__name__.lower().split("priority")[0].strip("_")


def _serialization() -> Any:
    from airflow.serialization import serialized_objects

    before: Any = serialized_objects
    return getattr(before, "DagSerialization", None) or before.SerializedDAG  # 3.1
