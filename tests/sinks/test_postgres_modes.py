"""PostgresSink with upserts, and with the weaker guarantees, under the suite that every sink has to pass."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from lockstep.sinks.tables.sink import ProtocolName
from lockstep.testing import _behaviour as behaviour
from lockstep.testing import behaviours
from lockstep.testing._behaviour import CRASHES, Behaviour
from stack.postgres import PostgresServer
from tests.sinks.guarantees import expect_row
from tests.sinks.postgres_target import PostgresUnderTest

UPSERT: dict[str, Any] = {"mode": "upsert", "key": ["id"], "on_missing": "delete"}
AT_LEAST_ONCE: dict[str, Any] = {"guarantee": "at_least_once", "committer": "postgres:warehouse"}
NONE: dict[str, Any] = {"guarantee": "none"}
#: an upsert refuses a key that stands twice, and a table that others write to
NOT_FOR_UPSERTS = (
    behaviour.rows_that_stand_twice_in_the_wal_are_kept_twice,
    behaviour.pending_lists_its_own_and_nothing_foreign,
)
ROWS: dict[str, tuple[ProtocolName, dict[str, Any]]] = {
    "two phases": ("two_phase", {}),
    "write ahead": ("write_ahead", {}),
    "write ahead, at least once": ("write_ahead", AT_LEAST_ONCE),
    "write ahead, none": ("write_ahead", NONE),
    "upsert": ("write_ahead", UPSERT),
    "upsert, at least once": ("write_ahead", UPSERT | AT_LEAST_ONCE),
    "upsert, two phases": ("two_phase", UPSERT),
}

_numbers = count(1)


def asked_of(protocol: ProtocolName, **arguments: Any) -> list[Behaviour]:
    """What has no crash in it: those are in the table of docs/sinks/guarantees.md."""
    upserting = arguments.get("mode") == "upsert"
    left_out = [*CRASHES, *(NOT_FOR_UPSERTS if upserting else ())]
    return [one for one in behaviours(PostgresUnderTest("", "", protocol, **arguments)) if one not in left_out]


@pytest.fixture
def databases(memory_server: PostgresServer) -> Iterator[tuple[str, str]]:
    """DSNs of two fresh databases."""
    memory_server.start()
    names = [f"{kind}_{next(_numbers)}" for kind in ("modes", "modes_other")]
    here, other = map(memory_server.create_database, names)
    yield here, other
    for name in names:
        memory_server.drop_database(name)


@pytest.mark.parametrize("checked", asked_of("two_phase", **UPSERT), ids=lambda one: one.__name__)
def test_two_phase_upserts(databases: tuple[str, str], checked: Behaviour) -> None:
    checked(PostgresUnderTest(*databases, "two_phase", **UPSERT))


@pytest.mark.parametrize("checked", asked_of("write_ahead", **UPSERT), ids=lambda one: one.__name__)
def test_write_ahead_upserts(databases: tuple[str, str], checked: Behaviour) -> None:
    checked(PostgresUnderTest(*databases, "write_ahead", **UPSERT))


@pytest.mark.parametrize("checked", asked_of("write_ahead", **AT_LEAST_ONCE), ids=lambda one: one.__name__)
def test_at_least_once(databases: tuple[str, str], checked: Behaviour) -> None:
    checked(PostgresUnderTest(*databases, "write_ahead", **AT_LEAST_ONCE))


@pytest.mark.parametrize("checked", asked_of("write_ahead", **NONE), ids=lambda one: one.__name__)
def test_none(databases: tuple[str, str], checked: Behaviour) -> None:
    checked(PostgresUnderTest(*databases, "write_ahead", **NONE))


@pytest.mark.tier("all")
@pytest.mark.parametrize("name", ROWS)
def test_the_page_of_guarantees_tells_the_truth(
    databases: tuple[str, str], memory_server: PostgresServer, name: str
) -> None:
    protocol, arguments = ROWS[name]
    target = PostgresUnderTest(*databases, protocol, memory_server, **arguments)
    expect_row(f"PostgresSink, {name}", target)
