"""What to do with a transaction or a folder that lies around: handles are listed first, the ledger is read second.

Only tokens that this ledger issued are touched. A token it never issued means that the ledger was rolled back to an
older life, or that somebody else uses our names: an alarm, never a rollback.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from enum import StrEnum

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Epoch, Json, Participant
from lockstep.errors import (
    InvalidPipeline,
    LedgerConflict,
    LockstepError,
    PreflightRefused,
    Retryable,
    SinkUnavailable,
    TargetChanged,
    UnknownEpoch,
)
from lockstep.observability import suggestions
from lockstep.protocol.identity import REDEFINED, last_renumbered_token
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.table_staging import discard_homes, sweep_homes
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.two_phase import TwoPhaseCommitSink
from lockstep.sinks.values import Txn
from lockstep.states import DECIDED, FINISHED, SHOWN, UNDECIDED, EpochState
from lockstep.wal.savepoint import START

_NAMED = 10  #: epochs of a list
_log = logging.getLogger(__name__)


class Verdict(StrEnum):
    """What may be done with a sink's unfinished transaction."""

    KEEP = "keep"  #: live, or for publish to finish
    ROLL_BACK = "roll back"  #: can never be decided
    FINISH = "finish"  #: decided and published: what is left of it may go


def judge(epoch: Epoch, participant: Participant | None, token: int, below: int = 0) -> Verdict:
    """Rule on the transaction of execution `token`. `below`: the caller's own, which outdates smaller ones."""
    vote = participant.vote if participant else None
    if epoch.state in (EpochState.VOID, EpochState.REPLACED):
        return Verdict.ROLL_BACK
    if epoch.state in UNDECIDED:
        outdated = vote.token if vote else (participant.execution or 0) if participant else 0
        return Verdict.ROLL_BACK if token < max(epoch.attempt, outdated, below) else Verdict.KEEP
    if vote is None or token != vote.token:
        return Verdict.ROLL_BACK
    return Verdict.FINISH if epoch.state in SHOWN else Verdict.KEEP


class DeletionGuard:
    """Whether epochs that aren't decided may lose what they left: only if no sink of their plans shows them.

    A sink that can't be asked holds back the epochs that it takes part in, and no others; `require_all` tells of it at
    the end. It is asked once, however many epochs there are.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._given = runtime, set[int]()
        self._silent: list[tuple[Json, LockstepError]] = []
        self._held: dict[int, str] = {}

    def given_for(self, epoch: Epoch) -> bool:
        """False: the epoch is held back. Raises `LedgerConflict` if a sink shows what this ledger hasn't decided:
        another life of the ledger has, and what is left of it, in this sink or in staging, is what the others are to
        show it from. What a person has looked at since (`renumber`) is known."""
        if epoch.state in DECIDED or epoch.id in self._given:
            return True
        if epoch.id in self._held:
            return False
        silent = [name for name, spec in epoch.plan.sinks.items() if not self._shows_nothing(epoch, name, spec)]
        if missed := [name for name in silent if self._is_missed(epoch, epoch.plan.sinks[name])]:
            self._held[epoch.id] = missed[0]
            return False
        if silent:
            _log.warning("%s: nobody can ask %s whether it is shown there; its traces go", epoch, ", ".join(silent))
        self._given.add(epoch.id)
        return True

    def require_all(self) -> None:
        """Raise `SinkUnavailable` if an epoch was held back."""
        if not self._held:
            return
        [(first, sink), *others] = sorted(self._held.items())
        epochs = f"epoch{'s' if others else ''} {', '.join(str(epoch) for epoch in sorted(self._held)[:_NAMED])}"
        more = f" and {len(self._held) - _NAMED} more" if len(self._held) > _NAMED else ""
        why = next((str(error) for spec, error in self._silent if spec["arguments"].get("name") == sink), "")
        raise SinkUnavailable(
            f"{epochs}{more}: nothing is rolled back or deleted while nobody can ask sink {sink} whether it shows that "
            f"({why}). It is tried again. If that sink is gone: {suggestions.void(self._runtime.pipeline, first)} "
            "gives the range up without asking it, and a week after it was last planned nobody asks it any more"
        )

    def miss(self, spec: Json, error: LockstepError) -> None:
        """The sink can't be asked."""
        self._silent.append((spec, error))

    def _shows_nothing(self, epoch: Epoch, name: str, spec: Json) -> bool:
        """False: it can't be asked."""
        if any(spec == known for known, _ in self._silent):
            return False
        try:
            with self._runtime.opened(self._runtime.sink_to_sweep(spec)) as sink:
                marker = sink.find_any_marker(epoch.id)
        except (PreflightRefused, TargetChanged):  # nothing of ours is there
            return True
        except (Retryable, InvalidPipeline) as error:
            self.miss(spec, error)
            return False
        if marker is None or marker.token <= last_renumbered_token(self._runtime.ledger, self._runtime.pipeline):
            return True
        if self._runtime.ledger.epoch(epoch.pipeline, epoch.id).state in DECIDED:
            return True  # meanwhile, by its current attempt
        raise LedgerConflict(
            f"sink {name} shows {epoch} (token {marker.token}), which this ledger hasn't decided: it is older than its "
            "sinks. Nothing is rolled back, and nothing deleted: restore it further if there is any way to "
            f"(docs/ledger.md); else look what it lacks: lockstep renumber {self._runtime.pipeline} --reason …"
        )

    def _is_missed(self, epoch: Epoch, spec: Json) -> bool:
        """Whether its word is waited for: not once a person has given the range up, nor for ever of a sink that nobody
        plans any more. The others' prepared transactions hold locks and vacuum meanwhile."""
        return epoch.state is not EpochState.VOID and spec in self._runtime.ledger.planned_sinks(epoch.pipeline)


def sweep_sink(
    runtime: Runtime, sink: OpenSink, *, only: int | None = None, below: int = 0, clearance: DeletionGuard | None = None
) -> list[Txn]:
    """Resolve what `sink` has pending, of epoch `only` or of all; the transactions resolved. `clearance`: of a caller
    that sweeps more than this sink, and tells at its end what was held back.

    Raises `LedgerConflict` for a token that this ledger never issued; `SinkUnavailable`, once all the rest is resolved,
    for epochs of which another sink can't be asked.
    """
    cleared = clearance or DeletionGuard(runtime)
    pending = [txn for txn in sink.pending() if only is None or txn.epoch == only]
    resolved = [txn for txn in pending if _sweep(runtime, sink, txn, below, cleared)]
    if clearance is None:
        cleared.require_all()
    return resolved


def _sweep(runtime: Runtime, sink: OpenSink, txn: Txn, below: int, cleared: DeletionGuard) -> bool:
    epoch = require_known_epoch(runtime, txn.epoch, txn.token, f"sink {sink.name} holds {txn.handle}")
    participant = runtime.ledger.participants(runtime.pipeline, txn.epoch).get(sink.name)
    _require_decided(epoch, participant, txn)
    verdict = judge(epoch, participant, txn.token, below)
    if verdict is Verdict.KEEP:
        _warn_of_timeout(sink, txn, participant)
        return False
    if not below and not cleared.given_for(epoch):  # what takes part now asks its own target, and waits for no other
        return False
    reach(CrashPoint.ROLLBACK_BEFORE_SINK)
    if verdict is Verdict.FINISH and isinstance(sink, TwoPhaseCommitSink):
        sink.recover_and_commit(txn)
    elif isinstance(sink, TwoPhaseCommitSink):
        sink.recover_and_abort(txn)
    else:
        sink.abort(txn)
    reach(CrashPoint.ROLLBACK_AFTER_SINK)
    _log.info("%s: %s: %s", sink.name, verdict, txn.handle)
    return True


def _warn_of_timeout(sink: OpenSink, txn: Txn, participant: Participant | None) -> None:
    vote = participant.vote if participant else None
    if participant and vote and vote.token == txn.token and isinstance(sink, TwoPhaseCommitSink):
        sink.warn_of_timeout(txn.handle, participant.age)


def _require_decided(epoch: Epoch, participant: Participant | None, txn: Txn) -> None:
    """Raise `LedgerConflict` for the decided token with another manifest: neither to be committed nor rolled back."""
    if epoch.state not in DECIDED or participant is None or participant.vote is None:
        return
    decided = (epoch.manifest_hash or "")[:12]
    if txn.token == participant.vote.token and txn.manifest != decided:
        raise LedgerConflict(
            f"sink {txn.sink} holds {txn.handle}, of manifest {txn.manifest}; {epoch} was decided with {decided}: "
            "it is left as it is, look where it comes from"
        )


def sweep_folders(runtime: Runtime, *, only: int | None = None, clearance: DeletionGuard | None = None) -> int:
    """Delete the folders of WALs and of state that can never be read again; the number of folders deleted. Raises as
    `sweep_sink`."""
    swept, cleared, failed = 0, clearance or DeletionGuard(runtime), list[LockstepError]()
    for epoch, token, folder in find_rubbish(runtime, only):
        if not cleared.given_for(epoch):
            continue
        try:
            discard_homes(runtime, epoch, token, folder)
        except (SinkUnavailable, InvalidPipeline) as error:  # of a table that adopts, which other epochs may not have
            failed.append(error)
            continue
        runtime.staging.discard(folder)
        swept += 1
    swept += _sweep_states(runtime, only, cleared)
    if clearance is None:
        cleared.require_all()
    if failed:
        raise failed[0]
    return swept


def find_rubbish(runtime: Runtime, only: int | None = None) -> Iterator[tuple[Epoch, int, str]]:
    """Epoch, token and name of each WAL's folder that can never be read again. Raises `LedgerConflict` for one of an
    epoch or a token that this ledger doesn't know."""
    deployment, kept = runtime.ledger.deployment(), kept_epochs(runtime) if only is None else frozenset[int]()
    for epoch_id, token, folder in runtime.staging.executions(deployment, runtime.pipeline, only=only, exclude=kept):
        epoch = require_known_epoch(runtime, epoch_id, token, f"staging holds {folder}")
        if _is_rubbish(epoch, token, folder) and not _is_kept(runtime, epoch, folder):
            yield epoch, token, folder


def kept_epochs(runtime: Runtime) -> frozenset[int]:
    """Those whose WAL has stayed after cleanup: what else may be left in their folders goes when that does."""
    return frozenset(one.epoch for one in runtime.ledger.kept_wals(runtime.pipeline))


def _is_kept(runtime: Runtime, epoch: Epoch, folder: str) -> bool:
    """Asked after the epoch was read: what keeps a WAL is written together with its cleanup."""
    if epoch.state in (EpochState.VOID, *UNDECIDED):
        return False
    kept = runtime.ledger.retained_wal(epoch.pipeline, epoch.id)
    return kept is not None and kept.wal == folder


def _sweep_states(runtime: Runtime, only: int | None, cleared: DeletionGuard) -> int:
    states, swept = runtime.states(), 0
    for found in states.executions():
        if found.epoch == START or (only is not None and found.epoch != only):  # of the savepoint it began with
            continue
        epoch = require_known_epoch(runtime, found.epoch, found.token, f"staging holds {found.folder}")
        if _is_rubbish_state(epoch, found.token) and cleared.given_for(epoch):
            states.discard(found)
            swept += 1
    return swept


def _is_rubbish_state(epoch: Epoch, token: int) -> bool:
    """The state of a sealed execution outlives its WAL: later epochs go on from it. See `release_state`."""
    if epoch.wal is not None and token == int(epoch.wal.rpartition("/")[2]):
        return False
    return token < epoch.attempt or epoch.state in FINISHED


def _is_rubbish(epoch: Epoch, token: int, folder: str) -> bool:
    if epoch.state in FINISHED:
        return True
    return token < epoch.attempt and folder != epoch.wal


def require_known_epoch(runtime: Runtime, epoch: int, token: int, found: str) -> Epoch:
    """The epoch of something that lies around. Raises `LedgerConflict` if this ledger doesn't know it or the token."""
    way = f"was the ledger restored? Then go on with: lockstep renumber {runtime.pipeline} --reason … (docs/ledger.md)"
    try:
        known = runtime.ledger.epoch(runtime.pipeline, epoch)
    except UnknownEpoch as error:
        raise LedgerConflict(f"{found}, but the ledger has no epoch {epoch}: {way}") from error
    if not runtime.ledger.find_issued_tokens(runtime.pipeline, epoch, [token], attempts=False):
        raise LedgerConflict(f"{found}, but the ledger never issued token {token}: {way}")
    return known


def require_known_leftovers(runtime: Runtime, epoch: int) -> None:
    """Raise `LedgerConflict` for a folder of `epoch`, which is to be begun, of a token that this ledger never issued.

    This and `require_known_pending` are asked before `begin` takes a token: the ledger's own tokens may reach those of
    the time that it lost. What a person has looked at since (`renumber`) is known. Of the pipeline's first epoch raise
    it also where staging has the pipeline of another ledger, which may be the one that this one stands in for.
    """
    if epoch == 1 and runtime.ledger.last_epoch(runtime.pipeline) is None:
        _require_no_lost_ledger(runtime)
    for number, token, folder in runtime.staging.executions(runtime.ledger.deployment(), runtime.pipeline, only=epoch):
        if token > last_renumbered_token(runtime.ledger, runtime.pipeline):
            require_known_epoch(runtime, number, token, f"staging holds {folder}")


def _require_no_lost_ledger(runtime: Runtime) -> None:
    """Topics and folders of records belong to no ledger: an empty one would fill them once more."""
    ledger, staging, pipeline = runtime.ledger, runtime.staging, runtime.pipeline
    own = ledger.deployment()
    others = [one for one in staging.deployments() if one != own and pipeline in staging.pipelines(one)]
    if others and not ledger.pipeline_change(pipeline, REDEFINED) and not ledger.savepoint(pipeline):
        raise LedgerConflict(
            f"this ledger, {own}, has no epoch of pipeline {pipeline}, and staging has the pipeline of "
            f"ledger {', '.join(others)}: if that one was lost, its epochs would be shown twice. "
            f"{suggestions.rebuild(pipeline)} shows what can be rebuilt of it; if both are to use this staging, "
            f"say so: lockstep redefine {pipeline} --reason …"
        )


def require_known_pending(runtime: Runtime, sink: OpenSink) -> None:
    """Raise `LedgerConflict` for a transaction of `sink` of an epoch or a token that this ledger doesn't know."""
    pending = sink.pending()
    looked_at = last_renumbered_token(runtime.ledger, runtime.pipeline) if pending else 0
    for txn in pending:
        if txn.token > looked_at:
            require_known_epoch(runtime, txn.epoch, txn.token, f"sink {sink.name} holds {txn.handle}")


def roll_back(runtime: Runtime, epoch: Epoch) -> None:
    """Second half of abort, after the ledger's attempt was raised: what carries lower tokens goes. Raises as
    `sweep_sink`, once the sinks that can be reached are swept; what is left then recovery takes away."""
    cleared, failed = DeletionGuard(runtime), list[LockstepError]()
    for name, spec in epoch.plan.sinks.items():
        try:
            with runtime.opened(runtime.sink_of(epoch, name)) as sink:
                sweep_sink(runtime, sink, only=epoch.id, clearance=cleared)
        except (Retryable, InvalidPipeline) as error:
            cleared.miss(spec, error)
            failed.append(error)
    sweep_folders(runtime, only=epoch.id, clearance=cleared)
    cleared.require_all()
    if failed:
        raise failed[0]
    sweep_homes(runtime, epoch)
