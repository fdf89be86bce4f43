"""Runs a command as a budget allows: fails when it took more work than its tier may, however busy the machine was.

    python -m tests.budget check pytest --tier check …

What is measured is work, seconds of processors, of the command and of every process that came of it, servers too. They
are those of the machine that the budgets were made on: `yardstick` says how many of its seconds one of here is.
Time on the clock counts only where processors were idle meanwhile: then it is the tests that wait.
LOCKSTEP_BUDGET=off measures and fails nothing; LOCKSTEP_BUDGET=1.5 allows one and a half times as much.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.tiers import Tier

PR_SET_CHILD_SUBREAPER = 36
YARDSTICK = 0.05  #: seconds of a processor that `yardstick`'s work took where the budgets were made
IDLE = 0.25  #: a share of the processors that is idle while tests wait, and not while others work


@dataclass(frozen=True)
class Budget:
    """In seconds: of processors, and on the clock of a machine that has two and nothing else to do."""

    work: float
    clock: float


#: measured were 54 to 68, 730 to 930 and 4,020 s of work
BUDGETS = {Tier.CHECK: Budget(100, 60), Tier.TEST: Budget(1150, 600), Tier.ALL: Budget(5200, 2700)}


@dataclass(frozen=True)
class Spent:
    """`work`: seconds of processors. `speed`: of one of them, 2.0 does twice as much as where the budgets were made.
    `idle`: the share of all processors that nobody used."""

    work: float
    clock: float
    speed: float
    idle: float

    def __str__(self) -> str:
        return (
            f"{self.work:.1f} s of work (of processors of speed {self.speed:.2f}), {self.clock:.0f} s on the clock, "
            f"{self.idle:.0%} of the machine idle"
        )


def overrun(spent: Spent, budget: Budget, factor: float = 1.0) -> str | None:
    """Why the budget isn't kept, if it isn't."""
    work = spent.work * spent.speed
    if work > budget.work * factor:
        return f"{work:.0f} s of work, {budget.work * factor:.0f} s are allowed"
    clock = spent.clock * spent.speed
    if clock > budget.clock * factor and spent.idle > IDLE:
        allowed = budget.clock * factor
        return f"{clock:.0f} s on the clock, {allowed:.0f} s are allowed: the machine was idle meanwhile, so tests wait"
    return None


def yardstick() -> float:
    """How much a processor does, measured by work like that of tests: objects, text, hashes."""
    took = min(_work() for _ in range(3))
    return YARDSTICK / took


def _work() -> float:
    started = time.process_time()
    rows = [{"id": number, "name": f"row {number}"} for number in range(60_000)]
    text = ",".join(sorted(str(row) for row in rows))
    hashlib.sha256(text.encode() * 4).hexdigest()
    return time.process_time() - started


def adopt_orphans() -> None:
    """Servers leave their parents: from now on they are children of this process, so that their work is counted."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(command: Sequence[str]) -> int:
    """Its code, once it has ended. Orphans that end before are reaped."""
    process = subprocess.Popen(command)
    while True:
        try:
            pid, status = os.wait()
        except KeyboardInterrupt:  # the command has got it too, and ends what it began
            continue
        if pid == process.pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode


def _reap() -> None:
    """Those that have ended meanwhile."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _idle_seconds() -> float:
    """Of all processors since the machine started; nothing is known of them without /proc."""
    with suppress(OSError):
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
        return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def main(arguments: Sequence[str]) -> int:
    tier, command = Tier(arguments[0]), arguments[1:]
    setting = os.environ.get("LOCKSTEP_BUDGET", "1")
    adopt_orphans()
    speed, started, idle = yardstick(), time.monotonic(), _idle_seconds()
    code = run(command)
    _reap()
    clock = time.monotonic() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    share = (_idle_seconds() - idle) / clock / (os.cpu_count() or 1)
    spent = Spent(used.ru_utime + used.ru_stime, clock, (speed + yardstick()) / 2, share)
    print(f"tier {tier} took {spent}", file=sys.stderr)
    if setting == "off" or code:
        return code
    if problem := overrun(spent, BUDGETS[tier], float(setting)):
        print(
            f"tier {tier} is over its budget: {problem}. pytest's --durations=20 names the slowest tests, a row of "
            "tests/tiers.py moves a file to a later tier, LOCKSTEP_BUDGET=off fails nothing",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
