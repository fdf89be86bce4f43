"""IcebergSink under the suite that every sink has to pass; publishers at once; connections that break in a commit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from lockstep.sinks.iceberg import _markers as markers
from lockstep.sinks.iceberg._catalogs import _PostgresCatalog
from lockstep.sinks.values import Publication
from lockstep.testing._behaviour import behaviours
from lockstep.testing._sealed_rows import sealed
from lockstep.testing._under_test import epoch, expect_proof, expect_rows, opened, prepare, publish
from stack.postgres import PostgresServer
from tests.ledger.proxy import LosingProxy
from tests.sinks.guarantees import expect_row
from tests.sinks.iceberg.iceberg_target import IcebergUnderTest
from tests.sinks.iceberg.publishers import publish_at_once


@pytest.fixture
def stride() -> int:
    """Adopting sinks differ in what they send, not in their steps; each call here is a fork or two."""
    return 6


def test_catalog_in_postgres(catalog_dsn: str, memory: Path, subtests: pytest.Subtests) -> None:
    for behaviour in behaviours(IcebergUnderTest):
        with subtests.test(behaviour.__name__):
            target = IcebergUnderTest(catalog_dsn, memory)
            target.name = f"db.{behaviour.__name__}"
            behaviour(target)


@pytest.mark.tier("all")
def test_the_page_of_guarantees_tells_the_truth(catalog_dsn: str, memory: Path) -> None:
    expect_row("IcebergSink", IcebergUnderTest(catalog_dsn, memory))


ROUNDS = 12


def test_two_publishers_of_every_epoch_show_it_once(
    catalog_dsn: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markers, "MAX_UNFOLDED", 4)
    target = IcebergUnderTest(catalog_dsn, memory)
    answers = publish_at_once(target, ROUNDS, 2)
    assert all(sorted(told) == [Publication.FOUND, Publication.SENT] for told in answers)
    with opened(target) as sink:
        assert [marker.epoch for marker in sink.markers()] == list(range(1, ROUNDS + 1)), "the folded ones, too"


ROWS = 60


@pytest.fixture
def proxy(ledger_server: PostgresServer, tmp_path: Path) -> Iterator[LosingProxy]:
    found = LosingProxy(ledger_server, tmp_path / "pgpass")
    yield found
    found.close()


def arm(monkeypatch: pytest.MonkeyPatch, proxy: LosingProxy, lost: str, statement: bytes) -> None:
    """When the next commit of an epoch is sent."""
    real, armed = _PostgresCatalog.commit_table, [True]

    def commit(self: _PostgresCatalog, *arguments: Any) -> Any:
        if armed.pop() if armed else False:
            (proxy.lose_answer if lost == "the answer" else proxy.lose_request)(statement)
        return real(self, *arguments)

    monkeypatch.setattr(_PostgresCatalog, "commit_table", commit)


STATEMENTS = [b"UPDATE iceberg_tables", b"COMMIT", b"SELECT iceberg_tables"]


@pytest.mark.tier("all")
def test_an_epoch_whose_commit_has_no_answer_stands_once(
    catalog_dsn: str,
    memory: Path,
    proxy: LosingProxy,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    """Sinks reach the catalog through a proxy, readers past it."""
    target, proxied = IcebergUnderTest(catalog_dsn, memory), proxy.dsn(catalog_dsn.rpartition("/")[2])
    monkeypatch.setattr(target, "connections", lambda: {"lake": proxied})
    wals = [sealed(ROWS)]
    publish(target, epoch(), prepare(target, epoch(), wals[0]), wals[0])
    cases = product(["the answer", "the request"], STATEMENTS, [ROWS, 0])
    for number, (lost, statement, rows) in enumerate(cases, 2):
        with subtests.test(f"{lost} to {statement!r}, {rows} rows"), monkeypatch.context() as patch:
            wals.append(wal := sealed(rows, start=1000 * number))
            at, cuts = epoch(number, token=10 * number, manifest=f"{number}"), proxy.cuts
            vote = prepare(target, at, wal)
            arm(patch, proxy, lost, statement)
            with opened(target) as sink:
                assert sink.publish(at, vote, target.staged(at, wal)) is Publication.SENT
            assert proxy.cuts == cuts + 1
            expect_rows(target, *wals)
            expect_proof(target, at, wal)
