"""The table of docs/sinks/guarantees.md: what each sink was found to keep, killed and stopped at every point.

A test module of a sink has one line for each row:

    def test_the_page_of_guarantees_tells_the_truth(...) -> None:
        expect_row("MariaDbSink, two phases", MariaDbUnderTest(...))

LOCKSTEP_WRITE_DOCS=1 writes what was found into the page instead.
"""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path

from lockstep.sinks.values import Guarantee
from lockstep.testing import SinkUnderTest, SinkVerdict, judge
from lockstep.testing._crash_sweep import reached_points

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "sinks" / "guarantees.md"
PATIENCE = 10.0  # seconds: only a publisher that really waits takes so long
_RULE = "|---|---|---|---|---|"
_ROW = re.compile(r"^\| (?P<name>[^|]+?) \|.*\|$", re.M)


def expect_row(name: str, target: SinkUnderTest) -> None:
    """Fail unless the row of `name` says what `target` keeps, and that is what the sink promises. Takes some seconds.

    `target` has to be fresh. Nothing is tried with a sink that promises nothing.
    """
    found = row_of(name, target)
    if os.environ.get("LOCKSTEP_WRITE_DOCS") == "1":
        _write(name, found)
    told = [row[0] for row in _ROW.finditer(PAGE.read_text()) if row["name"] == name]
    assert told == [found], f"{PAGE.name} has {told}, found was {found!r}: run this test with LOCKSTEP_WRITE_DOCS=1"


def row_of(name: str, target: SinkUnderTest) -> str:
    """The row as Markdown. AssertionError if the sink keeps less than it promises."""
    if target.guarantee is Guarantee.NONE:
        return _row(name, target.guarantee.value, "none", "no", "nothing is promised, nothing was tried")
    verdict = judge(target, reached_points, max_wait=PATIENCE)
    assert verdict.guarantee in (target.guarantee, Guarantee.EXACTLY_ONCE), f"{name}: {verdict}"
    power = "yes" if verdict.power_lost else "no"
    return _row(name, target.guarantee.value, str(verdict.steps), power, _outcome(target, verdict))


def _outcome(target: SinkUnderTest, verdict: SinkVerdict) -> str:
    words = "every row once"
    if target.guarantee is Guarantee.AT_LEAST_ONCE:  # how many come twice depends on who was quicker
        words = "every row, some twice" if verdict.guarantee is Guarantee.AT_LEAST_ONCE else "every row"
    if verdict.guarantee is Guarantee.AT_MOST_ONCE:
        words = "no row twice; some missing, and told"
    return f"{words}; a stopped process is waited for" if any(found.waits for found in verdict.findings) else words


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _write(name: str, row: str) -> None:
    """Put `row` in its place among the others, by name; several processes may do so at once."""
    with PAGE.open("r+") as page:
        fcntl.flock(page, fcntl.LOCK_EX)
        before, rule, after = page.read().partition(_RULE)
        table, _, rest = after.partition("\n\n")
        rows = {found["name"]: found[0] for found in _ROW.finditer(table)} | {name: row}
        lines = [rows[one] for one in sorted(rows, key=str.lower)]
        page.seek(0)
        page.write("\n".join([before + rule, *lines, "", rest]))
        page.truncate()
