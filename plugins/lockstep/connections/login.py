"""Logins that others change while somebody works with them: rotated passwords, and tokens that live for minutes.

Whoever looks connections up may hand out a `Login` where a DSN is asked for. It goes wherever a text goes; whoever
connects does it by `entered`, with what is good at that moment.
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
    """What a connection says at one moment. `place`: where it leads, which has to stay while somebody works there.
    `life`: seconds for which the DSN may be used without asking again; None: until it is refused."""

    dsn: str
    place: object
    life: float | None = None


class Login(str):
    """A DSN as it was when it was looked up, and whom to ask for the one that is good now. For threads to share.

    In another process it is a mere text, good for as long as it is good.
    """

    _ask: Callable[[], Known]
    _known: Known
    _until: float
    _lock: threading.Lock
    _given: deque[str]

    def __new__(cls, current: Known, ask: Callable[[], Known]) -> Login:
        """`ask` raises a `LockstepError` that holds no secret."""
        login = super().__new__(cls, current.dsn)
        login._ask = ask
        login._lock = threading.Lock()
        login._given = deque(maxlen=_REMEMBERED)
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
            return self._known.dsn, fresh

    def again(self, refused: str) -> str | None:
        """Another DSN than `refused` to the same place; None if there is none, or nobody to ask."""
        with self._lock:
            if self._known.dsn == refused:  # no other thread has asked meanwhile
                self._renew()
            return self._known.dsn if self._known.dsn != refused else None

    def _renew(self) -> bool:
        """Whether there is an answer that leads to where the first one did: what was seen there holds nowhere else, and
        to go elsewhere takes another try of whoever works with this. Without, what is known is tried: it may do."""
        try:
            current = self._ask()
        except Exception as error:
            detail = error if isinstance(error, LockstepError) else type(error).__name__
            _log.warning("a login can't be asked for again: %s", detail)
            return False
        if current.place != self._known.place:
            _log.warning("a connection leads elsewhere by now: whoever is tried again goes there")
            return False
        self._keep(current)
        return True

    def _keep(self, current: Known) -> None:
        self._known = current
        self._until = float("inf") if current.life is None else time.monotonic() + current.life
        self._given.append(current.dsn)


def entered(dsn: str, connect: Callable[[str], T], is_refused: Callable[[Exception], bool]) -> T:
    """What `connect` makes of the DSN. Where that fails as `is_refused` says, and `dsn` is a `Login` that by now
    has another one, it is tried once more. Raises what `connect` raises."""
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
    return (dsn, *dsn._given) if isinstance(dsn, Login) else (dsn,)
