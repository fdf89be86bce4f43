"""Keyed state between epochs: which version the next epoch starts from, and which versions may be deleted."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from lockstep.definition.keyed_state import KeyedState
from lockstep.epoch import Attempt, Epoch, KeyedBy
from lockstep.errors import (
    InvalidPipeline,
    LedgerConflict,
    PlanMismatch,
    RestageRefused,
    RestateRefused,
    StageFailed,
    StagingUnavailable,
    WalCorrupt,
)
from lockstep.observability import suggestions
from lockstep.protocol.hooks import Feature, StagePart
from lockstep.protocol.identity import last_renumbered_token
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.sweep import DeletionGuard, require_known_epoch
from lockstep.states import FINISHED
from lockstep.wal.manifest import Manifest, SealedState, StateFile, StateVersion
from lockstep.wal.request import StageRequest, StageResult, StateRequest
from lockstep.wal.savepoint import START, Savepoint

_log = logging.getLogger(__name__)


class KeyedStates(Feature):
    """Hands each epoch the decided state of the one before, has its own sealed, and deletes old versions."""

    def checking_wal(self, runtime: Runtime, epoch: Epoch, manifest: Manifest) -> None:
        """Compare the state files that the epoch wrote itself with its manifest."""
        for name, version in manifest.state.versions.items() if manifest.state else ():
            runtime.states().check(name, [file for file in version.files if file.epoch == epoch.id])

    def staging(self, runtime: Runtime, attempt: Attempt, epoch: Epoch, *, decided: bool) -> StagePart | None:
        before = find_base_state(runtime, epoch)
        if decided:
            _require_state_stays(runtime, epoch, before)
        return _StatePart(runtime, epoch, before, sealed=not decided) if before else None

    def wal_deleted(self, runtime: Runtime, epoch: Epoch) -> None:
        release_state(runtime, epoch)

    def folders_swept(self, runtime: Runtime, only: int | None, guard: DeletionGuard) -> int:
        """Delete the state of executions that weren't sealed."""
        states, swept = runtime.states(), 0
        for execution in states.executions():
            if execution.epoch == START or only not in (None, execution.epoch):  # START: the pipeline's savepoint
                continue
            epoch = require_known_epoch(runtime, execution.epoch, execution.token, f"staging holds {execution.folder}")
            if _is_rubbish(epoch, execution.token) and guard.given_for(epoch):
                states.discard(execution)
                swept += 1
        return swept

    def in_sequence(self, runtime: Runtime) -> bool:
        return hands_on_state(runtime)


def _is_rubbish(epoch: Epoch, token: int) -> bool:
    """The state of a sealed execution outlives its WAL, as later epochs start from it. See `release_state`."""
    if epoch.wal is not None and token == int(epoch.wal.rpartition("/")[2]):
        return False
    return token < epoch.attempt or epoch.state in FINISHED


@dataclass(frozen=True)
class BaseState:
    """The versions that an epoch's state is made from. `based_on`: manifest hash of the epoch before, or ""."""

    based_on: str
    versions: Mapping[str, StateVersion]
    savepoint: str | None = None


@dataclass(frozen=True)
class _StatePart(StagePart):
    """`sealed` False: the epoch is decided with the state it has, and what this execution makes is rubbish."""

    runtime: Runtime
    epoch: Epoch
    before: BaseState
    sealed: bool

    def requested(self, token: int, request: StageRequest) -> StageRequest:
        if not self.runtime.defined.state:
            return request
        staging, states = self.runtime.staging, self.runtime.states()
        state = StateRequest(
            staging.uri_of(states.folder(self.epoch.id, token)),
            dict(self.runtime.defined.state),
            dict(self.before.versions),
            {
                name: tuple(staging.uri_of(states.path_of(name, file)) for file in version.files)
                for name, version in self.before.versions.items()
            },
        )
        return replace(request, state=state)

    @contextmanager
    def running(self, folder: str) -> Iterator[None]:
        """If the job fails, raise `WalCorrupt` if the state that it reads isn't as it was sealed."""
        try:
            yield
        except (StageFailed, InvalidPipeline) as error:
            for name, version in self.before.versions.items():
                try:
                    self.runtime.states().check(name, version.files)
                except WalCorrupt as damage:
                    raise damage from error
                except StagingUnavailable:
                    break
            raise

    def sealed_state(self, token: int, result: StageResult) -> SealedState | None:
        """Make the versions of this execution durable and check them."""
        if not self.sealed:
            return None
        defined = self.runtime.defined
        written = {
            name: KeyedState(state.schema, state.key, state.buckets, state.expires, state.found_by, state.self_expiring)
            for name, state in result.state.items()
        }
        if written != dict(defined.state):
            raise PlanMismatch(
                f"{self.epoch}: the Spark job wrote the state {sorted(written)}, the task's pipeline declares "
                f"{sorted(defined.state)}, or declares it otherwise: deploy the same code everywhere"
            )
        # a stopped process that was deleting older state may still go on: restored versions are copied
        restating = self.epoch.generation is not None
        versions = self.runtime.states().seal(
            self.epoch.id, token, result.state, self.before.versions, copies=restating
        )
        return SealedState(self.before.based_on, defined.keep_state, versions, self.before.savepoint)


def _require_state_stays(runtime: Runtime, epoch: Epoch, before: BaseState | None) -> None:
    """Raise `RestageRefused` unless later epochs can start from the state that the decided manifest names."""
    if epoch.based_on is None and before is None:
        return
    if before is None or before.based_on != epoch.based_on:
        raise RestageRefused(f"{epoch} was made from the state of another epoch than the one before it now: look why")
    try:
        _manifest_of(runtime, epoch)
    except WalCorrupt as damage:
        raise RestageRefused(
            f"{epoch}: its manifest is damaged, which names the state that later epochs go on from: bring it back from "
            f"a copy. {damage}"
        ) from damage


def find_base_state(runtime: Runtime, epoch: Epoch) -> BaseState | None:
    """Return the decided versions that `epoch` starts from; None for a pipeline that has no state, and never had any.

    Raises `OutOfOrder` while the epoch before is undecided, `PlanMismatch` for a state that would be lost, `WalCorrupt`
    if the manifest before isn't as it was sealed, `RestateRefused` for a generation that was begun without state.
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
    """Raise `RestateRefused` unless the state that epoch `first` was made from is intact: an epoch that replaces it and
    all later ones starts from it."""
    before = runtime.ledger.predecessor(first)
    try:
        if before is None:
            savepoint = runtime.ledger.savepoint(runtime.pipeline)
            versions = Savepoint.from_json(savepoint).versions if savepoint else {}
        else:
            state = _manifest_of(runtime, before).state
            versions = state.versions if state else {}
        for name, version in versions.items():
            runtime.states().check(name, version.files)
    except WalCorrupt as damage:
        base = f"epoch {before.id}" if before else "the savepoint"
        command = f"`lockstep restate {first.pipeline} --savepoint … --reason …`"
        way = f". From a savepoint of that epoch: {command}" if before else ""
        raise RestateRefused(
            f"can't restate {first}: it would start from the state of {base}, which is no longer kept whole "
            f"({damage}); keep_state={runtime.defined.keep_state} says of how many epochs it is kept{way}"
        ) from damage


def hands_on_state(runtime: Runtime) -> bool:
    """Return True if the pipeline's epochs start from one another: it declares state, or has had some."""
    if runtime.defined.state:
        return True
    return runtime.defined.identity is KeyedBy.CURSOR and runtime.ledger.has_keyed_state(runtime.pipeline)


def _started(runtime: Runtime, epoch: Epoch) -> BaseState:
    """Return what a pipeline's first epoch starts from: nothing, or a savepoint."""
    stored = runtime.ledger.savepoint(runtime.pipeline)
    if stored is None:
        return BaseState("", {})
    savepoint = Savepoint.from_json(stored)
    _require_none_lost(runtime, epoch, savepoint.versions)
    return BaseState("", _declared(runtime, savepoint.versions), savepoint.hash)


def _declared(runtime: Runtime, versions: Mapping[str, StateVersion]) -> dict[str, StateVersion]:
    return {name: version for name, version in versions.items() if name in runtime.defined.state}


def _require_none_lost(runtime: Runtime, epoch: Epoch, before: Mapping[str, StateVersion]) -> None:
    if lost := sorted(set(before) - {*runtime.defined.state, *runtime.defined.drop_state}):
        raise PlanMismatch(
            f"{epoch}: the epoch before left the state {', '.join(lost)}, which the pipeline doesn't declare: declare "
            "it, or give it up with drop_state="
        )


# --- deletion ---


def release_state(runtime: Runtime, epoch: Epoch) -> None:
    """Delete the state that no epoch needs any more, now that `epoch` is published.

    A version is kept until `keep` further epochs are published. Epochs that were replaced or given up don't count, or a
    wrong restatement couldn't be restated. Files of older epochs that a kept version names are kept, too. Raises
    `WalCorrupt`, with nothing deleted, if the manifest of a kept epoch isn't as it was sealed.
    """
    if epoch.based_on is None:  # nothing is read where there is no state
        return
    state = _manifest_of(runtime, epoch).state
    if state is None:
        return
    current = runtime.ledger.last_in_sequence(epoch, state.keep)
    if len(current) < state.keep:
        return
    states, oldest = runtime.states(), current[-1].id
    executions = [execution for execution in states.executions() if execution.epoch < oldest]
    for execution in tuple(executions):
        try:
            if execution.epoch != START:  # the pipeline's savepoint
                require_known_epoch(runtime, execution.epoch, execution.token, f"staging holds {execution.folder}")
        except LedgerConflict:
            if execution.token > last_renumbered_token(runtime.ledger, runtime.pipeline):
                raise
            executions.remove(execution)  # of a lost ledger: `renumber` has listed it, and a person deletes it
    if not executions:
        return
    live = frozenset(
        states.path_of(name, file)
        for kept_epoch in [*current, *runtime.ledger.sealed_epochs(runtime.pipeline, epoch.id + 1)]
        for name, file in _files_of(runtime, kept_epoch)
    )
    deleted = sum(states.release(execution, live) for execution in executions)
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
