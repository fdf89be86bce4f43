"""Connections to PostgreSQL: safe settings in every transaction, errors with names, no secrets in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg2
from psycopg2.extensions import connection as Connection
from psycopg2.extensions import cursor as Cursor

from lockstep.connections.login import entered
from lockstep.connections.postgres.dsn import parse_dsn, require_dsn
from lockstep.connections.postgres.errors import classify, describe, is_lost
from lockstep.connections.postgres.refusals import quotes_row
from lockstep.errors import ErrorClasses, Failure, LockstepError
from lockstep.observability.redaction import cause

OLDEST = 14  #: who refuses an older one says what it lacks
IDLE_SECONDS = 300  #: a session that stands still within a transaction is ended by the server

_TCP: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}

_GREETING = """
    SELECT set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false),
           set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '60000', false);
    SELECT pg_is_in_recovery()
"""

# remote_apply promises more than on, the rest less
_GUARD = """
    SELECT pg_is_in_recovery(), current_setting('fsync'), current_setting('full_page_writes'),
           set_config('synchronous_commit', CASE current_setting('synchronous_commit')
                                            WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, %(local)s),
           set_config('lock_timeout', %(lock_ms)s, %(local)s),
           set_config('idle_in_transaction_session_timeout', %(idle_ms)s, %(local)s),
           set_config('statement_timeout', '0', %(local)s),
           CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL -- Postgres 17
                THEN set_config('transaction_timeout', '0', %(local)s) END
"""

_LONGEST_NAME = 63  #: bytes of a name that Postgres keeps
_LONGEST_MS = 2**31 - 1  # what Postgres takes


def dial(
    dsn: str,
    application: str,
    *,
    replica: LockstepError,
    isolation: str = "READ COMMITTED",
    readonly: bool | None = False,
    settings: str | None = None,
    **session: Any,
) -> Connection:
    """A new connection to a primary, in UTF-8, on which both sides notice when the other one is gone.

    `dsn`: one that `parse_dsn` reads; of a `Login` what is good now. `settings`: run before any transaction. `session`:
    more arguments for libpq; its options come after the DSN's own. Raises `replica` if the server is one, and the
    driver's errors: `describe` them and don't chain them, they may quote the DSN.
    """

    def connect(told: str) -> Connection:
        own = (parse_dsn(told) or {}).get("options", "")  # a role, for instance; an argument would take its place
        options = " ".join(filter(None, (own, session.get("options"))))
        made: Connection = psycopg2.connect(
            told,
            application_name=application[:_LONGEST_NAME],
            client_encoding="UTF8",
            **{**_TCP, **session, **({"options": options} if options else {})},
        )
        return made

    connection = entered(dsn, connect, _may_be_refused)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(_GREETING)
            if cursor.fetchone() != (False,):
                raise replica
            if settings:
                cursor.execute(settings)
        # not before: a replica refuses READ WRITE with an error of its own
        connection.set_session(isolation, readonly=readonly, autocommit=False)
    except BaseException:
        close_quietly(connection)
        raise
    return connection


def too_old(connection: Connection, lacks: str) -> str | None:
    """What is to be said of the server, for "the server is …", with what older ones lack; None of one that does."""
    found = connection.server_version // 10_000
    return f"PostgreSQL {found}: {OLDEST} or newer is needed; older ones have no {lacks}" if found < OLDEST else None


@dataclass
class Database:
    """A database and who asks it. One connection is kept for short transactions; `connect` opens others."""

    where: str  #: opens each message: "sink warehouse"
    connection_id: str
    dsn: str = field(repr=False)
    lock_timeout: float  #: seconds
    errors: ErrorClasses
    _short: Connection | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        require_dsn(self.dsn, f"connection {self.connection_id}")

    def connect(self, session: str) -> Connection:
        """A new connection, READ COMMITTED and UTF-8. Raises `errors.unavailable`, `errors.denied` of a replica."""
        try:
            return dial(self.dsn, session, replica=self._is_replica())
        except psycopg2.Error as error:
            # from None: the original may quote the DSN
            raise self.named(error, f"connection {self.connection_id}") from None

    def _is_replica(self) -> LockstepError:
        return self.errors.denied(
            f"{self.where}: connection {self.connection_id} leads to a replica (pg_is_in_recovery): its list "
            "of prepared transactions and its markers prove nothing; connect to the primary"
        )

    def guard(self, cursor: Cursor, *, local: bool = True) -> None:
        """First statement of every transaction: durable settings on a durable primary, or `errors.denied`."""
        lock_ms = str(round(max(1, min(1000 * self.lock_timeout, _LONGEST_MS))))  # 0 would be for ever
        cursor.execute(_GUARD, {"local": local, "lock_ms": lock_ms, "idle_ms": str(1000 * IDLE_SECONDS)})
        row = cursor.fetchone()
        assert row is not None
        if row[0]:
            raise self._is_replica()
        for setting, value in (("fsync", row[1]), ("full_page_writes", row[2])):
            if value != "on":
                raise self.errors.denied(
                    f"{self.where}: the server runs with {setting} = {value}: it can lose what it acknowledged; "
                    f"set {setting} = on"
                )

    @contextmanager
    def transaction(self, doing: str, *, rejected: type[LockstepError] | None = None) -> Iterator[Cursor]:
        """A short transaction; commits at the end, rolls back on errors, which get their Lockstep names."""
        with self.naming(doing, rejected):
            connection, cursor = self._begin(local=True)
            try:
                with cursor:
                    yield cursor
                connection.commit()
            except BaseException:
                _roll_back(connection)
                raise

    @contextmanager
    def outside_transaction(self) -> Iterator[Cursor]:
        """For COMMIT PREPARED and ROLLBACK PREPARED. Driver errors pass as they are: the caller tells them apart."""
        _, cursor = self._begin(local=False)
        with cursor:
            yield cursor

    def _begin(self, *, local: bool) -> tuple[Connection, Cursor]:
        try:
            return self._begin_once(local=local)
        except psycopg2.Error as error:
            if not is_lost(error):
                raise
            self.close()  # the kept connection was dead; nothing had been asked of it
            return self._begin_once(local=local)

    def _begin_once(self, *, local: bool) -> tuple[Connection, Cursor]:
        if self._short is None or self._short.closed:
            self._short = self.connect(f"lockstep {self.where}")
        connection = self._short
        _roll_back(connection)
        connection.autocommit = not local
        cursor = connection.cursor()
        self.guard(cursor, local=local)
        return connection, cursor

    def close(self) -> None:
        if self._short is not None:
            close_quietly(self._short)
        self._short = None

    @contextmanager
    def naming(self, doing: str, rejected: type[LockstepError] | None = None) -> Iterator[None]:
        """Give driver errors their Lockstep name; what the server refuses for its content becomes `rejected`."""
        try:
            yield
        except psycopg2.Error as error:
            raise self.named(error, doing, rejected) from cause(error, quotes_row(error))

    def named(self, error: psycopg2.Error, doing: str, rejected: type[LockstepError] | None = None) -> LockstepError:
        text, failure = f"{self.where}: {doing}: {describe(error, self.dsn)}", classify(error)
        if failure is Failure.DENIED:
            text = f"{text}; grant the role of connection {self.connection_id} what it lacks"
        if failure is Failure.REFUSED and rejected:
            return rejected(text)
        return self.errors.of(failure)(text)

    def is_locked_out(self, error: LockstepError) -> bool:
        """Whether `error` says that somebody else held a lock for too long."""
        return isinstance(error.__cause__, psycopg2.errors.LockNotAvailable)


def _may_be_refused(error: Exception) -> bool:
    """Of what fails while connecting libpq tells no SQLSTATE, and the server's text is in a language of its own."""
    return isinstance(error, psycopg2.OperationalError)


def close_quietly(connection: Connection) -> None:
    with suppress(psycopg2.Error):
        connection.close()


def _roll_back(connection: Connection) -> None:
    with suppress(psycopg2.Error):
        connection.rollback()
