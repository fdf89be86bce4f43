"""What the seal notes of a file's columns says what the footer said, and goes through JSON as it is."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep.wal.file_facts import LONGEST, ColumnFacts, FileFacts, leaves_of


def footer_of(table: pa.Table, **options: Any) -> pq.FileMetaData:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return pq.read_metadata(io.BytesIO(buffer.getvalue()))


def again(facts: FileFacts) -> FileFacts:
    bare = pa.schema([field.remove_metadata() for field in facts.schema])
    return FileFacts.from_json(json.loads(json.dumps(facts.to_json())), facts.rows, bare, leaves_of(bare))


def facts_of(values: list[Any], type: pa.DataType, **options: Any) -> ColumnFacts:
    """Of one column, as they are read from a manifest."""
    facts = FileFacts.of(footer_of(pa.table({"x": pa.array(values, type)}), **options))
    read = again(facts)
    assert (read.columns, read.offsets, read.int96) == (facts.columns, facts.offsets, facts.int96)
    [column] = read.columns
    return column


def test_bounds_of_every_type_come_back_as_they_were(subtests: pytest.Subtests) -> None:
    cases: list[tuple[list[Any], pa.DataType]] = [
        ([False, True], pa.bool_()),
        ([-(2**63), 2**63 - 1], pa.int64()),
        ([-128, 127], pa.int8()),
        ([Decimal("-9.99"), Decimal("0.01")], pa.decimal128(9, 2)),
        ([Decimal("-" + "9" * 38), Decimal("9" * 38)], pa.decimal128(38, 0)),
        ([date(1, 1, 1), date(9999, 12, 31)], pa.date32()),
        ([time(0, 0, 0, 1), time(23, 59, 59, 999999)], pa.time64("us")),
        ([datetime(1, 1, 1, 0, 0, 0, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)], pa.timestamp("us")),
        ([datetime(1969, 12, 31, 23, tzinfo=UTC), datetime(2013, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        (["", "Ünïcode ✈"], pa.string()),
        ([b"", b"\x00\xff"], pa.binary()),
        ([b"ab", b"cd"], pa.binary(2)),
    ]
    for values, type in cases:
        with subtests.test(values=values, type=type):
            found = facts_of([values[1], None, values[0]], type, row_group_size=2)
            assert (found.least, found.greatest, found.nulls, found.values) == (*values, 1, 3)
            assert found.type == type and not found.is_cut


def test_long_bounds_are_cut_and_never_to_the_same_text() -> None:
    same = "x" * LONGEST
    found = facts_of(["a", same + "bc"], pa.string())
    assert (found.least, found.greatest, found.is_cut) == ("a", same + "b", True)
    found = facts_of([same + "abc", same + "acd"], pa.string())
    assert (found.least, found.greatest, found.is_cut) == (same + "ab", same + "ac", True)
    found = facts_of([same + "a", same + "ab"], pa.string())
    assert (found.least, found.greatest, found.is_cut) == (same + "a", same + "ab", True)
    assert not facts_of([same, "a"], pa.string()).is_cut


def test_the_one_value_of_a_column_is_kept_whole_and_told_once(subtests: pytest.Subtests) -> None:
    cases: list[Any] = ["x" * 1000, b"x" * 1000, "x" * (LONGEST + 1), 7, None]
    for value in cases:
        with subtests.test(value=value):
            table = pa.table({"x": pa.array([value] * 2, pa.int64() if value is None else None)})
            found = FileFacts.of(footer_of(table, row_group_size=1))
            [column] = again(found).columns
            assert (column.least, column.greatest, column.is_cut) == (value, value, False)
            assert len(found.to_json()["columns"][0]) == 5
    schema, long = pa.schema({"x": pa.string()}), "x" * (LONGEST + 1)
    for bounds, expected in (([long, long], None), ([long], long), (["x", "x"], "x")):  # cut to the same text
        told = {"columns": [["x", 9, 2, 0, *bounds]], "offsets": [4]}
        [column] = FileFacts.from_json(told, 2, schema, leaves_of(schema)).columns
        assert (column.least, column.greatest) == (expected, expected)


def test_what_a_row_group_does_not_tell_leaves_the_column_without_bounds_and_nulls_hide_none() -> None:
    long = "x" * 5000  # beyond some 4 kB writers leave bounds out
    found = facts_of(["a", "b", long], pa.string(), row_group_size=2)
    assert (found.least, found.greatest, found.nulls) == (None, None, 0)
    found = facts_of(["a", None], pa.string(), write_statistics=False)
    assert (found.least, found.nulls, found.values) == (None, None, 2)
    found = facts_of([None, None, "b", "c"], pa.string(), row_group_size=2)
    assert (found.least, found.greatest, found.nulls) == ("b", "c", 2)
    beyond = pa.array([10**9], pa.int32()).cast(pa.date32())  # dates that Python has none of
    [column] = FileFacts.of(footer_of(pa.table({"x": beyond}))).columns
    assert (column.least, column.greatest, column.nulls) == (None, None, 0)
    for type in (pa.float16(), pa.float32(), pa.float64()):  # NaN is beyond the bounds that a footer has
        found = facts_of([1.5, float("nan"), None], type)
        assert (found.least, found.greatest, found.nulls) == (None, None, 1), type


def test_parts_of_nested_columns_are_told_apart_from_columns_of_their_name() -> None:
    table = pa.table({"a.b": [1, 2], "a": [{"b": 5}, None], "l": [[1], [2, 3]]})
    found = again(FileFacts.of(footer_of(table)))
    told = [(one.path, one.nested, one.least, one.greatest, one.values) for one in found.columns]
    assert told == [("a.b", False, 1, 2, 2), ("a.b", True, 5, 5, 2), ("l.list.element", True, 1, 3, 3)]


def test_field_ids_are_kept_and_other_metadata_is_not() -> None:
    noted = pa.field("x", pa.int64(), metadata={"PARQUET:field_id": "7"})
    table = pa.table({"x": [1]}, pa.schema([noted], metadata={"spark": "x" * 10_000}))
    facts = again(FileFacts.of(footer_of(table)))
    assert facts.schema.field("x").metadata == {b"PARQUET:field_id": b"7"} and not facts.schema.metadata
    assert "schema" not in FileFacts.of(footer_of(pa.table({"x": [1]}))).to_json()


def test_each_row_groups_place_and_old_timestamps_are_noted() -> None:
    table = pa.table({"x": pa.array([1, 2, 3], pa.timestamp("us"))})
    facts = again(FileFacts.of(footer_of(table, row_group_size=1, use_deprecated_int96_timestamps=True)))
    assert len(facts.offsets) == 3 and facts.offsets[0] == 4 and sorted(facts.offsets) == list(facts.offsets)
    assert facts.int96 == ("x",)
    empty = again(FileFacts.of(footer_of(pa.table({"x": pa.array([], pa.int64())}))))
    assert empty.rows == 0 and empty.columns[0].least is None


def test_what_is_not_facts_is_refused(subtests: pytest.Subtests) -> None:
    columns: tuple[Any, ...] = ([["x"]], [["x", 1, 1, 0]], [["x", 1, 1, 0, 1, 2, 3]], [], 1)
    schema = pa.schema({"x": pa.int64()})
    for damage in ({}, *({"columns": found, "offsets": []} for found in columns)):
        with subtests.test(damage=damage), pytest.raises((KeyError, TypeError, ValueError)):
            FileFacts.from_json(damage, 1, schema, leaves_of(schema))
