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


class LockstepOperator(BaseOperator):
    """Airflow logs what is raised with every frame and every cause: of Lockstep's errors only the sentence is left."""

    def execute(self, context: Context) -> Any:
        return self.run_task(context)

    def run_task(self, context: Context) -> Any:
        """`execute` for a task that is resumed, which Airflow lets nobody call but itself."""
        try:
            return self.perform(context)
        except AirflowTaskTimeout:
            limit = self.execution_timeout
            raise AirflowTaskTimeout(f"ended at its execution_timeout, {limit}: its next try goes on") from None
        except LockstepError as error:
            _log.debug("how it came to this", exc_info=True)
            failure = error
        raise as_raised(failure).with_traceback(None) from None  # out here nothing is chained to it

    @abstractmethod
    def perform(self, context: Context) -> Any:
        """What the task does."""

    # --- asked by the OpenLineage provider, if there is one ---

    lineage: Lineage | None = None  #: what the task has noted of its epochs

    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any]:
        """Which epoch it will be isn't known yet."""
        return to_operator_lineage(None)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        return to_operator_lineage(self.lineage)

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        """Nothing is shown by what has failed, as far as anybody knows."""
        return to_operator_lineage(replace(self.lineage, outputs=()) if self.lineage else None)


PATIENCE = timedelta(hours=2)
_GRACE = timedelta(minutes=1)  #: how much later than a triggerer the scheduler wakes a task, if no triggerer has
_MAX_PLACES = 20  #: for which a triggerer looks at once
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Wait:
    """`places`: where a triggerer looks for files meanwhile, or for the last word of a job; without any nobody looks
    before the pause is over."""

    since: datetime
    pause: timedelta
    every: timedelta
    places: tuple[str, ...] = ()
    of_job: bool = False


class WaitingOperator(LockstepOperator):
    """`max_wait`: how long it waits at most. `deferrable`: whether it may leave looking for files to the triggerer;
    unless said, what `[operators] default_deferrable` says."""

    def __init__(self, *, max_wait: timedelta = PATIENCE, deferrable: bool | None = None, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.max_wait = max_wait
        self.deferrable = defers_by_default() if deferrable is None else deferrable
        self._since: datetime | None = None
        self._ignored: frozenset[str] = frozenset()

    def wait_for(self, missing: Sequence[Retryable], error: Retryable, context: Context) -> Wait:
        """How to wait for all of `missing`, of which `told` speaks. Raises `WaitedInVain`."""
        places = [place for place in _places_of(missing) if place not in self._ignored] if self.deferrable else []
        return wait_after(error, self, context, self.max_wait, places=places[:_MAX_PLACES], since=self._since)

    def away(self, wait: Wait) -> BaseException:
        """What a task raises to be run again when there is reason to look again."""
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
        """Where the triggerer has seen files, at the places `event`, a task that misses them all the same doesn't have
        it look there again: it would be woken at once, and again, and again."""
        self._since, self._ignored = datetime.fromisoformat(since), frozenset(ignored) | frozenset(event or ())
        return self.run_task(context)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """A triggerer that lacks Lockstep, or is away, costs no try: the task looks, and waits on without it."""
        if next_method == self.look_again.__name__:
            return super().resume_execution(next_method, next_kwargs, context)
        _log.warning("no triggerer has looked (%s): waiting without", (next_kwargs or {}).get("error"))
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
    """How long to wait for what `error` says is missing: half as long as this took so far, within the task's retry
    delays; with `places`, for which somebody else looks, not shorter than the longest of these. Raises `WaitedInVain`
    at the end of `max_wait`, which counts from the first look of this try, or `since`. A job that works is no such
    wait: it takes as long as it takes, and is looked after within the longest of the delays."""
    began = min(filter(None, [since, _first_look(context)]))
    waited = datetime.now(UTC) - began
    of_job = isinstance(error, JobAtWork)
    if waited >= max_wait and not of_job:
        raise WaitedInVain(
            f"waited {_rounded(waited)} in vain: {error}. Clear the run from begin to wait again; "
            f"epoch_dag(…, max_wait=timedelta(…)) waits longer"
        ) from error
    min_pause, max_pause = _delta(task.retry_delay), _delta(task.max_retry_delay or task.retry_delay)
    looks = "the triggerer looks for it, and this task again" if places else "looks again"
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
    """Keep the lease of the run's attempt, if it has opened one: an epoch that waits must not look abandoned."""
    attempt = runtime.ledger.find_run(run)
    if attempt is not None:
        runtime.ledger.renew_lease(attempt, Role.BEGIN, meanwhile=pause)


def _places_of(missing: Sequence[Retryable]) -> list[str]:
    """Where files are missing; nothing if one of `missing` is another matter, for which nobody can look."""
    seen = [error for error in missing if isinstance(error, (SourceNotReady, JobAtWork)) and error.places]
    return list(dict.fromkeys(place for error in seen for place in error.places)) if len(seen) == len(missing) else []


def _first_look(context: Context) -> datetime:
    return context["ti"].get_first_reschedule_date(context) or datetime.now(UTC)


def _delta(delay: timedelta | float) -> timedelta:
    return delay if isinstance(delay, timedelta) else timedelta(seconds=delay)


def _rounded(span: timedelta) -> timedelta:
    return timedelta(seconds=max(1, round(span.total_seconds())))
