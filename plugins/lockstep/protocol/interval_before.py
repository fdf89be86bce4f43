"""The interval before the one that is planned: nothing goes on behind an epoch that lacks records of its own."""

from __future__ import annotations

from datetime import datetime, timedelta

from lockstep.epoch import Epoch, Interval
from lockstep.errors import SourceChanged
from lockstep.observability import suggestions
from lockstep.protocol.runtime import Runtime
from lockstep.sources.base import OpenSource, planned_source
from lockstep.states import UNDECIDED, EpochState

_INSTANT = timedelta(microseconds=1)  #: the smallest that the ledger knows


def find_before(runtime: Runtime, interval: Interval) -> Epoch | None:
    """The epoch whose interval ends where this one starts, as it is decided; None if there is none, or it was given
    up."""
    if interval.start.replace(tzinfo=None) == datetime.min:  # no time is before that
        return None
    found = runtime.ledger.epoch_of_interval(runtime.pipeline, Interval(interval.start - _INSTANT, interval.start))
    return found if found is not None and found.state is not EpochState.VOID else None


def require_whole(runtime: Runtime, before: Epoch, name: str, live: OpenSource) -> None:
    """Raise `SourceChanged` if the source, which is open, has more of that epoch's interval by now than its plan took.

    One that is defined otherwise by now isn't asked.
    """
    found, defined = before.plan.sources.get(name), runtime.defined.sources[name]
    if found is None or found.snapshot or planned_source(name, found.spec, defined) is not defined:
        return
    lacking = live.lacks(found.start, found.end)
    if lacking is not None:
        undecided = before.state in UNDECIDED
        remedy = (suggestions.replan if undecided else suggestions.restate)(before.pipeline, before.id)
        raise SourceChanged(f"nothing is planned behind {before}: it lacks {lacking}. To take them: {remedy}")
