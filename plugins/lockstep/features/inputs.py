"""Inputs: what sources say about an epoch's input, before it is planned, once it is begun and after it is published."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta

from lockstep.epoch import ChangedFile, Epoch, Interval, SourceRange
from lockstep.errors import LockstepError, SourceChanged
from lockstep.observability import suggestions
from lockstep.observability.redaction import list_some
from lockstep.protocol.hooks import Feature
from lockstep.protocol.runtime import Runtime
from lockstep.sources.base import OpenSource, planned_source
from lockstep.states import DECIDED, UNDECIDED, EpochState

_MAX_NAMED = 10  # files in one line of the log
_INSTANT = timedelta(microseconds=1)  #: the shortest time that the ledger can express
_log = logging.getLogger(__name__)


class IntervalBefore(Feature):
    """Refuses to plan an interval while the epoch of the interval before it lacks records of its own."""

    def planning(self, runtime: Runtime, interval: Interval | None, source: str, opened: OpenSource) -> None:
        """Raise `SourceChanged` if the source has more of the interval before by now than that epoch's plan took. A
        source whose definition has changed since isn't asked."""
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


@dataclass(frozen=True)
class InputReport:
    """Files that came late or changed since, for a decided epoch; what rows waited for, by source; sources that are
    read to their end. See `OpenSource`."""

    late: tuple[str, ...]
    changed: tuple[ChangedFile, ...]
    held_back: Mapping[str, str]
    finished: tuple[str, ...] = ()


def report_input(
    epoch: Epoch, open_source: Callable[[str, SourceRange], AbstractContextManager[OpenSource]]
) -> InputReport:
    """Ask each source of the epoch. A source that can't be asked is left out, and the log says why."""
    late: list[str] = []
    changed: list[ChangedFile] = []
    held_back: dict[str, str] = {}
    finished: list[str] = []
    for name, planned in epoch.plan.sources.items():
        try:
            with open_source(name, planned) as source:
                if holder := source.held_back_by(planned.start, planned.end):
                    held_back[name] = holder
                if source.is_finished(planned.start, planned.end):
                    finished.append(name)
                if epoch.state in DECIDED:
                    late += source.late_files(planned.start, planned.end)
                    changed += source.changed_files(planned.start, planned.end)
        except LockstepError as error:
            _log.info("%s: source %s can't be asked about its input: %s", epoch, name, error)
    return InputReport(tuple(late), tuple(changed), held_back, tuple(finished))


class InputReports(Feature):
    """Logs what became of the input of an epoch that is begun, or begun again."""

    def begun(self, runtime: Runtime, epoch: Epoch) -> None:
        report = report_input(epoch, runtime.open_source)
        if report.late:
            files = list_some(report.late, _MAX_NAMED)
            _log.warning("%s was decided without files that came later, which are never read: %s", epoch, files)
        if report.changed:
            files = list_some(report.changed, _MAX_NAMED)
            _log.warning("%s: these files changed after it had read them, and are not read again: %s", epoch, files)
        for source in report.finished:
            _log.info(
                "%s: source %s is finished: it is read to its end, and later epochs have nothing of it", epoch, source
            )


class SourceReports(Feature):
    """Reports published ranges to their sources, for instance as offsets of a Kafka consumer group. Nothing depends on
    it, so a failure is logged and cleanup goes on."""

    def cleaning(self, runtime: Runtime, epoch: Epoch) -> None:
        """A later generation of a cursor's epoch reports nothing: epochs behind it may be reported already."""
        if epoch.interval is None and epoch.generation is not None:
            return
        for name in runtime.definition.sources if runtime.definition else ():
            if (planned := epoch.plan.sources.get(name)) is None:
                continue
            try:
                with runtime.open_source(name, planned) as source:
                    source.report_published(planned.start, planned.end)
            except LockstepError as error:
                _log.warning("%s: the range could not be reported to source %s: %s", epoch, name, error)
