"""Sealed WALs that outlive cleanup, and their expiry.

The ledger has a row for each retained WAL. It is written before the epoch's cleanup deletes anything, and deleted once
the folder is gone. A WAL stays beyond its time while a later generation that shows its rows again is unfinished, or
keeps its own WAL.
"""

from __future__ import annotations

import logging

from lockstep.crash import CrashPoint, reach
from lockstep.definition.wal_retention import RetainedWal
from lockstep.epoch import Epoch
from lockstep.errors import LockstepError, WalCorrupt
from lockstep.protocol.hooks import Feature
from lockstep.protocol.runtime import Runtime, open_wal
from lockstep.states import Role

_log = logging.getLogger(__name__)


class RetainedWals(Feature):
    """Keeps WALs as `Pipeline(keep_wal=…)` says, and deletes them when they are due."""

    def wal_to_keep(self, runtime: Runtime, epoch: Epoch) -> tuple[str, int] | None:
        """Return the WAL that the epoch's rows were read from last. None if the pipeline keeps no WALs, or if this one
        is incomplete, for instance because an interrupted cleanup has deleted a part of it."""
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

    def cleaned(self, runtime: Runtime, epoch: Epoch, role: Role) -> None:
        try:
            expire_wals(runtime, role)
        except LockstepError as error:
            _log.warning("pipeline %s: WALs that are due stay until recovery deletes them: %s", runtime.pipeline, error)

    def sweeping_folders(self, runtime: Runtime) -> int:
        return len(expire_wals(runtime, Role.RECOVER))


def expire_wals(runtime: Runtime, role: Role) -> list[RetainedWal]:
    """Delete the retained WALs that are due, oldest first, and then those that only these have referred to.

    Raises `StagingUnavailable`; the next call continues.
    """
    if not runtime.ledger.expiring_wals(runtime.pipeline):
        return []
    deployment = runtime.ledger.deployment()
    reach(CrashPoint.EXPIRE_BEFORE_MARK)
    due = runtime.ledger.expire_wals(runtime.pipeline, role)
    reach(CrashPoint.EXPIRE_AFTER_MARK)
    for wal in due:
        runtime.staging.discard_epoch(
            deployment,
            runtime.pipeline,
            wal.epoch,
            before=CrashPoint.EXPIRE_BEFORE_DELETE,
            after=CrashPoint.EXPIRE_AFTER_DELETE,
        )
        reach(CrashPoint.EXPIRE_BEFORE_RECORD)
        runtime.ledger.delete_retained_wal(runtime.pipeline, wal.epoch, role)
        reach(CrashPoint.EXPIRE_AFTER_RECORD)
        kept_at = wal.retained_at.isoformat(timespec="seconds")
        _log.info("pipeline %s: deleted the WAL of epoch %s, kept since %s", runtime.pipeline, wal.epoch, kept_at)
    return [*due, *expire_wals(runtime, role)]
