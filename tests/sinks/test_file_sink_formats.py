"""FileSink's formats: the same rows give the same bytes, every value comes back, what can't is refused by column."""

from __future__ import annotations

import hashlib
import math
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pa_json
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockstep.errors import PreflightRefused, SinkRejected
from lockstep.sinks.base import Sink
from lockstep.sinks.files import FileSink, files
from lockstep.sinks.files import _format as file_format
from lockstep.sinks.files._format import (
    BYTES_PER_FILE,
    ROWS_PER_FILE,
    FileFormat,
    RowGroups,
    read_rows,
    unsupported,
    without_metadata,
    write_files,
)
from lockstep.sinks.files._target import PublishedFile
from lockstep.sinks.values import SinkContext
from lockstep.testing._sealed_rows import OUTPUT, SealedRows, table
from lockstep.testing._under_test import DEPLOYMENT, epoch
from lockstep.wal.digest import digest_batches

FORMATS = [FileFormat.PARQUET, FileFormat.CSV, FileFormat.JSON]
AS_TEXT = [FileFormat.CSV, FileFormat.JSON]


def written(folder: Path, format: FileFormat, rows: SealedRows, name: str = "") -> list[PublishedFile]:
    schema = without_metadata(rows.schema)
    return list(write_files(folder, lambda number: f"{name or number}.{format}", format, schema, [("", rows)]))


def hashes(folder: Path, format: FileFormat, rows: SealedRows) -> list[tuple[int, str]]:
    folder.mkdir()
    facts = written(folder, format, rows)
    assert [hashlib.sha256((folder / fact.name).read_bytes()).hexdigest() for fact in facts] == [
        f.sha256 for f in facts
    ]
    return [(fact.rows, fact.sha256) for fact in facts]


def test_the_same_rows_give_the_same_bytes_however_they_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_format, "ROWS_PER_GROUP", 1 << 12)
    rows = table(10_000)
    for format in FORMATS:
        cuts = [hashes(tmp_path / f"{format}{cut}", format, SealedRows(rows, cut)) for cut in (4096, 100, 4999)]
        assert cuts[0] == cuts[1] == cuts[2], format
    told = SealedRows(rows.replace_schema_metadata({"writer": "somebody", "at": "some time"}), 4096)
    assert hashes(tmp_path / "told", FileFormat.PARQUET, told) == hashes(
        tmp_path / "bare", FileFormat.PARQUET, SealedRows(rows, 4096)
    )


def group_sizes(rows: pa.Table, batch_rows: int, most: int, size: int) -> list[int]:
    groups = RowGroups(rows.to_batches(batch_rows), without_metadata(rows.schema), most, size)
    return [found.num_rows for found in iter(lambda: groups.take(most), None)]


def test_wide_rows_make_short_groups_however_they_are_cut() -> None:
    wide = pa.table({"text": ["x" * 1000] * 100})
    for batch_rows in (1, 7, 10, 100):
        found = [group_sizes(wide, batch_rows, most, size) for most, size in ((1000, 20_000), (15, 20_000), (15, 1))]
        assert found == [[20] * 5, [15] * 6 + [10], [1] * 100], batch_rows


def test_files_are_rolled_by_rows_and_by_bytes(tmp_path: Path) -> None:
    rows = table(10_000)
    for number, (max_rows, max_bytes) in enumerate(((999, BYTES_PER_FILE), (ROWS_PER_FILE, 10_000))):
        folder = tmp_path / str(number)
        folder.mkdir()
        schema, buckets = without_metadata(rows.schema), [("", SealedRows(rows))]
        limits: dict[str, Any] = {"max_rows": max_rows, "max_bytes": max_bytes}
        facts = list(write_files(folder, "{}.json".format, FileFormat.JSON, schema, buckets, **limits))
        assert sum(fact.rows for fact in facts) == 10_000
        assert all(fact.rows <= max_rows and fact.bytes < 2 * max_bytes for fact in facts)
        assert all(fact.rows == max_rows or fact.bytes >= max_bytes for fact in facts[:-1])
        assert len(facts) > 10


_NAIVE = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59))
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ['""', '"', "\r\n", "\n", " ", "NULL"]
)
_VALUES = {
    "i8": (pa.int8(), st.integers(-128, 127)),
    "i64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "u64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "f32": (pa.float32(), st.floats(width=32, allow_nan=False, allow_infinity=False)),
    "f64": (pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    "text": (pa.string(), _TEXT),
    "large": (pa.large_string(), _TEXT),
    "ok": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    "naive": (pa.timestamp("us"), _NAIVE),
    "millis": (pa.timestamp("ms"), _NAIVE.map(lambda at: at.replace(microsecond=0))),
    "utc": (pa.timestamp("us", "UTC"), _NAIVE.map(lambda at: at.replace(tzinfo=UTC))),
    "zoned": (
        pa.timestamp("us", "America/New_York"),
        st.datetimes(datetime(1950, 1, 1), datetime(2037, 1, 1)).map(lambda at: at.replace(tzinfo=UTC)),
    ),
    "money": (pa.decimal128(18, 3), st.decimals(-(10**12), 10**12, places=3)),
}
_ROW = st.fixed_dictionaries({name: st.none() | values for name, (_, values) in _VALUES.items()})
_SCHEMA = pa.schema({name: dtype for name, (dtype, _) in _VALUES.items()})


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(rows=st.lists(_ROW, min_size=1, max_size=8))
def test_every_value_comes_back(tmp_path: Path, rows: list[dict[str, object]]) -> None:
    for format in FORMATS:
        _comes_back(tmp_path, format, pa.Table.from_pylist(rows, _SCHEMA))


def _comes_back(folder: Path, format: FileFormat, rows: pa.Table) -> None:
    assert unsupported(format, rows.schema) == []
    (fact,) = written(folder, format, SealedRows(rows), f"{len(list(folder.iterdir()))}")
    with (folder / fact.name).open("rb") as file:
        found = list(read_rows(format, file, rows.schema))
    assert all(batch.schema == rows.schema for batch in found)
    back, sent = digest_batches(rows.schema, found), digest_batches(rows.schema, rows.to_batches())
    assert (back.rows, back.hexdigest()) == (sent.rows, sent.hexdigest())


def test_odd_values_come_back_where_they_are_not_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    floats = [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308, None]
    dtype = pa.struct({"name": pa.string(), "sums": pa.list_(pa.float64())})
    structs = [{"name": "a", "sums": [1.5, None]}, {"name": None, "sums": []}, None, {"name": "", "sums": None}]
    moments = [[datetime(2013, 1, 1, tzinfo=UTC), None], [], None] * 2
    nested = {
        "structs": pa.array([[one] for one in structs] + [None, []], pa.list_(dtype)),
        "moments": pa.array(moments, pa.list_(pa.timestamp("us", "UTC"))),
    }
    parquets = {
        "binary": pa.array([b"\0\xff", None, b""]),
        "time": pa.array([1, None, 86_399_999_999], pa.time64("us")),
        "word": pa.array(["a", None, "a"]).dictionary_encode(),
    }
    numbers = {"f64": pa.array(floats), "f32": pa.array(floats, pa.float64()).cast(pa.float32())}
    for formats, columns in (
        ((FileFormat.PARQUET, FileFormat.CSV), numbers),
        ((FileFormat.PARQUET, FileFormat.JSON), {"text": pa.array([None, "", None, "x", ""])}),
        ((FileFormat.CSV,), {"text": pa.array([None, "", None, "x", ""]), "id": pa.array([None, 1, 2, 3, 4])}),
        ((FileFormat.PARQUET, FileFormat.JSON), nested),
        ((FileFormat.PARQUET,), parquets),
    ):
        for format in formats:
            with subtests.test(f"{format} {list(columns)}"):
                _comes_back(tmp_path, format, pa.table(columns))


def test_others_read_the_files_as_they_are(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "text": ["a", "ü"]})
    for format in FORMATS:
        written(tmp_path, format, SealedRows(rows), "rows")
    assert pq.read_table(tmp_path / "rows.parquet").equals(rows)
    assert pa_json.read_json(tmp_path / "rows.json").equals(rows)
    assert (tmp_path / "rows.csv").read_text() == '"id","text"\n1,"a"\n2,"ü"\n'
    assert (tmp_path / "rows.json").read_text() == '{"id":1,"text":"a"}\n{"id":2,"text":"ü"}\n'


def test_text_is_one_column_of_lines_without_nulls_and_line_ends(tmp_path: Path, subtests: pytest.Subtests) -> None:
    lines = pa.table({"line": ["one", "", " two ", "ünï ✓", '"'] * 100})
    assert unsupported(FileFormat.TEXT, lines.schema) == []
    _comes_back(tmp_path, FileFormat.TEXT, lines)
    assert (tmp_path / "0.text").read_text().startswith("one\n\n two \nünï ✓\n")
    for name, value in {"null": None, "newline": "two\nlines", "return": "two\rlines", "mark": "\ufeffx"}.items():
        rows = SealedRows(pa.table({"line": pa.array([value, "x"], pa.string())}))
        with subtests.test(name), pytest.raises(SinkRejected, match="a text file can't contain"):
            written(tmp_path, FileFormat.TEXT, rows, name)
    schemas: list[dict[str, pa.DataType]] = [{"a": pa.string(), "b": pa.string()}, {"a": pa.int64()}, {}]
    assert all("one column of text" in unsupported(FileFormat.TEXT, pa.schema(schema))[0] for schema in schemas)


def test_a_type_that_can_not_come_back_is_refused_by_column(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for format, dtype in (
        *((format, dtype) for format in AS_TEXT for dtype in (pa.binary(), pa.time64("us"), pa.float16(), pa.null())),
        (FileFormat.CSV, pa.list_(pa.int64())),
        (FileFormat.CSV, pa.struct({"a": pa.int64()})),
        (FileFormat.JSON, pa.list_(pa.binary())),
        (FileFormat.JSON, pa.struct({"at": pa.timestamp("us")})),
        (FileFormat.JSON, pa.map_(pa.string(), pa.int64())),
        (FileFormat.PARQUET, pa.month_day_nano_interval()),
        (FileFormat.PARQUET, pa.dense_union([pa.field("a", pa.int64())])),
    ):
        sink = FileSink("files", output=OUTPUT, path=str(tmp_path / "out"), format=str(format))
        with (
            subtests.test(f"{format} {dtype}"),
            sink.opened(SinkContext(DEPLOYMENT, "pipe", {})) as live,
            pytest.raises(PreflightRefused, match="'awkward' has the type"),
        ):
            live.preflight({OUTPUT: pa.schema({"id": pa.int64(), "awkward": dtype})})
    twice = pa.schema([("id", pa.int64()), ("id", pa.string())])
    assert unsupported(FileFormat.PARQUET, twice) == ["column 'id' occurs twice"]


@pytest.mark.fault("W7")
def test_what_has_no_text_of_its_own_gets_no_vote(tmp_path: Path, subtests: pytest.Subtests) -> None:
    years = {"early": -62_135_596_800_000_001, "late": 253_402_300_800_000_000}
    columns: dict[str, pa.Array] = {
        "day": pa.array([20_260_105], pa.date32()),
        "first day": pa.array([-719_163], pa.date32()),
    }
    columns |= {name: pa.array([at], pa.timestamp("us", "UTC")) for name, at in years.items()}
    columns |= {f"naive {name}": pa.array([at], pa.timestamp("us")) for name, at in years.items()}
    listed = pa.array([[0, years["late"]]], pa.list_(pa.timestamp("us")))
    refused = [(format, {"id": [1], "x": column}) for format in AS_TEXT for column in columns.values()]
    refused += [(FileFormat.JSON, {"id": [1], "x": listed}), (FileFormat.CSV, {"x": pa.nulls(1, pa.string())})]
    for number, (format, rows) in enumerate(refused):
        sink: Sink = FileSink("files", output=OUTPUT, path=str(tmp_path / f"{number}"), format=str(format))
        with subtests.test(f"{format} {rows}"), sink.opened(SinkContext(DEPLOYMENT, "pipe", {})) as live:
            live.preflight(None)
            with pytest.raises(SinkRejected, match=r"years 1 to 9999|empty line"):
                live.prepare(epoch(), [SealedRows(pa.table(rows))])


@pytest.mark.fault("W15")
@pytest.mark.parametrize("format", list(FileFormat))
def test_bytes_that_are_no_text_get_no_vote_in_any_format(tmp_path: Path, format: FileFormat) -> None:
    """Spark reads a STRING of Parquet as it is, and such bytes reach the sink."""
    text = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    columns = [text, pa.StructArray.from_arrays([text], ["x"])] if format is FileFormat.PARQUET else [text]
    for number, column in enumerate(columns):
        sink: Sink = FileSink("files", output=OUTPUT, path=str(tmp_path / f"{number}"), format=str(format))
        with sink.opened(SinkContext(DEPLOYMENT, "pipe", {})) as live:
            live.preflight(None)
            with pytest.raises(SinkRejected, match="UTF"):
                live.prepare(epoch(), [SealedRows(pa.table({"x": column}))])


@pytest.mark.fault("J4")
def test_json_refuses_what_is_not_a_number_before_the_decision(tmp_path: Path) -> None:
    sink: Sink = FileSink("files", output=OUTPUT, path=str(tmp_path / "out"), format="json")
    with sink.opened(SinkContext(DEPLOYMENT, "pipe", {})) as live:
        live.preflight(None)
        with pytest.raises(SinkRejected, match="can't be written"):
            live.prepare(epoch(), [SealedRows(pa.table({"ratio": [1.0, math.nan]}))])
    assert files(str(tmp_path / "out")) == []
