"""A real backfill of the `flights` DAG, through Airflow's scheduler: started or taken up again, watched, explained.

Whether a day is done, only the ledger says. Airflow's run states tell how far the backfill is, and which task failed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

from stack.airflow_api import AirflowApi, AirflowRefused
from stack.dag_runs import PARSE_SECONDS, POLL_SECONDS, RunFailed, failed_tasks, unpaused
from stack.errors import StackError

DAG = "flights"
RUNS_AT_ONCE = 3
STALL_SECONDS = 900.0  #: longer than the longest pause between two tries of a task
ROUNDS = 4
CONFLICT = 409

Show = Callable[[int, str], None]  #: takes the number of days done and what goes on


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
        """Until no day is missing in the ledger. Raises RunFailed with the failed task and the end of its log.

        A backfill that an earlier, killed demo left is awaited first; what failed in it is tried again.
        """
        with unpaused(self._api, DAG):
            if self._glance().open:
                self._watch()
            for number in range(ROUNDS):
                if not (left := missing()):
                    return
                # after a first round Airflow may call a day done that the ledger doesn't know
                self._do(left[0], left[-1], "failed" if number == 0 else "completed")
            if left := missing():
                raise RunFailed(f"every run of {DAG} succeeded, but the ledger lacks {_listed(left)}")

    def repeat(self) -> None:
        """Every day's run again, though each is done."""
        with unpaused(self._api, DAG):
            if self._glance().open:
                self._watch()
            self._do(self._days[0], self._days[-1], "completed")

    # --- steps --------------------------------------------------------------------------------------------------------

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
                    raise RunFailed(
                        f"another backfill of {DAG} is at work: wait for it, cancel it in the UI, or ask for its days"
                    ) from error
                time.sleep(POLL_SECONDS)

    def _watch(self, first: date | None = None, last: date | None = None) -> None:
        """Until no run is open. Raises RunFailed on a failed run from `first` to `last`."""
        before, since = None, time.monotonic()
        while True:
            now = self._glance()
            self._show(now.done, now.doing)
            if first and last and (failure := self._failure(first, last)):
                raise RunFailed(failure)
            if not now.open:
                return
            if now != before:
                before, since = now, time.monotonic()
            if time.monotonic() - since > STALL_SECONDS:
                idle = f"nothing has moved for {STALL_SECONDS / 60:.0f} min"
                raise RunFailed(f"{idle}: {now.doing or 'no task runs'}")
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


def _listed(days: Sequence[date]) -> str:
    shown = ", ".join(day.isoformat() for day in days[:5])
    return shown if len(days) <= 5 else f"{shown} and {len(days) - 5} more"
