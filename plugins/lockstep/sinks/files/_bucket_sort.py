"""Rows brought together by bucket, in bounded memory, each bucket's in the order in which they came.

As many rows as SORT_BYTES holds are sorted at once; with more, each sorted portion goes to a nameless file, from which
every bucket's parts are read back in turn. So one file is open beside the one being written, whatever the number of
buckets, and a bucket's rows come out the same whatever SORT_BYTES is.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
from pyarrow import types

from lockstep.errors import SinkRejected
from lockstep.sinks.files._bucket_names import require_bucket
from lockstep.sinks.files.buckets import Assigned, Codes

SORT_BYTES = 64 << 20  # of Arrow buffers; sorting them takes about three times as much


@contextmanager
def sorted_by_bucket(
    batches: Iterable[pa.RecordBatch],
    assign: Callable[[pa.RecordBatch], Assigned],
    schema: pa.Schema,
    folder: Path,
    most_buckets: int,
) -> Iterator[Iterator[tuple[str, Iterator[pa.RecordBatch]]]]:
    """Each bucket, by name, with its rows as `schema` has them; `folder` keeps more than SORT_BYTES meanwhile.

    Raises `SinkRejected` for a row without a bucket or with one whose name can't be used, and for more buckets than
    `most_buckets`; OSError.
    """
    with tempfile.TemporaryFile(dir=folder) as spill:
        shelves = _Shelves(_decoded(schema), spill, most_buckets)
        for batch in batches:
            try:
                numbers = shelves.numbers(assign(batch))
            except ValueError as error:
                raise SinkRejected(f"rows can't be put into buckets: {error}") from error
            shelves.add(batch, numbers)
        yield shelves.buckets()


def undecodable(schema: pa.Schema) -> list[str]:
    """One text for each column whose rows can't be kept meanwhile: dictionaries within lists and structs."""
    return [f"column {f.name!r} has a dictionary in its type {f.type}" for f in _decoded(schema) if _encoded(f.type)]


def _decoded(schema: pa.Schema) -> pa.Schema:
    return pa.schema([f.with_type(f.type.value_type) if types.is_dictionary(f.type) else f for f in schema])


def _encoded(dtype: pa.DataType) -> bool:
    return types.is_dictionary(dtype) or any(_encoded(dtype.field(n).type) for n in range(dtype.num_fields))


class _Shelves:
    def __init__(self, schema: pa.Schema, spill: IO[bytes], most_buckets: int) -> None:
        self._schema, self._spill, self._most = schema, spill, most_buckets
        self._numbers: dict[str, int] = {}  # by bucket
        self._waiting: list[pa.RecordBatch] = []
        self._codes: list[Codes] = []
        self._bytes = 0
        self._spilled: dict[int, list[tuple[int, int]]] = {}  # by number: (offset, length) in `spill`
        self._end = 0

    def numbers(self, assigned: Assigned) -> Codes:
        """The number of each row's bucket. ValueError if its name can't be used."""
        known = np.array([self._number(bucket) for bucket in assigned.buckets], dtype=np.int64)
        return known[assigned.codes]

    def add(self, batch: pa.RecordBatch, numbers: Codes) -> None:
        kept = batch.select(self._schema.names).cast(self._schema)
        self._waiting.append(kept)
        self._codes.append(numbers)
        self._bytes += kept.nbytes
        if self._bytes >= SORT_BYTES:
            self._put_away()

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
            if len(self._numbers) == self._most:
                raise ValueError(
                    f"there are more than {self._most} buckets, the next is {bucket!r}: use coarser ones, or raise "
                    "max_buckets"
                )
            self._numbers[require_bucket(bucket)] = len(self._numbers)
        return self._numbers[bucket]

    def _put_away(self) -> None:
        for number, batch in self._sorted():
            data = batch.serialize()
            self._spill.write(data)
            self._spilled.setdefault(number, []).append((self._end, data.size))
            self._end += data.size
        self._spill.flush()

    def _sorted(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """What waits, as one batch a bucket."""
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
