"""Reports what became of an epoch's input: late, changed and held-back files, sources that are finished."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from lockstep.epoch import ChangedFile, Epoch, SourceRange
from lockstep.errors import LockstepError
from lockstep.observability.redaction import list_some
from lockstep.protocol.hooks import Feature
from lockstep.protocol.runtime import Runtime
from lockstep.sources.open_source import OpenSource
from lockstep.states import DECIDED

_MAX_NAMED = 10  # files in one line of the log
_log = logging.getLogger(__name__)


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
