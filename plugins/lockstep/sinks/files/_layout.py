"""Layout of an epoch's rows in files: format, buckets, size of files, names that signal completeness.

Rows are sorted by bucket in bounded memory, each bucket's in their original order. As many rows as SORT_BYTES holds are
sorted at once; larger outputs spill each sorted portion to an anonymous file, from which every bucket's parts are read
back. So one file is open besides the one being written, and a bucket's rows don't depend on SORT_BYTES.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import types

from lockstep.errors import InvalidPipeline, SinkRejected
from lockstep.sinks.durable_file import SYNCS
from lockstep.sinks.files._format import FileFormat, read_rows, unsupported, without_metadata, write_files
from lockstep.sinks.files._target import EpochFiles, Keep, PublishedFile
from lockstep.sinks.files.buckets import Assigned, Buckets, Codes, require_bucket
from lockstep.sinks.values import Batches, SinkEpoch

SORT_BYTES = 64 << 20  # of Arrow buffers; sorting them takes about three times as much


@contextmanager
def sorted_by_bucket(
    batches: Iterable[pa.RecordBatch],
    assign: Callable[[pa.RecordBatch], Assigned],
    schema: pa.Schema,
    folder: Path,
    max_buckets: int,
) -> Iterator[Iterator[tuple[str, Iterator[pa.RecordBatch]]]]:
    """Yield each bucket, by name, with its rows cast to `schema`; `folder` is for spilling more than SORT_BYTES.

    Raises `SinkRejected` for a row without a bucket or with an invalid one, and for more than `max_buckets`; OSError.
    """
    with tempfile.TemporaryFile(dir=folder) as spill:
        shelves = _BucketSorter(_decoded(schema), spill, max_buckets)
        for batch in batches:
            try:
                numbers = shelves.numbers(assign(batch))
            except ValueError as error:
                raise SinkRejected(f"rows can't be put into buckets: {error}") from error
            shelves.add(batch, numbers)
        yield shelves.buckets()


def undecodable(schema: pa.Schema) -> list[str]:
    """One sentence for each column that can't be spilled: dictionaries within lists and structs."""
    return [f"column {f.name!r} has a dictionary in its type {f.type}" for f in _decoded(schema) if _encoded(f.type)]


def _decoded(schema: pa.Schema) -> pa.Schema:
    return pa.schema([f.with_type(f.type.value_type) if types.is_dictionary(f.type) else f for f in schema])


def _encoded(dtype: pa.DataType) -> bool:
    return types.is_dictionary(dtype) or any(_encoded(dtype.field(n).type) for n in range(dtype.num_fields))


class _BucketSorter:
    def __init__(self, schema: pa.Schema, spill: IO[bytes], max_buckets: int) -> None:
        self._schema, self._spill, self._max = schema, spill, max_buckets
        self._numbers: dict[str, int] = {}  # by bucket
        self._waiting: list[pa.RecordBatch] = []
        self._codes: list[Codes] = []
        self._bytes = 0
        self._spilled: dict[int, list[tuple[int, int]]] = {}  # by number: (offset, length) in `spill`
        self._end = 0

    def numbers(self, assigned: Assigned) -> Codes:
        """The number of each row's bucket. Raises ValueError if its name is invalid."""
        numbers_of_buckets = np.array([self._number(bucket) for bucket in assigned.buckets], dtype=np.int64)
        return numbers_of_buckets[assigned.codes]

    def add(self, batch: pa.RecordBatch, numbers: Codes) -> None:
        rows = batch.select(self._schema.names).cast(self._schema)
        self._waiting.append(rows)
        self._codes.append(numbers)
        self._bytes += rows.nbytes
        if self._bytes >= SORT_BYTES:
            for number, portion in self._sorted():
                data = portion.serialize()
                self._spill.write(data)
                self._spilled.setdefault(number, []).append((self._end, data.size))
                self._end += data.size
            self._spill.flush()

    def buckets(self) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
        last = dict(self._sorted())
        for bucket, number in sorted(self._numbers.items()):
            yield bucket, self._rows(number, last)

    def _rows(self, number: int, last: dict[int, pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for offset, length in self._spilled.get(number, ()):
            data = os.pread(self._spill.fileno(), length, offset)
            yield pa.ipc.read_record_batch(pa.py_buffer(data), self._schema)
        if number in last:
            yield last[number]

    def _number(self, bucket: str) -> int:
        if bucket not in self._numbers:
            if len(self._numbers) == self._max:
                raise ValueError(
                    f"there are more than {self._max} buckets, the next is {bucket!r}: use coarser ones, or raise "
                    "max_buckets"
                )
            self._numbers[require_bucket(bucket)] = len(self._numbers)
        return self._numbers[bucket]

    def _sorted(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The waiting rows, as one batch per bucket."""
        if not self._waiting:
            return
        batch, codes = pa.concat_batches(self._waiting), np.concatenate(self._codes)
        self._waiting, self._codes, self._bytes = [], [], 0
        if np.any(codes[1:] < codes[:-1]):
            narrow = codes.astype(np.uint16) if len(self._numbers) <= 1 << 16 else codes  # numpy sorts these by radix
            order = np.argsort(narrow, kind="stable")
            batch, codes = batch.take(pa.array(order)), codes[order]
        starts = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), len(codes)]
        for start, end in pairwise(starts):
            if end > start:
                yield int(codes[start]), batch.slice(start, end - start)


_MAX_LINKS = 60_000  #: to one file; ext4 takes 65,000


@dataclass(frozen=True)
class FileLayout:
    """Format, buckets and limits of a `FileSink`; see there."""

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
                "digits and '_.=-'; {epoch} in it is the epoch's number"
            )
        if self.success is not None and self.max_buckets > _MAX_LINKS:
            raise InvalidPipeline(f"with success, max_buckets is at most {_MAX_LINKS}: each bucket needs one more link")

    # --- checks ---

    def unsupported(self, schema: pa.Schema) -> list[str]:
        """One sentence for each column that files of this format couldn't give back unchanged."""
        return unsupported(self.format, self._in_files(schema))

    def misfits(self, schema: pa.Schema) -> list[str]:
        """One sentence for each reason why rows can't be put into buckets."""
        return self.buckets.misfits(schema) + undecodable(self._in_files(schema)) if self.buckets else []

    def _in_files(self, schema: pa.Schema) -> pa.Schema:
        path_columns = self.buckets.path_columns if self.buckets else ()
        return without_metadata(pa.schema([field for field in schema if field.name not in path_columns]))

    # --- writing and reading ---

    def write(
        self, prefix: str, epoch: SinkEpoch, batches: Batches, folder: Path, keep: Keep
    ) -> tuple[PublishedFile, ...]:
        """Write every row of `batches` into files of their buckets, in `folder`, each kept by `keep`.

        Raises `SinkRejected` if a row can't be written or the number of rows isn't the sealed one, and OSError.
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
            raise SinkRejected(f"output {batches.output}: the WAL has {rows} rows, but {batches.rows} were sealed")
        return facts

    def read(self, file: BinaryIO, fact: PublishedFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Rows of a published file as `schema`, with the columns from its folder's name. Raises as `read_rows`."""
        values: dict[str, pa.Scalar] = {}
        if self.buckets:
            path_columns = [field for field in schema if field.name in self.buckets.path_columns]
            values = {field.name: self.buckets.restore(fact.bucket, field) for field in path_columns}
        for batch in read_rows(self.format, file, self._in_files(schema)):
            columns = [
                pa.repeat(values[f.name], batch.num_rows) if f.name in values else batch.column(f.name) for f in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def success_names(self, listing: EpochFiles) -> list[str]:
        """Names to create once every file of an epoch is visible: one in each bucket, or one in the target."""
        if self.success is None:
            return []
        name = self.success.replace("{epoch}", str(listing.epoch))
        if self.buckets is None:
            return [name]
        return [f"{bucket}/{name}" for bucket in sorted({fact.bucket for fact in listing.files})]
