"""Sealed WALs that stay after cleanup: which of them may, and letting go of those that are due.

The ledger says which ones there are: a row comes before the epoch's cleanup deletes anything, and goes when the folder
is gone. Of an epoch that is shown nothing rests on them, unless a later life of its range shows these rows again: then
they stay for as long as that is unfinished, or keeps its own WAL.
"""

from __future__ import annotations

import logging

from lockstep.crash import CrashPoint, reach
from lockstep.definition.wal_retention import RetainedWal
from lockstep.epoch import Epoch
from lockstep.errors import WalCorrupt
from lockstep.protocol.runtime import Runtime, open_wal
from lockstep.states import Role

_log = logging.getLogger(__name__)


def find_wal_to_keep(runtime: Runtime, epoch: Epoch) -> tuple[str, int] | None:
    """Folder and bytes of what stays of a published epoch: what its rows were read from last. None where the pipeline
    keeps no WALs, or this one isn't whole: a cleanup that was cut off has deleted some of it, say."""
    if not runtime.ledger.wal_retention(epoch.pipeline).keeps:
        return None
    try:
        wal = open_wal(runtime.staging, epoch)
        for output in wal.outputs(wal.staged):
            output.check_listed()
    except WalCorrupt as damage:
        _log.warning("%s: its WAL can't be kept: %s", epoch, damage)
        return None
    return wal.folder, sum(wal.manifest.outputs[name].bytes for name in wal.own)


def expire_wals(runtime: Runtime, role: Role) -> list[RetainedWal]:
    """Delete the kept WALs that are due, oldest first, and then those that only these have referred to. Raises
    `StagingUnavailable`; the next call goes on."""
    if not runtime.ledger.expiring_wals(runtime.pipeline):
        return []
    deployment = runtime.ledger.deployment()
    reach(CrashPoint.EXPIRE_BEFORE_MARK)
    due = runtime.ledger.expire_wals(runtime.pipeline, role)
    reach(CrashPoint.EXPIRE_AFTER_MARK)
    for one in due:
        runtime.staging.discard_epoch(
            deployment,
            runtime.pipeline,
            one.epoch,
            before=CrashPoint.EXPIRE_BEFORE_DELETE,
            after=CrashPoint.EXPIRE_AFTER_DELETE,
        )
        reach(CrashPoint.EXPIRE_BEFORE_RECORD)
        runtime.ledger.delete_retained_wal(runtime.pipeline, one.epoch, role)
        reach(CrashPoint.EXPIRE_AFTER_RECORD)
        _log.info("pipeline %s: the WAL of epoch %s is gone, it was kept since %s", *_told(runtime, one))
    return [*due, *expire_wals(runtime, role)]


def _told(runtime: Runtime, one: RetainedWal) -> tuple[str, int, str]:
    return runtime.pipeline, one.epoch, one.retained_at.isoformat(timespec="seconds")
