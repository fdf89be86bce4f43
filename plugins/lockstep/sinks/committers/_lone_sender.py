"""One sender of an epoch at a time, as long as it shows that it is alive. It saves work; no promise rests on it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STANDSTILL = 30.0  #: seconds after which a sender that gives no sign is not waited for
_log = logging.getLogger(__name__)


@contextmanager
def beating(beat: Callable[[], object]) -> Iterator[None]:
    """Call `beat` from a thread, three times within STANDSTILL, until the block is left or a beat fails.

    A process that was stopped, or that lost its machine, doesn't beat.
    """
    done = threading.Event()
    thread = threading.Thread(target=_beat, args=(beat, done), daemon=True, name="lockstep-sender")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(STANDSTILL)


def _beat(beat: Callable[[], object], done: threading.Event) -> None:
    while not done.wait(STANDSTILL / 3):
        try:
            beat()
        except Exception as error:
            _log.warning("another process may start to send the same epoch: %s", type(error).__name__)
            return
