"""Logins that change while they are in use: rotated passwords, and tokens that are valid for minutes.

A lookup of connections may return a `Login` in place of a DSN. It is a string like any other; `entered` connects with
the value that is valid at that moment.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from lockstep.errors import LockstepError

T = TypeVar("T")
_log = logging.getLogger(__name__)
_REMEMBERED = 4  #: DSNs of one login that messages are searched for: an older one was another's to refuse


class Known(NamedTuple):
    """A connection at one moment. `place`: the server, which must not change while it is used. `life`: seconds for
    which the DSN is valid; None: until it is refused."""

    dsn: str
    place: object
    life: float | None = None


class Login(str):
    """A DSN as it was when it was looked up, and whom to ask for the one that is good now. For threads to share.

    In another process it is a mere text, good for as long as it is good.
    """

    _ask: Callable[[], Known]
    _current: Known
    _until: float
    _lock: threading.Lock
    _issued: deque[str]

    def __new__(cls, current: Known, ask: Callable[[], Known]) -> Login:
        """`ask` raises a `LockstepError` that holds no secret."""
        login = super().__new__(cls, current.dsn)
        login._ask = ask
        login._lock = threading.Lock()
        login._issued = deque(maxlen=_REMEMBERED)
        login._keep(current)
        return login

    def __repr__(self) -> str:
        return "Login('***')"

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)

    def now(self) -> tuple[str, bool]:
        """The DSN to connect with, and whether it was asked for just now."""
        with self._lock:
            fresh = time.monotonic() >= self._until and self._renew()
            return self._current.dsn, fresh

    def again(self, refused: str) -> str | None:
        """A DSN other than `refused` for the same place; None if there is none."""
        with self._lock:
            if self._current.dsn == refused:  # no other thread has asked meanwhile
                self._renew()
            return self._current.dsn if self._current.dsn != refused else None

    def _renew(self) -> bool:
        """Look the connection up again. False if that fails, or if it leads to another place: work that began at one
        server can't continue at another without a new try. Then the old DSN is tried."""
        try:
            current = self._ask()
        except Exception as error:
            detail = error if isinstance(error, LockstepError) else type(error).__name__
            _log.warning("a login can't be asked for again: %s", detail)
            return False
        if current.place != self._current.place:
            _log.warning("a connection leads elsewhere by now: whoever is tried again goes there")
            return False
        self._keep(current)
        return True

    def _keep(self, current: Known) -> None:
        self._current = current
        self._until = float("inf") if current.life is None else time.monotonic() + current.life
        self._issued.append(current.dsn)


def entered(dsn: str, connect: Callable[[str], T], is_refused: Callable[[Exception], bool]) -> T:
    """The result of `connect` with the current DSN. If it fails as `is_refused` says and the `Login` has a newer DSN,
    it is tried once more. Raises what `connect` raises."""
    if not isinstance(dsn, Login):
        return connect(dsn)
    used, fresh = dsn.now()
    try:
        return connect(used)
    except Exception as error:
        newer = None if fresh or not is_refused(error) else dsn.again(used)
        if newer is None:
            raise
    _log.info("a login was refused, and its connection has another one by now")
    return connect(newer)


def given(dsn: str) -> Iterable[str]:
    """Every DSN that a message may quote."""
    return (dsn, *dsn._issued) if isinstance(dsn, Login) else (dsn,)
