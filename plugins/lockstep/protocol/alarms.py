"""Before a terminal error leaves a role, the ledger is read again.

Other processes may decide, publish and clean up between what a role has read and what it does. What it meets then (a
marker that exists already, a WAL that was deleted, a source that was tidied up) looks like damage and is none. A role
that was superseded says so, and raises no alarm.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from lockstep.errors import AlreadyDecided, Fenced, Terminal

T = TypeVar("T")
_log = logging.getLogger(__name__)


def unless_superseded(work: Callable[[], T], meanwhile: Callable[[], T | None]) -> T:
    """Return the result of `work`. If it raises a terminal error, return or raise what `meanwhile` does.

    `meanwhile` returns None if the ledger is still as `work` found it: then the error is raised again.
    """
    try:
        return work()
    except (AlreadyDecided, Fenced):
        raise
    except Terminal as alarm:
        result = meanwhile()
        if result is None:
            raise
        _log.info("superseded meanwhile, so this is no alarm: %s: %s", type(alarm).__name__, alarm)
        return result
