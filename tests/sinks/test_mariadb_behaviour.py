"""MariaDbSink under the suite that every sink has to pass: what a protocol asks of a database.

The engine of tables is swept whole on PostgreSQL, and the other modes' crashes are those of the table in
docs/sinks/guarantees.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lockstep.sinks.tables.sink import ProtocolName
from lockstep.testing import _behaviour as behaviour
from lockstep.testing._behaviour import BEHAVIOURS, CRASHES, REPLACING_BEHAVIOURS, VOTING_BEHAVIOURS, Behaviour
from stack.mariadb import MariaDbServer
from tests.sampling import Sampling
from tests.sinks.conformance import DIFFERING, UPSERT, check, in_parts, of_mode
from tests.sinks.guarantees import expect_row
from tests.sinks.mariadb_target import MariaDbUnderTest, empty


@pytest.fixture
def stride() -> int:
    return 6


@pytest.fixture
def fresh(mariadb_server: MariaDbServer, mariadb_dsn: str, other_mariadb_dsn: str) -> Callable[..., MariaDbUnderTest]:
    """Makes a target that nothing is in."""

    def made(protocol: ProtocolName, **arguments: Any) -> MariaDbUnderTest:
        dsn = empty(mariadb_server, mariadb_dsn)
        return MariaDbUnderTest(dsn, other_mariadb_dsn, protocol, mariadb_server, **arguments)

    return made


ASKED = (
    *DIFFERING,
    behaviour.an_empty_epoch_goes_through,
    behaviour.a_reader_sees_the_old_rows_or_the_new_throughout,
    behaviour.another_target_than_voted_is_refused,
    behaviour.a_marker_of_another_manifest_is_a_conflict,
    behaviour.a_larger_token_prepares_past_a_smaller_one_that_voted,
)
LATER = [one for one in VOTING_BEHAVIOURS if one in CRASHES]  #: aborts and repairs that are killed and stopped


@pytest.mark.fault("E8")
@in_parts(
    [
        *(one for one in BEHAVIOURS if one in ASKED or one in CRASHES),
        *(one for one in REPLACING_BEHAVIOURS if one in ASKED),
        *VOTING_BEHAVIOURS,
    ],
    later=LATER,
)
def test_two_phase(fresh: Callable[..., MariaDbUnderTest], part: list[Behaviour], subtests: pytest.Subtests) -> None:
    check(part, lambda: fresh("two_phase"), subtests)


def test_write_ahead(fresh: Callable[..., MariaDbUnderTest], sampling: Sampling, subtests: pytest.Subtests) -> None:
    asked = [one for one in BEHAVIOURS if one in ASKED]
    rest = sampling.sample([one for one in BEHAVIOURS if one not in (*ASKED, *CRASHES)], 2)
    check([*asked, *rest], lambda: fresh("write_ahead"), subtests)


# --- modes -----------------------------------------------------------------------------------------------------------

ROWS: dict[str, tuple[ProtocolName, dict[str, Any]]] = {
    "two phases": ("two_phase", {}),
    "write ahead": ("write_ahead", {}),
    "upsert": ("write_ahead", UPSERT),
    "upsert, two phases": ("two_phase", UPSERT),
}


@pytest.mark.tier("all")
@pytest.mark.parametrize("name", [name for name in ROWS if ROWS[name][1]])
def test_what_differs(
    fresh: Callable[..., MariaDbUnderTest],
    sampling: Sampling,
    name: str,
    subtests: pytest.Subtests,
) -> None:
    protocol, arguments = ROWS[name]

    def target() -> MariaDbUnderTest:
        return fresh(protocol, **arguments)

    check(of_mode(target(), sampling, upserts="mode" in arguments), target, subtests)


@pytest.mark.tier("all")
@pytest.mark.parametrize("name", ROWS)
def test_the_page_of_guarantees_tells_the_truth(fresh: Callable[..., MariaDbUnderTest], name: str) -> None:
    protocol, arguments = ROWS[name]
    expect_row(f"MariaDbSink, {name}", fresh(protocol, **arguments))
