"""Savepoints: a person takes out where an epoch ended, with the state that it left, or has a pipeline begin there."""

from __future__ import annotations

import logging

from lockstep.epoch import Epoch, Identity, Json
from lockstep.errors import IllegalTransition, InvalidPipeline, PlanMismatch, UnknownEpoch, WalCorrupt
from lockstep.runtime import Runtime
from lockstep.states import DECIDED
from lockstep.wal.savepoint import Savepoint, bring_in, read_savepoint, write_savepoint

_log = logging.getLogger(__name__)


def export(runtime: Runtime, to: str, epoch_id: int | None = None) -> Savepoint:
    """Copy the positions of a decided epoch, by default the last one, and the state that it left, to the folder `to` (a
    path or URI).

    Raises `IllegalTransition` for an undecided epoch and for a version that is gone, `InvalidPipeline` where a position
    doesn't tell what was read, `StagingRefused` if `to` holds a savepoint.
    """
    epoch = _decided(runtime, epoch_id)
    if epoch.interval is not None:
        raise InvalidPipeline(
            f"{epoch} is an interval's, and no other one goes on from it: a new pipeline begins with any interval by "
            "itself"
        )
    if runtime.ledger.has_claims(runtime.pipeline):
        raise InvalidPipeline(
            f"pipeline {runtime.pipeline} reads files: which ones it has read stands in this ledger's claims and in no "
            "position, so a savepoint can't carry it to another pipeline"
        )
    assert epoch.wal is not None and epoch.manifest_hash is not None, "a decided epoch is sealed"
    state = runtime.staging.manifest(epoch.wal, epoch.manifest_hash).state if epoch.based_on is not None else None
    deployment = runtime.ledger.deployment()
    versions = state.versions if state is not None else {}
    found = Savepoint(deployment, epoch.pipeline, epoch.id, epoch.manifest_hash, epoch.plan.positions, versions)
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
    _log.info("%s: its positions and %s states are saved in %s", epoch, len(versions), to)
    return written


def start(runtime: Runtime, source: str) -> Savepoint:
    """Have a pipeline that has no epoch yet begin with the savepoint in the folder `source`. Idempotent.

    Raises `IllegalTransition` if it has epochs, or began with another savepoint; `PlanMismatch` if its sources are
    others, or if it doesn't declare a state that would be lost; `WalCorrupt` if a file isn't as it was saved.
    """
    defined = runtime.defined
    if defined.identity is not Identity.CURSOR:
        raise InvalidPipeline(
            f"the epochs of pipeline {defined.name} are intervals: none begins where another one ended"
        )
    found = read_savepoint(source)
    divided = sorted(name for name, source in defined.sources.items() if not source.is_snapshot)
    if sorted(found.positions) != divided:
        raise PlanMismatch(
            f"the savepoint was read from the sources {sorted(found.positions)}, pipeline {defined.name} has {divided}"
        )
    if lost := sorted(found.versions.keys() - {*defined.state, *defined.drop_state}):
        raise PlanMismatch(
            f"the savepoint has the state {', '.join(lost)}, which pipeline {defined.name} lacks: declare it, or "
            "give it up with drop_state="
        )
    runtime.ledger.ensure_pipeline(
        defined.name, defined.identity, defined.hold, defined.sink_settings(), defined.wal_retention
    )
    if not runtime.ledger.require_unstarted(defined.name, found.hash):
        return found
    bring_in(found, source, runtime.states())
    runtime.ledger.start_from(defined.name, found.to_json(), found.hash)
    _log.info("pipeline %s begins where %s epoch %s ended", defined.name, found.pipeline, found.epoch)
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
    last = _last_decided(runtime)
    if last is None:
        raise UnknownEpoch(f"pipeline {runtime.pipeline} has no decided epoch: nothing to save")
    return last


def _last_decided(runtime: Runtime) -> Epoch | None:
    """The end of the order: without state that is an original, also one whose place another epoch has taken since."""
    if runtime.ledger.has_keyed_state(runtime.pipeline):
        return runtime.ledger.last_decided_epoch(runtime.pipeline)
    last = runtime.ledger.last_original(runtime.pipeline)
    while last is not None and last.state not in DECIDED:
        last = runtime.ledger.last_original(runtime.pipeline, below=last.id)
    return last
