"""replan, void, release: a person freezes an undecided epoch anew, gives its range up, or lets go on what audits hold.
A decided epoch is refused."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lockstep.epoch import Claim, Epoch, Input, KeyedBy, Plan, RunKey
from lockstep.errors import IllegalTransition
from lockstep.features.generations import find_current, plan_again
from lockstep.features.restoring import plan_restored
from lockstep.observability import suggestions
from lockstep.protocol.begin import find_claims, make_plan
from lockstep.protocol.identity import require_same_pipeline
from lockstep.protocol.planned_sinks import require_shown_alike
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.sweep import roll_back
from lockstep.states import UNDECIDED

_log = logging.getLogger(__name__)


def void(runtime: Runtime, epoch_id: int, reason: str) -> Epoch:
    """Give up an undecided epoch's range. Raises `IllegalTransition` for a decided one."""
    epoch = runtime.ledger.void_epoch(runtime.pipeline, epoch_id, reason)
    roll_back(runtime, epoch)
    return epoch


def replan(runtime: Runtime, epoch_id: int, reason: str, run: RunKey | None = None) -> Epoch:
    """Plan an undecided epoch again, with today's range and sinks. An epoch that replaces others keeps their range, a
    restoring epoch its rows. `run`: the run that owns the epoch from then on.

    Raises `IllegalTransition` for an epoch that is decided or was begun meanwhile, `RestateRefused` if the replaced
    epochs were published with other sinks.
    """
    old = runtime.ledger.epoch(runtime.pipeline, epoch_id)
    advice = f"put them back for as long, or give it up: {suggestions.void(old.pipeline, old.id)}"
    require_shown_alike(runtime, runtime.ledger.replaced(old), f"replan {old}", advice)
    claims: Mapping[str, Sequence[Claim]] = {}
    if old.restores is not None:  # its rows are an earlier generation's, regardless of today's input
        plan = plan_restored(runtime, runtime.ledger.epoch(runtime.pipeline, old.restores))
    elif _keeps_range(runtime, old):
        plan = plan_again(runtime, [old], afresh=old.plan.input is not Input.FROZEN)
        claims = find_claims(runtime, plan) if old.interval else {}
    else:
        plan = _plan_anew(runtime, old)
        claims = find_claims(runtime, plan)
    plan = replace(plan, foreign=old.plan.foreign)
    epoch = runtime.ledger.replan_epoch(runtime.pipeline, epoch_id, plan, claims, reason, run, only=old.attempt)
    roll_back(runtime, old)  # with the sinks of the old plan: they hold what older attempts left
    return epoch


def _keeps_range(runtime: Runtime, old: Epoch) -> bool:
    if runtime.defined.identity is KeyedBy.CURSOR:
        return old.generation is not None  # later epochs go on where it ends
    return old.plan.input is Input.FROZEN


def _plan_anew(runtime: Runtime, old: Epoch) -> Plan:
    before = None
    if runtime.defined.identity is KeyedBy.CURSOR:
        last = runtime.ledger.last_original(runtime.pipeline)
        if old.plan.snapshots and last is not None and last.id != old.id:  # the others' ends stay where they are
            return replace(plan_again(runtime, [old], afresh=True), input=old.plan.input)
        _require_last(old, last)
        before = runtime.ledger.last_original(runtime.pipeline, below=old.id)
    return make_plan(runtime, old.interval, before, replaced=old)


def replan_for(runtime: Runtime, run: RunKey, reason: str, number: int | None = None) -> Epoch | None:
    """`replan` the undecided epoch that `run` begins next: that of its interval, the last one of a cursor pipeline, or
    the replacement of an epoch that the run names. None if the run has its epoch already, so that it is replanned once
    even if the task is retried.

    `number`: the expected epoch. Raises `IllegalTransition` for another one, or if none is undecided; `NameTaken`; and
    what `replan` raises.
    """
    if runtime.find_attempt(run) is not None:
        return None
    epoch = _undecided(runtime, run)
    if epoch is None or number not in (None, epoch.id):
        described = f"epoch {number} of {runtime.pipeline}" if number is not None else f"an epoch of {runtime.pipeline}"
        now = f"the one that it begins is {epoch}" if epoch else "none of its range is undecided"
        raise IllegalTransition(f"run {run.run_id} was to replan {described}, but {now}")
    require_same_pipeline(runtime)
    return replan(runtime, epoch.id, reason, run)


def _undecided(runtime: Runtime, run: RunKey) -> Epoch | None:
    if run.interval is not None:
        epoch = runtime.ledger.epoch_of_interval(runtime.pipeline, run.interval)
    elif run.epoch is not None:
        epoch = runtime.ledger.epoch(runtime.pipeline, run.epoch)
    else:
        epoch = runtime.ledger.last_original(runtime.pipeline)
    names_a_range = run.interval is not None or run.epoch is not None
    if names_a_range and epoch is not None and epoch.state not in UNDECIDED:
        epoch = runtime.ledger.pending_replacement(find_current(runtime, epoch))
    return epoch if epoch is not None and epoch.state in UNDECIDED else None


def _require_last(epoch: Epoch, last: Epoch | None) -> None:
    if last is not None and last.id != epoch.id:
        raise IllegalTransition(
            f"can't replan {epoch}: epoch {last.id} starts where it ends; replan the last epoch, or give this one "
            f"up: {suggestions.void(epoch.pipeline, epoch.id)}"
        )


def release(runtime: Runtime, epoch_id: int, reason: str, manifest: str | None = None) -> Epoch:
    """Let an epoch go on that its audits hold; its next run does. Raises `IllegalTransition` for any other, also for
    one that is held with other rows: `manifest` is how the hash of those begins that were looked at."""
    return runtime.ledger.release_epoch(runtime.pipeline, epoch_id, reason, only=manifest)
