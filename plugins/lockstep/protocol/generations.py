"""Whether an epoch may take the place of others that every sink shows, and of which."""

from __future__ import annotations

import logging
from collections.abc import Sequence, Set
from dataclasses import replace
from itertools import pairwise
from typing import NoReturn

from lockstep.epoch import Epoch, Input, Interval, Json, KeyedBy, Plan, RunKey, SourceRange
from lockstep.errors import EpochBusy, EpochVoid, LockstepError, RestateRefused, Retryable, SourceRefused
from lockstep.ledger import LedgerReader
from lockstep.observability import suggestions
from lockstep.pipeline import Pipeline
from lockstep.protocol.identity import RENUMBERED
from lockstep.protocol.planned_sinks import require_shown_alike
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.state_versions import hands_on_state, require_state_kept
from lockstep.protocol.targets import find_known_losses, said_to_lack
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Replaced
from lockstep.sources.base import Source, planned_source
from lockstep.states import DECIDED, FINISHED, UNDECIDED, EpochState

_LONGEST, _LONGEST_NAME = 1000, 100
_BEFORE_REQUEST = " (request "
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
    return f"{reason}{_BEFORE_REQUEST}{request.strip()})"


def request_of(reason: str | None) -> str | None:
    """The request that a reason names, as `require_reason` wrote it; None: none."""
    _, before, named = (reason or "").rpartition(_BEFORE_REQUEST)
    return named[:-1] if before and named.endswith(")") else None


def _require_sentence(given: object) -> str:
    if not isinstance(given, str) or not given.strip() or len(given) > _LONGEST or not given.strip().isprintable():
        raise RestateRefused(
            f"to restate what is published say why, in a line of at most {_LONGEST} letters that stays in the "
            f"history, not {str(given)[:60]!a}"
        )
    return given.strip()


def require_input(given: object, reason: str | None) -> Input | None:
    """What a run is to read that restates for `reason`; None: it doesn't say. Raises `RestateRefused`."""
    if given is None:
        return None
    if not isinstance(given, str) or given not in list(Input):
        raise RestateRefused(f"input is {str(given)[:60]!a}, and can be {' or '.join(map(repr, map(str, Input)))}")
    if reason is None:
        raise RestateRefused(f"input is {given!r}, which a run can only say that restates: say why, too")
    return Input(given)


def require_number(given: object, reason: str | None) -> int | None:
    """The epoch that a run is to restate, by number; None: it doesn't say. Raises `RestateRefused`."""
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given < 1 << 63:
        raise RestateRefused(f"the epoch to restate is given as {str(given)[:60]!a}: give its number")
    if reason is None:
        raise RestateRefused(f"epoch {given} is named, which only a run can do that restates it: say why, too")
    return given


def require_range_said(pipeline: Pipeline, run: RunKey) -> None:
    """A run that restates says which range: by its interval, or of a cursor's epochs by number; and nothing of what is
    to be read where earlier rows are to be shown again. Raises `RestateRefused`."""
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
    """Raise `RestateRefused` where no epoch's rows can be shown again, so not those of `epoch`."""
    if pipeline.identity is KeyedBy.CURSOR:
        raise RestateRefused(
            f"can't show the rows of epoch {epoch} again: the epochs of {pipeline.name} are numbers, and later ones go "
            "on where one ended; only a pipeline whose sources read by interval can be restored"
        )


def select_generation(runtime: Runtime, run: RunKey, found: Epoch) -> tuple[Epoch, bool]:
    """The life of `found`'s range that `run` is to move, and whether that one is shown and to be replaced.

    A run that has been given an epoch for its reason, its own or one that another run had begun, asks for no other
    however often it is run again; it does with another reason. Two runs with one reason at a time move one epoch, and
    of those that name one request each gets the epoch that the first of them got, whenever they come. Where the run
    says what it `replaces`, another run that has done just that for the same reason has done its part. Raises
    `RestateRefused` where something else has been done.
    """
    if run.restate is None:
        return found, False
    generation = found.generation
    own = runtime.ledger.run_restates(run) == run.restate or (  # an older version kept the generation's reason alone
        generation is not None and generation.reason == run.restate and runtime.find_attempt(run) is not None
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
    if (asked := _find_asked(runtime, run, found)) is not None:
        return asked, False
    if run.replaces not in (None, found.id):
        _require_done(run, found)
        return found, False
    rival = runtime.ledger.pending_replacement(found)
    if rival is not None:
        if rival.state not in UNDECIDED:
            return select_generation(runtime, run, rival)
        if rival.restores == run.restore:
            _tell_whose(run, rival)
        return rival, False
    same = found.generation is not None and found.generation.reason == run.restate and found.restores == run.restore
    return found, not (same and found.state not in FINISHED)


def _find_asked(runtime: Runtime, run: RunKey, current: Epoch) -> Epoch | None:
    """The decided epoch that another run has got for the request that this one names, of `current`'s range. A life that
    was given up counts for nothing. Raises `RestateRefused` where that run has said something else than this one."""
    if (request := request_of(run.restate)) is None:
        return None
    for life, reason in runtime.ledger.restate_reasons(current):
        if request_of(reason) != request:
            continue
        made = life.generation is not None and life.generation.reason == reason
        usual = Input.FROZEN if current.interval is None and not life.plan.snapshots else Input.FRESH
        reads = run.input or usual
        other_rows = life.restores != run.restore or (life.restores is None and life.plan.input is not reads)
        if reason != run.restate or (made and other_rows):
            raise RestateRefused(
                f"request {request!a} has been made before, and otherwise: {life}, {life.plan.input} input, {reason}. "
                "Nothing was done: ask as then, or give this request a name of its own"
            )
        if life.state in DECIDED:
            _log.info("request %s has %s, which is %s: nothing is read once more", request, life, life.state)
            return life
    return None


def require_asked_once(run: RunKey, replaced: Sequence[Epoch]) -> None:
    """Raise `RestateRefused` if one of these was made for the very request of `run`, by which a part of the range has
    been restated."""
    request = request_of(run.restate)
    for one in replaced:
        if request is not None and one.generation and request_of(one.generation.reason) == request:
            raise RestateRefused(
                f"request {request!a} has been done for a part of this: {one} was made for it, and would be restated "
                "once more. Nothing was done: give this request a name of its own"
            )


def _require_done(run: RunKey, current: Epoch) -> None:
    """Raise `RestateRefused` unless `current` is what `run` was to begin: whoever asked has seen an older one."""
    done = current.generation
    if done is None or (done.replaces, done.reason, done.restores) != (run.replaces, run.restate, run.restore):
        why = f": {done.reason}" if done else ""
        raise RestateRefused(
            f"run {run.run_id} was asked for when epoch {run.replaces} was shown, and now {current} is{why}. Nothing "
            "was done: look at that one, and ask again"
        )


def _refuse_void(runtime: Runtime, run: RunKey, found: Epoch) -> NoReturn:
    """A person has said that this request is not to be. Raises `EpochVoid`."""
    current = find_current(runtime, found)
    raise EpochVoid(
        f"{found} was given up: {found.reason}; epoch {current.id} is shown as before, and run {run.run_id} has "
        f"nothing left to do. Leave it, or, {_ANEW}, or let another run ask for it"
    )


def _tell_whose(run: RunKey, rival: Epoch) -> None:
    """What another request has frozen may be older than what this one wants to be read."""
    if rival.generation is not None and rival.generation.reason != run.restate:
        _log.warning(
            "%s was planned at %s for another reason (%s): this run goes on with that, and reads nothing newer; to "
            "have it read afresh: %s",
            rival,
            rival.planned_at.isoformat(timespec="seconds"),
            rival.generation.reason,
            suggestions.replan(rival.pipeline, rival.id),
        )


def find_current(runtime: Runtime, life: Epoch) -> Epoch:
    """The last decided one of a range's lives, of which `life` is one; or what has taken its place with others'."""
    return current_life(runtime.ledger, life)


def current_life(ledger: LedgerReader, life: Epoch) -> Epoch:
    """The same, for who has a ledger alone."""
    decided = [one for one in ledger.generations(life) if one.state in DECIDED]
    found = max(decided, key=lambda one: one.generation.number if one.generation else 0, default=life)
    replaced_by = ledger.successor(found) if found.state is EpochState.REPLACED else None
    return current_life(ledger, replaced_by) if replaced_by is not None else found


def is_generation_of(runtime: Runtime, life: Epoch, number: int) -> bool:
    """Whether `life` is one of the lives of epoch `number`, alone or with others."""
    found: Epoch | None = runtime.ledger.epoch(life.pipeline, number)
    while found is not None and found.root != life.root:
        found = runtime.ledger.successor(found) if found.state is EpochState.REPLACED else None
    return found is not None


def dependent_epochs(runtime: Runtime, current: Epoch) -> list[Epoch]:
    """What has to be replaced with `current`: itself, and where epochs hand on state all that follow it."""
    handed_on = current.interval is None and hands_on_state(runtime)
    return runtime.ledger.sequence_from(current) if handed_on else [current]


def require_asked_for(runtime: Runtime, run: RunKey, life: Epoch) -> None:
    """Raise `RestateRefused` if `run` is to read what was read, and somebody has begun to read the range afresh; or is
    to restate a cursor's epoch that nothing shows yet."""
    if life.state not in UNDECIDED:
        return
    if life.generation is None and run.epoch is not None:
        raise RestateRefused(f"{life} is {life.state}: nothing shows it that could be replaced, its own run goes on")
    if life.generation is None or run.input is not Input.FROZEN or not (life.interval or life.plan.snapshots):
        return
    if life.plan.input is not Input.FROZEN and life.plan.sources != runtime.ledger.replaced(life)[-1].plan.sources:
        raise RestateRefused(
            f"{life} was begun to read afresh, and run {run.run_id} asks for what was read: give it up first "
            f"({suggestions.void(life.pipeline, life.id)}), or let it be decided"
        )


def require_unsealed(runtime: Runtime, run: RunKey, life: Epoch) -> None:
    """Raise `EpochBusy` if `life`, begun for another reason than that of `run`, has rows already: they are of what was
    read then. A run that took it over before it had any goes on with it, and rows of a kept WAL never change."""
    reason = life.generation.reason if life.generation else None
    if run.restate in (None, reason) or life.state is not EpochState.STAGED or life.restores is not None:
        return
    if runtime.ledger.run_restates(run) != run.restate:
        raise EpochBusy(
            f"can't read its range again: {life} is {life.state}, with the rows of "
            f"{life.planned_at.isoformat(timespec='seconds')}{f' ({reason})' if reason else ''}: wait for it, have it "
            f"read afresh with {suggestions.replan(life.pipeline, life.id)}, or give it up with "
            f"{suggestions.void(life.pipeline, life.id)}"
        )


def plan_again(runtime: Runtime, epochs: Sequence[Epoch], *, afresh: bool = False) -> Plan:
    """The plan of an epoch that reads exactly what these have read, which follow one another; `afresh`: but for
    snapshots, which it has of now. Raises `RestateRefused` where a source can't give that any more, as far as it can
    tell without reading."""
    pipeline, whose = runtime.defined, _named(epochs)
    planned = sorted({name for one in epochs for name in one.plan.sources})
    if sorted(pipeline.sources) != planned:
        raise RestateRefused(
            f"can't restate {whose} from what was read: the sources were {', '.join(planned)}, the pipeline has "
            f"{', '.join(sorted(pipeline.sources))} now; put the old ones back for as long"
        )
    sources = {}
    for name in planned:
        ranges = [one.plan.sources[name] for one in epochs if name in one.plan.sources]
        try:
            if afresh and ranges[-1].snapshot:
                sources[name] = take_snapshot(runtime, name, epochs[-1].interval)
            else:
                sources[name] = join_ranges(runtime, name, ranges)
        except Retryable:
            raise
        except LockstepError as error:
            suggestions.complete_command(error, suggestions.REPLAN, _otherwise(epochs[0]))
            raise RestateRefused(f"can't restate {whose} from what was read: {error}") from error
    reads = Input.FRESH if afresh and epochs[-1].plan.snapshots else Input.FROZEN
    return Plan(sources, pipeline.sink_specs(), epochs[-1].plan.reads, pipeline.audit_specs(), reads)


def take_snapshot(runtime: Runtime, name: str, interval: Interval | None) -> SourceRange:
    """All that the source has now. Raises `SourceRefused` where it isn't read whole any more."""
    source = runtime.defined.sources[name]
    if not source.is_snapshot:
        raise SourceRefused(f"source {name} was read whole, and isn't any more: give it another name")
    with source.opened(runtime.source_context(name)) as live:
        return SourceRange(None, live.latest(None, interval), source.spec(), snapshot=True)


def join_ranges(runtime: Runtime, name: str, ranges: Sequence[SourceRange]) -> SourceRange:
    """Of several epochs, as one that can be read. Raises `SourceRefused`, and what the source raises."""
    defined, last = runtime.defined.sources[name], ranges[-1]
    if any(
        planned_source(name, one.spec, defined).frozen_arguments() != _frozen(name, last, defined) for one in ranges
    ):
        raise SourceRefused(f"source {name} was defined otherwise in one of the epochs than in the last")
    if last.snapshot and any((one.snapshot, one.end) != (True, last.end) for one in ranges):
        raise SourceRefused(f"source {name} was read whole by each of the epochs, and wasn't the same in all of them")
    with runtime.open_source(name, last) as source:
        end = last.end if len(ranges) == 1 or last.snapshot else source.join([one.end for one in ranges])
        source.check(ranges[0].start, end)
    return SourceRange(ranges[0].start, end, last.spec, last.snapshot)


def _frozen(name: str, found: SourceRange, defined: Source) -> Json:
    return planned_source(name, found.spec, defined).frozen_arguments()


def _named(epochs: Sequence[Epoch]) -> str:
    return str(epochs[0]) if len(epochs) == 1 else f"{epochs[0]} and all up to epoch {epochs[-1].id}"


def _otherwise(current: Epoch) -> str:
    return f"input={Input.FRESH.value!r}" if current.interval else "leave what is shown"


def require_restatable(runtime: Runtime, epochs: Sequence[Epoch]) -> None:
    """Raise `RestateRefused` where these `dependent_epochs` can't be replaced, and `EpochBusy` where one of them isn't
    shown yet."""
    if epochs[0].interval is None and hands_on_state(runtime):
        if without := [one.id for one in epochs if one.state in DECIDED and one.based_on is None]:
            raise RestateRefused(
                f"can't restate {epochs[0]}: pipeline {runtime.pipeline} has state, and epoch {without[0]} had none: "
                "restate from the first one on that had"
            )
        require_state_kept(runtime, epochs[0])
    advice = "put them back, restate it, then change them again"
    if changed := [one.id for before, one in pairwise(epochs) if before.plan.sinks != one.plan.sinks]:
        advice = f"no definition fits all of the epochs that go with it: restate from epoch {changed[-1]} on"
    require_shown_alike(runtime, epochs, f"restate {epochs[0]}", advice)
    for one in epochs:
        if one.state is not EpochState.CLEANED:
            which = "it" if one.id == epochs[0].id else f"epoch {one.id}"
            way = f"once it is shown and cleaned up ({suggestions.recover(one.pipeline)} does that) try again"
            if one.state in UNDECIDED:  # recovery leaves it to its run
                way = f"wait for its run, or give it up with {suggestions.void(one.pipeline, one.id)}"
            raise EpochBusy(f"can't restate {epochs[0]} yet: {which} is {one.state}; {way}")


def find_foreign(runtime: Runtime, current: Epoch) -> tuple[tuple[int, str], ...]:
    """Number and manifest hash of each life of the range that sinks show and this ledger never decided, the youngest
    first: it was restored to before that. Asked after `preflight`, which refuses what no person has looked at. Raises
    `RestateRefused` where sinks show different ones."""
    found: list[tuple[int, str]] = []
    last = runtime.sink_epoch(current, 0)
    known = {(life.id, life.manifest_hash) for life in runtime.ledger.generations(current) if life.state in DECIDED}
    while True:
        generation = last.generation + len(found) + 1
        # a cursor's span names the life that its ledger knew as the newest one, which may be any of these
        before = [Replaced(number, "") for number, _ in (*known, *found)]
        spans = {replace(last, generation=generation, replaced=(one,)).span or "" for one in before}
        shown = set[tuple[int, str]]()
        for described in runtime.defined.sinks:
            with runtime.opened(described) as sink:
                markers = [marker for span in spans if (marker := sink.find_marker_of_span(span))]
                shown |= {(marker.epoch, marker.manifest_hash) for marker in markers} - known
        if len(shown) > 1:
            raise RestateRefused(f"can't restate {current}: sinks show different epochs in its place: {sorted(shown)}")
        if not shown:
            break
        found.insert(0, shown.pop())
    if current.interval is None and hands_on_state(runtime):
        later = _find_later_foreign(runtime, current, {number for number, _ in found})
        return tuple(sorted({*found, *later}, reverse=True))
    return tuple(found)


def _find_later_foreign(runtime: Runtime, current: Epoch, known: Set[int]) -> set[tuple[int, str]]:
    """Number and manifest hash of what sinks show of a lost ledger in the place of all from an epoch behind `current`
    on, besides the `known`: its rows go with those of `current`. Raises `RestateRefused` if something is in the place
    of all from an earlier epoch on: its rows would stay beside those of what replaces all from `current` on."""
    shown = (runtime.ledger.pipeline_change(runtime.pipeline, RENUMBERED) or {"shown": ()})["shown"]
    numbers, foreign = {one["epoch"] for one in shown}, set(known)
    for one in sorted(shown, key=lambda one: int(one["epoch"])):
        kind, _, place = (one["span"] or "").partition("/")
        if kind != "epoch":
            continue
        first = int(place.partition("/")[0])
        if first in numbers:  # it took the place of another one of the lost ledger
            foreign |= {one["epoch"]} if first in foreign else set()
        elif first == current.id or runtime.ledger.epoch(runtime.pipeline, first).state is not EpochState.REPLACED:
            if first < current.id:
                raise RestateRefused(
                    f"can't restate {current}: sink {one['sink']} shows epoch {one['epoch']} in the place of all from "
                    f"epoch {first} on, by a ledger that was lost: restate that one first, which replaces it, too"
                )
            foreign.add(one["epoch"])
    later = set[tuple[int, str]]()
    for described in runtime.defined.sinks if foreign > known else ():
        with runtime.opened(described) as sink:
            markers = [marker for number in foreign - known if (marker := sink.find_marker(number))]
            later |= {(marker.epoch, marker.manifest_hash) for marker in markers}
    return later


def require_replaceable(runtime: Runtime, sink: OpenSink, current: Epoch) -> None:
    """Raise `PreflightRefused` where the sink can't replace what it shows, `RestateRefused` where it doesn't prove that
    it shows `current`, and nobody has said that it has lost that."""
    sink.require_replaceable()
    marker = sink.find_marker(current.id)
    if marker is not None and marker.manifest_hash == current.manifest_hash:
        return
    if marker is None and find_known_losses(said_to_lack(runtime.ledger, runtime.pipeline), sink, [current.id]):
        return
    found = f"the marker of manifest {marker.manifest_hash[:12]}" if marker else "no marker of it"
    say = f". If its target has lost that, say so first: {suggestions.go_on_without(runtime.pipeline, sink.name)}"
    raise RestateRefused(
        f"can't restate {current}: sink {sink.name} holds {found}, so nobody can prove what would be replaced there"
        f"{'' if marker else say}"
    )
