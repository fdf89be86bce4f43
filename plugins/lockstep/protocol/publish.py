"""publish: a sink makes the decided epoch visible. Idempotent; any process may do it, as often as it takes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Attempt, Epoch, Participant, RunKey, Vote
from lockstep.errors import LedgerConflict, NotPrepared, OutcomeUnknown, TargetChanged, WalCorrupt
from lockstep.observability import suggestions
from lockstep.observability.log_context import bind_attempt, bind_log_context, bind_token, log_context
from lockstep.protocol.alarms import unless_superseded
from lockstep.protocol.lease import hold_publisher_lease
from lockstep.protocol.runtime import Runtime, open_wal
from lockstep.protocol.sweep import sweep_sink
from lockstep.protocol.wording import describe_rows, may_be_incomplete
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.two_phase import TwoPhaseCommitSink
from lockstep.sinks.values import Guarantee, Publication
from lockstep.states import DECIDED, ParticipantState, Role

_log = logging.getLogger(__name__)


@log_context
def publish(runtime: Runtime, run: RunKey, sink_name: str) -> Epoch:
    """Publish this run's epoch in one sink. Raises `NotPrepared` if it isn't decided, and what sinks raise."""
    bind_log_context(sink=sink_name)
    return publish_decided(runtime, _require_decided(runtime, run), sink_name, Role.PUBLISH)


@log_context
def publish_shard(runtime: Runtime, run: RunKey, sink_name: str, shard: int) -> Epoch:
    """Publish one shard of this run's epoch. Other processes may publish the other shards concurrently.

    Records nothing in the ledger: `publish` looks for all shards, and sends what is missing. Raises as `publish`.
    """
    bind_log_context(sink=sink_name)
    return _publish_shard(runtime, _require_decided(runtime, run), sink_name, shard)


def _require_decided(runtime: Runtime, run: RunKey) -> Epoch:
    attempt = bind_attempt(runtime.attempt_of(run))
    epoch = runtime.epoch_of(attempt)
    if epoch.state not in DECIDED:
        runtime.ledger.require_current(attempt)
        raise NotPrepared(
            f"can't publish {epoch}: it is {epoch.state}, not committed, whatever the task states say: "
            f"clear commit and what follows, or all of the run: {suggestions.clear(run.dag_id, run.run_id)}"
        )
    return epoch


@log_context
def publish_decided(runtime: Runtime, epoch: Epoch, sink_name: str, role: Role) -> Epoch:
    """Publish a decided epoch in one sink, or verify the marker of one that was published before."""
    bind_log_context(pipeline=epoch.pipeline, epoch=epoch.id, token=epoch.attempt, sink=sink_name)
    participant = runtime.ledger.participants(epoch.pipeline, epoch.id).get(sink_name)
    if participant is None:
        _log.info("%s was decided without sink %s, which was added later: nothing to publish", epoch, sink_name)
        return epoch
    again = partial(publish_decided, runtime, sink_name=sink_name, role=role)
    with _naming_remedy(epoch, sink_name):
        return unless_superseded(
            partial(_show, runtime, epoch, participant, role), partial(_retry, runtime, epoch, participant, again)
        )


def _publish_shard(runtime: Runtime, epoch: Epoch, sink_name: str, shard: int) -> Epoch:
    participant = runtime.ledger.participants(epoch.pipeline, epoch.id).get(sink_name)
    if participant is None or participant.state is ParticipantState.PUBLISHED:
        _log.info("%s: nothing to publish in %s: it was there before, or has no part in it", epoch, sink_name)
        return epoch
    again = partial(_publish_shard, runtime, sink_name=sink_name, shard=shard)
    with _naming_remedy(epoch, sink_name):
        return unless_superseded(
            partial(_send_shard, runtime, epoch, participant, shard),
            partial(_retry, runtime, epoch, participant, again),
        )


@contextmanager
def _naming_remedy(epoch: Epoch, sink_name: str) -> Iterator[None]:
    """Name the command with which a person says whether the sink shows the epoch, where nothing else can tell."""
    try:
        yield
    except (OutcomeUnknown, TargetChanged) as error:
        resolve = suggestions.resolve(epoch.pipeline, epoch.id, sink_name)
        if not suggestions.complete_command(error, suggestions.RESOLVE, resolve) and resolve not in str(error):
            error.args = (
                f"{error}. If that is for good, look whether {sink_name} shows {epoch}, and say {resolve}, or "
                "`not-applied` in its place, which has it written there as it is now",
            )
        raise


def _retry(runtime: Runtime, epoch: Epoch, participant: Participant, again: Callable[[Epoch], Epoch]) -> Epoch | None:
    """Begin again if the ledger has changed: the sink has published, or a person has acted. None if it hasn't."""
    current = runtime.ledger.epoch(epoch.pipeline, epoch.id)
    same = runtime.ledger.participants(epoch.pipeline, epoch.id).get(participant.sink) == participant
    return None if same and current.restaged == epoch.restaged else again(current)


def _show(runtime: Runtime, epoch: Epoch, participant: Participant, role: Role) -> Epoch:
    vote = _require_vote(epoch, participant)
    with runtime.opened(runtime.sink_of(epoch, participant.sink)) as sink:
        if participant.state is ParticipantState.PUBLISHED:
            _require_marker(runtime, epoch, sink, participant)
        else:
            with _naming_restage(epoch), hold_publisher_lease(runtime.ledger, epoch, sink.name, role):
                epoch = _publish(runtime, epoch, sink, vote, participant.age, role)
        sweep_sink(runtime, sink, only=epoch.id)
    return epoch


def _send_shard(runtime: Runtime, epoch: Epoch, participant: Participant, shard: int) -> Epoch:
    began, vote = time.monotonic(), _require_vote(epoch, participant)
    with (
        runtime.opened(runtime.sink_of(epoch, participant.sink)) as sink,
        _naming_restage(epoch),
        hold_publisher_lease(runtime.ledger, epoch, sink.name, Role.PUBLISH),
    ):
        epoch, token = _enter_turn(runtime, epoch, sink, vote, Role.PUBLISH)
        reach(CrashPoint.PUBLISH_BEFORE_SINK)
        described, wal = runtime.sink_epoch(epoch, token), runtime.sealed_outputs(epoch, sink)
        publication = sink.publish_shard(described, vote, wal, shard)
    sent = f"shard {shard} ({publication})" if publication else f"no shard {shard} of it by itself: publish does all"
    _log.info("%s: %s has %s after %.1f s", epoch, sink.name, sent, time.monotonic() - began)
    return epoch


def _publish(runtime: Runtime, epoch: Epoch, sink: OpenSink, vote: Vote, age: timedelta | None, role: Role) -> Epoch:
    """Make the epoch visible in the sink, and record that. `age`: of the sink's prepared transaction."""
    began = time.monotonic()
    epoch, token = _enter_turn(runtime, epoch, sink, vote, role)
    if isinstance(sink, TwoPhaseCommitSink):
        sink.warn_of_timeout(vote.handle, age)
    reach(CrashPoint.PUBLISH_BEFORE_SINK)
    publication = sink.publish(runtime.sink_epoch(epoch, token), vote, runtime.sealed_outputs(epoch, sink))
    reach(CrashPoint.PUBLISH_BEFORE_RECORD)
    reason, unproven = "", None
    if publication is Publication.REPAIRED:
        reason = "written again from the WAL"
        if isinstance(sink, TwoPhaseCommitSink) and sink.outlived(age):
            reason += f": its transaction had outlived the timeout of {sink.transaction_timeout}"
    elif publication is Publication.CUT_OFF:
        reason = unproven = may_be_incomplete(epoch.id, sink.name)
        _log.warning("%s", reason)
    epoch = runtime.ledger.record_publication(
        epoch, sink.name, vote.token, publication.value, role, reason, unproven=unproven
    )
    reach(CrashPoint.PUBLISH_AFTER_RECORD)
    seconds, rows = time.monotonic() - began, describe_rows(vote.rows)
    _log.info("%s: %s shows it (%s) after %.1f s: %s", epoch, sink.name, publication, seconds, rows)
    return epoch


def _enter_turn(runtime: Runtime, epoch: Epoch, sink: OpenSink, vote: Vote, role: Role) -> tuple[Epoch, int]:
    """Require that the sink shows the preceding epoch, and check the WAL if a part of it may have been sent already.
    Return the epoch, read again, and a new token."""
    runtime.ledger.require_predecessor_published(epoch, sink.name)
    if sink.numbers_rows and not sink.has_shown(runtime.sink_epoch(epoch, vote.token)):
        # of a damaged WAL nothing is sent: the rest of a restaged one could come in another order
        for batches in open_wal(runtime.staging, epoch).outputs(sink.outputs):
            batches.check()
    token = bind_token(runtime.ledger.take_token(Attempt(epoch.pipeline, epoch.id, epoch.attempt), role, sink.name))
    # read again: from the token on nobody stages the epoch again without this publisher's knowledge
    return runtime.ledger.epoch(epoch.pipeline, epoch.id), token


def _require_vote(epoch: Epoch, participant: Participant) -> Vote:
    if participant.vote is None:
        raise LedgerConflict(f"{epoch} was decided without the vote of {participant.sink}")
    return participant.vote


@contextmanager
def _naming_restage(epoch: Epoch) -> Iterator[None]:
    """Name the command that repairs the WAL of a decided epoch."""
    try:
        yield
    except WalCorrupt as damage:
        raise WalCorrupt(
            f"{damage}; {epoch} is decided and waits. If its source is as it was, stage it again: "
            f"`lockstep restage {epoch.pipeline} {epoch.id} --reason …`, or clear `stage` of its run with what follows"
        ) from damage


def _require_marker(runtime: Runtime, epoch: Epoch, sink: OpenSink, participant: Participant) -> None:
    """Raise `LedgerConflict` unless the target shows what the ledger calls published there."""
    if participant.publication == Publication.RESOLVED or sink.guarantee is Guarantee.NONE:
        return
    marker = sink.find_marker(epoch.id)
    if marker is None:
        for feature in runtime.features:
            if (instead := feature.shown_instead(runtime, epoch, sink)) is not None:
                replacing = runtime.ledger.participants(instead.pipeline, instead.id).get(sink.name)
                if replacing is not None and replacing.state is ParticipantState.PUBLISHED:
                    _require_marker(runtime, instead, sink, replacing)
                return
    if marker is None or marker.manifest_hash != epoch.manifest_hash:
        actual = f"the marker of manifest {marker.manifest_hash[:12]}" if marker else "no marker"
        runtime.ledger.record_comparison(epoch, sink.name, f"the target holds {actual}")
        raise LedgerConflict(
            f"{epoch} is published in sink {sink.name} by the ledger, the target holds {actual}: "
            "was it restored from a backup?"
        )
    _log.info("%s: %s shows it already, its marker agrees", epoch, sink.name)
