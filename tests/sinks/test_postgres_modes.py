"""PostgresSink with upserts, and with the weaker guarantees, under the suite that every sink has to pass."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from lockstep.testing import behaviour as behaviours
from lockstep.testing.behaviour import BEHAVIOURS, UNREMEMBERED, VOTING_BEHAVIOURS, Behaviour
from stack.postgres import PostgresServer
from tests.sinks.postgres_target import PostgresUnderTest

UPSERT: dict[str, Any] = {"mode": "upsert", "key": ["id"]}
AT_LEAST_ONCE: dict[str, Any] = {"guarantee": "at_least_once", "committer": "postgres:warehouse"}
#: an upsert refuses a key that stands twice, and a table that others write to
NOT_FOR_UPSERTS = (
    behaviours.rows_that_stand_twice_in_the_wal_are_kept_twice,
    behaviours.pending_lists_its_own_and_nothing_foreign,
)
FOR_UPSERTS = [one for one in [*BEHAVIOURS, *VOTING_BEHAVIOURS] if one not in NOT_FOR_UPSERTS]

_numbers = count(1)


@pytest.fixture
def databases(memory_server: PostgresServer) -> Iterator[tuple[str, str]]:
    """DSNs of two fresh databases."""
    memory_server.start()
    names = [f"{kind}_{next(_numbers)}" for kind in ("modes", "modes_other")]
    here, other = map(memory_server.create_database, names)
    yield here, other
    for name in names:
        memory_server.drop_database(name)


@pytest.mark.parametrize("behaviour", FOR_UPSERTS, ids=lambda one: one.__name__)
def test_two_phase_upserts(databases: tuple[str, str], behaviour: Behaviour) -> None:
    behaviour(PostgresUnderTest(*databases, "two_phase", **UPSERT))


@pytest.mark.parametrize("behaviour", [one for one in BEHAVIOURS if one in FOR_UPSERTS], ids=lambda one: one.__name__)
def test_write_ahead_upserts(databases: tuple[str, str], behaviour: Behaviour) -> None:
    behaviour(PostgresUnderTest(*databases, "write_ahead", **UPSERT))


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.__name__)
def test_at_least_once(databases: tuple[str, str], behaviour: Behaviour) -> None:
    behaviour(PostgresUnderTest(*databases, "write_ahead", **AT_LEAST_ONCE))


@pytest.mark.parametrize("behaviour", UNREMEMBERED, ids=lambda one: one.__name__)
def test_none(databases: tuple[str, str], behaviour: Behaviour) -> None:
    behaviour(PostgresUnderTest(*databases, "write_ahead", guarantee="none"))
