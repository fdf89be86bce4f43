"""The row digest: 128 bits that say whether two sets of rows are equal, whatever their order.

The seal, the sinks and `verify` compute this one function. Every row is hashed to two 64-bit lanes, and the digest is the
sum of the lanes over all rows modulo 2**64, so that it depends neither on the order of the rows nor on how they are cut
into batches, and partial digests can be merged.

It finds corruption, loss, duplication and values that moved between rows. It is not made against an adversary: its
constants are public and sums can be solved; the sha256 of each WAL file in the manifest is for that. Rows that repeat
2**k times weaken it by k bits; the row count, which is compared beside it, covers the rest.

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

Dictionary and run-end encoding are decoded. Null is unlike any value. Columns go by name: their order, field metadata and
nullability count for nothing, their classes do. So uint64 above 2**63 is alike to a negative int64 (`verify` casts to the
WAL's schema first). Anything else (nanoseconds, map, union, decimal256, extension types) is refused by column and type.

Method: a word goes through the mixer of splitmix64 (Steele, Lea, Flood 2014), then strings, lists, structs and rows are
multilinear hashes of what they contain, sum of weight[i] * x[i] modulo 2**64, after Lemire and Kaser, "Strongly universal
string hashing is fast", Computer Journal 57 (2014). All of it runs in numpy on Arrow's buffers, without a loop over rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lockstep.errors import InvalidPipeline

DIGEST_VERSION = 1  #: stands in every manifest; a change of any digest below is a new version

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Lanes = tuple[U64, U64]  #: two hashes for each value; own, writable arrays

_SLICE = 1 << 15  # rows, words or elements at a time: what is at hand stays in the processor's cache
_WRAP = (1 << 64) - 1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S32 = (np.uint64(shift) for shift in (27, 30, 31, 32))
_NULL: tuple[np.uint64, np.uint64] = (np.uint64(0xD1B54A32D192ED03), np.uint64(0x8CB92BA72F3D8DD7))
_LENGTH: tuple[np.uint64, np.uint64] = (np.uint64(0xABC98388FB8FAC03), np.uint64(0x2127599BF4325C37))
_BEYOND = np.int64(0x5851F42D4C957F2D)
_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


class RowDigest:
    """Digest of a growing set of rows that share `schema`. Not thread-safe: one a thread, then `merge`.

    Raises InvalidPipeline, with the column's name, for a type that the digest can't take or for a name that stands twice.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.rows = 0
        self._sums = (0, 0)
        self._row = _row(schema)
        self._schema = schema

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of `batch`. ValueError if its columns, by name and class, aren't those of the schema."""
        row = self._row if batch.schema is self._schema else self._same(batch.schema)
        for start in range(0, batch.num_rows, _SLICE):
            part = batch.slice(start, _SLICE)
            lanes = row.fold([part.column(index) for index in range(part.num_columns)], part.num_rows)
            self._add((int(lanes[0].sum()), int(lanes[1].sum())), part.num_rows)

    def merge(self, other: RowDigest) -> None:
        """Add the rows that `other` has seen. ValueError if its columns differ by name or class."""
        self._same(other._schema)
        self._add(other._sums, other.rows)

    def hexdigest(self) -> str:
        """32 lower-case hexadecimal digits; all 0 without rows."""
        return f"{self._sums[0]:016x}{self._sums[1]:016x}"

    def _add(self, sums: tuple[int, int], rows: int) -> None:
        self._sums = ((self._sums[0] + sums[0]) & _WRAP, (self._sums[1] + sums[1]) & _WRAP)
        self.rows += rows

    def _same(self, schema: pa.Schema) -> _Struct:
        row = _row(schema)
        if row.tag != self._row.tag:
            raise ValueError(f"the digest is over {self._row.tag}, these rows are {row.tag}: cast them to the schema first")
        return row


def digest_batches(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> RowDigest:
    """The digest of all rows of `batches`; see RowDigest for what is raised."""
    digest = RowDigest(schema)
    for batch in batches:
        digest.update(batch)
    return digest


# --- arithmetic ------------------------------------------------------------------------------------------------------


def _mix_lanes(words: U64) -> Lanes:
    """Two bijections of each word; `words` is overwritten."""
    words += _GOLDEN
    shifted = words >> _S30
    words ^= shifted
    words *= _MIX_1
    np.right_shift(words, _S27, out=shifted)
    words ^= shifted
    words *= _MIX_2
    np.right_shift(words, _S32, out=shifted)
    shifted ^= words
    return shifted, words


def _mix(words: U64) -> U64:
    """splitmix64's output function with its increment; `words` is overwritten."""
    high, _ = _mix_lanes(words)
    return high


def _weights_at(positions: I64) -> Lanes:
    """Odd multipliers for places in a string or list: computed, so that no length is too long."""
    even = positions.view(np.uint64) << np.uint64(1)
    one = np.uint64(1)
    return _mix(even.copy()) | one, _mix(even | one) | one


_TABLE = _weights_at(np.arange(1 << 12))


def _weights(positions: I64) -> Lanes:
    if positions.max() >= len(_TABLE[0]):
        return _weights_at(positions)
    return _TABLE[0].take(positions), _TABLE[1].take(positions)


def _close(lanes: Lanes, length: I64 | None = None) -> Lanes:
    """Make the sums of a fold nonlinear, so that folds of folds don't commute; `lanes` is overwritten."""
    if length is not None:
        for lane, weight in zip(lanes, _LENGTH, strict=True):
            lane += length.view(np.uint64) * weight
    return _mix(lanes[0]), _mix(lanes[1])


@dataclass(frozen=True)
class _Block:
    """Items low…high of all runs laid end to end: `runs` are the runs in it, `counts` how many of its items each has,
    `positions` each item's place in its run."""

    low: int
    high: int
    runs: I64
    counts: I64
    positions: I64


def _fold(lengths: I64, items: Callable[[_Block], Lanes]) -> Lanes:
    """Multilinear hash of each run of items, a slice of items at a time, so that memory is bound for any length."""
    sums = np.zeros(len(lengths), np.uint64), np.zeros(len(lengths), np.uint64)
    runs = np.flatnonzero(lengths)  # reduceat can't take empty runs
    ends = np.cumsum(lengths[runs])
    starts = ends - lengths[runs]
    for low in range(0, int(ends[-1]) if len(ends) else 0, _SLICE):
        high = min(low + _SLICE, int(ends[-1]))
        here = slice(np.searchsorted(ends, low, "right"), np.searchsorted(starts, high, "left"))
        cuts = np.maximum(starts[here], low) - low
        counts = np.diff(cuts, append=high - low)
        block = _Block(low, high, runs[here], counts, np.arange(low, high) - np.repeat(starts[here], counts))
        for total, lane, weight in zip(sums, items(block), _weights(block.positions), strict=True):
            lane *= weight
            total[block.runs] += np.add.reduceat(lane, cuts)
    return _close(sums, lengths)


# --- buffers ---------------------------------------------------------------------------------------------------------


def _values(array: pa.Array, dtype: Any, per_value: int = 1) -> npt.NDArray[Any]:
    """The fixed-width values of `array` as they stand in its buffer; read-only."""
    start = array.offset * per_value * np.dtype(dtype).itemsize
    return np.frombuffer(array.buffers()[1], dtype, len(array) * per_value, start)


def _bits(buffer: pa.Buffer, offset: int, length: int) -> npt.NDArray[np.uint8]:
    skip = offset & 7
    raw = np.frombuffer(buffer, np.uint8, (skip + length + 7) >> 3, offset >> 3)
    return np.unpackbits(raw, count=skip + length, bitorder="little")[skip:]


def _valid(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """None if no value is null."""
    return _bits(array.buffers()[0], array.offset, len(array)).view(np.bool_) if array.null_count else None


def _with_nulls(array: pa.Array, lanes: Lanes) -> Lanes:
    valid = _valid(array)
    if valid is None:
        return lanes
    return np.where(valid, lanes[0], _NULL[0]), np.where(valid, lanes[1], _NULL[1])


# --- codecs: one for each class of types -----------------------------------------------------------------------------


class _Codec(Protocol):
    @property
    def tag(self) -> str: ...

    def lanes(self, array: pa.Array) -> Lanes:
        """Hash each value of `array`, which isn't empty."""


@dataclass(frozen=True)
class _Word:
    """Values that fit 64 bits; `words` makes a fresh array of them."""

    tag: str
    words: Callable[[pa.Array], U64]

    def lanes(self, array: pa.Array) -> Lanes:
        return _with_nulls(array, _mix_lanes(self.words(array)))


@dataclass(frozen=True)
class _Decimal:
    tag: str

    def lanes(self, array: pa.Array) -> Lanes:
        halves = _values(array, np.uint64, 2).reshape(-1, 2)
        low, high = (_mix_lanes(halves[:, column].copy()) for column in (0, 1))
        sums = tuple(low[lane] * _TABLE[lane][0] + high[lane] * _TABLE[lane][1] for lane in (0, 1))
        return _with_nulls(array, _close((sums[0], sums[1])))


@dataclass(frozen=True)
class _Bytes:
    """Strings of bytes, eight to a word, the last one filled up with zeros."""

    tag: str
    offset_type: type[np.int32] | type[np.int64]

    def lanes(self, array: pa.Array) -> Lanes:
        begin, length = self._spans(array)
        buffer = array.buffers()[2]
        data = np.frombuffer(buffer if buffer else b"", np.uint8)
        if length.max() <= 8:
            return _with_nulls(array, self._short(data, begin, length))
        return _with_nulls(array, self._long(data, begin, length))

    def _spans(self, array: pa.Array) -> tuple[I64, I64]:
        item = np.dtype(self.offset_type).itemsize
        raw = np.frombuffer(array.buffers()[1], self.offset_type, len(array) + 1, array.offset * item)
        offsets = raw.astype(np.int64)
        valid, length = _valid(array), np.diff(offsets)
        return offsets[:-1], length if valid is None else length * valid  # bytes may stand under a null

    @staticmethod
    def _short(data: npt.NDArray[np.uint8], begin: I64, length: I64) -> Lanes:
        lanes = _mix_lanes(_load(data, begin) & _KEEP.take(length))
        for lane, weights in zip(lanes, _TABLE, strict=True):
            lane *= weights[0] * (length > 0)
        return _close(lanes, length)

    @staticmethod
    def _long(data: npt.NDArray[np.uint8], begin: I64, length: I64) -> Lanes:
        def items(block: _Block) -> Lanes:
            words = _load(data, np.repeat(begin[block.runs], block.counts) + (block.positions << 3))
            left = np.repeat(length[block.runs], block.counts) - (block.positions << 3)
            words &= _KEEP.take(left, mode="clip")
            return _mix_lanes(words)

        return _fold((length + 7) >> 3, items)
