"""Job launchers of users, for clusters that neither Spark Connect nor spark-submit reaches.

A launcher may launch a job twice: after a lost answer, or after a task died. Nothing has to be recorded for that: each
execution of `stage` has its own token and a folder named by it. The task seals only its own folder, guarded by its
attempt; recovery deletes what an older job still writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

__all__ = ["Application", "JobLauncher", "JobState"]


class JobState(StrEnum):
    """State of a job. A cancelled or unknown job has failed."""

    RUNNING = "running"  #: or queued
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True)
class Application:
    """Files of the Spark application on this machine; they exist until the job ends. Spark's driver takes `file` as
    script and `code` as --py-files; their dependencies must be installed on the cluster."""

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
        """Start the application with these arguments. Returns the job's handle.

        `token`: unique to this execution in all deployments; at most 32 letters, digits and hyphens. Services that take
        an idempotency key can use it. Any exception fails the try.
        """

    def state(self, handle: str) -> JobState:
        """The job's state. An exception fails the try, so handle lost answers here."""

    def cancel(self, handle: str) -> None:
        """Cancel the job. It may have ended, or be gone."""
