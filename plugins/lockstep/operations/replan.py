"""replan, void, release: a person freezes an undecided epoch anew, gives its range up, or lets go on what audits hold.
A decided epoch is refused."""

from __future__ import annotations

import logging

from lockstep import remedies
from lockstep.epoch import Epoch, Identity
from lockstep.errors import (
    IllegalTransition,
)
from lockstep.roles.begin import find_claims, make_plan
from lockstep.runtime import Runtime
from lockstep.steps.sweep import roll_back

_log = logging.getLogger(__name__)


def void(runtime: Runtime, epoch_id: int, reason: str) -> Epoch:
    """Give an undecided epoch's range up for good. Raises `IllegalTransition` for a decided one."""
    epoch = runtime.ledger.void_epoch(runtime.pipeline, epoch_id, reason)
    roll_back(runtime, epoch)
    return epoch


def replan(runtime: Runtime, epoch_id: int, reason: str) -> Epoch:
    """Freeze an undecided epoch anew: today's range, today's sinks. Raises `IllegalTransition` for a decided one."""
    old = runtime.ledger.epoch(runtime.pipeline, epoch_id)
    before = None
    if runtime.defined.identity is Identity.CURSOR:
        _require_last(runtime, old)
        before = runtime.ledger.epoch_before(runtime.pipeline, epoch_id)
    plan = make_plan(runtime, old.interval, before, replaced=old)
    epoch = runtime.ledger.replan_epoch(runtime.pipeline, epoch_id, plan, find_claims(runtime, plan), reason)
    roll_back(runtime, old)  # with the sinks of the old plan: they hold what older attempts left
    return epoch


def _require_last(runtime: Runtime, epoch: Epoch) -> None:
    last = runtime.ledger.last_epoch(runtime.pipeline)
    if last is not None and last.id != epoch.id:
        raise IllegalTransition(
            f"can't replan {epoch}: epoch {last.id} starts where it ends; replan the last epoch, or give this one "
            f"up: {remedies.void(epoch.pipeline, epoch.id)}"
        )


def release(runtime: Runtime, epoch_id: int, reason: str) -> Epoch:
    """Let an epoch go on that its audits hold; its next run does. Raises `IllegalTransition` for any other."""
    return runtime.ledger.release_epoch(runtime.pipeline, epoch_id, reason)
