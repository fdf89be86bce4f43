"""PostgreSQL sessions that a test uses again, as behind a pooler in session mode: to begin a session costs more than
what most of them do.

`close` empties a session by DISCARD ALL, and the next `psycopg2.connect` with the same arguments gets it. No session
outlives its test. A forked child begins without any. What must see a session begin asks for the fixture `new_sessions`.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg2
import pytest
from psycopg2.extensions import TRANSACTION_STATUS_ACTIVE, TRANSACTION_STATUS_UNKNOWN
from psycopg2.extensions import connection as Connection

_dial = psycopg2.connect
ATTEMPT = "lockstep:"
_BUSY = TRANSACTION_STATUS_ACTIVE, TRANSACTION_STATUS_UNKNOWN


class Session(Connection):
    """Looks closed while it is idle."""

    arguments: tuple[Any, ...]
    idle = False

    @property
    def closed(self) -> int:
        return 1 if self.idle else super().closed

    def cursor(self, *arguments: Any, **options: Any) -> Any:
        if self.idle:
            raise psycopg2.InterfaceError("connection already closed")
        return super().cursor(*arguments, **options)

    def close(self) -> None:
        if not self.idle and not POOL.take(self):
            super().close()

    def end(self) -> None:
        super().close()

    def empty(self) -> bool:
        """Leave nothing behind; False where that can't be."""
        if super().closed or self.info.transaction_status in _BUSY:
            return False
        try:
            self.rollback()
            self.set_session("default", "default", "default", autocommit=True)
            self._run("DISCARD ALL")
        except psycopg2.Error:
            return False
        for left in (self.notices, self.notifies, self.string_types, self.binary_types):
            left.clear()
        return True

    def answers(self) -> bool:
        """Whether nobody has ended it meanwhile."""
        try:
            self._run("SELECT 1")
        except psycopg2.Error:
            return False
        self.autocommit = False
        return True

    def _run(self, statement: str) -> None:
        with super().cursor() as cursor:
            cursor.execute(statement)


class Pool:
    def __init__(self) -> None:
        self.used = True
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[tuple[Any, ...], list[Session]] = defaultdict(list)

    def connect(self, dsn: str | None = None, **options: Any) -> Connection:
        """As `psycopg2.connect`."""
        of_an_attempt = options.get("application_name", "").startswith(ATTEMPT)  # nobody asks for it a second time
        if not self.used or of_an_attempt or not options.keys().isdisjoint(("connection_factory", "cursor_factory")):
            made: Connection = _dial(dsn, **options)
            return made
        environment = sorted(item for item in os.environ.items() if item[0].startswith("PG"))
        arguments = (str(dsn), *sorted(options.items()), *environment)
        session = self._pop(arguments)
        if session is None:
            session = _dial(dsn, connection_factory=Session, **options)
            session.arguments = arguments
        session.idle = False
        return session

    def _pop(self, arguments: tuple[Any, ...]) -> Session | None:
        while True:
            with self._lock:
                sessions = self._idle[arguments]
                session = sessions.pop() if sessions else None
            if session is None or session.answers():
                return session
            session.end()

    def take(self, session: Session) -> bool:
        """Keep what a test closes, where it can be emptied."""
        if not self.used or not session.empty():
            return False
        session.idle = True
        with self._lock:
            self._idle[session.arguments].append(session)
        return True

    def drain(self) -> None:
        """End all that are idle."""
        with self._lock:
            idle = [session for sessions in self._idle.values() for session in sessions]
            self._idle.clear()
        for session in idle:
            session.end()

    def leave(self) -> None:
        """In a forked child: the parent's sessions stay the parent's, whatever becomes of these objects."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        for sessions in self._idle.values():
            for session in sessions:
                with suppress(psycopg2.Error):
                    os.dup2(nowhere, session.fileno())
        os.close(nowhere)
        self._forget()


POOL = Pool()
os.register_at_fork(after_in_child=POOL.leave)
psycopg2.connect = POOL.connect  # type: ignore[assignment]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    yield
    POOL.drain()


@pytest.fixture
def new_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every connection of this test begins a session, and every end of a connection ends one."""
    POOL.drain()
    monkeypatch.setattr(POOL, "used", False)
