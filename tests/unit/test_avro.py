"""Rows as Avro in a registry's wire format: which schema they have, which they fit, and that they come back equal."""

from __future__ import annotations

import io
import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lockstep.epoch import Vote
from lockstep.errors import SinkRejected, TargetUnreadable
from lockstep.sinks.kafka._avro import AvroReaders, AvroWriter, Writers, schema_of, type_of
from lockstep.sinks.kafka._open_sink import avro_voted, shards_voted, voted_with

INSTANT = datetime(2024, 2, 3, 4, 5, 6, 789, tzinfo=UTC)
INNER = pa.struct([("t", pa.timestamp("us")), ("n", pa.int8())])
ROWS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("yes", pa.bool_()),
        ("small", pa.int16()),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("amount", pa.decimal128(38, 18)),
        ("times", pa.list_(pa.timestamp("us", "UTC"))),
        ("amounts", pa.map_(pa.string(), pa.decimal128(5, 2))),
        ("nested", pa.struct([("a", pa.int32()), ("inner", INNER)])),
        ("items", pa.list_(pa.struct([("x", pa.string())]))),
        ("instants", pa.map_(pa.string(), pa.timestamp("us", "UTC"))),
    ]
)
FULL: dict[str, Any] = {
    "id": 2**62,
    "yes": True,
    "small": -3,
    "single": 1.5,
    "double": 0.1,
    "text": "ä\0",
    "bytes": b"\x00\xff",
    "day": date(1, 1, 1),
    "at": INSTANT,
    "local": datetime(9999, 12, 31, 23, 59, 59, 999_999),
    "amount": Decimal("-12345678901234567890.123456789012345678"),
    "times": [INSTANT, None],
    "amounts": [("b", Decimal("1.25")), ("a", None)],
    "nested": {"a": 1, "inner": {"t": datetime(1969, 1, 1), "n": 7}},
    "items": [{"x": "q"}, None],
    "instants": [("k", INSTANT)],
}
NULLS: dict[str, Any] = {**dict.fromkeys(ROWS.names), "id": 0}
EMPTY: dict[str, Any] = {**NULLS, "times": [], "amounts": [], "nested": {"a": None, "inner": None}, "text": ""}


OTHER: dict[str, Any] = {**FULL, "times": [None, None, INSTANT], "amounts": [("z", None)] * 3, "items": [None]}


def structs(rows: list[dict[str, Any]], schema: pa.Schema = ROWS) -> pa.StructArray:
    """As part of a longer batch, as the rows of a WAL are."""
    others = [{name: OTHER.get(name) for name in schema.names}]
    [batch] = pa.Table.from_pylist([*others, *rows, *others], schema).combine_chunks().to_batches()
    mine = batch.slice(1, len(rows))
    return pa.StructArray.from_arrays(mine.columns, fields=list(schema))


def named(place: int) -> str:
    return f"row {place}"


def record(*fields: tuple[str, Any], **defaults: Any) -> str:
    told = [
        {"name": name, "type": kind} | ({"default": defaults[name]} if name in defaults else {})
        for name, kind in fields
    ]
    return json.dumps({"type": "record", "name": "given", "namespace": "some.where", "fields": told})


# --- a schema of rows ------------------------------------------------------------------------------------------------


def test_rows_of_every_type_come_back_equal_and_have_the_same_bytes_each_time() -> None:
    text, faults = schema_of(ROWS, "out")
    assert faults == []
    given, writer = structs([FULL, NULLS, EMPTY]), AvroWriter(7, text)
    assert list(writer.faults(given.type)) == []
    found = writer.encode(given, named)
    assert found.equals(AvroWriter(7, schema_of(ROWS, "out")[0]).encode(structs([FULL, NULLS, EMPTY]), named))
    assert {one[:5] for one in found.to_pylist()} == {b"\x00\x00\x00\x00\x07"}
    back = AvroReaders({7: text}).decode(found.to_pylist(), given.type)
    assert back.to_pylist() == given.to_pylist()
    other: Any = fastavro.schemaless_reader(io.BytesIO(found[0].as_py()[5:]), json.loads(text), None)
    assert (other["at"], other["amount"], other["day"]) == (INSTANT, FULL["amount"], FULL["day"])
    assert other["nested"]["inner"] == FULL["nested"]["inner"]


def test_what_avro_has_no_type_or_name_for_is_named(subtests: pytest.Subtests) -> None:
    cases: list[tuple[pa.Field, str]] = [
        (pa.field("a", pa.duration("us")), "a is duration"),
        (pa.field("a", pa.uint64()), "a is uint64"),
        (pa.field("a", pa.null()), "a is null"),
        (pa.field("a", pa.timestamp("ns")), "a is timestamp"),
        (pa.field("a", pa.map_(pa.int32(), pa.string())), "a is map"),
        (pa.field("a", pa.list_(pa.struct([("b", pa.decimal256(50, 2))]))), r"a\[\].b is decimal256"),
        (pa.field("a-b", pa.int32()), "a-b: names in Avro"),
        (pa.field("a", pa.struct([("ä", pa.int32())])), "a.ä: names in Avro"),
    ]
    for field, says in cases:
        with subtests.test(field=field, says=says):
            [fault] = schema_of(pa.schema([field, ("fine", pa.int32())]), "out")[1]
            assert re.search(says, fault)


def test_records_have_names_of_their_own_that_every_reader_takes() -> None:
    inner = pa.struct([("c", pa.int32())])
    rows = pa.schema([("a", pa.struct([("b", inner)])), ("a_b", inner), ("l", pa.list_(inner))])
    text, faults = schema_of(rows, "2-out")
    assert faults == []
    assert AvroWriter(1, text).takes(structs([{"a": {"b": {"c": 1}}, "a_b": {"c": 2}, "l": []}], rows))
    for name, legal in (("2-out", "_2_out"), ("string", "_string"), ("a.b", "a_b"), ("Out", "Out"), ("ä", "_")):
        texts = [schema_of(rows, name)[0], type_of(pa.field(name, pa.struct(list(rows))))[0]]
        assert [json.loads(text)["name"] for text in texts] == [legal, legal]
        assert AvroWriter(1, texts[0]).is_one()


# --- a schema that is there ------------------------------------------------------------------------------------------

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
SIDE = {"type": "enum", "name": "Side", "symbols": ["BUY", "SELL"]}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 4}
GIVEN = record(
    ("at", ["null", MILLIS]),
    ("side", SIDE),
    ("other", ["null", "some.where.Side"]),
    ("money", [MONEY, "null"]),
    ("more", "string"),
    more="m",
)
TYPES = pa.struct(
    [("at", pa.timestamp("us", "UTC")), ("side", pa.string()), ("other", pa.string()), ("money", pa.decimal128(7, 2))]
)


def given(*rows: Any) -> pa.StructArray:
    return pa.array([dict(zip(("at", "side", "other", "money"), row, strict=True)) for row in rows], TYPES)


WHOLE = INSTANT.replace(microsecond=5000)


def test_values_are_written_as_a_schema_that_is_there_has_them() -> None:
    writer = AvroWriter(300, GIVEN)
    assert list(writer.faults(TYPES)) == []
    rows = given((WHOLE, "BUY", "SELL", Decimal("1.25")), (None, "SELL", None, None))
    found = writer.encode(rows, named)
    assert AvroReaders({300: GIVEN}).decode(found.to_pylist(), TYPES).equals(rows)
    told: Any = fastavro.schemaless_reader(io.BytesIO(found[0].as_py()[5:]), json.loads(GIVEN), None)
    assert told == {"at": WHOLE, "side": "BUY", "other": "SELL", "money": Decimal("1.2500"), "more": "m"}


def test_a_value_that_doesnt_fit_is_named_by_row_and_column_and_not_quoted(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, str]] = [
        ((INSTANT, "BUY", None, None), "at"),
        ((WHOLE, None, None, None), "side"),
        ((WHOLE, "s3cret", None, None), "side"),
    ]
    for row, column in cases:
        with subtests.test(row=row, column=column):
            with pytest.raises(SinkRejected, match=f"^row 1: a value of {column} doesn't fit schema 300") as raised:
                AvroWriter(300, GIVEN).encode(given((WHOLE, "BUY", None, None), row, (None, None, None, None)), named)
            assert "s3cret" not in str(raised.value)


LONGS = {"type": "array", "items": "long"}
INNER_RECORD = {"type": "record", "name": "inner", "fields": [{"name": "b", "type": "boolean"}]}


def test_null_is_never_written_as_something_else(subtests: pytest.Subtests) -> None:
    """Neither as false nor as zero; where it may be, what stands beside it is whole."""
    cases: list[tuple[Any, pa.DataType, Any]] = [
        *[("boolean", pa.bool_(), True), ("int", pa.int32(), 1), ("double", pa.float64(), 1.5)],
        *[("string", pa.string(), "a"), ("bytes", pa.binary(), b"a"), (MONEY, pa.decimal128(5, 2), Decimal("1.25"))],
        *[(MILLIS, pa.timestamp("ms", "UTC"), WHOLE), (LONGS, pa.list_(pa.int64()), [1, 2])],
        ({"type": "map", "values": "boolean"}, pa.map_(pa.string(), pa.bool_()), [("k", True)]),
        (INNER_RECORD, pa.struct([("b", pa.bool_())]), {"b": True}),
    ]
    for kind, dtype, value in cases:
        with subtests.test(kind=kind, dtype=dtype, value=value):
            struct = pa.struct([("a", dtype)])
            rows = pa.array([{"a": None}, {"a": value}, {"a": None}], struct)
            with pytest.raises(SinkRejected, match=r"^row 0: a value of a doesn't fit"):
                AvroWriter(1, record(("a", kind))).encode(rows, named)
            both = record(("a", ["null", kind]))
            found = AvroWriter(1, both).encode(rows, named).to_pylist()
            assert AvroReaders({1: both}).decode(found, struct).equals(rows)


def test_null_within_a_value_and_a_key_that_a_map_has_twice_are_refused() -> None:
    items = {"type": "array", "items": "boolean"}
    writer = AvroWriter(1, record(("a", ["null", INNER_RECORD]), ("l", ["null", items])))
    dtype = pa.struct([("a", pa.struct([("b", pa.bool_())])), ("l", pa.list_(pa.bool_()))])
    fine = {"a": {"b": True}, "l": [True, False]}
    assert writer.takes(pa.array([fine, {"a": None, "l": None}, fine], dtype))
    for strange in ({"a": {"b": None}}, {"l": [True, None]}):
        assert not writer.takes(pa.array([fine, {**fine, **strange}], dtype))
    writer, maps = AvroWriter(1, record(("a", {"type": "map", "values": "long"}))), pa.map_(pa.string(), pa.int64())
    rows = pa.array([{"a": [("k", 1), ("l", 2)]}, {"a": [("k", 1), ("k", 2)]}], pa.struct([("a", maps)]))
    with pytest.raises(SinkRejected, match=r"^row 1: a value of a doesn't fit"):
        writer.encode(rows, named)


def test_a_schema_that_rows_dont_fit_is_told_by_column(subtests: pytest.Subtests) -> None:
    items, values = {"type": "array", "items": "int"}, {"type": "map", "values": "int"}
    unknown = {"type": "long", "logicalType": "timestamp-fortnights"}
    columns: list[tuple[Any, pa.DataType, str]] = [
        ("int", pa.int64(), "a is int64, the schema has int"),
        ("float", pa.float64(), "a is double, the schema has float"),
        ("long", pa.timestamp("us", "UTC"), "a is timestamp"),
        (MILLIS, pa.timestamp("us"), r"has long \(timestamp-millis\)"),
        (MILLIS, pa.int64(), r"has long \(timestamp-millis\)"),
        (MONEY, pa.decimal128(10, 4), r"has bytes \(decimal\)"),
        (MONEY, pa.decimal128(5, 5), r"has bytes \(decimal\)"),
        (MONEY, pa.binary(), r"has bytes \(decimal\)"),
        ({**MONEY, "type": "string"}, pa.decimal128(5, 2), r"has string \(decimal\)"),
        (unknown, pa.timestamp("us", "UTC"), r"\(timestamp-fortnights\)"),
        (["null", "int", "string"], pa.int32(), "a union of several types"),
        (items, pa.list_(pa.string()), r"a\[\] is string"),
        (values, pa.int32(), "a is int32, the schema has map"),
    ]
    cases = [(record(("a", kind)), pa.struct([("a", dtype)]), says) for kind, dtype, says in columns]
    one, two = pa.struct([("a", pa.int64())]), pa.struct([("a", pa.int64()), ("b", pa.int64())])
    cases += [
        (record(("a", "long"), ("b", "long")), one, "b is a field of the schema, without"),
        (record(("a", "long")), two, "b is no field of the schema"),
        ('"string"', one, "the schema has string"),
    ]
    for schema, dtype, says in cases:
        with subtests.test(schema=schema, dtype=dtype, says=says):
            [fault] = AvroWriter(1, schema).faults(dtype)
            assert re.search(says, fault)


def test_a_column_that_may_be_left_out_needs_no_field() -> None:
    dtype, writer = pa.struct([("k", pa.int64()), ("a", pa.int64())]), AvroWriter(1, record(("a", "long")))
    assert list(writer.faults(dtype, frozenset({"k"}))) == []
    assert writer.encode(pa.array([{"k": 1, "a": 2}], dtype), named).to_pylist() == [b"\0\0\0\0\x01\x04"]


def test_a_key_is_a_value_by_itself_and_what_no_schema_has_written_is_unreadable() -> None:
    text, faults = type_of(pa.field("k", pa.int64()))
    assert (text, faults) == ('"long"', [])
    found = AvroWriter(9, text).encode(pa.array([1, None]), named).to_pylist()
    assert found == [b"\0\0\0\0\x09\x02", None]
    readers = AvroReaders({9: text})
    assert readers.decode(found, pa.int64()).to_pylist() == [1, None]
    for data, told in ((b"\0\0\0\0\x08\x02", "no schema or no field 8"), (b"\0\0\0\0\x09", "isn't Avro of int64")):
        with pytest.raises(TargetUnreadable, match=told):
            readers.decode([data], pa.int64())


# --- votes -----------------------------------------------------------------------------------------------------------


def test_a_vote_has_the_schemas_themselves_and_older_ones_are_read_as_they_were() -> None:
    writers = Writers({"a": AvroWriter(7, '"long"'), "b": AvroWriter(8, GIVEN)}, {"a": AvroWriter(7, '"long"')})
    bare = Vote(1, None, "target")
    for shards in (None, 3):
        vote = voted_with(bare, shards=shards, avro=writers.to_text())
        assert (shards_voted(vote), Writers.of_text(avro_voted(vote) or "")) == (shards, writers)
        assert voted_with(voted_with(bare, avro=writers.to_text()), shards=shards) == vote
        assert voted_with(voted_with(bare, shards=shards), avro=writers.to_text()) == vote
    assert (voted_with(bare), shards_voted(bare), avro_voted(bare)) == (bare, None, None)
    assert voted_with(bare, shards=12).handle == "shards=12"
    assert (shards_voted(Vote(1, "shards=12", "t")), avro_voted(Vote(1, "shards=12", "t"))) == (12, None)
