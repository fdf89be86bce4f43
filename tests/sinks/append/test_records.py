"""What becomes a record, what is refused before the decision, and what is said of an epoch in another's place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.errors import InvalidPipeline, LedgerConflict, PreflightRefused, PublishBlocked, SinkRejected
from lockstep.sinks import FunctionSink, HttpSink, StdoutSink, TcpSink
from lockstep.sinks.append_only.records import ENVELOPE, JsonRecords, Origin, check_records
from lockstep.sinks.base import Sink
from lockstep.sinks.json_rows import json_columns, json_objects, json_text, max_bytes_of
from lockstep.sinks.values import Guarantee, SinkContext, SinkEpoch
from lockstep.testing import OUTPUT, SealedRows, sealed
from lockstep.testing._under_test import DEPLOYMENT, epoch

ORIGIN = Origin(DEPLOYMENT, "pipe", OUTPUT, 7)
CONTEXT = SinkContext(DEPLOYMENT, "pipe", {})


def no_odd_ids(order: Mapping[str, Any]) -> str | None:
    assert "lockstep" not in order
    return f"id {order['id']} is odd" if order["id"] % 2 else None


def _past(size: int) -> int:
    """Of a record that has `size` bytes more than the shortest one."""
    [shortest] = JsonRecords(SealedRows(pa.table({"a": [""]})), ORIGIN)
    return size + len(shortest.line) - 1


def stdout(folder: Path, **arguments: Any) -> StdoutSink:
    return StdoutSink("look", output=OUTPUT, committer=str(folder / "sent"), **arguments)


def prepared(sink: Sink, *columns: tuple[str, pa.Array]) -> Mapping[str, int]:
    wal = SealedRows(pa.table(dict(columns)) if columns else sealed(4)[0].table)
    with sink.opened(CONTEXT) as live:
        live.preflight({OUTPUT: wal.schema})
        return live.prepare(epoch(), [wal]).rows


def record_of(value: Any, type: pa.DataType) -> Any:
    [record] = JsonRecords(SealedRows(pa.table({"value": pa.array([value], type)})), ORIGIN)
    return json.loads(record.line)["value"]


def test_a_record_carries_its_key_and_its_row() -> None:
    [_, record] = JsonRecords(SealedRows(pa.table({"id": [1, 2], "name": ["a", "ünï\n✓"]})), ORIGIN)
    assert record.key == f"{DEPLOYMENT}/pipe/{OUTPUT}/7/1"
    assert b"\n" not in record.line
    assert json.loads(record.line) == {
        "lockstep": {"deployment": DEPLOYMENT, "pipeline": "pipe", "output": OUTPUT, "epoch": 7, "ordinal": 1},
        "id": 2,
        "name": "ünï\n✓",
    }


def test_values_are_told_as_the_page_says() -> None:
    cases: list[tuple[Any, pa.DataType, Any]] = [
        (2**63 - 1, pa.int64(), 2**63 - 1),
        (Decimal("12.30"), pa.decimal128(10, 2), "12.30"),
        (b"\0\xff", pa.binary(), "AP8="),
        (date(2013, 1, 2), pa.date32(), "2013-01-02"),
        (datetime(2013, 1, 2, 3, 4, 5, 6), pa.timestamp("us", "UTC"), "2013-01-02T03:04:05.000006+00:00"),
        (datetime(2013, 1, 2, 3), pa.timestamp("us"), "2013-01-02T03:00:00"),
        (time(3, 4), pa.time64("us"), "03:04:00"),
        (timedelta(seconds=90), pa.duration("us"), 90.0),
        ([1, None], pa.list_(pa.int32()), [1, None]),
        ({"a": {"b": Decimal("1")}}, pa.struct({"a": pa.struct({"b": pa.decimal128(3)})}), {"a": {"b": "1"}}),
        ([("k", 1)], pa.map_(pa.string(), pa.int8()), [["k", 1]]),
        (None, pa.null(), None),
    ]
    assert [record_of(value, type) for value, type, _ in cases] == [told for *_, told in cases]


def test_the_users_validator_is_asked_before_the_decision(tmp_path: Path) -> None:
    sink = stdout(tmp_path, validator=f"{__name__}:no_odd_ids")
    with pytest.raises(SinkRejected, match=r"no_odd_ids refuses record .*/1/1: id 1 is odd"):
        prepared(sink)
    assert prepared(sink, ("id", pa.array([2, 4]))) == {OUTPUT: 2}
    for validator in ("nowhere:at_all", f"{__name__}:nothing", "", "json"):
        sink, told = stdout(tmp_path, validator=validator), "give module:function"
        with sink.opened(CONTEXT) as live, pytest.raises(InvalidPipeline, match=told):
            live.preflight(None)


def test_a_column_that_would_hide_the_key_is_refused_as_soon_as_the_schema_is_known(tmp_path: Path) -> None:
    for columns in ([("lockstep", pa.int8())], [("a", pa.int8()), ("a", pa.int8())], []):
        schema, told = pa.schema(columns), "rename" if columns else "no columns"
        with stdout(tmp_path).opened(CONTEXT) as sink, pytest.raises(PreflightRefused, match=told):
            sink.preflight({OUTPUT: schema})
        with pytest.raises(SinkRejected, match=told):
            list(JsonRecords(SealedRows(schema.empty_table()), ORIGIN))


def test_what_this_version_refuses_after_the_decision_stays_decided(tmp_path: Path) -> None:
    wal = sealed(4)
    with stdout(tmp_path).opened(CONTEXT) as sink:
        sink.preflight(None)
        vote = sink.prepare(epoch(), wal)
    with stdout(tmp_path, max_record_bytes=10).opened(CONTEXT) as newer:
        with pytest.raises(PublishBlocked, match="it was decided"):
            newer.publish(epoch(), vote, wal)
        assert newer.find_marker(1) is None


@settings(max_examples=40)
@given(
    sizes=st.lists(st.integers(0, 30)),
    cut=st.integers(1, 7),
    count=st.integers(1, 5),
    size=st.integers(1, 40).map(_past),
)
def test_chunks_keep_every_record_in_order_within_both_limits(
    sizes: list[int], cut: int, count: int, size: int
) -> None:
    wal = SealedRows(pa.table({"a": pa.array(["x" * one for one in sizes], pa.string())}), batch_rows=cut)
    lines = [record.line for record in JsonRecords(wal, ORIGIN)]
    found = list(JsonRecords(wal, ORIGIN).chunks(count, size))
    assert [line for chunk in found for line in chunk.body.splitlines()] == lines
    assert [one for chunk in found for one in range(chunk.first, chunk.last + 1)] == list(range(len(lines)))
    for chunk, following in zip_longest(found, found[1:]):
        assert len(chunk.body.splitlines()) == chunk.count <= count
        assert chunk.count == 1 or len(chunk.body) <= size
        more = len(lines[following.first]) + 1 if following else size + 1
        assert chunk.count == count or len(chunk.body) + more > size  # as many as fit


# --- what is asked of a sink -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [StdoutSink, TcpSink, HttpSink])
def test_every_sink_says_what_it_keeps_and_what_it_needs_for_it(kind: type) -> None:
    arguments = {} if kind is StdoutSink else {"connection": "receiver"}
    assert kind("s", output=OUTPUT, committer="postgres:ledger", **arguments).guarantee is Guarantee.AT_LEAST_ONCE
    assert kind("s", output=OUTPUT, guarantee="none", **arguments).guarantee is Guarantee.NONE
    for wrong, told in (
        ({"guarantee": "exactly_once", "committer": "sent"}, "no transactions"),
        ({"guarantee": "sometimes", "committer": "sent"}, "no transactions"),
        ({"guarantee": "none", "committer": "sent"}, "takes no committer"),
        ({}, "committer is missing"),
        ({"guarantee": "at_most_once"}, "committer is missing"),
        ({"committer": ""}, "neither a folder"),
        ({"committer": "s3://bucket/sent"}, "neither a folder"),
        ({"committer": "sent", "max_record_bytes": 0}, "above 0"),
    ):
        with pytest.raises(InvalidPipeline, match=told):
            kind("s", output=OUTPUT, **arguments, **wrong)


def test_a_relative_folder_of_records_is_frozen_as_an_absolute_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_HOME", str(tmp_path))
    spec = StdoutSink("look", output=OUTPUT, committer="out/sent").spec()
    monkeypatch.setenv("LOCKSTEP_HOME", "/elsewhere")
    assert Sink.from_spec(spec).spec() == spec
    assert spec["arguments"]["committer"] == f"{tmp_path}/out/sent"


# --- in the place of another epoch ------------------------------------------------------------------------------------

CONNECTED = SinkContext(DEPLOYMENT, "pipe", {"receiver": "http://127.0.0.1:1", "feed": "tcp://127.0.0.1:1"})
FIRST = epoch()
SECOND = epoch(2, token=20, manifest="b", replaced=[FIRST])
CALLED: list[SinkEpoch] = []


def call(batch: pa.RecordBatch, epoch: SinkEpoch) -> None:
    CALLED.append(epoch)


def publish(sink: Sink, at: SinkEpoch, wal: list[SealedRows]) -> None:
    with sink.opened(CONNECTED) as live:
        live.preflight(None)
        live.publish(at, live.prepare(at, wal), wal)


@pytest.mark.fault("N4")
def test_it_is_refused_unless_the_sink_says_send(tmp_path: Path, subtests: pytest.Subtests) -> None:
    of_function = partial(FunctionSink, function=call, guarantee="at_least_once")
    for kind in (
        StdoutSink,
        of_function,
        partial(HttpSink, connection="receiver"),
        partial(TcpSink, connection="feed"),
    ):
        of = partial(kind, "events", output=OUTPUT, committer=str(tmp_path))
        before, now = of(), of(on_restate="send")
        with subtests.test(str(before)):
            with before.opened(CONNECTED) as live, pytest.raises(PreflightRefused, match="on_restate='send'"):
                live.require_replaceable()
            with now.opened(CONNECTED) as live:
                live.require_replaceable()
            with pytest.raises(InvalidPipeline, match="'refuse' nor 'send'"):
                of(on_restate="drop")
            assert before.spec() == now.spec()
            assert Sink.from_spec(before.spec(), now.settings()) == now
    forgetful = StdoutSink("look", output=OUTPUT, guarantee="none", on_restate="send")
    with forgetful.opened(CONNECTED) as live, pytest.raises(PreflightRefused, match="guarantee='none'"):
        live.require_replaceable()


def test_each_record_names_the_epoch_whose_place_it_takes(tmp_path: Path, capsysbinary: Any) -> None:
    sink = stdout(tmp_path, on_restate="send")
    for at, rows in ((FIRST, 2), (SECOND, 3)):
        publish(sink, at, sealed(rows))
    told = [json.loads(line)["lockstep"] for line in capsysbinary.readouterr().out.splitlines() if line]
    assert [(one["epoch"], one.get("replaces"), one["ordinal"]) for one in told] == [
        *((1, None, number) for number in range(2)),
        *((2, [1], number) for number in range(3)),
    ]


def test_a_function_is_told_whose_place_its_rows_take(tmp_path: Path) -> None:
    CALLED.clear()
    for at in (FIRST, SECOND):
        settings: dict[str, Any] = {"guarantee": "at_least_once", "on_restate": "send", "committer": str(tmp_path)}
        publish(FunctionSink("own", output=OUTPUT, function=call, **settings), at, sealed(1))
    assert [[one.id for one in at.replaced] for at in CALLED] == [[], [1]]


def test_nothing_takes_the_place_of_what_was_not_sent_as_decided(tmp_path: Path) -> None:
    sink = stdout(tmp_path, on_restate="send")
    with pytest.raises(LedgerConflict, match="no marker"):
        publish(sink, SECOND, sealed(1))
    publish(sink, epoch(manifest="another life"), sealed(1))
    with pytest.raises(LedgerConflict, match="the marker of manifest"):
        publish(sink, SECOND, sealed(1))


# --- JSON, made by columns, against the same made one value after the other -------------------------------------------

EXACT = Context(prec=38)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda name: name != ENVELOPE)
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
        told = max_bytes_of(column, "test", 0)
        assert all(len(json_text(one, "test").encode()) <= told for one in column.to_pylist())
        wal = SealedRows(pa.Table.from_batches([batch]))  # pa.table would cut a name at its first NUL
        longest = max((len(record.line) for record in JsonRecords(wal, ORIGIN)), default=1)
        assert check_records(wal, ORIGIN, longest) == len(values) == len(list(JsonRecords(wal, ORIGIN, longest)))
        for send in (check_records, lambda *given: list(JsonRecords(*given))) if values else ():
            with pytest.raises(SinkRejected, match=rf"has \d+ bytes, max_record_bytes is {longest - 1}"):
                send(wal, ORIGIN, longest - 1)

    for dtype, value in VALUES.items():
        drawn = given(st.just(dtype), st.lists(st.none() | value, max_size=8), NAMES)
        with subtests.test(str(dtype)):
            settings(max_examples=20, deadline=None)(drawn(compare))()


def test_a_slice_of_a_batch_makes_its_own_objects_and_one_without_columns_empty_ones() -> None:
    batch = pa.record_batch({"a": ['"', "b\\", "c", None], "at": [datetime(2013, 1, n) for n in (1, 2, 3, 4)]}).slice(1)
    assert json_objects(batch, "test").to_pylist() == one_after_the_other(batch)
    assert json_objects(batch.select([]), "test").to_pylist() == [b"{}"] * 3


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


def test_what_json_cant_say_is_refused_before_the_decision(tmp_path: Path, subtests: pytest.Subtests) -> None:
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
                max_bytes_of(column, "output rows", 7)
            with pytest.raises(SinkRejected, match="output rows, "):
                prepared(stdout(tmp_path), ("value", column))
