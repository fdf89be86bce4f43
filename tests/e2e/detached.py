"""A launcher whose jobs are processes of their own, clients of the stack's Spark Connect server: they outlive the task.

python -m tests.e2e.detached --request URI
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lockstep.connections.names import absolute
from lockstep.launchers import Application, JobState

GATE = "jobs"  #: a job begins when gates/jobs is gone
GATE_SECONDS = 600


@dataclass(frozen=True)
class DetachedLauncher:
    """`jobs/<token>` has the process, and when it has ended its end."""

    detached = True

    def launch(self, application: Application, arguments: Sequence[str], token: str) -> str:
        Path(absolute("jobs")).mkdir(exist_ok=True)
        command = [sys.executable, "-m", "tests.e2e.detached", str(_place(token)), *arguments]
        environment = {**os.environ, "SPARK_REMOTE": os.environ["LOCKSTEP_SPARK"]}
        with _place(token).with_suffix(".log").open("wb") as log:
            process = subprocess.Popen(command, start_new_session=True, env=environment, stdout=log, stderr=log)
        _place(token).with_suffix(".pid").write_text(str(process.pid))
        return token

    def state(self, handle: str) -> JobState:
        try:
            return JobState(_place(handle).read_text())
        except FileNotFoundError:
            return JobState.RUNNING

    def cancel(self, handle: str) -> None:
        os.killpg(int(_place(handle).with_suffix(".pid").read_text()), signal.SIGTERM)
        _tell(_place(handle), JobState.FAILED)


def main(place: str, request_uri: str) -> None:
    deadline = time.monotonic() + GATE_SECONDS
    while Path(absolute("gates"), GATE).exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    from lockstep.compute.submit import stage_epoch

    state = JobState.FAILED
    try:
        if stage_epoch.main(["--request", request_uri]) == 0:
            state = JobState.SUCCEEDED
    finally:
        _tell(Path(place), state)


def _place(token: str) -> Path:
    return Path(absolute("jobs"), token)


def _tell(place: Path, state: JobState) -> None:
    unfinished = place.with_suffix(".tmp")
    unfinished.write_text(state)
    unfinished.rename(place)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[3])
