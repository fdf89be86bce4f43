"""PostgresSink under the suite that every sink has to pass, which has a fault at every one of its steps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from lockstep.testing._behaviour import BEHAVIOURS, VOTING_BEHAVIOURS, Behaviour
from stack.postgres import PostgresServer
from tests.sinks.postgres_target import PostgresUnderTest

_others = count(1)


@pytest.fixture
def other_dsn(warehouse_server: PostgresServer) -> Iterator[str]:
    name = f"other_{next(_others)}"
    yield warehouse_server.create_database(name)
    warehouse_server.drop_database(name)


@pytest.mark.parametrize("behaviour", [*BEHAVIOURS, *VOTING_BEHAVIOURS], ids=lambda one: one.__name__)
def test_two_phase(warehouse_dsn: str, other_dsn: str, behaviour: Behaviour) -> None:
    behaviour(PostgresUnderTest(warehouse_dsn, other_dsn, "two_phase"))


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.__name__)
def test_write_ahead(warehouse_dsn: str, other_dsn: str, behaviour: Behaviour) -> None:
    behaviour(PostgresUnderTest(warehouse_dsn, other_dsn, "write_ahead"))
