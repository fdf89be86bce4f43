"""Every Arrow type that MariaDbSink takes comes back as it went in, extremes included; every other is named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lockstep.errors import PreflightRefused, SinkRejected
from lockstep.mariadb.sql import compose
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.mariadb._types import mariadb_type
from lockstep.sinks.values import SinkContext
from lockstep.testing._sealed_rows import SealedRows
from lockstep.testing._under_test import epoch
from stack.mariadb import MariaDbServer
from tests.sinks import typed_rows
from tests.sinks.mariadb_target import execute
from tests.sinks.one_sink import context, published
from tests.sinks.postgres_target import LOCK_TIMEOUT
from tests.sinks.typed_rows import REFUSED, US, changed, digest, side_by_side

FLOATS = [0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 0.1, 1 / 3, 2.0**53 + 2, 1e23, 1e-7]
SINGLES = [0.0, 1e-45, 3.4028234663852886e38, 0.1, 16777217.0, 1 / 3]
FIRST, LAST = -62_135_596_800, 253_402_300_799  # seconds of 0001-01-01 and of the end of 9999
MOMENTS = [0, -1, 1, 1_357_000_000 * US + 1, FIRST * US, LAST * US + 999_999]
VALUES: typed_rows.Values = [
    *typed_rows.VALUES,
    (pa.string(), ["\x00"]),
    (pa.float16(), [np.float16(x) for x in (0.0, 65504.0, 6e-8, 0.1)]),
    (pa.float32(), SINGLES),
    (pa.float64(), FLOATS),
    (pa.date32(), [0, -1, -719_162, 2_932_896]),
    *[(pa.timestamp("us", zone), MOMENTS) for zone in (None, "UTC", "Europe/Berlin", "+05:30")],
]


@pytest.fixture(scope="module")
def one_database(mariadb_server: MariaDbServer) -> Iterator[str]:
    mariadb_server.start()
    yield mariadb_server.create_database("types")
    mariadb_server.drop_database("types")


@pytest.fixture
def types_dsn(one_database: str) -> str:
    """A database without tables of data and markers."""
    for table in ("types", "lockstep_marker"):
        execute(one_database, compose("DROP TABLE IF EXISTS {table}", table=table))
    return one_database


def sink_of(dsn: str, **arguments: Any) -> tuple[MariaDbSink, SinkContext]:
    given = {"tables": {"rows": "types"}, "connection": "w", "lock_timeout": LOCK_TIMEOUT, **arguments}
    sink = MariaDbSink("types", create=True, **given)
    return sink, context(dsn)


def round_trip(dsn: str, rows: pa.Table, batch_rows: int = 1000, **arguments: Any) -> pa.Table:
    return published(dsn, sink_of(dsn, **arguments)[0], rows, batch_rows)


def test_values_come_back_as_they_went_in(types_dsn: str) -> None:
    rows = side_by_side(VALUES)
    found = round_trip(types_dsn, rows)
    assert found.schema == rows.schema
    assert changed(found, rows) == {}
    assert digest(found) == digest(rows)


def test_columns_go_by_name_not_by_place(types_dsn: str) -> None:
    execute(types_dsn, "CREATE TABLE types (b bigint, note text DEFAULT 'x', lockstep_epoch bigint, a bigint)")
    rows = pa.table({"a": [1, 2], "b": [10, 20]})
    assert digest(round_trip(types_dsn, rows)) == digest(rows)
    assert execute(types_dsn, "SELECT a, b, note, lockstep_epoch FROM types ORDER BY a") == [
        (1, 10, "x", 1),
        (2, 20, "x", 1),
    ]


AWKWARD = "say `hi` 100%s {table}; DROP TABLE types; --"


@pytest.fixture
def awkward_database(types_dsn: str) -> Iterator[str]:
    execute(types_dsn, compose("CREATE DATABASE {name}", name=AWKWARD))
    yield AWKWARD
    execute(types_dsn, compose("DROP DATABASE {name}", name=AWKWARD))


@pytest.mark.parametrize("arguments", [{}, {"mode": "upsert", "key": [AWKWARD, "%s"]}], ids=["append", "upsert"])
def test_awkward_names_are_only_names(types_dsn: str, awkward_database: str, arguments: dict[str, Any]) -> None:
    """Of columns, tables, and the database in which Lockstep's own tables are."""
    columns = [AWKWARD, "%s", "%%", "{table}", "select", "ünï"]
    rows = pa.table({name: [index] for index, name in enumerate(columns)} | {"100% blob": [b"\x00%"]})
    names: dict[str, Any] = {"tables": {"rows": f"{awkward_database}.{AWKWARD}"}, "schema": awkward_database}
    assert digest(round_trip(types_dsn, rows, **names, **arguments)) == digest(rows)


def test_a_type_that_would_not_come_back_is_refused_by_column(types_dsn: str) -> None:
    sink, context = sink_of(types_dsn)
    with sink.opened(context) as live:
        for dtype in (*REFUSED, pa.list_(pa.int64())):
            assert mariadb_type(dtype) is None
            with pytest.raises(PreflightRefused, match=r"column odd\b"):
                live.preflight({"rows": pa.schema({"fine": pa.int64(), "odd": dtype})})
    assert execute(types_dsn, "SHOW TABLES LIKE 'types'") == []


BEYOND = [
    (pa.float64(), float("nan")),
    (pa.float64(), float("inf")),
    (pa.float32(), -float("inf")),
    (pa.float64(), -0.0),
    (pa.timestamp("us"), FIRST * US - 1),
    (pa.timestamp("us", "UTC"), (LAST + 1) * US),
    (pa.timestamp("s"), 1 << 62),
    (pa.timestamp("ms"), -(1 << 63)),
    (pa.date32(), -719_163),
    (pa.date32(), 2_932_897),
]


def test_a_value_that_mariadb_would_change_is_rejected(types_dsn: str) -> None:
    sink, context = sink_of(types_dsn)
    for dtype, value in BEYOND:
        execute(types_dsn, "DROP TABLE IF EXISTS types")
        wal = [SealedRows(pa.table({"value": pa.array([value], dtype)}))]
        with (
            sink.opened(context) as live,
            pytest.raises(SinkRejected, match=r"output rows into table types\.types: column va"),
        ):
            live.preflight({"rows": wal[0].schema})
            live.prepare(epoch(), wal)
        assert execute(types_dsn, "SELECT count(*) FROM types") == [(0,)]


#: column of the table, type of the output
MISFITS = [
    ("value int", pa.int64()),
    ("value bigint", pa.uint64()),
    ("value bigint unsigned", pa.int64()),
    ("value double", pa.float32()),
    ("value float", pa.float64()),
    ("value double(10,2)", pa.float64()),
    ("value decimal(10,2)", pa.decimal128(10, 3)),
    ("value decimal(10,3)", pa.decimal128(10, 2)),
    ("value datetime(3)", pa.timestamp("us")),
    ("value timestamp(6) NULL", pa.timestamp("us")),
    ("value timestamp(6) NOT NULL", pa.timestamp("us", "UTC")),
    ("value char(10)", pa.string()),
    ("value varchar(10) CHARACTER SET latin1", pa.string()),
    ("value text", pa.binary()),
    ("value enum('a')", pa.string()),
    ("value binary(3)", pa.binary(3)),
    ("value bigint AUTO_INCREMENT PRIMARY KEY", pa.int64()),
    ("value bigint AS (other + 1) STORED", pa.int64()),
]


def test_a_column_that_would_change_values_is_refused_by_name(types_dsn: str) -> None:
    sink, context = sink_of(types_dsn)
    with sink.opened(context) as live:
        for column, dtype in MISFITS:
            execute(types_dsn, f"CREATE OR REPLACE TABLE types ({column}, other bigint, lockstep_epoch bigint)")
            with pytest.raises(PreflightRefused, match="column value: "):
                live.preflight({"rows": pa.schema({"value": dtype})})


#: column of the table, value that it can't hold
TOO_NARROW = [
    ("varchar(3)", "four"),
    ("tinytext", "x" * 256),
    ("varbinary(3)", b"four"),
    ("tinyblob", b"x" * 256),
    ("text NOT NULL", None),
]


def test_a_value_that_a_narrower_column_would_cut_is_rejected(types_dsn: str) -> None:
    sink, context = sink_of(types_dsn)
    for column, value in TOO_NARROW:
        execute(types_dsn, f"CREATE OR REPLACE TABLE types (value {column}, lockstep_epoch bigint)")
        values = pa.array([value], pa.binary() if isinstance(value, bytes) else pa.string())
        wal = [SealedRows(pa.table({"value": values}))]
        with sink.opened(context) as live, pytest.raises(SinkRejected, match=r"with 1 warnings: .*'value'"):
            live.preflight({"rows": wal[0].schema})
            live.prepare(epoch(), wal)
        assert execute(types_dsn, "SELECT count(*) FROM types") == [(0,)]


def test_moments_with_a_zone_also_fit_a_timestamp_column(types_dsn: str) -> None:
    execute(types_dsn, "CREATE TABLE types (value timestamp(6) NULL, lockstep_epoch bigint)")
    moments = pa.array([1, 1_357_000_000 * US + 7, None], pa.timestamp("us", "Europe/Berlin"))
    rows = pa.table({"value": moments})
    assert digest(round_trip(types_dsn, rows)) == digest(rows)
