"""What a sink really keeps: it is killed, and stopped, between any two of its calls, and its rows are counted."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lockstep.sinks.values import Guarantee
from lockstep.testing._calls import calls_of
from lockstep.testing._crash_sweep import Trace, finish
from lockstep.testing._trial import Finding, Trial
from lockstep.testing._under_test import SinkUnderTest, opened

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
        worst = sorted(self.findings, key=lambda one: (not one.lost, not one.stuck, not one.doubled))
        told = f"kept {self.guarantee.value} under {self.faults} faults" + (", and saw:" if worst else "")
        return "\n  ".join([told, *map(str, worst[:TOLD])])


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
