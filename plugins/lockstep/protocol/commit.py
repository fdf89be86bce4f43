"""commit: the decision, one row in the ledger."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Epoch, RunKey
from lockstep.errors import LockstepError
from lockstep.observability.log_context import bind_attempt, bind_log_context, log_context
from lockstep.protocol.runtime import Runtime

_log = logging.getLogger(__name__)


@log_context
def commit(runtime: Runtime, run: RunKey) -> Epoch:
    """Decide this run's epoch if every sink of its plan has voted in this run's attempt. From then on every sink must
    show it. Raises `NotPrepared`, `Fenced`, `OutOfOrder`.
    """
    attempt = bind_attempt(runtime.attempt_of(run))
    reach(CrashPoint.COMMIT_BEFORE_DECISION)
    epoch = runtime.ledger.commit_epoch(attempt)
    reach(CrashPoint.COMMIT_AFTER_DECISION)
    _log.info("%s is %s, manifest %s", epoch, epoch.state, (epoch.manifest_hash or "")[:12])
    return epoch


@log_context
def commit_together(runtime: Runtime, runs: Sequence[RunKey]) -> list[Epoch | LockstepError]:
    """Decide the epochs of several runs in one ledger transaction; return for each the epoch, or what `commit` would
    raise. An epoch that can't be decided doesn't affect the others. Raises `LedgerUnavailable`: then the outcome is
    unknown, try again.
    """
    attempts = [runtime.attempt_of(run) for run in runs]
    reach(CrashPoint.COMMIT_BEFORE_DECISION)
    outcomes = runtime.ledger.commit_epochs(attempts)
    reach(CrashPoint.COMMIT_AFTER_DECISION)
    for outcome in outcomes:
        if isinstance(outcome, Epoch):
            bind_log_context(pipeline=outcome.pipeline, epoch=outcome.id, token=outcome.attempt)
            _log.info("%s is %s, manifest %s", outcome, outcome.state, (outcome.manifest_hash or "")[:12])
    return outcomes
