"""What a sink really keeps: it is killed, and stopped, between any two of its calls, and its rows are counted."""

from __future__ import annotations

import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockstep.errors import LockstepError
from lockstep.sinks.base import Guarantee
from lockstep.testing.calls import calls_of
from lockstep.testing.crash_sweep import (
    Decision,
    Round,
    Trace,
    child_at_step,
    ended,
    finish,
    fork,
    prepares_and_publishes,
    steps_of,
)
from lockstep.testing.sealed_rows import SCHEMA
from lockstep.testing.under_test import SinkUnderTest, publish, sweep

ROWS = 20
PATIENCE_SECONDS = 0.5  #: what a publisher may take beside a stopped one


@dataclass(frozen=True)
class Finding:
    """What one fault did: rows lost or doubled, why nobody could finish, or that all wait for a stopped process."""

    fault: str
    lost: int = 0
    doubled: int = 0
    stuck: str = ""
    waits: bool = False

    def __str__(self) -> str:
        told = {
            f"{self.lost} rows lost": self.lost,
            f"{self.doubled} rows doubled": self.doubled,
            self.stuck: self.stuck,
            "everybody waits until the stopped process goes on or dies": self.waits,
        }
        return f"{self.fault}: {', '.join(words for words, holds in told.items() if holds)}"


@dataclass(frozen=True)
class Verdict:
    """`guarantee`: the strongest that no finding contradicts. `faults`: how many were tried."""

    guarantee: Guarantee
    faults: int
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        return "\n  ".join([f"kept {self.guarantee.value} under {self.faults} faults", *map(str, self.findings[:20])])


def judge(target: SinkUnderTest, trace: Trace | None = None) -> Verdict:
    """Kill a process at every step of `trace`, and stop one there to release it after another has finished; count rows.

    `trace`: `calls_of` the sink unless given. The target has to be fresh. Takes some hundredths of a second a fault.
    """
    trace = trace or calls_of(target.sink())
    findings: list[Finding] = []
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        rounds = (Round(target, n, ROWS, Decision(Path(folder, f"decision-{n}"))) for n in count(1))
        finish(next(rounds))  # whatever is made once for a target
        for fault in (_killed, _stopped):
            for index, step in enumerate(steps_of(prepares_and_publishes, trace, next(rounds), Path(folder, "steps"))):
                faults += 1
                findings += _tried(fault, next(rounds), trace, index, step)
        findings += _without_power(target, next(rounds))
    return Verdict(_kept(findings), faults, tuple(findings))


def _tried(fault: Fault, round: Round, trace: Trace, index: int, step: str) -> list[Finding]:
    name = f"{fault.__name__.strip('_')} at step {index} ({step})"
    try:
        waits = fault(round, trace, index)
        _settle(round)
    except (AssertionError, LockstepError) as error:
        return [Finding(name, stuck=f"{type(error).__name__}: {error}")]
    return _found(round, name, waits)


def _killed(round: Round, trace: Trace, index: int) -> bool:
    with child_at_step(round, prepares_and_publishes, trace, index, signal.SIGKILL) as child:
        child.wait()
    finish(round)
    return False


def _stopped(round: Round, trace: Trace, index: int) -> bool:
    """Whether nobody could finish before the stopped process was released."""
    with child_at_step(round, prepares_and_publishes, trace, index, signal.SIGSTOP) as child:
        child.wait_until_stopped()
        with ended(fork(lambda: finish(round), quiet=True)) as second:
            waits = not second.ends_within(PATIENCE_SECONDS)
        child.release()
        child.wait()
    finish(round)
    return waits


Fault = Callable[[Round, Trace, int], bool]


def _settle(round: Round) -> None:
    """What recovery does, and a second publication by somebody who doesn't know of the first."""
    vote = round.decision.vote()
    assert vote is not None
    sweep(round.target, vote)
    publish(round.target, round.epoch(round.publishing_token + 1), vote, round.wal)


def _without_power(target: SinkUnderTest, round: Round) -> list[Finding]:
    finish(round)
    return _found(round, "loss of power after publish") if target.lose_power() else []


def _found(round: Round, fault: str, waits: bool = False) -> list[Finding]:
    lost, doubled = _compared(round)
    return [Finding(fault, lost, doubled, waits=waits)] if lost or doubled or waits else []


def _compared(round: Round) -> tuple[int, int]:
    """Rows of the round's epoch that are missing, and that are too many."""
    wanted = _rows(pa.concat_tables(batches.table for batches in round.wal))
    ids = {row[0] for row in wanted}
    found = Counter({row: n for row, n in _rows(round.target.visible()).items() if row[0] in ids})
    return (wanted - found).total(), (found - wanted).total()


def _rows(table: pa.Table) -> Counter[tuple[Any, ...]]:
    columns: Sequence[Sequence[Any]] = [table.column(name).to_pylist() for name in SCHEMA.names]
    return Counter(zip(*columns, strict=True))


def _kept(findings: Sequence[Finding]) -> Guarantee:
    if any(finding.lost or finding.stuck for finding in findings):
        return Guarantee.NONE
    return Guarantee.AT_LEAST_ONCE if any(finding.doubled for finding in findings) else Guarantee.EXACTLY_ONCE
