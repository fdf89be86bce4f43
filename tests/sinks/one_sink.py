"""A sink of tables by itself: its preflight, an epoch of one output that goes through it, who stops within."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
import pytest

from lockstep.crash import CrashPoint
from lockstep.epoch import Vote
from lockstep.errors import LockstepError, PreflightRefused
from lockstep.sinks.tables.sink import TableSink
from lockstep.sinks.values import Publication, SinkContext
from lockstep.testing import SinkUnderTest
from lockstep.testing._crash_sweep import Child, fork
from lockstep.testing._sealed_rows import SealedRows
from lockstep.testing._under_test import DEPLOYMENT, epoch, opened

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})
ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", None]}, SCHEMA)


def context(dsn: str, pipeline: str = "pipe") -> SinkContext:
    return SinkContext(DEPLOYMENT, pipeline, {"w": dsn})


def preflight(dsn: str, given: TableSink, schema: pa.Schema | None = SCHEMA, pipeline: str = "pipe") -> None:
    with given.opened(context(dsn, pipeline)) as live:
        live.preflight(None if schema is None else {"rows": schema})


def refusal(
    dsn: str, given: TableSink, schema: pa.Schema | None = SCHEMA, error: type[LockstepError] = PreflightRefused
) -> str:
    with pytest.raises(error) as raised:
        preflight(dsn, given, schema)
    return str(raised.value)


def publish(dsn: str, given: TableSink, rows: pa.Table = ROWS, batch_rows: int = 1000) -> Publication:
    wal = [SealedRows(rows, batch_rows)]
    with given.opened(context(dsn)) as live:
        live.preflight({"rows": rows.schema})
        return live.publish(replace(epoch(), token=11), live.prepare(epoch(), wal), wal)


def published(dsn: str, given: TableSink, rows: pa.Table, batch_rows: int = 1000) -> pa.Table:
    """What is read back of the epoch."""
    publish(dsn, given, rows, batch_rows)
    with given.opened(context(dsn)) as live:
        return pa.Table.from_batches(list(live.read(1, "rows", rows.schema)), rows.schema)


@contextmanager
def stopped_at(point: CrashPoint, action: Callable[[], object]) -> Iterator[Child]:
    """A child process that runs `action` and has stopped itself at `point`."""

    def run() -> None:
        os.environ |= {"LOCKSTEP_TESTING": "1", "LOCKSTEP_CRASH": f"{point}:hang"}
        action()

    child = fork(run, quiet=True)
    try:
        assert child.wait_until_stopped(), f"{point} was not reached"
        yield child
    finally:
        child.end()


def once(target: SinkUnderTest, vote: Vote, wal: Sequence[SealedRows], token: int = 30) -> Publication:
    """Without another try."""
    with opened(target) as sink:
        return sink.publish(epoch(token=token), vote, wal)
