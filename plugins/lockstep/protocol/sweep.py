"""Decides about unfinished transactions and unneeded folders: lists handles first, reads the ledger second.

Only tokens that this ledger issued are touched. A token that it never issued means that the ledger was restored from a
backup, or that another program uses the same names: an alarm, never a rollback.
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
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.two_phase import TwoPhaseCommitSink
from lockstep.sinks.values import Txn
from lockstep.states import DECIDED, FINISHED, SHOWN, UNDECIDED, EpochState

_NAMED = 10  #: epochs of a list
_log = logging.getLogger(__name__)


class DeletionVerdict(StrEnum):
    """The ruling on a sink's unfinished transaction."""

    KEEP = "keep"  #: live, or for publish to finish
    ROLL_BACK = "roll back"  #: can never be decided
    FINISH = "finish"  #: decided and published: what is left of it may go


def judge(epoch: Epoch, participant: Participant | None, token: int, below: int = 0) -> DeletionVerdict:
    """Rule on the transaction of execution `token`. `below`: the caller's own, which outdates smaller ones."""
    vote = participant.vote if participant else None
    if epoch.state in (EpochState.VOID, EpochState.REPLACED):
        return DeletionVerdict.ROLL_BACK
    if epoch.state in UNDECIDED:
        outdated = vote.token if vote else (participant.execution or 0) if participant else 0
        return DeletionVerdict.ROLL_BACK if token < max(epoch.attempt, outdated, below) else DeletionVerdict.KEEP
    if vote is None or token != vote.token:
        return DeletionVerdict.ROLL_BACK
    return DeletionVerdict.FINISH if epoch.state in SHOWN else DeletionVerdict.KEEP


class DeletionGuard:
    """Allows to delete what undecided epochs left, only if no sink of their plans shows them.

    A sink that can't be asked holds back the epochs that it takes part in, and no others; `require_all` raises at the
    end. It is asked once, however many epochs there are.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._allowed = runtime, set[int]()
        self._silent: list[tuple[Json, LockstepError]] = []
        self._reasons: dict[int, str] = {}

    def given_for(self, epoch: Epoch) -> bool:
        """Return False if the epoch is held back. Raises `LedgerConflict` if a sink shows what this ledger hasn't
        decided: a later state of the ledger, since lost, has, and other sinks may still publish from what is left of
        it. Tokens that a person has checked since (`renumber`) are known."""
        if epoch.state in DECIDED or epoch.id in self._allowed:
            return True
        if epoch.id in self._reasons:
            return False
        silent = [name for name, spec in epoch.plan.sinks.items() if not self._shows_nothing(epoch, name, spec)]
        if missed := [name for name in silent if self._is_missed(epoch, epoch.plan.sinks[name])]:
            self._reasons[epoch.id] = missed[0]
            return False
        if silent:
            _log.warning("%s: %s can't be asked whether it is shown there; it is rolled back", epoch, ", ".join(silent))
        self._allowed.add(epoch.id)
        return True

    def require_all(self) -> None:
        """Raise `SinkUnavailable` if an epoch was held back."""
        if not self._reasons:
            return
        [(first, sink), *more_epochs] = sorted(self._reasons.items())
        epochs = f"epoch{'s' if more_epochs else ''} {', '.join(map(str, sorted(self._reasons)[:_NAMED]))}"
        more = f" and {len(self._reasons) - _NAMED} more" if len(self._reasons) > _NAMED else ""
        why = next((str(error) for spec, error in self._silent if spec["arguments"].get("name") == sink), "")
        raise SinkUnavailable(
            f"{epochs}{more}: nothing is rolled back or deleted while sink {sink} can't be asked whether it shows that "
            f"({why}). It is tried again. If that sink is gone: {suggestions.void(self._runtime.pipeline, first)} "
            "gives the range up without asking it, and a week after it was last planned it is no longer asked"
        )

    def miss(self, spec: Json, error: LockstepError) -> None:
        """Note that the sink can't be asked."""
        self._silent.append((spec, error))

    def _shows_nothing(self, epoch: Epoch, name: str, spec: Json) -> bool:
        """Return False if the sink can't be asked."""
        if any(spec == silent for silent, _ in self._silent):
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
        """Return True if the sink's answer is required: not once a person has given the range up, nor a week after the
        sink was last planned, as other sinks' prepared transactions hold locks and vacuum meanwhile."""
        return epoch.state is not EpochState.VOID and spec in self._runtime.ledger.planned_sinks(epoch.pipeline)


def sweep_sink(
    runtime: Runtime, sink: OpenSink, *, only: int | None = None, below: int = 0, guard: DeletionGuard | None = None
) -> list[Txn]:
    """Resolve the pending transactions of `sink`, of epoch `only` or of all, and return them. `guard`: the guard of
    a caller that sweeps more than this sink, and calls `require_all` at its end.

    Raises `LedgerConflict` for a token that this ledger never issued; `SinkUnavailable`, once all the rest is resolved,
    for epochs of which another sink can't be asked.
    """
    alone = guard is None
    guard = guard or DeletionGuard(runtime)
    pending = [txn for txn in sink.pending() if only is None or txn.epoch == only]
    resolved = [txn for txn in pending if _sweep(runtime, sink, txn, below, guard)]
    if alone:
        guard.require_all()
    return resolved


def _sweep(runtime: Runtime, sink: OpenSink, txn: Txn, below: int, guard: DeletionGuard) -> bool:
    epoch = require_known_epoch(runtime, txn.epoch, txn.token, f"sink {sink.name} holds {txn.handle}")
    participant = runtime.ledger.participants(runtime.pipeline, txn.epoch).get(sink.name)
    _require_decided_manifest(epoch, participant, txn)
    verdict = judge(epoch, participant, txn.token, below)
    if verdict is DeletionVerdict.KEEP:
        vote = participant.vote if participant else None
        if participant and vote and vote.token == txn.token and isinstance(sink, TwoPhaseCommitSink):
            sink.warn_of_timeout(txn.handle, participant.age)
        return False
    if not below and not guard.given_for(epoch):  # a sink that is preparing asks its own target only
        return False
    reach(CrashPoint.ROLLBACK_BEFORE_SINK)
    if verdict is DeletionVerdict.FINISH and isinstance(sink, TwoPhaseCommitSink):
        sink.recover_and_commit(txn)
    elif isinstance(sink, TwoPhaseCommitSink):
        sink.recover_and_abort(txn)
    else:
        sink.abort(txn)
    reach(CrashPoint.ROLLBACK_AFTER_SINK)
    _log.info("%s: %s: %s", sink.name, verdict, txn.handle)
    return True


def _require_decided_manifest(epoch: Epoch, participant: Participant | None, txn: Txn) -> None:
    """Raise `LedgerConflict` for the decided token with another manifest, which may neither be committed nor rolled
    back."""
    if epoch.state not in DECIDED or participant is None or participant.vote is None:
        return
    decided = (epoch.manifest_hash or "")[:12]
    if txn.token == participant.vote.token and txn.manifest != decided:
        raise LedgerConflict(
            f"sink {txn.sink} holds {txn.handle}, of manifest {txn.manifest}; {epoch} was decided with {decided}: "
            "it is left as it is, look where it comes from"
        )


def sweep_folders(runtime: Runtime, *, only: int | None = None, guard: DeletionGuard | None = None) -> int:
    """Delete the folders of WALs and of state that can never be read again, and return how many. Raises as
    `sweep_sink`."""
    alone = guard is None
    swept, guard, failed = 0, guard or DeletionGuard(runtime), list[LockstepError]()
    for epoch, token, folder in find_rubbish(runtime, only):
        if not guard.given_for(epoch):
            continue
        try:
            for feature in runtime.features:
                feature.discarding(runtime, epoch, token, folder)
        except (SinkUnavailable, InvalidPipeline) as error:  # of one table; other epochs may not have it
            failed.append(error)
            continue
        runtime.staging.discard(folder)
        swept += 1
    for feature in runtime.features:
        swept += feature.folders_swept(runtime, only, guard)
    if alone:
        guard.require_all()
    if failed:
        raise failed[0]
    return swept


def find_rubbish(runtime: Runtime, only: int | None = None) -> Iterator[tuple[Epoch, int, str]]:
    """Yield epoch, token and name of each WAL folder that can never be read again. Raises `LedgerConflict` for an epoch
    or a token that this ledger doesn't know."""
    deployment, retained = runtime.ledger.deployment(), kept_epochs(runtime) if only is None else frozenset[int]()
    for epoch_id, token, folder in runtime.staging.executions(
        deployment, runtime.pipeline, only=only, exclude=retained
    ):
        epoch = require_known_epoch(runtime, epoch_id, token, f"staging holds {folder}")
        if _is_rubbish(epoch, token, folder) and not _is_kept(runtime, epoch, folder):
            yield epoch, token, folder


def kept_epochs(runtime: Runtime) -> frozenset[int]:
    """Return the epochs whose WAL is retained: other files in their folders are deleted with it."""
    return frozenset(wal.epoch for wal in runtime.ledger.kept_wals(runtime.pipeline))


def _is_kept(runtime: Runtime, epoch: Epoch, folder: str) -> bool:
    """Return True if the ledger retains the WAL. Read after the epoch: cleanup's choice is stored with the epoch."""
    if epoch.state in (EpochState.VOID, *UNDECIDED):
        return False
    retained = runtime.ledger.retained_wal(epoch.pipeline, epoch.id)
    return retained is not None and retained.wal == folder


def _is_rubbish(epoch: Epoch, token: int, folder: str) -> bool:
    if epoch.state in FINISHED:
        return True
    return token < epoch.attempt and folder != epoch.wal


def require_known_epoch(runtime: Runtime, epoch: int, token: int, thing: str) -> Epoch:
    """Return the epoch of `thing`, a sentence. Raises `LedgerConflict` if this ledger knows no such epoch or token."""
    way = f"was the ledger restored? Then go on with: lockstep renumber {runtime.pipeline} --reason … (docs/ledger.md)"
    try:
        issued = runtime.ledger.epoch(runtime.pipeline, epoch)
    except UnknownEpoch as error:
        raise LedgerConflict(f"{thing}, but the ledger has no epoch {epoch}: {way}") from error
    if not runtime.ledger.find_issued_tokens(runtime.pipeline, epoch, [token], attempts=False):
        raise LedgerConflict(f"{thing}, but the ledger never issued token {token}: {way}")
    return issued


def require_known_leftovers(runtime: Runtime, epoch: int) -> None:
    """Raise `LedgerConflict` if `epoch`, about to begin, has a folder of a token that this ledger never issued.

    This and `require_known_pending` are called before `begin` takes a token: a restored ledger may issue the lost
    tokens once more. Tokens that a person has checked since (`renumber`) are known. For a pipeline's first epoch it is
    raised also if staging has the same pipeline of another ledger, which this one may have replaced.
    """
    if epoch == 1 and runtime.ledger.last_epoch(runtime.pipeline) is None:
        _require_no_lost_ledger(runtime)
    for number, token, folder in runtime.staging.executions(runtime.ledger.deployment(), runtime.pipeline, only=epoch):
        if token > last_renumbered_token(runtime.ledger, runtime.pipeline):
            require_known_epoch(runtime, number, token, f"staging holds {folder}")


def _require_no_lost_ledger(runtime: Runtime) -> None:
    """Refuse to begin with an empty ledger in place of a lost one: topics, which belong to no ledger, would be filled
    again."""
    ledger, staging, pipeline = runtime.ledger, runtime.staging, runtime.pipeline
    own = ledger.deployment()
    deployments = [
        deployment
        for deployment in staging.deployments()
        if deployment != own and pipeline in staging.pipelines(deployment)
    ]
    if deployments and not ledger.pipeline_change(pipeline, REDEFINED) and not ledger.savepoint(pipeline):
        raise LedgerConflict(
            f"this ledger, {own}, has no epoch of pipeline {pipeline}, and staging has the pipeline of "
            f"ledger {', '.join(deployments)}: if that one was lost, its epochs would be shown twice. "
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
    """Roll back and delete what carries tokens below the epoch's attempt: the second half of abort.

    Sweeps all sinks that can be reached, then raises as `sweep_sink`; recovery does the rest.
    """
    guard, failed = DeletionGuard(runtime), list[LockstepError]()
    for name, spec in epoch.plan.sinks.items():
        try:
            with runtime.opened(runtime.sink_of(epoch, name)) as sink:
                sweep_sink(runtime, sink, only=epoch.id, guard=guard)
        except (Retryable, InvalidPipeline) as error:
            guard.miss(spec, error)
            failed.append(error)
    sweep_folders(runtime, only=epoch.id, guard=guard)
    guard.require_all()
    if failed:
        raise failed[0]
    for feature in runtime.features:
        feature.rolled_back(runtime, epoch)
