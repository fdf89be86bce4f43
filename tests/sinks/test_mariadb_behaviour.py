"""MariaDbSink under the suite that every sink has to pass, which has a fault at every one of its steps.

The crashes of its other modes are those of the table in docs/sinks/guarantees.md (test_mariadb_modes).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from lockstep.testing._behaviour import BEHAVIOURS, CRASHES, VOTING_BEHAVIOURS, Behaviour
from stack.mariadb import MariaDbServer
from tests.sinks.mariadb_target import MariaDbUnderTest

_others = count(1)


@pytest.fixture
def other_dsn(mariadb_server: MariaDbServer) -> Iterator[str]:
    name = f"other_{next(_others)}"
    yield mariadb_server.create_database(name)
    mariadb_server.drop_database(name)


@pytest.mark.parametrize("behaviour", [*BEHAVIOURS, *VOTING_BEHAVIOURS], ids=lambda one: one.__name__)
def test_two_phase(mariadb_dsn: str, other_dsn: str, behaviour: Behaviour) -> None:
    behaviour(MariaDbUnderTest(mariadb_dsn, other_dsn, "two_phase"))


@pytest.mark.parametrize("behaviour", [one for one in BEHAVIOURS if one not in CRASHES], ids=lambda one: one.__name__)
def test_write_ahead(mariadb_dsn: str, other_dsn: str, behaviour: Behaviour) -> None:
    behaviour(MariaDbUnderTest(mariadb_dsn, other_dsn, "write_ahead"))
