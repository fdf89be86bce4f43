"""prepare: a sink takes part. It writes without showing, then votes."""

from __future__ import annotations

import logging
import time
from functools import partial

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Attempt, Epoch, Participant, RunKey, Vote
from lockstep.errors import AlreadyDecided, PreflightRefused, SinkRejected
from lockstep.observability.log_context import bind_attempt, bind_token, log_context
from lockstep.protocol.alarms import unless_superseded
from lockstep.protocol.lease import hold_lease
from lockstep.protocol.runtime import Runtime, open_wal
from lockstep.protocol.sweep import sweep_sink
from lockstep.protocol.targets import require_nothing_lost
from lockstep.protocol.wording import describe_rows
from lockstep.sinks.base import Sink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.two_phase import TwoPhaseCommitSink
from lockstep.states import DECIDED, Role
from lockstep.wal.reading import SealedWal

_log = logging.getLogger(__name__)


@log_context
def prepare(runtime: Runtime, run: RunKey, sink_name: str) -> Vote | None:
    """Make `sink_name` write and vote, and return its vote; None if the epoch is decided already.

    Raises `Fenced`, `NotPrepared` (no sealed WAL), `OutOfOrder`, `KeysHeld`, `PreflightRefused`, `SinkRejected`,
    `SinkUnavailable`, `TargetChanged`, `WalCorrupt`.
    """
    attempt = bind_attempt(runtime.attempt_of(run), sink_name)
    epoch = runtime.epoch_of(attempt)
    if epoch.state in DECIDED:
        _log.info("%s is %s already: nothing to prepare", epoch, epoch.state)
        return None
    runtime.ledger.require_current(attempt)
    runtime.ledger.require_predecessor_decided(epoch)
    try:
        return unless_superseded(
            partial(_take_part, runtime, attempt, epoch, runtime.sink_of(epoch, sink_name)),
            partial(runtime.ledger.require_running, attempt),
        )
    except AlreadyDecided as late:
        _log.info("%s", late)
        return None


def _take_part(runtime: Runtime, attempt: Attempt, epoch: Epoch, described: Sink) -> Vote:
    with hold_lease(runtime.ledger, attempt, Role.PREPARE):
        for feature in runtime.features:
            if (vote := feature.preparing(runtime, attempt, epoch, described)) is not None:
                return vote
        with runtime.opened(described) as sink:
            if voted := _valid_vote(runtime, attempt, epoch, sink):
                return voted
            # again: since `begin` a mount may have dropped, or a database been restored
            require_nothing_lost(runtime.ledger, runtime.pipeline, sink, described)
            wal = open_wal(runtime.staging, epoch)
            reach(CrashPoint.PREPARE_BEFORE_TOKEN)
            token = bind_token(runtime.ledger.take_token(attempt, Role.PREPARE, sink.name))
            reach(CrashPoint.PREPARE_AFTER_TOKEN)
            return unless_superseded(
                partial(_vote, runtime, attempt, epoch, sink, wal, token),
                partial(runtime.ledger.require_running, attempt, sink.name, token),
            )


def _valid_vote(runtime: Runtime, attempt: Attempt, epoch: Epoch, sink: OpenSink) -> Vote | None:
    """Return this attempt's vote if it is still valid: a repeated task must not undo it."""
    participant: Participant | None = runtime.ledger.participants(epoch.pipeline, epoch.id).get(sink.name)
    if participant is None or participant.vote is None or participant.attempt != attempt.token:
        return None
    vote = participant.vote
    if participant.execution != vote.token:
        return None
    described, holds = runtime.sink_epoch(epoch, vote.token), vote.handle is not None
    if isinstance(sink, TwoPhaseCommitSink) and holds and not sink.is_pending(sink.txn_of(described, vote)):
        return None
    _log.info("%s: %s has voted already", epoch, sink.name)
    return vote


def _vote(runtime: Runtime, attempt: Attempt, epoch: Epoch, sink: OpenSink, wal: SealedWal, token: int) -> Vote:
    began = time.monotonic()
    sink.preflight({name: wal.manifest.outputs[name].schema for name in sink.outputs})
    reach(CrashPoint.PREPARE_AFTER_PREFLIGHT)
    if sink.needs_turn:
        _require_no_deadlock(epoch, sink)
        runtime.ledger.take_turn(attempt, sink.name, token)
    reach(CrashPoint.PREPARE_AFTER_TURN)
    sweep_sink(runtime, sink, only=epoch.id, below=token)
    described = runtime.sink_epoch(epoch, token)
    for feature in runtime.features:
        described = feature.writing(runtime, sink, described)
    sink.refuse_shown(described)
    reach(CrashPoint.PREPARE_BEFORE_WRITE)
    vote = sink.prepare(described, wal.outputs(sink.outputs))
    return record_vote(runtime, attempt, epoch, sink, wal, vote, began)


def record_vote(
    runtime: Runtime, attempt: Attempt, epoch: Epoch, sink: OpenSink, wal: SealedWal, vote: Vote, began: float
) -> Vote:
    """Check that the sink has taken every row, and store its vote. `began`: when it began, in monotonic seconds."""
    expected = {name: wal.manifest.outputs[name].rows for name in sink.outputs}
    if dict(vote.rows) != expected:
        raise SinkRejected(f"{epoch}: sink {sink.name} took rows {dict(vote.rows)}, the WAL has {expected}")
    reach(CrashPoint.PREPARE_BEFORE_VOTE)
    runtime.ledger.record_vote(attempt, sink.name, vote)
    reach(CrashPoint.PREPARE_AFTER_VOTE)
    _log.info("%s: %s voted after %.1f s: %s", epoch, sink.name, time.monotonic() - began, describe_rows(vote.rows))
    return vote


def _require_no_deadlock(epoch: Epoch, sink: OpenSink) -> None:
    """Refuse sinks that let two epochs wait for each other: one that has the turn waits for keys which a prepared one
    holds, and that one waits for the turn. Epochs that are prepared in order can't."""
    holding = [name for name, spec in epoch.plan.sinks.items() if name != sink.name and Sink.from_spec(spec).holds_keys]
    if not epoch.in_order and holding:
        raise PreflightRefused(
            f"sink {sink.name}: its table has unique keys, or is to get columns, so epochs go one by one from "
            f"prepare to publish, while sinks {holding} hold keys of theirs (upserts with protocol='two_phase'): two "
            "epochs could wait for each other; say protocol='write_ahead' there, or protocol='two_phase' here"
        )
