"""The connection to the catalog breaks at each statement of a commit, before the server has it and behind it."""

from __future__ import annotations

from collections.abc import Iterator
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
def proxy(warehouse_server: PostgresServer, tmp_path: Path) -> Iterator[LosingProxy]:
    found = LosingProxy(warehouse_server, tmp_path / "pgpass")
    yield found
    found.close()


@pytest.fixture
def target(warehouse_dsn: str, memory: Path, proxy: LosingProxy) -> ProxiedIceberg:
    return ProxiedIceberg(warehouse_dsn, memory, proxy.dsn(warehouse_dsn.rpartition("/")[2]))


def arm(monkeypatch: pytest.MonkeyPatch, proxy: LosingProxy, lost: str, statement: bytes) -> None:
    """When the next commit of an epoch is sent."""
    real, armed = _PostgresCatalog.commit_table, [True]

    def commit(self: _PostgresCatalog, *arguments: Any) -> Any:
        if armed.pop() if armed else False:
            (proxy.lose_answer if lost == "the answer" else proxy.lose_request)(statement)
        return real(self, *arguments)

    monkeypatch.setattr(_PostgresCatalog, "commit_table", commit)


@pytest.mark.parametrize("lost", ["the answer", "the request"])
@pytest.mark.parametrize("statement", [b"UPDATE iceberg_tables", b"COMMIT", b"SELECT iceberg_tables"], ids=str)
@pytest.mark.parametrize("rows", [ROWS, 0])
def test_an_epoch_whose_commit_has_no_answer_stands_once(
    target: ProxiedIceberg,
    proxy: LosingProxy,
    monkeypatch: pytest.MonkeyPatch,
    lost: str,
    statement: bytes,
    rows: int,
) -> None:
    first, second = sealed(ROWS), sealed(rows, start=1000)
    publish(target, epoch(), prepare(target, epoch(), first), first)
    at = epoch(2, token=20, manifest="b")
    vote = prepare(target, at, second)
    arm(monkeypatch, proxy, lost, statement)
    with opened(target) as sink:
        assert sink.publish(at, vote, target.staged(at, second)) is Publication.SENT
    assert proxy.cuts == 1
    expect_rows(target, first, second)
    expect_proof(target, at, second)


def test_a_catalog_that_is_gone_in_mid_commit_is_asked_again_later(
    warehouse_dsn: str, memory: Path, warehouse_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, wal = IcebergUnderTest(warehouse_dsn, memory), sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    real, running = _PostgresCatalog.commit_table, [True]

    def commit(self: _PostgresCatalog, *arguments: Any) -> Any:
        done = real(self, *arguments)
        if running:
            running.pop()
            warehouse_server.stop("immediate")
            raise SinkUnavailable("the server is gone")
        return done

    monkeypatch.setattr(_PostgresCatalog, "commit_table", commit)
    with opened(target) as sink:
        output = target.staged(epoch(), wal)
        with pytest.raises(SinkUnavailable):
            sink.publish(epoch(), vote, output)
    warehouse_server.start()
    assert publish(target, epoch(), vote, wal) is Publication.FOUND
    expect_rows(target, wal)
