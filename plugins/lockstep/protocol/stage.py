"""stage: a Spark micro-job writes the WAL; this task, not the driver, seals it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Attempt, Epoch, RunKey
from lockstep.errors import AlreadyDecided, JobAtWork, LockstepError
from lockstep.observability import suggestions
from lockstep.observability.log_context import bind_attempt, bind_token, log_context
from lockstep.protocol.alarms import unless_superseded
from lockstep.protocol.early_load import EarlyLoads
from lockstep.protocol.lease import hold_lease
from lockstep.protocol.left_job import Jobs, at_work, cancel_older_jobs, find_left_job, leave_job, take_up
from lockstep.protocol.restage import restage_if_needed
from lockstep.protocol.restoring import write_restored
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage_job import Beside, Launch, WrittenWal, write_wal
from lockstep.protocol.state_versions import BaseState, find_base_state
from lockstep.protocol.wording import describe_outputs
from lockstep.states import DECIDED, Role

_log = logging.getLogger(__name__)


@log_context
def stage(
    runtime: Runtime,
    run: RunKey,
    launch: Launch,
    reference: str = "",
    early: EarlyLoads | None = None,
    leaving: Leaving | None = None,
) -> Epoch:
    """Stage and seal this run's epoch, unless it is staged already; a decided one whose WAL is damaged and wanted is
    staged again, see `restage`. One that shows an earlier life's rows again is staged from that one's WAL, with no job.

    `reference`: where another process imports the pipeline, `module:name`. `early`: where this process prepares, too:
    sinks may begin to load what Spark has finished. `leaving`: where the job may be left to itself: then it raises
    `JobAtWork`, and seals when the same try asks again after the job has ended. Trusts the manifest that it makes and
    never the job's status. With state it waits for the epoch before to be decided. Raises `StageFailed`,
    `OutOfOrder`, `SourceChanged`, `BadRecords`, `PlanMismatch`, `Fenced`, `WalCorrupt` for the state before.
    """
    attempt = bind_attempt(runtime.attempt_of(run))
    if (staged := _find_staged(runtime, attempt)) is not None:
        return restage_if_needed(runtime, staged, launch, reference)
    try:
        return unless_superseded(
            partial(_stage_once, runtime, attempt, launch, reference, early, leaving),
            partial(_meanwhile, runtime, attempt),
        )
    except AlreadyDecided:
        return runtime.epoch_of(attempt)


def _find_staged(runtime: Runtime, attempt: Attempt) -> Epoch | None:
    epoch = runtime.epoch_of(attempt)
    if epoch.wal is None:
        return None
    if epoch.state not in DECIDED:
        runtime.ledger.require_current(attempt)
    _log.info("%s is %s already: its transform doesn't run again", epoch, epoch.state)
    return epoch


def _meanwhile(runtime: Runtime, attempt: Attempt) -> Epoch | None:
    """What another execution has sealed. Raises `Fenced`."""
    runtime.ledger.require_running(attempt)
    return _find_staged(runtime, attempt)


@dataclass(frozen=True)
class Leaving:
    """Jobs that may be left to themselves. `new`: whether one that is launched now is; one of this try that was is
    taken up again in any case."""

    jobs: Jobs
    new: bool = True


def _stage_once(
    runtime: Runtime,
    attempt: Attempt,
    launch: Launch,
    reference: str,
    early: EarlyLoads | None,
    leaving: Leaving | None,
) -> Epoch:
    epoch = runtime.epoch_of(attempt)
    before = find_base_state(runtime, epoch)
    if leaving and (sealed := _take_up(runtime, attempt, epoch, leaving.jobs, reference, before)) is not None:
        return sealed
    reach(CrashPoint.STAGE_BEFORE_TOKEN)
    token = bind_token(runtime.ledger.take_token(attempt, Role.STAGE))
    reach(CrashPoint.STAGE_AFTER_TOKEN)
    with hold_lease(runtime.ledger, attempt, Role.STAGE), _naming_remedy(epoch):
        if leaving:
            cancel_older_jobs(runtime, epoch, token, leaving.jobs)
            if leaving.new and epoch.restores is None:
                raise at_work(runtime, leave_job(runtime, epoch, token, leaving.jobs, reference, before))
        return _stage(runtime, attempt, epoch, token, launch, reference, before, early)


def _take_up(
    runtime: Runtime, attempt: Attempt, epoch: Epoch, jobs: Jobs, reference: str, before: BaseState | None
) -> Epoch | None:
    """The epoch, sealed by what the job that this try has left wrote; None if it left none, or it is of no use."""
    began = time.monotonic()
    left = find_left_job(runtime, attempt)
    if left is None:
        return None
    bind_token(left.token)
    with hold_lease(runtime.ledger, attempt, Role.STAGE), _naming_remedy(epoch):
        try:
            written = take_up(runtime, epoch, left, jobs, reference, before)
        except JobAtWork:
            if (sealed := _meanwhile(runtime, attempt)) is not None:
                return sealed
            raise
        return _seal(runtime, attempt, epoch, written, began) if written else None


def _stage(
    runtime: Runtime,
    attempt: Attempt,
    epoch: Epoch,
    token: int,
    launch: Launch,
    reference: str,
    before: BaseState | None,
    early: EarlyLoads | None,
) -> Epoch:
    began = time.monotonic()
    beside: Beside = partial(early.beside, runtime, attempt, epoch) if early else nullcontext
    if epoch.restores is not None:
        written = write_restored(runtime, epoch, token)
    else:
        written = write_wal(runtime, epoch, token, launch, reference, before, beside=beside)
    return _seal(runtime, attempt, epoch, written, began)


def _seal(runtime: Runtime, attempt: Attempt, epoch: Epoch, written: WrittenWal, began: float) -> Epoch:
    manifest = written.manifest
    reach(CrashPoint.STAGE_BEFORE_SEAL)
    sealed = runtime.ledger.seal_epoch(
        attempt,
        written.folder,
        manifest.hash,
        manifest.summary(),
        written.code_version,
        manifest.state.based_on if manifest.state else None,
    )
    reach(CrashPoint.STAGE_AFTER_SEAL)
    _log.info("%s is staged after %.1f s: %s", epoch, time.monotonic() - began, describe_outputs(manifest))
    if sealed.wal != written.folder:
        _log.info("%s: another execution sealed first; %s is rubbish", epoch, written.folder)
    return sealed


@contextmanager
def _naming_remedy(epoch: Epoch) -> Iterator[None]:
    """Sources and Spark's driver know that `replan` helps, and not of which epoch."""
    try:
        yield
    except LockstepError as error:
        suggestions.complete_command(error, suggestions.REPLAN, suggestions.replan(epoch.pipeline, epoch.id))
        raise
