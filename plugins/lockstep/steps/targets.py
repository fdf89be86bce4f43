"""Whether a sink's target is the one that showed its last epoch, and shows it still.

One that is another by now, or was taken back to an earlier moment, lacks epochs that the ledger calls published. Nobody
would notice once later epochs stand there: so it is asked before it is claimed, and before anything is planned for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lockstep import remedies
from lockstep.epoch import Json, LastShown
from lockstep.errors import InvalidPipeline, LedgerConflict, LockstepError, TargetChanged
from lockstep.runtime import Runtime
from lockstep.sinks.base import Sink
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Guarantee, Marker, Publication
from lockstep.steps.identity import RENUMBERED


def find_last_shown(runtime: Runtime, sinks: Iterable[Sink]) -> dict[str, LastShown]:
    """What the ledger calls published last in each of `sinks`, by name. Nothing of one that shows nothing yet, that was
    another one then, that keeps no record, or whose last epoch stands by a person's word.

    To be asked before the target is: what the ledger calls published has its marker there by then.
    """
    asked = {sink.name: sink for sink in sinks if Guarantee(sink.guarantee) is not Guarantee.NONE}
    found = runtime.ledger.last_shown(runtime.pipeline, list(asked)) if asked else []
    return {
        one.sink: one
        for one in found
        if one.publication != Publication.RESOLVED and _is_planned_as(one.spec, asked[one.sink])
    }


def require_same_target(runtime: Runtime, sink: OpenSink, last: LastShown | None) -> None:
    """Raise `TargetChanged` if the target isn't the one that voted for the last epoch there. Before a `preflight`,
    which would make a missing one anew."""
    if last is not None and (found := find_other_target(sink, last)) is not None:
        _refuse(runtime, sink, last, found)


def require_shown_still(runtime: Runtime, sink: OpenSink, last: LastShown | None, newest: Sequence[Marker]) -> None:
    """Raise `LedgerConflict` if the target has no marker of the last epoch there. `newest`: those that were asked for
    anyway; of the last epoch that was shown it is one of them, unless younger ones were shown meanwhile."""
    if last is not None and (found := find_missing_marker(sink, last, newest)) is not None:
        _refuse(runtime, sink, last, found)


def find_other_target(sink: OpenSink, last: LastShown) -> TargetChanged | None:
    """What tells that the target isn't the one of `last`."""
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


def find_missing_marker(sink: OpenSink, last: LastShown, newest: Sequence[Marker] = ()) -> LedgerConflict | None:
    """What tells that the target doesn't show `last` as it was decided."""
    for marker in newest:
        if (marker.epoch, marker.manifest_hash) == (last.epoch, last.manifest_hash):
            return None
    shown = sink.find_any_marker(last.epoch) or sink.find_marker(last.epoch)  # the second waits for who hides it
    if shown is not None and shown.manifest_hash == last.manifest_hash:
        return None
    there = f"the marker of manifest {shown.manifest_hash[:12]}" if shown else "no marker"
    return LedgerConflict(
        f"sink {sink.name}: of epoch {last.epoch} (manifest {last.manifest_hash[:12]}), the last one that the ledger "
        f"calls published there, the target has {there}: it was emptied, restored to an earlier moment, or is an older "
        "copy, and lacks what was shown since. Restore it further, or point the connection back"
    )


def _refuse(runtime: Runtime, sink: OpenSink, last: LastShown, found: LockstepError) -> None:
    """Unless a person has seen just this target lack just that epoch."""
    known = _said_to_lack(runtime, last)
    if known is not None and known["target_id"] in (None, target_id_of(sink)):
        return
    raise type(found)(
        f"{found}. Nothing is planned or written there, or later epochs would hide what is missing. If that is to stay "
        f"away for good, say so: {remedies.go_on_without(runtime.pipeline, sink.name)}"
    )


def _said_to_lack(runtime: Runtime, last: LastShown) -> Json | None:
    said = runtime.ledger.pipeline_change(runtime.pipeline, RENUMBERED) or {}
    lacking = said.get("lacking", ())  # older versions have asked nobody
    return next((one for one in lacking if (one["sink"], one["epoch"]) == (last.sink, last.epoch)), None)


def target_id_of(sink: OpenSink) -> str | None:
    """None of a target that is yet to be made."""
    try:
        return sink.target_id()
    except TargetChanged:
        return None


def _is_planned_as(spec: Json, sink: Sink) -> bool:
    try:
        return bool(Sink.from_spec(spec).spec() == sink.spec())
    except (InvalidPipeline, TypeError):  # its class is gone, or takes other arguments by now
        return False
