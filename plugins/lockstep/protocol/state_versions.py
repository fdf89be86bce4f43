"""Keyed state between epochs: from which version the next is made, and which versions nobody needs any more."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from lockstep.definition.keyed_state import KeyedState
from lockstep.epoch import Epoch, KeyedBy
from lockstep.errors import (
    InvalidPipeline,
    LedgerConflict,
    PlanMismatch,
    RestateRefused,
    StageFailed,
    StagingUnavailable,
    WalCorrupt,
)
from lockstep.observability import suggestions
from lockstep.protocol.identity import last_renumbered_token
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.sweep import require_known_epoch
from lockstep.wal.manifest import Manifest, SealedState, StateFile, StateVersion
from lockstep.wal.request import StateRequest
from lockstep.wal.savepoint import START, Savepoint
from lockstep.wal.state_staging import WrittenState

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BaseState:
    """What an epoch's state is made from. `based_on`: the manifest hash of the epoch before, "" without one."""

    based_on: str
    versions: Mapping[str, StateVersion]
    savepoint: str | None = None


def find_base_state(runtime: Runtime, epoch: Epoch) -> BaseState | None:
    """The decided versions that `epoch` goes on from; None for a pipeline that has no state, and never had.

    Raises `OutOfOrder` while the epoch before is undecided, `PlanMismatch` for a state that would be lost, `WalCorrupt`
    if the manifest before isn't as it was sealed, `RestateRefused` for one that stands aside of those with state.
    """
    if not hands_on_state(runtime):
        return None
    if epoch.generation is not None and not epoch.in_order:
        raise RestateRefused(
            f"{epoch} was begun when the pipeline had no state, and has it now: give it up: "
            + suggestions.void(epoch.pipeline, epoch.id)
        )
    runtime.ledger.require_predecessor_decided(epoch)
    before = runtime.ledger.predecessor(epoch)
    if before is None:
        return _started(runtime, epoch)
    manifest = _manifest_of(runtime, before)
    versions = manifest.state.versions if manifest.state else {}
    _require_none_lost(runtime, epoch, versions)
    return BaseState(manifest.hash, _declared(runtime, versions))


def require_state_kept(runtime: Runtime, first: Epoch) -> None:
    """Raise `RestateRefused` unless the state that epoch `first` was made from is whole: an epoch that is to take its
    place, and that of all later ones, starts from it."""
    before = runtime.ledger.predecessor(first)
    try:
        if before is None:
            found = runtime.ledger.savepoint(runtime.pipeline)
            versions = Savepoint.from_json(found).versions if found else {}
        else:
            state = _manifest_of(runtime, before).state
            versions = state.versions if state else {}
        for name, version in versions.items():
            runtime.states().check(name, version.files)
    except WalCorrupt as gone:
        whose = f"epoch {before.id}" if before else "the savepoint"
        command = f"`lockstep restate {first.pipeline} --savepoint … --reason …`"
        way = f". From a savepoint of that epoch: {command}" if before else ""
        raise RestateRefused(
            f"can't restate {first}: it would start from the state of {whose}, which is no longer kept whole ({gone}); "
            f"keep_state={runtime.defined.keep_state} says of how many epochs it is kept{way}"
        ) from gone


def hands_on_state(runtime: Runtime) -> bool:
    """Whether the pipeline's epochs go on from one another: it declares state, or has had some."""
    if runtime.defined.state:
        return True
    return runtime.defined.identity is KeyedBy.CURSOR and runtime.ledger.has_keyed_state(runtime.pipeline)


def _started(runtime: Runtime, epoch: Epoch) -> BaseState:
    """What a pipeline's first epoch begins with: nothing, or a savepoint."""
    found = runtime.ledger.savepoint(runtime.pipeline)
    if found is None:
        return BaseState("", {})
    savepoint = Savepoint.from_json(found)
    _require_none_lost(runtime, epoch, savepoint.versions)
    return BaseState("", _declared(runtime, savepoint.versions), savepoint.hash)


def _declared(runtime: Runtime, versions: Mapping[str, StateVersion]) -> dict[str, StateVersion]:
    return {name: version for name, version in versions.items() if name in runtime.defined.state}


def _require_none_lost(runtime: Runtime, epoch: Epoch, before: Mapping[str, StateVersion]) -> None:
    known = {*runtime.defined.state, *runtime.defined.drop_state}
    if lost := sorted(set(before) - known):
        raise PlanMismatch(
            f"{epoch}: the epoch before left the state {', '.join(lost)}, which the pipeline doesn't declare: declare "
            "it, or give it up with drop_state="
        )


def state_request(runtime: Runtime, epoch: Epoch, token: int, before: BaseState) -> StateRequest:
    """What the Spark job of execution `token` is told."""
    staging, states = runtime.staging, runtime.states()
    return StateRequest(
        staging.uri_of(states.folder(epoch.id, token)),
        dict(runtime.defined.state),
        dict(before.versions),
        {
            name: tuple(staging.uri_of(states.path_of(name, file)) for file in version.files)
            for name, version in before.versions.items()
        },
    )


@contextmanager
def blame_state(runtime: Runtime, before: BaseState | None) -> Iterator[None]:
    """When the job fails, look whether the state that it reads is still as it was sealed: `WalCorrupt` if not."""
    try:
        yield
    except (StageFailed, InvalidPipeline) as error:
        for name, version in before.versions.items() if before else ():
            try:
                runtime.states().check(name, version.files)
            except WalCorrupt as damage:
                raise damage from error
            except StagingUnavailable:
                break
        raise


def sealed_state(
    runtime: Runtime, epoch: Epoch, token: int, written: Mapping[str, WrittenState], before: BaseState | None
) -> SealedState | None:
    """The versions that this execution made, durable and checked."""
    if before is None:
        return None
    said = {
        name: KeyedState(one.schema, one.key, one.buckets, one.expires, one.found_by, one.self_expiring)
        for name, one in written.items()
    }
    if said != dict(runtime.defined.state):
        raise PlanMismatch(
            f"{epoch}: the Spark job wrote the state {sorted(said)}, the task's pipeline declares "
            f"{sorted(runtime.defined.state)}, or declares it otherwise: deploy the same code everywhere"
        )
    # whoever let go of older state, and stood still, may do so yet: what was put back since is only read
    restating = epoch.generation is not None
    versions = runtime.states().seal(epoch.id, token, written, before.versions, copies=restating)
    return SealedState(before.based_on, runtime.defined.keep_state, versions, before.savepoint)


def check_own_state(runtime: Runtime, epoch: Epoch, manifest: Manifest) -> None:
    """Compare the state files that a sealed epoch wrote itself with its manifest. Raises `WalCorrupt`."""
    for name, version in manifest.state.versions.items() if manifest.state else ():
        runtime.states().check(name, [file for file in version.files if file.epoch == epoch.id])


# --- letting go ---


def release_state(runtime: Runtime, epoch: Epoch) -> None:
    """Delete the state that no epoch needs any more, now that `epoch` is published.

    A version is kept until `keep` further epochs are published that stand: one that was replaced or given up counts no
    more, or a restatement that was wrong couldn't be restated. Files of older epochs that a kept version still names
    stay. Raises `WalCorrupt`, with nothing deleted, if a manifest that is kept isn't as it was sealed.
    """
    if epoch.based_on is None:  # nothing is read where there is no state
        return
    state = _manifest_of(runtime, epoch).state
    if state is None:
        return
    standing = runtime.ledger.last_in_sequence(epoch, state.keep)
    if len(standing) < state.keep:
        return
    states, oldest = runtime.states(), standing[-1].id
    found = [execution for execution in states.executions() if execution.epoch < oldest]
    for execution in tuple(found):
        try:
            if execution.epoch != START:  # of the savepoint it began with
                require_known_epoch(runtime, execution.epoch, execution.token, f"staging holds {execution.folder}")
        except LedgerConflict:
            if execution.token > last_renumbered_token(runtime.ledger, runtime.pipeline):
                raise
            found.remove(execution)  # of a ledger that was lost: `renumber` has listed it, and a person deletes it
    if not found:
        return
    live = frozenset(
        states.path_of(name, file)
        for kept in [*standing, *runtime.ledger.sealed_epochs(runtime.pipeline, epoch.id + 1)]
        for name, file in _files_of(runtime, kept)
    )
    deleted = sum(states.release(execution, live) for execution in found)
    _log.info("%s: %s files of older state are gone", epoch, deleted)


def _files_of(runtime: Runtime, epoch: Epoch) -> list[tuple[str, StateFile]]:
    try:
        state = _manifest_of(runtime, epoch).state
    except WalCorrupt:
        if runtime.ledger.epoch(epoch.pipeline, epoch.id).wal == epoch.wal:
            raise
        return []  # it was undecided, and is voided or staged anew meanwhile
    return state.files() if state else []


def _manifest_of(runtime: Runtime, epoch: Epoch) -> Manifest:
    return runtime.staging.manifest(epoch.wal or "", epoch.manifest_hash or "")
