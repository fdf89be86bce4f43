"""renumber: go on with a ledger that is older than its sinks, with numbers that nobody has seen; or with a sink that
lacks what the ledger calls published."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from lockstep.epoch import Json, KeyedBy, LastShown
from lockstep.errors import IllegalTransition, LockstepError
from lockstep.observability import suggestions
from lockstep.protocol.identity import last_renumbered_token, register_pipeline
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
class ShownEpoch:
    """An epoch that a sink shows and this ledger has not decided. `span` None: nobody can find it by its range.
    `replaced`: whose places it has taken there."""

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
    """A sink whose target doesn't show all that the ledger calls published there, `epoch` the last of it. `target_id`:
    of the target as it is now, with which to go on; None of one that is yet to be made. `through`: the last epoch that
    was decided by then; what of these the target lacks it may be given again."""

    sink: str
    epoch: int
    target_id: str | None
    through: int = 0


@dataclass(frozen=True)
class Renumbering:
    """What a look at sinks and staging found. New epochs get numbers above `epoch`, new tokens above `token`. `since`:
    each sink that was asked, with the smallest epoch of its markers (without any 0, or None for one that no known plan
    has); an epoch of `shown` that isn't `shown` in each of those that go back as far stands in some only."""

    pipeline: str
    epoch: int
    token: int
    shown: tuple[ShownEpoch, ...]
    left: tuple[Leftover, ...]
    lacking: tuple[LackingSink, ...] = ()
    since: Mapping[str, int | None] = field(default_factory=dict)
    unasked: tuple[str, ...] = ()  #: sinks that no plan in force has, and that can't be looked into, each with why

    def to_json(self) -> Json:
        return asdict(self)


def renumber(runtime: Runtime, reason: str, *, unprotected: bool = False, lacking: Collection[str] = ()) -> Renumbering:
    """Look what sinks, staging and prepared transactions know, and lift the ledger's numbers above all of it.

    Nothing is shown, rolled back or deleted. A range that a sink shows already stays refused when it is prepared again.
    `unprotected`: go on though some of what is shown can't be found by its range, so that its rows may be shown again.
    `lacking`: the sinks that lack what the ledger calls published, and go on as they are now.
    Raises `IllegalTransition` where either is so and nobody has said it, or a sink is said to lack what it has.
    """
    if runtime.definition is not None:
        register_pipeline(runtime)
    lost = _require_said(runtime, lacking)
    found = _look(runtime)
    bare = [one for one in found.shown if one.span is None]
    if bare and not unprotected:
        raise IllegalTransition(
            f"{len(bare)} of the {len(found.shown)} epochs that the ledger lacks carry no range (a cursor pipeline's "
            f"never do): {', '.join(map(str, bare[:_NAMED]))}. If they are read again "
            "their rows are shown twice, and nobody notices. Restore the ledger further, or take away those rows with "
            "their markers; or say --unprotected if that doesn't matter"
        )
    lacks = tuple(_as_they_are(runtime, lost))
    words = {one["sink"]: LackingSink(**one) for one in said_to_lack(runtime.ledger, runtime.pipeline)} | {
        one.sink: one for one in lacks
    }
    found = replace(found, lacking=tuple(words.values()))
    runtime.ledger.renumber(runtime.pipeline, found.epoch, found.token, found.to_json(), reason)
    _log.warning("pipeline %s: epochs go on above %s, tokens above %s", found.pipeline, found.epoch, found.token)
    return found


def _require_said(runtime: Runtime, lacking: Collection[str]) -> list[tuple[Sink, LastShown]]:
    """Every sink that lacks what the ledger calls published there; before any is claimed, which makes a missing target
    anew. Raises `IllegalTransition` unless these are the ones that a person says it of."""
    sinks = [runtime.sink_to_sweep(spec) for spec in _in_force(runtime).values()]
    names = {sink.name for sink in sinks}
    if unknown := sorted({*lacking} - names):
        there = f"{', '.join(sorted(names))}; of one that is newer than the ledger's plans say --definition module:name"
        raise IllegalTransition(f"{runtime.pipeline} has no sink {', '.join(unknown)}, but {there}")
    found = list(_find_lacking(runtime, sinks))
    lost = sorted({last.sink for _, last, _ in found})
    if unsaid := [why for _, last, why in found if last.sink not in lacking]:
        so = suggestions.go_on_without(runtime.pipeline, *lost)
        raise IllegalTransition(f"{'. '.join(map(str, unsaid))}. If that is to stay away for good, say so: {so}")
    holes = list(_find_holes(runtime, sinks, {*lacking} - {*lost}))
    if whole := sorted({*lacking} - {*lost} - {last.sink for _, last in holes}):
        raise IllegalTransition(
            f"sink {', '.join(whole)} shows the last epoch that the ledger calls published there, and every earlier one"
        )
    return [*((sink, last) for sink, last, _ in found), *holes]


def _find_holes(runtime: Runtime, sinks: Sequence[Sink], names: Collection[str]) -> Iterator[tuple[Sink, LastShown]]:
    """Those of the sinks `names` that show their last epoch, and lack an earlier one, of which nobody has said so."""
    words = said_to_lack(runtime.ledger, runtime.pipeline)
    for described in (sink for sink in sinks if sink.name in names):
        last = find_last_shown(runtime.ledger, runtime.pipeline, [described]).get(described.name)
        with runtime.opened(described) as sink:
            lost = {*find_lost(runtime.ledger, runtime.pipeline, sink, resolved=True)} if last else set()
            if last and lost - find_known_losses(words, sink, lost):
                yield described, last[0]


def _find_lacking(runtime: Runtime, sinks: Sequence[Sink]) -> Iterator[tuple[Sink, LastShown, LockstepError]]:
    """With the last epoch of each, whichever of them is missing: all up to that stay away, once it is said."""
    shown = find_last_shown(runtime.ledger, runtime.pipeline, sinks)
    for described in sinks:
        if not (last := shown.get(described.name)):
            continue
        with runtime.opened(described) as sink:
            other = find_other_target(sink, last)
            missing = (last[0], other) if other else find_missing_marker(sink, last)
            words = said_to_lack(runtime.ledger, runtime.pipeline)
            if missing is not None and not is_said_to_lack(words, sink, last, missing[0]):
                yield described, last[0], missing[1]


def _as_they_are(runtime: Runtime, lost: Iterable[tuple[Sink, LastShown]]) -> Iterator[LackingSink]:
    newest = runtime.ledger.last_decided_epoch(runtime.pipeline)
    for described, last in lost:
        with runtime.opened(described) as sink:
            yield LackingSink(last.sink, last.epoch, target_id_of(sink), newest.id if newest else 0)


def _in_force(runtime: Runtime) -> Mapping[str, Json]:
    """Those that were replaced may be gone."""
    if runtime.definition is not None:
        return runtime.definition.sink_specs()
    last = runtime.ledger.last_epoch(runtime.pipeline)
    return last.plan.sinks if last else {}


def _look(runtime: Runtime) -> Renumbering:
    markers: dict[tuple[str, Marker], None] = {}
    left = list(_left_in_staging(runtime))
    numbers = [(0, last_renumbered_token(runtime.ledger, runtime.pipeline)), *_numbers(left)]
    known, defined = known_sinks(runtime), _in_force(runtime)  # a restored ledger may lack the newest sinks
    unfinished = runtime.ledger.unfinished_epochs(runtime.pipeline)
    needed = {*defined}.union(*(epoch.plan.sinks for epoch in unfinished))
    planned, unasked = dict[str, bool](), list[str]()
    for spec in [*known, *(spec for spec in defined.values() if spec not in known)]:
        name = str(spec["arguments"].get("name", spec["type"]))
        try:
            with runtime.opened(runtime.sink_to_sweep(spec)) as sink:
                name = sink.name
                sink.preflight(None)
                markers |= dict.fromkeys((name, marker) for marker in sink.markers())
                markers |= dict.fromkeys(sink.markers_of_other_sinks())
                pending = [Leftover(txn.epoch, txn.token, f"{name}: {txn.handle}") for txn in sink.pending()]
        except LockstepError as gone:
            if name in needed:
                raise
            unasked.append(f"{name}: {gone}")
            continue
        planned[name] = planned.get(name, False) or spec in known
        numbers += _numbers(pending)
        left += _unissued(runtime, pending)
    numbers += [(marker.epoch, marker.token) for _, marker in markers]
    epochs, tokens = zip(*numbers, strict=True)
    since = {name: _first_of(name, markers, was) for name, was in planned.items()}
    shown, others = tuple(_lacking(runtime, markers)), tuple(dict.fromkeys(left))
    return Renumbering(runtime.pipeline, max(epochs), max(tokens), shown, others, since=since, unasked=tuple(unasked))


def _first_of(sink: str, markers: Iterable[tuple[str, Marker]], planned: bool) -> int | None:
    return min((marker.epoch for name, marker in markers if name == sink), default=0 if planned else None)


def _numbers(left: Iterable[Leftover]) -> list[tuple[int, int]]:
    return [(one.epoch, one.token) for one in left]


def _lacking(runtime: Runtime, markers: Iterable[tuple[str, Marker]]) -> Iterator[ShownEpoch]:
    """The ledger is read after the sinks: what is visible was decided earlier."""
    known = {epoch.id: epoch for epoch in runtime.ledger.sealed_epochs(runtime.pipeline, 1)}
    for sink, marker in markers:
        epoch = known.get(marker.epoch)
        if epoch is None or epoch.state not in DECIDED or epoch.manifest_hash != marker.manifest_hash:
            yield ShownEpoch(sink, marker.epoch, marker.token, marker.span, marker.replaced)


def _left_in_staging(runtime: Runtime) -> Iterator[Leftover]:
    folders = runtime.staging.executions(runtime.ledger.deployment(), runtime.pipeline)
    found = [Leftover(epoch, token, folder) for epoch, token, folder in folders]
    if runtime.definition is None or runtime.definition.identity is KeyedBy.CURSOR:
        states = [state for state in runtime.states().executions() if state.epoch != START]
        found += [Leftover(state.epoch, state.token, state.folder) for state in states]
    yield from _unissued(runtime, found)


def _unissued(runtime: Runtime, found: Iterable[Leftover]) -> Iterator[Leftover]:
    for one in found:
        if not runtime.ledger.find_issued_tokens(runtime.pipeline, one.epoch, [one.token], attempts=False):
            yield one
