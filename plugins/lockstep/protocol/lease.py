"""The lease: shows other runs' `begin`, and people, that a task is running. Nothing else depends on it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lockstep.epoch import Attempt, Epoch
from lockstep.errors import LockstepError
from lockstep.ledger import Ledger
from lockstep.states import Role

RENEWAL = 10.0  #: seconds between renewals of a lease of 30 s
_log = logging.getLogger(__name__)


@contextmanager
def hold_lease(ledger: Ledger, attempt: Attempt, role: Role) -> Iterator[None]:
    """Renew the attempt's lease now, then every RENEWAL seconds until the block is left."""
    ledger.renew_lease(attempt, role)
    name = f"{attempt.pipeline} epoch {attempt.epoch}"
    with _renewing(ledger, name, lambda own: own.renew_lease(attempt, role)):
        yield


@contextmanager
def hold_publisher_lease(ledger: Ledger, epoch: Epoch, sink: str, role: Role) -> Iterator[None]:
    """Record every RENEWAL seconds that the decided epoch is being published, until the block is left, so that a slow
    publication raises no alarm."""
    with _renewing(ledger, f"{epoch} in {sink}", lambda own: own.renew_publisher(epoch, sink, role)):
        yield


@contextmanager
def _renewing(ledger: Ledger, name: str, renew: Callable[[Ledger], bool]) -> Iterator[None]:
    """Call `renew` from a thread with a connection of its own, until the block is left."""
    done = threading.Event()
    thread = threading.Thread(target=_renew, args=(ledger.clone(), name, renew, done), daemon=True, name="lease")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=RENEWAL)


def _renew(ledger: Ledger, name: str, renew: Callable[[Ledger], bool], done: threading.Event) -> None:
    try:
        while not done.wait(RENEWAL):
            if not renew(ledger):
                return
    except LockstepError as error:
        _log.warning("the lease on %s is not renewed any more: %s", name, error)
    finally:
        ledger.close()
