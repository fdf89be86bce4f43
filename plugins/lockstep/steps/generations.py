"""Whether an epoch may take the place of another one that every sink shows, and of which."""

from __future__ import annotations

import logging
from typing import NoReturn

from lockstep import remedies
from lockstep.epoch import Epoch, Identity, RunKey
from lockstep.errors import EpochBusy, EpochVoid, RestateRefused
from lockstep.runtime import Runtime
from lockstep.sinks.open_sink import OpenSink
from lockstep.states import DECIDED, FINISHED, UNDECIDED, EpochState
from lockstep.steps.planned_sinks import find_changed_sinks

_LONGEST, _LONGEST_NAME = 1000, 100
_ANEW = "to restate the range anew say another reason, or give the request a name of its own"
_log = logging.getLogger(__name__)


def require_reason(given: object, request: object = None) -> str | None:
    """Why a run is to restate what is published; None: it isn't. `request`: what tells it from earlier requests for the
    same reason; it becomes a part of the reason. Raises `RestateRefused` for what is no sentence, or no name."""
    if given is None and request is None:
        return None
    reason = _require_sentence(given)
    if request is None:
        return reason
    if not isinstance(request, str) or not 0 < len(request.strip()) <= _LONGEST_NAME or not request.isprintable():
        raise RestateRefused(
            f"a request's name is a word or two of at most {_LONGEST_NAME} letters, not {str(request)[:60]!a}"
        )
    return f"{reason} (request {request.strip()})"


def _require_sentence(given: object) -> str:
    if not isinstance(given, str) or not given.strip() or len(given) > _LONGEST or not given.strip().isprintable():
        raise RestateRefused(
            f"to restate what is published say why, in a line of at most {_LONGEST} letters that stays in the "
            f"history, not {str(given)[:60]!a}"
        )
    return given.strip()


def choose_life(runtime: Runtime, run: RunKey, found: Epoch) -> tuple[Epoch, bool]:
    """The life of `found`'s range that `run` is to move, and whether that one is shown and to be replaced.

    A run that has been given an epoch for its reason, its own or one that another run had begun, asks for no other
    however often it is run again; it does with another reason. Two runs with one reason at a time move one epoch.
    """
    if run.restate is None:
        return found, False
    generation = found.generation
    own = runtime.ledger.run_restates(run) == run.restate or (  # an older version kept the generation's reason alone
        generation is not None and generation.because == run.restate and runtime.find_attempt(run) is not None
    )
    if found.state is EpochState.VOID and generation is not None:
        if own:
            _refuse_void(runtime, run, found)
        found = runtime.ledger.epoch(found.pipeline, generation.replaces)
    if own and found.state in FINISHED:
        _log.info("%s was restated for this very reason by this run before, nothing is read: %s", found, _ANEW)
    if found.state not in DECIDED or own:
        return found, False
    found = find_current(runtime, found)
    rival = runtime.ledger.rival_generation(found)
    if rival is not None:
        if rival.state not in UNDECIDED:
            return choose_life(runtime, run, rival)
        if rival.restores == run.restore:
            _tell_whose(run, rival)
        return rival, False
    same = found.generation is not None and found.generation.because == run.restate and found.restores == run.restore
    return found, not (same and found.state not in FINISHED)


def _refuse_void(runtime: Runtime, run: RunKey, found: Epoch) -> NoReturn:
    """A person has said that this request is not to be. Raises `EpochVoid`."""
    current = find_current(runtime, found)
    raise EpochVoid(
        f"{found} was given up: {found.reason}; epoch {current.id} is shown as before, and run {run.run_id} has "
        f"nothing left to do. Leave it, or, {_ANEW}, or let another run ask for it"
    )


def _tell_whose(run: RunKey, rival: Epoch) -> None:
    """What another request has frozen may be older than what this one wants to be read."""
    if rival.generation is not None and rival.generation.because != run.restate:
        _log.warning(
            "%s was planned at %s for another reason (%s): this run goes on with that, and reads nothing newer; to "
            "have it read afresh: %s",
            rival,
            rival.planned_at.isoformat(timespec="seconds"),
            rival.generation.because,
            remedies.replan(rival.pipeline, rival.id),
        )


def find_current(runtime: Runtime, life: Epoch) -> Epoch:
    """The last decided one of a range's lives, of which `life` is one."""
    decided = [one for one in runtime.ledger.generations(life) if one.state in DECIDED]
    return max(decided, key=lambda one: one.generation.number if one.generation else 0, default=life)


def find_replaced(runtime: Runtime, epoch: Epoch) -> Epoch | None:
    """The epoch whose place this one is to take."""
    return runtime.ledger.epoch(epoch.pipeline, epoch.generation.replaces) if epoch.generation else None


def require_restatable(runtime: Runtime, current: Epoch) -> None:
    """Raise `RestateRefused` where nothing can take `current`'s place, and `EpochBusy` where it isn't shown yet."""
    if runtime.defined.identity is Identity.CURSOR:
        refuse_cursor(current.pipeline, str(current))
    if changed := find_changed_sinks(runtime, current):
        raise RestateRefused(
            f"can't restate {current}: it was published with other sinks (changed: {', '.join(changed)}), and what "
            "those show would stay; put them back, restate it, then change them again"
        )
    if current.state is not EpochState.CLEANED:
        raise EpochBusy(
            f"can't restate {current} yet: it is {current.state}; once every sink shows it and it is cleaned up "
            f"({remedies.recover(current.pipeline)} does that) try again"
        )


def refuse_cursor(pipeline: str, what: str) -> NoReturn:
    """Raise `RestateRefused`."""
    raise RestateRefused(
        f"can't restate {what}: the epochs of {pipeline} are numbers, and later ones go on where one ended; only a "
        "pipeline whose sources read by interval can be restated"
    )


def require_replaceable(sink: OpenSink, current: Epoch) -> None:
    """Raise `PreflightRefused` where the sink can't replace what it shows, `RestateRefused` where it doesn't prove that
    it shows `current`."""
    sink.require_replaceable()
    marker = sink.find_marker(current.id)
    if marker is None or marker.manifest_hash != current.manifest_hash:
        found = f"the marker of manifest {marker.manifest_hash[:12]}" if marker else "no marker of it"
        raise RestateRefused(
            f"can't restate {current}: sink {sink.name} holds {found}, so nobody can prove what would be replaced there"
        )
