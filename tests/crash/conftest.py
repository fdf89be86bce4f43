"""Worlds for the crash suite: one a protocol, shared by the scenarios of a module, each on a day of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lockstep.sinks.tables.sink import ProtocolName
from stack.postgres import PostgresServer
from tests.crash.world import World, make_world


@pytest.fixture(scope="module")
def world(
    request: pytest.FixtureRequest,
    ledger_server: PostgresServer,
    warehouse_server: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    """By two-phase commit, where a test doesn't name the protocol."""
    protocol: ProtocolName = getattr(request, "param", "two_phase")
    folder = tmp_path_factory.mktemp(protocol)
    name = f"crash_{folder.name}_{folder.parent.name.replace('-', '_')}_{request.module.__name__.rsplit('.')[-1]}"[:60]
    ledger, warehouse = ledger_server.dsn(name), warehouse_server.dsn(name)
    ledger_server.create_database(name)
    warehouse_server.create_database(name)
    yield make_world(ledger, warehouse, folder, protocol)
