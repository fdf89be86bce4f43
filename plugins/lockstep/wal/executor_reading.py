"""What Spark's executors run to read files of a WAL; it imports neither Spark nor the pipeline.

Its functions reach the executors by value. They need pyarrow and numpy there and, for an object store, obstore with the
login that it finds in its environment; for HDFS, hdfs-native.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lockstep.errors import WalCorrupt
from lockstep.wal._parquet import ParquetRows
from lockstep.wal.found_files import FoundFiles, Place, find_file
from lockstep.wal.manifest import WalFile, bare
from lockstep.wal.reading import verify_file
from lockstep.wal.staging import storage_at

TOLD = "found STRING, error STRING"


def read_files(places: Sequence[Place], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For each row (number of a place, name of a file) one of `TOLD`: `FoundFiles` as JSON, or why it can't be read."""
    for batch in batches:
        for number, name in zip(*batch.to_pydict().values(), strict=True):
            found, error = _told_of(places[number], name)
            yield pa.RecordBatch.from_pydict(
                {"found": pa.array([found], pa.string()), "error": pa.array([error], pa.string())}
            )


@dataclass(frozen=True)
class Sealed:
    """Files of one sealed output. `storage`: a URI as staging takes it; `schema`: of every file."""

    storage: str
    folder: str
    schema: pa.Schema
    files: Sequence[WalFile]


def read_sealed(sealed: Sealed, columns: Sequence[str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For each row (number of a file, its name) the file's rows, of these columns, compared with the manifest as
    every reader does: `OutputBatches` itself can't be pickled. Raises `WalCorrupt`."""
    storage, wanted = storage_at(sealed.storage), pa.schema([sealed.schema.field(name) for name in columns])
    for batch in batches:
        for number in batch.column(0).to_pylist():
            file = sealed.files[number]
            path = f"{sealed.folder}/{file.path}"
            with ParquetRows(storage, path, verify_file(storage, path, file.bytes, file.sha256)) as rows:
                if rows.rows != file.rows or not bare(rows.schema).equals(sealed.schema):
                    raise WalCorrupt(f"{path}: rows or schema aren't those of the manifest")
                yield from rows.batches(wanted, None if wanted.equals(sealed.schema) else columns)


def _told_of(place: Place, name: str) -> tuple[str | None, str | None]:
    try:
        found = FoundFiles([find_file(storage_at(place.storage), place, name)])
    except Exception as error:  # the task reads the file then, and says what is wrong with it
        return None, f"{place.folder}/{name}: {type(error).__name__}: {error}"
    return json.dumps(found.to_json()), None
