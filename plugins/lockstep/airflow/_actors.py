"""Task instances as actors in the ledger's history, and which tasks of an attempt's run are unfinished.

A task that waits for a slot looks dead to the ledger. Only Airflow knows better, and a worker can't read its database:
the recovering task asks through its supervisor. Safety doesn't depend on the answer: an attempt that is left alone has
decided nothing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from lockstep.airflow._airflow import AirflowRuntimeError
from lockstep.epoch import Epoch
from lockstep.ledger.report import Report
from lockstep.states import Role

if TYPE_CHECKING:
    from airflow.sdk import Context

_log = logging.getLogger(__name__)
_PATTERN = re.compile(r"airflow:(?P<dag>[^/]+)/(?P<run>.+)/(?P<task>[^/[]+)(\[(?P<map>\d+)\])?#\d+")
_BEFORE_THE_DECISION = r"(begin|stage|audit|prepare\..+|commit|abort|pack)"
_ENDED = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
_RUN_WHILE_PAUSED = frozenset({"queued", "running", "restarting"})  #: states that a paused DAG doesn't stop


@dataclass(frozen=True)
class TaskActor:
    """A task of a run. `map_index`: of an instance of a mapped task, or None."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int | None = None

    @classmethod
    def parse(cls, actor: str) -> Self | None:
        """Parse an actor of the history; None if it isn't a task of Airflow."""
        match = _PATTERN.fullmatch(actor)
        if match is None:
            return None
        return cls(match["dag"], match["run"], match["task"], int(match["map"]) if match["map"] else None)


def actor_of(task: Any) -> str:
    """The actor name of the running try of a task instance."""
    instance = f"[{task.map_index}]" if task.map_index is not None and task.map_index >= 0 else ""
    return f"airflow:{task.dag_id}/{task.run_id}/{task.task_id}{instance}#{task.try_number}"


def pending_tasks(epoch: Epoch, report: Report, context: Context) -> str | None:
    """The tasks before the decision that haven't ended in the run of the epoch's attempt, as text; None if there are
    none, or no run of this Airflow began it. If Airflow doesn't answer, some are assumed."""
    history = report.history(epoch.pipeline, epoch.id)
    entries = [entry for entry in history if entry.sink is None and entry.attempt == epoch.attempt]
    began = TaskActor.parse(entries[0].actor) if entries and entries[0].role == Role.BEGIN else None
    if began is None:  # a person opened the attempt, or voided it since
        return None
    try:
        ahead = _unfinished(began, context["ti"])
    except AirflowRuntimeError as error:
        unreported = f"run {began.run_id} of DAG {began.dag_id}, whose tasks Airflow doesn't report"
        _log.warning("%s: %s", unreported, error)
        return unreported
    return f"{', '.join(ahead)} of run {began.run_id} of DAG {began.dag_id}" if ahead else None


def _unfinished(began: TaskActor, task: Any) -> list[str]:
    run = {"dag_id": began.dag_id, "run_ids": [began.run_id]}
    if not task.get_dr_count(**run, states=["queued", "running"]):
        return []
    states = task.get_task_states(**run).get(began.run_id, {})
    ahead = {name: states[name] for name in _tasks_of_epoch(began, states) if states[name] not in _ENDED}
    # an older Airflow can't be asked whether a DAG is paused
    if ahead and hasattr(task, "get_dag") and task.get_dag(began.dag_id).is_paused:
        ahead = {name: state for name, state in ahead.items() if state in _RUN_WHILE_PAUSED}
    return sorted(ahead)


def _tasks_of_epoch(began: TaskActor, names: Iterable[str]) -> list[str]:
    """Names of the tasks that move the same epoch: those of the task group, or the instance of a mapped pack."""
    if began.map_index is not None:
        return [name for name in names if name == f"{began.task_id}_{began.map_index}"]  # as Airflow reports it
    group = began.task_id.rpartition(".")[0]
    own = re.compile(re.escape(f"{group}." if group else "") + _BEFORE_THE_DECISION)
    return [name for name in names if own.fullmatch(name)]
