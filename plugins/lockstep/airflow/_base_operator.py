"""Base classes of Lockstep's operators: errors as one sentence, and waiting without a failed try or a worker slot.

A task that waits for a file, another run or the epoch before is rescheduled: it looks again after a pause, in the same
try and the same log, and is `up_for_reschedule` until then. This needs no triggerer. A `deferrable` task leaves polling
for files, or for the end of a job, to the triggerer. Correctness doesn't depend on what the triggerer sees.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context

from lockstep.airflow._airflow import (
    AirflowRescheduleException,
    AirflowTaskTimeout,
    TaskDeferred,
    as_raised,
    defers_by_default,
)
from lockstep.airflow._telemetry import Lineage, to_operator_lineage
from lockstep.epoch import RunKey
from lockstep.errors import JobAtWork, LockstepError, Retryable, SourceNotReady, WaitedInVain
from lockstep.protocol.runtime import Runtime
from lockstep.states import Role

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

_log = logging.getLogger(__name__)
MAX_WAIT = timedelta(hours=2)
_GRACE = timedelta(minutes=1)  #: after which the scheduler wakes a task that the triggerer didn't
_MAX_PLACES = 20  #: that a triggerer polls for one task


class LockstepOperator(BaseOperator):
    """Raises Lockstep's errors as one sentence. Airflow would log every frame and cause; they are logged at DEBUG."""

    def execute(self, context: Context) -> Any:
        return self.run_task(context)

    def run_task(self, context: Context) -> Any:
        """`execute` without the check that only Airflow calls it, for a resumed task."""
        try:
            return self.perform(context)
        except AirflowTaskTimeout:
            limit = self.execution_timeout
            raise AirflowTaskTimeout(f"ended at its execution_timeout, {limit}: its next try goes on") from None
        except LockstepError as error:
            _log.debug("the task failed", exc_info=True)
            failure = error
        raise as_raised(failure).with_traceback(None) from None  # outside of `except`, so that nothing is chained to it

    @abstractmethod
    def perform(self, context: Context) -> Any:
        """Do the task's work."""

    # --- asked by the OpenLineage provider, if there is one ---

    lineage: Lineage | None = None  #: what the task has noted of its epochs

    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any]:
        """Return empty lineage, as the epoch isn't known yet."""
        return to_operator_lineage(None)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        return to_operator_lineage(self.lineage)

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        """Return lineage without outputs."""
        return to_operator_lineage(replace(self.lineage, outputs=()) if self.lineage else None)


@dataclass(frozen=True)
class Wait:
    """A pause before the next look. `places`: where a triggerer polls meanwhile for files, or for the end of a job; if
    empty, nothing is polled before the pause is over."""

    since: datetime
    pause: timedelta
    every: timedelta
    places: tuple[str, ...] = ()
    of_job: bool = False


class WaitingOperator(LockstepOperator):
    """A task that can wait. `max_wait`: the longest wait in all. `deferrable`: polling may be left to the triggerer;
    default: Airflow's `[operators] default_deferrable`."""

    def __init__(self, *, max_wait: timedelta = MAX_WAIT, deferrable: bool | None = None, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.max_wait = max_wait
        self.deferrable = defers_by_default() if deferrable is None else deferrable
        self._since: datetime | None = None
        self._ignored: frozenset[str] = frozenset()

    def wait_for(self, missing: Sequence[Retryable], error: Retryable, context: Context) -> Wait:
        """The pause for all of `missing`, with `error` for the log. Raises `WaitedInVain`."""
        places = [place for place in _places_of(missing) if place not in self._ignored] if self.deferrable else []
        return wait_after(error, self, context, self.max_wait, places=places[:_MAX_PLACES], since=self._since)

    def deferral(self, wait: Wait) -> BaseException:
        """The exception to raise so that Airflow runs the task again later."""
        until = datetime.now(UTC) + wait.pause
        if not wait.places:
            return AirflowRescheduleException(until)  # type: ignore[no-untyped-call]
        from lockstep.airflow.triggers import FilesTrigger, JobTrigger

        every = wait.every.total_seconds()
        trigger = JobTrigger if wait.of_job else FilesTrigger
        return TaskDeferred(
            trigger=trigger(wait.places, wait.since.isoformat(), until.isoformat(), every),
            method_name=self.look_again.__name__,
            kwargs={"since": wait.since.isoformat(), "ignored": sorted(self._ignored)},
            timeout=wait.pause + _GRACE,
        )

    def look_again(self, context: Context, since: str, ignored: Sequence[str], event: Sequence[str] = ()) -> Any:
        """Resume after the triggerer. Places in `event`, where it found files, are ignored for the rest of the wait: if
        the task still misses them, polling there would wake it at once, again and again."""
        self._since, self._ignored = datetime.fromisoformat(since), frozenset(ignored) | frozenset(event or ())
        return self.run_task(context)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Continue without a triggerer if it failed or doesn't have Lockstep installed, without using up a retry."""
        if next_method == self.look_again.__name__:
            return super().resume_execution(next_method, next_kwargs, context)
        _log.warning("the triggerer failed (%s): waiting without it", (next_kwargs or {}).get("error"))
        self.deferrable = False
        return self.run_task(context)


def wait_after(
    error: Retryable,
    task: BaseOperator,
    context: Context,
    max_wait: timedelta,
    *,
    places: Sequence[str] = (),
    since: datetime | None = None,
) -> Wait:
    """The pause after `error`: half of the time waited so far, within the task's retry delays; with `places`, which
    a triggerer polls, at least the longest delay.

    Raises `WaitedInVain` after `max_wait` since the first look of this try, or `since`. Waiting for a running job
    has no limit: it is polled at least once per longest delay.
    """
    began = min(filter(None, [since, context["ti"].get_first_reschedule_date(context) or datetime.now(UTC)]))
    waited = datetime.now(UTC) - began
    of_job = isinstance(error, JobAtWork)
    if waited >= max_wait and not of_job:
        raise WaitedInVain(
            f"waited {_rounded(waited)} in vain: {error}. Clear the run from begin to wait again; "
            f"epoch_dag(…, max_wait=timedelta(…)) waits longer"
        ) from error
    min_pause, max_pause = _delta(task.retry_delay), _delta(task.max_retry_delay or task.retry_delay)
    looks = "the triggerer polls, this task looks again" if places else "looks again"
    if of_job:
        pause = max_pause if places else min(max(waited / 2, min_pause), max_pause)
        ends = f"has waited for {_rounded(waited)}"
    else:
        pause = max(waited / 2, max_pause) if places else min(max(waited / 2, min_pause), max_pause)
        pause = min(pause, max_wait - waited)
        ends = f"gives up in {_rounded(max_wait - waited)}"
    _log.info("waiting, %s: %s; %s in %s, %s", type(error).__name__, error, looks, _rounded(pause), ends)
    return Wait(began, pause, min_pause, tuple(places), of_job)


def keep_lease(runtime: Runtime, run: RunKey, pause: timedelta) -> None:
    """Renew the lease of the run's attempt, if it has one: an epoch that waits must not look abandoned."""
    attempt = runtime.ledger.find_run(run)
    if attempt is not None:
        runtime.ledger.renew_lease(attempt, Role.BEGIN, meanwhile=pause)


def _places_of(missing: Sequence[Retryable]) -> list[str]:
    """The places of missing files or jobs; empty if one of `missing` is something else, which can't be polled."""
    seen = [error for error in missing if isinstance(error, (SourceNotReady, JobAtWork)) and error.places]
    return list(dict.fromkeys(place for error in seen for place in error.places)) if len(seen) == len(missing) else []


def _delta(delay: timedelta | float) -> timedelta:
    return delay if isinstance(delay, timedelta) else timedelta(seconds=delay)


def _rounded(span: timedelta) -> timedelta:
    return timedelta(seconds=max(1, round(span.total_seconds())))
