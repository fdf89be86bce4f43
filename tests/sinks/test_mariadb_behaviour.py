"""MariaDbSink under the suite that every sink has to pass: what a protocol asks of a database.

The engine of tables is swept whole on PostgreSQL, and the other modes' crashes are those of the table in
docs/sinks/guarantees.md (test_mariadb_modes).
"""

from __future__ import annotations

import pytest

from lockstep.testing import _behaviour as behaviour
from lockstep.testing._behaviour import BEHAVIOURS, CRASHES, REPLACING_BEHAVIOURS, VOTING_BEHAVIOURS, Behaviour
from stack.mariadb import MariaDbServer
from tests.sampling import Sampling
from tests.sinks.conformance import DIFFERING, check, in_parts
from tests.sinks.mariadb_target import MariaDbUnderTest, empty


@pytest.fixture
def stride() -> int:
    return 6


ASKED = (
    *DIFFERING,
    behaviour.an_empty_epoch_goes_through,
    behaviour.who_counts_throughout_sees_the_old_rows_or_the_new,
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
def test_two_phase(
    mariadb_server: MariaDbServer,
    mariadb_dsn: str,
    other_mariadb_dsn: str,
    part: list[Behaviour],
    subtests: pytest.Subtests,
) -> None:
    check(part, lambda: MariaDbUnderTest(empty(mariadb_server, mariadb_dsn), other_mariadb_dsn, "two_phase"), subtests)


def test_write_ahead(
    mariadb_server: MariaDbServer,
    mariadb_dsn: str,
    other_mariadb_dsn: str,
    sampling: Sampling,
    subtests: pytest.Subtests,
) -> None:
    asked = [one for one in BEHAVIOURS if one in ASKED]
    rest = sampling.sample([one for one in BEHAVIOURS if one not in (*ASKED, *CRASHES)], 2)
    check(
        [*asked, *rest],
        lambda: MariaDbUnderTest(empty(mariadb_server, mariadb_dsn), other_mariadb_dsn, "write_ahead"),
        subtests,
    )
