"""A trace of the calls that a sink's own code makes, so that it can die between any two of them."""

from __future__ import annotations

import builtins
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.util import find_spec
from itertools import count, takewhile
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pyarrow as pa

from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Guarantee, Publication
from lockstep.testing._crash_sweep import (
    Decision,
    OnStep,
    Round,
    Story,
    Trace,
    child_at_step,
    finish,
    prepares_and_publishes,
    reached_points,
    repairs_what_was_lost,
    steps_of,
)
from lockstep.testing._sealed_rows import counted
from lockstep.testing._under_test import SinkUnderTest, opened, publish, sweep

OCCURRENCES = 2  #: of one call at one place; the third is made in the state that the second left
_TEMPLATES = {
    *("builtins", "abc"),
    *(f"lockstep.sinks.{name}" for name in ("base", "values", "open_sink", "two_phase", "write_ahead", "adopting")),
}
#: modules that do nothing to a target but by calls of others, which are told by themselves
_TRANSPARENT = {
    *_TEMPLATES,
    *(f"lockstep.{name}" for name in ("epoch", "sinks.handles")),
    *(f"lockstep.testing.{name}" for name in ("_under_test", "_crash_sweep", "_sealed_rows")),
    *("contextlib", "functools", "uuid"),
}
_BUILTIN_TYPES = (str, bytes, int, float, list, dict, tuple, set, frozenset, type(None))


def calls_of(sink: OpenSink) -> Trace:
    """Every call made from the modules that `sink`, its description and committer are written in; every crash point."""
    return calls_from(*_modules_of(sink))


def calls_from(*modules: str) -> Trace:
    """Every call that these modules make of other code, and that other code makes of them, told before it is made.

    Left out is what has no effect on a target: calls of builtin functions and of builtin types' methods, and calls
    within the modules, as nothing happens before the first call that the callee makes. Raises `ValueError` for a module
    that isn't there: nothing would be traced.
    """
    if strangers := [module for module in modules if module not in sys.modules and find_spec(module) is None]:
        raise ValueError(f"no such modules: {', '.join(strangers)}")

    def trace(on_step: OnStep) -> None:
        reached_points(on_step)
        seen: Counter[str] = Counter()

        def note(place: FrameType, callee: str) -> None:
            step = f"{place.f_code.co_qualname}:{place.f_lineno} calls {callee}"
            seen[step] += 1
            if seen[step] <= OCCURRENCES:
                on_step(step)

        def profile(frame: FrameType, event: str, argument: Any) -> None:
            caller = frame.f_back
            if event == "c_call" and _is_from(frame, modules) and not _is_builtin(argument):
                note(frame, getattr(argument, "__qualname__", str(argument)))
            elif event == "call" and caller is not None and not _is_generated(frame) and crosses(caller, frame):
                note(caller, frame.f_code.co_qualname)

        def crosses(caller: FrameType, frame: FrameType) -> bool:
            inside = _is_from(caller, modules), _is_from(frame, modules)
            return inside in ((True, False), (False, True)) and not (_is_transparent(caller) or _is_transparent(frame))

        sys.setprofile(profile)

    return trace


def _modules_of(sink: OpenSink) -> set[str]:
    parts = [sink, sink.sink, getattr(sink, "committer", None)]
    modules = {kind.__module__ for part in parts if part is not None for kind in type(part).__mro__}
    return modules - _TEMPLATES


def _is_from(frame: FrameType, modules: tuple[str, ...]) -> bool:
    return frame.f_globals.get("__name__") in modules and frame.f_code.co_name != "<module>"


def _is_generated(frame: FrameType) -> bool:
    """What `dataclass` has written, and what C code calls by itself."""
    return frame.f_code.co_filename.startswith("<") or frame.f_globals.get("__name__", "").startswith("encodings.")


def _is_transparent(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") in _TRANSPARENT or frame.f_code.co_qualname.startswith("PurePath.")


def _is_builtin(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    return (
        owner is builtins
        or isinstance(owner, (*_BUILTIN_TYPES, type))
        or (isinstance(owner, ModuleType) and owner.__name__ in ("itertools", "math", "operator", "_functools"))
    )


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
        parts = {
            f"{self.lost} rows lost{', and told' if self.told else ''}": self.lost,
            f"{self.doubled} rows doubled": self.doubled,
            self.stuck: self.stuck,
            "everybody waits until the stopped process goes on or dies": self.waits,
            "not tried, the process did not come to the step": self.missed,
        }
        return f"{self.fault}: {', '.join(words for words, holds in parts.items() if holds)}"


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
        steps: list[tuple[Story, int, str]] = []
        before: list[str] = []
        for story in stories:
            names = steps_of(story, self.trace, self.round(), self.folder / "steps")
            common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, names, strict=False)))
            steps += [(story, index, name) for index, name in enumerate(names) if index >= common]
            before = names
        return steps

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
        visible = counted(self.target.visible())
        for name, round, reported in self.tried:
            expected = counted(pa.concat_tables(batches.table for batches in round.wal))
            ids = {row[0] for row in expected}
            actual = Counter({row: n for row, n in visible.items() if row[0] in ids})
            lost, doubled = (expected - actual).total(), (actual - expected).total()
            if lost or doubled:
                self.findings.append(Finding(f"{name}{after}", lost, doubled, told=reported))

    def _try(self, name: str, fault: Callable[[Round], Outcome]) -> None:
        round = self.round()
        try:
            outcome = fault(round)
            reported = _settle(round) is Publication.CUT_OFF
        except Exception as error:  # whatever somebody's sink may raise
            self.findings.append(Finding(name, stuck=f"{type(error).__name__}: {error}"))
            return
        self.tried.append((name, round, reported))
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


PATIENCE_SECONDS = 0.2
TOLD = 20  #: findings, at most


@dataclass(frozen=True)
class Verdict:
    """`guarantee`: the strongest that no finding contradicts; at most once where some rows were lost, the sink says of
    each such epoch that it was cut off, and none was doubled. `steps`: how many a process was to be killed at, and
    stopped at; `power_lost`: whether the target's power was cut."""

    guarantee: Guarantee
    steps: int
    power_lost: bool
    findings: tuple[Finding, ...]

    @property
    def faults(self) -> int:
        """How many were tried: without those to whose step the process didn't come."""
        return 2 * self.steps - sum(finding.missed for finding in self.findings) + self.power_lost

    def __str__(self) -> str:
        worst = sorted(self.findings, key=lambda finding: (not finding.lost, not finding.stuck, not finding.doubled))
        summary = f"kept {self.guarantee.value} under {self.faults} faults" + (", and saw:" if worst else "")
        return "\n  ".join([summary, *map(str, worst[:TOLD])])


def judge(target: SinkUnderTest, trace: Trace | None = None, *, max_wait: float = PATIENCE_SECONDS) -> Verdict:
    """Kill a process at every step of `trace`, and stop one there to release it after another has finished; count rows.

    `trace`: `calls_of` the sink unless given. `max_wait`: seconds that a publisher may take beside a stopped process
    before it is said to wait for it. The target has to be fresh. Takes some hundredths of a second a fault.
    """
    with tempfile.TemporaryDirectory() as folder:
        with opened(target) as sink:
            trial = Trial(target, trace or calls_of(sink), max_wait, Path(folder))
        finish(trial.round())  # whatever is made once for a target
        steps = trial.steps()
        for step in steps:
            trial.kill(*step)
            trial.stop(*step)
        trial.count_rows()
        if power_lost := target.lose_power():
            trial.count_rows(", then the power went")
    return Verdict(_kept(trial.findings), len(steps), power_lost, tuple(trial.findings))


def _kept(findings: Sequence[Finding]) -> Guarantee:
    if any(finding.stuck or (finding.lost and not finding.told) for finding in findings):
        return Guarantee.NONE
    match any(finding.lost for finding in findings), any(finding.doubled for finding in findings):
        case False, False:
            return Guarantee.EXACTLY_ONCE
        case False, True:
            return Guarantee.AT_LEAST_ONCE
        case True, False:
            return Guarantee.AT_MOST_ONCE
    return Guarantee.NONE
