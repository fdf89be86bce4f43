"""How an epoch's rows are laid out as files: format, buckets, when a file is full, what tells that all can be seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from lockstep.errors import InvalidPipeline, SinkRejected
from lockstep.sinks.durable_file import SYNCS
from lockstep.sinks.files._bucket_sort import sorted_by_bucket, undecodable
from lockstep.sinks.files._format import FileFormat, plain, read_rows, unkept
from lockstep.sinks.files._listing import FileFact, Listing
from lockstep.sinks.files._writer import Keep, write_files
from lockstep.sinks.files.buckets import Buckets
from lockstep.sinks.values import Batches, SinkEpoch

_MOST_LINKS = 60_000  #: to one file; ext4 takes 65,000


@dataclass(frozen=True)
class FileLayout:
    """See `FileSink` for what each means."""

    format: FileFormat
    buckets: Buckets | None
    max_buckets: int
    max_rows: int
    max_bytes: int
    success: str | None

    def __post_init__(self) -> None:
        if min(self.max_rows, self.max_bytes, self.max_buckets) < 1:
            raise InvalidPipeline("max_rows_per_file, max_bytes_per_file and max_buckets are at least 1")
        if self.success is not None and not re.fullmatch(r"_(?:[A-Za-z0-9_.=-]|\{epoch\}){1,100}", self.success):
            raise InvalidPipeline(
                f"success={self.success!r}: give a name that starts with '_', so that readers skip it, of letters, "
                "digits and '_.=-', with {epoch} for the epoch's number if you like"
            )
        if self.success is not None and self.max_buckets > _MOST_LINKS:
            raise InvalidPipeline(f"max_buckets with a name of success is at most {_MOST_LINKS}: each is one more link")

    # --- what can't be kept ---

    def unkept(self, schema: pa.Schema) -> list[str]:
        """One text for each column that files of this format couldn't give back."""
        return unkept(self.format, self._in_files(schema))

    def unfit(self, schema: pa.Schema) -> list[str]:
        """One text for each reason why rows can't be put into buckets."""
        return self.buckets.unfit(schema) + undecodable(self._in_files(schema)) if self.buckets else []

    def _in_files(self, schema: pa.Schema) -> pa.Schema:
        left_out = self.buckets.left_out if self.buckets else ()
        return plain(pa.schema([one for one in schema if one.name not in left_out]))

    # --- writing and reading ---

    def write(self, prefix: str, epoch: SinkEpoch, batches: Batches, folder: Path, keep: Keep) -> tuple[FileFact, ...]:
        """Every row of `batches` as files, written in `folder` and kept by `keep`, whatever its bucket.

        Raises `SinkRejected` if a row can't be written or the rows aren't as many as were sealed, and OSError.
        """
        schema = self._in_files(batches.schema)
        write = partial(
            write_files,
            folder,
            lambda number: f"{prefix}{batches.output}-{number:05d}.{self.format.suffix}",
            self.format,
            schema,
            max_rows=self.max_rows,
            max_bytes=self.max_bytes,
            keep=keep,
        )
        try:
            if self.buckets is None:
                facts = tuple(write([("", batches)]))
            else:
                assign = partial(self.buckets.assign, planned=epoch.timestamp)
                with sorted_by_bucket(batches, assign, schema, folder, self.max_buckets) as buckets:
                    facts = tuple(write(buckets, syncs=SYNCS))
        except SinkRejected as error:
            raise SinkRejected(f"output {batches.output}: {error}") from error
        rows = sum(fact.rows for fact in facts)
        if rows != batches.rows:
            raise SinkRejected(f"output {batches.output}: the WAL gave {rows} rows, {batches.rows} are sealed")
        return facts

    def read(self, file: BinaryIO, fact: FileFact, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """A published file's rows as `schema`, with what its folder's name tells. Raises as `read_rows`."""
        left_out = set(self.buckets.left_out) if self.buckets else set()
        told = {f.name: self._restored(fact, f) for f in schema if f.name in left_out}
        for batch in read_rows(self.format, file, self._in_files(schema)):
            columns = [
                pa.repeat(told[f.name], batch.num_rows) if f.name in told else batch.column(f.name) for f in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _restored(self, fact: FileFact, column: pa.Field) -> pa.Scalar:
        assert self.buckets is not None
        return self.buckets.restore(fact.bucket, column)

    def success_names(self, listing: Listing) -> list[str]:
        """What is created once every file of an epoch can be seen: one name in each bucket, or one in the target."""
        if self.success is None:
            return []
        name = self.success.replace("{epoch}", str(listing.epoch))
        if self.buckets is None:
            return [name]
        return [f"{bucket}/{name}" for bucket in sorted({fact.bucket for fact in listing.files})]
