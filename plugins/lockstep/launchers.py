"""Protocol of a user's launcher, which runs the job of `stage` where neither Spark Connect nor spark-submit can.

A launcher may launch twice, if the result of the first launch was lost or the task died before it got it. Nothing
has to be recorded for that. Each execution of `stage` has a token and a folder of its own, which the request names;
the task seals only that folder, under a guard by its attempt. So the output of an older job is garbage, whenever it
ends, and recovery deletes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

__all__ = ["Application", "JobLauncher", "JobState"]


class JobState(StrEnum):
    """State of a job according to its launcher. A job that was cancelled or is unknown has failed."""

    RUNNING = "running"  #: or queued
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True)
class Application:
    """What is to run, in files of this machine that exist until the job has ended: Spark's driver takes `file` as
    its script and `code` as --py-files. Their imports have to be installed there."""

    file: Path  #: stage_epoch.py
    code: Path  #: a zip with Lockstep and the pipeline's package
    name: str  #: shown to users


class JobLauncher(Protocol):
    """Runs Spark jobs. One object serves many jobs, from several threads, and keeps no state about them.

    `detached = True` as an attribute says that a job doesn't need the process that launched it: when `launch`
    returns the driver can access the application's files, and any process can ask for the job, and cancel it, by its
    handle. Then a deferrable `stage` leaves the job running and occupies no slot meanwhile.
    """

    def launch(self, application: Application, arguments: Sequence[str], token: str) -> str:
        """Start the application with these arguments and return the handle of the job.

        `token`: identifies this execution, unique among all deployments; letters, digits and hyphens, at most 32. It
        can serve as a service's idempotency key. An exception fails the try.
        """

    def state(self, handle: str) -> JobState:
        """Return the job's state. An exception fails the try, so the launcher itself has to tolerate a lost
        response."""

    def cancel(self, handle: str) -> None:
        """Cancel the job. It may have ended, or be gone."""
