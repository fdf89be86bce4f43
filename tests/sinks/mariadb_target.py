"""MariaDbSink on a database of its own, for the behaviour suite and the crash sweep."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pyarrow as pa
import pymysql

from lockstep.connections.mariadb.dsn import parse_dsn
from lockstep.connections.mariadb.wire import columns
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.mariadb.dialect import xid
from lockstep.testing._sealed_rows import SCHEMA
from stack.mariadb import MariaDbServer
from tests.sinks.postgres_target import TableUnderTest
from tests.waiting import still_there


@contextmanager
def connected(dsn: str) -> Iterator[Any]:
    """A cursor of an autocommit connection."""
    connecting = closing(pymysql.connect(**parse_dsn("by hand", dsn), autocommit=True))
    with connecting as connection, connection.cursor() as cursor:
        yield cursor


def execute(dsn: str, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Run one statement by hand, as an administrator might."""
    with connected(dsn) as cursor:
        cursor.execute(statement, parameters or None)
        return list(cursor.fetchall())


def empty(server: MariaDbServer, dsn: str) -> str:
    """A database without sessions, branches and tables again."""
    name = dsn.rsplit("/", 1)[1]
    server.drop_database(name)
    return server.create_database(name)


class MariaDbUnderTest(TableUnderTest):
    kind, relation = MariaDbSink, "rows"

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        return execute(self.dsn, statement.replace("rows", "`rows`"))

    def visible(self) -> pa.Table:
        if not execute(self.dsn, "SHOW TABLES LIKE 'rows'"):
            return SCHEMA.empty_table()
        found = execute(self.dsn, f"SELECT {columns(SCHEMA.names)} FROM `rows`")
        return pa.table(
            [_of(field, list(column)) for field, column in zip(SCHEMA, zip(*found, strict=True), strict=True)]
            if found
            else [[]] * len(SCHEMA),
            schema=SCHEMA,
        )

    def unsettled(self) -> list[str]:
        database = parse_dsn("by hand", self.dsn)["database"]
        prepared = [row[3].decode() for row in execute(self.dsn, "XA RECOVER")]
        statement = "SELECT id FROM information_schema.processlist WHERE db = %s AND id <> connection_id()"
        sessions = still_there(lambda: execute(self.dsn, statement, database))
        return [*prepared, *(f"session {number}" for (number,) in sessions)]

    def lose(self, handle: str) -> None:
        with suppress(pymysql.err.OperationalError):  # lost before
            execute(self.dsn, "XA ROLLBACK %s, %s", *xid(handle))


def _of(field: pa.Field, values: list[Any]) -> pa.Array:
    if pa.types.is_boolean(field.type):
        return pa.array([None if value is None else bool(value) for value in values], field.type)
    return pa.array(values, field.type)
