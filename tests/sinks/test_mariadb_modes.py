"""MariaDbSink with upserts, and with the weaker guarantees, under the suite that every sink has to pass."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lockstep.epoch import Interval
from lockstep.sinks import MariaDbSink
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.sinks.values import Publication, SinkEpoch
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA, sealed
from lockstep.testing._under_test import epoch, pending, prepare
from stack.mariadb import MariaDbServer
from tests.sampling import Sampling
from tests.sinks.conformance import UPSERT, check, of_mode
from tests.sinks.guarantees import expect_row
from tests.sinks.mariadb_target import MariaDbUnderTest, empty
from tests.sinks.postgres_target import LOCK_TIMEOUT

AT_LEAST_ONCE: dict[str, Any] = {"guarantee": "at_least_once"}
NONE: dict[str, Any] = {"guarantee": "none"}
ROWS: dict[str, tuple[ProtocolName, dict[str, Any]]] = {
    "two phases": ("two_phase", {}),
    "write ahead": ("write_ahead", {}),
    "write ahead, at least once": ("write_ahead", AT_LEAST_ONCE),
    "write ahead, none": ("write_ahead", NONE),
    "upsert": ("write_ahead", UPSERT),
    "upsert, two phases": ("two_phase", UPSERT),
}


def remembering(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """With the folder that remembers what was sent at least once."""
    return {**arguments, "committer": str(folder)} if "at_least_once" in arguments.values() else arguments


@pytest.mark.parametrize("name", [name for name in ROWS if ROWS[name][1]])
def test_what_differs(
    mariadb_server: MariaDbServer,
    mariadb_dsn: str,
    other_mariadb_dsn: str,
    tmp_path_factory: pytest.TempPathFactory,
    sampling: Sampling,
    name: str,
    subtests: pytest.Subtests,
) -> None:
    protocol, arguments = ROWS[name]

    def target() -> MariaDbUnderTest:
        given = remembering(arguments, tmp_path_factory.mktemp("records"))
        return MariaDbUnderTest(empty(mariadb_server, mariadb_dsn), other_mariadb_dsn, protocol, **given)

    check(of_mode(target(), sampling, upserts="mode" in arguments), target, subtests)


@pytest.mark.parametrize("arguments", [AT_LEAST_ONCE, NONE], ids=["at least once", "none"])
def test_another_sinks_prepared_epoch_holds_up_nobody(
    mariadb_dsn: str, tmp_path: Path, arguments: dict[str, Any]
) -> None:
    held, wal = MariaDbUnderTest(mariadb_dsn, "", "two_phase"), sealed(10)
    prepare(held, ranged(token=10), wal)
    sink = MariaDbSink(
        "weaker",
        tables={OUTPUT: "elsewhere"},
        connection="warehouse",
        protocol="write_ahead",
        create=True,
        lock_timeout=LOCK_TIMEOUT,
        **remembering(arguments, tmp_path),
    )
    with sink.opened(held.context()) as beside:
        beside.preflight({OUTPUT: SCHEMA})
        vote = beside.prepare(ranged(token=11), wal)
        assert beside.publish(ranged(token=12), vote, wal) is Publication.SENT
    assert len(pending(held)) == 1


def ranged(*, token: int) -> SinkEpoch:
    start = datetime(2013, 1, 1, tzinfo=UTC)
    return replace(epoch(token=token), interval=Interval(start, start + timedelta(days=1)))


@pytest.mark.tier("all")
@pytest.mark.parametrize("name", ROWS)
def test_the_page_of_guarantees_tells_the_truth(
    mariadb_server: MariaDbServer, mariadb_dsn: str, other_mariadb_dsn: str, tmp_path: Path, name: str
) -> None:
    protocol, arguments = ROWS[name]
    given = remembering(arguments, tmp_path)
    target = MariaDbUnderTest(mariadb_dsn, other_mariadb_dsn, protocol, mariadb_server, **given)
    expect_row(f"MariaDbSink, {name}", target)
