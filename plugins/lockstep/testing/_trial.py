"""The faults that a judgement tries: an epoch with rows of its own for each, so that all are counted at the end."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count, takewhile
from pathlib import Path

import pyarrow as pa

from lockstep.sinks.values import Publication
from lockstep.testing._crash_sweep import (
    Decision,
    Round,
    Story,
    Trace,
    child_at_step,
    finish,
    prepares_and_publishes,
    repairs_what_was_lost,
    steps_of,
)
from lockstep.testing._sealed_rows import counted
from lockstep.testing._under_test import SinkUnderTest, publish, sweep

ROWS = 8


@dataclass(frozen=True)
class Finding:
    """What one fault did: rows lost or doubled, why nobody could finish, or that all wait for a stopped process.

    `told`: the sink says that the epoch was cut off, so that nobody takes it for whole.
    `missed`: the process ended without coming to the step, so that this fault was not tried.
    """

    fault: str
    lost: int = 0
    doubled: int = 0
    stuck: str = ""
    waits: bool = False
    missed: bool = False
    told: bool = False

    def __str__(self) -> str:
        told = {
            f"{self.lost} rows lost{', and told' if self.told else ''}": self.lost,
            f"{self.doubled} rows doubled": self.doubled,
            self.stuck: self.stuck,
            "everybody waits until the stopped process goes on or dies": self.waits,
            "not tried, the process did not come to the step": self.missed,
        }
        return f"{self.fault}: {', '.join(words for words, holds in told.items() if holds)}"


class Outcome(StrEnum):
    """Whether a fault took place, and whether others waited for the stopped process."""

    TRIED = "tried"
    WAITED_FOR = "waited for"
    MISSED = "missed"


@dataclass
class Trial:
    """`max_wait`: seconds that a publisher may take beside a stopped process before it is said to wait for it."""

    target: SinkUnderTest
    trace: Trace
    max_wait: float
    folder: Path
    findings: list[Finding] = field(default_factory=list)
    #: rounds that somebody could finish, each with whether it was said to be cut off
    tried: list[tuple[str, Round, bool]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def round(self) -> Round:
        number = next(self._numbers)
        return Round(self.target, number, ROWS, Decision(self.folder / f"decision-{number}"))

    def steps(self) -> list[tuple[Story, int, str]]:
        """(story, index, name); what a story has in common with the one before, from its start, is left out."""
        stories = [prepares_and_publishes, *([repairs_what_was_lost] if self.target.votes_with_data else [])]
        found: list[tuple[Story, int, str]] = []
        before: list[str] = []
        for story in stories:
            names = steps_of(story, self.trace, self.round(), self.folder / "steps")
            common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, names, strict=False)))
            found += [(story, index, name) for index, name in enumerate(names) if index >= common]
            before = names
        return found

    def kill(self, story: Story, index: int, step: str) -> None:
        """Kill a process there and finish after it."""

        def fault(round: Round) -> Outcome:
            with child_at_step(round, story, self.trace, index, signal.SIGKILL) as child:
                killed = child.wait() == -signal.SIGKILL
            finish(round)
            return Outcome.TRIED if killed else Outcome.MISSED

        self._try(f"killed at step {index} ({step})", fault)

    def stop(self, story: Story, index: int, step: str) -> None:
        """Stop a process there, finish beside it, and let it go on."""

        def fault(round: Round) -> Outcome:
            with (
                ThreadPoolExecutor(1) as beside,
                child_at_step(round, story, self.trace, index, signal.SIGSTOP) as child,
            ):
                stopped = child.wait_until_stopped()
                second = beside.submit(finish, round)
                waits = not wait([second], self.max_wait).done
                child.release()
                child.wait()
            second.result()
            if not stopped:
                return Outcome.MISSED
            return Outcome.WAITED_FOR if waits else Outcome.TRIED

        self._try(f"stopped at step {index} ({step})", fault)

    def count_rows(self, after: str = "") -> None:
        """Find what each fault's epoch lacks now, and what it has too often."""
        shown = counted(self.target.visible())
        for name, round, told in self.tried:
            wanted = counted(pa.concat_tables(batches.table for batches in round.wal))
            ids = {row[0] for row in wanted}
            found = Counter({row: n for row, n in shown.items() if row[0] in ids})
            lost, doubled = (wanted - found).total(), (found - wanted).total()
            if lost or doubled:
                self.findings.append(Finding(f"{name}{after}", lost, doubled, told=told))

    def _try(self, name: str, fault: Callable[[Round], Outcome]) -> None:
        round = self.round()
        try:
            outcome = fault(round)
            told = _settle(round) is Publication.CUT_OFF
        except Exception as error:  # whatever somebody's sink may raise
            self.findings.append(Finding(name, stuck=f"{type(error).__name__}: {error}"))
            return
        self.tried.append((name, round, told))
        match outcome:
            case Outcome.WAITED_FOR:
                self.findings.append(Finding(name, waits=True))
            case Outcome.MISSED:
                self.findings.append(Finding(name, missed=True))
            case Outcome.TRIED:
                pass


def _settle(round: Round) -> Publication:
    """What recovery does, and a second publication by somebody who doesn't know of the first."""
    vote = round.decision.vote()
    assert vote is not None
    sweep(round.target, vote)
    return publish(round.target, round.epoch(round.publishing_token + 1), vote, round.wal)
