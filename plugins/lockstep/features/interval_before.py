"""Refuses to plan an interval while the epoch of the interval before it lacks records of its own."""

from __future__ import annotations

from datetime import datetime, timedelta

from lockstep.epoch import Interval
from lockstep.errors import SourceChanged
from lockstep.observability import suggestions
from lockstep.protocol.hooks import Feature
from lockstep.protocol.runtime import Runtime
from lockstep.sources.base import OpenSource, planned_source
from lockstep.states import UNDECIDED, EpochState

_INSTANT = timedelta(microseconds=1)  #: the shortest time that the ledger can express


class IntervalBefore(Feature):
    """Asks each source whether it has more of the interval before by now than that epoch's plan took."""

    def planning(self, runtime: Runtime, interval: Interval | None, source: str, opened: OpenSource) -> None:
        """Raise `SourceChanged` if it has. A source whose definition has changed since isn't asked."""
        if interval is None or interval.start.replace(tzinfo=None) == datetime.min:  # no time is before that
            return
        before = runtime.ledger.epoch_of_interval(runtime.pipeline, Interval(interval.start - _INSTANT, interval.start))
        if before is None or before.state is EpochState.VOID:
            return
        planned, defined = before.plan.sources.get(source), runtime.defined.sources[source]
        if planned is None or planned.snapshot or planned_source(source, planned.spec, defined) is not defined:
            return
        missing = opened.lacks(planned.start, planned.end)
        if missing is not None:
            undecided = before.state in UNDECIDED
            remedy = (suggestions.replan if undecided else suggestions.restate)(before.pipeline, before.id)
            raise SourceChanged(f"nothing is planned behind {before}: it lacks {missing}. To take them: {remedy}")
