"""What an epoch costs on top of Airflow: a run of its DAG against a run of as many empty tasks, by turns."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path

from stack.airflow import ADMIN, Airflow
from stack.airflow_api import AirflowApi
from stack.errors import StackError
from stack.home import Home, Ports
from stack.lifecycle import Stack
from stack.postgres import free_port

ROWS = 1000
PATIENCE = 300.0  #: seconds for one run
WARM_UP = 3  #: runs of each before it counts: Spark's JVM compiles what is called often
_POLL = 0.5  # Airflow notes the times; each question costs a core that the run could use
_START = datetime(2024, 1, 1, tzinfo=UTC)


class BenchStack(Stack):
    """The default stack, with the benchmark's DAGs."""

    @cached_property
    def airflow(self) -> Airflow:
        return Airflow(
            self._processes,
            self.home.airflow,
            port=self.home.ports.airflow,
            database_port=self.home.ports.postgres,
            dags=Path(__file__).parent / "dags",
            environment={**self.environment, **self._connections()},
        )


def measure_dag_runs(root: Path, rounds: int) -> dict[str, list[float]]:
    """Seconds from the start to the end of each run, as Airflow's scheduler records them: {"epoch": …, "empty": …}."""
    stack = BenchStack(Home(root, Ports(free_port(), free_port(), free_port())), say=lambda line: None, kafka=False)
    stack.up()
    before = os.environ.get("PGPASSFILE")
    try:
        password = json.loads(stack.airflow.passwords.read_text())[ADMIN]
        with AirflowApi(stack.airflow.url, ADMIN, password) as api:
            return _measure(stack, api, rounds)
    finally:
        stack.clean()
        os.environ.pop("PGPASSFILE", None) if before is None else os.environ.update(PGPASSFILE=before)


def _measure(stack: Stack, api: AirflowApi, rounds: int) -> dict[str, list[float]]:
    for dag_id in ("bench_epoch", "bench_empty"):
        _wait(partial(api.knows, dag_id), f"DAG {dag_id}; import errors: {api.import_errors()}")
        api.pause(dag_id, paused=False)
    seconds: dict[str, list[float]] = {"epoch": [], "empty": []}
    for number in range(WARM_UP + rounds):
        day = _START + timedelta(days=number)
        _land(stack.home.landing, day)
        conf = {"interval_start": day.isoformat(), "interval_end": (day + timedelta(days=1)).isoformat()}
        epoch, empty = _run(api, "bench_epoch", conf), _run(api, "bench_empty", {})
        if number >= WARM_UP:
            seconds["epoch"].append(epoch)
            seconds["empty"].append(empty)
    return seconds


def _land(landing: Path, day: datetime) -> None:
    lines = "".join(f"{number},row {number}\n" for number in range(ROWS))
    (landing / f"{day:%Y-%m-%d}.csv").write_text(f"id,label\n{lines}")


def _run(api: AirflowApi, dag_id: str, conf: dict[str, str]) -> float:
    run_id = api.trigger(dag_id, conf)
    _wait(lambda: api.run(dag_id, run_id)["state"] in ("success", "failed"), f"the end of {run_id} of {dag_id}")
    found = api.run(dag_id, run_id)
    if found["state"] != "success":
        raise StackError(f"run {run_id} of {dag_id} failed: {api.tries(dag_id, run_id)}")
    started, ended = (datetime.fromisoformat(found[name]) for name in ("start_date", "end_date"))
    return (ended - started).total_seconds()


def _wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise StackError(f"waited {PATIENCE:.0f} s in vain for {what}")
        time.sleep(_POLL)
