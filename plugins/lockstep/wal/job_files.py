"""Parquet files that a stage job's own process reads and writes, where starting Spark on them would cost more.

What is read is compared with its manifest as it is read; what is written is durable only once the task has sealed it.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep.wal._parquet import ParquetRows
from lockstep.wal._storage import Storage, naming_errors
from lockstep.wal.parquet_writer import columns_with_statistics
from lockstep.wal.reading import verify_file
from lockstep.wal.request import StageRequest, storage_of
from lockstep.wal.staging import storage_at
from lockstep.wal.state_manifest import StateFile
from lockstep.wal.table_staging import TableStaging

_THREADS = 4
#: By which Spark's readers know that no date or time in the file is to be moved to another calendar.
_WRITER = {"org.apache.spark.version": "4.2.0"}


@dataclass(frozen=True)
class JobFiles:
    """Files below the staging whose Hadoop URI is `root`."""

    storage: Storage
    root: str

    @classmethod
    def of(cls, request: StageRequest, options: str = "") -> JobFiles:
        """Those of an execution. `options`: of its address, see `Staging.address_of`. Raises `StagingRefused`."""
        root = request.folder.rsplit("/", 4)[0]
        return cls(storage_of(root, options), root)

    @classmethod
    def at_home(cls, home: TableStaging) -> JobFiles:
        """Those below the table that is an output's home. Raises `StagingRefused`."""
        storage = storage_at(home.table)
        return cls(storage, storage.uri_of("").rstrip("/"))

    def holds(self, uri: str) -> bool:
        """Whether `uri` is below this staging."""
        return uri.startswith(f"{self.root}/")

    def read_state(self, files: Iterable[tuple[StateFile, str]], schema: pa.Schema) -> list[pa.Table]:
        """The rows of state files, each with its URI, under `schema`; a column that an older file lacks is null.

        Raises `WalCorrupt` for a file that isn't as it was sealed, `StagingUnavailable`.
        """
        with ThreadPoolExecutor(_THREADS, "state") as pool:
            return list(pool.map(lambda found: self._read(found[0], found[1], schema), files))

    def _read(self, file: StateFile, uri: str, schema: pa.Schema) -> pa.Table:
        path = self._relative(uri)
        with ParquetRows(self.storage, path, verify_file(self.storage, path, file.bytes, file.sha256)) as rows:
            found = pa.Table.from_batches(list(rows.batches(rows.schema)), rows.schema)
        columns = [
            found[field.name].cast(field.type) if field.name in found.column_names else pa.nulls(len(found), field.type)
            for field in schema
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    def create_folder(self, uri: str) -> None:
        """Make a folder, exclusively. Raises `StagingUnavailable`."""
        with naming_errors("create", uri):
            self.storage.make_folder(self._relative(uri))

    def write(self, folder: str, table: pa.Table, *, for_queries: bool = False) -> None:
        """Write one file of these rows, which fit into memory, into the folder at this URI, with its parents.
        `for_queries`: with what lets readers skip rows."""
        buffer = io.BytesIO()
        pq.write_table(
            table.replace_schema_metadata(_WRITER),
            buffer,
            compression="zstd",
            use_dictionary=for_queries,
            write_statistics=for_queries and columns_with_statistics(table.schema),
            store_schema=False,
            store_decimal_as_integer=True,
        )
        path = f"{self._relative(folder)}/part-00000-{uuid.uuid4()}.zstd.parquet"
        with naming_errors("write", path):
            self.storage.put(path, buffer.getvalue())

    def _relative(self, uri: str) -> str:
        return uri[len(self.root) + 1 :]
