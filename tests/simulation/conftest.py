"""A ledger in memory, and processes that stand still at every crash point."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lockstep.ledger import migrate
from stack.postgres import PostgresServer
from tests.simulation.baton import standing_at_crash_points


@pytest.fixture(scope="session")
def simulated_ledger(ledger_server: PostgresServer) -> Iterator[str]:
    """DSN of a migrated ledger that every simulation empties first."""
    dsn = ledger_server.create_database("simulation")
    migrate(dsn)
    yield dsn


@pytest.fixture
def standing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leases are renewed by no thread: their clock is the simulator's."""
    monkeypatch.setattr("lockstep.protocol.lease.RENEWAL", 3600.0)
    with standing_at_crash_points(monkeypatch):
        yield
