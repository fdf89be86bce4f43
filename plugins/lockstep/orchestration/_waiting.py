"""Waiting for what comes by itself (a file, another run, the epoch before): no failed try, no slot, no trace.

The task is rescheduled: it looks again after a pause, in the same try and the same log, and until then it is
`up_for_reschedule`. That needs no triggerer, and all that Airflow keeps of it is a date.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from airflow.sdk import BaseOperator, Context

from lockstep.epoch import RunKey
from lockstep.errors import Retryable, WaitedInVain
from lockstep.orchestration._airflow import AirflowRescheduleException
from lockstep.runtime import Runtime
from lockstep.states import Role

PATIENCE = timedelta(hours=2)
_log = logging.getLogger(__name__)


def pause_after(error: Retryable, task: BaseOperator, context: Context, patience: timedelta) -> timedelta:
    """How long to wait for what `error` says is missing: half as long as this took so far, within the task's retry
    delays. Raises `WaitedInVain` at the end of `patience`, which counts from the first look of this try."""
    waited = datetime.now(UTC) - _first_look(context)
    if waited >= patience:
        raise WaitedInVain(
            f"waited {_rounded(waited)} in vain: {error}. Clear the run from begin to wait again; "
            f"epoch_dag(…, patience=timedelta(…)) waits longer"
        ) from error
    longest = task.max_retry_delay or task.retry_delay
    pause = min(max(waited / 2, _delta(task.retry_delay)), _delta(longest), patience - waited)
    ends = f"gives up in {_rounded(patience - waited)}"
    _log.info("waiting, %s: %s; looks again in %s, %s", type(error).__name__, error, _rounded(pause), ends)
    return pause


def later(pause: timedelta) -> AirflowRescheduleException:
    """What a task raises to be run again after `pause`."""
    return AirflowRescheduleException(datetime.now(UTC) + pause)  # type: ignore[no-untyped-call]


def hold_meanwhile(runtime: Runtime, run: RunKey, pause: timedelta) -> None:
    """Keep the lease of the run's attempt, if it has opened one: an epoch that waits must not look abandoned."""
    attempt = runtime.ledger.find_run(run)
    if attempt is not None:
        runtime.ledger.renew_lease(attempt, Role.BEGIN, meanwhile=pause)


def _first_look(context: Context) -> datetime:
    return context["ti"].get_first_reschedule_date(context) or datetime.now(UTC)


def _delta(delay: timedelta | float) -> timedelta:
    return delay if isinstance(delay, timedelta) else timedelta(seconds=delay)


def _rounded(span: timedelta) -> timedelta:
    return timedelta(seconds=max(1, round(span.total_seconds())))
