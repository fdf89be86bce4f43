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

_NAMED = re.compile(r"airflow:(?P<dag>[^/]+)/(?P<run>.+)/(?P<task>[^/[]+)(\[(?P<map>\d+)\])?#\d+")


@dataclass(frozen=True)
class TaskActor:
    """A task of a run. `map_index`: of an instance of a mapped one, or None."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int | None = None

    @classmethod
    def named(cls, actor: str) -> Self | None:
        """None: no task of Airflow's did it."""
        match = _NAMED.fullmatch(actor)
        if match is None:
            return None
        return cls(match["dag"], match["run"], match["task"], int(match["map"]) if match["map"] else None)


def actor_of(task: Any) -> str:
    """Of the try that runs, by its task instance."""
    instance = f"[{task.map_index}]" if task.map_index is not None and task.map_index >= 0 else ""
    return f"airflow:{task.dag_id}/{task.run_id}/{task.task_id}{instance}#{task.try_number}"


_BEFORE_THE_DECISION = r"(begin|stage|audit|prepare\..+|commit|abort|pack)"
_ENDED = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
_BEYOND_A_PAUSE = frozenset({"queued", "running", "restarting"})  #: of a paused DAG nothing else gets to run
_log = logging.getLogger(__name__)


def pending_tasks(epoch: Epoch, report: Report, context: Context) -> str | None:
    """The tasks before the decision that haven't ended in the run of the epoch's attempt, for people; None if there are
    none, or no run of this Airflow began it. An Airflow that doesn't answer counts as one that has some."""
    began = _find_begin(epoch, report)
    if began is None:
        return None
    task: Any = context["ti"]
    try:
        ahead = _unfinished(began, task)
    except AirflowRuntimeError as error:
        _log.warning("Airflow doesn't say what is to come of run %s of DAG %s: %s", began.run_id, began.dag_id, error)
        return f"run {began.run_id} of DAG {began.dag_id}, of which Airflow says nothing"
    return f"{', '.join(ahead)} of run {began.run_id} of DAG {began.dag_id}" if ahead else None


def _find_begin(epoch: Epoch, report: Report) -> TaskActor | None:
    """The task that opened the attempt; None where that was no task, or the attempt was voided since."""
    entries = [
        entry
        for entry in report.history(epoch.pipeline, epoch.id)
        if entry.sink is None and entry.attempt == epoch.attempt
    ]
    return TaskActor.named(entries[0].actor) if entries and entries[0].role == Role.BEGIN else None


def _unfinished(began: TaskActor, task: Any) -> list[str]:
    run = {"dag_id": began.dag_id, "run_ids": [began.run_id]}
    if not task.get_dr_count(**run, states=["queued", "running"]):
        return []
    states = task.get_task_states(**run).get(began.run_id, {})
    ahead = {name: states[name] for name in _own(began, states) if states[name] not in _ENDED}
    if ahead and _is_paused(began.dag_id, task):
        ahead = {name: state for name, state in ahead.items() if state in _BEYOND_A_PAUSE}
    return sorted(ahead)


def _own(began: TaskActor, names: Iterable[str]) -> list[str]:
    """Those that move the same epoch: of a DAG of several pipelines the group's, of a mapped pack the instance."""
    if began.map_index is not None:
        return [name for name in names if name == f"{began.task_id}_{began.map_index}"]  # as Airflow's answer names it
    group = began.task_id.rpartition(".")[0]
    own = re.compile(re.escape(f"{group}." if group else "") + _BEFORE_THE_DECISION)
    return [name for name in names if own.fullmatch(name)]


def _is_paused(dag_id: str, task: Any) -> bool:
    """False where an older Airflow has no way to ask."""
    return bool(task.get_dag(dag_id).is_paused) if hasattr(task, "get_dag") else False
