"""Forked processes for tests: each ends, by itself or with the block that made it."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from lockstep.testing._under_test import PATIENCE


@dataclass
class Child:
    """A forked process. `wait` gives its exit code, or minus the signal that ended it."""

    pid: int
    code: int | None = None

    def wait(self) -> int:
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def is_running(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is None

    def wait_until_stopped(self) -> bool:
        """True once it has stopped itself, False if it ended."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            return True
        self.code = os.waitstatus_to_exitcode(status)
        return False

    def release(self) -> None:
        if self.code is None:
            os.kill(self.pid, signal.SIGCONT)

    def end(self) -> None:
        if self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.wait()


def fork(action: Callable[[], object], *, quiet: bool = False) -> Child:
    """Run `action` in a child that exits 0 if it returns and 1 if it raises, and never lives longer than PATIENCE."""
    pid = os.fork()
    if pid:
        return Child(pid)
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE)
        action()
        code = 0
    except BaseException:
        if not quiet:
            traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


@contextmanager
def ended(child: Child) -> Iterator[Child]:
    """`child`, which outlives the block in no case."""
    try:
        yield child
    finally:
        child.end()
