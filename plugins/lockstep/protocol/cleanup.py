"""cleanup: delete the WAL once every sink has published. Delete first, then record.

Before anything is deleted the ledger records, once, which WAL is retained. So a cleanup that was stopped while another
definition was deployed, or that found other files, deletes nothing that another one retains.
"""

from __future__ import annotations

import logging
from functools import partial

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Epoch, RunKey
from lockstep.errors import IllegalTransition, WalCorrupt
from lockstep.observability import suggestions
from lockstep.observability.log_context import bind_attempt, log_context
from lockstep.protocol.alarms import unless_superseded
from lockstep.protocol.hooks import first_answer
from lockstep.protocol.runtime import Runtime
from lockstep.states import DECIDED, FINISHED, EpochState, Role

_log = logging.getLogger(__name__)


@log_context
def cleanup(runtime: Runtime, run: RunKey) -> Epoch:
    """Clean this run's epoch up. Raises `IllegalTransition` unless it is published."""
    return clean(runtime, runtime.epoch_of(bind_attempt(runtime.attempt_of(run))), Role.CLEANUP)


def clean(runtime: Runtime, epoch: Epoch, role: Role) -> Epoch:
    """Archive manifest and quarantine, delete the epoch's WAL folders except a retained one, and record it. Files that
    a table has adopted belong to the table and stay."""
    if epoch.state in FINISHED & DECIDED:
        return epoch
    if epoch.state is not EpochState.PUBLISHED or epoch.wal is None:
        remedy = f": {suggestions.recover(epoch.pipeline)} publishes it" if epoch.state is EpochState.COMMITTED else ""
        raise IllegalTransition(f"can't clean up {epoch}: it is {epoch.state}; its WAL may still be needed{remedy}")
    return unless_superseded(partial(_clean, runtime, epoch, epoch.wal, role), partial(_find_cleaned, runtime, epoch))


def _find_cleaned(runtime: Runtime, epoch: Epoch) -> Epoch | None:
    """Return the epoch if another process has cleaned it up."""
    current = runtime.ledger.epoch(epoch.pipeline, epoch.id)
    return current if current.state in FINISHED & DECIDED else None


def _kept_manifest(runtime: Runtime, epoch: Epoch, wal: str) -> str:
    """Return the WAL whose manifest is archived: the decided one, unless that is damaged."""
    if epoch.restaged is None:
        return wal
    try:
        runtime.staging.manifest(wal, epoch.manifest_hash or "")
    except WalCorrupt:
        return epoch.restaged.wal
    return wal


def _clean(runtime: Runtime, epoch: Epoch, wal: str, role: Role) -> Epoch:
    for feature in runtime.features:
        feature.cleaning(runtime, epoch)
    deployment = runtime.ledger.deployment()
    if epoch.interval is None:  # markers carry an interval, but not the range of a cursor's epoch
        reach(CrashPoint.CLEANUP_BEFORE_ARCHIVE)
        runtime.staging.keep_plan(deployment, epoch.pipeline, epoch.id, epoch.plan.to_json())
    reach(CrashPoint.CLEANUP_BEFORE_ARCHIVE)
    rows = epoch.restaged.wal if epoch.restaged else wal
    runtime.staging.archive(_kept_manifest(runtime, epoch, wal), deployment, epoch.pipeline, epoch.id, rows)
    reach(CrashPoint.CLEANUP_AFTER_ARCHIVE)
    for feature in runtime.features:
        feature.archived(runtime, epoch)
    keep = first_answer(feature.wal_to_keep(runtime, epoch) for feature in runtime.features)
    reach(CrashPoint.CLEANUP_BEFORE_CHOICE)
    chosen = runtime.ledger.decide_retention(epoch, role, keep)  # of two cleanups the first one's choice counts
    reach(CrashPoint.CLEANUP_AFTER_CHOICE)
    if chosen is None:
        return runtime.ledger.epoch(epoch.pipeline, epoch.id)
    stays = chosen.wal if chosen.expired_at is None else None
    runtime.staging.discard_epoch(deployment, epoch.pipeline, epoch.id, exclude=stays)
    for feature in runtime.features:
        feature.wal_deleted(runtime, epoch)
    reach(CrashPoint.CLEANUP_BEFORE_RECORD)
    epoch = runtime.ledger.record_cleanup(epoch, role)
    reach(CrashPoint.CLEANUP_AFTER_RECORD)
    _log.info("%s is %s", epoch, epoch.state)
    for feature in runtime.features:
        feature.cleaned(runtime, epoch, role)
    return epoch
