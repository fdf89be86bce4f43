"""Others write to the table at every point at which an epoch's commit can meet theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.types import DoubleType

from lockstep.errors import PublishBlocked, SinkUnavailable, TargetChanged
from lockstep.sinks.iceberg._catalogs import _PostgresCatalog
from lockstep.sinks.iceberg._sink import OpenIcebergSink
from lockstep.sinks.values import Publication
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA, digest, sealed
from lockstep.testing._under_test import epoch, expect_proof, expect_rows, opened, prepare, publish
from tests.sinks.iceberg.foreign_writers import FOREIGN, HARMLESS, Deed, appends, expires, rolls_back
from tests.sinks.iceberg.iceberg_target import IcebergUnderTest

ROWS = 60
POINTS = ("before the commit", "behind it", "behind it, its answer lost", "in its place, its answer lost")


@pytest.fixture
def target(catalog_dsn: str, memory: Path) -> IcebergUnderTest:
    return IcebergUnderTest(catalog_dsn, memory)


@contextmanager
def meeting(
    target: IcebergUnderTest, deed: Deed, point: str, monkeypatch: pytest.MonkeyPatch, times: int = 1
) -> Iterator[None]:
    """At the next commits of ours, somebody does a deed."""
    real, left = _PostgresCatalog.commit_table, [times]

    def commit(self: _PostgresCatalog, *arguments: Any) -> Any:
        if not left[0]:
            return real(self, *arguments)
        left[0] -= 1
        done = real(self, *arguments) if point.startswith("behind") else None
        with target.table() as table:
            deed(table)
        if point.endswith("lost"):
            raise SinkUnavailable("the connection broke")
        return done or real(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(_PostgresCatalog, "commit_table", commit)
        yield
    assert left[0] == 0, "no commit was met"


def own_rows(target: IcebergUnderTest) -> pa.Table:
    found = target.visible()
    return found.filter(pc.less(found["id"], FOREIGN))


@pytest.mark.parametrize("deed", HARMLESS)
def test_an_epoch_stands_once_whatever_its_commit_meets(
    target: IcebergUnderTest, monkeypatch: pytest.MonkeyPatch, deed: str, subtests: pytest.Subtests
) -> None:
    wals = [sealed(ROWS)]
    publish(target, epoch(), prepare(target, epoch(), wals[0]), wals[0])
    for number, point in enumerate(POINTS, 2):
        with subtests.test(point):
            wals.append(wal := sealed(ROWS, start=1000 * number))
            at = epoch(number, token=10 * number, manifest=point)
            vote = prepare(target, at, wal)
            with meeting(target, HARMLESS[deed], point, monkeypatch):
                assert publish(target, at, vote, wal) is Publication.SENT
            assert publish(target, replace(at, token=at.token + 1), vote, wal) is Publication.FOUND
            assert digest(own_rows(target)) == digest(pa.concat_tables([one[0].table for one in wals]))
            expect_proof(target, epoch(), wals[0])
            expect_proof(target, at, wal)


@pytest.mark.parametrize("point", POINTS[1:3])
def test_an_epoch_that_somebody_rolls_back_is_told_and_not_published_again(
    target: IcebergUnderTest, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    first, second = sealed(ROWS), sealed(ROWS, start=1000)
    publish(target, epoch(), prepare(target, epoch(), first), first)
    at = epoch(2, token=20, manifest="b")
    vote = prepare(target, at, second)
    with meeting(target, rolls_back, point, monkeypatch):
        publish(target, at, vote, second)
    publish(target, at, vote, second)
    expect_rows(target, first)
    with opened(target) as sink, pytest.raises(TargetChanged, match="the table was rolled back to before snapshot"):
        list(sink.read(2, OUTPUT, SCHEMA))
    expect_proof(target, epoch(), first)


def test_a_late_commit_finds_another_head_also_behind_a_rollback(target: IcebergUnderTest) -> None:
    """The answer was lost, and so was the request, until somebody has put the head back where it was."""
    wal = sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    with opened(target) as late:
        assert isinstance(late, OpenIcebergSink)
        [output] = target.staged(epoch(), wal)
        head = late.load_head()
        publish(target, epoch(), vote, wal)
        with target.table() as table:
            appends(table)
            expires(table)
        late.adopt(head, epoch(), output)  # type: ignore[arg-type]
        assert digest(own_rows(target)) == digest(wal[0].table)
    assert publish(target, epoch(), vote, wal) is Publication.FOUND
    assert digest(own_rows(target)) == digest(wal[0].table)


def test_rows_that_somebody_deleted_are_told(target: IcebergUnderTest) -> None:
    wal = sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    publish(target, epoch(), vote, wal)
    with target.table() as table:
        table.delete("lockstep_epoch = 1")
    with opened(target) as sink, pytest.raises(TargetChanged, match="deleted or overwritten"):
        list(sink.read(1, OUTPUT, SCHEMA))
    publish(target, epoch(), vote, wal)
    expect_rows(target)


def test_a_table_that_was_altered_since_the_decision_blocks_the_epoch_until_it_is_put_back(
    target: IcebergUnderTest,
) -> None:
    wal = sealed(ROWS)
    vote = prepare(target, epoch(), wal)
    with target.table() as table, table.update_schema() as update:
        update.delete_column("ratio")
    with opened(target) as sink, pytest.raises(PublishBlocked, match="ratio"):
        sink.publish(epoch(), vote, target.staged(epoch(), wal))
    with target.table() as table, table.update_schema() as update:
        update.add_column("ratio", DoubleType())
    with target.table() as table, table.update_spec() as spec:
        spec.add_identity("id")
    with opened(target) as sink, pytest.raises(PublishBlocked, match=r"put its old .* several partitions") as no:
        sink.publish(epoch(), vote, target.staged(epoch(), wal))
    assert "replan" not in str(no.value), "which a decided epoch refuses"
    with target.table() as table, table.update_spec() as spec:
        spec.remove_field("id")
    publish(target, epoch(), vote, wal)
    expect_rows(target, wal)
