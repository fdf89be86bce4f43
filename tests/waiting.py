"""To wait for what something else does, in place of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(holds: Callable[[], bool], otherwise: str = "it never came", seconds: float = 60) -> None:
    """Fail with `otherwise` unless it holds before that many seconds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.02)


def still_there(look: Callable[[], list[T]], seconds: float = 10) -> list[T]:
    """What `look` finds once that has had time to go, as a session that its client has closed."""
    deadline = time.monotonic() + seconds
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found
