"""The row digest: 128 bits that say whether two sets of rows are equal, whatever their order.

The seal, the sinks and `verify` compute this one function. Every row is hashed to two 64-bit lanes, and the digest is
the sum of the lanes over all rows modulo 2**64: it depends neither on the order of the rows nor on how they are cut
into batches, and partial digests can be merged.

It finds corruption, loss, duplication and values that moved between rows. It is not made against an adversary: its
constants are public and sums can be solved; the sha256 of each WAL file in the manifest is for that. A row that stands
2**k times weighs k bits less; compare the row count beside the digest.

What is hashed is the value, not how Arrow stores it. Values are alike within one class:

    class               Arrow types                                      hashed as
    bool, date          bool; date32                                     64-bit integer
    int                 int8…int64, uint8…uint64                         64-bit two's complement, whatever the width
    float               float16, float32, float64                        float64; -0.0 is not 0.0, all NaNs are one
    decimal:<scale>     decimal32, decimal64, decimal128                 unscaled 128-bit integer
    time                time32(s, ms), time64(us)                        microseconds
    timestamp[ utc]     timestamp(s, ms, us), naive or with a time zone  microseconds; aware: the UTC instant
    string, binary      plain, large_, _view; fixed_size_binary          bytes and their number
    list<…>, struct<…>  all lists; structs                               elements in order; fields by name
    null                null                                             null

Dictionary and run-end encoding are decoded. Null is unlike any value. Columns go by name: their order, their metadata
and nullability count for nothing, their classes do. Within the class int a uint64 from 2**63 on is alike to a negative
int64, so `verify` casts to the WAL's schema first. Anything else (nanoseconds, map, union, decimal256, duration,
extension types) is refused, naming column and type.

Method: words go through the mixer of splitmix64 (Steele, Lea, Flood 2014); strings, lists, structs and rows are
multilinear hashes of what they hold, the sum of weight[i] * x[i] modulo 2**64, after Lemire and Kaser, "Strongly
universal string hashing is fast", Computer Journal 57 (2014). numpy does it on Arrow's buffers, with no loop over rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

import pyarrow as pa

from lockstep.wal._codecs import StructCodec, row_of
from lockstep.wal._lanes import SLICE

DIGEST_VERSION = 1  #: stands in every manifest; a change of any digest below is a new version

_WRAP = (1 << 64) - 1


class RowDigest:
    """Digest of a growing set of rows. Not thread-safe: one for each thread, then `merge`.

    Raises InvalidPipeline, with the column's name, for a type that the digest can't take and for a name that stands
    twice.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.rows = 0
        self._sums = (0, 0)
        self._schema, self._row = schema, row_of(schema)  # as the rows came last: encoding and order may vary

    def of_others(self, rows: int, hexdigest: str) -> RowDigest:
        """One over the same columns that has seen `rows` others, and says `hexdigest`. ValueError for no digest."""
        digest = copy(self)
        digest.rows, digest._sums = 0, (0, 0)
        digest._add((int(hexdigest[:16], 16), int(hexdigest[16:], 16)), rows)
        if len(hexdigest) != 32 or digest.hexdigest() != hexdigest:
            raise ValueError(f"{hexdigest!r} is no digest")
        return digest

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of `batch`. ValueError if its columns, by name and class, aren't those of the schema."""
        row = self._row_of(batch.schema)
        for start in range(0, batch.num_rows, SLICE):
            part = batch.slice(start, SLICE)
            lanes = row.fold([part.column(index) for index in range(part.num_columns)], part.num_rows)
            self._add((int(lanes[0].sum()), int(lanes[1].sum())), part.num_rows)

    def merge(self, other: RowDigest) -> None:
        """Add the rows that `other` has seen. ValueError if its columns differ by name or class."""
        self._row_of(other._schema)
        self._add(other._sums, other.rows)

    def hexdigest(self) -> str:
        """32 lower-case hexadecimal digits; all 0 without rows."""
        return f"{self._sums[0]:016x}{self._sums[1]:016x}"

    def _add(self, sums: tuple[int, int], rows: int) -> None:
        self._sums = ((self._sums[0] + sums[0]) & _WRAP, (self._sums[1] + sums[1]) & _WRAP)
        self.rows += rows

    def _row_of(self, schema: pa.Schema) -> StructCodec:
        if not schema.equals(self._schema):
            row = row_of(schema)
            if row.tag != self._row.tag:
                raise ValueError(f"found rows of {row.tag}, the digest is over {self._row.tag}: cast them to it first")
            self._schema, self._row = schema, row
        return self._row


def digest_batches(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> RowDigest:
    """The digest of all rows of `batches`; see RowDigest for what is raised."""
    digest = RowDigest(schema)
    for batch in batches:
        digest.update(batch)
    return digest
