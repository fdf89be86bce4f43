"""Compaction of tables on a real S3 server: Delta's log there, and Iceberg by a REST catalog."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lockstep.sinks import compacting
from lockstep.sinks.adopting import AdoptingSink
from lockstep.sinks.compacting import Compaction
from lockstep.sinks.delta import DeltaSink
from lockstep.testing._sealed_rows import sealed
from lockstep.testing._under_test import SinkUnderTest, epoch, expect_proof, expect_rows, prepare, publish
from stack.s3 import S3Server
from tests.apart import apart
from tests.clean_process import CleanProcess
from tests.sinks.compaction.lakes import EVERYTHING
from tests.sinks.delta_on_s3 import DeltaOnS3UnderTest
from tests.sinks.iceberg.iceberg_target import RestUnderTest

ROWS = 20


@pytest.fixture
def clean() -> Iterator[CleanProcess]:
    with CleanProcess() as process:
        yield process


def _compacted(target: SinkUnderTest) -> Compaction:
    sink = target.sink()
    opened = DeltaSink.open(sink, target.context()) if isinstance(sink, DeltaSink) else sink.open(target.context())
    assert isinstance(opened, AdoptingSink)
    table = opened.compaction()
    assert table is not None
    try:
        return compacting.compact(table, EVERYTHING)
    finally:
        opened.close()


def expect_compacted(target: SinkUnderTest) -> None:
    wals = {number: sealed(ROWS, start=1000 * number) for number in (1, 2, 3)}
    for number, wal in wals.items():
        at = epoch(number, token=number, manifest=str(number))
        publish(target, at, prepare(target, at, wal), wal)
    done = apart(lambda: _compacted(target)) if isinstance(target, DeltaOnS3UnderTest) else _compacted(target)
    assert (done.files_before, done.files_after, done.rows) == (6, 1, 3 * ROWS)
    expect_rows(target, *wals.values())
    for number, wal in wals.items():
        expect_proof(target, epoch(number, token=1, manifest=str(number)), wal)


def expect_compacted_delta(uri: str) -> None:
    expect_compacted(DeltaOnS3UnderTest(uri))


def test_a_delta_table(clean: CleanProcess, s3_uri: str) -> None:
    clean.call(expect_compacted_delta, f"{s3_uri}/table")


def test_an_iceberg_table(s3_environment: S3Server) -> None:
    s3_environment.create_table_bucket("compacted")
    expect_compacted(RestUnderTest(s3_environment, "compacted", "dbcompacted"))
