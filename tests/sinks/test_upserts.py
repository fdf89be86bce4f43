"""What every upserting sink has in common: its arguments, the columns it needs, and the order of its rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from lockstep.epoch import Interval
from lockstep.errors import InvalidPipeline, SinkRejected
from lockstep.sinks.tables.upserts import Upserts
from lockstep.sinks.values import SinkEpoch
from lockstep.testing._sealed_rows import SealedRows
from lockstep.testing._under_test import epoch

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string(), "version": pa.int32(), "gone": pa.bool_()})
DAY = Interval(datetime(2013, 1, 2, tzinfo=UTC), datetime(2013, 1, 3, tzinfo=UTC))


def upserts(**arguments: Any) -> Upserts:
    given = {"mode": "upsert", "key": ["id"], "order": None, "deleted": None, **arguments}
    found = Upserts.of("sink", ["rows"], **given)
    assert found is not None
    return found


def orders(given: Upserts, table: pa.Table, at: SinkEpoch) -> list[int]:
    stored = given.stored(SealedRows(table), at)
    return [order for batch in stored for order in batch.column("lockstep_order").to_pylist()]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"mode": "merge"}, "neither 'append' nor 'upsert'"),
    ({"mode": "append"}, "need mode='upsert'"),
    ({"key": None}, "needs key"),
    ({"key": "id"}, "needs key"),
    ({"key": []}, "needs key"),
    ({"key": ["id", "id"]}, "each column once"),
    ({"key": {"other": ["id"]}}, "the outputs are"),
    ({"order": "newest"}, "column:<name>"),
    ({"order": "column:"}, "column:<name>"),
    ({"order": "column:id"}, "part of the key"),
    ({"deleted": "id"}, "part of the key"),
    ({"key": ["lockstep_order"]}, "part of the key"),
    ({"order": "column:gone", "deleted": "gone"}, "at once"),
]


def test_a_wrong_definition_is_refused_at_once(subtests: pytest.Subtests) -> None:
    for arguments, told in WRONG:
        with subtests.test(str(arguments)), pytest.raises(InvalidPipeline, match=told):
            upserts(**arguments)


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"key": ["none"]}, "none: the output lacks it"),
    ({"order": "column:none"}, "none: the output lacks it"),
    ({"key": ["ratio"]}, "ratio: double can't be a key"),
    ({"order": "column:name"}, "name: string can't be the order"),
    ({"order": "column:big"}, "big: uint64 can't be the order"),
    ({"deleted": "version"}, "version: int32 can't say what is deleted"),
    ({"key": ["name"]}, "lockstep_order: the sink fills it"),
]


def test_an_output_that_cant_be_upserted_is_named_by_column(subtests: pytest.Subtests) -> None:
    odd = [("ratio", pa.float64()), ("big", pa.uint64()), ("lockstep_order", pa.int64())]
    schema = pa.schema([*SCHEMA, *(pa.field(*field) for field in odd)])
    for arguments, fault in FAULTS:
        with subtests.test(str(arguments)):
            assert fault in "; ".join(upserts(**arguments).faults("rows", schema))


def test_the_order_is_the_intervals_end_else_the_epochs_number_or_what_the_user_names() -> None:
    table = pa.table({"id": [1, 2], "version": [7, 9], "day": [date(1970, 1, 3)] * 2, "at": [DAY.start] * 2})
    of_interval, of_cursor = replace(epoch(5), interval=DAY), epoch(6)
    end = int(DAY.end.timestamp()) * 1_000_000
    assert orders(upserts(), table, of_interval) == [end, end]
    assert orders(upserts(), table, of_cursor) == [6, 6]
    assert orders(upserts(order="epoch"), table, of_interval) == [5, 5]
    assert orders(upserts(order="column:version"), table, of_interval) == [7, 9]
    assert orders(upserts(order="column:day"), table, of_cursor) == [2, 2]
    assert orders(upserts(order="column:at"), table, of_cursor) == [int(DAY.start.timestamp()) * 1_000_000] * 2
    with pytest.raises(InvalidPipeline, match="has no interval"):
        upserts(order="interval_end").order_of(of_cursor)


def test_a_row_without_key_order_or_deleted_is_refused() -> None:
    row: dict[str, Any] = {"id": [1, 2], "name": [None, None], "version": [1, 2], "gone": [True, False]}
    given = upserts(order="column:version", deleted="gone")
    assert orders(given, pa.table(row, SCHEMA), epoch()) == [1, 2]
    for column in ("id", "version", "gone"):
        with pytest.raises(SinkRejected, match=f"column {column} has 1 nulls"):
            orders(given, pa.table(row | {column: [row[column][0], None]}, SCHEMA), epoch())
