"""resolve: record a person's answer about a decided epoch in one sink; refused if the target proves the contrary.

Airflow's pages can't reach the sink: they record the answer in the ledger (`ask`), and a process that can reach it
applies it (`resolve_as_asked`). The answer comes from the history, not from the caller.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Literal, get_args

from lockstep.epoch import Epoch, Vote
from lockstep.errors import (
    IllegalTransition,
    LedgerConflict,
    OutcomeUnknown,
    PreflightRefused,
    PublishBusy,
    Retryable,
    TargetChanged,
    UnknownEpoch,
    WalCorrupt,
)
from lockstep.ledger import Ledger
from lockstep.observability.formatting import short_age
from lockstep.protocol.runtime import Runtime, open_wal
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Guarantee, Publication
from lockstep.states import EpochState, ParticipantState, Role

_log = logging.getLogger(__name__)


#: of a word that was left: no safety hangs on it, but the sink may not be any more what the person looked at
VALID = timedelta(hours=6)


class NothingAsked(IllegalTransition):
    """No person's word is left that hasn't been carried out, or refused."""


Resolution = Literal["applied", "not-applied"]
RESOLUTIONS: tuple[Resolution, ...] = get_args(Resolution)


def ask(
    ledger: Ledger, epoch: Epoch, sink_name: str, word: Resolution, reason: str, *, after: int | None = None
) -> int:
    """Leave a person's word for `resolve_as_asked`: the id by which that finds it. `after`: the id of what the person
    has seen last of the sink's part. Raises `IllegalTransition` where there is nothing to resolve, or more has
    happened."""
    return ledger.write_note(epoch, sink_name, f"{_asked(word)}{reason}", after=after)


def resolve_as_asked(runtime: Runtime, epoch_id: int, sink_name: str, word_id: int) -> Epoch:
    """Apply the recorded answer `word_id` (see `ask`). It is valid for `VALID`, and while nothing else happens to this
    sink's part, so it is applied once, and of two answers only the last counts. A refuted answer is used up too;
    otherwise a recovery could apply it later, when the target can't be asked. Raises `NothingAsked`, and what `resolve`
    raises."""
    epoch = runtime.ledger.epoch(runtime.pipeline, epoch_id)
    participant = runtime.ledger.participants(runtime.pipeline, epoch_id).get(sink_name)
    last_word = runtime.ledger.last_note(epoch, sink_name)
    if last_word is not None and last_word.id != word_id:
        last_word = None
    if last_word is not None and last_word.age > VALID:
        raise NothingAsked(
            f"can't resolve {epoch} in sink {sink_name}: {last_word.actor} said what became of it "
            f"{short_age(last_word.age)} ago, and a word is good for {short_age(VALID)}: look into the "
            "sink, and say it again"
        )
    if (
        participant is not None
        and participant.vote is not None
        and last_word is not None
        and last_word.role is Role.OPERATOR
    ):
        for word in RESOLUTIONS:
            before, marker, reason = (last_word.reason or "").partition(_asked(word))
            if marker and not before and last_word.token == participant.vote.token:
                try:
                    return resolve(runtime, epoch_id, sink_name, word, f"as {last_word.actor} asked: {reason}")
                except LedgerConflict as refuted:
                    runtime.ledger.write_note(epoch, sink_name, f"refused: {refuted}", Role.RECOVER)
                    raise
    raise NothingAsked(
        f"can't resolve {epoch} in sink {sink_name}: nobody has asked for that since its part in it last changed"
    )


def _asked(word: Resolution) -> str:
    return f"asked to resolve it as {word}: "


def resolve(runtime: Runtime, epoch_id: int, sink_name: str, word: Resolution, reason: str) -> Epoch:
    """Record a person's answer for a decided epoch whose outcome in one sink can't be proven.

    "applied": the sink shows it; it is recorded as published. "not-applied": the current target doesn't have it; the
    next publish writes it from the WAL. Refused if the target proves the contrary.
    """
    epoch = runtime.ledger.epoch(runtime.pipeline, epoch_id)
    if epoch.state is not EpochState.COMMITTED:
        raise IllegalTransition(
            f"can't resolve {epoch}: it is {epoch.state}; only a committed epoch's outcome can be unknown"
        )
    participant = runtime.ledger.participants(runtime.pipeline, epoch_id).get(sink_name)
    if participant is None or participant.vote is None:
        raise UnknownEpoch(f"{epoch} was decided without sink {sink_name}")
    if participant.state is ParticipantState.PUBLISHED:
        raise IllegalTransition(f"can't resolve {epoch}: sink {sink_name} has published already")
    if word == "applied":
        _require_unproven(runtime, epoch, sink_name, participant.vote)
        token, word_only = participant.vote.token, f"a person has said that it was applied: {reason}"
        return runtime.ledger.record_publication(
            epoch, sink_name, token, Publication.RESOLVED.value, Role.OPERATOR, reason, unproven=word_only
        )
    with runtime.opened(runtime.sink_of(epoch, sink_name)) as sink:
        sink.preflight(None)
        marker = sink.find_marker(epoch_id)
        if marker is not None and marker.manifest_hash == epoch.manifest_hash:
            raise LedgerConflict(f"{epoch}: the target of {sink_name} holds its marker: it was applied")
        runtime.ledger.retarget_participant(epoch, sink_name, sink.target_id(), reason)
    return epoch


def _require_unproven(runtime: Runtime, epoch: Epoch, sink_name: str, vote: Vote) -> None:
    """Look first: where the target proves that nothing was applied, no word can say so, as long as it still can be."""
    try:
        with runtime.opened(runtime.sink_of(epoch, sink_name)) as sink:
            proof = _proof_of_absence(runtime, sink, epoch, vote)
    except PublishBusy:  # a moment later there is an outcome
        raise
    except (Retryable, OutcomeUnknown, PreflightRefused, TargetChanged) as error:
        _log.info("the target of %s can't be asked, so a person's word counts: %s", sink_name, error)
        return
    if proof is not None and _is_readable(runtime, epoch):
        raise LedgerConflict(
            f"{epoch}: the target of {sink_name} {proof}: it was not applied, and publish or recover shows it. If a "
            f"person has to say anything: `lockstep resolve {epoch.pipeline} {epoch.id} {sink_name} not-applied "
            "--reason …`"
        )


def _proof_of_absence(runtime: Runtime, sink: OpenSink, epoch: Epoch, vote: Vote) -> str | None:
    """The handle first, the marker second, as publication looks for them. None where that proves nothing, and where
    the target shows the range under another number, by the word of a ledger that has been lost."""
    if any(txn.epoch == epoch.id and txn.token == vote.token for txn in sink.pending()):
        return "still holds it unpublished"
    if sink.guarantee is not Guarantee.EXACTLY_ONCE or sink.target_id() != vote.target_id:
        return None
    if sink.find_marker(epoch.id) is not None:
        return None
    try:
        sink.refuse_shown(runtime.sink_epoch(epoch, vote.token))
    except LedgerConflict as error:
        _log.info("%s", error)
        return None
    return "has no marker of it"


def _is_readable(runtime: Runtime, epoch: Epoch) -> bool:
    try:
        open_wal(runtime.staging, epoch).check()
    except WalCorrupt as error:
        _log.warning("%s can't be shown any more, so a person's word counts: %s", epoch, error)
        return False
    return True
