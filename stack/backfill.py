"""A real backfill of the `flights` DAG, through Airflow's scheduler: started or taken up again, watched, explained.

Whether a day is done, only the ledger says. Airflow's run states tell how far the backfill is, and which task failed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date

from stack.airflow_api import AirflowApi, AirflowRefused
from stack.errors import StackError

DAG = "flights"
RUNS_AT_ONCE = 3
POLL_SECONDS = 2.0  #: each look costs the api-server a tenth of a second
PARSE_SECONDS = 120.0
STALL_SECONDS = 900.0  #: longer than the longest pause between two tries of a task
ROUNDS = 4
LOG_LINES = 20
CONFLICT = 409

Show = Callable[[int, str], None]  #: takes the number of days done and what goes on


class BackfillFailed(StackError):
    """A run failed, or nothing moves any more."""


@dataclass(frozen=True)
class Glance:
    """Airflow's runs of the days, counted, and what their tasks do."""

    done: int
    open: int
    doing: str


class Backfill:
    """The runs of `days`, which follow one another without a gap."""

    def __init__(self, api: AirflowApi, days: Sequence[date], show: Show) -> None:
        self._api = api
        self._days = days
        self._show = show

    def run(self, missing: Callable[[], list[date]]) -> None:
        """Until no day is missing in the ledger. Raises BackfillFailed with the failed task and the end of its log.

        A backfill that an earlier, killed demo left is awaited first; what failed in it is tried again.
        """
        with self._unpaused():
            if self._glance().open:
                self._watch()
            for number in range(ROUNDS):
                if not (left := missing()):
                    return
                # after a first round Airflow may call a day done that the ledger doesn't know
                self._do(left[0], left[-1], "failed" if number == 0 else "completed")
            if left := missing():
                raise BackfillFailed(f"every run of {DAG} succeeded, but the ledger lacks {_listed(left)}")

    def repeat(self) -> None:
        """Every day's run again, though each is done."""
        with self._unpaused():
            if self._glance().open:
                self._watch()
            self._do(self._days[0], self._days[-1], "completed")

    # --- steps --------------------------------------------------------------------------------------------------------

    @contextmanager
    def _unpaused(self) -> Iterator[None]:
        """Airflow runs a paused DAG's backfill no further. The DAG is as it was before when nobody watches any more."""
        self._await_dag()
        before = self._api.is_paused(DAG)
        self._api.pause(DAG, False)
        try:
            yield
        finally:
            self._api.pause(DAG, before)

    def _await_dag(self) -> None:
        deadline = time.monotonic() + PARSE_SECONDS
        while not self._api.knows(DAG):
            if time.monotonic() > deadline:
                errors = "; ".join(self._api.import_errors()) or "no import error is known"
                raise BackfillFailed(f"Airflow has not loaded the DAG {DAG} after {PARSE_SECONDS:.0f} s: {errors}")
            time.sleep(POLL_SECONDS)

    def _do(self, first: date, last: date, reprocess: str) -> None:
        """One backfill. Whoever stops watching stops it: queued runs fail, and the next demo tries them again."""
        backfill = self._start(first, last, reprocess)
        try:
            self._watch(first, last)
        except BaseException:
            with suppress(StackError):
                self._api.cancel_backfill(backfill)
            raise

    def _start(self, first: date, last: date, reprocess: str) -> int:
        deadline = time.monotonic() + PARSE_SECONDS
        while True:
            try:
                return self._api.start_backfill(DAG, first, last, reprocess=reprocess, runs_at_once=RUNS_AT_ONCE)
            except AirflowRefused as error:
                # the one before is over, but the scheduler writes that down only twice a minute
                if error.status != CONFLICT:
                    raise
                if time.monotonic() > deadline:
                    raise BackfillFailed(
                        f"another backfill of {DAG} is at work: wait for it, cancel it in the UI, or ask for its days"
                    ) from error
                time.sleep(POLL_SECONDS)

    def _watch(self, first: date | None = None, last: date | None = None) -> None:
        """Until no run is open. Raises BackfillFailed on a failed run from `first` to `last`."""
        before, since = None, time.monotonic()
        while True:
            now = self._glance()
            self._show(now.done, now.doing)
            if first and last and (failure := self._failure(first, last)):
                raise BackfillFailed(failure)
            if not now.open:
                return
            if now != before:
                before, since = now, time.monotonic()
            if time.monotonic() - since > STALL_SECONDS:
                idle = f"nothing has moved for {STALL_SECONDS / 60:.0f} min"
                raise BackfillFailed(f"{idle}: {now.doing or 'no task runs'}")
            time.sleep(POLL_SECONDS)

    # --- looking ------------------------------------------------------------------------------------------------------

    def _glance(self) -> Glance:
        tasks = self._api.busy_tasks(DAG)
        doing = Counter(f"{one.task_id} (waits)" if one.waits else one.task_id for one in tasks)
        told = ", ".join(f"{count} {name}" if count > 1 else name for name, count in sorted(doing.items()))
        return Glance(self._count("success"), self._count("queued", "running"), told)

    def _count(self, *states: str) -> int:
        return self._api.count_runs(DAG, states, self._days[0], self._days[-1])

    def _failure(self, first: date, last: date) -> str | None:
        """Which task of the first failed run of these days failed, how often, and the end of its log."""
        run = self._api.first_run(DAG, "failed", first, last)
        if run is None:
            return None
        told = f"the run of {run['data_interval_start'][:10]} failed ({run['dag_run_id']})"
        return "\n".join([told, *failed_tasks(self._api, DAG, run["dag_run_id"])])


def failed_tasks(api: AirflowApi, dag_id: str, run_id: str) -> list[str]:
    """Which tasks of a run failed, how often, and the end of each one's log."""
    told = []
    for task in api.tries(dag_id, run_id):
        if task.state == "failed":
            told.append(f"task {task.task_id} failed after {task.tries} tries; the end of its log:")
            told += [f"  {line}" for line in api.log(dag_id, run_id, task)[-LOG_LINES:]]
    return told


def _listed(days: Sequence[date]) -> str:
    shown = ", ".join(day.isoformat() for day in days[:5])
    return shown if len(days) <= 5 else f"{shown} and {len(days) - 5} more"
