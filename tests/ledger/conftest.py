"""A migrated ledger with one pipeline of each identity, on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg2
import pytest

from lockstep.epoch import KeyedBy
from lockstep.ledger import Ledger, migrate
from stack.postgres import PostgresServer
from tests.ledger.epochs import CLICKS, FLIGHTS, Sql

_numbers = count(1)


@pytest.fixture(scope="module")
def own_server(memory_folder: Path, passfile: Path, server_template: PostgresServer) -> Iterator[PostgresServer]:
    """A server that a test may crash or misconfigure without disturbing anybody."""
    server = PostgresServer(memory_folder / "own-ledger", passfile=passfile, template=server_template)
    with server.for_a_while():
        yield server


@pytest.fixture(scope="module")
def module_dsn(ledger_server: PostgresServer) -> Iterator[str]:
    """One database for the tests of a module: to make one for each costs more than the tests."""
    name = f"ledger_{next(_numbers)}"
    dsn = ledger_server.create_database(name)
    migrate(dsn)
    ledger = Ledger(dsn)
    ledger.ensure_pipeline(FLIGHTS, KeyedBy.INTERVAL)
    ledger.ensure_pipeline(CLICKS, KeyedBy.CURSOR)
    ledger.close()
    yield dsn
    ledger_server.drop_database(name)


@pytest.fixture
def migrated_dsn(module_dsn: str) -> str:
    """DSN of a ledger without epochs."""
    connection = psycopg2.connect(module_dsn)
    sql = Sql(connection)
    with sql.unwatched():
        sql.delete_epochs()
        sql("UPDATE lockstep.pipeline SET last_epoch = 0")
    connection.close()
    return module_dsn


@pytest.fixture
def ledger(migrated_dsn: str) -> Iterator[Ledger]:
    ledger = Ledger(migrated_dsn, actor="tester")
    yield ledger
    ledger.close()


@pytest.fixture
def sql(migrated_dsn: str) -> Iterator[Sql]:
    """A session of somebody who writes to the tables by hand."""
    connection = psycopg2.connect(migrated_dsn)
    yield Sql(connection)
    connection.close()
