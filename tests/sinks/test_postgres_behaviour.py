"""PostgresSink under the suite that every sink has to pass, which has a fault at every one of its steps."""

from __future__ import annotations

import pytest

from lockstep.testing._behaviour import BEHAVIOURS, CRASHES, REPLACING_BEHAVIOURS, VOTING_BEHAVIOURS, Behaviour
from tests.sinks.conformance import check, in_parts
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
