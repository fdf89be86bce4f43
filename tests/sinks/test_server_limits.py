"""Limits that a server sets on sessions: none of them is in force where a long epoch is written, or read back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from lockstep.connections.mariadb import connection as mariadb
from lockstep.connections.mariadb.dsn import parse_dsn
from lockstep.connections.postgres import connection as postgres
from lockstep.errors import SINK_ERRORS
from lockstep.ledger import Ledger, migrate
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sources.tables._mariadb_reading import SelectOut
from lockstep.sources.tables._postgres_reading import CopyOut
from lockstep.sources.tables.postgres_table import snapshot
from lockstep.states import Role
from stack.mariadb import MariaDbServer
from tests.sinks import mariadb_target
from tests.sinks.one_sink import ROWS, published
from tests.sinks.postgres_target import execute

#: what ends a session too early, with the value by which it is known to be lifted
POSTGRES_LIMITS = {"transaction_timeout": "0", "statement_timeout": "0", "idle_in_transaction_session_timeout": "5min"}
MARIADB_LIMITS = {
    "sql_select_limit": 1,
    "sql_safe_updates": 1,
    "group_concat_max_len": 4,
    "max_statement_time": 1,
    "idle_transaction_timeout": 1,
    "idle_readonly_transaction_timeout": 1,
    "idle_write_transaction_timeout": 1,
    "wait_timeout": 1,
    "net_read_timeout": 1,
    "net_write_timeout": 1,
}
NONE = {"sql_safe_updates": 0, "max_statement_time": 0}  #: what says that there is no limit


@pytest.mark.fault("L6")
def test_no_limit_of_postgres_ends_a_session_of_sinks_sources_or_the_ledger(warehouse_dsn: str) -> None:
    migrate(warehouse_dsn)
    for name in POSTGRES_LIMITS:
        execute(warehouse_dsn, f"ALTER DATABASE {warehouse_dsn.rsplit('/', 1)[1]} SET {name} = 5000")
    query = "SELECT " + ", ".join(f"current_setting('{name}') AS {name}" for name in POSTGRES_LIMITS)
    sessions = postgres.PostgresDatabase("sink warehouse", "w", warehouse_dsn, 1.0, SINK_ERRORS)
    with closing(sessions), sessions.transaction("looking") as cursor:
        cursor.execute(query)
        assert cursor.fetchone() == tuple(POSTGRES_LIMITS.values())
    read = CopyOut(warehouse_dsn, "test", pa.schema({name: pa.string() for name in POSTGRES_LIMITS}))
    [found] = pa.Table.from_batches(read(query)).to_pylist()
    with snapshot("source", warehouse_dsn, "test", durable=False) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        [of_snapshot] = cursor.fetchall()
        assert of_snapshot[:2] == (found["transaction_timeout"], found["statement_timeout"]) == ("0", "0")
    seen: list[Any] = []

    def look(tx: Any) -> None:
        tx._cursor.execute(query)
        seen.append(tx._cursor.fetchone())

    with closing(Ledger(warehouse_dsn)) as ledger:
        ledger._connection.run(Role.BEGIN, look)
    assert (seen[0]["transaction_timeout"], seen[0]["statement_timeout"]) == ("0", "1min")


@pytest.fixture
def limited_mariadb(mariadb_server: MariaDbServer, mariadb_dsn: str) -> Iterator[str]:
    query = "SELECT " + ", ".join(f"@@GLOBAL.{name}" for name in MARIADB_LIMITS)
    [before] = mariadb_target.execute(mariadb_dsn, query)
    try:
        for name, value in MARIADB_LIMITS.items():
            mariadb_server.execute(f"SET GLOBAL {name} = {value}")
        yield mariadb_dsn
    finally:
        for name, value in zip(MARIADB_LIMITS, before, strict=True):
            mariadb_server.execute(f"SET GLOBAL {name} = {value}")


@pytest.mark.fault("L6")
@pytest.mark.parametrize("arguments", [{}, {"protocol": "write_ahead", "mode": "upsert", "key": ["id"]}], ids=str)
def test_no_limit_of_mariadb_cuts_rows_or_ends_a_session(limited_mariadb: str, arguments: dict[str, Any]) -> None:
    given = MariaDbSink("warehouse", tables={"rows": "target"}, connection="w", create=True, **arguments)
    assert published(limited_mariadb, given, ROWS).sort_by("id") == ROWS
    sessions = mariadb.MariaDbDatabase("sink warehouse", "w", limited_mariadb, 1.0, SINK_ERRORS)
    with closing(sessions), sessions.transaction("looking") as cursor:
        cursor.execute("SELECT " + ", ".join(f"@@{name}" for name in MARIADB_LIMITS))
        [values] = cursor.fetchall()
    found = dict(zip(MARIADB_LIMITS, values, strict=True))
    assert {name: value for name, value in found.items() if name in NONE} == NONE
    assert all(value > MARIADB_LIMITS[name] for name, value in found.items() if name not in NONE), found
    limits = {"max_statement_time": "0.000000", "net_write_timeout": "300"}
    limits |= dict.fromkeys(("wait_timeout", "idle_transaction_timeout", "idle_readonly_transaction_timeout"), "300")
    query = "SELECT " + ", ".join(f"CAST(@@{name} AS CHAR)" for name in limits)
    read = SelectOut(parse_dsn("w", limited_mariadb), pa.schema({name: pa.string() for name in limits}))
    assert pa.Table.from_batches(read(query)).to_pylist() == [limits]
