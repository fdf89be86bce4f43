"""Start processes in groups of their own, remember them across calls, and end exactly those.

A pid is only believed together with its start time, so that one which the system gave to somebody else is never
signalled. What a dead process left behind is found by its session, whose id no new process gets while a member lives,
and by the mark that all carry in their environment: Spark's Python workers and Airflow's tasks may leave a group.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from stack.errors import StackError

MARK = "LOCKSTEP_STACK"
TERM_SECONDS = 15
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Started:
    """A process, by the pair that no other process ever has."""

    name: str
    pid: int
    created: float
    log: str

    @property
    def lives(self) -> bool:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            return abs(process.create_time() - self.created) < 1 and process.status() != psutil.STATUS_ZOMBIE
        return False

    @property
    def is_replaced(self) -> bool:
        """Whether the system gave the pid to somebody else: then nobody is left in the session that it opened."""
        with suppress(psutil.NoSuchProcess):
            return abs(psutil.Process(self.pid).create_time() - self.created) >= 1
        return False

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone: what it hadn't written yet never will be. Raises `StackError`."""
        if not self.lives:
            raise StackError(f"{self.name} doesn't run")
        process = psutil.Process(self.pid)
        process.kill()
        psutil.wait_procs([process], timeout=30)

    def last_line(self) -> str:
        """The last line of its log that tells something, for an error message."""
        with suppress(OSError):
            lines = [line.strip() for line in Path(self.log).read_text(errors="replace").splitlines() if line.strip()]
            telling = [line for line in lines if "rror" in line or "xception" in line]
            return (telling or lines or ["its log is empty"])[-1]
        return "it wrote no log"


class Processes:
    """The processes of one stack, recorded in a file as they start."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self.mark = secrets.token_hex(8)
        self.started: list[Started] = []
        if record.exists():
            saved = json.loads(record.read_text())
            self.mark = saved["mark"]
            self.started = [Started(**entry) for entry in saved["processes"]]

    def start(self, name: str, command: list[str], *, environment: Mapping[str, str], cwd: Path, log: Path) -> Started:
        """Start `command` with output to `log`, in a session of its own, and record it."""
        self._save()  # the mark must be known before anything can carry it
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=cwd,
                env=self._environment(environment),
                start_new_session=True,
            )
        started = Started(name, process.pid, psutil.Process(process.pid).create_time(), str(log))
        self.started.append(started)
        self._save()
        return started

    def _environment(self, wanted: Mapping[str, str]) -> dict[str, str]:
        found = {**wanted, MARK: self.mark}
        # setproctitle writes its titles over the environment that we look for, unless told not to
        found["SPT_NOENV"] = "1"
        # where containers set it, every task would compile every module that it imports, which doubles its time
        found.pop("PYTHONDONTWRITEBYTECODE", None)
        return found

    def stop(self) -> None:
        """End what was started, last first, then whatever else carries the mark. Does nothing when nothing runs."""
        leaders = [psutil.Process(one.pid) for one in reversed(self.started) if one.lives]
        _end(leaders)
        _end(self._left_behind())
        self.started.clear()
        self._record.unlink(missing_ok=True)

    def dead(self) -> list[Started]:
        return [one for one in self.started if not one.lives]

    def _left_behind(self) -> list[psutil.Process]:
        mine = {os.getpid(), os.getppid()}
        sessions = {one.pid: one for one in self.started if not one.is_replaced}
        return [
            process
            for process in psutil.process_iter()
            if process.pid not in mine and (self._carries_mark(process) or _is_member(process, sessions))
        ]

    def _carries_mark(self, process: psutil.Process) -> bool:
        with suppress(psutil.Error, OSError):
            return process.environ().get(MARK) == self.mark
        return False

    def _save(self) -> None:
        self._record.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._record.with_name(f"{self._record.name}.unfinished")
        unfinished.write_text(json.dumps({"mark": self.mark, "processes": [asdict(one) for one in self.started]}))
        unfinished.rename(self._record)


def wait_until(ready: Callable[[], bool], process: Started, what: str, seconds: float) -> None:
    """Wait for a condition; fail at once, with the log's last word, when the process dies before it holds."""
    deadline = time.monotonic() + seconds
    while not ready():
        if not process.lives:
            raise StackError(f"{what} ended while it started: {process.last_line()} (log: {process.log})")
        if time.monotonic() > deadline:
            raise StackError(f"{what} was not ready after {seconds:.0f} s: {process.last_line()} (log: {process.log})")
        time.sleep(POLL_SECONDS)


def _is_member(process: psutil.Process, sessions: Mapping[int, Started]) -> bool:
    """Whether the process is in the session that one of ours opened, and younger than it."""
    with suppress(psutil.Error, OSError):
        leader = sessions.get(os.getsid(process.pid))
        return leader is not None and process.create_time() >= leader.created - 1
    return False


def _end(processes: Iterable[psutil.Process]) -> None:
    """SIGTERM to each, SIGKILL to what is left of them and their groups after a grace time."""
    doomed = list(processes)
    for process in doomed:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    deadline = time.monotonic() + TERM_SECONDS
    while any(_lives(process) for process in doomed) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    for process in doomed:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    while any(_lives(process) for process in doomed):
        time.sleep(POLL_SECONDS)


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
