"""The ledger's SQL statements by name, and durable transactions on one connection. No message contains a password."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import Any, TypeVar

import psycopg2
import psycopg2.errors
from psycopg2.extensions import connection as Connection
from psycopg2.extras import RealDictCursor
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from lockstep.connections.postgres.connection import close_quietly, dial, too_old
from lockstep.connections.postgres.dsn import parse_dsn
from lockstep.connections.postgres.errors import classify, describe
from lockstep.errors import (
    Failure,
    IllegalTransition,
    IntervalOverlap,
    LedgerRefused,
    LedgerUnavailable,
    LockstepError,
)
from lockstep.states import Role

_FOLDER = resources.files("lockstep.ledger") / "sql"
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def statement(name: str) -> str:
    """Text of the statement `name`."""
    return _statements()[name]


@cache
def _statements() -> dict[str, str]:
    statements: dict[str, str] = {}
    for file in _FOLDER.iterdir():
        if file.name.endswith(".sql"):
            _, *parts = _NAME.split(file.read_text())
            statements |= dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))
    return statements


@cache
def migrations() -> tuple[tuple[int, str, str], ...]:
    """All migrations as (version, name, text), in order."""
    files = sorted((f for f in (_FOLDER / "migrations").iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return tuple((int(f.name.split("_")[0]), f.name.removesuffix(".sql"), f.read_text()) for f in files)


T = TypeVar("T")
Row = dict[str, Any]

#: Bounds statements, lost connections and idle sessions that hold an epoch's lock.
_SESSION: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "options": "-c statement_timeout=60s -c lock_timeout=20s -c idle_in_transaction_session_timeout=30s",
}
_ILLEGAL_TRANSITION = "LS001"
_MESSAGES = ("reason", "actor")
_REQUIRED_FOR = "multiranges, by which holes between intervals are found"


def default_actor() -> str:
    """Default actor: user, host and process id."""
    return f"{getpass.getuser()}@{socket.gethostname()}/{os.getpid()}"


def connect(dsn: str, application: str, **session: Any) -> Connection:
    """A connection to the ledger's primary.

    Raises `LedgerRefused` for a malformed DSN, a replica or an outdated server, `LedgerUnavailable` otherwise.
    """
    if parse_dsn(dsn) is None:
        raise LedgerRefused(
            "the ledger's DSN can't be parsed (it isn't shown, it may hold a password): "
            "percent-encode special characters of a URI, quote values with spaces"
        )
    replica = LedgerRefused("the ledger's connection leads to a replica; connect to the primary")
    try:
        connection = dial(dsn, application, replica=replica, readonly=None, **session)
    except psycopg2.Error as error:
        failed = describe(error, dsn)
    else:
        if (outdated := too_old(connection, _REQUIRED_FOR)) is None:
            return connection
        close_quietly(connection)
        raise LedgerRefused(f"the ledger's server is {outdated}")
    raise LedgerUnavailable(f"the ledger can't be reached: {failed}")


@contextmanager
def connect_as_owner(dsn: str, application: str, *, refused: str, failed: str, **session: Any) -> Iterator[Connection]:
    """A connection for operations that need the owner of the schema.

    Raises as `connect`. Missing privileges raise `LedgerRefused` with the text `refused`, where {} is the server's
    message; a lost connection or lock timeout raises `LedgerUnavailable` that starts with `failed`.
    """
    connection = connect(dsn, application, **session)
    try:
        yield connection
    except psycopg2.errors.InsufficientPrivilege as error:
        raise LedgerRefused(refused.format(first_line(error))) from error
    except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
        raise LedgerUnavailable(f"{failed}: {first_line(error)}") from error
    finally:
        connection.close()


def first_line(error: BaseException) -> str:
    """The message of the server or libpq without its context."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


class LedgerCursor(RealDictCursor):
    """Replaces NUL and lone surrogates in messages.

    PostgreSQL can't store them, and error messages may quote file contents: recording the error must not fail.
    Identifiers such as paths are not changed.
    """

    def execute(self, query: Any, vars: Any = None) -> None:
        if isinstance(vars, dict):
            vars = {name: _clean(value) if name in _MESSAGES else value for name, value in vars.items()}
        super().execute(query, vars)


def _clean(value: Any) -> Any:
    return re.sub("[\0\ud800-\udfff]", "\ufffd", value) if isinstance(value, str) else value


class Transaction:
    """Runs statements of `ledger/sql` by name in one transaction."""

    def __init__(self, cursor: RealDictCursor, actor: str) -> None:
        self._cursor = cursor
        self.actor = actor

    def do(self, name: str, **parameters: Any) -> int:
        """Execute a statement; returns the number of affected rows."""
        self._cursor.execute(statement(name), parameters)
        return int(self._cursor.rowcount)

    def one(self, name: str, **parameters: Any) -> Row | None:
        """First row, or None."""
        self._cursor.execute(statement(name), parameters)
        row = self._cursor.fetchone()
        return dict(row) if row is not None else None

    def all(self, name: str, **parameters: Any) -> list[Row]:
        """All rows."""
        self._cursor.execute(statement(name), parameters)
        return [dict(row) for row in self._cursor.fetchall()]


class LedgerConnection:
    """Connects on first use and reconnects after a loss. Not thread-safe, not to be shared with a forked child."""

    def __init__(self, dsn: str, actor: str | None = None) -> None:
        self.dsn = dsn
        self.actor = actor or default_actor()
        self._connection: Any = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def run(self, role: Role, work: Callable[[Transaction], T], reason: str | None = None) -> T:
        """Run `work` in one durable transaction. Retried after a lost connection, even during the commit: all work is
        idempotent.

        Raises `LedgerUnavailable` after three attempts, `LedgerRefused` at once.
        """

        def attempt() -> T:
            with self._transaction(role, reason) as transaction:
                return work(transaction)

        return _retry(attempt)

    def read(self, name: str, **parameters: Any) -> list[Row]:
        """Rows of one read-only statement, in one round trip and without a transaction. Raises as `run`."""

        def work() -> list[Row]:
            with self._cursor() as cursor:
                return Transaction(cursor, self.actor).all(name, **parameters)

        return _retry(work)

    @contextmanager
    def _transaction(self, role: Role, reason: str | None) -> Iterator[Transaction]:
        with self._cursor() as cursor:
            try:
                self._open(cursor, role, reason)
                yield Transaction(cursor, self.actor)
            except BaseException:
                self._roll_back(cursor)
                raise
            cursor.execute("COMMIT")
            if cursor.statusmessage != "COMMIT":
                raise IllegalTransition(f"the ledger answered COMMIT by {cursor.statusmessage}: nothing was changed")

    @contextmanager
    def _cursor(self) -> Iterator[RealDictCursor]:
        """A cursor outside a transaction; converts database errors to those of Lockstep."""
        try:
            with self._connected().cursor(cursor_factory=LedgerCursor) as cursor:
                yield cursor
        except psycopg2.Error as error:
            ledger_error = _to_ledger_error(error)
            if isinstance(ledger_error, LedgerUnavailable):
                self.close()
            if ledger_error is None:
                raise
            raise ledger_error from error

    def _roll_back(self, cursor: RealDictCursor) -> None:
        """Roll back, or close the connection if that fails."""
        try:
            cursor.execute("ROLLBACK")
        except psycopg2.Error:
            self.close()

    def _connected(self) -> Any:
        if self._connection is None or self._connection.closed:
            connection = connect(self.dsn, "lockstep-ledger", **_SESSION)
            try:
                connection.autocommit = True  # BEGIN is sent with the first statement
                require_schema(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _open(self, cursor: RealDictCursor, role: Role, reason: str | None) -> None:
        begin = f"BEGIN ISOLATION LEVEL READ COMMITTED;\n{statement('open_transaction')}"
        cursor.execute(begin, {"role": role.value, "actor": self.actor, "reason": reason or ""})
        row: Row = dict(cursor.fetchone() or {})
        if row["replica"]:
            raise LedgerRefused("the ledger's connection leads to a replica; connect to the primary")
        _require_durable(row)


def require_schema(connection: Connection) -> None:
    """Raise `LedgerRefused` for a schema of another version, or a server that may lose committed data."""
    with connection.cursor(cursor_factory=LedgerCursor) as cursor:
        cursor.execute(statement("find_schema"))
        row: Row = dict(cursor.fetchone() or {})
    version, expected = row["version"], migrations()[-1][0]
    if version != expected:
        do = "upgrade Lockstep" if version > expected else "run the ledger's migrations first"
        raise LedgerRefused(f"the ledger is at migration {version}, this Lockstep works with {expected}: {do}")
    _require_durable(row)


def _require_durable(row: Row) -> None:
    for setting in ("fsync", "full_page_writes"):
        if row[setting] == "off":
            raise LedgerRefused(f"the ledger's server has {setting} = off: a decision could be lost; set it on")


def _retry(work: Callable[[], T]) -> T:
    tries = Retrying(
        retry=retry_if_exception_type(LedgerUnavailable),
        stop=stop_after_attempt(3),
        wait=wait_exponential(multiplier=0.2, max=2),
        reraise=True,
    )
    result: T = tries(work)
    return result


def _to_ledger_error(error: psycopg2.Error) -> LockstepError | None:
    """The Lockstep error for a database error, or None for one that indicates a bug."""
    match error:
        case psycopg2.errors.ReadOnlySqlTransaction():
            return LedgerRefused(
                "the ledger's connection is read-only: set default_transaction_read_only = off for role and database"
            )
        case psycopg2.errors.InsufficientPrivilege():
            return LedgerRefused(f"the role of the ledger's connection may not do that: {first_line(error)}")
        case psycopg2.errors.UndefinedTable():
            return LedgerRefused("the database holds no ledger: run `lockstep migrate` first")
        case psycopg2.errors.ExclusionViolation():
            detail = error.diag.message_detail or first_line(error)
            return IntervalOverlap(f"the interval overlaps another epoch: {detail}")
    if error.pgcode == _ILLEGAL_TRANSITION:
        return IllegalTransition(first_line(error))
    if classify(error) in (Failure.LOST, Failure.PASSING):
        return LedgerUnavailable(f"the ledger does not answer: {first_line(error)}")
    return None
