"""A day of the demo that turns out wrong is restated, through Airflow, as a user would, while a reader counts it.

What is promised: each sink swaps the day in one step, so that who reads it sees the old rows or the new ones, never
both and never none. Between the two sinks there is a moment; who reads both as of one epoch (`lockstep.as_of`) finds
the day alike in both, or left out of both during that moment.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

from lockstep.epoch import Interval
from lockstep.ledger.report import EpochStatus, Report
from lockstep.states import DECIDED, FINISHED, EpochState
from stack.airflow_api import AirflowApi
from stack.backfill import DAG
from stack.dag_runs import await_run, unpaused
from stack.day_reader import Sight, Watched
from stack.errors import StackError
from stack.home import CHECKOUT
from stack.reconciliation import Check

ALL_EPOCHS = 10_000
READER_SECONDS = 60.0
Look = TypeVar("Look")


@dataclass(frozen=True)
class Restated:
    """`old`, `new`: flights of the day by the epoch that brought them, as they were sealed. `seconds`: of the run."""

    day: date
    reason: str
    old: EpochStatus
    new: EpochStatus
    seen: Watched
    seconds: float

    def to_json(self) -> dict[str, Any]:
        epochs = {name: {"epoch": one.epoch.id, **one.rows} for name, one in (("old", self.old), ("new", self.new))}
        told = {"day": self.day.isoformat(), "reason": self.reason, "seconds": round(self.seconds, 1)}
        return {**told, **epochs, "seen": asdict(self.seen)}

    def lines(self) -> Iterator[str]:
        """What the reader saw, and what the ledger says now."""
        seen = self.seen
        yield f"  the table      {_told(seen.table, _number)}"
        yield f"  the files      {_told(seen.files, _number)}"
        yield f"  as of an epoch {_told(seen.cut, lambda both: ' and '.join(map(_number, both)))}"
        moment = f"it saw the two apart {seen.apart} times" if seen.apart else "it never saw the two apart"
        yield f"  each sink swaps in one step, the one after the other: {moment}"
        generation = self.new.epoch.generation.number if self.new.epoch.generation else 0
        yield (
            f"lockstep status: epoch {self.old.epoch.id} is {self.old.epoch.state}, epoch {self.new.epoch.id} "
            f"(generation {generation} of the day) is {self.new.epoch.state}; {self.seconds:.1f} s"
        )

    def checks(self) -> Iterator[Check]:
        """Before, during and after."""
        old, new = _sight(self.old), _sight(self.new)
        yield from agreement("before", self.seen.table[0][0], self.seen.files[0][0], old)
        yield swapped("table, watched", self.seen.table, (old, new))
        yield swapped("files, watched", self.seen.files, (old, new))
        yield swapped("as of an epoch", self.seen.cut, ((old, old), (new, new)), between=({}, {}))
        yield from agreement("after", self.seen.table[-1][0], self.seen.files[-1][0], new)
        yield self._generations()

    def _generations(self) -> Check:
        before, after = self.old.epoch, self.new.epoch
        wanted = (before.generation.number if before.generation else 0) + 1
        found = after.generation.number if after.generation else 0
        states = [(before, EpochState.REPLACED), (after, EpochState.CLEANED)]
        wrong = tuple(f"{one} is {one.state}" for one, state in states if one.state is not state)
        return Check("generation", f"epoch {after.id}", found, f"epoch {before.id}, and one", wanted, wrong)


def agreement(when: str, table: Sight, files: Sight, wanted: Sight) -> Iterator[Check]:
    """Both sinks show `wanted`, and so one another."""
    differing = tuple(
        f"{name} shows {dict(seen)}, not {dict(wanted)}"
        for name, seen in (("the table", table), ("the folder", files))
        if seen != wanted
    )
    yield Check(when, "SQL count(*)", sum(table.values()), "summed in Parquet", sum(files.values()), differing)


def swapped(
    what: str, seen: Sequence[tuple[Look, int]], old_and_new: tuple[Look, Look], between: Look | None = None
) -> Check:
    """Every look saw the old or the new, in this order, the first the old and the last the new; `between` them it may
    see that."""
    old, new = old_and_new
    order = [old, new] if between is None else [old, between, new]
    fine = sum(times for look, times in seen if look in order)
    wrong = [f"{times} times {look}" for look, times in seen if look not in order]
    places = [order.index(look) for look, _ in seen if look in order]
    if places != sorted(places) or (seen[0][0], seen[-1][0]) != (old, new):
        wrong.append(f"not from the old to the new: {', '.join(str(look) for look, _ in seen)}")
    return Check(what, "looks", sum(times for _, times in seen), "at old or new", fine, tuple(wrong))


class Restatement:
    """Of one day, on a running stack. `ledger`: a DSN; `login`: of Airflow, as `AirflowApi` takes it."""

    def __init__(self, ledger: str, login: tuple[str, str, str], day: date) -> None:
        self._ledger, self._login, self._day = ledger, login, day

    def finish(self) -> bool:
        """Whether an earlier restatement of the day was cut short. It is brought to its end: there's one at a time."""
        found = lives(self._ledger).get(interval_of(self._day))
        if not found or found[0].epoch.generation is None or found[0].epoch.state in FINISHED:
            return False
        self._run(found[0].epoch.generation.reason)
        return True

    def current(self) -> EpochStatus:
        """The day's epoch that is shown."""
        return current(lives(self._ledger)[interval_of(self._day)])

    def run(self, reason: str) -> Restated:
        """Have the day read again and its rows replaced, while a reader counts them. Raises StackError."""
        before = self.current().epoch.id
        with _reader(self._day) as ended:
            began = time.monotonic()
            self._run(reason)
            took = time.monotonic() - began
            seen = ended()
        found = {one.epoch.id: one for one in lives(self._ledger)[interval_of(self._day)]}
        return Restated(self._day, reason, found[before], self.current(), seen, took)

    def conf(self, reason: str) -> dict[str, str]:
        """Of the run, as docs/airflow.md has it."""
        span = interval_of(self._day)
        bounds = {"interval_start": span.start.isoformat(), "interval_end": span.end.isoformat()}
        return {**bounds, "lockstep_restate": reason}

    def _run(self, reason: str) -> None:
        with AirflowApi(*self._login) as api, unpaused(api, DAG):
            await_run(api, DAG, api.trigger(DAG, self.conf(reason)))


def lives(ledger: str) -> dict[Interval, list[EpochStatus]]:
    """All epochs of each interval, the youngest first."""
    with closing(Report(ledger)) as report:
        found = report.pipeline(DAG, limit=ALL_EPOCHS)
    by_interval: dict[Interval, list[EpochStatus]] = {}
    for status in found.epochs if found else ():
        if status.epoch.interval is not None:
            by_interval.setdefault(status.epoch.interval, []).append(status)
    return by_interval


def current(found: Sequence[EpochStatus]) -> EpochStatus:
    """Of the lives of one interval, the youngest first: the last decided one, or the first that is to be."""
    return next((one for one in found if one.epoch.state in DECIDED), found[0])


def interval_of(day: date) -> Interval:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return Interval(start, start + timedelta(days=1))


@contextmanager
def _reader(day: date) -> Iterator[Callable[[], Watched]]:
    """A process that reads the day from now on. Gives the function that ends it, and tells what it saw."""
    command = [sys.executable, "-m", "stack.day_reader", day.isoformat()]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=CHECKOUT, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as reader:

        def end() -> Watched:
            told, error = reader.communicate(timeout=READER_SECONDS)
            if reader.returncode:
                raise StackError(f"the reader failed: {error.strip()}")
            return Watched.from_json(told)

        try:
            if reader.stdout is None or reader.stdout.readline().strip() != "reading":
                raise StackError(f"the reader failed: {reader.communicate()[1].strip()}")
            yield end
        finally:
            reader.kill()


def _sight(status: EpochStatus) -> Sight:
    return {status.epoch.id: status.rows["flights"]}


def _number(sight: Mapping[int, int]) -> str:
    return ", ".join(f"{flights:,} (epoch {epoch})" for epoch, flights in sorted(sight.items())) or "none"


def _told(seen: Sequence[tuple[Look, int]], write: Callable[[Look], str]) -> str:
    return ", then ".join(f"{times:,} times {write(look)}" for look, times in seen)
