"""Which Arrow type is hashed in which way: one codec for each class of types, as the table in `digest` says."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lockstep.errors import InvalidPipeline
from lockstep.wal._lanes import (
    BEYOND,
    I64,
    KEEP,
    NULL,
    TABLE,
    U64,
    Block,
    Lanes,
    bits_of,
    close,
    fold_runs,
    load_words,
    mix_lanes,
    valid_of,
    values_of,
    with_nulls,
)

_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


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
    """Strings of bytes, eight to a word, the last one filled up with zeros."""

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
        return offsets[:-1], length if valid is None else length * valid  # bytes may stand under a null

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
            left = np.repeat(length[block.runs], block.counts) - (block.positions << 3)
            words &= KEEP.take(left, mode="clip")
            return mix_lanes(words)

        return close(fold_runs((length + 7) >> 3, items), length)


@dataclass(frozen=True)
class _List:
    tag: str
    item: _Codec

    def lanes(self, array: pa.Array) -> Lanes:
        length = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        flat = array.flatten()  # leaves out what stands under nulls, outside a slice and, in views, in no list

        def items(block: Block) -> Lanes:
            return self.item.lanes(flat.slice(block.low, block.high - block.low))

        return with_nulls(array, close(fold_runs(length, items), length))


@dataclass(frozen=True)
class _Field:
    codec: _Codec
    weights: tuple[np.uint64, np.uint64]


@dataclass(frozen=True)
class StructCodec:
    """Fields by name, whatever their order; a row is a struct that is never null."""

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
    """Another way to store what `codec` takes."""

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
            raise InvalidPipeline(f"column {path + field.name!r} stands twice: rename one, columns go by their names")
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
        strange = np.isnan(values)
        if strange.any():
            values[strange] = np.nan
        return values.view(np.uint64)

    return words


def _instants(dtype: Any, factor: int) -> Callable[[pa.Array], U64]:
    if factor == 1:
        return _integers(dtype)
    limit = np.iinfo(np.int64).max // factor

    def words(array: pa.Array) -> U64:
        values = values_of(array, dtype).astype(np.int64)
        fits = (values <= limit) & (values >= -limit)
        # what has no microseconds keeps all its bits: a product that wraps would lose some
        return np.where(fits, values * factor, values ^ BEYOND).view(np.uint64)

    return words
