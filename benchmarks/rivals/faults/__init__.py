"""Rows that are lost or doubled when a sink is killed in the middle of a commit."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import typer

from benchmarks.rivals.faults.flink import FUNCTION, NEW, Flink
from benchmarks.rivals.faults.lockstep_way import Lockstep
from benchmarks.rivals.faults.target import Outcome, Target
from benchmarks.servers import running
from lockstep import __version__
from stack.home import Home

FAULTS = ("well", "killed_behind_commit", "committed_by_hand", "rolled_back_by_hand", "batch")


def main(only: str = typer.Option("", help="Part of a way's or a fault's name.")) -> None:
    """The same 20,000 rows by Flink's two XA sinks and by Lockstep, under the same faults: what a reader finds."""
    home = Home.from_environment().root / "rivals"
    flinks = [Flink(NEW, home / "flink-new"), Flink(FUNCTION, home / "flink-function")]
    for flink in flinks:
        flink.set_up()
    work = home / "run"
    shutil.rmtree(work, ignore_errors=True)
    with running(work, jdbc=False) as place:
        ways: list[Flink | Lockstep] = [*flinks, Lockstep(f"lockstep {__version__}", place.ledger, place.url)]
        asked = [(name, run) for name, fault, run in _runs(ways) if only in f"{name} {fault}"]
        for number, (name, run) in enumerate(asked):
            target = Target(place.warehouse, f"numbers_{number}", work / str(number))
            target.set_up()
            print(f"{name}: {run.__doc__}\n    {run(target)}", flush=True)


def _runs(ways: list[Flink | Lockstep]) -> list[tuple[str, str, Callable[[Target], Outcome]]]:
    return [(way.name, fault, getattr(way, fault)) for fault in FAULTS for way in ways if hasattr(way, fault)]
