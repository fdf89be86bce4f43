"""Whether a sink's target is the one that showed its last epochs, and shows them still.

One that is another by now, or was taken back to an earlier moment, lacks epochs that the ledger calls published. Nobody
would notice once later epochs stand there: so it is asked before it is claimed, before anything is planned for it, and
before it votes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from lockstep.epoch import Json, LastShown
from lockstep.errors import InvalidPipeline, LedgerConflict, LockstepError, TargetChanged
from lockstep.ledger import LedgerReader
from lockstep.observability import suggestions
from lockstep.protocol.identity import RENUMBERED
from lockstep.protocol.runtime import Runtime
from lockstep.sinks.base import Sink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Guarantee, Marker, Publication


def find_last_shown(ledger: LedgerReader, pipeline: str, sinks: Iterable[Sink]) -> dict[str, list[LastShown]]:
    """What the ledger calls published last in each of `sinks`, by name, youngest first: as many as something may have
    been lost among since anybody asked. None of a sink that shows nothing yet, that was another one then, or that keeps
    no record, and no epoch that stands by a person's word.

    To be asked before the target is: what the ledger calls published has its marker there by then.
    """
    asked = {sink.name: sink for sink in sinks if Guarantee(sink.guarantee) is not Guarantee.NONE}
    found = defaultdict[str, list[LastShown]](list)
    for one in ledger.last_shown(pipeline, list(asked)) if asked else []:
        found[one.sink].append(one)
    return {
        name: [one for one in shown if one.publication != Publication.RESOLVED]
        for name, shown in found.items()
        if _is_planned_as(shown[0].spec, asked[name])
    }


def require_same_target(runtime: Runtime, sink: OpenSink, shown: Sequence[LastShown]) -> None:
    """Raise `TargetChanged` if the target isn't the one that voted for the last epoch there. Before a `preflight`,
    which would make a missing one anew."""
    found = find_other_target(sink, shown)
    if found is not None and not is_said_to_lack(said_to_lack(runtime.ledger, runtime.pipeline), sink, shown, shown[0]):
        raise _refused(runtime.pipeline, sink, found)


def require_shown_still(
    runtime: Runtime, sink: OpenSink, shown: Sequence[LastShown], newest: Sequence[Marker] = ()
) -> None:
    """Raise `LedgerConflict` if the target lacks a marker of the last epochs there. `newest`: those that were asked for
    anyway; of the last epoch that was shown it is one of them, unless younger ones were shown meanwhile."""
    found = find_missing_marker(sink, shown, newest)
    if found is not None and not is_said_to_lack(said_to_lack(runtime.ledger, runtime.pipeline), sink, shown, found[0]):
        raise _refused(runtime.pipeline, sink, found[1])


def require_nothing_lost(ledger: LedgerReader, pipeline: str, sink: OpenSink, described: Sink) -> None:
    """Both of these, for one sink. Raises as they do."""
    shown = find_last_shown(ledger, pipeline, [described]).get(sink.name, [])
    other = find_other_target(sink, shown)
    missing = (shown[0], other) if other else find_missing_marker(sink, shown)
    if missing is not None and not is_said_to_lack(said_to_lack(ledger, pipeline), sink, shown, missing[0]):
        raise _refused(pipeline, sink, missing[1])


def require_shows_last(runtime: Runtime, sink: OpenSink) -> None:
    """The same of what a sink of this name was last to show, whatever its other arguments were. Raises as they do."""
    last = runtime.ledger.last_shown(runtime.pipeline, [sink.name])
    shown = [epoch for epoch in last if epoch.publication != Publication.RESOLVED]
    require_same_target(runtime, sink, shown)
    require_shown_still(runtime, sink, shown)


def find_other_target(sink: OpenSink, shown: Sequence[LastShown]) -> TargetChanged | None:
    """What tells that the target isn't the one of the last epoch."""
    if not shown:
        return None
    last = shown[0]
    try:
        found = sink.target_id()
    except TargetChanged as missing:
        return missing
    if found == last.target_id:
        return None
    return TargetChanged(
        f"sink {sink.name}: the connection leads to target {found}, and epoch {last.epoch}, the last one that the "
        f"ledger calls published there, is in target {last.target_id}: point it back, or mount or restore that one"
    )


def find_missing_marker(
    sink: OpenSink, shown: Iterable[LastShown], newest: Sequence[Marker] = ()
) -> tuple[LastShown, LockstepError] | None:
    """The youngest epoch that the target doesn't show as it was decided, and what tells so."""
    known = {(marker.epoch, marker.manifest_hash) for marker in newest}
    for one in shown:
        if (one.epoch, one.manifest_hash) not in known and (missing := _find_missing(sink, one)) is not None:
            return one, missing
    return None


def _find_missing(sink: OpenSink, one: LastShown) -> LockstepError | None:
    try:
        found = sink.find_any_marker(one.epoch) or sink.find_marker(one.epoch)  # the second waits for who hides it
    except TargetChanged as missing:
        return missing
    if found is not None and found.manifest_hash == one.manifest_hash:
        return None
    there = f"the marker of manifest {found.manifest_hash[:12]}" if found else "no marker"
    return LedgerConflict(
        f"sink {sink.name}: of epoch {one.epoch} (manifest {one.manifest_hash[:12]}), which the ledger calls published "
        f"there, the target has {there}: it was emptied, restored to an earlier moment, or is an older copy, and lacks "
        "what was shown since. Restore it further, or point the connection back"
    )


def is_said_to_lack(words: Iterable[Json], sink: OpenSink, shown: Sequence[LastShown], missing: LastShown) -> bool:
    """Whether a person has seen just this target lack that epoch, or one that was shown behind it and may have been
    replaced since, so that it isn't among `shown` any more."""
    word = _find_word(words, sink)
    behind = [one.epoch for one in shown[: shown.index(missing) + 1]]
    return word is not None and (missing.reported_lost or word["epoch"] in behind)


def find_known_losses(words: Iterable[Json], sink: OpenSink, epochs: Iterable[int]) -> frozenset[int]:
    """Those of `epochs`, without markers there, that a person has seen this target lack: what was decided by then."""
    word = _find_word(words, sink) or {"epoch": 0}
    return frozenset(epoch for epoch in epochs if epoch <= max(word["epoch"], word.get("through", 0)))


def find_lost(ledger: LedgerReader, pipeline: str, sink: OpenSink, *, resolved: bool = False) -> list[int]:
    """The epochs that the ledger calls published in `sink`, and of which the target has no marker. The ledger is asked
    first: what it calls published has its marker by then. `resolved`: also by a person's word."""
    published = ledger.published_in(pipeline, sink.name, resolved=resolved)
    there = {(marker.epoch, marker.manifest_hash) for marker in sink.markers()} if published else set()
    return [epoch for epoch, manifest_hash in published if (epoch, manifest_hash) not in there]


def said_to_lack(ledger: LedgerReader, pipeline: str) -> list[Json]:
    """What persons have said of sinks that lack something, see `LackingSink`."""
    said = ledger.pipeline_change(pipeline, RENUMBERED) or {}
    return list(said.get("lacking", ()))


def _find_word(words: Iterable[Json], sink: OpenSink) -> Json | None:
    """What a person has said of this sink, if its target is the one of then."""
    word = next((one for one in words if one["sink"] == sink.name), None)
    return word if word is not None and word["target_id"] in (None, target_id_of(sink)) else None


def target_id_of(sink: OpenSink) -> str | None:
    """None of a target that is yet to be made."""
    try:
        return sink.target_id()
    except TargetChanged:
        return None


def _refused(pipeline: str, sink: OpenSink, found: LockstepError) -> LockstepError:
    return type(found)(
        f"{found}. Nothing is planned or written there, or later epochs would hide what is missing. If that is to stay "
        f"away for good, say so: {suggestions.go_on_without(pipeline, sink.name)}"
    )


def _is_planned_as(spec: Json, sink: Sink) -> bool:
    try:
        return bool(Sink.from_spec(spec).spec() == sink.spec())
    except (InvalidPipeline, TypeError):  # its class is gone, or takes other arguments by now
        return False
