"""Before an alarm leaves a role, the ledger is asked again.

Between what a role has read and what it does, others may decide, publish and clean up. What it meets then (a marker
that stands already, a WAL that is gone, a source that was tidied away) looks like damage and is none. Whoever was
overtaken says that, and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from lockstep.errors import AlreadyDecided, Fenced, Terminal

T = TypeVar("T")
_log = logging.getLogger(__name__)


def unless_superseded(work: Callable[[], T], meanwhile: Callable[[], T | None]) -> T:
    """What `work` gives. When it fails for good: what `meanwhile` finds, or raises, as the ledger has moved on.

    `meanwhile` returns None where the ledger still stands as `work` found it: then the alarm is a true one.
    """
    try:
        return work()
    except (AlreadyDecided, Fenced):
        raise
    except Terminal as alarm:
        result = meanwhile()
        if result is None:
            raise
        _log.info("overtaken meanwhile, so this is no alarm: %s: %s", type(alarm).__name__, alarm)
        return result
