"""What becomes a record, and what is refused before the decision."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.errors import InvalidPipeline, PreflightRefused, PublishBlocked, SinkRejected, TargetUnreadable
from lockstep.sinks import HttpSink, StdoutSink, TcpSink
from lockstep.sinks.append_only.records import ENVELOPE, Origin, Record, Records, check_records
from lockstep.sinks.base import Sink
from lockstep.sinks.values import Guarantee, SinkContext
from lockstep.testing import OUTPUT, SCHEMA, SealedRows, sealed
from lockstep.testing._under_test import DEPLOYMENT, epoch

ORIGIN = Origin(DEPLOYMENT, "pipe", OUTPUT, 7)
CONTEXT = SinkContext(DEPLOYMENT, "pipe", {})


def no_odd_ids(order: Mapping[str, Any]) -> str | None:
    assert "lockstep" not in order
    return f"id {order['id']} is odd" if order["id"] % 2 else None


def _past(size: int) -> int:
    """Of a record that has `size` bytes more than the shortest one."""
    return size + len(line_of({"a": ""}, 0)) - 1


def stdout(folder: Path, **arguments: Any) -> StdoutSink:
    return StdoutSink("look", output=OUTPUT, committer=str(folder / "sent"), **arguments)


def prepared(sink: Sink, *columns: tuple[str, pa.Array]) -> Mapping[str, int]:
    wal = SealedRows(pa.table(dict(columns)) if columns else sealed(4)[0].table)
    with sink.opened(CONTEXT) as live:
        live.preflight({OUTPUT: wal.schema})
        return live.prepare(epoch(), [wal]).rows


def record_of(value: Any, type: pa.DataType) -> Any:
    [record] = Records(SealedRows(pa.table({"value": pa.array([value], type)})), ORIGIN)
    return json.loads(record.line)["value"]


def test_a_record_carries_its_key_and_its_row() -> None:
    [_, record] = Records(SealedRows(pa.table({"id": [1, 2], "name": ["a", "ünï\n✓"]})), ORIGIN)
    assert record.key == f"{DEPLOYMENT}/pipe/{OUTPUT}/7/1"
    assert b"\n" not in record.line
    assert json.loads(record.line) == {
        "lockstep": {"deployment": DEPLOYMENT, "pipeline": "pipe", "output": OUTPUT, "epoch": 7, "ordinal": 1},
        "id": 2,
        "name": "ünï\n✓",
    }


def test_the_same_wal_gives_the_same_records_however_it_is_cut_into_batches() -> None:
    table = sealed(100)[0].table
    one, other = (list(Records(SealedRows(table, batch_rows=size), ORIGIN)) for size in (100, 7))
    assert one == other


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


def test_what_json_cannot_say_is_refused_before_the_decision(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for name, column in {
        "nan": pa.array([1.0, float("nan")]),
        "infinity": pa.array([float("-inf"), 1.0]),
        "nan in a list": pa.array([[1.0], [float("nan")]]),
        "a year that Python doesn't have": pa.array([0, 2**62], pa.timestamp("us")),
        "no UTF-8": pa.array([b"\xff", b""]).cast(pa.binary()).view(pa.string()),
    }.items():
        with subtests.test(name), pytest.raises(SinkRejected, match=f"output {OUTPUT}, "):
            prepared(stdout(tmp_path), ("value", column))


def test_a_record_that_is_too_long_is_refused_before_the_decision(tmp_path: Path) -> None:
    column = ("text", pa.array(["short", "x" * 1000]))
    with pytest.raises(SinkRejected, match=r"/1/1 has \d+ bytes, max_record_bytes is 500"):
        prepared(stdout(tmp_path, max_record_bytes=500), column)
    assert prepared(stdout(tmp_path), column) == {OUTPUT: 2}


def test_the_users_validator_is_asked_before_the_decision(tmp_path: Path) -> None:
    sink = stdout(tmp_path, validator=f"{__name__}:no_odd_ids")
    with pytest.raises(SinkRejected, match=r"no_odd_ids refuses record .*/1/1: id 1 is odd"):
        prepared(sink)
    assert prepared(sink, ("id", pa.array([2, 4]))) == {OUTPUT: 2}


def test_a_validator_that_is_not_there_is_found_before_any_row(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for validator in ("nowhere:at_all", f"{__name__}:nothing", "", "json"):
        sink = stdout(tmp_path, validator=validator)
        told = "give module:function"
        with subtests.test(validator), sink.opened(CONTEXT) as live, pytest.raises(InvalidPipeline, match=told):
            live.preflight(None)


def test_a_column_that_would_hide_the_key_is_refused_as_soon_as_the_schema_is_known(tmp_path: Path) -> None:
    for columns in ([("lockstep", pa.int8())], [("a", pa.int8()), ("a", pa.int8())], []):
        schema, told = pa.schema(columns), "rename" if columns else "no columns"
        with stdout(tmp_path).opened(CONTEXT) as sink, pytest.raises(PreflightRefused, match=told):
            sink.preflight({OUTPUT: schema})
        with pytest.raises(SinkRejected, match=told):
            list(Records(SealedRows(schema.empty_table()), ORIGIN))


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
    lines = [record.line for record in Records(wal, ORIGIN)]
    found = list(Records(wal, ORIGIN).chunks(count, size))
    assert [line for chunk in found for line in chunk.body.splitlines()] == lines
    assert [one for chunk in found for one in range(chunk.first, chunk.last + 1)] == list(range(len(lines)))
    for chunk, following in zip_longest(found, found[1:]):
        assert len(chunk.body.splitlines()) == chunk.count <= count
        assert chunk.count == 1 or len(chunk.body) <= size
        more = len(lines[following.first]) + 1 if following else size + 1
        assert chunk.count == count or len(chunk.body) + more > size  # as many as fit


ROW_NAMES = ("id", 'ü "name"', "paid", "at", "raw", "amount")
ROW = st.fixed_dictionaries(
    {
        "id": st.none() | st.integers(-(2**63), 2**63 - 1),
        'ü "name"': st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        "paid": st.none() | st.floats(),
        "at": st.none() | st.datetimes(),
        "raw": st.none() | st.binary(),
        "amount": st.none() | st.decimals(-(10**8), 10**8, places=2),
    }
)
TYPES = (pa.int64(), pa.string(), pa.float64(), pa.timestamp("us"), pa.binary(), pa.decimal128(12, 2))


@settings(max_examples=40)
@given(rows=st.lists(ROW, max_size=6), longest=st.integers(200, 500))
def test_records_are_those_of_one_row_after_the_other_and_their_refusals_come_before_the_decision(
    rows: list[dict[str, Any]], longest: int
) -> None:
    columns = {name: pa.array([row[name] for row in rows], type) for name, type in zip(ROW_NAMES, TYPES, strict=True)}
    wal = SealedRows(pa.table(columns))
    try:
        wanted = [line_of(row, ordinal) for ordinal, row in enumerate(wal.table.to_pylist())]
    except ValueError:  # a float that isn't finite
        wanted = None
    if wanted is None or any(len(line) > longest for line in wanted):
        with pytest.raises(SinkRejected):
            check_records(wal, ORIGIN, longest)
        with pytest.raises(SinkRejected):
            list(Records(wal, ORIGIN, longest))
    else:
        assert check_records(wal, ORIGIN, longest) == len(rows)
        assert list(Records(wal, ORIGIN, longest)) == [Record(ORIGIN.key(n), line) for n, line in enumerate(wanted)]


def line_of(row: dict[str, Any], ordinal: int) -> bytes:
    """As the first version made it."""
    words: dict[type, Any] = {
        Decimal: str,
        datetime: datetime.isoformat,
        bytes: lambda one: base64.b64encode(one).decode(),
    }
    whole = {ENVELOPE: ORIGIN.envelope(ordinal=ordinal), **row}
    told = json.dumps(
        whole, default=lambda one: words[type(one)](one), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return told.encode()


# --- what is asked of a sink -----------------------------------------------------------------------------------------


def test_every_sink_says_what_it_keeps_and_what_it_needs_for_it(subtests: pytest.Subtests) -> None:
    for kind in (StdoutSink, TcpSink, HttpSink):
        with subtests.test(kind.__name__):
            expect_arguments(kind)


def expect_arguments(kind: type) -> None:
    arguments = {} if kind is StdoutSink else {"connection": "receiver"}
    assert kind("s", output=OUTPUT, committer="postgres:ledger", **arguments).guarantee is Guarantee.AT_LEAST_ONCE
    assert kind("s", output=OUTPUT, guarantee="none", **arguments).guarantee is Guarantee.NONE
    for wrong, told in (
        ({"guarantee": "exactly_once", "committer": "sent"}, "no transactions"),
        ({"guarantee": "sometimes", "committer": "sent"}, "no transactions"),
        ({"guarantee": "none", "committer": "sent"}, "takes no committer"),
        ({}, "committer is missing"),
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


def test_a_missing_connection_is_named(tmp_path: Path) -> None:
    sink = TcpSink("feed", output=OUTPUT, connection="nowhere", committer=str(tmp_path))
    with pytest.raises(InvalidPipeline, match="'nowhere'"), sink.opened(CONTEXT):
        pass


def test_what_was_sent_cannot_be_read_back(tmp_path: Path) -> None:
    with stdout(tmp_path).opened(CONTEXT) as sink, pytest.raises(TargetUnreadable):
        sink.read(1, OUTPUT, SCHEMA)


def test_without_httpx_the_extra_is_named() -> None:
    program = "import sys; sys.modules['httpx'] = None; from lockstep.sinks import TcpSink, HttpSink"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={"PYTHONPATH": "plugins"}
    )
    assert "HttpSink needs httpx: pip install 'airflow-lockstep[http]'" in done.stderr
