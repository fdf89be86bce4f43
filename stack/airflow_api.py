"""What the demo and the tests ask of Airflow, through its REST API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx
from tenacity import retry, retry_if_exception, stop_after_attempt

from stack.errors import StackError

WAITING = ("up_for_retry", "up_for_reschedule")
PAGE = 100  # Airflow gives no more at once
RETRIED = 3  # a busy api-server may refuse or reset a connection


class AirflowRefused(StackError):
    """Airflow answered with an error."""

    def __init__(self, method: str, path: str, answer: httpx.Response) -> None:
        self.status = answer.status_code
        super().__init__(f"Airflow answered {answer.status_code} to {method} {path}: {answer.text[:500]}")


def _lost_to_the_scheduler(error: BaseException) -> bool:
    """Whether Airflow's database ended the transaction, in a deadlock with the scheduler: nothing was done."""
    return isinstance(error, AirflowRefused) and error.status == 500 and "Database error" in str(error)


@dataclass(frozen=True)
class TaskTry:
    """The last try of one task of a run."""

    task_id: str
    state: str | None
    tries: int

    @property
    def waits(self) -> bool:
        """Whether it is to be run again: after a failure, or because something wasn't there yet."""
        return self.state in WAITING


class AirflowApi:
    """One login at one api-server. Raises AirflowRefused; StackError when nobody answers."""

    def __init__(self, url: str, user: str, password: str) -> None:
        transport = httpx.HTTPTransport(retries=RETRIED)
        self._client = httpx.Client(base_url=url, timeout=60, transport=transport, trust_env=False)
        self._credentials = {"username": user, "password": password}
        self._log_in()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._client.close()

    # --- DAGs ---

    def knows(self, dag_id: str) -> bool:
        try:
            return not self.get(f"/dags/{dag_id}")["is_stale"]
        except AirflowRefused as error:
            if error.status == httpx.codes.NOT_FOUND:
                return False
            raise

    def import_errors(self) -> list[str]:
        """The last line of each traceback."""
        found = self.get("/importErrors", limit=PAGE)["import_errors"]
        return [f"{error['filename']}: {error['stack_trace'].strip().splitlines()[-1]}" for error in found]

    def is_paused(self, dag_id: str) -> bool:
        return bool(self.get(f"/dags/{dag_id}")["is_paused"])

    def pause(self, dag_id: str, paused: bool) -> None:
        self.call("PATCH", f"/dags/{dag_id}", json={"is_paused": paused})

    # --- backfills ---

    def active_backfill(self, dag_id: str) -> int | None:
        """The one backfill of the DAG that isn't complete, if any: Airflow allows no second one."""
        found = self.get("/backfills", dag_id=dag_id, limit=PAGE, order_by="-id")["backfills"]
        return next((int(one["id"]) for one in found if one["completed_at"] is None), None)

    def start_backfill(self, dag_id: str, first: date, last: date, *, reprocess: str, runs_at_once: int) -> int:
        """`first` and `last` are the starts of the first and last interval; `reprocess`: none, failed or completed."""
        body = {
            "dag_id": dag_id,
            "from_date": f"{first}T00:00:00Z",
            "to_date": f"{last}T00:00:00Z",
            "reprocess_behavior": reprocess,
            "max_active_runs": runs_at_once,
        }
        return int(self.call("POST", "/backfills", json=body)["id"])

    def cancel_backfill(self, backfill: int) -> None:
        """Queued runs fail, running ones end by themselves."""
        self.call("PUT", f"/backfills/{backfill}/cancel")

    # --- runs ---

    def trigger(self, dag_id: str, conf: dict[str, Any]) -> str:
        """A run without a logical date; `conf` is what the trigger form's fields hold. The run's id."""
        body = {"logical_date": None, "conf": conf}
        return str(self.call("POST", f"/dags/{dag_id}/dagRuns", json=body)["dag_run_id"])

    def run(self, dag_id: str, run_id: str) -> Any:
        """The run as Airflow knows it: state, start_date, end_date, …"""
        return self.get(f"/dags/{dag_id}/dagRuns/{quote(run_id)}")

    def count_runs(self, dag_id: str, states: Sequence[str], first: date, last: date) -> int:
        """Runs in one of `states` whose interval starts from `first` to `last`."""
        return int(self._runs(dag_id, states, first, last)["total_entries"])

    def first_run(self, dag_id: str, state: str, first: date, last: date) -> dict[str, Any] | None:
        return next(iter(self._runs(dag_id, [state], first, last)["dag_runs"]), None)

    def _runs(self, dag_id: str, states: Sequence[str], first: date, last: date) -> Any:
        dates = {"logical_date_gte": f"{first}T00:00:00Z", "logical_date_lte": f"{last}T00:00:00Z"}
        return self.get(f"/dags/{dag_id}/dagRuns", state=list(states), order_by="logical_date", limit=1, **dates)

    def busy_tasks(self, dag_id: str) -> list[TaskTry]:
        """The tasks of any run that run, or wait to be run again."""
        states = ["running", *WAITING]
        found = self.get(f"/dags/{dag_id}/dagRuns/~/taskInstances", state=states, limit=PAGE)["task_instances"]
        return [_task(one) for one in found]

    def tries(self, dag_id: str, run_id: str) -> list[TaskTry]:
        found = self.get(f"/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances", limit=PAGE)["task_instances"]
        return [_task(one) for one in found]

    def log(self, dag_id: str, run_id: str, task: TaskTry) -> list[str]:
        """The lines of the task's last try, each with what was raised."""
        path = f"/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task.task_id}/logs/{task.tries}"
        return [line for entry in self.get(path, full_content=True)["content"] for line in _lines(entry)]

    # --- the wire ---

    def _log_in(self) -> None:
        answer = self._send("POST", "/auth/token", json=self._credentials)
        self._client.headers["Authorization"] = f"Bearer {answer['access_token']}"

    def get(self, path: str, **parameters: Any) -> Any:
        """The answer to a GET of `path`, which follows /api/v2."""
        return self.call("GET", path, params=parameters)

    def call(self, method: str, path: str, *, root: str = "/api/v2", **request: Any) -> Any:
        """The answer to any request; `request` as httpx takes it (`json`, `params`)."""
        try:
            return self._send(method, f"{root}{path}", **request)
        except AirflowRefused as error:
            if error.status != httpx.codes.UNAUTHORIZED:
                raise
        self._log_in()  # a login lasts a day, a restarted api-server may have forgotten it
        return self._send(method, f"{root}{path}", **request)

    @retry(retry=retry_if_exception(_lost_to_the_scheduler), stop=stop_after_attempt(RETRIED), reraise=True)
    def _send(self, method: str, path: str, **request: Any) -> Any:
        try:
            answer = self._client.request(method, path, headers={"Accept": "application/json"}, **request)
        except httpx.HTTPError as error:
            raise StackError(f"Airflow at {self._client.base_url} gives no answer: {error}") from error
        if answer.is_error:
            raise AirflowRefused(method, path, answer)
        return answer.json() if answer.content else None


def _task(instance: dict[str, Any]) -> TaskTry:
    return TaskTry(instance["task_id"], instance["state"], instance["try_number"])


def _lines(entry: dict[str, Any]) -> Iterator[str]:
    if entry.get("event"):
        yield str(entry["event"])
    for raised in entry.get("error_detail") or []:
        yield f"{raised.get('exc_type')}: {raised.get('exc_value')}"
