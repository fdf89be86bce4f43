"""stage: a Spark micro-job writes the WAL; this task, not the driver, seals it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Attempt, Epoch, RunKey
from lockstep.errors import AlreadyDecided, JobAtWork, LockstepError
from lockstep.observability import suggestions
from lockstep.observability.log_context import bind_attempt, bind_token, log_context
from lockstep.protocol.alarms import unless_superseded
from lockstep.protocol.hooks import StagePart
from lockstep.protocol.lease import hold_lease
from lockstep.protocol.left_job import Jobs, at_work, cancel_older_jobs, find_left_job, leave_job, take_up
from lockstep.protocol.restage import restage_if_needed
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage_job import Launch, WrittenWal, stage_parts, write_wal
from lockstep.protocol.wording import describe_outputs
from lockstep.states import DECIDED, Role

_log = logging.getLogger(__name__)


@log_context
def stage(runtime: Runtime, run: RunKey, launch: Launch, reference: str = "", leaving: Leaving | None = None) -> Epoch:
    """Stage and seal this run's epoch, unless it is staged already. A decided one whose WAL is damaged and still needed
    is staged again, see `restage`.

    `reference`: where another process imports the pipeline, `module:name`. `leaving`: the job may be left running: then
    `JobAtWork` is raised, and the same try seals when it asks again after the job has ended. Trusts the manifest that
    it makes and never the job's status. Raises `StageFailed`, `OutOfOrder` while state of the epoch before is
    undecided, `SourceChanged`, `BadRecords`, `PlanMismatch`, `Fenced`, `WalCorrupt` for the state before.
    """
    attempt = bind_attempt(runtime.attempt_of(run))
    if (staged := _find_staged(runtime, attempt)) is not None:
        return restage_if_needed(runtime, staged, launch, reference)
    try:
        return unless_superseded(
            partial(_stage, runtime, attempt, launch, reference, leaving), partial(_find_sealed, runtime, attempt)
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


def _find_sealed(runtime: Runtime, attempt: Attempt) -> Epoch | None:
    """Return the epoch if another execution has sealed it. Raises `Fenced`."""
    runtime.ledger.require_running(attempt)
    return _find_staged(runtime, attempt)


@dataclass(frozen=True)
class Leaving:
    """Jobs that may be left running. `new`: a job that is launched now is left; one that this try has left before is
    taken up in any case."""

    jobs: Jobs
    new: bool = True


def _stage(runtime: Runtime, attempt: Attempt, launch: Launch, reference: str, leaving: Leaving | None) -> Epoch:
    epoch = runtime.epoch_of(attempt)
    parts = stage_parts(runtime, attempt, epoch)
    if leaving and (sealed := _take_up(runtime, attempt, epoch, leaving.jobs, reference, parts)) is not None:
        return sealed
    reach(CrashPoint.STAGE_BEFORE_TOKEN)
    token = bind_token(runtime.ledger.take_token(attempt, Role.STAGE))
    reach(CrashPoint.STAGE_AFTER_TOKEN)
    with hold_lease(runtime.ledger, attempt, Role.STAGE), _naming_remedy(epoch):
        if leaving:
            cancel_older_jobs(runtime, epoch, token, leaving.jobs)
            if leaving.new and not any(part.replaces_job for part in parts):
                raise at_work(runtime, leave_job(runtime, epoch, token, leaving.jobs, reference, parts))
        began = time.monotonic()
        written = write_wal(runtime, epoch, token, launch, reference, parts)
        return _seal(runtime, attempt, epoch, written, began)


def _take_up(
    runtime: Runtime, attempt: Attempt, epoch: Epoch, jobs: Jobs, reference: str, parts: Sequence[StagePart]
) -> Epoch | None:
    """Seal what the job wrote that this try has left. None if it left none, or the job was asked for something else."""
    began = time.monotonic()
    left_job = find_left_job(runtime, attempt)
    if left_job is None:
        return None
    bind_token(left_job.token)
    with hold_lease(runtime.ledger, attempt, Role.STAGE), _naming_remedy(epoch):
        try:
            written = take_up(runtime, epoch, left_job, jobs, reference, parts)
        except JobAtWork:
            if (sealed := _find_sealed(runtime, attempt)) is not None:
                return sealed
            raise
        return _seal(runtime, attempt, epoch, written, began) if written else None


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
    """Complete the command in errors of sources and of Spark's driver, which know that `replan` helps."""
    try:
        yield
    except LockstepError as error:
        suggestions.complete_command(error, suggestions.REPLAN, suggestions.replan(epoch.pipeline, epoch.id))
        raise
