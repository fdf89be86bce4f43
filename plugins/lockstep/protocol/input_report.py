"""What became of an epoch's input: only its sources can tell, as the plan froze them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from lockstep.epoch import ChangedFile, Epoch, SourceRange
from lockstep.errors import LockstepError
from lockstep.sources.base import OpenSource
from lockstep.states import DECIDED

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class InputReport:
    """`late`, `changed`: of a decided epoch. `held_back`: by source, what its rows waited for. `finished`: the sources
    that are read to their end. See `OpenSource`."""

    late: tuple[str, ...]
    changed: tuple[ChangedFile, ...]
    held_back: Mapping[str, str]
    finished: tuple[str, ...] = ()


def report_input(
    epoch: Epoch, open_source: Callable[[str, SourceRange], AbstractContextManager[OpenSource]]
) -> InputReport:
    """Ask each source of the epoch. One that can't be asked has nothing to tell, and the log says why."""
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
            _log.info("%s: source %s can't be asked what became of its input: %s", epoch, name, error)
    return InputReport(tuple(late), tuple(changed), held_back, tuple(finished))
