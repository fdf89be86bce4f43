"""From where a file's columns come: each Parquet footer is compared with the schema, and folders' names are values."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep.definition.ddl import Field
from lockstep.errors import BadRecords
from lockstep.sources import FileSource
from lockstep.sources.files._columns import columns_of_folders, header_of
from tests.spark.pipelines import pipeline_of
from tests.spark.staged import Staged, stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Files = Mapping[str, Mapping[str, Any]]
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
UTC_MICROS = pa.timestamp("us", "UTC")
NANOS = pa.array([1_767_614_400_000_000_001], pa.timestamp("ns", "UTC"))
NANOS_IN_A_LIST = pa.ListArray.from_arrays([0, 1], NANOS)


def staged(spark: SparkSession, folder: Path, files: Files, schema: str | None, **settings: Any) -> Staged:
    for name, columns in files.items():
        path = folder / "2013" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), path, use_deprecated_int96_timestamps=name == "int96")
    pattern = f"{folder}/{{interval_start:%Y}}/**/*.parquet"
    return stage(spark, folder, pipeline_of(FileSource(pattern, format="parquet", schema=schema, **settings)))


#: what a file has, as what it is declared, what is read
HELD: list[tuple[Any, str, Any]] = [
    (pa.array([7], pa.int32()), "DECIMAL(12,2)", Decimal("7.00")),
    (pa.array([0.5], pa.float32()), "DOUBLE", 0.5),
    (pa.array([2**31], pa.uint32()), "BIGINT", 2**31),
    (pa.array([127], pa.int32()), "TINYINT", 127),
    (pa.array([2**63 - 1], pa.uint64()), "BIGINT", 2**63 - 1),
    ([3.0], "INT", 3),
    ([b"\xc3\xa9"], "STRING", "é"),
    (pa.array([[1]], pa.large_list(pa.int64())), "ARRAY<BIGINT>", [1]),
    (pa.array([{"b": 1, "a": "x", "c": 2}]), "STRUCT<a: STRING, b: BIGINT>", {"a": "x", "b": 1}),
    (pa.nulls(1), "STRING", None),
    (pa.nulls(1), "ARRAY<INT>", None),
    (pa.array([None], pa.float64()), "DATE", None),
    (pa.array([NOON], pa.timestamp("ns", "UTC")), "TIMESTAMP", NOON),
    (pa.array(["x"], pa.string_view()), "STRING", "x"),
    (pa.array([b"x"], pa.binary_view()), "BINARY", b"x"),
    (pa.array([["x"]], pa.list_(pa.string_view())), "ARRAY<STRING>", ["x"]),
    (pa.array([[1]], pa.list_view(pa.int64())), "ARRAY<BIGINT>", [1]),
    (pa.array([[None, None]], pa.list_(pa.null())), "ARRAY<STRING>", [None, None]),
    (pa.array([[]], pa.list_(pa.null())), "ARRAY<STRUCT<a: INT>>", []),
    (pa.array([1_000_000_001], pa.duration("ns")), "BIGINT", 1_000_000_001),
    (pa.array([NOON], pa.timestamp("ms", "UTC")), "TIMESTAMP COMMENT 'unit=milliseconds'", NOON),
    (pa.array([b"\xff" * 16], pa.uuid()), "BINARY", b"\xff" * 16),
]
READ: dict[str, tuple[Files, str | None, list[dict[str, Any]]]] = {
    "a column that one of two files has": (
        {"a": {"ID": [1]}, "b": {"id": [2], "note": ["x"]}},
        "id BIGINT, note STRING",
        [{"id": 1, "note": None}, {"id": 2, "note": "x"}],
    ),
    "other types that hold the values": (
        {"a": {f"c{number}": column for number, (column, _, _) in enumerate(HELD)}},
        ", ".join(f"c{number} {kind}" for number, (_, kind, _) in enumerate(HELD)),
        [{f"c{number}": value for number, (_, _, value) in enumerate(HELD)}],
    ),
    "whole nanoseconds beside nested types, and texts of two sizes": (
        {
            letter: {
                "at": pa.array([NOON], pa.timestamp("ns", "UTC")),
                "all": pa.array([[{"a b": "x"}]], pa.list_(pa.struct({"a b": text}))),
                "by": pa.array([[("k", 1)]], pa.map_(text, pa.int64())),
                "name": pa.array([letter], text),
            }
            for letter, text in (("a", pa.string()), ("b", pa.large_string()))
        },
        None,
        [{"at": NOON, "all": [{"a b": "x"}], "by": [("k", 1)], "name": name} for name in "ab"],
    ),
    "texts of two sizes": (
        {"a": {"n": pa.array(["x"])}, "b": {"n": pa.array(["y"], pa.large_string())}},
        None,
        [{"n": "x"}, {"n": "y"}],
    ),
    "INT96, as Spark writes by default": (
        {"int96": {"at": pa.array([NOON], UTC_MICROS), "all": pa.array([[NOON]], pa.list_(UTC_MICROS))}},
        "at TIMESTAMP, all ARRAY<TIMESTAMP>",
        [{"at": NOON, "all": [NOON]}],
    ),
    "folders": (
        {
            "day=2026-01-05/carrier=U%2FA b+%25/x": {"id": [1], "dt": ["own"]},
            "day=__HIVE_DEFAULT_PARTITION__/carrier=DL/dt=folder/x": {"id": [2], "dt": ["own"]},
        },
        "day DATE, id BIGINT, carrier STRING, dt STRING",
        [
            {"day": date(2026, 1, 5), "id": 1, "carrier": "U/A b+%", "dt": "own"},
            {"day": None, "id": 2, "carrier": "DL", "dt": "own"},
        ],
    ),
}


@pytest.mark.tier("all")
@pytest.mark.fault("W1", "W11", "W16")
def test_every_value_is_read_as_the_file_has_it(
    session: SparkSession, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for number, (case, (files, schema, expected)) in enumerate(READ.items()):
        with subtests.test(case):
            found = staged(session, tmp_path / str(number), files, schema).rows()
            assert sorted(found, key=str) == sorted(expected, key=str)


REFUSED: dict[str, tuple[Files, str | None, str]] = {
    "a column that no file has": ({"a": {"id": [1], "remark": ["x"]}}, "id BIGINT, note STRING", "note"),
    "a column with another name in one file": (
        {"a": {"id": [1], "remark": ["x"]}, "b": {"id": [2], "note": ["y"]}},
        "id BIGINT, note STRING",
        "remark",
    ),
    "another type": ({"a": {"id": ["x"]}}, "id BIGINT", "column id is STRING"),
    "other columns without a schema": ({"a": {"id": [1]}, "b": {"id": [2], "note": ["x"]}}, None, "note"),
    "two types without a schema": ({"a": {"id": [1]}, "b": {"id": ["x"]}}, None, "schema="),
    "a UUID as text": ({"a": {"id": pa.array([b"x" * 16], pa.uuid())}}, "id STRING", "column id is .*arrow.uuid"),
    "a time of day": ({"a": {"id": pa.array([1], pa.time64("us"))}}, "id BIGINT", "id"),
    "a folder that is no number": ({"n=x/a": {"id": [1]}}, "id BIGINT, n INT", "n INT|n no INT"),
    "a folder longer than its type": ({"n=abc/a": {"id": [1]}}, "id BIGINT, n VARCHAR(2)", "VARCHAR"),
    "a folder of NULL": (
        {"n=__HIVE_DEFAULT_PARTITION__/a": {"id": [1]}},
        "id BIGINT, n STRING NOT NULL",
        "n no STRING NOT NULL",
    ),
    "a folder's column that one file has and another hasn't": (
        {"n=1/a": {"id": [1]}, "b": {"id": [2], "n": [2]}},
        "id BIGINT, n INT",
        "n=1/a.parquet has no column n, .* folder",
    ),
    "a folder's column that one of two files has": (
        {"n=1/a": {"id": [1]}, "b": {"id": [2]}},
        "id BIGINT, n INT",
        "gives column n no INT",
    ),
    "a column that is NOT NULL and one file lacks": (
        {"a": {"id": [1]}, "b": {"id": [2], "n": [2]}},
        "id BIGINT, n INT NOT NULL",
        "a.parquet has no column n",
    ),
    "nanoseconds in a list": ({"a": {"all": NANOS_IN_A_LIST}}, "all ARRAY<TIMESTAMP>", "column all is .*NANOSECONDS"),
    "nanoseconds in a list without a schema": ({"a": {"all": NANOS_IN_A_LIST}}, None, "all.*NANOSECONDS"),
    "a time beside nanoseconds": ({"a": {"at": NANOS, "of": pa.array([1], pa.time64("us"))}}, None, "of is time"),
    "a folder beyond its type": ({"n=300/a": {"id": [1]}}, "id BIGINT, n TINYINT", "TINYINT"),
}


@pytest.mark.fault("W1", "W10", "W11", "W15")
def test_a_file_that_can_not_give_a_column_is_refused_by_name(
    session: SparkSession, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for number, (case, (files, schema, named)) in enumerate(REFUSED.items()):
        with subtests.test(case), pytest.raises(BadRecords, match=named):
            staged(session, tmp_path / str(number), files, schema)


BAD: dict[str, Any] = {
    "SMALLINT": pa.array([70_000], pa.int32()),
    "BIGINT": pa.array([2**63 + 5], pa.uint64()),
    "INT": pa.array([1.5]),
    "LONG": pa.array([2.0**63]),
    "TIMESTAMP": NANOS,
    "DECIMAL(6,2)": pa.array([Decimal("123456.78")]),
    "STRING": pa.array([b"\xff"]),
}


@pytest.mark.fault("W2")
def test_a_value_that_would_change_is_a_bad_record(session: SparkSession, tmp_path: Path) -> None:
    good = {f"c{number}": pa.nulls(1, column.type) for number, column in enumerate(BAD.values())}
    files = {f"{number}": {**good, f"c{number}": column} for number, column in enumerate(BAD.values())}
    schema = ", ".join(f"c{number} {kind}" for number, kind in enumerate(BAD))
    with pytest.raises(BadRecords) as failed:
        staged(session, tmp_path / "fail", {**files, "good": good}, schema)
    assert [f"column c{number} is" in str(failed.value) for number in range(len(BAD))] == [True] * len(BAD)
    found = staged(session, tmp_path / "keep", {**files, "good": good}, schema, on_bad_records="quarantine")
    assert (len(found.rows()), found.result.sources["input"].quarantined) == (1, len(BAD))
    with pytest.raises(
        BadRecords, match=r"a\.parquet: column at is NANOSECONDS in the file, and has a value that is no TIMESTAMP"
    ):
        staged(session, tmp_path / "nanos", {"a": {"at": NANOS}}, None)


@pytest.mark.tier("all")
@pytest.mark.fault("W3")
def test_folders_give_columns_of_texts_too_unless_the_file_has_them(session: SparkSession, tmp_path: Path) -> None:
    for kind, texts in {
        "csv": ['id\n1\n""\n', 'id,"carrier"\n1,own\n,y\n'],
        "json": ['{"id": 1}\n{"id": null}\n', '{"id": 1, "carrier": "own"}\nx\n'],
    }.items():
        for text, expected in zip(texts, ["UA", "own"], strict=True):
            path = tmp_path / f"{kind}{expected}" / ("id=no" if kind == "csv" else "") / "carrier=UA" / "n o-1=3" / "x"
            path.parent.mkdir(parents=True)
            path.write_text(text)
            schema = "`n o-1` INT, id BIGINT NOT NULL, carrier VARCHAR(3) NOT NULL"
            settings: Any = {"format": kind, "schema": schema, "on_bad_records": "quarantine", "once": True}
            source = FileSource(f"{tmp_path}/{kind}{expected}/**", **settings)
            found = stage(session, tmp_path, pipeline_of(source))
            assert found.rows() == [{"n o-1": 3, "id": 1, "carrier": expected}]
            assert found.result.sources["input"].quarantined == 1


@pytest.mark.fault("W3")
@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("id,k\n1,x\n", {"HEADER": "true"}),
        ("id;K\n", {"Sep": ";"}),
        ("id\tk\n", {"sep": "\\t"}),
        ("'k','id'\n", {"quote": "'", "escape": "'"}),
        ('"id","k"\r1,x\r', {}),
        ("\ufeff\n \x00\n\nid,k\n", {}),
        ("id||k\n", {"delimiter": "||"}),
    ],
)
def test_a_header_is_read_as_the_options_say(text: str, options: dict[str, str]) -> None:
    reading = FileSource("x", schema="id BIGINT, k STRING", options=options).reading
    assert header_of(BytesIO(text.encode()), reading) == {"id", "k"}


@pytest.mark.fault("W1")
def test_a_folder_gives_an_integer_in_digits_alone() -> None:
    for text, fits in {
        "007": True,
        "-5": True,
        "+5": False,
        "0x1F": False,
        "1_0": False,
        "": False,
        "1.0": False,
    }.items():
        for kind in ("BIGINT", "INT"):
            fields, folders = [Field("k", kind)], [f"file:///x/k={text}/a.parquet"]
            with nullcontext() if fits else pytest.raises(BadRecords, match="gives column k no"):
                assert list(columns_of_folders(fields, folders)) == ["k"]


@pytest.mark.fault("W9")
def test_what_the_schema_requires_of_a_value_is_checked(session: SparkSession, tmp_path: Path) -> None:
    schema = (
        "id BIGINT NOT NULL, code VARCHAR(2), all ARRAY<STRUCT<a: CHAR(1) NOT NULL>>, by MAP<STRING, VARCHAR(1)>, "
        "n INT NOT NULL"
    )
    good: dict[str, Any] = {"id": 1, "code": "éé", "all": [{"a": "x"}], "by": {"k": "x"}, "n": 1}
    wrong: list[dict[str, Any]] = [
        *({"id": None}, {"code": "abc"}, {"all": [{"a": None}]}, {"all": [{"a": "xy"}]}, {"by": {"k": "xy"}}),
        {"n": None},
    ]
    rows = [good, {**good, "code": None, "all": None, "by": None}, *({**good, **one} for one in wrong)]
    types = {
        "id": pa.int64(),
        "code": pa.string(),
        "all": pa.list_(pa.struct({"a": pa.string()})),
        "by": pa.map_(pa.string(), pa.string()),
        "n": pa.int64(),
    }
    read = {name: pa.array([row[name] for row in rows], type) for name, type in types.items()}
    found = staged(session, tmp_path / "keep", {"a": read}, schema, on_bad_records="quarantine")
    assert [(row["code"], row["all"]) for row in found.rows()] == [("éé", [{"a": "x"}]), (None, None)]
    assert found.result.sources["input"].quarantined == len(wrong)
    for name, why in {"id": "column id is NOT NULL and has no value", "code": r"no VARCHAR\(2\)"}.items():
        bad = [row for row in rows if row[name] in (None, "abc")]
        one = {key: pa.array([row[key] for row in bad], type) for key, type in types.items()}
        with pytest.raises(BadRecords, match=why):
            staged(session, tmp_path / name, {"a": one}, schema)
    assert staged(session, tmp_path / "none", {}, schema, missing="empty").rows() == []
