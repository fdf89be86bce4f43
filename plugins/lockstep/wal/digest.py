"""The row digest: 128 bits that say whether two sets of rows are equal, whatever their order.

The seal, the sinks and `verify` compute this one function. Every row is hashed to two 64-bit lanes, and the digest is
the sum of the lanes over all rows modulo 2**64: it depends neither on the order of the rows nor on how they are cut
into batches, and partial digests can be merged.

It finds corruption, loss, duplication and values that moved between rows. It is not made against an adversary: its
constants are public and sums can be solved; the sha256 of each WAL file in the manifest is for that. A row that occurs
2**k times weighs k bits less; compare the row count in addition to the digest.

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

import hashlib
import json
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lockstep.errors import InvalidPipeline

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Lanes = tuple[U64, U64]  #: two hashes for each value; own, writable arrays

SLICE = 1 << 15  # rows, words or elements at a time, to stay in the processor's cache
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S32 = np.uint64(27), np.uint64(30), np.uint64(32)
NULL: tuple[np.uint64, np.uint64] = (np.uint64(0xD1B54A32D192ED03), np.uint64(0x8CB92BA72F3D8DD7))
_LENGTH: tuple[np.uint64, np.uint64] = (np.uint64(0xABC98388FB8FAC03), np.uint64(0x2127599BF4325C37))
BEYOND = np.int64(0x5851F42D4C957F2D)


def mix_lanes(words: U64) -> Lanes:
    """Two bijections of each word; overwrites `words`."""
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
    """splitmix64's output function with its increment; overwrites `words`."""
    high, _ = mix_lanes(words)
    return high


def weights_at(positions: I64) -> Lanes:
    """Odd multipliers for positions in a string or list, computed for any length."""
    even = positions.view(np.uint64) << np.uint64(1)
    odd = np.uint64(1)
    return _mix(even.copy()) | odd, _mix(even | odd) | odd


TABLE = weights_at(np.arange(1 << 12))


def _weights(positions: I64) -> Lanes:
    if positions.max() >= len(TABLE[0]):
        return weights_at(positions)
    return TABLE[0].take(positions), TABLE[1].take(positions)


def close(lanes: Lanes, length: I64 | None = None) -> Lanes:
    """Make the sums of a fold nonlinear, so that nested folds don't commute; overwrites `lanes`."""
    if length is not None:
        for lane, weight in zip(lanes, _LENGTH, strict=True):
            lane += length.view(np.uint64) * weight
    return _mix(lanes[0]), _mix(lanes[1])


@dataclass(frozen=True)
class Block:
    """Items `low` to `high` of all runs laid end to end: the `runs` in it, `counts` of their items, and each item's
    position in its run."""

    low: int
    high: int
    runs: I64
    counts: I64
    positions: I64


def fold_runs(lengths: I64, items: Callable[[Block], Lanes]) -> Lanes:
    """Weighted sum of each run of items, in slices, so that memory is bounded for any length."""
    sums = np.zeros(len(lengths), np.uint64), np.zeros(len(lengths), np.uint64)
    runs = np.flatnonzero(lengths)  # reduceat can't take empty runs
    ends = np.cumsum(lengths[runs])
    starts = ends - lengths[runs]
    for low in range(0, int(ends[-1]) if len(ends) else 0, SLICE):
        high = min(low + SLICE, int(ends[-1]))
        here = slice(np.searchsorted(ends, low, "right"), np.searchsorted(starts, high, "left"))
        cuts = np.maximum(starts[here], low) - low
        counts = np.diff(cuts, append=high - low)
        block = Block(low, high, runs[here], counts, np.arange(low, high) - np.repeat(starts[here], counts))
        for total, lane, weight in zip(sums, items(block), _weights(block.positions), strict=True):
            lane *= weight
            total[block.runs] += np.add.reduceat(lane, cuts)
    return sums


# --- buffers ---------------------------------------------------------------------------------------------------------


def values_of(array: pa.Array, dtype: Any, per_value: int = 1) -> npt.NDArray[Any]:
    """Fixed-width values of `array` from its buffer; read-only."""
    start = array.offset * per_value * np.dtype(dtype).itemsize
    return np.frombuffer(array.buffers()[1], dtype, len(array) * per_value, start)


def bits_of(buffer: pa.Buffer, offset: int, length: int) -> npt.NDArray[np.uint8]:
    skip = offset & 7
    raw = np.frombuffer(buffer, np.uint8, (skip + length + 7) >> 3, offset >> 3)
    return np.unpackbits(raw, count=skip + length, bitorder="little")[skip:]


def valid_of(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """None if no value is null."""
    return bits_of(array.buffers()[0], array.offset, len(array)).view(np.bool_) if array.null_count else None


def with_nulls(array: pa.Array, lanes: Lanes) -> Lanes:
    valid = valid_of(array)
    if valid is None:
        return lanes
    return np.where(valid, lanes[0], NULL[0]), np.where(valid, lanes[1], NULL[1])


KEEP = np.array([(1 << (8 * count)) - 1 for count in range(9)], np.uint64)  # the first `count` bytes of a word


def load_words(data: npt.NDArray[np.uint8], begin: I64) -> U64:
    """The eight bytes at each of `begin` (ascending) as little-endian words, padded with zeros after the end of
    `data`."""
    low, size = int(begin[0]), int(begin[-1] - begin[0]) + 8
    copy = np.zeros(size, np.uint8)
    copy[: len(data) - low] = data[low : low + size]
    words = np.ndarray((size - 7,), "<u8", copy, strides=(1,))
    return words[begin - low].astype(np.uint64, copy=False)


_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


# --- codecs: one for each class of types -----------------------------------------------------------------------------


class _Codec(Protocol):
    @property
    def tag(self) -> str: ...

    def lanes(self, array: pa.Array) -> Lanes:
        """Hash each value of a non-empty `array`."""


@dataclass(frozen=True)
class _Word:
    """Values of up to 64 bits; `words` returns them in a new array."""

    tag: str
    words: Callable[[pa.Array], U64]

    def lanes(self, array: pa.Array) -> Lanes:
        return with_nulls(array, mix_lanes(self.words(array)))


@dataclass(frozen=True)
class _Decimal:
    tag: str

    def lanes(self, array: pa.Array) -> Lanes:
        halves = values_of(array, np.uint64, 2).reshape(-1, 2)
        low, high = (mix_lanes(halves[:, column].copy()) for column in (0, 1))
        sums = tuple(low[lane] * TABLE[lane][0] + high[lane] * TABLE[lane][1] for lane in (0, 1))
        return with_nulls(array, close((sums[0], sums[1])))


@dataclass(frozen=True)
class _Bytes:
    """Byte strings, eight bytes per word, the last one padded with zeros."""

    tag: str
    offset_type: type[np.int32] | type[np.int64]

    def lanes(self, array: pa.Array) -> Lanes:
        begin, length = self._spans(array)
        buffer = array.buffers()[2]
        data = np.frombuffer(buffer if buffer else b"", np.uint8)
        if length.max() <= 8:
            return with_nulls(array, self._short(data, begin, length))
        return with_nulls(array, self._long(data, begin, length))

    def _spans(self, array: pa.Array) -> tuple[I64, I64]:
        item = np.dtype(self.offset_type).itemsize
        raw = np.frombuffer(array.buffers()[1], self.offset_type, len(array) + 1, array.offset * item)
        offsets = raw.astype(np.int64)
        valid, length = valid_of(array), np.diff(offsets)
        return offsets[:-1], length if valid is None else length * valid  # there may be bytes under a null

    @staticmethod
    def _short(data: npt.NDArray[np.uint8], begin: I64, length: I64) -> Lanes:
        lanes = mix_lanes(load_words(data, begin) & KEEP.take(length))
        for lane, weights in zip(lanes, TABLE, strict=True):
            lane *= weights[0] * (length > 0)
        return close(lanes, length)

    @staticmethod
    def _long(data: npt.NDArray[np.uint8], begin: I64, length: I64) -> Lanes:
        def items(block: Block) -> Lanes:
            words = load_words(data, np.repeat(begin[block.runs], block.counts) + (block.positions << 3))
            remaining = np.repeat(length[block.runs], block.counts) - (block.positions << 3)
            words &= KEEP.take(remaining, mode="clip")
            return mix_lanes(words)

        return close(fold_runs((length + 7) >> 3, items), length)


@dataclass(frozen=True)
class _List:
    tag: str
    item: _Codec

    def lanes(self, array: pa.Array) -> Lanes:
        length = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        flat = array.flatten()  # omits values under nulls, outside a slice and, in views, outside all lists

        def items(block: Block) -> Lanes:
            return self.item.lanes(flat.slice(block.low, block.high - block.low))

        return with_nulls(array, close(fold_runs(length, items), length))


@dataclass(frozen=True)
class _Field:
    codec: _Codec
    weights: tuple[np.uint64, np.uint64]


@dataclass(frozen=True)
class StructCodec:
    """Fields by name, in any order; a row is a struct that is never null."""

    tag: str
    fields: tuple[_Field, ...]

    def lanes(self, array: pa.Array) -> Lanes:
        children = [array.field(index) for index in range(len(self.fields))]
        return with_nulls(array, self.fold(children, len(array)))

    def fold(self, children: list[pa.Array], length: int) -> Lanes:
        sums = np.zeros(length, np.uint64), np.zeros(length, np.uint64)
        for field, child in zip(self.fields, children, strict=True):
            for total, lane, weight in zip(sums, field.codec.lanes(child), field.weights, strict=True):
                lane *= weight
                total += lane
        return close(sums)


@dataclass(frozen=True)
class _Nothing:
    tag: str

    def lanes(self, array: pa.Array) -> Lanes:
        return np.full(len(array), NULL[0]), np.full(len(array), NULL[1])


@dataclass(frozen=True)
class _Decoded:
    """Values stored in another encoding of `codec`."""

    codec: _Codec
    decode: Callable[[pa.Array], pa.Array]

    @property
    def tag(self) -> str:
        return self.codec.tag

    def lanes(self, array: pa.Array) -> Lanes:
        return self.codec.lanes(self.decode(array))


# --- which type goes to which codec ----------------------------------------------------------------------------------


def row_of(schema: pa.Schema) -> StructCodec:
    return _struct(list(schema), "")


def _struct(fields: list[pa.Field], path: str) -> StructCodec:
    codecs: dict[str, _Codec] = {}
    for field in fields:
        if field.name in codecs:
            raise InvalidPipeline(
                f"column {path + field.name!r} is duplicated: rename one, columns are matched by name"
            )
        codecs[field.name] = _codec(field.type, path + field.name)
    tags = {name: codec.tag for name, codec in codecs.items()}
    members = (_Field(codec, _field_weights(name, codec.tag)) for name, codec in codecs.items())
    return StructCodec(f"struct<{json.dumps(tags, sort_keys=True)}>", tuple(members))


def _field_weights(name: str, tag: str) -> tuple[np.uint64, np.uint64]:
    sixteen = hashlib.blake2b(json.dumps([name, tag]).encode(), digest_size=16).digest()
    first, second = (int.from_bytes(sixteen[at : at + 8], "little") | 1 for at in (0, 8))
    return np.uint64(first), np.uint64(second)


def _codec(dtype: pa.DataType, path: str) -> _Codec:
    codec = _word(dtype) or _bytes(dtype)
    if codec is not None:
        return codec
    if types.is_null(dtype):
        return _Nothing("null")
    if types.is_decimal128(dtype):
        return _Decimal(f"decimal:{dtype.scale}")
    if types.is_decimal32(dtype) or types.is_decimal64(dtype):
        return _Decoded(_Decimal(f"decimal:{dtype.scale}"), _cast(pa.decimal128(38, dtype.scale)))
    if types.is_dictionary(dtype):
        return _Decoded(_codec(dtype.value_type, path), lambda array: array.dictionary_decode())
    if types.is_run_end_encoded(dtype):
        return _Decoded(_codec(dtype.value_type, path), pc.run_end_decode)
    if any(check(dtype) for check in _LISTS):
        item = _codec(dtype.value_type, f"{path}.item")
        return _List(f"list<{item.tag}>", item)
    if types.is_struct(dtype):
        return _struct([dtype.field(index) for index in range(dtype.num_fields)], f"{path}.")
    raise InvalidPipeline(
        f"column {path!r} has the type {dtype}, which the row digest can't take: cast it in the transform"
        " (times and timestamps to microseconds, maps to lists of structs, decimal256 to decimal128)"
    )


def _word(dtype: pa.DataType) -> _Codec | None:
    if types.is_boolean(dtype):
        return _Word("bool", lambda array: bits_of(array.buffers()[1], array.offset, len(array)).astype(np.uint64))
    if types.is_integer(dtype):
        return _Word("int", _integers(dtype.to_pandas_dtype()))
    if types.is_floating(dtype):
        return _Word("float", _floats(dtype.to_pandas_dtype()))
    if types.is_date32(dtype):
        return _Word("date", _integers(np.int32))
    if types.is_time(dtype) and dtype.unit in _MICROS:
        return _Word("time", _instants(np.int32 if types.is_time32(dtype) else np.int64, _MICROS[dtype.unit]))
    if types.is_timestamp(dtype) and dtype.unit in _MICROS:
        return _Word("timestamp utc" if dtype.tz else "timestamp", _instants(np.int64, _MICROS[dtype.unit]))
    return None


def _bytes(dtype: pa.DataType) -> _Codec | None:
    if types.is_string(dtype) or types.is_binary(dtype):
        return _Bytes("string" if types.is_string(dtype) else "binary", np.int32)
    if types.is_large_string(dtype) or types.is_large_binary(dtype):
        return _Bytes("string" if types.is_large_string(dtype) else "binary", np.int64)
    if types.is_string_view(dtype):
        return _Decoded(_Bytes("string", np.int64), _cast(pa.large_string()))
    if types.is_binary_view(dtype) or types.is_fixed_size_binary(dtype):
        return _Decoded(_Bytes("binary", np.int64), _cast(pa.large_binary()))
    return None


_LISTS = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view)


def _cast(dtype: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    return lambda array: array.cast(dtype)


def _integers(dtype: Any) -> Callable[[pa.Array], U64]:
    wide = np.int64 if np.issubdtype(dtype, np.signedinteger) else np.uint64
    return lambda array: values_of(array, dtype).astype(wide).view(np.uint64)


def _floats(dtype: Any) -> Callable[[pa.Array], U64]:
    def words(array: pa.Array) -> U64:
        with np.errstate(invalid="ignore"):  # signalling NaNs
            values = values_of(array, dtype).astype(np.float64)
        nans = np.isnan(values)
        if nans.any():
            values[nans] = np.nan
        return values.view(np.uint64)

    return words


def _instants(dtype: Any, factor: int) -> Callable[[pa.Array], U64]:
    if factor == 1:
        return _integers(dtype)
    limit = np.iinfo(np.int64).max // factor

    def words(array: pa.Array) -> U64:
        values = values_of(array, dtype).astype(np.int64)
        fits = (values <= limit) & (values >= -limit)
        # values out of range keep all bits: an overflowing product would lose some
        return np.where(fits, values * factor, values ^ BEYOND).view(np.uint64)

    return words


DIGEST_VERSION = 1  #: part of every manifest; changes with any digest below

_WRAP = (1 << 64) - 1


class RowDigest:
    """Digest of a growing set of rows. Not thread-safe: use one per thread, then `merge`.

    Raises InvalidPipeline, with the column's name, for an unsupported type and for a duplicate name.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.rows = 0
        self._sums = (0, 0)
        self._schema, self._row = schema, row_of(schema)  # of the last batch: encoding and order may vary

    def of_others(self, rows: int, hexdigest: str) -> RowDigest:
        """Digest over the same columns with `rows` rows and this `hexdigest`. Raises ValueError for an invalid
        digest."""
        digest = copy(self)
        digest.rows, digest._sums = 0, (0, 0)
        digest._add((int(hexdigest[:16], 16), int(hexdigest[16:], 16)), rows)
        if len(hexdigest) != 32 or digest.hexdigest() != hexdigest:
            raise ValueError(f"{hexdigest!r} is no digest")
        return digest

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of `batch`. Raises ValueError if its columns, by name and class, differ from the schema."""
        row = self._row_of(batch.schema)
        for start in range(0, batch.num_rows, SLICE):
            part = batch.slice(start, SLICE)
            lanes = row.fold([part.column(index) for index in range(part.num_columns)], part.num_rows)
            self._add((int(lanes[0].sum()), int(lanes[1].sum())), part.num_rows)

    def merge(self, digest: RowDigest) -> None:
        """Add the rows of `digest`. Raises ValueError if its columns differ by name or class."""
        self._row_of(digest._schema)
        self._add(digest._sums, digest.rows)

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
    """Digest of all rows of `batches`; raises as `RowDigest`."""
    digest = RowDigest(schema)
    for batch in batches:
        digest.update(batch)
    return digest
