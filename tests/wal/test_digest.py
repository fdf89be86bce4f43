"""The row digest: what it must not see, what it must see, and that it never changes unnoticed."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import random
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.errors import InvalidPipeline
from lockstep.wal import digest
from lockstep.wal import digest as codecs
from lockstep.wal import digest as lanes
from lockstep.wal.digest import DIGEST_VERSION, RowDigest, digest_batches
from tests.cases import cases

NO_ROWS = "0" * 32


def digest_of(table: pa.Table) -> str:
    return digest_batches(table.schema, table.to_batches()).hexdigest()


def of(values: Sequence[Any], dtype: pa.DataType) -> str:
    return digest_of(pa.table({"x": pa.array(values, dtype)}))


WRAP = (1 << 64) - 1
NULL = (0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7)
LENGTH = (0xABC98388FB8FAC03, 0x2127599BF4325C37)
Pair = tuple[int, int]


def mix_lanes(word: int) -> Pair:
    word = (word + 0x9E3779B97F4A7C15) & WRAP
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & WRAP
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & WRAP
    return word ^ (word >> 32), word


def weights_at(position: int) -> Pair:
    return mix_lanes(2 * position)[0] | 1, mix_lanes(2 * position + 1)[0] | 1


def fold(items: list[Pair], weights: list[Pair], length: int) -> Pair:
    sums = (sum(item[lane] * weight[lane] for item, weight in zip(items, weights, strict=True)) for lane in (0, 1))
    closed = [mix_lanes((total + length * salt) & WRAP)[0] for total, salt in zip(sums, LENGTH, strict=True)]
    return closed[0], closed[1]


def run(items: list[Pair], length: int) -> Pair:
    return fold(items, [weights_at(position) for position in range(len(items))], length)


def value_lanes(value: Any) -> Pair:
    match value:
        case None:
            return NULL
        case bool() | int():
            return mix_lanes(int(value) & WRAP)
        case float():
            return mix_lanes(struct.unpack("<Q", struct.pack("<d", value))[0])
        case str() | bytes():
            raw = value.encode() if isinstance(value, str) else value
            words = [int.from_bytes(raw[at : at + 8], "little") for at in range(0, len(raw), 8)]
            return run([mix_lanes(word) for word in words], len(raw))
        case list():
            return run([value_lanes(item) for item in value], len(value))
        case Decimal():
            unscaled = int(value.scaleb(2)) & ((1 << 128) - 1)
            return run([mix_lanes(unscaled & WRAP), mix_lanes(unscaled >> 64)], 0)
    raise AssertionError(value)


def column_weights(name: str, tag: str) -> Pair:
    raw = hashlib.blake2b(json.dumps([name, tag]).encode(), digest_size=16).digest()
    return int.from_bytes(raw[:8], "little") | 1, int.from_bytes(raw[8:], "little") | 1


def reference(table: pa.Table, tags: dict[str, str]) -> str:
    weights = [column_weights(name, tags[name]) for name in table.column_names]
    rows = [fold([value_lanes(row[name]) for name in row], weights, 0) for row in table.to_pylist()]
    return "".join(f"{sum(row[lane] for row in rows) & WRAP:016x}" for lane in (0, 1))


TAGS = {
    "i": "int",
    "u": "int",
    "f": "float",
    "b": "bool",
    "s": "string",
    "y": "binary",
    "d": "decimal:2",
    "l": "list<string>",
}
SCHEMA = pa.schema(
    {
        "i": pa.int32(),
        "u": pa.uint64(),
        "f": pa.float64(),
        "b": pa.bool_(),
        "s": pa.string(),
        "y": pa.large_binary(),
        "d": pa.decimal128(20, 2),
        "l": pa.list_(pa.string()),
    }
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ROW = st.tuples(
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, WRAP),
    st.floats(allow_nan=False),
    st.booleans(),
    TEXT,
    st.binary(max_size=40),
    st.decimals(-(10**15), 10**15, places=2),
    st.lists(st.none() | TEXT, max_size=5),
)
OPTIONAL_ROW = ROW.flatmap(lambda row: st.tuples(*(st.sampled_from([value, value, None]) for value in row)))
ROWS = st.lists(OPTIONAL_ROW, max_size=12)
quick = settings(max_examples=15, deadline=None)


def table_of(rows: Sequence[Sequence[Any]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def with_garbage_under_nulls(array: pa.Array) -> pa.Array:
    """The same values, in which every null slot of a string or a list has content, behind an offset of three."""
    filler = pa.array(["garbage, long enough for two words"] if pa.types.is_string(array.type) else [["junk", "x"]])
    filled = pa.concat_arrays([filler.cast(array.type)] * 3 + [pc.fill_null(array, filler.cast(array.type)[0])])
    valid = pa.array([True] * 3 + array.is_valid().to_pylist(), pa.bool_())
    bitmap = valid.buffers()[1]
    if pa.types.is_string(array.type):
        dirty = pa.Array.from_buffers(array.type, len(filled), [bitmap, *filled.buffers()[1:]])
    else:
        dirty = pa.Array.from_buffers(array.type, len(filled), [bitmap, filled.buffers()[1]], children=[filled.values])
    return dirty.slice(3)


@given(ROWS, st.integers(1, 9))
@quick
def test_agrees_with_the_implementation_that_goes_value_by_value(rows: list[Any], slice_size: int) -> None:
    table = table_of(rows)
    with pytest.MonkeyPatch.context() as patch:
        for module in (codecs, digest, lanes):
            patch.setattr(module, "SLICE", slice_size, raising=False)  # cuts strings and lists in their middle
        assert digest_of(table) == reference(table, TAGS)
    assert digest_of(table) == reference(table, TAGS)


@given(ROWS, st.randoms(use_true_random=False), st.integers(1, 7))
@quick
def test_order_of_rows_and_of_columns_and_batch_boundaries_do_not_matter(
    rows: list[Any], rng: random.Random, size: int
) -> None:
    table = table_of(rows)
    shuffled = table_of(rng.sample(rows, len(rows))).select(rng.sample(SCHEMA.names, len(SCHEMA.names)))
    digest = digest_batches(table.schema, shuffled.to_batches(max_chunksize=size))
    assert (digest.hexdigest(), digest.rows) == (digest_of(table), len(rows))


@given(ROWS, st.integers(0, 12), st.integers(0, 12))
@quick
def test_a_slice_is_worth_the_rows_it_shows(rows: list[Any], offset: int, length: int) -> None:
    table = table_of(rows).combine_chunks()
    for batch in table.to_batches():
        part = batch.slice(min(offset, batch.num_rows), length)
        copy = pa.RecordBatch.from_pylist(part.to_pylist(), SCHEMA)
        assert digest_batches(SCHEMA, [part]).hexdigest() == digest_batches(SCHEMA, [copy]).hexdigest()


@given(ROWS, st.integers(0, 12))
@quick
def test_merged_parts_are_worth_the_whole(rows: list[Any], cut: int) -> None:
    left, right = (digest_batches(SCHEMA, table_of(part).to_batches()) for part in (rows[:cut], rows[cut:]))
    left.merge(right)
    assert (left.hexdigest(), left.rows) == (digest_of(table_of(rows)), len(rows))


@given(ROWS)
@quick
def test_what_lies_under_nulls_does_not_matter(rows: list[Any]) -> None:
    table = table_of(rows).combine_chunks()
    dirty = table
    for name in ("s", "l"):
        clean = pa.concat_arrays(table[name].chunks) if rows else pa.array([], SCHEMA.field(name).type)
        dirty = dirty.set_column(SCHEMA.names.index(name), name, with_garbage_under_nulls(clean))
    assert dirty.to_pylist() == table.to_pylist()
    assert digest_of(dirty) == digest_of(table)


STRINGS = ["", "a", None, "eightlng", "nine long", "a" * 100, "a\0", None, "ß"]
INTS = [0, -1, None, 127, -128]
MOMENTS = [0, 1_700_000_000, None, -5]
SAME_VALUE = {
    "string": [pa.array(STRINGS, t) for t in (pa.string(), pa.large_string(), pa.string_view())]
    + [pa.array(STRINGS).dictionary_encode(), pc.run_end_encode(pa.array(STRINGS))],
    "null in the dictionary": [
        pa.array(["a", None, "a", None]),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, None], pa.int8()), pa.array(["a", None])),
    ],
    "binary": [
        pa.array([b"abc", None, b"de\0"], t) for t in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3))
    ],
    "int": [pa.array(INTS, t) for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())],
    "uint": [pa.array([0, 255, None], t) for t in (pa.uint8(), pa.int16(), pa.uint32(), pa.uint64(), pa.int64())],
    "float": [pa.array(np.array([0.5, -0.0, np.nan, np.inf], t)) for t in (np.float16, np.float32, np.float64)],
    "decimal": [
        pa.array([Decimal("-1.50"), None, Decimal("9.99")], t)
        for t in (pa.decimal128(5, 2), pa.decimal128(38, 2), pa.decimal32(5, 2), pa.decimal64(9, 2))
    ],
    "timestamp": [pa.array(MOMENTS, pa.timestamp("s")).cast(pa.timestamp(unit)) for unit in ("s", "ms", "us")],
    "instant": [
        pa.array(MOMENTS, pa.timestamp("s", "UTC")).cast(pa.timestamp(unit, zone))
        for unit, zone in (("s", "UTC"), ("ms", "America/New_York"), ("us", "+02:00"))
    ],
    "time": [
        pa.array([0, 86_399, None], pa.time32("s")).cast(t) for t in (pa.time32("s"), pa.time32("ms"), pa.time64("us"))
    ],
    "list": [
        pa.array([[1, 2], None, [3, None]], t)
        for t in (pa.list_(pa.int8()), pa.large_list(pa.int64()), pa.list_(pa.int32(), 2), pa.list_view(pa.int16()))
    ],
    "struct": [
        pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": ""}], t)
        for t in (
            pa.struct({"a": pa.int8(), "b": pa.string()}),
            pa.struct({"b": pa.large_string(), "a": pa.int64()}),
        )
    ],
}


@cases("name", SAME_VALUE)
def test_the_same_values_in_another_encoding_are_the_same(name: str) -> None:
    for cut in (0, 1):
        found = {str(array.type): digest_of(pa.table({"x": array.slice(cut)})) for array in SAME_VALUE[name]}
        assert len(set(found.values())) == 1, found
    mixed = RowDigest(pa.schema({"x": SAME_VALUE[name][0].type}))
    for array in SAME_VALUE[name]:
        mixed.update(pa.record_batch({"x": array}))
    assert mixed.rows == sum(map(len, SAME_VALUE[name]))


def test_field_metadata_and_nullability_do_not_matter() -> None:
    plain = pa.table({"x": [1, 2]})
    strict = pa.schema([pa.field("x", pa.int64(), nullable=False, metadata={"k": "v"})], metadata={"a": "b"})
    assert digest_of(plain.cast(strict)) == digest_of(plain)
    odd = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], np.uint64).view(np.float64)
    assert len({digest_of(pa.table({"x": odd[index : index + 1]})) for index in range(3)}) == 1
    empty = RowDigest(SCHEMA)
    empty.update(pa.RecordBatch.from_pylist([], SCHEMA))
    empty.merge(digest_batches(SCHEMA, []))
    assert (empty.hexdigest(), empty.rows) == (NO_ROWS, 0)
    for dtype in SCHEMA.types:
        assert of([None, None], dtype) == digest_of(pa.table({"x": pa.nulls(2, dtype)}))


DISTINCT: dict[str, tuple[list[object], pa.DataType]] = {
    "strings": ([None, "", "\0", "\0\0", "a", "a\0", "\0a", "a" * 8, "a" * 8 + "\0", "a" * 16, "b" * 16], pa.string()),
    "ints": ([None, 0, 1, -1, 2**63 - 1, -(2**63)], pa.int64()),
    "floats": ([None, 0.0, -0.0, float("nan"), float("inf"), 5e-324], pa.float64()),
    "bools": ([None, False, True], pa.bool_()),
    "decimals": ([None, Decimal(0), Decimal(1), Decimal(-1), Decimal(2**64), Decimal(1 + 2**64)], pa.decimal128(38, 0)),
    "lists": ([None, [], [None], [0], [0, 0], [None, 0], [0, None], [1, 2], [2, 1]], pa.list_(pa.int64())),
    "lists of text": ([[], [""], ["", ""], ["ab"], ["a", "b"], ["", "ab"], ["b", "a"]], pa.list_(pa.string())),
    "structs": (
        [None, {"a": None, "b": 1}, {"a": 1, "b": None}, {"a": 1, "b": 1}],
        pa.struct({"a": pa.int8(), "b": pa.int8()}),
    ),
    "seconds that have no microseconds": ([2**62, 2**61, 2**60, 0, 2**63 - 1], pa.timestamp("s")),
}


@cases("name", DISTINCT)
def test_unlike_values_are_unlike(name: str) -> None:
    values, dtype = DISTINCT[name]
    assert len({of([value], dtype) for value in values}) == len(values)


def test_classes_column_names_and_scales_are_unlike() -> None:
    kinds = [pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.time64("us"), pa.timestamp("us")]
    kinds += [pa.timestamp("us", "UTC"), pa.decimal128(5, 0), pa.decimal128(5, 1), pa.string(), pa.binary(), pa.null()]
    nulls = {of([None], dtype) for dtype in kinds}
    assert len(nulls) == len(kinds)
    assert digest_of(pa.table({"x": [1], "y": [2]})) != digest_of(pa.table({"x": [2], "y": [1]}))
    assert digest_of(pa.table({"x": [1]})) != digest_of(pa.table({"y": [1]}))


REFUSED = [pa.timestamp("ns"), pa.time64("ns"), pa.date64(), pa.duration("s"), pa.decimal256(50, 2), pa.uuid()]
REFUSED += [pa.map_(pa.string(), pa.int8()), pa.dense_union([pa.field("a", pa.int8())]), pa.month_day_nano_interval()]


@cases("dtype", REFUSED)
def test_a_type_it_cannot_take_is_refused_by_column_and_type(dtype: pa.DataType) -> None:
    with pytest.raises(InvalidPipeline) as refused:
        RowDigest(pa.schema({"fine": pa.int8(), "odd": dtype}))
    assert "'odd'" in str(refused.value) and str(dtype) in str(refused.value)
    with pytest.raises(InvalidPipeline, match=r"'s\.odd\.item'"):
        RowDigest(pa.schema({"s": pa.struct({"odd": pa.list_(dtype)})}))


def test_rows_of_other_columns_or_classes_and_columns_of_one_name_are_refused() -> None:
    digest = RowDigest(pa.schema({"x": pa.int64()}))
    for other in ({"x": [0.5]}, {"y": [1]}, {"x": [1], "y": [1]}):
        with pytest.raises(ValueError, match="cast them"):
            digest.update(pa.record_batch(other))
        with pytest.raises(ValueError, match="cast them"):
            digest.merge(RowDigest(pa.record_batch(other).schema))
    assert digest.rows == 0
    with pytest.raises(InvalidPipeline, match="'x' is duplicated"):
        RowDigest(pa.schema([("x", pa.int8()), ("x", pa.int8())]))


PINNED: dict[str, tuple[pa.Array, str]] = {
    "int": (pa.array([1, None, -7], pa.int32()), "9933ebfda86305d114cc2cef2afb868f"),
    "float": (pa.array([1.5, None, float("nan"), -0.0]), "2a099f37360a7b2b5f7a6b973577c1c4"),
    "bool": (pa.array([True, None, False]), "869ad0c3cd72642348864325f10296d5"),
    "string": (pa.array(["", None, "JFK", "a text of more than eight bytes"]), "209db1e4b6d53784e5a7ad651ea87d5f"),
    "binary": (pa.array([b"\0", b"\0\0"]), "39c12be25019f56c72c4d42e1d2b6396"),
    "decimal": (pa.array([Decimal("12.34"), None, Decimal("-0.01")]), "68cd6206fbee793cc8cfff8555661544"),
    "date": (pa.array([dt.date(2013, 1, 14), None]), "d89ed785bc0a23d05e79f42717b358e1"),
    "time": (pa.array([dt.time(5, 17, 0, 1), None]), "3c3b00d3295614489399fcb1503b7e83"),
    "timestamp": (pa.array([dt.datetime(2013, 1, 1, 5, 17), None]), "f75aeace3d3657b924facd91e36e7693"),
    "instant": (pa.array([dt.datetime(2013, 1, 1, 5, 17, tzinfo=dt.UTC), None]), "6970e749896f313363b1bb13b7db433e"),
    "list": (pa.array([["a", None], [], None]), "606a0bfaadeece3e42f2e70624874f26"),
    "struct": (pa.array([{"b": 1, "a": "x"}, None]), "02c2f7db2871e2b2a14c915b4d94ee0b"),
    "null": (pa.array([None]), "79d3be4df3bcea6824ab27db4c28d912"),
}


@cases("name", PINNED)
def test_pinned_digests_stand_as_long_as_the_version_stands(name: str) -> None:
    array, expected = PINNED[name]
    assert (DIGEST_VERSION, digest_of(pa.table({"x": array}))) == (1, expected)
