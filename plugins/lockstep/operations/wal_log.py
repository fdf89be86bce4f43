"""The WAL as a log: which sealed WALs there are, and their rows. It only reads."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lockstep.connections.duckdb import WatchedBatches, engine
from lockstep.definition.wal_retention import RetainedWal, WalRetention
from lockstep.epoch import Epoch
from lockstep.errors import InvalidPipeline, QueryRefused, WalCorrupt, WalGone
from lockstep.operations.verify import read_manifest
from lockstep.protocol.runtime import Runtime, open_wal
from lockstep.states import EpochState
from lockstep.wal.manifest import OutputManifest
from lockstep.wal.reading import OutputBatches, SealedWal

SHOWN = 20  #: rows, unless somebody says how many

_ROWS = 8192  #: of one batch


@dataclass(frozen=True)
class LoggedWal:
    """A sealed WAL that is there. `kept` None: its epoch isn't finished."""

    epoch: Epoch
    kept: RetainedWal | None


@dataclass(frozen=True)
class WalLog:
    """A pipeline's sealed WALs, the youngest first, and how long they stay after cleanup."""

    pipeline: str
    retention: WalRetention
    wals: tuple[LoggedWal, ...]


def list_wals(runtime: Runtime, limit: int) -> WalLog:
    """The `limit` youngest. Raises `UnknownEpoch` for a pipeline that the ledger doesn't know."""
    retention = runtime.ledger.wal_retention(runtime.pipeline)
    wals = tuple(LoggedWal(epoch, retained) for epoch, retained in runtime.ledger.wals(runtime.pipeline, limit))
    return WalLog(runtime.pipeline, retention, wals)


def open_output(runtime: Runtime, epoch_id: int, output: str) -> OutputBatches:
    """The sealed rows of one output. Size and sha256 of every file are compared with the manifest before its first row.

    Files that a table adopted are read as long as the table keeps them, regardless of `keep_wal`. Raises `WalGone`,
    `WalCorrupt`, `NotPrepared`, `UnknownEpoch`, `InvalidPipeline` for an unknown output, `StagingUnavailable`.
    """
    epoch = runtime.ledger.epoch(runtime.pipeline, epoch_id)
    [batches] = _open(runtime, epoch, output).outputs([output])
    return batches


def find_output(runtime: Runtime, epoch_id: int, output: str) -> OutputManifest:
    """The seal's entry for an output, whether its rows still exist or not. Raises what `open_output` raises, but not
    `WalGone` for an epoch that is cleaned up."""
    epoch = runtime.ledger.epoch(runtime.pipeline, epoch_id)
    _require_some(epoch)
    outputs = read_manifest(runtime, epoch).outputs
    if output not in outputs:
        raise InvalidPipeline(f"{epoch} has no output {output!r}, it has {', '.join(sorted(outputs))}")
    return outputs[output]


def read_rows(batches: OutputBatches, where: str | None = None, limit: int | None = None) -> Iterator[pa.RecordBatch]:
    """The first `limit` rows, or those for which the SQL expression `where` is true; None: all.

    Raises `WalCorrupt`, `StagingUnavailable`; with `where` `QueryRefused`, and `PackageMissing` without the extra
    `duckdb`.
    """
    remaining = limit
    with closing(matching(batches, where) if where is not None else _each(batches)) as rows:
        for batch in rows:
            yield batch if remaining is None else batch.slice(0, remaining)
            if remaining is not None and (remaining := remaining - batch.num_rows) <= 0:
                return


def _each(batches: OutputBatches) -> Generator[pa.RecordBatch, None, None]:
    yield from batches


def _open(runtime: Runtime, epoch: Epoch, output: str) -> SealedWal:
    _require_some(epoch)
    if epoch.state in (EpochState.STAGED, EpochState.COMMITTED, EpochState.PUBLISHED, EpochState.PLANNED):
        return _opened_in_time(runtime, epoch)
    retained = runtime.ledger.retained_wal(epoch.pipeline, epoch.id)
    if retained is not None and retained.expired_at is None:
        return _opened_in_time(runtime, epoch)
    manifest = read_manifest(runtime, epoch)
    if output in manifest.outputs and manifest.outputs[output].home is not None:
        return runtime.staging.at_home(manifest)
    raise WalGone(
        f"the WAL of {epoch} isn't kept: it is {epoch.state}, its rows are in the sinks. Say how long WALs are "
        "to stay with Pipeline(keep_wal=…); `lockstep wal list " + epoch.pipeline + "` names those that are there"
    )


def _require_some(epoch: Epoch) -> None:
    if epoch.state is EpochState.VOID:
        raise WalGone(f"{epoch} was given up ({epoch.reason}): nothing of it is kept")


def _opened_in_time(runtime: Runtime, epoch: Epoch) -> SealedWal:
    """A WAL that was cleaned up between two looks isn't damaged."""
    try:
        return open_wal(runtime.staging, epoch)
    except WalCorrupt as damage:
        if runtime.ledger.epoch(epoch.pipeline, epoch.id).state is not epoch.state:
            raise WalGone(f"{epoch} was moved on meanwhile: look again") from damage
        raise


@contextmanager
def naming_refusals(*watched: WatchedBatches) -> Iterator[None]:
    """Report the engine's error in one sentence. Raises `QueryRefused`, or the error of the batches that it read."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        for batches in watched:
            if batches.error is not None:
                raise batches.error from None
        message = " ".join(str(error).partition("\nLINE ")[0].split())
        raise QueryRefused(f"the rows can't be asked that: {message[:300]}") from error


def matching(batches: Any, where: str) -> Generator[pa.RecordBatch, None, None]:
    """The rows of `batches`, which has a `schema`, for which the expression is true."""
    with engine() as connection:
        watched = WatchedBatches(batches.schema, batches, lambda rows: None)
        with naming_refusals(watched):
            reader = connection.from_arrow(watched.reader()).filter(where).to_arrow_reader(_ROWS)
            yield from reader
