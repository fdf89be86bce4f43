"""`judge`: which guarantee a sink keeps if its process is killed or stopped between any two of its calls."""

from __future__ import annotations

import builtins
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
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

OCCURRENCES = 2  #: how often one call at one place is a step; the third is made in the state that the second left
ROWS = 8  #: of each fault's epoch
_TEMPLATES = {
    *("builtins", "abc"),
    *(f"lockstep.sinks.{name}" for name in ("base", "values", "open_sink", "two_phase", "write_ahead", "adopting")),
}
#: modules that affect a target only by calls of other modules, which are steps of their own
_TRANSPARENT = {
    *_TEMPLATES,
    *(f"lockstep.{name}" for name in ("epoch", "sinks.handles")),
    *(f"lockstep.testing.{name}" for name in ("_under_test", "_crash_sweep", "_sealed_rows")),
    *("contextlib", "functools", "uuid"),
}
_BUILTIN_TYPES = (str, bytes, int, float, list, dict, tuple, set, frozenset, type(None))


def calls_of(sink: OpenSink) -> Trace:
    """Return a trace of every crash point, and of every call made from the modules in which the class of `sink`, its
    description and its committer are defined."""
    parts = [sink, sink.sink, getattr(sink, "committer", None)]
    modules = {kind.__module__ for part in parts if part is not None for kind in type(part).__mro__}
    return calls_from(*(modules - _TEMPLATES))


def calls_from(*modules: str) -> Trace:
    """Return a trace of every call that these modules make to other code, and other code to them, before it is made.

    Left out is what has no effect on a target: calls of builtin functions and of builtin types' methods, and calls
    within the modules, as nothing happens before the first call that the callee makes. Raises `ValueError` for a module
    that isn't there: nothing would be traced.
    """
    if missing := [module for module in modules if module not in sys.modules and find_spec(module) is None]:
        raise ValueError(f"no such modules: {', '.join(missing)}")

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


def _is_from(frame: FrameType, modules: tuple[str, ...]) -> bool:
    return frame.f_globals.get("__name__") in modules and frame.f_code.co_name != "<module>"


def _is_generated(frame: FrameType) -> bool:
    """Return True for code that `dataclass` has generated, and for what C code calls by itself."""
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


@dataclass(frozen=True)
class JudgeFinding:
    """The effect of one fault.

    `lost`, `doubled`: numbers of rows. `stuck`: why no process could finish the epoch. `waits`: every publisher waits
    for the stopped process. `missed`: the process ended before it reached the step, so the fault was not tried.
    `reported`: the sink reports that the epoch was cut off.
    """

    fault: str
    lost: int = 0
    doubled: int = 0
    stuck: str = ""
    waits: bool = False
    missed: bool = False
    reported: bool = False

    def __str__(self) -> str:
        parts = {
            f"{self.lost} rows lost{', and reported' if self.reported else ''}": self.lost,
            f"{self.doubled} rows doubled": self.doubled,
            self.stuck: self.stuck,
            "every publisher waits until the stopped process continues or dies": self.waits,
            "not tried, the process did not come to the step": self.missed,
        }
        return f"{self.fault}: {', '.join(words for words, holds in parts.items() if holds)}"


@dataclass
class Trial:
    """The faults of one judgement. Each gets an epoch with rows of its own, which are counted at the end.

    `max_wait`: seconds a publisher may take next to a stopped process before it counts as waiting for it.
    """

    target: SinkUnderTest
    trace: Trace
    max_wait: float
    folder: Path
    findings: list[JudgeFinding] = field(default_factory=list)
    #: rounds that were finished: name, round, and whether the sink reported that it was cut off
    tried: list[tuple[str, Round, bool]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def round(self) -> Round:
        number = next(self._numbers)
        return Round(self.target, number, ROWS, Decision(self.folder / f"decision-{number}"))

    def steps(self) -> list[tuple[Story, int, str]]:
        """Return (story, index, name) of each step; the beginning shared with the story before is left out."""
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
        """Kill a process at the step, then finish the epoch in another one."""
        fault_name = f"killed at step {index} ({step})"

        def fault(round: Round) -> JudgeFinding | None:
            with child_at_step(round, story, self.trace, index, signal.SIGKILL) as child:
                killed = child.wait() == -signal.SIGKILL
            finish(round)
            return None if killed else JudgeFinding(fault_name, missed=True)

        self._try(fault_name, fault)

    def stop(self, story: Story, index: int, step: str) -> None:
        """Stop a process at the step, finish the epoch in another one, then let the first one continue."""
        fault_name = f"stopped at step {index} ({step})"

        def fault(round: Round) -> JudgeFinding | None:
            with (
                ThreadPoolExecutor(1) as executor,
                child_at_step(round, story, self.trace, index, signal.SIGSTOP) as child,
            ):
                stopped = child.wait_until_stopped()
                second = executor.submit(finish, round)
                waits = not wait([second], self.max_wait).done
                child.release()
                child.wait()
            second.result()
            return (
                JudgeFinding(fault_name, missed=not stopped, waits=stopped and waits) if waits or not stopped else None
            )

        self._try(fault_name, fault)

    def count_rows(self, after: str = "") -> None:
        """Compare the rows of each fault's epoch with what the target shows now."""
        visible = counted(self.target.visible())
        for name, round, reported in self.tried:
            expected = counted(pa.concat_tables(batches.table for batches in round.wal))
            ids = {row[0] for row in expected}
            actual = Counter({row: n for row, n in visible.items() if row[0] in ids})
            lost, doubled = (expected - actual).total(), (actual - expected).total()
            if lost or doubled:
                self.findings.append(JudgeFinding(f"{name}{after}", lost, doubled, reported=reported))

    def _try(self, name: str, fault: Callable[[Round], JudgeFinding | None]) -> None:
        round = self.round()
        try:
            finding = fault(round)
            vote = round.decision.vote()
            assert vote is not None
            sweep(round.target, vote)  # as recovery does; then a publisher that doesn't know of the first one
            publication = publish(round.target, round.epoch(round.publishing_token + 1), vote, round.wal)
        except Exception as error:  # whatever the sink under test may raise
            self.findings.append(JudgeFinding(name, stuck=f"{type(error).__name__}: {error}"))
            return
        self.tried.append((name, round, publication is Publication.CUT_OFF))
        if finding is not None:
            self.findings.append(finding)


PATIENCE_SECONDS = 0.2
MAX_SHOWN = 20  #: findings in the text of a verdict


@dataclass(frozen=True)
class SinkVerdict:
    """The result of `judge`.

    `guarantee`: the strongest one that no finding contradicts. At most once: rows were lost, the sink reported each
    such epoch as cut off, and no row was doubled. `steps`: number of steps at which a process was killed and stopped.
    `power_lost`: True if the target's power was cut.
    """

    guarantee: Guarantee
    steps: int
    power_lost: bool
    findings: tuple[JudgeFinding, ...]

    @property
    def faults(self) -> int:
        """Return the number of faults tried; those whose step was not reached don't count."""
        return 2 * self.steps - sum(finding.missed for finding in self.findings) + self.power_lost

    def __str__(self) -> str:
        worst = sorted(self.findings, key=lambda finding: (not finding.lost, not finding.stuck, not finding.doubled))
        summary = f"kept {self.guarantee.value} under {self.faults} faults" + (", and saw:" if worst else "")
        return "\n  ".join([summary, *map(str, worst[:MAX_SHOWN])])


def judge(target: SinkUnderTest, trace: Trace | None = None, *, max_wait: float = PATIENCE_SECONDS) -> SinkVerdict:
    """Kill a process at every step of `trace`; stop one at every step and release it after another has finished the
    epoch; then count the rows.

    `trace`: by default `calls_of` the sink. `max_wait`: seconds a publisher may take next to a stopped process before
    it counts as waiting. The target has to be fresh. Takes some hundredths of a second per fault.
    """
    with tempfile.TemporaryDirectory() as folder:
        with opened(target) as sink:
            trial = Trial(target, trace or calls_of(sink), max_wait, Path(folder))
        finish(trial.round())  # creates what is created once per target
        steps = trial.steps()
        for step in steps:
            trial.kill(*step)
            trial.stop(*step)
        trial.count_rows()
        if power_lost := target.lose_power():
            trial.count_rows(", then the power went")
    return SinkVerdict(_guarantee_of(trial.findings), len(steps), power_lost, tuple(trial.findings))


def _guarantee_of(findings: Sequence[JudgeFinding]) -> Guarantee:
    if any(finding.stuck or (finding.lost and not finding.reported) for finding in findings):
        return Guarantee.NONE
    match any(finding.lost for finding in findings), any(finding.doubled for finding in findings):
        case False, False:
            return Guarantee.EXACTLY_ONCE
        case False, True:
            return Guarantee.AT_LEAST_ONCE
        case True, False:
            return Guarantee.AT_MOST_ONCE
    return Guarantee.NONE
