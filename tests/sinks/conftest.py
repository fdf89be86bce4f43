"""Sweeps of the behaviour suite are sampled, too: each step of a story is killed at, or stopped at."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from lockstep.testing import _behaviour as behaviour
from stack.mariadb import MariaDbServer
from stack.postgres import PostgresServer
from tests.sampling import Sampling

ACTIONS = [signal.SIGKILL, signal.SIGSTOP]
_others = count(1)


@pytest.fixture
def stride() -> int:
    """A run kills at one of so many steps, and stops at another one."""
    return len(ACTIONS)


@pytest.fixture(autouse=True)
def sampled_steps(sampling: Sampling, stride: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def select(steps: list[str], action: signal.Signals) -> list[int]:
        return sampling.share(range(len(steps)), ACTIONS.index(action) * stride // len(ACTIONS), stride)

    monkeypatch.setattr(behaviour, "select", select)


@pytest.fixture(scope="session")
def warehouse_server(memory_folder: Path, passfile: Path, server_template: PostgresServer) -> Iterator[PostgresServer]:
    """In memory, where a database is made in a fraction of the time; fsync is on."""
    with PostgresServer(
        memory_folder / "warehouse", passfile=passfile, template=server_template
    ).for_a_while() as server:
        yield server


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
