"""Child processes that die, or stop, at a crash point. Forked: everything is imported already."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Literal, TypeVar

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.errors import AlreadyDecided, Fenced, Retryable
from tests.sampling import Sampling

Action = Literal["kill", "hang"]
Way = TypeVar("Way")
HARMLESS = frozenset(error.__name__ for error in (Retryable, Fenced, AlreadyDecided))


@dataclass
class Victim:
    """A child process. `status` is what waitpid gave last."""

    pid: int
    log: Path
    action: Action
    status: int = 0

    @property
    def killed(self) -> bool:
        return os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGKILL

    @property
    def stopped(self) -> bool:
        return os.WIFSTOPPED(self.status)

    @property
    def struck(self) -> bool:
        """Whether it came as far as where it was to be struck."""
        return self.killed if self.action == "kill" else self.stopped

    @property
    def finished(self) -> bool:
        return os.WIFEXITED(self.status)

    def release(self) -> None:
        """Let a stopped child go on to its end; it may well end with an error, see `alarm`."""
        os.kill(self.pid, signal.SIGCONT)
        _, self.status = os.waitpid(self.pid, 0)

    @property
    def alarm(self) -> str | None:
        """What it ended with, if a person would have to look: neither a success nor that it was overtaken, nor an error
        that the next try gets over."""
        if not self.log.is_file():
            return None
        kinds, _, trace = self.log.read_text().partition("\n")
        return None if HARMLESS.intersection(kinds.split()) else trace

    def kill(self) -> None:
        if self.stopped:
            os.kill(self.pid, signal.SIGKILL)
            _, self.status = os.waitpid(self.pid, 0)


def overtake(victim: Victim, resume: Callable[[], None], check: Callable[[], None]) -> None:
    """`resume` what the victim was at, while it is dead or stands still; one that stands still is released then, and
    may neither alarm anybody nor change what `check` looks at."""
    try:
        assert victim.struck, "the point was not reached"
        resume()
        check()
        if victim.action == "hang":
            victim.release()
            assert victim.alarm is None, victim.alarm
            check()
    finally:
        victim.kill()


@dataclass(frozen=True)
class Hit:
    """Where a victim is struck: the nth time that `task` reaches `point`."""

    task: str
    point: CrashPoint
    nth: int

    def __str__(self) -> str:
        return f"{self.task}@{self.point}#{self.nth}"


def hits_of(task: str, reached: Mapping[CrashPoint, int]) -> list[Hit]:
    """Every point that `task` reached, each time: of one in a loop over files the first two times and the last."""
    return [
        Hit(task, point, nth)
        for point, times in reached.items()
        for nth in range(1, times + 1)
        if nth <= 2 or nth == times
    ]


def in_turn(sampling: Sampling, places: Sequence[Hit], ways: Sequence[Way], every: int) -> Iterator[tuple[Way, Hit]]:
    """Every so many-th place of a sweep, in one of its ways: so many seeds strike each place, and so many times as many
    as there are ways strike each in every way. Of a whole sweep all of that."""
    for turn, way in enumerate(ways):
        for place in sampling.share(places, turn * every, len(ways) * every):
            yield way, place


def sacrifice(tasks: Iterable[tuple[str, Callable[[], object]]], hit: Hit, action: Action, log: Path) -> Victim:
    """Run `tasks` in a forked child that is struck at `hit`; return when it has died, stopped or ended."""
    log.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        _live(tasks, hit, action, log)
    _, status = os.waitpid(pid, os.WUNTRACED)
    return Victim(pid, log, action, status)


def _live(tasks: Iterable[tuple[str, Callable[[], object]]], hit: Hit, action: Action, log: Path) -> None:
    code = 0
    try:
        os.environ["LOCKSTEP_TESTING"] = "1"
        for task, work in tasks:
            if task == hit.task:
                crash.observe(_strike(hit, action))
            work()
    except BaseException as error:
        kinds = " ".join(kind.__name__ for kind in type(error).__mro__)
        log.write_text(f"{kinds}\n{traceback.format_exc()}")
        code = 1
    finally:
        os._exit(code)


def _strike(hit: Hit, action: Action) -> Callable[[CrashPoint], None]:
    reached = count(1)

    def strike(point: CrashPoint) -> None:
        if point is hit.point and next(reached) == hit.nth:
            os.kill(os.getpid(), signal.SIGKILL if action == "kill" else signal.SIGSTOP)

    return strike
