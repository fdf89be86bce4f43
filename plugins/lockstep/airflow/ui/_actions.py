"""What the ledger alone does for a person, and what it would come to: told before it is done, from the same look.

Sinks are rolled back, published to and looked into by tasks: see `_errands`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lockstep.epoch import Epoch
from lockstep.ledger import Ledger
from lockstep.ledger.report import EpochStatus
from lockstep.observability import suggestions
from lockstep.observability.formatting import short_interval
from lockstep.observability.redaction import list_some
from lockstep.states import UNDECIDED, EpochState, ParticipantState, Role

NAMED = 10  #: epochs of a list


@dataclass(frozen=True)
class Action:
    """Of an epoch. `refused`: why it can't be done now, or None; `effects`: what it would do, sentence by sentence."""

    name: str
    title: str
    refused: Callable[[EpochStatus], str | None]
    effects: Callable[[EpochStatus], list[str]]
    act: Callable[[Ledger, EpochStatus, str], Epoch]


def _refuse_abort(found: EpochStatus) -> str | None:
    if found.epoch.state not in UNDECIDED:
        return f"it is {found.epoch.state}: only an undecided epoch's attempt can be voided"
    return None if found.run else "its attempt is void already: clear its run, and it goes on"


def _effects_of_abort(found: EpochStatus) -> list[str]:
    told = [f"The attempt of run {found.run} is void: none of its tasks can seal, vote or decide any more."]
    if found.leased:
        told.append("A task of it is at work at this moment; it will fail, and say that it was superseded.")
    told += voided_votes(found)
    if found.epoch.wal:
        told.append("Its sealed WAL stays; the next attempt goes on with the same rows.")
    told.append(f"{ROLLED_BACK} The next attempt does it, too.")
    if found.last_run:
        told.append(f"To try again: {suggestions.clear(found.last_run.dag_id, found.last_run.run_id)}.")
    return told


def _abort(ledger: Ledger, found: EpochStatus, reason: str) -> Epoch:
    epoch = found.epoch
    return ledger.raise_attempt(epoch.pipeline, epoch.id, Role.OPERATOR, only=epoch.attempt, reason=reason)


def _refuse_void(found: EpochStatus) -> str | None:
    if found.epoch.state in UNDECIDED:
        return None
    return f"it is {found.epoch.state}: only an undecided epoch's range can be given up"


def _effects_of_void(found: EpochStatus) -> list[str]:
    epoch = found.epoch
    span = f" {short_interval(epoch.interval)}" if epoch.interval else ""
    if epoch.generation:
        told = [f"Nothing takes the place of epoch {epoch.generation.replaces}: its rows stay."]
    else:
        told = [
            f"The range{span} of {list_some(epoch.plan.sources, NAMED)} is given up, for good: nothing ever reads it."
        ]
        told.append("Files that it claimed stay claimed: no other epoch takes them.")
    if found.run:
        told.append(f"The attempt of run {found.run} is void.")
    return [*told, *voided_votes(found), ROLLED_BACK]


def _void(ledger: Ledger, found: EpochStatus, reason: str) -> Epoch:
    return ledger.void_epoch(found.epoch.pipeline, found.epoch.id, reason, only=found.epoch.attempt)


def _refuse_release(found: EpochStatus) -> str | None:
    return None if found.held else "no audit holds it"


def _effects_of_release(found: EpochStatus) -> list[str]:
    offended = found.verdict.offended if found.verdict else ()
    told = [f"Audit {one} holds it no longer." for one in offended]
    manifest = (found.epoch.manifest_hash or "")[: suggestions.MANIFEST_DIGITS]
    told.append(f"The rows of manifest {manifest} go to every sink; what is decided says who let them.")
    if found.last_run:
        told.append(f"To go on: {suggestions.clear(found.last_run.dag_id, found.last_run.run_id)}.")
    return told


def _release(ledger: Ledger, found: EpochStatus, reason: str) -> Epoch:
    return ledger.release_epoch(found.epoch.pipeline, found.epoch.id, reason, only=found.epoch.manifest_hash)


ROLLED_BACK = "What it left in sinks and staging is rolled back by the recovery DAG."


def voided_votes(found: EpochStatus) -> list[str]:
    voted = [one.sink for one in found.participants if one.state is ParticipantState.PREPARED]
    return [f"The votes of {list_some(voted, NAMED)} are void."] if voted else []


ACTIONS = {
    one.name: one
    for one in (
        Action("abort", "Abort the attempt", _refuse_abort, _effects_of_abort, _abort),
        Action("release", "Release", _refuse_release, _effects_of_release, _release),
        Action("void", "Give the range up", _refuse_void, _effects_of_void, _void),
    )
}


def commands(found: EpochStatus) -> list[str]:
    """What else may be done to the epoch, by whoever has a command line: it needs a sink, or the definition."""
    epoch = found.epoch
    if epoch.state in UNDECIDED:
        return [suggestions.replan(epoch.pipeline, epoch.id)]
    if epoch.state is EpochState.COMMITTED:
        late = [one.sink for one in found.participants if one.state is not ParticipantState.PUBLISHED]
        return [suggestions.resolve(epoch.pipeline, epoch.id, sink) for sink in late]
    return []
