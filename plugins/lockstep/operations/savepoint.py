"""Savepoints: a person takes the state of an epoch out, or has a new pipeline begin with one."""

from __future__ import annotations

import logging

from lockstep.epoch import Epoch, Identity, Json
from lockstep.errors import IllegalTransition, InvalidPipeline, PlanMismatch, UnknownEpoch, WalCorrupt
from lockstep.runtime import Runtime
from lockstep.states import DECIDED
from lockstep.wal.savepoint import Savepoint, bring_in, read_savepoint, write_savepoint

_log = logging.getLogger(__name__)


def export(runtime: Runtime, to: str, epoch_id: int | None = None) -> Savepoint:
    """Copy the state of a decided epoch, by default the last one, to the folder `to` (a path or URI).

    Raises `IllegalTransition` for an undecided epoch and for a version that is gone, `InvalidPipeline` where a position
    doesn't tell what was read, `StagingRefused` if `to` holds a savepoint.
    """
    epoch = _decided(runtime, epoch_id)
    if epoch.wal is None or epoch.manifest_hash is None or epoch.based_on is None:
        raise InvalidPipeline(f"{epoch} has no state: nothing to save")
    if runtime.ledger.has_claims(runtime.pipeline):
        raise InvalidPipeline(
            f"pipeline {runtime.pipeline} reads files: which ones it has read stands in this ledger's claims and in no "
            "position, so a savepoint can't carry it to another pipeline"
        )
    state = runtime.staging.manifest(epoch.wal, epoch.manifest_hash).state
    if state is None:
        raise InvalidPipeline(f"{epoch} has no state: nothing to save")
    positions = {name: found.end for name, found in epoch.plan.sources.items()}
    deployment = runtime.ledger.deployment()
    found = Savepoint(deployment, epoch.pipeline, epoch.id, epoch.manifest_hash, positions, state.versions)
    try:
        written = write_savepoint(found, runtime.states(), to)
    except WalCorrupt as error:
        last = runtime.ledger.last_decided_epoch(runtime.pipeline)
        if last is None or last.id == epoch.id:
            raise
        raise IllegalTransition(
            f"the state of {epoch} can't be saved whole: newer epochs are published, up to epoch {last.id}, and let go "
            f"of what they no longer need ({error})"
        ) from error
    _log.info("%s: its state is saved in %s", epoch, to)
    return written


def start(runtime: Runtime, source: str) -> Savepoint:
    """Have a pipeline that has no epoch yet begin with the savepoint in the folder `source`. Idempotent.

    Raises `IllegalTransition` if it has epochs, or began with another savepoint; `PlanMismatch` if its sources are
    others; `WalCorrupt` if a file isn't as it was saved.
    """
    defined = runtime.defined
    if not defined.state or defined.identity is not Identity.CURSOR:
        raise InvalidPipeline(f"pipeline {defined.name} declares no state to begin with")
    found = read_savepoint(source)
    if sorted(found.positions) != sorted(defined.sources):
        raise PlanMismatch(
            f"the savepoint was read from the sources {sorted(found.positions)}, pipeline {defined.name} has "
            f"{sorted(defined.sources)}"
        )
    runtime.ledger.ensure_pipeline(
        defined.name, defined.identity, defined.hold, defined.sink_settings(), defined.wal_retention
    )
    if not runtime.ledger.require_unstarted(defined.name, found.hash):
        return found
    bring_in(found, source, runtime.states())
    runtime.ledger.start_from(defined.name, found.to_json(), found.hash)
    _log.info("pipeline %s begins with the state of %s epoch %s", defined.name, found.pipeline, found.epoch)
    return found


def summarize(found: Savepoint) -> Json:
    """What a person is told: from which epoch it is, its positions, and each state's rows and bytes."""
    return {
        "pipeline": found.pipeline,
        "epoch": found.epoch,
        "hash": found.hash,
        "positions": dict(found.positions),
        "state": {name: {"rows": one.rows, "bytes": one.bytes} for name, one in found.versions.items()},
    }


def _decided(runtime: Runtime, epoch_id: int | None) -> Epoch:
    if epoch_id is not None:
        epoch = runtime.ledger.epoch(runtime.pipeline, epoch_id)
        if epoch.state not in DECIDED:
            raise IllegalTransition(f"can't save {epoch}: it is {epoch.state}; its state may yet be another one")
        return epoch
    last = runtime.ledger.last_decided_epoch(runtime.pipeline)
    if last is None:
        raise UnknownEpoch(f"pipeline {runtime.pipeline} has no decided epoch: nothing to save")
    return last
