"""A job that is left to itself: launched, noted beside its request, and sealed by a later process of the same try.

That process goes by the ledger, which says what this try has begun, and by the folder of that token: by nothing that
Airflow hands it. A job whose note was never written is as if it had never been: nobody seals its folder. Nor does
anything rest on a job's state. What it left is sealed or not, and its folder's one manifest is made exclusively.
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
    """One that this try has launched and noted, and of which nobody has made a WAL."""

    token: int
    folder: str
    handle: str


def leave_job(
    runtime: Runtime, epoch: Epoch, token: int, jobs: Jobs, reference: str, parts: Sequence[StagePart]
) -> LeftJob:
    """Have the epoch's frozen ranges staged by execution `token`, without waiting for it. Raises as `ask_for`, and
    whatever a launcher raises."""
    folder, _ = ask_for(runtime, epoch, token, reference, parts)
    with running(parts, folder):
        handle = jobs.launch(runtime.staging.address_of(f"{folder}/{REQUEST}"))
    if not handle:  # to launch another one would help none
        raise InvalidPipeline(f"{epoch}: the launcher gave no handle of its job, so nobody can ask for it or cancel it")
    reach(CrashPoint.STAGE_AFTER_LAUNCH)
    try:
        runtime.staging.write_json(folder, JOB, {"handle": handle})
    except LockstepError:
        _cancel(jobs, handle)
        raise
    reach(CrashPoint.STAGE_AFTER_NOTE)
    return LeftJob(token, folder, handle)


def find_left_job(runtime: Runtime, attempt: Attempt) -> LeftJob | None:
    """That of the youngest execution which this very try has begun in the attempt, if it got to note one."""
    token = runtime.ledger.find_own_execution(attempt, Role.STAGE)
    if token is None:
        return None
    folder = runtime.staging.folder(runtime.ledger.deployment(), attempt.pipeline, attempt.epoch, token)
    noted = _handle_in(runtime, folder)
    return LeftJob(token, folder, noted) if noted and not runtime.staging.has_json(folder, MANIFEST) else None


def take_up(
    runtime: Runtime, epoch: Epoch, left: LeftJob, jobs: Jobs, reference: str, parts: Sequence[StagePart]
) -> WrittenWal | None:
    """Seal what the job wrote; None where it isn't what would be asked for now, as the definition is another one.
    Raises `JobAtWork`, also while another process of the try is at the seal, and as `write_wal`."""
    with running(parts, left.folder):
        _require_ended(runtime, left, jobs)
    asked = make_request(runtime, epoch, left.token, left.folder, reference, parts)
    if not _is_asked(runtime, left, asked):
        _log.info("%s: job %s was asked for by another definition than today's: staging anew", epoch, left.handle)
        return None
    try:
        return seal_written(runtime, epoch, left.token, left.folder, asked, parts)
    except StagingRefused as refused:
        if not runtime.staging.has_json(left.folder, MANIFEST):
            raise
        raise JobAtWork(f"another process of this try seals execution {left.token}, or died at it") from refused


def at_work(runtime: Runtime, left: LeftJob) -> JobAtWork:
    address = runtime.staging.address_of(f"{left.folder}/{REQUEST}")
    return JobAtWork(f"job {left.handle}, of execution {left.token}, is at work", [address])


def cancel_older_jobs(runtime: Runtime, epoch: Epoch, token: int, jobs: Jobs) -> None:
    """End what executions before `token` have left at work: nobody will seal it. Younger ones are others' to end."""
    staging = runtime.staging
    for _, older, folder in staging.executions(runtime.ledger.deployment(), epoch.pipeline, only=epoch.id):
        handle = _handle_in(runtime, folder) if older < token else None
        if handle and not any(staging.has_json(folder, word) for word in (RESULT, ERROR)):
            _log.info("%s: cancelling job %s, which an earlier try has left", epoch, handle)
            _cancel(jobs, handle)


def _handle_in(runtime: Runtime, folder: str) -> str | None:
    with suppress(StageFailed):  # it isn't there, or never got whole
        return str(runtime.staging.read_json(folder, JOB)["handle"])
    return None


def _is_asked(runtime: Runtime, left: LeftJob, asked: StageRequest) -> bool:
    now: Json = json.loads(json.dumps(asked.to_json()))
    return bool(runtime.staging.read_json(left.folder, REQUEST) == now)


def _require_ended(runtime: Runtime, left: LeftJob, jobs: Jobs) -> None:
    """Raise `JobAtWork`, what the job wrote down, or `StageFailed`; nothing once there is a result, whatever is told of
    the job."""
    if _has_result(runtime, left):
        return
    if (state := JobState(jobs.state(left.handle))) is JobState.RUNNING:
        raise at_work(runtime, left)
    if _has_result(runtime, left):  # by now
        return
    raise StageFailed(f"job {left.handle}, of execution {left.token}, has {state} without a word: see its own log")


def _has_result(runtime: Runtime, left: LeftJob) -> bool:
    with suppress(FileNotFoundError):
        raise read_error(runtime.staging.address_of(f"{left.folder}/{REQUEST}"))
    return runtime.staging.has_json(left.folder, RESULT)


def _cancel(jobs: Jobs, handle: str) -> None:
    try:
        jobs.cancel_job(handle)
    except Exception as error:  # of anybody's launcher: what the job writes is rubbish all the same
        _log.warning("job %s could not be cancelled: %s", handle, type(error).__name__)
