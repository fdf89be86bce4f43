"""The connection to the catalog breaks at each statement of a commit, before the server has it and behind it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from lockstep.errors import SinkUnavailable
from lockstep.sinks.iceberg._catalogs import _PostgresCatalog
from lockstep.sinks.values import Publication
from lockstep.testing._sealed_rows import sealed
from lockstep.testing._under_test import epoch, expect_proof, expect_rows, opened, prepare, publish
from stack.postgres import PostgresServer
from tests.ledger.proxy import LosingProxy
from tests.sinks.iceberg.iceberg_target import IcebergUnderTest

ROWS = 60


class ProxiedIceberg(IcebergUnderTest):
    """Sinks reach the catalog through a proxy, readers past it."""

    def __init__(self, dsn: str, folder: Path, proxied: str) -> None:
        super().__init__(dsn, folder)
        self.proxied = proxied

    def connections(self) -> dict[str, str]:
        return {"lake": self.proxied}


@pytest.fixture
def proxy(memory_server: PostgresServer, tmp_path: Path) -> Iterator[LosingProxy]:
    found = LosingProxy(memory_server, tmp_path / "pgpass")
    yield found
    found.close()


@pytest.fixture
def target(catalog_dsn: str, memory: Path, proxy: LosingProxy) -> ProxiedIceberg:
    return ProxiedIceberg(catalog_dsn, memory, proxy.dsn(catalog_dsn.rpartition("/")[2]))


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
    target: ProxiedIceberg, proxy: LosingProxy, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
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


def test_a_catalog_that_is_gone_in_mid_commit_is_asked_again_later(
    catalog_dsn: str, memory: Path, memory_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, wal = IcebergUnderTest(catalog_dsn, memory), sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    real, running = _PostgresCatalog.commit_table, [True]

    def commit(self: _PostgresCatalog, *arguments: Any) -> Any:
        done = real(self, *arguments)
        if running:
            running.pop()
            memory_server.stop("immediate")
            raise SinkUnavailable("the server is gone")
        return done

    monkeypatch.setattr(_PostgresCatalog, "commit_table", commit)
    with opened(target) as sink:
        output = target.staged(epoch(), wal)
        with pytest.raises(SinkUnavailable):
            sink.publish(epoch(), vote, output)
    memory_server.start()
    assert publish(target, epoch(), vote, wal) is Publication.FOUND
    expect_rows(target, wal)
