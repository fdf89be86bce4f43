"""commit: the decision, one row in the ledger."""

from __future__ import annotations

import logging

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Epoch, RunKey
from lockstep.runtime import Runtime

_log = logging.getLogger(__name__)


def commit(runtime: Runtime, run: RunKey) -> Epoch:
    """Decide this run's epoch, if every sink of its plan has voted in this run's attempt. From then on every sink must
    show it. Raises `NotPrepared`, `Fenced`, `OutOfOrder`.
    """
    attempt = runtime.attempt_of(run)
    reach(CrashPoint.COMMIT_BEFORE_DECISION)
    epoch = runtime.ledger.commit_epoch(attempt)
    reach(CrashPoint.COMMIT_AFTER_DECISION)
    _log.info("%s is %s, manifest %s", epoch, epoch.state, (epoch.manifest_hash or "")[:12])
    return epoch
