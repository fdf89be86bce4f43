"""Vectorised arithmetic on Arrow's buffers: two 64-bit hashes, the lanes, for each of many values at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Lanes = tuple[U64, U64]  #: two hashes for each value; own, writable arrays

SLICE = 1 << 15  # rows, words or elements at a time: what is at hand stays in the processor's cache
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S32 = np.uint64(27), np.uint64(30), np.uint64(32)
NULL: tuple[np.uint64, np.uint64] = (np.uint64(0xD1B54A32D192ED03), np.uint64(0x8CB92BA72F3D8DD7))
_LENGTH: tuple[np.uint64, np.uint64] = (np.uint64(0xABC98388FB8FAC03), np.uint64(0x2127599BF4325C37))
BEYOND = np.int64(0x5851F42D4C957F2D)


def mix_lanes(words: U64) -> Lanes:
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
    high, _ = mix_lanes(words)
    return high


def weights_at(positions: I64) -> Lanes:
    """Odd multipliers for places in a string or list: computed, so that no length is too long."""
    even = positions.view(np.uint64) << np.uint64(1)
    one = np.uint64(1)
    return _mix(even.copy()) | one, _mix(even | one) | one


TABLE = weights_at(np.arange(1 << 12))


def _weights(positions: I64) -> Lanes:
    if positions.max() >= len(TABLE[0]):
        return weights_at(positions)
    return TABLE[0].take(positions), TABLE[1].take(positions)


def close(lanes: Lanes, length: I64 | None = None) -> Lanes:
    """Make the sums of a fold nonlinear, so that folds of folds don't commute; `lanes` is overwritten."""
    if length is not None:
        for lane, weight in zip(lanes, _LENGTH, strict=True):
            lane += length.view(np.uint64) * weight
    return _mix(lanes[0]), _mix(lanes[1])


@dataclass(frozen=True)
class Block:
    """Items low…high of all runs laid end to end: `runs` are the runs in it, `counts` how many of its items each has,
    `positions` each item's place in its run."""

    low: int
    high: int
    runs: I64
    counts: I64
    positions: I64


def fold_runs(lengths: I64, items: Callable[[Block], Lanes]) -> Lanes:
    """Weighted sum of each run of items, a slice of items at a time, so that memory is bound for any length."""
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
    """The fixed-width values of `array` as they stand in its buffer; read-only."""
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
    """The eight bytes at each of `begin`, ascending, as little-endian words; zeros follow the end of `data`."""
    low, size = int(begin[0]), int(begin[-1] - begin[0]) + 8
    copy = np.zeros(size, np.uint8)
    copy[: len(data) - low] = data[low : low + size]
    words = np.ndarray((size - 7,), "<u8", copy, strides=(1,))
    return words[begin - low].astype(np.uint64, copy=False)
