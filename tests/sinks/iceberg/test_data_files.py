"""Sealed files as data files: what readers prune by is told right, and what would hide rows is refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from operator import eq, gt, lt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import from_bytes
from pyiceberg.expressions import EqualTo, GreaterThan, LessThan
from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import (
    BucketTransform,
    TruncateTransform,
)

from lockstep.errors import InvalidPipeline, PreflightRefused
from lockstep.sinks.iceberg._columns import new_columns, parse_partition, partition_spec, schema_faults
from lockstep.sinks.iceberg._data_files import SealedDataFile, data_file, faults, unsupported_partitions
from lockstep.wal.file_facts import FileFacts, leaves_of

COLUMNS = pa.schema(
    {
        "id": pa.int64(),
        "origin": pa.string(),
        "ratio": pa.float64(),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "price": pa.decimal128(9, 2),
    }
)


def table_of(
    schema: pa.Schema = COLUMNS, partition_by: tuple[str, ...] = (), properties: dict[str, str] | None = None
) -> TableMetadata:
    fresh = assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(schema))
    spec = partition_spec(fresh, partition_by, "sink lake") if partition_by else UNPARTITIONED_PARTITION_SPEC
    return metadata_of(fresh, spec, properties)


def metadata_of(schema: Schema, spec: PartitionSpec, properties: dict[str, str] | None = None) -> TableMetadata:
    return new_table_metadata(schema, spec, UNSORTED_SORT_ORDER, "file:///nowhere", properties or {})


def rows(**changed: list[Any]) -> pa.Table:
    columns: dict[str, list[Any]] = {
        "id": [1, 2, 3],
        "origin": ["JFK", "JFK", "JFK"],
        "ratio": [0.5, float("nan"), 2.0],
        "day": [date(2013, 1, 1)] * 3,
        "at": [datetime(2013, 1, 1, hour, tzinfo=UTC) for hour in (5, 6, 7)],
        "price": [Decimal("1.50"), None, Decimal("99.99")],
        **changed,
    }
    return pa.table(columns, COLUMNS)


def sealed(folder: Path, table: pa.Table, **options: Any) -> SealedDataFile:
    path = folder / "part-0.parquet"
    pq.write_table(table, path, **options)
    return SealedDataFile(f"file://{path}", path.stat().st_size, FileFacts.of(pq.read_metadata(path)))


LONG = "x" * 5000  #: writers leave out min and max of a row group with values beyond some 4 kB


def test_bounds_and_counts_are_the_files(tmp_path: Path) -> None:
    metadata = table_of()
    found = data_file(metadata, sealed(tmp_path, rows(), row_group_size=2))
    ids = {field.name: field for field in metadata.schema().fields}

    def bounds(name: str) -> tuple[Any, Any]:
        field = ids[name]
        kind: Any = field.field_type
        return from_bytes(kind, found.lower_bounds[field.field_id]), from_bytes(
            kind, found.upper_bounds[field.field_id]
        )

    assert bounds("id") == (1, 3) and bounds("origin") == ("JFK", "JFK")
    assert bounds("price") == (Decimal("1.50"), Decimal("99.99"))
    assert found.null_value_counts[ids["price"].field_id] == 1 and found.record_count == 3
    assert 3 not in found.lower_bounds and 3 not in found.upper_bounds, "NaN is beyond them"
    assert found.value_counts[3] == 3
    assert found.file_size_in_bytes == (tmp_path / "part-0.parquet").stat().st_size
    unbound = data_file(metadata, sealed(tmp_path, rows(origin=["JFK", "JFK", LONG]), row_group_size=2))
    assert 2 not in unbound.lower_bounds and 2 not in unbound.upper_bounds, "its row would be found by no filter"
    assert 1 in unbound.lower_bounds, "other columns keep theirs"


def test_a_row_group_of_nothing_but_nulls_hides_no_bounds(tmp_path: Path) -> None:
    for origin in ([None, None, "JFK"], ["JFK", "JFK", None]):
        found = data_file(table_of(), sealed(tmp_path, rows(origin=origin), row_group_size=2))
        assert (found.lower_bounds[2], found.null_value_counts[2]) == (b"JFK", origin.count(None)), origin


def test_a_partition_is_told_by_the_files_rows(tmp_path: Path) -> None:
    expected = {"origin": "JFK", "day": 15706, "day(at)": 15706, "month(at)": 516, "year(day)": 43}
    tables, file = {text: table_of(partition_by=(text,)) for text in expected}, sealed(tmp_path, rows())
    assert {text: data_file(table, file).partition[0] for text, table in tables.items()} == expected
    assert {text: faults(table, file) for text, table in tables.items()} == {text: [] for text in expected}
    nulls = sealed(tmp_path, rows(origin=[None] * 3))
    assert faults(tables["origin"], nulls) == [] and data_file(tables["origin"], nulls).partition[0] is None


URL = "https://example.org/" + "x" * 300


def test_a_partition_may_be_a_long_text(tmp_path: Path) -> None:
    metadata, file = table_of(partition_by=("origin",)), sealed(tmp_path, rows(origin=[URL] * 3), row_group_size=2)
    assert faults(metadata, file) == []
    found = data_file(metadata, file)
    assert found.partition[0] == URL and found.lower_bounds[2] == URL[:16].encode()
    for other in ("a", URL + "y", URL[:-1] + "y"):
        file = sealed(tmp_path, rows(origin=[URL, other, URL]), row_group_size=2)
        assert faults(metadata, file), f"{other} and {URL} are several"


SEVERAL: list[tuple[str, dict[str, list[Any]]]] = [
    ("origin", {"origin": ["JFK", "LGA", "JFK"]}),
    ("origin", {"origin": ["JFK", None, "JFK"]}),
    ("hour(at)", {}),
    ("price", {"price": [Decimal("1.00")] * 2 + [Decimal("2.00")]}),
]


def test_a_file_of_several_partitions_or_without_their_statistics_is_refused_by_the_columns_name(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for text, changed in SEVERAL:
        with subtests.test(f"{text} {changed}"):
            [fault] = faults(table_of(partition_by=(text,)), sealed(tmp_path, rows(**changed)))
            assert "several partitions" in fault and text.partition("(")[2].rstrip(")") in fault
    file = sealed(tmp_path, rows(), write_statistics=["id"])
    [fault] = faults(table_of(partition_by=("day(at)",)), file)
    assert fault == "it has no statistics of the partition column at"
    assert faults(table_of(), file) == []
    file = sealed(tmp_path, rows(origin=["JFK", "JFK", LONG]), row_group_size=2)
    [fault] = faults(table_of(partition_by=("origin",)), file)
    assert fault == "it has no statistics of the partition column origin"


def test_field_ids_are_none_or_the_tables_and_int96_is_refused(tmp_path: Path) -> None:
    metadata = table_of()

    def numbered(*ids: int) -> pa.Table:
        fields = [f.with_metadata({"PARQUET:field_id": str(n)}) for f, n in zip(COLUMNS, ids, strict=True)]
        return rows().cast(pa.schema(fields))

    assert faults(metadata, sealed(tmp_path, numbered(1, 2, 3, 4, 5, 6))) == []
    [fault] = faults(metadata, sealed(tmp_path, numbered(2, 1, 3, 4, 5, 6)))
    assert fault.startswith("field ids of id, origin aren't the table's")
    [fault] = faults(metadata, sealed(tmp_path, numbered(11, 12, 13, 14, 15, 16)))
    assert "nulls" in fault
    [fault] = faults(metadata, sealed(tmp_path, rows(), use_deprecated_int96_timestamps=True))
    assert fault.startswith("at is written as INT96")


def test_nulls_in_a_required_column_are_refused(tmp_path: Path) -> None:
    required = pa.schema([field.with_nullable(field.name != "price") for field in COLUMNS])
    [fault] = faults(table_of(required), sealed(tmp_path, rows()))
    assert "price is required" in fault
    assert schema_faults(table_of(required), COLUMNS, adds=False) == []
    nested: list[tuple[pa.DataType, Any]] = [
        (pa.struct({"x": pa.int64()}), {"x": 1}),
        (pa.list_(pa.int64()), [1]),
        (pa.map_(pa.string(), pa.int64()), [("x", 1)]),
    ]
    for kind, value in nested:
        required = pa.schema([pa.field("nested", kind, nullable=False)])
        file = sealed(tmp_path, pa.table({"nested": [value, None]}, pa.schema({"nested": kind})))
        [fault] = faults(table_of(required), file)
        assert fault.startswith("column nested is required") and "non-null" in fault
        assert faults(table_of(pa.schema({"nested": kind})), file) == []
        assert faults(table_of(required), sealed(tmp_path, pa.table({"nested": [value]}, required))) == []


def test_buckets_and_truncated_values_are_refused() -> None:
    schema = assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(COLUMNS))
    transforms: list[Any] = [BucketTransform(16), TruncateTransform(2)]
    fields = [PartitionField(1, 1000 + n, transform, f"p{n}") for n, transform in enumerate(transforms)]
    assert unsupported_partitions(metadata_of(schema, PartitionSpec(*fields))) == ["bucket[16](id)", "truncate[2](id)"]
    assert unsupported_partitions(table_of(partition_by=("day(at)", "origin"))) == []
    assert unsupported_partitions(table_of(partition_by=("ratio",))) == ["identity(ratio)"]


def test_a_partition_that_has_no_meaning_is_refused(subtests: pytest.Subtests) -> None:
    for text in ("bucket(id)", "day(at", "truncate(2, id)", ""):
        with subtests.test(text), pytest.raises(InvalidPipeline, match="partition_by"):
            parse_partition(text, "sink lake")
    with pytest.raises(PreflightRefused, match="lacks"):
        table_of(partition_by=("nothing",))


def test_columns_fit_by_name_in_any_order_and_narrower_and_others_are_refused() -> None:
    assert schema_faults(table_of(), pa.schema(list(reversed(COLUMNS))), adds=False) == []
    assert schema_faults(table_of(), pa.schema(list(COLUMNS)[:2]), adds=False) == [], "the others are null"
    assert schema_faults(table_of(), COLUMNS.set(0, pa.field("id", pa.int32())), adds=False) == []
    wrong = COLUMNS.set(0, pa.field("id", pa.string())).set(4, pa.field("at", pa.timestamp("us")))
    assert schema_faults(table_of(), wrong, adds=False) == [
        "column id is string, the table has long",
        "column at is timestamp, the table has timestamptz",
    ]
    nested = pa.schema({"at": pa.list_(pa.struct({"x": pa.int64(), "y": pa.string()}))})
    assert schema_faults(table_of(nested), nested, adds=False) == []
    other = pa.schema({"at": pa.list_(pa.struct({"x": pa.int64(), "z": pa.string()}))})
    [fault] = schema_faults(table_of(nested), other, adds=False)
    assert fault.startswith("column at is")


def test_a_new_column_is_added_only_where_that_is_asked_for() -> None:
    wider = COLUMNS.append(pa.field("carrier", pa.string(), nullable=False))
    [fault] = schema_faults(table_of(), wider, adds=False)
    assert fault == "the table has no column carrier: add it, or set on_new_columns='add'"
    assert schema_faults(table_of(), wider, adds=True) == []
    assert new_columns(table_of(), wider) == pa.schema([pa.field("carrier", pa.string())])
    mapping = '[{"field-id": 1, "names": ["id", "number"]}]'
    metadata = table_of(properties={"schema.name-mapping.default": mapping})
    [fault] = schema_faults(metadata, COLUMNS.append(pa.field("number", pa.int64())), adds=True)
    assert "former name" in fault


def test_names_that_differ_by_case_alone_are_refused() -> None:
    schema = pa.schema({"id": pa.int64(), "ID": pa.int64()})
    assert any("case" in fault for fault in schema_faults(table_of(schema), schema, adds=False))
    other = COLUMNS.set(0, pa.field("ID", pa.int64()))
    assert any("case" in fault for fault in schema_faults(table_of(), other, adds=True)), "the table's own, too"


def _number(digits: str, scale: int) -> Decimal:
    return Decimal(digits).scaleb(-scale, Context(prec=60))


ODD: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (
        pa.string(),
        ["", "x" * 15 + "\ud7ffz", "x" * 15 + "\U0010ffffz", "x" * 15 + "\ue000z", "\U0010ffff" * 17],
    ),
    "bytes": (pa.binary(), [b"", b"\xff" * 17, b"a" * 15 + b"\xff\xff", b"\x80" * 20, b"\x7f" * 17]),
    "fixed": (pa.binary(4), [b"\0" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff" * 4, b"abcd"]),
    **{
        f"decimal{width}": (pa.decimal128(width, 2), [_number(text, 2) for text in ("-128", "-129", "0", *ends)])
        for width in (4, 9, 18, 19, 28, 38)
        for ends in [("-" + "9" * width, "9" * width)]
    },
    "int": (pa.int32(), [-(2**31), -1, 0, 1, 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
    "ratio": (pa.float64(), [float("nan"), -0.0, 0.0, float("-inf"), float("inf")]),
    "day": (pa.date32(), [date.min, date(1582, 10, 4), date(1969, 12, 31), date(1970, 1, 1), date.max]),
    "at": (pa.timestamp("us"), [datetime.min, datetime(1969, 12, 31, 23, 59, 59, 999999), None, None, datetime.max]),
}


@pytest.mark.fault("T8")
@pytest.mark.parametrize("apart", [False, True])
def test_every_filter_finds_odd_values_of_every_type(tmp_path: Path, apart: bool) -> None:
    all_rows = pa.table({name: pa.array(values, kind) for name, (kind, values) in ODD.items()})
    schema = _pyarrow_to_schema_without_ids(all_rows.schema)
    catalog = SqlCatalog("odd", uri=f"sqlite:///{tmp_path}/catalog", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    mapping = {"schema.name-mapping.default": assign_fresh_schema_ids(schema).name_mapping.model_dump_json()}
    table = catalog.create_table("db.odd", assign_fresh_schema_ids(schema), properties=mapping)
    with table.transaction() as change, change._append_snapshot_producer({}) as producer:
        for row in range(5) if apart else [0]:
            (folder := tmp_path / str(row)).mkdir()
            file = sealed(folder, all_rows.slice(row, 1) if apart else all_rows)
            told = json.loads(json.dumps(file.facts.to_json()))  # as the manifest has it
            facts = FileFacts.from_json(told, file.facts.rows, file.facts.schema, leaves_of(file.facts.schema))
            producer.append_data_file(data_file(table.metadata, replace(file, facts=facts)))
    for name, (_, values) in ODD.items():
        for value in (value for value in values if value is not None and value == value):
            literal = value.isoformat() if isinstance(value, date) else value
            comparisons: list[tuple[Any, Any]] = [(EqualTo, eq), (LessThan, lt), (GreaterThan, gt)]
            for compared, as_python in comparisons:
                found = table.scan(compared(name, literal), selected_fields=(name,)).to_arrow()[name].to_pylist()
                expected = [other for other in values if other is not None and as_python(other, value)]
                assert sorted(found) == sorted(expected), (name, compared, value)
    catalog.close()
