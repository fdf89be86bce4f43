"""restate: have published ranges read again and their rows replaced, each by a decision of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from lockstep.audits.evaluate import AskSpark
from lockstep.epoch import Epoch, Input, Interval, KeyedBy, RunKey
from lockstep.errors import IntervalOverlap, LockstepError, RestateRefused, UnknownEpoch
from lockstep.features.generations import (
    dependent_epochs,
    find_current,
    plan_again,
    require_reason,
    require_replaceable,
    require_restatable,
)
from lockstep.ledger.report import Report
from lockstep.observability import suggestions
from lockstep.protocol.pack import Member, move_pack, require_size
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.stage_job import Launch
from lockstep.states import DECIDED, EpochState


@dataclass(frozen=True)
class Restatable:
    """An epoch to be replaced. `refusals`: why not, by sink, or under "" if no sink is the cause. `took`: duration from
    the begin of its last attempt until every sink showed it, if known."""

    epoch: int
    interval: Interval | None
    state: EpochState
    generation: int  #: 0: the original
    rows: Mapping[str, int]
    took: timedelta | None
    refusals: Mapping[str, str]
    through: int | None = None  #: with state: the last of the later epochs that are replaced with it


def find_restatable(runtime: Runtime, epoch: int | None = None, interval: Interval | None = None) -> list[Epoch]:
    """The published epoch of the range of `epoch`, or those of all ranges within `interval`, in order. Raises
    `UnknownEpoch` if there is none, `IntervalOverlap` for one that is partly within."""
    if epoch is not None:
        return [find_current(runtime, runtime.ledger.epoch(runtime.pipeline, epoch))]
    if interval is None:
        raise RestateRefused("say which epoch to restate, or from when to when")
    if runtime.defined.identity is KeyedBy.CURSOR:
        raise RestateRefused(f"the epochs of {runtime.pipeline} are numbers: say --epoch, and no time")
    current = runtime.ledger.current_epochs(runtime.pipeline, interval)
    epochs = [epoch for epoch in current if epoch.state in DECIDED]
    if not epochs:
        raise UnknownEpoch(f"pipeline {runtime.pipeline} shows nothing of {interval}")
    for decided in epochs:
        if decided.interval is None or decided.interval.start < interval.start or decided.interval.end > interval.end:
            raise IntervalOverlap(f"{interval} has only a part of {decided}: an epoch is restated whole")
    return epochs


def plan(runtime: Runtime, report: Report, epochs: Sequence[Epoch], reads: Input | None = None) -> list[Restatable]:
    """Say of each epoch what would refuse to replace it, and how long it took. Changes nothing."""
    return [_examine(runtime, report, epoch, reads) for epoch in epochs]


def _examine(runtime: Runtime, report: Report, epoch: Epoch, reads: Input | None) -> Restatable:
    refusals: dict[str, str] = {}
    replaced = dependent_epochs(runtime, epoch)
    try:
        require_restatable(runtime, replaced)
        if reads is Input.FROZEN or epoch.interval is None:
            plan_again(runtime, replaced, afresh=reads is not Input.FROZEN)
    except LockstepError as error:
        refusals[""] = str(error)
    for name in epoch.plan.sinks:
        try:
            with runtime.opened(runtime.sink_of(epoch, name)) as sink:
                for member in replaced:
                    require_replaceable(runtime, sink, member)
        except LockstepError as error:
            refusals[name] = str(error)
    outputs = epoch.counted
    rows = {name: facts["rows"] for name, facts in outputs.items()}
    number = epoch.generation.number if epoch.generation else 0
    through = replaced[-1].id if len(replaced) > 1 else None
    return Restatable(epoch.id, epoch.interval, epoch.state, number, rows, report.took(epoch), refusals, through)


def restate(
    runtime: Runtime,
    epochs: Sequence[Epoch],
    reason: str,
    launch: Launch,
    jobs: int | None = None,
    request: str | None = None,
    reads: Input | None = None,
    ask_spark: AskSpark | None = None,
) -> list[Member]:
    """Replace each epoch by a new one of its range: what fails is one of them, the others go on. Called again with the
    same reason and input, and the same `request` if any, it goes on with those that aren't done, and leaves those that
    are; with another one it replaces all of them once more. Given twice at a time, the second one leaves alone what the
    first one is at. `ask_spark`: where Spark is at hand for audits. Raises `RestateRefused`."""
    reason = require_reason(reason, request)
    digest = hashlib.sha256(reason.encode()).hexdigest()[:16]
    again = f"__{reads}" if reads is Input.FROZEN else ""
    run = RunKey(suggestions.COMMAND, f"{runtime.pipeline}__{digest}{again}", restate=reason, input=reads)
    runs = [_run_of(run, epoch) for epoch in require_size(epochs)]
    return move_pack(runtime, runs, launch, jobs=jobs, ask_spark=ask_spark)


def _run_of(run: RunKey, epoch: Epoch) -> RunKey:
    member = run.member(epoch.interval, epoch.root)
    return member if epoch.interval else replace(member, epoch=epoch.root)
