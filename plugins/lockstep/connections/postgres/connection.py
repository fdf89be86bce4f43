"""Connections to PostgreSQL: safe settings in every transaction, errors with names, no secrets in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import psycopg2
from psycopg2.extensions import connection as Connection
from psycopg2.extensions import cursor as Cursor

from lockstep.connections.login import entered
from lockstep.connections.postgres.dsn import parse_dsn, require_dsn
from lockstep.connections.postgres.errors import classify, describe, is_lost, quotes_row
from lockstep.errors import SOURCE_ERRORS, ErrorClasses, Failure, LockstepError, SourceRefused
from lockstep.observability.redaction import cause

OLDEST = 14  #: a refusal of an older one says what it lacks
IDLE_SECONDS = 300  #: the server ends a session that is idle in a transaction for as long

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

_READ_ONLY = "25006"
_QUERY_SETTINGS = "SET timezone = 'UTC'; SET lock_timeout = '10s'; SET statement_timeout = {}"

_LONGEST_NAME = 63  #: bytes of a name that Postgres keeps
_LONGEST_MS = 2**31 - 1  # of Postgres' settings


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
    """A new connection to a primary, in UTF-8, with keepalives on both sides.

    `dsn`: one that `parse_dsn` reads, or a `Login`, of which the current one is used. `settings`: run before any
    transaction. `session`: more arguments for libpq; its options come after the DSN's own. Raises `replica` if the
    server is one, and the driver's errors: `describe` them and don't chain them, they may quote the DSN.
    """

    def connect(login: str) -> Connection:
        own = (parse_dsn(login) or {}).get("options", "")  # a role, for example; an argument would replace it
        options = " ".join(filter(None, (own, session.get("options"))))
        connection: Connection = psycopg2.connect(
            login,
            application_name=application[:_LONGEST_NAME],
            client_encoding="UTF8",
            **{**_TCP, **session, **({"options": options} if options else {})},
        )
        return connection

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
    """Version and requirement, for "the server is …", with what older ones lack; None from `OLDEST` on."""
    version = connection.server_version // 10_000
    if version >= OLDEST:
        return None
    return f"PostgreSQL {version}: {OLDEST} or newer is needed; older ones have no {lacks}"


@dataclass
class PostgresDatabase:
    """A database, as one sink uses it. One connection is kept for short transactions; `connect` opens others."""

    where: str  #: beginning of each message: "sink warehouse"
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
        lock_ms = str(round(max(1, min(1000 * self.lock_timeout, _LONGEST_MS))))  # 0 would disable it
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
        """A short transaction; commits at the end, rolls back on errors, which are converted as by `naming`."""
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
        """A cursor for COMMIT PREPARED and ROLLBACK PREPARED. Driver errors pass unchanged to the caller."""
        _, cursor = self._begin(local=False)
        with cursor:
            yield cursor

    def _begin(self, *, local: bool) -> tuple[Connection, Cursor]:
        try:
            return self._begin_once(local=local)
        except psycopg2.Error as error:
            if not is_lost(error):
                raise
            self.close()  # the kept connection was dead, and no statement had been sent
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
        """Convert driver errors to Lockstep's; one about the content of rows becomes `rejected`."""
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
        """True if another transaction held a lock for too long."""
        return isinstance(error.__cause__, psycopg2.errors.LockNotAvailable)


def read_rows(
    where: str, dsn: str, query: str, parameters: Mapping[str, object], *, max_rows: int, within: timedelta
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run one query in a read-only transaction, with at most `max_rows` rows; returns the columns' names and the rows.

    `query` names parameters as `%(name)s`. `where` is the beginning of each message. Raises `SourceUnavailable`, and
    `SourceRefused` for a query that the server refuses or that gives too many rows; no message has a secret.
    """
    require_dsn(dsn, where)
    replica = SourceRefused(f"{where}: it leads to a replica, which may lag behind what it is compared with")
    settings = _QUERY_SETTINGS.format(within // timedelta(milliseconds=1))
    connection = None
    try:
        connection = dial(dsn, "lockstep audit", replica=replica, readonly=True, settings=settings)
        with (
            connection,
            connection.cursor(name="lockstep_audit") as cursor,
        ):  # a client-side cursor would fetch all rows
            cursor.execute(query, parameters)
            rows = cursor.fetchmany(max_rows + 1)
            if cursor.description is None:
                raise SourceRefused(f"{where}: what it was asked gives no rows: give one SELECT")
            if len(rows) > max_rows:
                raise SourceRefused(f"{where}: more than {max_rows:,} rows came: aggregate them there")
            return [column.name for column in cursor.description], rows
    except psycopg2.Error as error:
        if error.pgcode == _READ_ONLY:  # otherwise it means a primary that has become a replica, which may pass
            raise SourceRefused(f"{where}: {describe(error, dsn)}") from None
        raise SOURCE_ERRORS.of(classify(error))(f"{where}: {describe(error, dsn)}") from None
    except (KeyError, TypeError, ValueError, IndexError) as error:  # from the query's placeholders
        raise SourceRefused(
            f"{where}: its query's parameters can't be filled in ({type(error).__name__}): there are "
            f"{', '.join(f'%({name})s' for name in parameters)}, and a percent sign is written %%"
        ) from error
    finally:
        if connection is not None:
            close_quietly(connection)


def _may_be_refused(error: Exception) -> bool:
    """True for every failure to connect: libpq gives no SQLSTATE, and the server's text may be in any language."""
    return isinstance(error, psycopg2.OperationalError)


def close_quietly(connection: Connection) -> None:
    with suppress(psycopg2.Error):
        connection.close()


def _roll_back(connection: Connection) -> None:
    with suppress(psycopg2.Error):
        connection.rollback()
