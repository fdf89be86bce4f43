"""What a person does in Airflow's UI, through its REST API."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote

import stack.airflow_api

ENDED = frozenset({"success", "failed"})
POLL_SECONDS = 0.2
WAIT_SECONDS = 180.0


def wait_for(condition: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> None:
    """Wait until `condition` holds; fail with `what` otherwise."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain for: {what}"
        time.sleep(POLL_SECONDS)


class AirflowApi:
    """One login at one api-server."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self._api = stack.airflow_api.AirflowApi(url, user, password)

    # --- runs ---

    def unpause(self, dag_id: str) -> None:
        wait_for(lambda: dag_id in self.dag_ids(), f"DAG {dag_id}; import errors: {self.import_errors()}")
        self._call("PATCH", f"/dags/{dag_id}", {"is_paused": False})

    def dag_ids(self) -> set[str]:
        return {dag["dag_id"] for dag in self._call("GET", "/dags?limit=100")["dags"]}

    def import_errors(self) -> list[str]:
        return [error["stack_trace"] for error in self._call("GET", "/importErrors")["import_errors"]]

    def trigger(self, dag_id: str, **conf: Any) -> str:
        """As the trigger form does it without a logical date: `conf` is what was typed into its fields."""
        body = {"logical_date": None, "conf": conf}
        return str(self._call("POST", f"/dags/{dag_id}/dagRuns", body)["dag_run_id"])

    def trigger_interval(self, dag_id: str, start: str, end: str) -> str:
        """As the trigger form does it with "Specify Manually"."""
        body = {"logical_date": start, "data_interval_start": start, "data_interval_end": end, "conf": {}}
        return str(self._call("POST", f"/dags/{dag_id}/dagRuns", body)["dag_run_id"])

    def runs(self, dag_id: str) -> dict[str, str]:
        """{run id: state}"""
        found = self._call("GET", f"/dags/{dag_id}/dagRuns?limit=100")["dag_runs"]
        return {run["dag_run_id"]: run["state"] for run in found}

    def run_state(self, dag_id: str, run_id: str) -> str:
        return str(self._call("GET", _run(dag_id, run_id))["state"])

    def wait_run(self, dag_id: str, run_id: str) -> str:
        """The state in which the run ends."""
        wait_for(lambda: self.run_state(dag_id, run_id) in ENDED, f"the end of {run_id}: {self.states(dag_id, run_id)}")
        return self.run_state(dag_id, run_id)

    def mark_run(self, dag_id: str, run_id: str, state: str) -> None:
        self._call("PATCH", _run(dag_id, run_id), {"state": state})

    def delete_run(self, dag_id: str, run_id: str) -> None:
        self._call("DELETE", _run(dag_id, run_id))

    def clear_run(self, dag_id: str, run_id: str) -> None:
        self._call("POST", f"{_run(dag_id, run_id)}/clear", {"dry_run": False})

    def backfill(self, dag_id: str, first: str, last: str, **arguments: Any) -> int:
        """Start one, wait for its end; returns its id."""
        body = {"dag_id": dag_id, "from_date": f"{first}T00:00:00Z", "to_date": f"{last}T00:00:00Z", **arguments}
        number = int(self._call("POST", "/backfills", body)["id"])
        wait_for(lambda: bool(self._call("GET", f"/backfills/{number}")["completed_at"]), f"backfill {number}")
        return number

    def set_pool(self, name: str, slots: int) -> None:
        """Make a pool, or make it as large."""
        known = {pool["name"] for pool in self._call("GET", "/pools?limit=100")["pools"]}
        where = ("PATCH", f"/pools/{name}") if name in known else ("POST", "/pools")
        self._call(*where, {"name": name, "slots": slots, "description": "of a test", "include_deferred": False})

    # --- tasks ---

    def tasks(self, dag_id: str, run_id: str) -> dict[str, dict[str, Any]]:
        """{task id: task instance}; a mapped one as task[index]."""
        found = self._call("GET", f"{_run(dag_id, run_id)}/taskInstances?limit=100")["task_instances"]
        return {_name(task): task for task in found}

    def states(self, dag_id: str, run_id: str) -> dict[str, str | None]:
        return {name: task["state"] for name, task in self.tasks(dag_id, run_id).items()}

    def wait_task(self, dag_id: str, run_id: str, task_id: str, states: Iterable[str]) -> None:
        wanted = set(states)
        wait_for(lambda: self.states(dag_id, run_id).get(task_id) in wanted, f"{task_id} of {run_id} to be {wanted}")

    def mark_task(self, dag_id: str, run_id: str, task_id: str, state: str, index: int | None = None) -> None:
        """`index`: of a mapped one this instance alone."""
        instance = task_id if index is None else f"{task_id}/{index}"
        self._call("PATCH", f"{_run(dag_id, run_id)}/taskInstances/{instance}", {"new_state": state})

    def clear(self, dag_id: str, run_id: str, task_id: str, *, downstream: bool, index: int | None = None) -> None:
        """`index`: of a mapped one this instance alone."""
        body = {
            "dry_run": False,
            "dag_run_id": run_id,
            "task_ids": [task_id if index is None else [task_id, index]],
            "include_downstream": downstream,
            "only_failed": False,
        }
        self._call("POST", f"/dags/{dag_id}/clearTaskInstances", body)

    def pool(self, name: str) -> dict[str, Any]:
        """How many slots it has, and how many task instances there are in each state."""
        found: dict[str, Any] = self._call("GET", f"/pools/{name}")
        return found

    def all_states(self, dag_id: str, task_id: str) -> dict[str, str | None]:
        """{run id: state} of a task in all runs, up to 100."""
        found = self._call("GET", f"/dags/{dag_id}/dagRuns/~/taskInstances?task_id={task_id}&limit=100")
        return {task["dag_run_id"]: task["state"] for task in found["task_instances"]}

    def log(self, dag_id: str, run_id: str, task_id: str) -> str:
        """The log of the task's last try, as text."""
        return json.dumps(self.log_entries(dag_id, run_id, task_id), ensure_ascii=False)

    def log_entries(self, dag_id: str, run_id: str, task_id: str) -> list[dict[str, Any]]:
        """What the task's last try has logged, each line with its fields."""
        found = self.tasks(dag_id, run_id)[task_id]
        where = f"{_run(dag_id, run_id)}/taskInstances/{found['task_id']}/logs/{found['try_number']}"
        answer = self._call("GET", f"{where}?full_content=true&map_index={found['map_index']}")
        return list(answer["content"])

    def asset_events(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        query = f"source_dag_id={dag_id}&source_run_id={quote(run_id)}&limit=100"
        return list(self._call("GET", f"/assets/events?{query}")["asset_events"])

    def events_of(self, name: str) -> list[dict[str, Any]]:
        """Of the asset of this name, oldest first."""
        known = self._call("GET", f"/assets?name_pattern={quote(name)}&limit=100")["assets"]
        numbers = [asset["id"] for asset in known if asset["name"] == name]
        query = f"asset_id={numbers[0]}&order_by=timestamp&limit=100"
        return list(self._call("GET", f"/assets/events?{query}")["asset_events"]) if numbers else []

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        return self._api.call(method, path, json=body)


def _run(dag_id: str, run_id: str) -> str:
    return f"/dags/{dag_id}/dagRuns/{quote(run_id)}"


def _name(task: dict[str, Any]) -> str:
    index = task["map_index"]
    return task["task_id"] if index < 0 else f"{task['task_id']}[{index}]"
