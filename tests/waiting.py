"""To wait for what something else does, in place of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(holds: Callable[[], bool], otherwise: str = "it never came", seconds: float = 60) -> None:
    """Fail with `otherwise` unless it holds before that many seconds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.02)
