"""Whether an epoch may take the place of another one that every sink shows, and of which."""

from __future__ import annotations

from typing import NoReturn

from lockstep import remedies
from lockstep.epoch import Epoch, Identity, RunKey
from lockstep.errors import EpochBusy, RestateRefused
from lockstep.runtime import Runtime
from lockstep.sinks.open_sink import OpenSink
from lockstep.states import DECIDED, FINISHED, UNDECIDED, EpochState
from lockstep.steps.planned_sinks import find_changed_sinks

_LONGEST = 1000


def require_reason(given: object) -> str | None:
    """Why a run is to restate what is published; None: it isn't. Raises `RestateRefused` for what is no sentence."""
    if given is None:
        return None
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
    if found.state is EpochState.VOID and generation is not None and not own:
        found = runtime.ledger.epoch(found.pipeline, generation.replaces)
    if found.state not in DECIDED or own:
        return found, False
    found = find_current(runtime, found)
    rival = runtime.ledger.rival_generation(found)
    if rival is not None:
        return (rival, False) if rival.state in UNDECIDED else choose_life(runtime, run, rival)
    joins = found.generation is not None and found.generation.because == run.restate and found.state not in FINISHED
    return found, not joins


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
