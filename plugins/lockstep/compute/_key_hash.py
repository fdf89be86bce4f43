"""Spark's xxhash64 of columns, computed on Arrow's: the bucket in which a key's row is, without asking Spark.

XXH64 (Yann Collet) over each value's bytes as Spark lays them out. The hash of a column is the seed of the next, the
first seed is 42; a null leaves the seed as it is. All rows of a column at once; texts by their length.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

_SEED = 42
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_LONG = 18  #: digits of a decimal that Spark hashes as a number; longer ones as bytes

Hashes = np.ndarray[tuple[int], np.dtype[np.uint64]]
Matrix = np.ndarray[tuple[int, int], np.dtype[np.uint8]]
_PLACE = "lockstep_place"


def can_hash(kind: pa.DataType) -> bool:
    """True if values of this type can be hashed here; not floats, which have two zeros, and not nested types."""
    return bool(
        at.is_boolean(kind)
        or at.is_signed_integer(kind)
        or at.is_date32(kind)
        or (at.is_timestamp(kind) and kind.unit == "us")
        or at.is_decimal128(kind)
        or at.is_string(kind)
        or at.is_binary(kind)
    )


def buckets_of(table: pa.Table, key: Sequence[str], buckets: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Each row's bucket: `pmod(xxhash64(key), buckets)` of Spark."""
    return np.mod(hashes_of(table, key).view(np.int64), np.int64(buckets))


def hashes_of(table: pa.Table, columns: Sequence[str]) -> Hashes:
    """Spark's `xxhash64(columns)` of each row, as unsigned numbers."""
    hashes: Hashes = np.full(table.num_rows, _SEED, np.uint64)
    for name in columns:
        column = table[name].combine_chunks()
        valid = np.asarray(column.is_valid())
        hashes = np.where(valid, _column(column, hashes), hashes)
    return hashes


def _column(column: pa.Array, seeds: Hashes) -> Hashes:
    kind = column.type
    if at.is_string(kind) or at.is_binary(kind):
        return _texts(column, seeds)
    if at.is_decimal128(kind):
        return _decimals(column, seeds)
    wide = at.is_timestamp(kind) or at.is_int64(kind)
    if at.is_date32(kind):
        column = column.cast(pa.int32())
    numbers = np.asarray(column.cast(pa.int64()).fill_null(0)).astype(np.int64)
    return _longs(numbers.view(np.uint64), seeds) if wide else _ints(numbers, seeds)


def _ints(numbers: np.ndarray[tuple[int], np.dtype[np.int64]], seeds: Hashes) -> Hashes:
    words = numbers.view(np.uint64) & np.uint64(0xFFFFFFFF)
    return _final(_word(seeds + _P5 + np.uint64(4), words))


def _longs(words: Hashes, seeds: Hashes) -> Hashes:
    return _final(_long_word(seeds + _P5 + np.uint64(8), words))


def _decimals(column: pa.Array, seeds: Hashes) -> Hashes:
    if column.type.precision <= _LONG:  # the low half of the number is the number
        halves = np.frombuffer(column.buffers()[1], np.uint64)[column.offset * 2 :][: len(column) * 2 : 2]
        return _longs(np.ascontiguousarray(halves), seeds)
    raw = np.frombuffer(column.buffers()[1], np.uint8).tobytes()
    values = []
    for row in range(column.offset, column.offset + len(column)):
        number = int.from_bytes(raw[row * 16 : row * 16 + 16], "little", signed=True)
        size = ((number if number >= 0 else ~number).bit_length() // 8) + 1  # as BigInteger.toByteArray has it
        values.append(number.to_bytes(size, "big", signed=True))
    return _texts(pa.array(values, pa.binary()), seeds)


def _texts(column: pa.Array, seeds: Hashes) -> Hashes:
    _, offsets, data = column.buffers()
    places = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    text = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    starts, lengths = places[:-1], np.diff(places)
    hashes = seeds.copy()
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        block: Matrix = (
            text[starts[rows][:, None] + np.arange(length)] if length else np.zeros((len(rows), 0), np.uint8)
        )
        hashes[rows] = _bytes(block, seeds[rows])
    return hashes


def _bytes(text: Matrix, seeds: Hashes) -> Hashes:
    """XXH64 of texts of one length, one per row."""
    length, at_byte = text.shape[1], 0
    if length >= 32:
        lanes = [seeds + _P1 + _P2, seeds + _P2, seeds.copy(), seeds - _P1]
        while at_byte + 32 <= length:
            words = [_read(text, at_byte + 8 * lane, 8) for lane in range(4)]
            lanes = [_rotated(lane + word * _P2, 31) * _P1 for lane, word in zip(lanes, words, strict=True)]
            at_byte += 32
        hashes = _rotated(lanes[0], 1) + _rotated(lanes[1], 7) + _rotated(lanes[2], 12) + _rotated(lanes[3], 18)
        for lane in lanes:
            hashes = (hashes ^ (_rotated(lane * _P2, 31) * _P1)) * _P1 + _P4
    else:
        hashes = seeds + _P5
    hashes = hashes + np.uint64(length)
    while at_byte + 8 <= length:
        hashes = _long_word(hashes, _read(text, at_byte, 8))
        at_byte += 8
    if at_byte + 4 <= length:
        hashes = _word(hashes, _read(text, at_byte, 4))
        at_byte += 4
    for place in range(at_byte, length):
        hashes = _rotated(hashes ^ (text[:, place].astype(np.uint64) * _P5), 11) * _P1
    return _final(hashes)


def _read(text: Matrix, start: int, width: int) -> Hashes:
    words = np.ascontiguousarray(text[:, start : start + width])
    return words.view(np.uint64 if width == 8 else np.uint32)[:, 0].astype(np.uint64)


def _long_word(hashes: Hashes, words: Hashes) -> Hashes:
    return _rotated(hashes ^ (_rotated(words * _P2, 31) * _P1), 27) * _P1 + _P4


def _word(hashes: Hashes, words: Hashes) -> Hashes:
    return _rotated(hashes ^ (words * _P1), 23) * _P2 + _P3


def _final(hashes: Hashes) -> Hashes:
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _P2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _P3
    return hashes ^ (hashes >> np.uint64(32))


def _rotated(words: Hashes, by: int) -> Hashes:
    return (words << np.uint64(by)) | (words >> np.uint64(64 - by))


def among(rows: pa.Table, lookup: pa.Table, key: Sequence[str]) -> pa.ChunkedArray | pa.Array:
    """A mask of the `rows` with a key among those of `lookup`. Keys have the same types in both, and no nulls."""
    if len(key) == 1:
        return pc.is_in(rows[key[0]], lookup[key[0]].combine_chunks())
    places = pa.array(np.arange(len(rows)))
    matches = rows.select(key).append_column(_PLACE, places).join(lookup.select(key), list(key), join_type="left semi")
    mask = np.zeros(len(rows), dtype=bool)
    mask[np.asarray(matches[_PLACE])] = True
    return pa.array(mask)
