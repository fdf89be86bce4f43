"""Keys are found among others' as SQL has it, whatever their type and however many columns they have."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lockstep.compute._key_hash import can_hash
from lockstep.compute._key_matching import among

_VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False]),
    (pa.int8(), [-1, 2, 3]),
    (pa.int32(), [-1, 2, 3]),
    (pa.int64(), [-(2**62), 2, 3]),
    (pa.date32(), [date(1969, 1, 1), date(2026, 1, 1), date(9999, 1, 1)]),
    (pa.timestamp("us", "UTC"), [datetime(1, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)]),
    (pa.timestamp("us"), [datetime(1, 1, 1), datetime(2026, 1, 1)]),
    (pa.decimal128(12, 2), [Decimal("-1.10"), Decimal("0.00")]),
    (pa.decimal128(38, 10), [Decimal("-1.1000000000"), Decimal("9" * 28)]),
    (pa.string(), ["", "a", "ä\0b"]),
    (pa.binary(), [b"", b"\0", b"\xff"]),
]


def test_a_key_is_found_whatever_its_type(subtests: pytest.Subtests) -> None:
    for kind, values in _VALUES:
        for columns in (1, 2):
            with subtests.test(kind=kind, values=values, columns=columns):
                assert can_hash(kind)
                key = ["k", "j"][:columns]
                rows = pa.table(
                    {"v": range(len(values)), "k": pa.array(values, kind), "j": pa.array([7] * len(values), pa.int64())}
                )
                for found in range(len(values)):
                    wanted = [values[found], values[found], None]  # repeated keys and nulls do no harm
                    others = pa.table({"j": pa.array([7, 7, None], pa.int64()), "k": pa.array(wanted, kind)})
                    assert rows.filter(among(rows, others, key))["v"].to_pylist() == [found]
                assert rows.filter(among(rows, others.slice(0, 0), key)).num_rows == 0
                assert len(among(rows.slice(0, 0), others, key)) == 0


def test_rows_keep_their_order_and_their_chunks_count_for_nothing() -> None:
    rows = pa.concat_tables([pa.table({"a": [5, 4, 3], "b": [1, 1, 1]}), pa.table({"a": [2, 5], "b": [2, 2]})])
    others = pa.concat_tables([pa.table({"a": [2], "b": [2]}), pa.table({"a": [5, 4], "b": [1, 1]})])
    assert rows.filter(among(rows, others, ["a"]))["a"].to_pylist() == [5, 4, 2, 5]
    assert rows.filter(among(rows, others, ["a", "b"])).to_pylist() == [
        {"a": 5, "b": 1},
        {"a": 4, "b": 1},
        {"a": 2, "b": 2},
    ]
