"""Rows as JSON objects, made by columns, against the same made one value after the other."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.errors import SinkRejected
from lockstep.sinks.json_rows import json_columns, json_objects, json_text, most_bytes

EXACT = Context(prec=38)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TIMES = st.datetimes() | st.datetimes().map(lambda one: one.replace(microsecond=0))
IN_A_ZONE = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint8(): st.integers(0, 255),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"])) | st.text('\0\n"\\\x7f\u2028é'),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-1e9, 1e9).map(lambda one: round(one, 2)),
    pa.float16(): st.floats(allow_nan=False, allow_infinity=False, width=16).map(np.float16),
    pa.float32(): st.floats(allow_nan=False, allow_infinity=False, width=32),
    pa.date32(): st.dates(),
    pa.timestamp("us"): TIMES,
    pa.timestamp("us", "UTC"): TIMES.map(lambda one: one.replace(tzinfo=UTC)),
    pa.timestamp("s", "UTC"): TIMES.map(lambda one: one.replace(microsecond=0, tzinfo=UTC)),
    pa.timestamp("ms"): TIMES.map(lambda one: one.replace(microsecond=one.microsecond // 1000 * 1000)),
    pa.timestamp("us", "Europe/Paris"): IN_A_ZONE.map(lambda one: one.replace(tzinfo=UTC)),
    pa.decimal128(20, 4): st.decimals(-(10**15), 10**15, places=4),
    pa.decimal128(38, 38): st.integers(1 - 10**38, 10**38 - 1).map(lambda one: Decimal(one).scaleb(-38, EXACT)),
    pa.decimal128(38): st.integers(1 - 10**38, 10**38 - 1).map(Decimal),
    pa.binary(): st.binary(),
    pa.time64("us"): st.times(),
    pa.duration("us"): st.timedeltas(timedelta(-1000), timedelta(1000)),
    pa.list_(pa.string()): st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
    pa.null(): st.none(),
}


def one_after_the_other(batch: pa.RecordBatch) -> list[bytes]:
    return [json_text(row, "test").encode() for row in batch.to_pylist()]


def test_columns_make_the_same_objects_as_rows_and_tell_enough_bytes(subtests: pytest.Subtests) -> None:
    def compare(dtype: pa.DataType, values: list[Any], name: str) -> None:
        column = pa.array(values, dtype)
        batch = pa.record_batch({name: column, "ü": pa.array([None] * len(values), pa.string())})
        assert json_objects(batch, "test").to_pylist() == one_after_the_other(batch)
        told = most_bytes(column, "test", 0)
        assert all(len(json_text(one, "test").encode()) <= told for one in column.to_pylist())

    for dtype, value in VALUES.items():
        drawn = given(st.just(dtype), st.lists(st.none() | value, max_size=8), NAMES)
        with subtests.test(str(dtype)):
            settings(max_examples=20, deadline=None)(drawn(compare))()


def test_a_slice_of_a_batch_makes_its_own_objects() -> None:
    batch = pa.record_batch({"a": ['"', "b\\", "c", None], "at": [datetime(2013, 1, n) for n in (1, 2, 3, 4)]}).slice(1)
    assert json_objects(batch, "test").to_pylist() == one_after_the_other(batch)


def test_what_was_made_by_columns_is_read_back() -> None:
    columns = {
        "id": [1, None],
        "name": ['a "quote"\n', None],
        "day": [date(2013, 1, 2), None],
        "at": [datetime(2013, 1, 2, 3, tzinfo=UTC), None],
        "amount": [Decimal("1.50"), None],
    }
    batch = pa.record_batch(columns)
    found = json_columns(json_objects(batch, "test").to_pylist(), batch.schema)
    assert {name: column.to_pylist() for name, column in found.items()} == columns


def test_rows_without_columns_are_empty_objects() -> None:
    batch = pa.record_batch({"a": [1, 2]}).select([])
    assert [json.loads(one) for one in json_objects(batch, "test").to_pylist()] == [{}] * batch.num_rows


def test_what_json_cant_say_is_refused(subtests: pytest.Subtests) -> None:
    told = r"^output rows, (row|the rows from) [78]"
    columns = {
        "nan": pa.array([1.0, float("nan")]),
        "infinity": pa.array([float("inf")]),
        "no UTF-8": pa.array([b"\xff"], pa.binary()).view(pa.string()),
        "a day above year 9999": pa.array([3_000_000], pa.date32()),
        "an instant above it": pa.array([2**55], pa.timestamp("s", "UTC")),
        "the first instant above it": pa.array([253_402_300_800_000_000], pa.timestamp("us")),
        "nan in a list": pa.array([[1.0], [float("nan")]]),
    }
    for name, column in columns.items():
        with subtests.test(name):
            with pytest.raises(SinkRejected, match=told):
                json_objects(pa.record_batch({"a": column}), "output rows", 7)
            with pytest.raises(SinkRejected, match=told):
                most_bytes(column, "output rows", 7)
