"""The WAL as a log: which sealed WALs there are, and their rows. It only reads."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from lockstep.definition.wal_retention import RetainedWal, WalRetention
from lockstep.epoch import Epoch
from lockstep.errors import InvalidPipeline, WalCorrupt, WalGone
from lockstep.operations._row_queries import matching
from lockstep.operations.verify import read_manifest
from lockstep.protocol.runtime import Runtime, open_wal
from lockstep.states import EpochState
from lockstep.wal.manifest import OutputManifest
from lockstep.wal.reading import OutputBatches, SealedWal

SHOWN = 20  #: rows, unless somebody says how many


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
    wals = tuple(LoggedWal(epoch, kept) for epoch, kept in runtime.ledger.wals(runtime.pipeline, limit))
    return WalLog(runtime.pipeline, retention, wals)


def open_output(runtime: Runtime, epoch_id: int, output: str) -> OutputBatches:
    """The sealed rows of one output: every file is compared with the manifest, size and sha256, before its first row.

    Of an output that a table adopts the files are the table's: they are read for as long as it leaves them there,
    whatever `keep_wal` says. Raises `WalGone`, `WalCorrupt`, `NotPrepared`, `UnknownEpoch`, `InvalidPipeline` for an
    output that isn't there, `StagingUnavailable`.
    """
    epoch = runtime.ledger.epoch(runtime.pipeline, epoch_id)
    [found] = _open(runtime, epoch, output).outputs([output])
    return found


def find_output(runtime: Runtime, epoch_id: int, output: str) -> OutputManifest:
    """What the seal says of an output, whether its rows are there or not. Raises as `open_output`, but no `WalGone` of
    an epoch that is cleaned up."""
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
    left = limit
    with closing(matching(batches, where) if where is not None else _each(batches)) as found:
        for batch in found:
            yield batch if left is None else batch.slice(0, left)
            if left is not None and (left := left - batch.num_rows) <= 0:
                return


def _each(batches: OutputBatches) -> Generator[pa.RecordBatch, None, None]:
    yield from batches


def _open(runtime: Runtime, epoch: Epoch, output: str) -> SealedWal:
    _require_some(epoch)
    if epoch.state in (EpochState.STAGED, EpochState.COMMITTED, EpochState.PUBLISHED, EpochState.PLANNED):
        return _opened_in_time(runtime, epoch)
    kept = runtime.ledger.retained_wal(epoch.pipeline, epoch.id)
    if kept is not None and kept.expired_at is None:
        return _opened_in_time(runtime, epoch)
    manifest = read_manifest(runtime, epoch)
    if output in manifest.outputs and manifest.outputs[output].home is not None:
        return runtime.staging.at_home(manifest)
    raise WalGone(
        f"the WAL of {epoch} isn't kept: it is {epoch.state}, what it held stands in the sinks. Say how long WALs are "
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
