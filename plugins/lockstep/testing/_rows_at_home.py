"""Sealed rows as files below a table, for tests of sinks that adopt."""

from __future__ import annotations

import hashlib
import io
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep.sinks.values import SinkEpoch
from lockstep.testing._sealed_rows import SealedRows
from lockstep.wal.digest import digest_batches
from lockstep.wal.file_facts import FileFacts
from lockstep.wal.manifest import OutputManifest, WalFile
from lockstep.wal.parquet import ParquetWriter
from lockstep.wal.reading import OutputBatches
from lockstep.wal.storages import storage_at
from lockstep.wal.table_staging import TableStaging, TableStagingFolders

_FILES = 2  #: of an epoch


def at_home(batches: SealedRows, home: TableStaging, at: SinkEpoch, deployment: str, pipeline: str) -> OutputBatches:
    """The rows in files that stand where `stage` would have put them; whoever asks first writes them."""
    storage, token = storage_at(home.table), int(at.manifest_hash[:12], 16)
    folder = f"{TableStagingFolders(storage, deployment, pipeline).folder(at.id, token)}/{batches.output}"
    with suppress(FileExistsError):
        storage.make_folder(folder)
    half, files, facts = -(-batches.table.num_rows // _FILES), [], {}
    for number in range(_FILES):
        rows = batches.table.slice(number * half, half)
        name, data = f"part-{number:05}.parquet", _parquet(rows, home.epoch_column, at.id)
        with suppress(FileExistsError):
            storage.create(f"{folder}/{name}", data)
        files.append(WalFile(name, len(data), rows.num_rows, hashlib.sha256(data).hexdigest()))
        facts[name] = FileFacts.of(pq.read_metadata(io.BytesIO(data)))
    digest = digest_batches(batches.schema, batches).hexdigest()
    manifest = OutputManifest(batches.output, batches.schema, batches.rows, digest, tuple(files), home)
    return OutputBatches(storage, folder, manifest, lambda _: facts)


def _parquet(rows: pa.Table, epoch_column: str, epoch: int) -> bytes:
    marked = rows.append_column(epoch_column, pa.array([epoch] * rows.num_rows, pa.int64()))
    buffer = io.BytesIO()
    with ParquetWriter(buffer, marked.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(marked)
    return buffer.getvalue()
