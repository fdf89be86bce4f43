"""Limits that a server sets on sessions: they neither end a long epoch nor cut what is read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from lockstep.ledger import Ledger, migrate
from lockstep.mariadb.dsn import parse_dsn
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.tables.sink import TableSink
from lockstep.sinks.values import SinkContext
from lockstep.sources.tables._mariadb_reading import SelectOut
from lockstep.sources.tables._postgres_reading import CopyOut
from lockstep.sources.tables._postgres_session import snapshot
from lockstep.states import Role
from lockstep.testing._sealed_rows import SealedRows
from lockstep.testing._under_test import DEPLOYMENT, epoch
from stack.mariadb import MariaDbServer
from stack.postgres import PostgresServer
from tests.sinks import mariadb_target
from tests.sinks.postgres_target import execute

SCHEMA = pa.schema({"id": pa.int64()})
ROWS = pa.table({"id": [1, 2, 3]}, SCHEMA)
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


@dataclass(frozen=True)
class Slow(SealedRows):
    """Rows that come when a condition holds."""

    until: Callable[[], bool] = bool

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while not self.until():
            pass
        return super().__iter__()


def _sink(kind: type[TableSink], protocol: Any, mode: str) -> TableSink:
    key = ["id"] if mode == "upsert" else None
    return kind(
        "warehouse", tables={"rows": "target"}, connection="w", create=True, protocol=protocol, mode=mode, key=key
    )


def published(given: TableSink, dsn: str, *, until: Callable[[], bool]) -> pa.Table:
    wal = [Slow(ROWS, output="rows", until=until)]
    with given.opened(SinkContext(DEPLOYMENT, "pipe", {"w": dsn})) as live:
        live.preflight({"rows": SCHEMA})
        live.publish(replace(epoch(), token=11), live.prepare(epoch(), wal), wal)
        return pa.Table.from_batches(live.read(1, "rows", SCHEMA), SCHEMA).sort_by("id")


@pytest.fixture
def limited_dsn(warehouse_dsn: str) -> str:
    """A database that ends every transaction after 400 ms."""
    for name in POSTGRES_LIMITS:
        execute(warehouse_dsn, f"ALTER DATABASE {warehouse_dsn.rsplit('/', 1)[1]} SET {name} = 400")
    return warehouse_dsn


@pytest.mark.fault("L6")
@pytest.mark.parametrize(("protocol", "mode"), [("two_phase", "append"), ("write_ahead", "upsert")])
def test_a_transaction_that_outlasts_the_servers_limits_is_not_ended(
    warehouse_server: PostgresServer, limited_dsn: str, protocol: str, mode: str
) -> None:
    database = limited_dsn.rsplit("/", 1)[1]
    old = (
        "SELECT count(*) = 0 OR bool_or(clock_timestamp() - xact_start > interval '600 ms') FROM pg_stat_activity "
        "WHERE application_name LIKE 'lockstep:%' AND datname = '" + database + "'"
    )
    given = _sink(PostgresSink, protocol, mode)
    found = published(given, limited_dsn, until=lambda: execute(warehouse_server.dsn(), old) == [(True,)])
    assert found == ROWS


@pytest.mark.fault("L6")
def test_the_ledger_has_its_own_limits(memory_server: PostgresServer) -> None:
    memory_server.start()
    dsn = memory_server.create_database("limited_ledger")
    execute(dsn, "ALTER DATABASE limited_ledger SET transaction_timeout = 5000")
    execute(dsn, "ALTER DATABASE limited_ledger SET statement_timeout = 5000")
    migrate(dsn)
    ledger = Ledger(dsn)
    found: list[Any] = []

    def look(tx: Any) -> None:
        tx._cursor.execute(
            "SELECT current_setting('transaction_timeout') AS one, current_setting('statement_timeout') AS two"
        )
        found.extend(tx._cursor.fetchone().values())

    ledger._connection.run(Role.BEGIN, look)
    ledger.close()
    assert found == ["0", "1min"]
    memory_server.drop_database("limited_ledger")


@pytest.mark.fault("L6")
def test_reading_a_table_has_no_limit_in_time(limited_dsn: str) -> None:
    limits = ("transaction_timeout", "statement_timeout")
    query = "SELECT " + ", ".join(f"current_setting('{name}')" for name in limits)
    read = CopyOut(limited_dsn, "test", pa.schema({name: pa.string() for name in limits}))
    assert pa.Table.from_batches(read(query)).to_pylist() == [dict.fromkeys(limits, "0")]
    with snapshot("source", limited_dsn, "test", durable=False) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        assert cursor.fetchone() == ("0", "0")


@pytest.fixture
def limited_mariadb(mariadb_server: MariaDbServer, mariadb_dsn: str) -> Iterator[str]:
    before = mariadb_target.execute(mariadb_dsn, "SELECT " + ", ".join(f"@@GLOBAL.{name}" for name in MARIADB_LIMITS))[
        0
    ]
    try:
        for name, value in MARIADB_LIMITS.items():
            mariadb_server.execute(f"SET GLOBAL {name} = {value}")
        yield mariadb_dsn
    finally:
        for name, value in zip(MARIADB_LIMITS, before, strict=True):
            mariadb_server.execute(f"SET GLOBAL {name} = {value}")


@pytest.mark.fault("L6")
@pytest.mark.parametrize(("protocol", "mode"), [("two_phase", "append"), ("write_ahead", "upsert")])
def test_settings_that_cut_or_end_what_a_session_does_are_neutralised(
    limited_mariadb: str, mariadb_server: MariaDbServer, protocol: str, mode: str
) -> None:
    idle = "SELECT count(*) FROM information_schema.processlist WHERE command = 'Sleep' AND time_ms > 2000 AND db = %s"
    database = limited_mariadb.rsplit("/", 1)[1]
    sessions = "SELECT count(*) FROM information_schema.processlist WHERE db = %s"

    def rested() -> bool:
        alone = mariadb_target.execute(mariadb_server.dsn(), sessions, database) == [(0,)]
        return alone or mariadb_target.execute(mariadb_server.dsn(), idle, database) != [(0,)]

    given = _sink(MariaDbSink, protocol, mode)
    assert published(given, limited_mariadb, until=rested) == ROWS


@pytest.mark.fault("L6")
def test_reading_a_mariadb_table_has_no_limit_in_time(limited_mariadb: str) -> None:
    limits = {"max_statement_time": "0.000000", "net_write_timeout": "300"}
    limits |= dict.fromkeys(("wait_timeout", "idle_transaction_timeout", "idle_readonly_transaction_timeout"), "300")
    query = "SELECT " + ", ".join(f"CAST(@@{name} AS CHAR)" for name in limits)
    read = SelectOut(parse_dsn("w", limited_mariadb), pa.schema({name: pa.string() for name in limits}))
    assert pa.Table.from_batches(read(query)).to_pylist() == [limits]
