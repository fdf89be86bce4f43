"""PostgresSink on a database of its own, for the behaviour suite and the crash sweep."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import psycopg2
import pyarrow as pa
from psycopg2 import sql

from lockstep.sinks.base import Sink
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.tables.sink import ProtocolName, TableSink
from lockstep.sinks.values import Guarantee, SinkContext
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA
from lockstep.testing._under_test import SinkUnderTest
from stack.mariadb import MariaDbServer
from stack.postgres import PostgresServer
from tests.waiting import still_there

LOCK_TIMEOUT = 0.3  # seconds: what is stopped in a test stays stopped


@contextmanager
def connected(dsn: str) -> Iterator[Any]:
    """A cursor of an autocommit connection."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()


def execute(dsn: str, statement: str | sql.Composable, *parameters: object) -> list[tuple[Any, ...]]:
    """Run one statement by hand, as an administrator might."""
    with connected(dsn) as cursor:
        cursor.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else []


def empty(dsn: str) -> str:
    """A database without sessions, branches and tables again; making one anew takes several times as long."""
    with connected(dsn) as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 9999) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        cursor.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()")
        for (gid,) in cursor.fetchall():
            cursor.execute(sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(gid)))
        cursor.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return dsn


@contextmanager
def system_setting(server: PostgresServer, name: str, value: str) -> Iterator[None]:
    """Of the whole server, while it lasts."""
    [before] = execute(server.dsn(), f"SHOW {name}")
    execute(server.dsn(), f"ALTER SYSTEM SET {name} = {value}")
    execute(server.dsn(), "SELECT pg_reload_conf()")
    while execute(server.dsn(), f"SHOW {name}") == [before]:
        pass
    try:
        yield
    finally:
        execute(server.dsn(), f"ALTER SYSTEM RESET {name}")
        execute(server.dsn(), "SELECT pg_reload_conf()")
        while execute(server.dsn(), f"SHOW {name}") != [before]:
            pass


class TableUnderTest(SinkUnderTest):
    """A sink of tables in the database of `dsn`; `other` is a database that it must not be confused with.

    `server`: whose power may be cut.
    """

    kind: ClassVar[type[TableSink]]
    relation: ClassVar[str]

    def __init__(
        self,
        dsn: str,
        other: str,
        protocol: ProtocolName,
        server: PostgresServer | MariaDbServer | None = None,
        **arguments: Any,
    ) -> None:
        self.server = server
        self.dsn, self.other, self.protocol, self.arguments = dsn, other, protocol, arguments
        self.votes_with_data = protocol == "two_phase"
        self.guarantee = Guarantee.EXACTLY_ONCE
        self.replaceable = arguments.get("epoch_column", "") is not None

    @abstractmethod
    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run one statement by hand, in which the table is called `rows`."""

    def sink(self, *, shared: bool = False) -> TableSink:
        given: dict[str, Any] = {"create": True, "lock_timeout": LOCK_TIMEOUT, **self.arguments}
        tables = {OUTPUT: self.relation}
        return self.kind(
            "warehouse", tables=tables, connection="warehouse", protocol=self.protocol, shared=shared, **given
        )

    def connections(self) -> dict[str, str]:
        return {"warehouse": self.dsn}

    def elsewhere(self) -> tuple[Sink, SinkContext]:
        context = SinkContext(self.context().deployment, self.context().pipeline, {"warehouse": self.other})
        with self.sink().opened(context) as sink:
            sink.preflight({OUTPUT: SCHEMA})
        return self.sink(), context

    def lose_power(self) -> bool:
        if self.server is None:
            return False
        self.server.kill()
        self.server.start()
        return True


class PostgresUnderTest(TableUnderTest):
    kind, relation = PostgresSink, "public.rows"

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        return execute(self.dsn, statement)

    def visible(self) -> pa.Table:
        if execute(self.dsn, "SELECT to_regclass('public.rows')") == [(None,)]:
            return SCHEMA.empty_table()
        columns = sql.SQL(", ").join(map(sql.Identifier, SCHEMA.names))
        rows = execute(self.dsn, sql.SQL("SELECT {} FROM rows").format(columns))
        return pa.table([list(column) for column in zip(*rows, strict=True)] or [[]] * len(SCHEMA), schema=SCHEMA)

    def unsettled(self) -> list[str]:
        prepared = execute(self.dsn, "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()")
        statement = (
            "SELECT application_name FROM pg_stat_activity "
            "WHERE application_name LIKE 'lockstep:%' AND datname = current_database()"
        )
        return [name for (name,) in [*prepared, *still_there(lambda: execute(self.dsn, statement))]]

    def lose(self, handle: str) -> None:
        with connected(self.dsn) as cursor:
            try:
                cursor.execute(sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(handle)))
            except psycopg2.errors.UndefinedObject:
                return  # lost before
