"""The ledger's own disk fills up: no decision is half taken, and each can be taken once there is room again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg2
import pytest

from lockstep.epoch import Epoch, Identity
from lockstep.errors import LedgerUnavailable
from lockstep.ledger import Ledger, migrate
from lockstep.states import EpochState
from stack.postgres import PostgresServer
from tests.ledger.epochs import FLIGHTS, Sql, attempt_of, planned, voted
from tests.small_disk import small_disk

SIZE = "160m"
EPOCHS = 40  #: more decisions than the pages at hand take


@pytest.fixture
def disk(servers_folder: Path) -> Iterator[Path]:
    """A file system of its own, SIZE large."""
    with small_disk(servers_folder / "full", SIZE) as folder:
        yield folder


@pytest.fixture
def server(disk: Path, passfile: Path, server_template: PostgresServer) -> Iterator[PostgresServer]:
    settings = {"max_wal_size": "64MB", "autovacuum": "off"}
    found = PostgresServer(disk / "ledger", passfile=passfile, template=server_template, settings=settings)
    with found.for_a_while():
        yield found


@pytest.fixture
def dsn(server: PostgresServer) -> str:
    dsn = server.create_database("ledger")
    migrate(dsn)
    return dsn


def fill(disk: Path) -> Path:
    """Take every byte that is left."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    assert os.statvfs(disk).f_bavail == 0
    return ballast


def decide(ledger: Ledger, epochs: list[Epoch]) -> Epoch:
    """Decide one after the other until the disk is full; the first that isn't decided."""
    for epoch in epochs:
        try:
            ledger.commit_epoch(attempt_of(epoch))
        except LedgerUnavailable as error:
            assert "No space left" in str(error)
            return epoch
    raise AssertionError(f"{len(epochs)} decisions found room")


def decisions(dsn: str, epoch: Epoch) -> int:
    connection = psycopg2.connect(dsn)
    find = "SELECT count(*) FROM lockstep.transition WHERE (epoch, target_state) = (%s, 'committed')"
    found = Sql(connection).one(find, epoch.id)
    connection.close()
    return int(found)


@pytest.mark.fault("D13", "J1")
def test_a_decision_that_finds_no_room_is_not_taken_until_there_is(disk: Path, dsn: str) -> None:
    ledger = Ledger(dsn)
    ledger.ensure_pipeline(FLIGHTS, Identity.INTERVAL)
    epochs = [voted(ledger, planned(ledger, number + 1)) for number in range(EPOCHS)]
    ballast = fill(disk)
    refused = decide(ledger, epochs)
    before = epochs[: epochs.index(refused)]
    assert ledger.epoch(FLIGHTS, refused.id) == refused
    assert decisions(dsn, refused) == 0
    assert {p.state.value for p in ledger.participants(FLIGHTS, refused.id).values()} == {"prepared"}
    ballast.unlink()
    assert ledger.commit_epoch(attempt_of(refused)).state is EpochState.COMMITTED
    assert decisions(dsn, refused) == 1
    assert {ledger.epoch(FLIGHTS, epoch.id).state for epoch in before} <= {EpochState.COMMITTED}
    ledger.close()


@pytest.mark.fault("D13")
def test_a_ledger_that_dies_for_want_of_room_in_its_log_keeps_what_it_decided_and_no_more(
    disk: Path, dsn: str, server: PostgresServer
) -> None:
    ledger = Ledger(dsn)
    ledger.ensure_pipeline(FLIGHTS, Identity.INTERVAL)
    epochs = [voted(ledger, planned(ledger, number + 1)) for number in range(3)]
    first = ledger.commit_epoch(attempt_of(epochs[0]))
    ballast = fill(disk)
    _use_up_the_log(dsn)
    for epoch in epochs[1:]:
        with pytest.raises(LedgerUnavailable):
            ledger.commit_epoch(attempt_of(epoch))
    ballast.unlink()
    server.stop("immediate")
    server.start()
    assert ledger.epoch(FLIGHTS, first.id) == first
    assert [ledger.epoch(FLIGHTS, epoch.id) for epoch in epochs[1:]] == epochs[1:]
    assert [ledger.commit_epoch(attempt_of(epoch)).state.value for epoch in epochs[1:]] == ["committed"] * 2
    ledger.close()


def _use_up_the_log(dsn: str) -> None:
    """Go to the next file of the write-ahead log until there is none: the server panics."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    with suppress(psycopg2.Error), connection.cursor() as cursor:
        while True:
            cursor.execute("SELECT pg_logical_emit_message(false, 'lockstep', repeat('x', 100000), true)")
    connection.close()
