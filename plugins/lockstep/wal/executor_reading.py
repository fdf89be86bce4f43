"""What Spark's executors run to read the files that they have written; it imports neither Spark nor the pipeline.

Its functions reach the executors by value. They need pyarrow and numpy there and, for an object store, obstore with the
login that it finds in its environment; for HDFS, hdfs-native.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa

from lockstep.wal.found_files import FoundFiles, Place, find_file
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


def _told_of(place: Place, name: str) -> tuple[str | None, str | None]:
    try:
        found = FoundFiles([find_file(storage_at(place.storage), place, name)])
    except Exception as error:  # the task reads the file then, and says what is wrong with it
        return None, f"{place.folder}/{name}: {type(error).__name__}: {error}"
    return json.dumps(found.to_json()), None
