"""abort: decide first. Raising the attempt in the ledger voids its votes; then lower tokens are rolled back."""

from __future__ import annotations

import logging

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Epoch, RunKey
from lockstep.errors import RunMismatch
from lockstep.observability.log_context import bind_log_context, log_context
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.sweep import roll_back
from lockstep.states import UNDECIDED, Role

_log = logging.getLogger(__name__)


def abort(runtime: Runtime, run: RunKey, reason: str = "") -> Epoch | None:
    """Abort this run's own attempt, and no other. Return None if its `begin` never opened one."""
    try:
        attempt = runtime.find_attempt(run)
    except RunMismatch as mismatch:
        _log.info("nothing to abort: %s", mismatch)
        return None
    if attempt is None:
        return None
    return abort_epoch(runtime, attempt.epoch, Role.ABORT, only=attempt.token, reason=reason)


@log_context
def abort_epoch(runtime: Runtime, epoch_id: int, role: Role, *, only: int | None = None, reason: str = "") -> Epoch:
    """Void an undecided epoch's attempt (`only` this one, if given) and roll it back. A decided epoch is unchanged."""
    bind_log_context(pipeline=runtime.pipeline, epoch=epoch_id, token=only)
    reach(CrashPoint.ABORT_BEFORE_RAISE)
    epoch = runtime.ledger.raise_attempt(runtime.pipeline, epoch_id, role, only=only, reason=reason)
    reach(CrashPoint.ABORT_AFTER_RAISE)
    if epoch.state in UNDECIDED:
        roll_back(runtime, epoch)
        reach(CrashPoint.ABORT_AFTER_ROLLBACK)
        _log.info("%s: its attempts are void, what they left is deleted", epoch)
    else:
        _log.info("%s is %s: there is nothing to abort", epoch, epoch.state)
    return epoch
