"""Generations: which epoch a run moves that restates a range, and whether it may replace what every sink shows."""

from __future__ import annotations

import logging
from collections.abc import Sequence, Set
from dataclasses import replace
from itertools import pairwise
from typing import NoReturn, overload

from lockstep.epoch import Epoch, Input, Interval, KeyedBy, Plan, RunKey, SourceRange
from lockstep.errors import EpochBusy, EpochVoid, LockstepError, RestateRefused, Retryable, SourceRefused
from lockstep.features.keyed_state import hands_on_state, require_state_kept
from lockstep.ledger import LedgerReader
from lockstep.observability import suggestions
from lockstep.pipeline import Pipeline
from lockstep.protocol.begin import join_ranges
from lockstep.protocol.identity import RENUMBERED
from lockstep.protocol.planned_sinks import require_shown_alike
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.targets import find_known_losses, said_to_lack
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Replaced
from lockstep.states import DECIDED, FINISHED, UNDECIDED, EpochState

_LONGEST, _LONGEST_NAME = 1000, 100
_BEFORE_REQUEST = " (request "
_ANEW = "to restate the range anew say another reason, or give the request a name of its own"
_log = logging.getLogger(__name__)


@overload
def require_reason(reason: str, request: object = None) -> str: ...
@overload
def require_reason(reason: object, request: object = None) -> str | None: ...
def require_reason(reason: object, request: object = None) -> str | None:
    """Return why a run is to restate what is published; None if it isn't. `request`: a name that distinguishes requests
    for the same reason; it becomes a part of the reason. Raises `RestateRefused` unless both are one line of text."""
    if reason is None and request is None:
        return None
    sentence = _require_sentence(reason)
    if request is None:
        return sentence
    if not isinstance(request, str) or not 0 < len(request.strip()) <= _LONGEST_NAME or not request.isprintable():
        raise RestateRefused(
            f"a request's name is a word or two of at most {_LONGEST_NAME} letters, not {str(request)[:60]!a}"
        )
    return f"{sentence}{_BEFORE_REQUEST}{request.strip()})"


def request_of(reason: str | None) -> str | None:
    """Return the request's name in a reason of `require_reason`; None without one."""
    _, before, request = (reason or "").rpartition(_BEFORE_REQUEST)
    return request[:-1] if before and request.endswith(")") else None


def _require_sentence(reason: object) -> str:
    if not isinstance(reason, str) or not reason.strip() or len(reason) > _LONGEST or not reason.strip().isprintable():
        raise RestateRefused(
            f"to restate what is published say why, in a line of at most {_LONGEST} letters that stays in the "
            f"history, not {str(reason)[:60]!a}"
        )
    return reason.strip()


def require_input(value: object, reason: str | None) -> Input | None:
    """Return what a run is to read that restates for `reason`; None if it doesn't say. Raises `RestateRefused`."""
    if value is None:
        return None
    if not isinstance(value, str) or value not in list(Input):
        raise RestateRefused(f"input is {str(value)[:60]!a}, and can be {' or '.join(map(repr, map(str, Input)))}")
    if reason is None:
        raise RestateRefused(f"input is {value!r}, which a run can only say that restates: say why, too")
    return Input(value)


def require_number(value: object, reason: str | None) -> int | None:
    """Return the number of the epoch that a run is to restate; None if it doesn't say. Raises `RestateRefused`."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 1 << 63:
        raise RestateRefused(f"the epoch to restate is given as {str(value)[:60]!a}: give its number")
    if reason is None:
        raise RestateRefused(f"epoch {value} is named, which only a run can do that restates it: say why, too")
    return value


def require_range_said(pipeline: Pipeline, run: RunKey) -> None:
    """Raise `RestateRefused` unless a run that restates names its range: an interval, or the number of a cursor's
    epoch; or if it restores rows and names an input as well."""
    if run.restate is None:
        return
    if run.restore is not None:
        require_way_back(pipeline, run.restore)
        if run.input is not None:
            raise RestateRefused(
                f"run {run.run_id} is to show the rows of epoch {run.restore} again, which reads no range, and says "
                f"input={run.input.value!r}: say one of the two"
            )
    if pipeline.identity is KeyedBy.INTERVAL:
        if run.epoch is not None:
            raise RestateRefused(f"pipeline {pipeline.name} restates by interval: name that, and not epoch {run.epoch}")
    elif run.epoch is None:
        raise RestateRefused(
            f"run {run.run_id} is to restate: the epochs of {pipeline.name} are numbers, say which one (epoch=, "
            "`--epoch`, or in a conf lockstep_epoch)"
        )
    elif run.input is Input.FRESH:
        raise RestateRefused(
            f"can't read epoch {run.epoch} of {pipeline.name} afresh: later epochs go on where it ended, so what it "
            f"read is read again (input={Input.FROZEN.value!r})"
        )


def require_way_back(pipeline: Pipeline, epoch: int) -> None:
    """Raise `RestateRefused` if the pipeline can't restore rows of any epoch."""
    if pipeline.identity is KeyedBy.CURSOR:
        raise RestateRefused(
            f"can't show the rows of epoch {epoch} again: the epochs of {pipeline.name} are numbers, and later ones go "
            "on where one ended; only a pipeline whose sources read by interval can be restored"
        )


def select_generation(runtime: Runtime, run: RunKey, epoch: Epoch) -> tuple[Epoch, bool]:
    """Return the generation of the range of `epoch` that `run` is to move, and True if it is shown and to be replaced.

    A run that got an epoch for its reason, its own or another run's, gets no other one when it is run again, unless
    with another reason. Concurrent runs with one reason move one epoch. All runs that name one request get the epoch
    that the first of them got. If the run says what it `replaces`, and another run has replaced that for the same
    reason, its work is done. Raises `RestateRefused` if something else was done instead.
    """
    if run.restate is None:
        return epoch, False
    generation = epoch.generation
    own = runtime.ledger.run_restates(run) == run.restate or (  # an older version kept the generation's reason alone
        generation is not None and generation.reason == run.restate and runtime.find_attempt(run) is not None
    )
    if epoch.state is EpochState.VOID and generation is not None:
        if own:
            _refuse_void(runtime, run, epoch)
        epoch = runtime.ledger.epoch(epoch.pipeline, generation.replaces)
    if own and epoch.state in FINISHED:
        _log.info("%s was restated for this very reason by this run before, nothing is read: %s", epoch, _ANEW)
    if epoch.state not in DECIDED or own:
        return epoch, False
    epoch = find_current(runtime, epoch)
    if (requested := _find_asked(runtime, run, epoch)) is not None:
        return requested, False
    if run.replaces not in (None, epoch.id):
        _require_done(run, epoch)
        return epoch, False
    pending = runtime.ledger.pending_replacement(epoch)
    if pending is not None:
        if pending.state not in UNDECIDED:
            return select_generation(runtime, run, pending)
        if pending.restores == run.restore:
            _warn_of_other_reason(run, pending)
        return pending, False
    same = epoch.generation is not None and epoch.generation.reason == run.restate and epoch.restores == run.restore
    if same and run.restore is not None:  # these very rows are shown: another run has restored them for this reason
        return epoch, False
    return epoch, not (same and epoch.state not in FINISHED)


def _find_asked(runtime: Runtime, run: RunKey, current: Epoch) -> Epoch | None:
    """Return the decided epoch that another run got for this run's request and range. Generations that were given up
    don't count. Raises `RestateRefused` if the other run has asked for something else under the same name."""
    if (request := request_of(run.restate)) is None:
        return None
    for generation, reason in runtime.ledger.restate_reasons(current):
        if request_of(reason) != request:
            continue
        usual = Input.FROZEN if current.interval is None and not generation.plan.snapshots else Input.FRESH
        other_input = generation.restores is None and generation.plan.input is not (run.input or usual)
        made_for_request = generation.generation is not None and generation.generation.reason == reason
        if reason != run.restate or (made_for_request and (generation.restores != run.restore or other_input)):
            raise RestateRefused(
                f"request {request!a} has been made before, and otherwise: {generation}, {generation.plan.input} "
                f"input, {reason}. Nothing was done: ask as then, or give this request a name of its own"
            )
        if generation.state in DECIDED:
            _log.info(
                "request %s has %s, which is %s: nothing is read once more", request, generation, generation.state
            )
            return generation
    return None


def require_asked_once(run: RunKey, replaced: Sequence[Epoch]) -> None:
    """Raise `RestateRefused` if one of these was made for the same request, which has restated a part of the range."""
    request = request_of(run.restate)
    for epoch in replaced:
        if request is not None and epoch.generation and request_of(epoch.generation.reason) == request:
            raise RestateRefused(
                f"request {request!a} has been done for a part of this: {epoch} was made for it, and would be restated "
                "once more. Nothing was done: give this request a name of its own"
            )


def _require_done(run: RunKey, current: Epoch) -> None:
    """Raise `RestateRefused` unless `current` is what `run` was to begin: the request was made for an older one."""
    done = current.generation
    if done is None or (done.replaces, done.reason, done.restores) != (run.replaces, run.restate, run.restore):
        why = f": {done.reason}" if done else ""
        raise RestateRefused(
            f"run {run.run_id} was asked for when epoch {run.replaces} was shown, and now {current} is{why}. Nothing "
            "was done: look at that one, and ask again"
        )


def _refuse_void(runtime: Runtime, run: RunKey, epoch: Epoch) -> NoReturn:
    """Raise `EpochVoid`: a person has given this request up."""
    current = find_current(runtime, epoch)
    raise EpochVoid(
        f"{epoch} was given up: {epoch.reason}; epoch {current.id} is shown as before, and run {run.run_id} has "
        f"nothing left to do. Leave it, or, {_ANEW}, or let another run ask for it"
    )


def _warn_of_other_reason(run: RunKey, pending: Epoch) -> None:
    """Warn that the range was frozen for another request, maybe before the data that this one is about."""
    if pending.generation is not None and pending.generation.reason != run.restate:
        _log.warning(
            "%s was planned at %s for another reason (%s): this run goes on with that, and reads nothing newer; to "
            "have it read afresh: %s",
            pending,
            pending.planned_at.isoformat(timespec="seconds"),
            pending.generation.reason,
            suggestions.replan(pending.pipeline, pending.id),
        )


def find_current(runtime: Runtime, epoch: Epoch) -> Epoch:
    """Return the current generation of the epoch's range; or the epoch that has replaced it along with others."""
    return current_generation(runtime.ledger, epoch)


def current_generation(ledger: LedgerReader, epoch: Epoch) -> Epoch:
    """Return the same as `find_current`, without a runtime."""
    decided = [generation for generation in ledger.generations(epoch) if generation.state in DECIDED]
    newest = max(decided, key=lambda member: member.generation.number if member.generation else 0, default=epoch)
    successor = ledger.successor(newest) if newest.state is EpochState.REPLACED else None
    return current_generation(ledger, successor) if successor is not None else newest


def is_generation_of(runtime: Runtime, epoch: Epoch, number: int) -> bool:
    """Return True if `epoch` is a generation of epoch `number`, alone or along with others."""
    generation: Epoch | None = runtime.ledger.epoch(epoch.pipeline, number)
    while generation is not None and generation.root != epoch.root:
        generation = runtime.ledger.successor(generation) if generation.state is EpochState.REPLACED else None
    return generation is not None


def dependent_epochs(runtime: Runtime, current: Epoch) -> list[Epoch]:
    """Return the epochs that are replaced together: `current`, and with keyed state all that follow it."""
    handed_on = current.interval is None and hands_on_state(runtime)
    return runtime.ledger.sequence_from(current) if handed_on else [current]


def require_asked_for(runtime: Runtime, run: RunKey, epoch: Epoch) -> None:
    """Raise `RestateRefused` if `run` asks for frozen input and the generation was begun with fresh input; or if it
    restates a cursor's epoch that nothing shows yet."""
    if epoch.state not in UNDECIDED:
        return
    if epoch.generation is None and run.epoch is not None:
        raise RestateRefused(f"{epoch} is {epoch.state}: nothing shows it that could be replaced, its own run goes on")
    if epoch.generation is None or run.input is not Input.FROZEN or not (epoch.interval or epoch.plan.snapshots):
        return
    if epoch.plan.input is not Input.FROZEN and epoch.plan.sources != runtime.ledger.replaced(epoch)[-1].plan.sources:
        raise RestateRefused(
            f"{epoch} was begun to read afresh, and run {run.run_id} asks for what was read: give it up first "
            f"({suggestions.void(epoch.pipeline, epoch.id)}), or let it be decided"
        )


def require_unsealed(runtime: Runtime, run: RunKey, epoch: Epoch) -> None:
    """Raise `EpochBusy` if `epoch`, begun for another reason than that of `run`, is staged with what was read then. A
    run that took it over before goes on with it, and rows of a retained WAL never change."""
    reason = epoch.generation.reason if epoch.generation else None
    if run.restate in (None, reason) or epoch.state is not EpochState.STAGED or epoch.restores is not None:
        return
    if runtime.ledger.run_restates(run) != run.restate:
        raise EpochBusy(
            f"can't read its range again: {epoch} is {epoch.state}, with the rows of "
            f"{epoch.planned_at.isoformat(timespec='seconds')}{f' ({reason})' if reason else ''}: wait for it, have it "
            f"read afresh with {suggestions.replan(epoch.pipeline, epoch.id)}, or give it up with "
            f"{suggestions.void(epoch.pipeline, epoch.id)}"
        )


def plan_again(runtime: Runtime, epochs: Sequence[Epoch], *, afresh: bool = False) -> Plan:
    """Return a plan that reads exactly what these consecutive epochs have read; with `afresh`, current snapshots.
    Raises `RestateRefused` if a source can't read that any more, as far as it can tell without reading."""
    pipeline, names = runtime.defined, _named(epochs)
    planned = sorted({name for epoch in epochs for name in epoch.plan.sources})
    if sorted(pipeline.sources) != planned:
        raise RestateRefused(
            f"can't restate {names} from what was read: the sources were {', '.join(planned)}, the pipeline has "
            f"{', '.join(sorted(pipeline.sources))} now; put the old ones back for as long"
        )
    sources = {}
    for name in planned:
        ranges = [epoch.plan.sources[name] for epoch in epochs if name in epoch.plan.sources]
        try:
            if afresh and ranges[-1].snapshot:
                sources[name] = take_snapshot(runtime, name, epochs[-1].interval)
            else:
                sources[name] = join_ranges(runtime, name, ranges)
        except Retryable:
            raise
        except LockstepError as error:
            suggestions.complete_command(error, suggestions.REPLAN, _otherwise(epochs[0]))
            raise RestateRefused(f"can't restate {names} from what was read: {error}") from error
    reads = Input.FRESH if afresh and epochs[-1].plan.snapshots else Input.FROZEN
    return Plan(sources, pipeline.sink_specs(), epochs[-1].plan.reads, pipeline.audit_specs(), reads)


def take_snapshot(runtime: Runtime, name: str, interval: Interval | None) -> SourceRange:
    """Return the range of all that the source has now. Raises `SourceRefused` if it is no longer a snapshot."""
    source = runtime.defined.sources[name]
    if not source.is_snapshot:
        raise SourceRefused(f"source {name} was read whole, and isn't any more: give it another name")
    with source.opened(runtime.source_context(name)) as live:
        return SourceRange(None, live.latest(None, interval), source.spec(), snapshot=True)


def _named(epochs: Sequence[Epoch]) -> str:
    return str(epochs[0]) if len(epochs) == 1 else f"{epochs[0]} and all up to epoch {epochs[-1].id}"


def _otherwise(current: Epoch) -> str:
    return f"input={Input.FRESH.value!r}" if current.interval else "leave what is shown"


def require_restatable(runtime: Runtime, epochs: Sequence[Epoch]) -> None:
    """Raise `RestateRefused` if these `dependent_epochs` can't be replaced, and `EpochBusy` if one of them isn't shown
    yet."""
    if epochs[0].interval is None and hands_on_state(runtime):
        if without := [epoch.id for epoch in epochs if epoch.state in DECIDED and epoch.based_on is None]:
            raise RestateRefused(
                f"can't restate {epochs[0]}: pipeline {runtime.pipeline} has state, and epoch {without[0]} had none: "
                "restate from the first one on that had"
            )
        require_state_kept(runtime, epochs[0])
    advice = "put them back, restate it, then change them again"
    if changed := [epoch.id for before, epoch in pairwise(epochs) if before.plan.sinks != epoch.plan.sinks]:
        advice = f"no definition fits all of the epochs that go with it: restate from epoch {changed[-1]} on"
    require_shown_alike(runtime, epochs, f"restate {epochs[0]}", advice)
    for epoch in epochs:
        if epoch.state is not EpochState.CLEANED:
            which = "it" if epoch.id == epochs[0].id else f"epoch {epoch.id}"
            way = f"once it is shown and cleaned up ({suggestions.recover(epoch.pipeline)} does that) try again"
            if epoch.state in UNDECIDED:  # recovery leaves it to its run
                way = f"wait for its run, or give it up with {suggestions.void(epoch.pipeline, epoch.id)}"
            raise EpochBusy(f"can't restate {epochs[0]} yet: {which} is {epoch.state}; {way}")


def find_foreign(runtime: Runtime, current: Epoch) -> tuple[tuple[int, str], ...]:
    """Return number and manifest hash of each generation that sinks show and this ledger, which was restored to an
    earlier moment, never decided; youngest first. To be called after `preflight`, which refuses those that no person
    has checked. Raises `RestateRefused` if sinks show different ones."""
    lost: list[tuple[int, str]] = []
    last = runtime.sink_epoch(current, 0)
    decided = {
        (epoch.id, epoch.manifest_hash) for epoch in runtime.ledger.generations(current) if epoch.state in DECIDED
    }
    while True:
        generation = last.generation + len(lost) + 1
        # a cursor's span names the newest generation that its ledger knew, which may be any of these
        before = [Replaced(number, "") for number, _ in (*decided, *lost)]
        spans = {replace(last, generation=generation, replaced=(replaced,)).span or "" for replaced in before}
        visible = set[tuple[int, str]]()
        for described in runtime.defined.sinks:
            with runtime.opened(described) as sink:
                markers = [marker for span in spans if (marker := sink.find_marker_of_span(span))]
                visible |= {(marker.epoch, marker.manifest_hash) for marker in markers} - decided
        if len(visible) > 1:
            raise RestateRefused(
                f"can't restate {current}: sinks show different epochs in its place: {sorted(visible)}"
            )
        if not visible:
            break
        lost.insert(0, visible.pop())
    if current.interval is None and hands_on_state(runtime):
        later = _find_later_foreign(runtime, current, {number for number, _ in lost})
        return tuple(sorted({*lost, *later}, reverse=True))
    return tuple(lost)


def _find_later_foreign(runtime: Runtime, current: Epoch, lost: Set[int]) -> set[tuple[int, str]]:
    """Return number and manifest hash of what a lost ledger published in place of all epochs from one behind `current`
    on, besides the `lost`: its rows are replaced along with those of `current`. Raises `RestateRefused` for an epoch in
    place of all from an earlier one on: its rows would stay."""
    visible = (runtime.ledger.pipeline_change(runtime.pipeline, RENUMBERED) or {"shown": ()})["shown"]
    numbers, foreign = {marker["epoch"] for marker in visible}, set(lost)
    for lost_marker in sorted(visible, key=lambda marker: int(marker["epoch"])):
        kind, _, place = (lost_marker["span"] or "").partition("/")
        if kind != "epoch":
            continue
        first = int(place.partition("/")[0])
        if first in numbers:  # it replaced another one of the lost ledger
            foreign |= {lost_marker["epoch"]} if first in foreign else set()
        elif first == current.id or runtime.ledger.epoch(runtime.pipeline, first).state is not EpochState.REPLACED:
            if first < current.id:
                raise RestateRefused(
                    f"can't restate {current}: sink {lost_marker['sink']} shows epoch {lost_marker['epoch']} in the "
                    f"place of all from epoch {first} on, by a ledger that was lost: restate that one first, which "
                    "replaces it, too"
                )
            foreign.add(lost_marker["epoch"])
    later = set[tuple[int, str]]()
    for described in runtime.defined.sinks if foreign > lost else ():
        with runtime.opened(described) as sink:
            markers = [marker for number in foreign - lost if (marker := sink.find_marker(number))]
            later |= {(marker.epoch, marker.manifest_hash) for marker in markers}
    return later


def require_replaceable(runtime: Runtime, sink: OpenSink, current: Epoch) -> None:
    """Raise `PreflightRefused` if the sink can't replace what it shows, `RestateRefused` if no marker proves that it
    shows `current`, unless a person has confirmed the loss."""
    sink.require_replaceable()
    marker = sink.find_marker(current.id)
    if marker is not None and marker.manifest_hash == current.manifest_hash:
        return
    if marker is None and find_known_losses(said_to_lack(runtime.ledger, runtime.pipeline), sink, [current.id]):
        return
    actual = f"the marker of manifest {marker.manifest_hash[:12]}" if marker else "no marker of it"
    say = f". If its target has lost that, say so first: {suggestions.go_on_without(runtime.pipeline, sink.name)}"
    raise RestateRefused(
        f"can't restate {current}: sink {sink.name} holds {actual}, so nothing proves what would be replaced there"
        f"{'' if marker else say}"
    )
