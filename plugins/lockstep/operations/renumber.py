"""renumber: continue with a ledger that is older than its sinks, with unused numbers; or with a sink that lacks epochs
which the ledger calls published."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from lockstep.epoch import Json, KeyedBy, LastShown
from lockstep.errors import IllegalTransition, LockstepError
from lockstep.observability import suggestions
from lockstep.protocol.identity import REDEFINED, describe_identity, last_renumbered_token, register_pipeline
from lockstep.protocol.recover import known_sinks
from lockstep.protocol.runtime import Runtime
from lockstep.protocol.targets import (
    find_known_losses,
    find_last_shown,
    find_lost,
    find_missing_marker,
    find_other_target,
    is_said_to_lack,
    said_to_lack,
    target_id_of,
)
from lockstep.sinks.base import Sink
from lockstep.sinks.values import Marker
from lockstep.states import DECIDED
from lockstep.wal.savepoint import START

_log = logging.getLogger(__name__)
_NAMED = 10  # epochs in one message


@dataclass(frozen=True)
class UndecidedEpoch:
    """An epoch that a sink shows and this ledger hasn't decided. `span` None: its range is unknown. `replaced`: the
    epochs that it replaced there."""

    sink: str
    epoch: int
    token: int
    span: str | None
    replaced: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"epoch {self.epoch} ({self.span or 'without its range'}) in {self.sink}"


@dataclass(frozen=True)
class Leftover:
    """A prepared transaction or a folder of a token that this ledger never issued: left as it is."""

    epoch: int
    token: int
    name: str


@dataclass(frozen=True)
class LackingSink:
    """A sink whose target lacks epochs that the ledger calls published there; `epoch` is the last of them. `target_id`:
    the current target's, to continue with; None if it is yet to be created. `through`: the last epoch decided by then;
    lacking epochs up to it may be written again."""

    sink: str
    epoch: int
    target_id: str | None
    through: int = 0


@dataclass(frozen=True)
class Renumbering:
    """What sinks and staging contain. New epochs get numbers above `epoch`, new tokens above `token`. `since`: smallest
    epoch of each sink's markers (0 without any, None if no known plan has the sink); an epoch of `shown` that is
    missing in a sink which goes back that far is shown by some sinks only."""

    pipeline: str
    epoch: int
    token: int
    shown: tuple[UndecidedEpoch, ...]
    left: tuple[Leftover, ...]
    lacking: tuple[LackingSink, ...] = ()
    since: Mapping[str, int | None] = field(default_factory=dict)
    unasked: tuple[str, ...] = ()  #: sinks that no plan in force has, and that can't be looked into, each with why

    def to_json(self) -> Json:
        return asdict(self)


def renumber(runtime: Runtime, reason: str, *, unprotected: bool = False, lacking: Collection[str] = ()) -> Renumbering:
    """Read the numbers that sinks, staging and prepared transactions use, and raise the ledger's numbers above them.

    Nothing is shown, rolled back or deleted. A range that a sink already shows is still refused when it is prepared
    again. `unprotected`: continue although the range of some shown epochs is unknown, so that their rows may be shown
    twice. `lacking`: sinks that lack epochs which the ledger calls published, and continue as they are. Raises
    `IllegalTransition` without the needed option, or for a sink in `lacking` that lacks nothing.
    """
    if runtime.definition is not None:
        register_pipeline(runtime)
    lost = _require_said(runtime, lacking)
    renumbering = _look(runtime)
    bare = [item for item in renumbering.shown if item.span is None]
    if bare and not unprotected:
        raise IllegalTransition(
            f"{len(bare)} of the {len(renumbering.shown)} epochs that the ledger lacks carry no range (a cursor "
            f"pipeline's never do): {', '.join(map(str, bare[:_NAMED]))}. If they are read again "
            "their rows are shown twice, and no check finds it. Restore the ledger further, or take away those rows "
            "with their markers; or say --unprotected if that doesn't matter"
        )
    lacks = tuple(_as_they_are(runtime, lost))
    words = {item["sink"]: LackingSink(**item) for item in said_to_lack(runtime.ledger, runtime.pipeline)} | {
        item.sink: item for item in lacks
    }
    renumbering = replace(renumbering, lacking=tuple(words.values()))
    runtime.ledger.renumber(runtime.pipeline, renumbering.epoch, renumbering.token, renumbering.to_json(), reason)
    _log.warning(
        "pipeline %s: epochs go on above %s, tokens above %s",
        renumbering.pipeline,
        renumbering.epoch,
        renumbering.token,
    )
    return renumbering


def _require_said(runtime: Runtime, lacking: Collection[str]) -> list[tuple[Sink, LastShown]]:
    """Every sink that lacks what the ledger calls published there; before any is claimed, which makes a missing target
    anew. Raises `IllegalTransition` unless these are the ones that a person says it of."""
    sinks = [runtime.sink_to_sweep(spec) for spec in _in_force(runtime).values()]
    names = {sink.name for sink in sinks}
    if unknown := sorted({*lacking} - names):
        there = f"{', '.join(sorted(names))}; of one that is newer than the ledger's plans say --definition module:name"
        raise IllegalTransition(f"{runtime.pipeline} has no sink {', '.join(unknown)}, but {there}")
    missing = list(_find_lacking(runtime, sinks))
    lost = sorted({last.sink for _, last, _ in missing})
    if unsaid := [why for _, last, why in missing if last.sink not in lacking]:
        so = suggestions.go_on_without(runtime.pipeline, *lost)
        raise IllegalTransition(f"{'. '.join(map(str, unsaid))}. If that is to stay away for good, say so: {so}")
    holes = list(_find_holes(runtime, sinks, {*lacking} - {*lost}))
    if whole := sorted({*lacking} - {*lost} - {last.sink for _, last in holes}):
        raise IllegalTransition(
            f"sink {', '.join(whole)} shows the last epoch that the ledger calls published there, and every earlier one"
        )
    return [*((sink, last) for sink, last, _ in missing), *holes]


def _find_holes(runtime: Runtime, sinks: Sequence[Sink], names: Collection[str]) -> Iterator[tuple[Sink, LastShown]]:
    """Sinks among `names` that show their last epoch and lack an earlier one that isn't accepted as lost."""
    words = said_to_lack(runtime.ledger, runtime.pipeline)
    for described in (sink for sink in sinks if sink.name in names):
        last = find_last_shown(runtime.ledger, runtime.pipeline, [described]).get(described.name)
        with runtime.opened(described) as sink:
            lost = {*find_lost(runtime.ledger, runtime.pipeline, sink, resolved=True)} if last else set()
            if last and lost - find_known_losses(words, sink, lost):
                yield described, last[0]


def _find_lacking(runtime: Runtime, sinks: Sequence[Sink]) -> Iterator[tuple[Sink, LastShown, LockstepError]]:
    """Sinks that lack an epoch, with the last one of each: once accepted, all epochs up to that stay lost."""
    last_shown = find_last_shown(runtime.ledger, runtime.pipeline, sinks)
    for described in sinks:
        if not (last := last_shown.get(described.name)):
            continue
        with runtime.opened(described) as sink:
            other_target = find_other_target(sink, last)
            missing = (last[0], other_target) if other_target else find_missing_marker(sink, last)
            words = said_to_lack(runtime.ledger, runtime.pipeline)
            if missing is not None and not is_said_to_lack(words, sink, last, missing[0]):
                yield described, last[0], missing[1]


def _as_they_are(runtime: Runtime, lost: Iterable[tuple[Sink, LastShown]]) -> Iterator[LackingSink]:
    newest = runtime.ledger.last_decided_epoch(runtime.pipeline)
    for described, last in lost:
        with runtime.opened(described) as sink:
            yield LackingSink(last.sink, last.epoch, target_id_of(sink), newest.id if newest else 0)


def _in_force(runtime: Runtime) -> Mapping[str, Json]:
    """Specs of the current sinks; replaced sinks may be gone."""
    if runtime.definition is not None:
        return runtime.definition.sink_specs()
    last = runtime.ledger.last_epoch(runtime.pipeline)
    return last.plan.sinks if last else {}


def _look(runtime: Runtime) -> Renumbering:
    markers: dict[tuple[str, Marker], None] = {}
    leftovers = list(_left_in_staging(runtime))
    numbers = [(0, last_renumbered_token(runtime.ledger, runtime.pipeline)), *_numbers(leftovers)]
    specs, defined = known_sinks(runtime), _in_force(runtime)  # a restored ledger may lack the newest sinks
    unfinished = runtime.ledger.unfinished_epochs(runtime.pipeline)
    needed = {*defined}.union(*(epoch.plan.sinks for epoch in unfinished))
    planned, unasked = dict[str, bool](), list[str]()
    for spec in [*specs, *(spec for spec in defined.values() if spec not in specs)]:
        name = str(spec["arguments"].get("name", spec["type"]))
        try:
            with runtime.opened(runtime.sink_to_sweep(spec)) as sink:
                name = sink.name
                sink.preflight(None)
                markers |= dict.fromkeys((name, marker) for marker in sink.markers())
                markers |= dict.fromkeys(sink.markers_of_other_sinks())
                pending = [Leftover(txn.epoch, txn.token, f"{name}: {txn.handle}") for txn in sink.pending()]
        except LockstepError as error:
            if name in needed:
                raise
            unasked.append(f"{name}: {error}")
            continue
        planned[name] = planned.get(name, False) or spec in specs
        numbers += _numbers(pending)
        leftovers += _unissued(runtime, pending)
    numbers += [(marker.epoch, marker.token) for _, marker in markers]
    epochs, tokens = zip(*numbers, strict=True)
    since = {name: _first_of(name, markers, was) for name, was in planned.items()}
    unknown, unissued = tuple(_lacking(runtime, markers)), tuple(dict.fromkeys(leftovers))
    return Renumbering(
        runtime.pipeline, max(epochs), max(tokens), unknown, unissued, since=since, unasked=tuple(unasked)
    )


def _first_of(sink: str, markers: Iterable[tuple[str, Marker]], planned: bool) -> int | None:
    return min((marker.epoch for name, marker in markers if name == sink), default=0 if planned else None)


def _numbers(leftovers: Iterable[Leftover]) -> list[tuple[int, int]]:
    return [(leftover.epoch, leftover.token) for leftover in leftovers]


def _lacking(runtime: Runtime, markers: Iterable[tuple[str, Marker]]) -> Iterator[UndecidedEpoch]:
    """The ledger is read after the sinks: what is visible was decided earlier."""
    sealed = {epoch.id: epoch for epoch in runtime.ledger.sealed_epochs(runtime.pipeline, 1)}
    for sink, marker in markers:
        epoch = sealed.get(marker.epoch)
        if epoch is None or epoch.state not in DECIDED or epoch.manifest_hash != marker.manifest_hash:
            yield UndecidedEpoch(sink, marker.epoch, marker.token, marker.span, marker.replaced)


def _left_in_staging(runtime: Runtime) -> Iterator[Leftover]:
    folders = runtime.staging.executions(runtime.ledger.deployment(), runtime.pipeline)
    leftovers = [Leftover(epoch, token, folder) for epoch, token, folder in folders]
    if runtime.definition is None or runtime.definition.identity is KeyedBy.CURSOR:
        states = [state for state in runtime.states().executions() if state.epoch != START]
        leftovers += [Leftover(state.epoch, state.token, state.folder) for state in states]
    yield from _unissued(runtime, leftovers)


def _unissued(runtime: Runtime, leftovers: Iterable[Leftover]) -> Iterator[Leftover]:
    for leftover in leftovers:
        if not runtime.ledger.find_issued_tokens(runtime.pipeline, leftover.epoch, [leftover.token], attempts=False):
            yield leftover


def redefine(runtime: Runtime, reason: str) -> None:
    """Take the definition for the pipeline that goes by its name, though it shares no source and no sink with it, or
    though staging has a pipeline of this name of another ledger, and this one has no epoch of it."""
    register_pipeline(runtime)
    runtime.ledger.change_pipeline(runtime.pipeline, REDEFINED, describe_identity(runtime.defined), reason)
