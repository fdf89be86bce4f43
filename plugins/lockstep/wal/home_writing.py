"""Sealed rows written anew below the table that is to adopt them, under another epoch's number. No Spark is asked."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lockstep.crash import CrashPoint, reach
from lockstep.wal._storage import naming_errors
from lockstep.wal.home_staging import HomeStaging
from lockstep.wal.parquet_writer import ParquetWriter
from lockstep.wal.reading import OutputBatches
from lockstep.wal.table_staging import TableStaging, with_field_ids


def write_at_home(there: HomeStaging, rows: OutputBatches, home: TableStaging, epoch: int, token: int) -> None:
    """A file for each of `rows`, with the same rows in the same order and `epoch` behind them. Each is compared with
    its manifest as it is read, and is in memory as a whole when it is written. Raises `WalCorrupt`,
    `StagingUnavailable`."""
    for name, batches in rows.by_file():
        path = f"{there.folder(epoch, token)}/{rows.output}/{name}"
        columns = rows.schema.append(pa.field(home.epoch_column, pa.int64()))
        written = _parquet(batches, with_field_ids(columns, home.ids_of(columns.names)), epoch)
        reach(CrashPoint.STAGE_BEFORE_COPY)
        with naming_errors("write", path):
            there.storage.put(path, written)
        reach(CrashPoint.STAGE_AFTER_COPY)


def _parquet(batches: Iterator[pa.RecordBatch], schema: pa.Schema, epoch: int) -> bytes:
    with pa.BufferOutputStream() as target:
        with ParquetWriter(target, schema, compression="zstd") as writer:
            for batch in batches:
                number = pa.repeat(pa.scalar(epoch, pa.int64()), batch.num_rows)
                writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, number], schema=schema))
        found: bytes = target.getvalue().to_pybytes()
    return found
