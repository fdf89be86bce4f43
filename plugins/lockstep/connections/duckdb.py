"""A database in memory, and on what it is handed alone: it opens no file, no address and no variable."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from lockstep.distribution import naming_extra
from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = "2GB"


class WatchedBatches:
    """Batches for another engine that keep the error raised while they were read."""

    def __init__(
        self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], seen: Callable[[int], object] = lambda rows: None
    ) -> None:
        self.schema, self._batches, self._seen = schema, batches, seen
        self.error: LockstepError | None = None

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.schema, self._read())

    def _read(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._batches:
                self._seen(batch.num_rows)
                yield batch
        except LockstepError as error:
            self.error = error
            raise


@contextmanager
def engine(memory: str = MEMORY) -> Iterator[DuckDBPyConnection]:
    """A database of its own, for as long as the block lasts; what doesn't fit into `memory` is spilled to a folder that
    goes with it. Raises `PackageMissing`."""
    with naming_extra("SQL over the rows of a WAL"):
        import duckdb
    with (
        tempfile.TemporaryDirectory(prefix="lockstep-rows-") as spilled,
        closing(duckdb.connect(config={"temp_directory": spilled, "memory_limit": memory})) as connection,
    ):
        for setting in (
            "TimeZone = 'UTC'",
            "python_enable_replacements = false",  # or a name would find a variable of this program
            "autoinstall_known_extensions = false",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            connection.execute(f"SET {setting}")
        yield connection
