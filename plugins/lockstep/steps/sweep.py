"""What to do with a transaction or a folder that lies around: handles are listed first, the ledger is read second.

Only tokens that this ledger issued are touched. A token it never issued means that the ledger was rolled back to an
older life, or that somebody else uses our names: an alarm, never a rollback.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from enum import StrEnum

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Epoch, Participant
from lockstep.errors import LedgerConflict, UnknownEpoch
from lockstep.runtime import Runtime
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.two_phase import TwoPhaseCommitSink
from lockstep.sinks.values import Txn
from lockstep.states import DECIDED, FINISHED, SHOWN, UNDECIDED, EpochState
from lockstep.steps.output_homes import discard_homes, sweep_homes
from lockstep.wal.savepoint import START

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


def sweep_sink(runtime: Runtime, sink: OpenSink, *, only: int | None = None, below: int = 0) -> list[Txn]:
    """Resolve what `sink` has pending, of epoch `only` or of all; the transactions resolved.

    Raises `LedgerConflict` for a token that this ledger never issued.
    """
    pending = [txn for txn in sink.pending() if only is None or txn.epoch == only]
    return [txn for txn in pending if _sweep(runtime, sink, txn, below)]


def _sweep(runtime: Runtime, sink: OpenSink, txn: Txn, below: int) -> bool:
    epoch = require_known_epoch(runtime, txn.epoch, txn.token, f"sink {sink.name} holds {txn.handle}")
    participant = runtime.ledger.participants(runtime.pipeline, txn.epoch).get(sink.name)
    _require_decided(epoch, participant, txn)
    verdict = judge(epoch, participant, txn.token, below)
    if verdict is Verdict.KEEP:
        _warn_of_timeout(sink, txn, participant)
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


def sweep_folders(runtime: Runtime, *, only: int | None = None) -> int:
    """Delete the folders of WALs and of state that can never be read again; the number of folders deleted."""
    swept = 0
    for epoch, token, folder in find_rubbish(runtime, only):
        discard_homes(runtime, epoch, token, folder)
        runtime.staging.discard(folder)
        swept += 1
    return swept + _sweep_states(runtime, only)


def find_rubbish(runtime: Runtime, only: int | None = None) -> Iterator[tuple[Epoch, int, str]]:
    """Epoch, token and name of each WAL's folder that can never be read again. Raises `LedgerConflict` for one of an
    epoch or a token that this ledger doesn't know."""
    deployment, kept = runtime.ledger.deployment(), kept_epochs(runtime) if only is None else frozenset[int]()
    for epoch_id, token, folder in runtime.staging.executions(deployment, runtime.pipeline, only=only, but=kept):
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
    kept = runtime.ledger.kept_wal(epoch.pipeline, epoch.id)
    return kept is not None and kept.wal == folder


def _sweep_states(runtime: Runtime, only: int | None) -> int:
    states, swept = runtime.states(), 0
    for found in states.executions():
        if found.epoch == START or (only is not None and found.epoch != only):  # of the savepoint it began with
            continue
        epoch = require_known_epoch(runtime, found.epoch, found.token, f"staging holds {found.folder}")
        if _is_rubbish_state(epoch, found.token):
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
    try:
        known = runtime.ledger.epoch(runtime.pipeline, epoch)
    except UnknownEpoch as error:
        raise LedgerConflict(f"{found}, but the ledger has no epoch {epoch}: was the ledger restored?") from error
    if not runtime.ledger.find_issued_tokens(runtime.pipeline, epoch, [token]):
        raise LedgerConflict(f"{found}, but the ledger never issued token {token}: was the ledger restored?")
    return known


def roll_back(runtime: Runtime, epoch: Epoch) -> None:
    """Second half of abort, after the ledger's attempt was raised: what carries lower tokens goes."""
    for name in epoch.plan.sinks:
        with runtime.opened(runtime.sink_of(epoch, name)) as sink:
            sweep_sink(runtime, sink, only=epoch.id)
    sweep_folders(runtime, only=epoch.id)
    sweep_homes(runtime, epoch)
