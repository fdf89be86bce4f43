"""Logical processes of the simulator: threads that hand one baton over, so that exactly one runs at a time.

A process stands still at every crash point, before every transaction of the ledger and before every call of a simulated
server, until the scheduler gives it an order. Nothing is held while it stands there that another process could wait
for, but what the simulated servers hold: so nobody ever waits for a lock of a real one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

import pytest

from lockstep import crash


class Order(StrEnum):
    """What a process does next."""

    GO = "go"
    KILL = "kill"  #: it does nothing any more, not even tidy up
    FAIL = "fail"  #: the call fails, nothing was done
    LOSE = "lose"  #: the call is done, its answer gets lost


class Killed(BaseException):
    """Ends a killed process; no `except Exception` of the code under test sees it."""


class Process:
    """One running task. `place` says where it stands, `faulty` whether what comes next may fail or lose its answer."""

    def __init__(self, name: str, work: Callable[[], object]) -> None:
        self.name = name
        self.place = "start"
        self.faulty = False
        self.over = False
        self.killed = False
        self.result: object = None
        self.error: BaseException | None = None
        self._work = work
        self._order = Order.GO
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)

    def step(self, order: Order = Order.GO) -> None:
        """Let it go on to its next place, or to its end. Called by the scheduler alone."""
        if not self._thread.ident and order is Order.KILL:
            self.killed = self.over = True
            return
        self._order = order
        if self._thread.ident:
            self._go.release()
        else:
            self._thread.start()
        self._back.acquire()

    def finish(self) -> None:
        while not self.over:
            self.step()

    def stand(self, place: str, faulty: bool) -> Order:
        """Called by the process itself."""
        if self.killed:
            raise Killed
        self.place, self.faulty = place, faulty
        self._back.release()
        self._go.acquire()
        if self._order is Order.KILL:
            self.killed = True
            raise Killed
        return self._order

    def _live(self) -> None:
        _here.process = self
        try:
            self.result = self._work()
        except Killed:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self.over = True
            self._back.release()


_here = threading.local()


def stand(place: str, *, faulty: bool = False) -> Order:
    """Hand the baton over and wait for an order. Whoever is no process of a simulation just goes on."""
    process: Process | None = getattr(_here, "process", None)
    return process.stand(place, faulty) if process else Order.GO


@contextmanager
def standing_at_crash_points(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    stop = crash.observe(lambda point: stand(point.value))
    try:
        yield
    finally:
        stop()
