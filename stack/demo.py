"""`make demo`: real flights through a real backfill into PostgreSQL and Parquet files, then everything counted again.

The first day's file lacks an airline at first. Once all days are published the whole file comes, and the day is
restated while a reader counts it.

It can be killed at any moment and started again. The days that are published stay as they are; where all are, their
runs are run once more, to show that nothing changes, and the first day, which is right by then, is restated again.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from datetime import date
from typing import Any

import psycopg2
from rich.console import Console

from lockstep.errors import LockstepError
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger
from lockstep.ledger.report import EpochStatus, HistoryEntry, Report
from lockstep.protocol.runtime import Runtime
from lockstep.states import SHOWN, EpochState, Role
from lockstep.wal.staging import Staging
from stack.airflow import ADMIN
from stack.airflow_api import AirflowApi
from stack.backfill import DAG, Backfill
from stack.demo_tables import EpochRow, progress, show_checks, show_epochs
from stack.errors import AlreadyAtWork, StackError
from stack.home import Home
from stack.landing import FIRST_DAY, demo_days, land
from stack.lifecycle import Stack
from stack.proof import fingerprint
from stack.reconciliation import Check, Reconciliation, rows_of_wheel
from stack.restatement import Restated, Restatement, current, interval_of, lives

REPEATED_DAYS = 14  #: of a demo that finds all done: enough to show it, also for a year
LATE_AIRLINE = "UA"  #: whose flights of the first day come late


def run_demo(days: int, as_json: bool = False) -> int:
    """0 when every count agrees, 1 otherwise. Progress goes to stderr when stdout carries JSON. Raises StackError."""
    console = Console(stderr=as_json)
    home = Home.from_environment()
    stack = Stack(home, lambda line: console.print(line, highlight=False, markup=False))
    began = time.monotonic()
    try:
        with only_demo(home), running(stack, console):
            report = Demo(stack, console, demo_days(days)).run()
    except (LockstepError, psycopg2.Error) as error:
        raise StackError(f"{type(error).__name__}: {str(error).strip()}") from error
    return exit_code(report, console, began, as_json)


def exit_code(report: Mapping[str, Any], console: Console, began: float, as_json: bool) -> int:
    """Say the verdict, print the report if it is wanted as JSON; 0 if everything agrees."""
    seconds = time.monotonic() - began
    verdict = "every count agrees" if report["agrees"] else "[bold red]some counts differ[/]"
    console.print(f"{verdict}; {seconds:.0f} s in all", highlight=False)
    if as_json:
        json.dump({**report, "seconds": round(seconds, 1)}, sys.stdout, indent=2, default=str)
        print()
    return 0 if report["agrees"] else 1


class Demo:
    """One demo on a running stack."""

    def __init__(self, stack: Stack, console: Console, days: Sequence[date]) -> None:
        self._home = stack.home
        self._ledger, self._warehouse, self._staging = (
            stack.environment[name] for name in ("LOCKSTEP_LEDGER", "LOCKSTEP_WAREHOUSE", "LOCKSTEP_STAGING")
        )
        self._login = (stack.airflow.url, ADMIN, json.loads(stack.airflow.passwords.read_text())[ADMIN])
        self._console = console
        self._days = days
        self._restatement = Restatement(self._ledger, self._login, FIRST_DAY)

    def run(self) -> dict[str, Any]:
        """What the demo found, as JSON; `agrees` is the verdict."""
        missing = self._missing()
        landed = land(self._home.landing, self._days, {FIRST_DAY: LATE_AIRLINE} if FIRST_DAY in missing else {})
        self._say(f"landed {landed.files} files of real data, {landed.written} of them new, in {self._home.landing}")
        if self._restatement.finish():
            self._say(f"an earlier demo was cut short while it restated {FIRST_DAY}: that is done now")
        began = time.monotonic()
        runs = len(missing) or len(self._days[:REPEATED_DAYS])
        proof = self._backfill() if missing else self._repeat()
        took = time.monotonic() - began
        self._say(f"{runs} runs of the DAG in {took:.0f} s, {took / runs:.1f} s each")
        amiss, restated = self._restate()
        rows = self._epoch_rows()
        show_epochs(self._console, rows)
        checks = [*amiss, *restated.checks(), *self._reconcile(), *proof]
        show_checks(self._console, checks)
        return {
            "agrees": all(check.agrees for check in checks),
            "backfill_seconds": round(took, 1),
            "repeated": bool(proof),
            "restated": restated.to_json(),
            "epochs": [asdict(row) for row in rows],
            "checks": [{**asdict(check), "agrees": check.agrees} for check in checks],
        }

    # --- steps --------------------------------------------------------------------------------------------------------

    def _backfill(self) -> list[Check]:
        title = f"backfill of {DAG}"
        with AirflowApi(*self._login) as api, progress(self._console, title, len(self._days)) as show:
            Backfill(api, self._days, show).run(self._missing)
        return []

    def _repeat(self) -> list[Check]:
        """Run what is done once more, and compare all there is to notice before and after."""
        days = self._days[:REPEATED_DAYS]
        self._say(f"all {len(self._days)} days are published: running {len(days)} of them again, nothing may change")
        places = (self._ledger, self._warehouse)
        folders = (self._home.out, self._home.landing)
        before = fingerprint(*places, *folders)
        with AirflowApi(*self._login) as api, progress(self._console, "runs repeated", len(days)) as show:
            Backfill(api, days, show).repeat()
        after = fingerprint(*places, *folders)
        changed = set(before.changes(after))
        return [
            Check("repeated", what, was[0], "afterwards", now[0], differing)
            for part, what in _PROVEN.items()
            for was, now in [(getattr(before, part), getattr(after, part))]
            for differing in [("they were written again",) if part in changed else ()]
        ]

    def _restate(self) -> tuple[list[Check], Restated]:
        """The first day turns out wrong, or was made right by an earlier demo: have it read again in any case. The
        checks are of what stood there before: once it is replaced nobody can compare it any more."""
        found = self._restatement.current()
        late = rows_of_wheel("flights", [FIRST_DAY])[FIRST_DAY] - found.rows["flights"]
        if late:
            reason = f"{late} flights came late"
            self._say(f"{FIRST_DAY} turns out wrong: {late} flights of {LATE_AIRLINE} come late, in a corrected file")
            land(self._home.landing, [FIRST_DAY])
        else:
            reason = "to show it once more"
            self._say(f"{FIRST_DAY} is right, as epoch {found.epoch.id} has it: it is restated from the same file")
        self._say(f"a run with the conf {json.dumps(self._restatement.conf(reason))}; a reader counts its flights:")
        with self._runtime() as runtime:
            amiss = list(Reconciliation(runtime, [found.epoch], [FIRST_DAY], self._warehouse, self._home.out).outputs())
        restated = self._restatement.run(reason)
        for line in restated.lines():
            self._say(line)
        return [replace(check, what=f"{check.what}, before") for check in amiss], restated

    def _reconcile(self) -> list[Check]:
        epochs = [status.epoch for status in self._statuses() if status.epoch.state in SHOWN]
        with self._runtime() as runtime, progress(self._console, "epochs read back", len(epochs)) as show:
            counted = Reconciliation(runtime, epochs, self._days, self._warehouse, self._home.out)
            return counted.checks(lambda number: show(number, ""))

    @contextmanager
    def _runtime(self) -> Iterator[Runtime]:
        with closing(Ledger(self._ledger, "demo")) as ledger:
            yield runtime_for(DAG, ledger, Staging(self._staging), {"warehouse": self._warehouse})

    # --- the ledger's view --------------------------------------------------------------------------------------------

    def _missing(self) -> list[date]:
        """Days of which no epoch has been published."""
        found = lives(self._ledger)
        done = {span for span, these in found.items() if any(one.epoch.state in SHOWN for one in these)}
        return [day for day in self._days if interval_of(day) not in done]

    def _statuses(self) -> list[EpochStatus]:
        """The days' current epochs, in the order of the days."""
        found = lives(self._ledger)
        return [current(found[span]) for day in self._days if (span := interval_of(day)) in found]

    def _epoch_rows(self) -> list[EpochRow]:
        with closing(Report(self._ledger)) as report:
            return [_row(status, report.history(DAG, status.epoch.id)) for status in self._statuses()]

    def _say(self, line: str) -> None:
        self._console.print(line, highlight=False, soft_wrap=True)


_PROVEN = {
    "ledger": "ledger rows",
    "table": "flights rows",
    "files": "output files",
    "landing": "landed files",
}


def _row(status: EpochStatus, history: Sequence[HistoryEntry]) -> EpochRow:
    epoch = status.epoch
    assert epoch.interval is not None
    begun = {entry.attempt for entry in history if entry.sink is None and entry.role == Role.BEGIN}
    published = next((e.at for e in history if e.sink is None and e.target == EpochState.PUBLISHED), None)
    seconds = (published - history[0].at).total_seconds() if published else None
    return EpochRow(epoch.id, epoch.interval.start.date(), epoch.state.value, status.rows, len(begun), seconds)


@contextmanager
def only_demo(home: Home) -> Iterator[None]:
    """Raises AlreadyAtWork where another demo of this home runs. The lock goes with the process."""
    home.root.mkdir(parents=True, exist_ok=True)
    with (home.root / "demo.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyAtWork(f"another demo is at work in {home.root}: wait for it") from error
        yield


@contextmanager
def running(stack: Stack, console: Console) -> Iterator[None]:
    """The stack, up. It is stopped afterwards unless it ran before, by another hand than that of a killed demo."""
    ours = stack.home.root / "demo.json"  # which start of the stack was a demo's
    found = stack.is_up
    if not found:
        ours.write_text(json.dumps(stack.mark))
        console.print("starting PostgreSQL, Spark Connect and Airflow on loopback", highlight=False)
        stack.up()
    ends = not found or _is_ours(stack)
    if found:
        state = "an earlier demo, cut short, left the stack up" if ends else "the stack is up, and stays up"
        console.print(state, highlight=False)
    os.environ.update(stack.environment)
    try:
        yield
    finally:
        if ends:
            stack.down()
            ours.unlink(missing_ok=True)
            console.print("stopped the stack; its data stays for the next demo", highlight=False)


def _is_ours(stack: Stack) -> bool:
    with suppress(OSError, ValueError):
        return bool(json.loads((stack.home.root / "demo.json").read_text()) == stack.mark)
    return False
