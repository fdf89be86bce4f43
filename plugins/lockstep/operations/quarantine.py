"""Quarantine, looked into: how many rows audits and sources have sent there, and the rows themselves. It only reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lockstep.epoch import Epoch, Json
from lockstep.errors import InvalidPipeline, NotPrepared, WalGone
from lockstep.protocol.runtime import Runtime
from lockstep.states import EpochState
from lockstep.wal.manifest import Manifest
from lockstep.wal.reading import OutputBatches

_ARCHIVED = (EpochState.CLEANED, EpochState.REPLACED)


@dataclass(frozen=True)
class QuarantineLog:
    """Quarantine of one sealed epoch. `outputs`: rows in total and by audit, for each output with such audits;
    `sources`: malformed records. `folder`: relative to staging."""

    epoch: Epoch
    folder: str
    outputs: Mapping[str, Json]
    sources: Mapping[str, int]


def find_quarantine(runtime: Runtime, epoch_id: int) -> QuarantineLog:
    """The seal's counts. Raises `NotPrepared` before the seal, `WalGone` for a void epoch, `UnknownEpoch`."""
    epoch = _sealed(runtime, epoch_id)
    summary: dict[str, Json] = epoch.summary or {}
    sources = {name: counts["quarantined"] for name, counts in summary.get("sources", {}).items()}
    place = runtime.staging.quarantine_folder(epoch.wal or "", archived=_is_archived(runtime, epoch))
    outputs = summary.get("quarantined", {})
    return QuarantineLog(epoch, place, outputs, {name: rows for name, rows in sources.items() if rows})


def open_quarantined(runtime: Runtime, epoch_id: int, output: str) -> OutputBatches | None:
    """The rows of an output that audits sent to quarantine, with the audits' names; None if there are none.

    Every file is compared with the manifest before its first row. The rows remain after cleanup. Raises
    `InvalidPipeline` for an output without quarantining audits, `WalCorrupt`, `WalGone`, `NotPrepared`, `UnknownEpoch`,
    `StagingUnavailable`.
    """
    epoch = _sealed(runtime, epoch_id)
    archived = _is_archived(runtime, epoch)
    manifest = _manifest_of_rows(runtime, epoch, archived)
    if output not in manifest.quarantined:
        some = ", ".join(sorted(manifest.quarantined)) or "of none"
        raise InvalidPipeline(
            f"{epoch}: no audit sends rows of output {output!r} to quarantine; there are those of {some}"
        )
    return runtime.staging.quarantined(manifest, output, archived=archived)


def _sealed(runtime: Runtime, epoch_id: int) -> Epoch:
    """The epoch that sealed the rows: for a restored epoch the one whose rows it shows again."""
    epoch = runtime.ledger.epoch(runtime.pipeline, epoch_id)
    if epoch.state is EpochState.VOID:
        raise WalGone(f"{epoch} was given up ({epoch.reason}): nothing of it is kept")
    if epoch.wal is None or epoch.manifest_hash is None:
        raise NotPrepared(f"{epoch} is {epoch.state}: what goes to quarantine is known when it is sealed")
    return epoch if epoch.restores is None else _sealed(runtime, epoch.restores)


def _is_archived(runtime: Runtime, epoch: Epoch) -> bool:
    """True if cleanup has moved the rows. Cleanup moves them before it records that, and may stop in between."""
    if epoch.state is EpochState.PUBLISHED:
        return runtime.staging.is_quarantine_archived(epoch.restaged.wal if epoch.restaged else epoch.wal or "")
    return epoch.state in _ARCHIVED


def _manifest_of_rows(runtime: Runtime, epoch: Epoch, archived: bool) -> Manifest:
    """The manifest that lists the existing files."""
    staging, wal, sealed = runtime.staging, epoch.wal or "", epoch.manifest_hash or ""
    if epoch.restaged is None:
        return staging.manifest(wal, sealed)
    if not archived:
        return staging.manifest(epoch.restaged.wal, epoch.restaged.manifest_hash)
    restaged = epoch.restaged.manifest_hash
    return staging.kept_quarantine_manifest(runtime.ledger.deployment(), epoch.pipeline, epoch.id, restaged)
