"""What the end-to-end tests look at and act on: inputs, ledger, sinks, and the Airflow between them."""

from __future__ import annotations

import os
import signal
from collections import Counter
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg2
import pyarrow.parquet as pq
from psycopg2 import sql

from lockstep import files
from lockstep.airflow._airflow import HAS_PARTITIONS
from lockstep.epoch import Epoch, Interval
from lockstep.ledger import Ledger
from lockstep.ledger.report import Report
from tests.e2e.airflow_api import AirflowApi, wait_for
from tests.e2e.groups import Row, write_rows


@dataclass(frozen=True)
class World:
    """One running stack with the pipelines of tests/e2e."""

    home: Path
    api: AirflowApi
    ledger: Ledger
    ledger_dsn: str
    warehouse_dsn: str

    @property
    def partitions(self) -> bool:
        """Whether this Airflow has a task name the partitions that it tells."""
        return HAS_PARTITIONS

    # --- inputs ---

    def land(self, pipeline: str, day: str, rows: int = 20, *, name: str | None = None) -> Counter[Row]:
        """Write a day's file; returns its rows."""
        made: list[Row] = [(number, day, number / 4) for number in range(rows)] + [(0, day, 0.0)]
        write_rows(self.home / "landing" / pipeline / f"{name or day}.csv", made)
        return Counter(made)

    # --- runs ---

    def trigger(self, pipeline: str, day: str, last: str | None = None, *, dag_id: str | None = None) -> str:
        """A run of one day, or of all until `last`, by the params of the trigger form. `dag_id`: the pipeline's, unless
        given."""
        start, end = interval(day).start, interval(last or day).end
        self.api.unpause(dag_id or pipeline)
        return self.api.trigger(dag_id or pipeline, interval_start=start.isoformat(), interval_end=end.isoformat())

    def run(self, pipeline: str, day: str) -> str:
        """A run of one day that ends green."""
        run_id = self.trigger(pipeline, day)
        self.require_success(pipeline, run_id)
        return run_id

    def require_success(self, pipeline: str, run_id: str) -> None:
        state = self.api.wait_run(pipeline, run_id)
        assert state == "success", self.api.states(pipeline, run_id)

    def recover(self, **conf: Any) -> None:
        """One round of the recovery DAG that leaves no problem; what waits for a person may still be there."""
        states = self.api.states("lockstep_recovery", self.round(**conf))
        assert states.pop("fail_on_unemitted") == "skipped", "there is nothing that it would fail with"
        assert {state for task, state in states.items() if task != "stuck_epochs"} == {"success"}, states

    def round(self, **conf: Any) -> str:
        """One round of the recovery DAG, however it ends: its run."""
        self.api.unpause("lockstep_recovery")
        run_id = self.api.trigger("lockstep_recovery", **conf)
        self.api.wait_run("lockstep_recovery", run_id)
        return run_id

    def recovering(self, pipeline: str) -> AbstractContextManager[bool]:
        """As a round that takes long: until the block ends scheduled rounds leave the pipeline to it."""
        return self.ledger.recovering(pipeline)

    # --- what came of it ---

    def epoch(self, pipeline: str, day: str) -> Epoch | None:
        return self.ledger.epoch_of_interval(pipeline, interval(day))

    def state(self, pipeline: str, day: str) -> str | None:
        found = self.epoch(pipeline, day)
        return found.state.value if found else None

    def wait_states(self, pipeline: str, days: list[str], state: str) -> None:
        wait_for(lambda: all(self.state(pipeline, day) == state for day in days), f"{days} of {pipeline} to be {state}")

    def in_warehouse(self, pipeline: str, day: str) -> Counter[Row]:
        return Counter(
            self.query(
                sql.SQL("SELECT id, day, amount FROM {} WHERE day = {}").format(
                    sql.Identifier("public", pipeline), sql.Literal(day)
                )
            )
        )

    def in_archive(self, pipeline: str, day: str) -> Counter[Row]:
        """Every row of the day in any Parquet file that a plain reader of the folder would see."""
        rows: Counter[Row] = Counter()
        for file in sorted((self.home / "out" / pipeline).glob("*.parquet")):
            table = pq.read_table(file, columns=["id", "day", "amount"])
            rows.update(tuple(row.values()) for row in table.to_pylist() if row["day"] == day)
        return rows

    def require_published_once(self, pipeline: str, day: str, rows: Counter[Row]) -> None:
        """The epoch is cleaned, both sinks hold exactly `rows`, nothing hangs."""
        assert self.state(pipeline, day) == "cleaned"
        assert self.in_warehouse(pipeline, day) == rows
        assert self.in_archive(pipeline, day) == rows
        folder = self.home / "out" / pipeline
        assert sorted(files(str(folder))) == sorted(map(str, folder.glob("*.parquet")))
        assert self.prepared() == []

    def require_nothing_shown(self, pipeline: str, day: str) -> None:
        assert not self.in_archive(pipeline, day)
        exists = self.query(sql.SQL("SELECT to_regclass({}) IS NOT NULL").format(sql.Literal(f"public.{pipeline}")))
        assert exists == [(False,)] or not self.in_warehouse(pipeline, day)

    def prepared(self) -> list[tuple[Any, ...]]:
        return self.query(sql.SQL("SELECT gid FROM pg_prepared_xacts"))

    def query(self, statement: sql.Composable) -> list[tuple[Any, ...]]:
        connection = psycopg2.connect(self.warehouse_dsn)
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    # --- trouble ---

    def close_gate(self, day: str) -> None:
        """Hold the Spark job of `held` up when it gets to that day's rows."""
        (self.home / "gates").mkdir(exist_ok=True)
        (self.home / "gates" / day).touch()

    def wait_at_gate(self, day: str) -> None:
        reached = (self.home / "gates" / day).with_suffix(".reached")
        wait_for(reached.exists, f"the Spark job to reach the rows of {day}")
        reached.unlink()

    def open_gate(self, day: str) -> None:
        (self.home / "gates" / day).unlink(missing_ok=True)

    def hold_publisher(self, gate: str = "publisher") -> None:
        """Hold the next publisher up that has rows in an open transaction, or (`sealer`) who is about to seal."""
        (self.home / "gates").mkdir(exist_ok=True)
        (self.home / "gates" / gate).touch()

    def wait_for_held_publisher(self, gate: str = "publisher") -> int:
        """The process that is held up."""
        held = self.home / "gates" / f"{gate}.held"
        wait_for(lambda: held.exists() and held.read_text() != "", "a publisher to be held up")
        return int(held.read_text())

    def release_publisher(self, gate: str = "publisher") -> None:
        (self.home / "gates" / f"{gate}.held").unlink(missing_ok=True)

    def kill_task(self, pipeline: str, run_id: str, task_id: str) -> None:
        """kill -9 of the process that executes the task."""
        os.kill(int(self.api.tasks(pipeline, run_id)[task_id]["pid"]), signal.SIGKILL)

    def wait_lease_out(self, pipeline: str, day: str) -> None:
        """Nobody renews the lease of a dead run; another may take over once it has run out."""
        wait_for(lambda: not self._leased(pipeline, day), f"the lease of {pipeline} {day} to run out")

    def _leased(self, pipeline: str, day: str) -> bool:
        wanted = self.epoch(pipeline, day)
        with closing(Report(self.ledger_dsn)) as report:
            status = report.pipeline(pipeline)
        assert status is not None and wanted is not None
        return any(one.leased for one in status.epochs if one.epoch.id == wanted.id)


def interval(day: str) -> Interval:
    """A day in UTC."""
    start = datetime.fromisoformat(day).replace(tzinfo=UTC)
    return Interval(start, start + timedelta(days=1))
