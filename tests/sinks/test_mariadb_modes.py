"""MariaDbSink with upserts, and with the weaker guarantees, under the suite that every sink has to pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lockstep.epoch import Interval
from lockstep.sinks import MariaDbSink
from lockstep.sinks.tables.sink import ProtocolName
from lockstep.sinks.values import Publication, SinkEpoch
from lockstep.testing import _behaviour as behaviour
from lockstep.testing import behaviours
from lockstep.testing._behaviour import CRASHES, Behaviour
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA, sealed
from lockstep.testing._under_test import epoch, pending, prepare
from stack.mariadb import MariaDbServer
from tests.sinks.guarantees import expect_row
from tests.sinks.mariadb_target import LOCK_TIMEOUT, MariaDbUnderTest

UPSERT: dict[str, Any] = {"mode": "upsert", "key": ["id"], "on_missing": "delete"}
AT_LEAST_ONCE: dict[str, Any] = {"guarantee": "at_least_once"}
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
    "upsert, two phases": ("two_phase", UPSERT),
}

_numbers = count(1)


def asked_of(protocol: ProtocolName, **arguments: Any) -> list[Behaviour]:
    """What has no crash in it: those are in the table of docs/sinks/guarantees.md."""
    upserting = arguments.get("mode") == "upsert"
    left_out = [*CRASHES, *(NOT_FOR_UPSERTS if upserting else ())]
    return [one for one in behaviours(target(("", ""), "", protocol, arguments)) if one not in left_out]


def target(
    databases: tuple[str, str],
    records: object,
    protocol: ProtocolName,
    arguments: dict[str, Any],
    server: MariaDbServer | None = None,
) -> MariaDbUnderTest:
    """`records`: the folder that remembers what was sent at least once."""
    if "at_least_once" in arguments.values():
        arguments = {**arguments, "committer": str(records)}
    return MariaDbUnderTest(*databases, protocol, server, **arguments)


@pytest.fixture
def databases(mariadb_server: MariaDbServer) -> Iterator[tuple[str, str]]:
    """DSNs of two fresh databases."""
    mariadb_server.start()
    names = [f"{kind}_{next(_numbers)}" for kind in ("modes", "modes_other")]
    here, other = map(mariadb_server.create_database, names)
    yield here, other
    for name in names:
        mariadb_server.drop_database(name)


@pytest.mark.parametrize("checked", asked_of("two_phase", **UPSERT), ids=lambda one: one.__name__)
def test_two_phase_upserts(databases: tuple[str, str], tmp_path: Path, checked: Behaviour) -> None:
    checked(target(databases, tmp_path, "two_phase", UPSERT))


@pytest.mark.parametrize("checked", asked_of("write_ahead", **UPSERT), ids=lambda one: one.__name__)
def test_write_ahead_upserts(databases: tuple[str, str], tmp_path: Path, checked: Behaviour) -> None:
    checked(target(databases, tmp_path, "write_ahead", UPSERT))


@pytest.mark.parametrize("checked", asked_of("write_ahead", **AT_LEAST_ONCE), ids=lambda one: one.__name__)
def test_at_least_once(databases: tuple[str, str], tmp_path: Path, checked: Behaviour) -> None:
    checked(target(databases, tmp_path, "write_ahead", AT_LEAST_ONCE))


@pytest.mark.parametrize("checked", asked_of("write_ahead", **NONE), ids=lambda one: one.__name__)
def test_none(databases: tuple[str, str], tmp_path: Path, checked: Behaviour) -> None:
    checked(target(databases, tmp_path, "write_ahead", NONE))


@pytest.mark.parametrize("arguments", [AT_LEAST_ONCE, NONE], ids=["at least once", "none"])
def test_another_sinks_prepared_epoch_holds_up_nobody(
    databases: tuple[str, str], tmp_path: Path, arguments: dict[str, Any]
) -> None:
    held, wal = target(databases, tmp_path, "two_phase", {}), sealed(10)
    prepare(held, ranged(token=10), wal)
    weaker = target(databases, tmp_path, "write_ahead", arguments).arguments
    sink = MariaDbSink(
        "weaker",
        tables={OUTPUT: "elsewhere"},
        connection="warehouse",
        protocol="write_ahead",
        create=True,
        lock_timeout=LOCK_TIMEOUT,
        **weaker,
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
    databases: tuple[str, str], tmp_path: Path, mariadb_server: MariaDbServer, name: str
) -> None:
    protocol, arguments = ROWS[name]
    expect_row(f"MariaDbSink, {name}", target(databases, tmp_path, protocol, arguments, mariadb_server))
