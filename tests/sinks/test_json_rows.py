"""Rows as JSON objects, made by columns, against the same made one value after the other."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.errors import SinkRejected
from lockstep.sinks.append_only.records import json_text
from lockstep.sinks.kafka._json_rows import json_columns, json_objects

TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint8(): st.integers(0, 255),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"])),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False),
    pa.float32(): st.floats(allow_nan=False, allow_infinity=False, width=32),
    pa.date32(): st.dates(),
    pa.timestamp("us"): TIMES,
    pa.timestamp("us", "UTC"): TIMES.map(lambda one: one.replace(tzinfo=UTC)),
    pa.timestamp("s", "UTC"): TIMES.map(lambda one: one.replace(microsecond=0, tzinfo=UTC)),
    pa.timestamp("us", "Europe/Paris"): TIMES.map(lambda one: one.replace(tzinfo=UTC)),
    pa.decimal128(20, 4): st.decimals(-(10**15), 10**15, places=4),
    pa.binary(): st.binary(),
    pa.time64("us"): st.times(),
    pa.duration("us"): st.timedeltas(timedelta(-1000), timedelta(1000)),
    pa.list_(pa.string()): st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
    pa.null(): st.none(),
}


def one_after_the_other(batch: pa.RecordBatch) -> list[bytes]:
    return [json_text(row, "test").encode() for row in batch.to_pylist()]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_columns_make_the_same_objects_as_rows(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(list(VALUES)))
    values = data.draw(st.lists(st.none() | VALUES[dtype], max_size=5))
    name = data.draw(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
    batch = pa.record_batch({name: pa.array(values, dtype), "ü": pa.array([None] * len(values), pa.string())})
    assert json_objects(batch, "test").to_pylist() == one_after_the_other(batch)


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


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.0, float("nan")]),
        pa.array([float("inf")]),
        pa.array([b"\xff"], pa.binary()).view(pa.string()),
        pa.array([3_000_000], pa.date32()),
        pa.array([2**55], pa.timestamp("s", "UTC")),
    ],
    ids=["nan", "infinity", "no UTF-8", "a day above year 9999", "an instant above it"],
)
def test_what_json_cant_say_is_refused(column: pa.Array) -> None:
    with pytest.raises(SinkRejected):
        json_objects(pa.record_batch({"a": column}), "output rows")
