"""Sweeps of the behaviour suite are sampled, too: each step of a story is killed at, or stopped at."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from itertools import count

import psycopg2
import pytest

from lockstep.testing import _behaviour as behaviour
from stack.mariadb import MariaDbServer
from stack.postgres import PostgresServer
from tests.apart import apart
from tests.clean_process import CleanProcess
from tests.sampling import Sampling

ACTIONS = [signal.SIGKILL, signal.SIGSTOP]
_others = count(1)


@pytest.fixture
def stride() -> int:
    """A run kills at one of so many steps, and stops at another one."""
    return len(ACTIONS)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "apart(really=True): run the test by tests.apart, unless it has subtests")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """One fork for the whole of a test, whose many calls of a library would need one each."""
    marker = pyfuncitem.get_closest_marker("apart")
    if marker is None or marker.args == (False,) or "subtests" in pyfuncitem.fixturenames:
        return None
    wanted = pyfuncitem._fixtureinfo.argnames
    apart(lambda: pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.fixture(autouse=True)
def sampled_steps(sampling: Sampling, stride: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def select(steps: list[str], action: signal.Signals) -> list[int]:
        return sampling.share(range(len(steps)), ACTIONS.index(action) * stride // len(ACTIONS), stride)

    monkeypatch.setattr(behaviour, "select", select)


@pytest.fixture(scope="module")
def clean() -> Iterator[CleanProcess]:
    with CleanProcess() as process:
        yield process


@pytest.fixture
def other_dsn(warehouse_server: PostgresServer) -> Iterator[str]:
    """A database that a sink must not be confused with."""
    name = f"other_{next(_others)}"
    yield warehouse_server.create_database(name)
    warehouse_server.drop_database(name)


@pytest.fixture
def other_mariadb_dsn(mariadb_server: MariaDbServer) -> Iterator[str]:
    name = f"other_{next(_others)}"
    yield mariadb_server.create_database(name)
    mariadb_server.drop_database(name)


@pytest.fixture(scope="session")
def _catalogs(ledger_server: PostgresServer) -> str:
    return ledger_server.create_database("catalogs")


@pytest.fixture
def catalog_dsn(ledger_server: PostgresServer, _catalogs: str) -> Iterator[str]:
    """DSN of a database in memory in which a test's Iceberg catalogs are the only ones."""
    ledger_server.start()  # a test before this one may have left it stopped
    yield _catalogs
    ledger_server.start()
    with psycopg2.connect(_catalogs) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS iceberg_tables, iceberg_namespace_properties")
    connection.close()
