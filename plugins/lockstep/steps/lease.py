"""The lease: tells other runs' `begin` that somebody is at work. Nothing else rests on it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lockstep.epoch import Attempt
from lockstep.errors import LockstepError
from lockstep.ledger import Ledger
from lockstep.states import Role

RENEWAL = 10.0  #: seconds between renewals of a lease of 30 s
_log = logging.getLogger(__name__)


@contextmanager
def hold_lease(ledger: Ledger, attempt: Attempt, role: Role) -> Iterator[None]:
    """Renew the attempt's lease now, then from a thread, on a connection of its own, until the block is left."""
    ledger.renew_lease(attempt, role)
    done = threading.Event()
    thread = threading.Thread(target=_renew, args=(ledger.again(), attempt, role, done), daemon=True, name="lease")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=RENEWAL)


def _renew(ledger: Ledger, attempt: Attempt, role: Role, done: threading.Event) -> None:
    try:
        while not done.wait(RENEWAL):
            if not ledger.renew_lease(attempt, role):
                return
    except LockstepError as error:
        _log.warning("the lease on %s epoch %s is not renewed any more: %s", attempt.pipeline, attempt.epoch, error)
    finally:
        ledger.close()
