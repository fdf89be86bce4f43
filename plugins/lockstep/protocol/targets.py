"""Checks that a sink's target is the one that showed its last epochs, and still shows them.

A target that was exchanged, or restored to an earlier moment, lacks epochs that the ledger calls published. Later
epochs would hide the loss. So a target is asked before it is claimed, before anything is planned for it, and before it
votes.
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
    """Return what the ledger calls published last in each of `sinks`, by name, youngest first: as many epochs as may
    have been lost since the last check. Sinks that show nothing yet, that were defined otherwise then, or that keep no
    record are left out, and epochs that a person has resolved.

    To be called before the target is asked: what the ledger calls published has its marker there by then.
    """
    by_name = {sink.name: sink for sink in sinks if Guarantee(sink.guarantee) is not Guarantee.NONE}
    shown_in = defaultdict[str, list[LastShown]](list)
    for epoch in ledger.last_shown(pipeline, list(by_name)) if by_name else []:
        shown_in[epoch.sink].append(epoch)
    return {
        name: [epoch for epoch in epochs if epoch.publication != Publication.RESOLVED]
        for name, epochs in shown_in.items()
        if _is_planned_as(epochs[0].spec, by_name[name])
    }


def require_same_target(runtime: Runtime, sink: OpenSink, last: Sequence[LastShown]) -> None:
    """Raise `TargetChanged` if the target isn't the one that voted for the last epoch there. To be called before
    `preflight`, which would create a missing target."""
    error = find_other_target(sink, last)
    if error is not None and not is_said_to_lack(said_to_lack(runtime.ledger, runtime.pipeline), sink, last, last[0]):
        raise _refused(runtime.pipeline, sink, error)


def require_shown_still(
    runtime: Runtime, sink: OpenSink, last: Sequence[LastShown], newest: Sequence[Marker] = ()
) -> None:
    """Raise `LedgerConflict` if the target lacks a marker of the last epochs there. `newest`: markers that were read
    before; usually the last epoch's is among them."""
    missing = find_missing_marker(sink, last, newest)
    if missing is not None and not is_said_to_lack(
        said_to_lack(runtime.ledger, runtime.pipeline), sink, last, missing[0]
    ):
        raise _refused(runtime.pipeline, sink, missing[1])


def require_nothing_lost(ledger: LedgerReader, pipeline: str, sink: OpenSink, described: Sink) -> None:
    """Check target and markers of one sink. Raises as `require_same_target` and `require_shown_still`."""
    last = find_last_shown(ledger, pipeline, [described]).get(sink.name, [])
    error = find_other_target(sink, last)
    missing = (last[0], error) if error else find_missing_marker(sink, last)
    if missing is not None and not is_said_to_lack(said_to_lack(ledger, pipeline), sink, last, missing[0]):
        raise _refused(pipeline, sink, missing[1])


def require_shows_last(runtime: Runtime, sink: OpenSink) -> None:
    """Check them for what a sink of this name showed last, whatever its other arguments were. Raises as they do."""
    last = runtime.ledger.last_shown(runtime.pipeline, [sink.name])
    epochs = [epoch for epoch in last if epoch.publication != Publication.RESOLVED]
    require_same_target(runtime, sink, epochs)
    require_shown_still(runtime, sink, epochs)


def find_other_target(sink: OpenSink, epochs: Sequence[LastShown]) -> TargetChanged | None:
    """Return the error if the target isn't the one of the last epoch."""
    if not epochs:
        return None
    last = epochs[0]
    try:
        target_id = sink.target_id()
    except TargetChanged as missing:
        return missing
    if target_id == last.target_id:
        return None
    return TargetChanged(
        f"sink {sink.name}: the connection leads to target {target_id}, and epoch {last.epoch}, the last one that the "
        f"ledger calls published there, is in target {last.target_id}: point it back, or mount or restore that one"
    )


def find_missing_marker(
    sink: OpenSink, epochs: Iterable[LastShown], newest: Sequence[Marker] = ()
) -> tuple[LastShown, LockstepError] | None:
    """Return the youngest epoch that the target doesn't show as it was decided, with the error."""
    present = {(marker.epoch, marker.manifest_hash) for marker in newest}
    for epoch in epochs:
        if (epoch.epoch, epoch.manifest_hash) not in present and (missing := _find_missing(sink, epoch)) is not None:
            return epoch, missing
    return None


def _find_missing(sink: OpenSink, epoch: LastShown) -> LockstepError | None:
    try:
        marker = sink.find_any_marker(epoch.epoch) or sink.find_marker(
            epoch.epoch
        )  # the second waits for a transaction that hides it
    except TargetChanged as missing:
        return missing
    if marker is not None and marker.manifest_hash == epoch.manifest_hash:
        return None
    there = f"the marker of manifest {marker.manifest_hash[:12]}" if marker else "no marker"
    return LedgerConflict(
        f"sink {sink.name}: of epoch {epoch.epoch} (manifest {epoch.manifest_hash[:12]}), which the ledger calls "
        f"published there, the target has {there}: it was emptied, restored to an earlier moment, or is an older "
        "copy, and lacks what was shown since. Restore it further, or point the connection back"
    )


def is_said_to_lack(words: Iterable[Json], sink: OpenSink, epochs: Sequence[LastShown], missing: LastShown) -> bool:
    """Return True if a person has confirmed that this target lacks the epoch, or a later one, which may have been
    replaced since and so be missing in `shown`."""
    word = _find_word(words, sink)
    behind = [epoch.epoch for epoch in epochs[: epochs.index(missing) + 1]]
    return word is not None and (missing.reported_lost or word["epoch"] in behind)


def find_known_losses(words: Iterable[Json], sink: OpenSink, epochs: Iterable[int]) -> frozenset[int]:
    """Return those of `epochs` that this target has lost, as a person has confirmed: they were decided before."""
    word = _find_word(words, sink) or {"epoch": 0}
    return frozenset(epoch for epoch in epochs if epoch <= max(word["epoch"], word.get("through", 0)))


def find_lost(ledger: LedgerReader, pipeline: str, sink: OpenSink, *, resolved: bool = False) -> list[int]:
    """Return the epochs that the ledger calls published in `sink` and that have no marker in the target. The ledger is
    asked first: what it calls published has its marker by then. `resolved`: include what a person has resolved."""
    published = ledger.published_in(pipeline, sink.name, resolved=resolved)
    there = {(marker.epoch, marker.manifest_hash) for marker in sink.markers()} if published else set()
    return [epoch for epoch, manifest_hash in published if (epoch, manifest_hash) not in there]


def said_to_lack(ledger: LedgerReader, pipeline: str) -> list[Json]:
    """Return what persons have confirmed about sinks that have lost epochs, see `LackingSink`."""
    change = ledger.pipeline_change(pipeline, RENUMBERED) or {}
    return list(change.get("lacking", ()))


def _find_word(words: Iterable[Json], sink: OpenSink) -> Json | None:
    """Return what a person has confirmed about this sink, if it has the same target as then."""
    for word in words:
        if word["sink"] == sink.name:
            return word if word["target_id"] in (None, target_id_of(sink)) else None
    return None


def target_id_of(sink: OpenSink) -> str | None:
    """Return the target's id; None if the target doesn't exist yet."""
    try:
        return sink.target_id()
    except TargetChanged:
        return None


def _refused(pipeline: str, sink: OpenSink, error: LockstepError) -> LockstepError:
    return type(error)(
        f"{error}. Nothing is planned or written there, or later epochs would hide what is missing. If that is to stay "
        f"away for good, say so: {suggestions.go_on_without(pipeline, sink.name)}"
    )


def _is_planned_as(spec: Json, sink: Sink) -> bool:
    try:
        return bool(Sink.from_spec(spec).spec() == sink.spec())
    except (InvalidPipeline, TypeError):  # its class no longer exists, or takes other arguments
        return False
