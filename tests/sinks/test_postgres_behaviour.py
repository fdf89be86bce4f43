"""PostgresSink under the suite that every sink has to pass; its modes.

The suite has a fault at every step. A crash between rows and their record leaves what the guarantee says.
"""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.sinks.tables.sink import ProtocolName
from lockstep.testing._behaviour import BEHAVIOURS, CRASHES, REPLACING_BEHAVIOURS, VOTING_BEHAVIOURS, Behaviour
from stack.postgres import PostgresServer
from tests.sampling import Sampling
from tests.sinks.conformance import UPSERT, check, in_parts, of_mode
from tests.sinks.guarantees import expect_row
from tests.sinks.postgres_target import PostgresUnderTest, empty


@pytest.fixture
def stride() -> int:
    return 4


REPLACING = [one for one in REPLACING_BEHAVIOURS if one not in CRASHES]


@pytest.mark.fault("A10", "C3", "C6", "C7", "C9", "C14", "C23", "C26", "D15", "E4", "E5", "E6", "E13", "G3", "J5")
@in_parts([*BEHAVIOURS, *VOTING_BEHAVIOURS, *REPLACING])
def test_two_phase(warehouse_dsn: str, other_dsn: str, part: list[Behaviour], subtests: pytest.Subtests) -> None:
    check(part, lambda: PostgresUnderTest(empty(warehouse_dsn), other_dsn, "two_phase"), subtests)


@pytest.mark.fault("C6", "C9", "C14", "C26", "D15", "E13")
@in_parts([*BEHAVIOURS, *REPLACING])
def test_write_ahead(warehouse_dsn: str, other_dsn: str, part: list[Behaviour], subtests: pytest.Subtests) -> None:
    check(part, lambda: PostgresUnderTest(empty(warehouse_dsn), other_dsn, "write_ahead"), subtests)


# --- modes -----------------------------------------------------------------------------------------------------------

MODES_OF_THE_PAGE: dict[str, tuple[ProtocolName, dict[str, Any]]] = {
    "two phases": ("two_phase", {}),
    "write ahead": ("write_ahead", {}),
    "upsert": ("write_ahead", UPSERT),
    "upsert, two phases": ("two_phase", UPSERT),
}
ASKED = [name for name in MODES_OF_THE_PAGE if name not in ("two phases", "write ahead")]


@pytest.mark.parametrize("name", ASKED)
def test_what_differs(
    warehouse_dsn: str, other_dsn: str, sampling: Sampling, name: str, subtests: pytest.Subtests
) -> None:
    protocol, arguments = MODES_OF_THE_PAGE[name]

    def target() -> PostgresUnderTest:
        return PostgresUnderTest(empty(warehouse_dsn), other_dsn, protocol, **arguments)

    check(of_mode(target(), sampling, upserts="mode" in arguments), target, subtests)


@pytest.mark.fault("E26")
@pytest.mark.tier("all")
@pytest.mark.parametrize("name", MODES_OF_THE_PAGE)
def test_the_page_of_guarantees_tells_the_truth(
    warehouse_dsn: str, other_dsn: str, warehouse_server: PostgresServer, name: str
) -> None:
    protocol, arguments = MODES_OF_THE_PAGE[name]
    target = PostgresUnderTest(warehouse_dsn, other_dsn, protocol, warehouse_server, **arguments)
    expect_row(f"PostgresSink, {name}", target)
