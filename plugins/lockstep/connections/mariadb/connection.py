"""Connections to a MariaDB database: safe settings in every session, errors with names, no secrets in them."""

from __future__ import annotations

import math
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pymysql

from lockstep.connections.login import entered
from lockstep.connections.mariadb.dsn import parse_dsn, scrub_login
from lockstep.connections.mariadb.errors import (
    LOCKED,
    classify,
    code_of,
    describe,
    is_lost,
    is_refused_login,
    quotes_row,
)
from lockstep.connections.mariadb.wire import Cursor, Loader, close_quietly
from lockstep.errors import ErrorClasses, Failure, InvalidPipeline, LockstepError
from lockstep.observability.redaction import cause

IDLE_SECONDS = 300  #: the server ends a session that is idle for as long
OLDEST = (10, 5)  #: before it, a prepared branch dies with the connection that prepared it

_SQL_MODE = "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO"
_SESSION = """
    SET SESSION sql_mode = %(mode)s, time_zone = '+00:00',
        foreign_key_checks = 1, unique_checks = 1, check_constraint_checks = 1, sql_big_selects = 1, sql_notes = 1,
        sql_safe_updates = 0, sql_select_limit = 18446744073709551615, group_concat_max_len = 1048576,
        max_statement_time = 0, max_error_count = 64, innodb_lock_wait_timeout = %(lock)s, lock_wait_timeout = %(lock)s,
        wait_timeout = %(idle)s, idle_transaction_timeout = %(idle)s, idle_readonly_transaction_timeout = %(idle)s,
        idle_write_transaction_timeout = %(idle)s, net_read_timeout = %(idle)s, net_write_timeout = %(idle)s
"""
_GUARD = """
    SELECT VERSION(), @@GLOBAL.read_only, @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.innodb_doublewrite,
           @@GLOBAL.innodb_flush_method, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, @@SESSION.binlog_format,
           @@GLOBAL.wsrep_on
"""

_LACKS = re.compile(r"(?P<rights>[A-Z][A-Z, ]*) command denied to user .* for table (?P<table>`[^`]+`\.`[^`]+`)")


def dial(connection_id: str, dsn: str, *, autocommit: bool = True) -> tuple[Loader, dict[str, Any]]:
    """A new connection, and the driver's arguments for it; of a `Login` the current one is used.
    Raises `InvalidPipeline`, and the driver's errors, which may quote the arguments."""

    def connect(login: str) -> tuple[Loader, dict[str, Any]]:
        arguments = parse_dsn(connection_id, login)
        return Loader(arguments, autocommit=autocommit), arguments

    return entered(dsn, connect, is_refused_login)


@dataclass
class MariaDbDatabase:
    """A database, as one sink uses it. Keeps one connection for short transactions; `connect` opens others."""

    where: str  #: beginning of each message: "sink warehouse"
    connection_id: str
    dsn: str = field(repr=False)
    lock_timeout: float  #: seconds
    errors: ErrorClasses
    account: str | None = None  #: the user's name and host as in a grant, quoted; known after a preflight
    name: str = field(init=False)  #: of the database that the DSN names
    _short: Loader | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.name = str(parse_dsn(self.connection_id, self.dsn)["database"])

    def connect(self) -> Loader:
        """A new connection: autocommit, READ COMMITTED, strict, in UTC. Raises `errors.unavailable`."""
        try:
            connection, _ = dial(self.connection_id, self.dsn)
        except (pymysql.MySQLError, OSError) as error:
            # from None: the original may quote the arguments
            text = f"{self.where}: connection {self.connection_id}: {self._describe(error)}"
            raise self.errors.unavailable(text) from None
        except (ssl.SSLError, ValueError, RuntimeError) as error:
            raise InvalidPipeline(f"{self.where}: connection {self.connection_id}: {self._describe(error)}") from None
        try:
            with self.naming("opening a session", self.errors.denied), connection.cursor() as cursor:
                lock = max(1, math.ceil(self.lock_timeout))
                self._require_version(connection.server_version)
                cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE")
                cursor.execute(_SESSION, {"mode": _SQL_MODE, "lock": lock, "idle": IDLE_SECONDS})
        except BaseException:
            close_quietly(connection)
            raise
        return connection

    def guard(self, cursor: Cursor) -> None:
        """First statement of every transaction: durable settings on a primary, or `errors.denied`."""
        cursor.execute(_GUARD)
        settings = cursor.fetchone()
        assert settings is not None
        for refused, setting, remedy in weaknesses(*settings[1:]):
            if refused:
                raise self.errors.denied(f"{self.where}: the server runs with {setting}: {remedy}")

    def _require_version(self, version: str) -> None:
        numbers = version.removeprefix("5.5.5-").partition("-")[0].split(".")
        if "MariaDB" not in version or tuple(int(number) for number in numbers[:2]) < OLDEST:
            raise self.errors.denied(
                f"{self.where}: the server of connection {self.connection_id} is {version}: MariaDbSink needs "
                f"MariaDB {'.'.join(map(str, OLDEST))} or newer, where a prepared branch outlives its connection; "
                "MySQL's XA has not been tried with it"
            )

    @contextmanager
    def transaction(self, doing: str, *, rejected: type[LockstepError] | None = None) -> Iterator[Cursor]:
        """A short transaction; commits at the end, rolls back on errors, which are converted as by `naming`."""
        with self.naming(doing, rejected), self.outside_transaction() as cursor:
            connection = self._short
            assert connection is not None
            try:
                connection.begin()
                yield cursor
                connection.commit()
            except BaseException:
                self._roll_back(connection)
                raise

    @contextmanager
    def outside_transaction(self) -> Iterator[Cursor]:
        """A cursor for XA COMMIT and similar statements. Driver errors pass unchanged to the caller."""
        try:
            cursor = self._begin()
        except pymysql.MySQLError as error:
            if not is_lost(error):
                raise
            self.close()  # the kept connection was dead, and no statement had been sent
            cursor = self._begin()
        with cursor:
            yield cursor

    def _begin(self) -> Cursor:
        if self._short is None or not self._short.open:
            self._short = self.connect()
        cursor = self._short.cursor()
        self.guard(cursor)
        return cursor

    def _roll_back(self, connection: Loader) -> None:
        try:
            connection.rollback()
        except pymysql.MySQLError:
            self.close()

    def close(self) -> None:
        if self._short is not None:
            close_quietly(self._short)
        self._short = None

    @contextmanager
    def naming(self, doing: str, rejected: type[LockstepError] | None = None) -> Iterator[None]:
        """Convert driver errors to Lockstep's; one about the content of rows becomes `rejected`."""
        try:
            yield
        except pymysql.MySQLError as error:
            raise self.named(error, doing, rejected) from cause(error, quotes_row(error))

    def named(
        self, error: pymysql.MySQLError, doing: str, rejected: type[LockstepError] | None = None
    ) -> LockstepError:
        text, failure = f"{self.where}: {doing}: {self._describe(error)}", classify(error)
        match failure:
            case Failure.FULL:
                text = f"{text}; make room where the server keeps its data"
            case Failure.DENIED:
                text = f"{text}; {self._remedy(text)}"
            case Failure.REFUSED if rejected:
                return rejected(text)
        return self.errors.of(failure)(text)

    def _remedy(self, text: str) -> str:
        """Instruction to grant the missing right, with the statement if the server names the right."""
        lacks, remedy = _LACKS.search(text), f"grant the user of connection {self.connection_id} what it lacks"
        if lacks is None or self.account is None:
            return remedy
        return f"{remedy}: GRANT {lacks['rights']} ON {lacks['table']} TO {self.account};"

    def is_locked_out(self, error: LockstepError) -> bool:
        """True if another transaction held a lock for too long, or for a deadlock."""
        return error.__cause__ is not None and code_of(error.__cause__) in LOCKED

    def _describe(self, error: BaseException) -> str:
        return scrub_login(describe(error), self.connection_id, self.dsn)


def weaknesses(
    read_only: int,
    flush: int,
    doublewrite: Any,
    flush_method: str,
    log_bin: int,
    sync_binlog: int,
    binlog_format: str,
    wsrep_on: int,
) -> Iterator[tuple[bool, str, str]]:
    """(is weak, actual setting, remedy) for each setting with which the server could lose acknowledged rows."""
    loses = "it can lose what it acknowledged; set it to"
    yield bool(read_only), f"read_only = {read_only}", "a replica's markers and branches prove nothing: use the primary"
    yield flush != 1, f"innodb_flush_log_at_trx_commit = {flush}", f"{loses} 1"
    yield str(doublewrite).upper() in ("0", "OFF"), f"innodb_doublewrite = {doublewrite}", f"{loses} 1"
    yield str(flush_method).lower() == "nosync", f"innodb_flush_method = {flush_method}", f"{loses} O_DIRECT"
    yield bool(log_bin) and sync_binlog != 1, f"log_bin = 1 and sync_binlog = {sync_binlog}", f"{loses} 1"
    yield (
        bool(log_bin) and binlog_format == "STATEMENT",
        "log_bin = 1 and binlog_format = STATEMENT",
        "InnoDB refuses READ COMMITTED there; set it to MIXED or ROW",
    )
    yield bool(wsrep_on), "wsrep_on = 1", "Galera knows neither XA nor GET_LOCK; use a server that is no cluster node"
