"""PostgresSink with upserts, and with the weaker guarantees, under the suite that every sink has to pass."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.sinks.tables.sink import ProtocolName
from stack.postgres import PostgresServer
from tests.sampling import Sampling
from tests.sinks.conformance import UPSERT, check, of_mode
from tests.sinks.guarantees import expect_row
from tests.sinks.postgres_target import PostgresUnderTest, empty

AT_LEAST_ONCE: dict[str, Any] = {"guarantee": "at_least_once", "committer": "postgres:warehouse"}
ROWS: dict[str, tuple[ProtocolName, dict[str, Any]]] = {
    "two phases": ("two_phase", {}),
    "write ahead": ("write_ahead", {}),
    "write ahead, at least once": ("write_ahead", AT_LEAST_ONCE),
    "write ahead, none": ("write_ahead", {"guarantee": "none"}),
    "upsert": ("write_ahead", UPSERT),
    "upsert, at least once": ("write_ahead", UPSERT | AT_LEAST_ONCE),
    "upsert, two phases": ("two_phase", UPSERT),
}
MODES = [name for name in ROWS if name not in ("two phases", "write ahead", "upsert, at least once")]


@pytest.mark.parametrize("name", MODES)
def test_what_differs(
    warehouse_dsn: str, other_dsn: str, sampling: Sampling, name: str, subtests: pytest.Subtests
) -> None:
    protocol, arguments = ROWS[name]

    def target() -> PostgresUnderTest:
        return PostgresUnderTest(empty(warehouse_dsn), other_dsn, protocol, **arguments)

    check(of_mode(target(), sampling, upserts="mode" in arguments), target, subtests)


@pytest.mark.fault("E26")
@pytest.mark.tier("all")
@pytest.mark.parametrize("name", ROWS)
def test_the_page_of_guarantees_tells_the_truth(
    warehouse_dsn: str, other_dsn: str, warehouse_server: PostgresServer, name: str
) -> None:
    protocol, arguments = ROWS[name]
    target = PostgresUnderTest(warehouse_dsn, other_dsn, protocol, warehouse_server, **arguments)
    expect_row(f"PostgresSink, {name}", target)
