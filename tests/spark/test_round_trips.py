"""What FileSink writes in any format FileSource reads back equal, or it gets no vote."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockstep.errors import SinkRejected
from lockstep.sinks.files._format import FileFormat, without_metadata, write_files
from lockstep.sources import FileSource, SourceContext
from lockstep.wal.digest import digest_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS, SECONDS = (-719_162, 2_932_896), (-62_135_596_800, 253_402_300_799)  # years 1 to 9999
TIMES = st.integers(*SECONDS).map(lambda at: at * 1_000_000 + at % 1_000_000) | st.sampled_from(
    [SECONDS[0] * 1_000_000 - 1, (SECONDS[1] + 1) * 1_000_000, 0, -1]
)
ODD = [
    "",
    " ",
    "\r\n",
    "\n",
    "\r",
    "\0",
    "\ufeff",
    "a\tb",
    "\u2028",
    '"',
    '""',
    "\\",
    '\\"',
    ",",
    "NULL",
    "null",
    "#",
    "'",
]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(ODD)
NUMBERS = st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e16])
ROWS = st.fixed_dictionaries({"a": st.none() | TEXTS, "b": st.none() | st.integers(-9, 9)})
ROW, DDL = pa.struct({"a": pa.string(), "b": pa.int64()}), "STRUCT<a: STRING, b: BIGINT>"
EVERY, NESTED = "parquet csv json", "parquet json"
#: by column: its type, as Spark's DDL has it, its values, and the formats that keep such a column
COLUMNS: dict[str, tuple[pa.DataType, str, st.SearchStrategy[Any], str]] = {
    "i8": (pa.int8(), "TINYINT", st.integers(-128, 127), EVERY),
    "i64": (pa.int64(), "BIGINT", st.integers(-(2**63), 2**63 - 1), EVERY),
    "f32": (pa.float32(), "FLOAT", st.floats(width=32), EVERY),
    "f64": (pa.float64(), "DOUBLE", NUMBERS, EVERY),
    "text": (pa.string(), "STRING", TEXTS, f"{EVERY} text"),
    "ok": (pa.bool_(), "BOOLEAN", st.booleans(), EVERY),
    "day": (pa.date32(), "DATE", st.integers(*DAYS) | st.sampled_from([-719_163, 20_260_105]), EVERY),
    "at": (pa.timestamp("us", "UTC"), "TIMESTAMP", TIMES, EVERY),
    "naive": (pa.timestamp("us"), "TIMESTAMP_NTZ", TIMES, EVERY),
    "money": (pa.decimal128(18, 3), "DECIMAL(18,3)", st.decimals(-(10**14), 10**14, places=3), EVERY),
    "tiny": (
        pa.decimal128(38, 18),
        "DECIMAL(38,18)",
        st.decimals(-(10**14), 10**14, places=18) | st.sampled_from([Decimal("0E-18"), Decimal("-1E-9")]),
        EVERY,
    ),
    "texts": (pa.list_(pa.string()), "ARRAY<STRING>", st.lists(st.none() | TEXTS, max_size=3), NESTED),
    "row": (ROW, DDL, ROWS, NESTED),
    "raw": (pa.binary(), "BINARY", st.binary(max_size=8), "parquet"),
}
OPTIONS = {"csv": {"multiLine": "true"}}


def written(folder: Path, kind: str, rows: pa.Table) -> bool:
    """Whether all rows could be written into `folder`."""
    folder.mkdir(parents=True)
    schema, batches = without_metadata(rows.schema), [("", rows.to_batches())]
    try:
        list(write_files(folder, lambda number: f"{number}.{kind}", FileFormat(kind), schema, batches))
    except SinkRejected:
        return False
    return True


@pytest.mark.tier("all")
@pytest.mark.fault("W8")
@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    rows=st.lists(
        st.fixed_dictionaries({name: st.none() | values for name, (_, _, values, _) in COLUMNS.items()}),
        min_size=20,
        max_size=60,
    ),
    alone=st.booleans(),
)
def test_what_is_written_reads_back_equal(
    session: SparkSession, tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], alone: bool
) -> None:
    for kind in ("parquet", "csv", "json", "text"):
        names = [name for name, (_, _, _, kinds) in COLUMNS.items() if kind in kinds.split()]
        names = ["text"] if alone else names
        schema = pa.schema({name: COLUMNS[name][0] for name in names})
        columns = [pa.array([row[name] for row in rows], schema.field(name).type) for name in names]
        table, folder = pa.Table.from_arrays(columns, schema=schema), tmp_path_factory.mktemp(kind)
        if not written(folder / "all", kind, table):
            each = [table.slice(number, 1) for number in range(len(table))]
            kept = [row for number, row in enumerate(each) if written(folder / f"{number}", kind, row)]
            table = pa.concat_tables(kept) if kept else table.slice(0, 0)
            assert len(table) < len(rows)
            assert written(folder / "kept", kind, table)
        ddl = ", ".join(f"{name} {COLUMNS[name][1]}" for name in names) if kind != "text" else None
        path = folder / ("kept" if (folder / "kept").exists() else "all")
        source = FileSource(f"{path}/*", format=kind, schema=ddl, options=OPTIONS.get(kind, {}))
        opened = source.open(SourceContext("pipeline", "source", lambda paths: set()))
        records = opened.read_records(session, None, opened.latest(None, None))
        assert not records.marked or records.bad().collect() == []
        found = records.good().toArrow().rename_columns(names).cast(schema)
        sent, back = (digest_batches(schema, each.to_batches()) for each in (table, found))
        if (back.rows, back.hexdigest()) != (sent.rows, sent.hexdigest()):
            assert sorted(found.to_pylist(), key=str) == sorted(table.to_pylist(), key=str), kind
