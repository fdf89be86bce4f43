"""restate: have published ranges read again and their rows replaced, each by a decision of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from lockstep import remedies
from lockstep.epoch import Epoch, Identity, Interval, RunKey
from lockstep.errors import IntervalOverlap, LockstepError, RestateRefused, UnknownEpoch
from lockstep.ledger.report import Report
from lockstep.pack import Member, move_pack, require_size
from lockstep.runtime import Runtime
from lockstep.states import DECIDED, EpochState
from lockstep.steps.generations import find_current, require_reason, require_replaceable, require_restatable
from lockstep.steps.stage_job import Launch


@dataclass(frozen=True)
class Restatable:
    """An epoch that somebody would have replaced. `refusals`: why not, by sink, or under "" where no sink is the cause.
    `took`: from the begin of its last attempt until every sink showed it, if the history has it."""

    epoch: int
    interval: Interval | None
    state: EpochState
    generation: int  #: 0: the original
    rows: Mapping[str, int]
    took: timedelta | None
    refusals: Mapping[str, str]


def find_restatable(runtime: Runtime, epoch: int | None = None, interval: Interval | None = None) -> list[Epoch]:
    """What is shown of the range of `epoch`, or of all ranges within `interval`, in their order. Raises `UnknownEpoch`
    where there is none, `IntervalOverlap` for one that is only partly within."""
    if epoch is not None:
        return [find_current(runtime, runtime.ledger.epoch(runtime.pipeline, epoch))]
    if interval is None:
        raise RestateRefused("say which epoch to restate, or from when to when")
    found = [one for one in runtime.ledger.current_epochs(runtime.pipeline, interval) if one.state in DECIDED]
    if not found:
        raise UnknownEpoch(f"pipeline {runtime.pipeline} shows nothing of {interval}")
    for one in found:
        if one.interval is None or one.interval.start < interval.start or one.interval.end > interval.end:
            raise IntervalOverlap(f"{interval} has only a part of {one}: an epoch is restated whole")
    return found


def plan(runtime: Runtime, report: Report, found: Sequence[Epoch]) -> list[Restatable]:
    """Say of each epoch what would refuse to replace it, and how long it took. Changes nothing."""
    return [_examine(runtime, report, epoch) for epoch in found]


def _examine(runtime: Runtime, report: Report, epoch: Epoch) -> Restatable:
    refusals: dict[str, str] = {}
    try:
        require_restatable(runtime, epoch)
    except LockstepError as error:
        refusals[""] = str(error)
    for name in epoch.plan.sinks:
        try:
            with runtime.opened(runtime.sink_of(epoch, name)) as sink:
                require_replaceable(sink, epoch)
        except LockstepError as error:
            refusals[name] = str(error)
    outputs = (epoch.summary or {}).get("outputs", {})
    rows = {name: facts["rows"] for name, facts in outputs.items()}
    number = epoch.generation.number if epoch.generation else 0
    return Restatable(epoch.id, epoch.interval, epoch.state, number, rows, _took(report, epoch), refusals)


def _took(report: Report, epoch: Epoch) -> timedelta | None:
    moves = [one for one in report.history(epoch.pipeline, epoch.id) if one.sink is None]
    begun = [one.at for one in moves if one.attempt == epoch.attempt]
    shown = [one.at for one in moves if one.target == EpochState.PUBLISHED]
    return shown[0] - begun[0] if begun and shown else None


def restate(
    runtime: Runtime, found: Sequence[Epoch], because: str, launch: Launch, jobs: int | None = None
) -> list[Member]:
    """Replace each epoch by a new one of its range: what fails is one of them, the others go on. Called again with the
    same reason it goes on with those that aren't done, and leaves those that are. Raises `RestateRefused`."""
    reason = require_reason(because)
    assert reason is not None
    if runtime.defined.identity is not Identity.INTERVAL:
        require_restatable(runtime, found[0])
    told = hashlib.sha256(reason.encode()).hexdigest()[:16]
    run = RunKey(remedies.COMMAND, f"{runtime.pipeline}__{told}", restate=reason)
    return move_pack(runtime, [run.member(one.interval, 0) for one in require_size(found)], launch, jobs=jobs)
