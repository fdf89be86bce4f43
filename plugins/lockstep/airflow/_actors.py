"""What the ledger calls a try of a task, in its history: who did it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Self

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
        found = _NAMED.fullmatch(actor)
        if found is None:
            return None
        return cls(found["dag"], found["run"], found["task"], int(found["map"]) if found["map"] else None)


def actor_of(task: Any) -> str:
    """Of the try that runs, by its task instance."""
    instance = f"[{task.map_index}]" if task.map_index is not None and task.map_index >= 0 else ""
    return f"airflow:{task.dag_id}/{task.run_id}/{task.task_id}{instance}#{task.try_number}"
