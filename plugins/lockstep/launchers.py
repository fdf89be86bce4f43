"""How `stage` has its job run where neither Spark Connect nor spark-submit leads: by a launcher of one's own.

A launcher may launch twice: the answer to the first time was lost, or the task died before it had it. Nothing has to
be recorded for that. Each execution of `stage` has a token of its own, and a folder by it, which the request names; the
task seals that folder and no other, under a guard by its attempt. So what an older job still writes is rubbish,
whenever it ends, and recovery takes it away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

__all__ = ["Application", "JobLauncher", "JobState"]


class JobState(StrEnum):
    """Of a job, as its launcher finds it. One that was cancelled, or that nobody knows any more, has failed."""

    RUNNING = "running"  #: or it waits for room
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True)
class Application:
    """What is to run, in files of this machine that last until the job has ended: Spark's driver takes `file` as its
    script and `code` as --py-files. What these import has to be installed there."""

    file: Path  #: stage_epoch.py
    code: Path  #: a zip with Lockstep and the pipeline's package
    name: str  #: for people


class JobLauncher(Protocol):
    """Runs Spark jobs somewhere. One object serves many jobs, from several threads: it keeps nothing of them.

    One that also has `detached = True` says that a job needs nothing more of the process that launched it: when
    `launch` returns the application's files are where the driver finds them, and by its handle any process may ask for
    the job, and cancel it. Then a `stage` that is deferrable leaves the job to itself and takes no slot meanwhile.
    """

    def launch(self, application: Application, arguments: Sequence[str], token: str) -> str:
        """Start the application with these arguments; the handle by which the job is known from now on.

        `token`: of this execution, and of no other in any deployment; letters, digits and hyphens, at most 32. A
        service that takes a key for each job may be given it. Whatever is raised fails the try.
        """

    def state(self, handle: str) -> JobState:
        """How it stands with the job. What this raises fails the try, so it bears a lost answer by itself."""

    def cancel(self, handle: str) -> None:
        """Have the job end soon. It may have ended, or be gone."""
