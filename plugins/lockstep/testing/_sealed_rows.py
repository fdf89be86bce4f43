"""Sealed outputs for tests of sinks: in memory, or as files below a table."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep.sinks.values import SinkEpoch
from lockstep.wal.digest import digest_batches
from lockstep.wal.file_facts import FileFacts
from lockstep.wal.manifest import OutputManifest, WalFile
from lockstep.wal.parquet import ParquetWriter
from lockstep.wal.reading import OutputBatches
from lockstep.wal.storages import storage_at
from lockstep.wal.table_staging import TableStaging, TableStagingFolders

OUTPUT = "rows"
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "name": pa.string(),
        "ratio": pa.float64(),
        "ok": pa.bool_(),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
    }
)


@dataclass(frozen=True)
class SealedRows:
    """`Batches` in memory. `claims`: the number of rows by the manifest, if it differs from the table's."""

    table: pa.Table
    batch_rows: int = 1000
    claims: int | None = None
    output: str = OUTPUT

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    @property
    def rows(self) -> int:
        return self.table.num_rows if self.claims is None else self.claims

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.table.to_batches(self.batch_rows))


@cache
def table(rows: int, start: int = 0) -> pa.Table:
    """Return rows with ids start, start + 1, …, with nulls, empty texts, quotes and line ends among them."""
    names = ["", None, 'a "quote"', "two\nlines", "comma, tab\t", "ünï ✓", "NULL"]
    begin = datetime(2013, 1, 1, tzinfo=UTC)
    ids = range(start, start + rows)
    columns = {
        "id": list(ids),
        "name": [names[i % len(names)] for i in ids],
        "ratio": [None if i % 5 == 0 else i / 7 for i in ids],
        "ok": [None if i % 3 == 0 else i % 2 == 0 for i in ids],
        "day": [None if i % 11 == 0 else date(2013, 1, 1) + timedelta(days=i % 365) for i in ids],
        "at": [None if i % 13 == 0 else begin + timedelta(microseconds=i) for i in ids],
    }
    return pa.table(columns, SCHEMA)


def sealed(rows: int, start: int = 0) -> list[SealedRows]:
    """Return the WAL of one epoch with one output."""
    return [SealedRows(table(rows, start))]


def digest(rows: pa.Table) -> tuple[int, str]:
    """Return (number of rows, digest); equal for equal multisets of rows."""
    row_digest = digest_batches(SCHEMA, rows.select(SCHEMA.names).cast(SCHEMA).to_batches())
    return row_digest.rows, row_digest.hexdigest()


def counted(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    """Count how often each row occurs in a table."""
    columns = [column.to_pylist() for column in rows.select(SCHEMA.names).cast(SCHEMA).columns]
    return Counter(zip(*columns, strict=True))


_FILES = 2  #: files per epoch


def staged_below_table(
    batches: SealedRows, staging: TableStaging, sink_epoch: SinkEpoch, deployment: str, pipeline: str
) -> OutputBatches:
    """Write the rows to files where the staging job would have put them, unless they exist, and return them."""
    storage, token = storage_at(staging.table), int(sink_epoch.manifest_hash[:12], 16)
    folder = f"{TableStagingFolders(storage, deployment, pipeline).folder(sink_epoch.id, token)}/{batches.output}"
    with suppress(FileExistsError):
        storage.make_folder(folder)
    half, files, facts = -(-batches.table.num_rows // _FILES), [], {}
    for number in range(_FILES):
        rows = batches.table.slice(number * half, half)
        name, data = f"part-{number:05}.parquet", _parquet(rows, staging.epoch_column, sink_epoch.id)
        with suppress(FileExistsError):
            storage.create(f"{folder}/{name}", data)
        files.append(WalFile(name, len(data), rows.num_rows, hashlib.sha256(data).hexdigest()))
        facts[name] = FileFacts.of(pq.read_metadata(io.BytesIO(data)))
    digest = digest_batches(batches.schema, batches).hexdigest()
    manifest = OutputManifest(batches.output, batches.schema, batches.rows, digest, tuple(files), staging)
    return OutputBatches(storage, folder, manifest, lambda _: facts)


def _parquet(rows: pa.Table, epoch_column: str, epoch: int) -> bytes:
    marked = rows.append_column(epoch_column, pa.array([epoch] * rows.num_rows, pa.int64()))
    buffer = io.BytesIO()
    with ParquetWriter(buffer, marked.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(marked)
    return buffer.getvalue()
