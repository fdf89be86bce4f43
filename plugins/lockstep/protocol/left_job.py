"""A job that is left running: launched, noted beside its request, and sealed by a later process of the same try.

That process asks the ledger which execution this try has begun, and looks into the folder of that token; it takes
nothing from Airflow. A job whose note was never written is ignored: its folder is never sealed. Nothing depends on a
job's state: its output is sealed or not, and the folder's one manifest is created exclusively.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Attempt, Epoch, Json
from lockstep.errors import InvalidPipeline, JobAtWork, LockstepError, StageFailed, StagingRefused
from lockstep.launchers import JobState
from lockstep.protocol.hooks import StagePart
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage_job import WrittenWal, ask_for, make_request, running, seal_written
from lockstep.states import Role
from lockstep.wal.request import ERROR, JOB, REQUEST, RESULT, StageRequest, read_error
from lockstep.wal.staging import MANIFEST

_log = logging.getLogger(__name__)


class Jobs(Protocol):
    """Runs jobs that outlive the process that has launched them; as `lockstep.launchers.JobLauncher`, by requests."""

    def launch(self, request_uri: str) -> str: ...

    def state(self, handle: str) -> JobState: ...

    def cancel_job(self, handle: str) -> None: ...


@dataclass(frozen=True)
class LeftJob:
    """A job that this try has launched and noted, and whose output isn't sealed."""

    token: int
    folder: str
    handle: str


def leave_job(
    runtime: Runtime, epoch: Epoch, token: int, jobs: Jobs, reference: str, parts: Sequence[StagePart]
) -> LeftJob:
    """Launch the job that stages the epoch's frozen ranges as execution `token`, and don't wait for it. Raises as
    `ask_for`, and what a launcher raises."""
    folder, _ = ask_for(runtime, epoch, token, reference, parts)
    with running(parts, folder):
        handle = jobs.launch(runtime.staging.address_of(f"{folder}/{REQUEST}"))
    if not handle:  # launching another job would not help
        raise InvalidPipeline(f"{epoch}: the launcher gave no handle of its job, so it can't be watched or cancelled")
    reach(CrashPoint.STAGE_AFTER_LAUNCH)
    try:
        runtime.staging.write_json(folder, JOB, {"handle": handle})
    except LockstepError:
        _cancel(jobs, handle)
        raise
    reach(CrashPoint.STAGE_AFTER_NOTE)
    return LeftJob(token, folder, handle)


def find_left_job(runtime: Runtime, attempt: Attempt) -> LeftJob | None:
    """Return the job of the youngest execution that this try has begun in the attempt, if it noted one."""
    token = runtime.ledger.find_own_execution(attempt, Role.STAGE)
    if token is None:
        return None
    folder = runtime.staging.folder(runtime.ledger.deployment(), attempt.pipeline, attempt.epoch, token)
    noted = _handle_in(runtime, folder)
    return LeftJob(token, folder, noted) if noted and not runtime.staging.has_json(folder, MANIFEST) else None


def take_up(
    runtime: Runtime, epoch: Epoch, left_job: LeftJob, jobs: Jobs, reference: str, parts: Sequence[StagePart]
) -> WrittenWal | None:
    """Seal what the job wrote. Return None if the definition has changed since, and would ask for something else.
    Raises `JobAtWork`, also while another process of the try seals, and as `write_wal`."""
    with running(parts, left_job.folder):
        _require_ended(runtime, left_job, jobs)
    request = make_request(runtime, epoch, left_job.token, left_job.folder, reference, parts)
    if not _is_asked(runtime, left_job, request):
        _log.info("%s: job %s was launched for another definition than today's: staging anew", epoch, left_job.handle)
        return None
    try:
        return seal_written(runtime, epoch, left_job.token, left_job.folder, request, parts)
    except StagingRefused as refused:
        if not runtime.staging.has_json(left_job.folder, MANIFEST):
            raise
        raise JobAtWork(f"another process of this try seals execution {left_job.token}, or died at it") from refused


def at_work(runtime: Runtime, left_job: LeftJob) -> JobAtWork:
    address = runtime.staging.address_of(f"{left_job.folder}/{REQUEST}")
    return JobAtWork(f"job {left_job.handle}, of execution {left_job.token}, is at work", [address])


def cancel_older_jobs(runtime: Runtime, epoch: Epoch, token: int, jobs: Jobs) -> None:
    """Cancel the running jobs of executions before `token`, which will never be sealed. Younger executions cancel
    their own."""
    staging = runtime.staging
    for _, older, folder in staging.executions(runtime.ledger.deployment(), epoch.pipeline, only=epoch.id):
        handle = _handle_in(runtime, folder) if older < token else None
        if handle and not any(staging.has_json(folder, word) for word in (RESULT, ERROR)):
            _log.info("%s: cancelling job %s, which an earlier try has left", epoch, handle)
            _cancel(jobs, handle)


def _handle_in(runtime: Runtime, folder: str) -> str | None:
    with suppress(StageFailed):  # it is missing, or was written in part
        return str(runtime.staging.read_json(folder, JOB)["handle"])
    return None


def _is_asked(runtime: Runtime, left_job: LeftJob, request: StageRequest) -> bool:
    now: Json = json.loads(json.dumps(request.to_json()))
    return bool(runtime.staging.read_json(left_job.folder, REQUEST) == now)


def _require_ended(runtime: Runtime, left_job: LeftJob, jobs: Jobs) -> None:
    """Return if there is a result, whatever the job's state is. Otherwise raise `JobAtWork`, the job's own error, or
    `StageFailed`."""
    if _has_result(runtime, left_job):
        return
    if (state := JobState(jobs.state(left_job.handle))) is JobState.RUNNING:
        raise at_work(runtime, left_job)
    if _has_result(runtime, left_job):  # by now
        return
    raise StageFailed(
        f"job {left_job.handle}, of execution {left_job.token}, has {state} without a word: see its own log"
    )


def _has_result(runtime: Runtime, left_job: LeftJob) -> bool:
    with suppress(FileNotFoundError):
        raise read_error(runtime.staging.address_of(f"{left_job.folder}/{REQUEST}"))
    return runtime.staging.has_json(left_job.folder, RESULT)


def _cancel(jobs: Jobs, handle: str) -> None:
    try:
        jobs.cancel_job(handle)
    except Exception as error:  # a user's launcher may raise anything; the job's output is rubbish in any case
        _log.warning("job %s could not be cancelled: %s", handle, type(error).__name__)
