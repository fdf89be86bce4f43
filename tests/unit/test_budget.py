"""A suite that grows past its budget fails, on any machine; one on a busy machine doesn't."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.budget import BUDGETS, Budget, Spent, overrun
from tests.tiers import Tier

BUDGET = Budget(work=100, clock=60)
KEPT = Spent(work=90, clock=50, speed=1.0, idle=0.1)
CHECKOUT = Path(__file__).parents[2]


def test_what_is_over_a_budget_is_work_or_waiting_and_neither_a_slow_processor_nor_a_busy_machine() -> None:
    within = [
        overrun(KEPT, BUDGET),
        overrun(Spent(work=180, clock=100, speed=0.5, idle=0.5), BUDGET),
        overrun(replace(KEPT, clock=500, idle=0.0), BUDGET),
        overrun(replace(KEPT, work=110), BUDGET, factor=1.5),
    ]
    assert within == [None] * 4
    assert "110 s of work, 100 s are allowed" in str(overrun(replace(KEPT, work=110), BUDGET))
    assert overrun(Spent(work=60, clock=20, speed=2.0, idle=0.1), BUDGET), "a quick one has less time"
    assert "tests wait" in str(overrun(replace(KEPT, clock=70, idle=0.6), BUDGET))


def test_each_tier_has_a_budget_larger_than_the_one_before() -> None:
    works = [BUDGETS[tier].work for tier in Tier]
    assert works == sorted(works)


LEAVE = """
import contextlib, os, select, time
ours, theirs = os.pipe()
if os.fork() == 0:  # leads a session of its own, and is gone before the one that works
    os.setsid()
    if pid := os.fork():
        os.write(theirs, str(pid).encode())
        os._exit(0)
    while time.process_time() < 0.3:
        pass
    os._exit(0)
os.wait()
with contextlib.suppress(ProcessLookupError):  # it has ended already
    select.select([os.pidfd_open(int(os.read(ours, 100)))], [], [])
raise SystemExit(3)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans over")
def test_work_of_a_server_that_left_its_parent_is_counted_and_the_code_of_the_command_handed_on() -> None:
    command = [sys.executable, "-m", "tests.budget", "check", sys.executable, "-c", LEAVE]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert float(done.stderr.partition("took ")[2].partition(" s of work")[0]) >= 0.3
