"""Savepoints: a person takes out where an epoch ended, with the state that it left, has a pipeline
begin there, or has all that follows it restated."""

from __future__ import annotations

import logging
from typing import NoReturn

from lockstep.epoch import Epoch, Json, KeyedBy
from lockstep.errors import IllegalTransition, InvalidPipeline, PlanMismatch, RestateRefused, UnknownEpoch, WalCorrupt
from lockstep.features.generations import find_current
from lockstep.features.keyed_state import hands_on_state
from lockstep.protocol.identity import register_pipeline
from lockstep.protocol.runtime import Runtime
from lockstep.states import DECIDED, EpochState
from lockstep.wal.savepoint import Savepoint, import_savepoint, read_savepoint, restore_state_files, write_savepoint

_log = logging.getLogger(__name__)


def export(runtime: Runtime, to: str, epoch_id: int | None = None) -> Savepoint:
    """Copy the positions and state of a decided epoch (default: the last one) to the folder `to` (a path or URI).

    Raises `IllegalTransition` for an undecided epoch or a deleted state version, `InvalidPipeline` if a position
    doesn't identify what was read, `StagingRefused` if `to` contains a savepoint.
    """
    epoch = _decided(runtime, epoch_id)
    if epoch.interval is not None:
        raise InvalidPipeline(
            f"{epoch} is an interval's, and no other one goes on from it: a new pipeline begins with any interval by "
            "itself"
        )
    if runtime.ledger.has_claims(runtime.pipeline):
        raise InvalidPipeline(
            f"pipeline {runtime.pipeline} reads files: which ones it has read is only in this ledger's claims, in no "
            "position, so a savepoint can't carry it to another pipeline"
        )
    assert epoch.wal is not None and epoch.manifest_hash is not None, "a decided epoch is sealed"
    state = runtime.staging.manifest(epoch.wal, epoch.manifest_hash).state if epoch.based_on is not None else None
    deployment = runtime.ledger.deployment()
    versions = state.versions if state is not None else {}
    savepoint = Savepoint(deployment, epoch.pipeline, epoch.id, epoch.manifest_hash, epoch.plan.positions, versions)
    try:
        written = write_savepoint(savepoint, runtime.states(), to)
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
    if defined.identity is not KeyedBy.CURSOR:
        raise InvalidPipeline(
            f"the epochs of pipeline {defined.name} are intervals: none begins where another one ended"
        )
    savepoint = read_savepoint(source)
    divided = sorted(name for name, source in defined.sources.items() if not source.is_snapshot)
    if sorted(savepoint.positions) != divided:
        raise PlanMismatch(
            f"the savepoint was read from the sources {sorted(savepoint.positions)}, "
            f"pipeline {defined.name} has {divided}"
        )
    if lost := sorted(savepoint.versions.keys() - {*defined.state, *defined.drop_state}):
        raise PlanMismatch(
            f"the savepoint has the state {', '.join(lost)}, which pipeline {defined.name} lacks: declare it, or "
            "give it up with drop_state="
        )
    register_pipeline(runtime)
    if not runtime.ledger.require_unstarted(defined.name, savepoint.hash):
        return savepoint
    import_savepoint(savepoint, source, runtime.states())
    runtime.ledger.start_from(defined.name, savepoint.to_json(), savepoint.hash)
    _log.info("pipeline %s begins where %s epoch %s ended", defined.name, savepoint.pipeline, savepoint.epoch)
    return savepoint


def summarize(savepoint: Savepoint) -> Json:
    """The savepoint's epoch, its positions, and each state's rows and bytes."""
    return {
        "pipeline": savepoint.pipeline,
        "epoch": savepoint.epoch,
        "hash": savepoint.hash,
        "positions": dict(savepoint.positions),
        "state": {name: {"rows": version.rows, "bytes": version.bytes} for name, version in savepoint.versions.items()},
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
    """The last epoch in order; without state an original, even if it was replaced."""
    if runtime.ledger.has_keyed_state(runtime.pipeline):
        return runtime.ledger.last_decided_epoch(runtime.pipeline)
    last = runtime.ledger.last_original(runtime.pipeline)
    while last is not None and last.state not in DECIDED:
        last = runtime.ledger.last_original(runtime.pipeline, below=last.id)
    return last


# --- restating from a savepoint ---


def find_after(runtime: Runtime, source: str) -> list[Epoch]:
    """The epochs to `restate` so that all that follows the savepoint in the folder `source` is read again, in order:
    with state the first one, which takes all others along and starts from the savepoint's state.

    Raises `RestateRefused` for a savepoint of another history and where nothing follows, `PreflightRefused` for a sink
    that can't replace what it shows.
    """
    if runtime.defined.identity is not KeyedBy.CURSOR:
        raise InvalidPipeline(
            f"the epochs of {runtime.pipeline} are intervals, which follow from nothing: say --from and --to"
        )
    epoch = _find_own(runtime, read_savepoint(source), source)
    following = _find_following(runtime, epoch)
    for name in following[0].plan.sinks:
        with runtime.opened(runtime.sink_of(following[0], name)) as sink:
            sink.require_replaceable()
    return following


def put_back_state(runtime: Runtime, source: str) -> None:
    """Copy what the epoch's state needs, and staging has let go of, from the savepoint in `source` back to staging.
    Raises `WalCorrupt` if a file isn't as it was saved."""
    savepoint = read_savepoint(source)
    epoch = _find_own(runtime, savepoint, source)
    if epoch.based_on is not None:
        state = runtime.staging.manifest(epoch.wal or "", epoch.manifest_hash or "").state
        copied = restore_state_files(savepoint, source, state.versions if state else {}, runtime.states())
        _log.info("%s: %s files of its state are back in staging", epoch, copied)


def _find_own(runtime: Runtime, savepoint: Savepoint, source: str) -> Epoch:
    """The epoch of which the savepoint was taken, if it is still current."""
    if (savepoint.deployment, savepoint.pipeline) != (runtime.ledger.deployment(), runtime.pipeline):
        _refuse(savepoint, source, f"it is of pipeline {savepoint.pipeline} in deployment {savepoint.deployment}")
    try:
        epoch = runtime.ledger.epoch(runtime.pipeline, savepoint.epoch)
    except UnknownEpoch:
        _refuse(savepoint, source, "this ledger has no such epoch")
    if epoch.state not in DECIDED or epoch.manifest_hash != savepoint.manifest_hash:
        _refuse(savepoint, source, f"{epoch} is {epoch.state} here, and has another manifest or none")
    if dict(savepoint.positions) != epoch.plan.positions:
        _refuse(savepoint, source, f"{epoch} ended at other positions")
    if epoch.state is EpochState.REPLACED and hands_on_state(runtime):
        replaced_by = runtime.ledger.successor(epoch)
        _refuse(savepoint, source, f"{epoch} was replaced since{f', by epoch {replaced_by.id}' if replaced_by else ''}")
    return epoch


def _refuse(savepoint: Savepoint, source: str, why: str) -> NoReturn:
    raise RestateRefused(
        f"the savepoint in {source} (epoch {savepoint.epoch}, manifest {savepoint.manifest_hash[:12]}) is of another "
        f"history: {why}. Have a new pipeline begin with it: `lockstep savepoint start <new pipeline> --from {source}`"
    )


def _find_following(runtime: Runtime, epoch: Epoch) -> list[Epoch]:
    """Epochs to restate, in order; with state only the first, which takes the others along."""
    if hands_on_state(runtime):
        following = [successor for successor in runtime.ledger.sequence_from(epoch) if successor.id > epoch.id][:1]
    else:
        following = [find_current(runtime, successor) for successor in _originals_after(runtime, epoch)]
    if not following:
        raise RestateRefused(f"nothing follows {epoch} that is decided: the pipeline is where the savepoint is")
    return following


def _originals_after(runtime: Runtime, epoch: Epoch) -> list[Epoch]:
    originals: list[Epoch] = []
    last = runtime.ledger.last_original(runtime.pipeline)
    while last is not None and last.id > epoch.root:
        originals.append(last)
        last = runtime.ledger.last_original(runtime.pipeline, below=last.id)
    return [original for original in reversed(originals) if original.state in DECIDED]
