"""Every Arrow type that PostgresSink takes comes back as it went in, extremes included; every other is named.

Both ways of encoding have to do it: pgpq's binary one, and the CSV that is taken without pgpq.
"""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pgpq
import pyarrow as pa
import pytest
from psycopg2 import sql

from lockstep.errors import PreflightRefused, SinkRejected
from lockstep.sinks.postgres import PostgresSink
from lockstep.sinks.postgres import _encoders as encoders
from lockstep.sinks.postgres._types import postgres_type
from tests.sinks import typed_rows
from tests.sinks.one_sink import context, published
from tests.sinks.postgres_target import LOCK_TIMEOUT, empty, execute
from tests.sinks.typed_rows import BYTES, TEXTS, US, changed, digest, side_by_side

FLOATS = [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 5e-324, 1.7976931348623157e308, 0.1, 1 / 3, 2.0**53 + 2]
SINGLES = [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-45, 3.4028234663852886e38, 0.1]
MOMENTS = [
    0,
    -1,
    1,
    1_357_000_000 * US + 1,
    -210_866_803_200 * US,
    253_402_300_800 * US,
    (1 << 63) - 2,
    -62_135_596_800 * US,
]


VALUES: typed_rows.Values = [
    *typed_rows.VALUES,
    (pa.float16(), [np.float16(x) for x in (0.0, -0.0, float("nan"), float("inf"), 65504.0, 6e-8, 0.1)]),
    (pa.float32(), SINGLES),
    (pa.float64(), FLOATS),
    (pa.date32(), [0, -1, -2_440_588, 2_145_042_905, date(2013, 1, 1)]),
    *[(pa.timestamp("us", zone), MOMENTS) for zone in (None, "UTC", "Europe/Berlin", "+05:30")],
    (pa.list_(pa.int64()), [[], [1, None, -(1 << 63)], [None]]),
    (pa.list_(pa.float64()), [FLOATS, []]),
    (pa.list_(pa.float32()), [SINGLES]),
    (pa.large_list(pa.string()), [TEXTS, [None, "NULL"], []]),
    (pa.list_(pa.binary()), [BYTES]),
    (pa.list_(pa.bool_()), [[True, False, None]]),
    (pa.list_(pa.decimal128(10, 2)), [[Decimal("1.10"), None]]),
    (pa.list_(pa.date32()), [[0, None, -2_440_588]]),
    (pa.list_(pa.timestamp("us")), [MOMENTS, [None]]),
    (pa.list_(pa.time64("us")), [[0, 86_399_999_999]]),
    (pa.list_(pa.int32(), 2), [[1, 2], [None, 4]]),
]


@pytest.fixture(params=["binary", "csv"])
def encoding(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "csv":
        monkeypatch.setattr(encoders, "pgpq", None)
    return str(request.param)


def round_trip(dsn: str, rows: pa.Table, batch_rows: int = 1000, **arguments: Any) -> pa.Table:
    given = {"tables": {"rows": "public.types"}, "connection": "w", "lock_timeout": LOCK_TIMEOUT, **arguments}
    return published(dsn, PostgresSink("types", create=True, **given), rows, batch_rows)


def test_values_come_back_as_they_went_in(warehouse_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By both encodings, which give the server the same rows."""
    rows, stored = side_by_side(VALUES), []
    for encoder in (pgpq, None):
        monkeypatch.setattr(encoders, "pgpq", encoder)
        found = round_trip(empty(warehouse_dsn), rows, batch_rows=2)
        assert found.schema == rows.schema
        assert changed(found, rows) == {}, encoder
        assert digest(found) == digest(rows)
        texts = ", ".join(f"{name}::text" for name in rows.column_names)
        stored.append(execute(warehouse_dsn, f"SELECT {texts} FROM types ORDER BY n"))
    assert stored[0] == stored[1]
    assert len(stored[0]) == rows.num_rows


def test_columns_go_by_name_not_by_place(warehouse_dsn: str, encoding: str) -> None:
    execute(warehouse_dsn, "CREATE TABLE types (b bigint, note text DEFAULT 'x', lockstep_epoch bigint, a bigint)")
    rows = pa.table({"a": [1, 2], "b": [10, 20]})
    assert digest(round_trip(warehouse_dsn, rows)) == digest(rows)
    assert execute(warehouse_dsn, "SELECT a, b, note, lockstep_epoch FROM types ORDER BY a") == [
        (1, 10, "x", 1),
        (2, 20, "x", 1),
    ]


AWKWARD = 'say "hi" {0}; DROP TABLE types; --'


@pytest.mark.parametrize("arguments", [{}, {"mode": "upsert", "key": [AWKWARD, "%s"]}], ids=["append", "upsert"])
def test_awkward_names_are_only_names(warehouse_dsn: str, encoding: str, arguments: dict[str, Any]) -> None:
    """Of columns, tables, and the schema in which Lockstep's own tables are."""
    execute(warehouse_dsn, sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(AWKWARD)))
    rows = pa.table({AWKWARD: [1], "%s": [2], "select": ["x"], "ünï": [True]})
    names: dict[str, Any] = {"tables": {"rows": f"{AWKWARD}.%s {AWKWARD}"}, "schema": AWKWARD}
    assert digest(round_trip(warehouse_dsn, rows, **names, **arguments)) == digest(rows)


@pytest.mark.fault("C20")
def test_random_rows_come_back_from_a_role_with_odd_settings(warehouse_dsn: str, encoding: str) -> None:
    for setting in (
        "extra_float_digits = -15",
        "TimeZone = 'Asia/Kathmandu'",
        "DateStyle = 'SQL, DMY'",
        "bytea_output = 'escape'",
    ):
        execute(warehouse_dsn, f"ALTER DATABASE {warehouse_dsn.rsplit('/', 1)[1]} SET {setting}")
    execute(warehouse_dsn, f"ALTER DATABASE {warehouse_dsn.rsplit('/', 1)[1]} SET client_encoding = 'LATIN1'")
    rng = random.Random(7)
    count = 5_000
    rows = pa.table(
        {
            "i": pa.array([rng.getrandbits(64) - (1 << 63) for _ in range(count)], pa.int64()),
            "f": pa.array(np.frombuffer(rng.randbytes(8 * count), np.float64)),
            "s": pa.array([rng.choice(TEXTS) + chr(rng.randrange(1, 0xD7FF)) for _ in range(count)]),
            "b": pa.array([rng.randbytes(rng.randrange(20)) for _ in range(count)], pa.binary()),
            "t": pa.array([rng.randrange(-(1 << 57), 1 << 62) for _ in range(count)], pa.timestamp("us", "UTC")),
            "n": pa.array(
                [Decimal(rng.randrange(-(10**30), 10**30)).scaleb(-10) for _ in range(count)], pa.decimal128(38, 10)
            ),
        }
    )
    assert digest(round_trip(warehouse_dsn, rows, 1_700)) == digest(rows)


REFUSED = [
    *typed_rows.REFUSED,
    pa.list_(pa.list_(pa.int64())),
    pa.list_(pa.struct({"a": pa.int64()})),
    pa.list_(pa.timestamp("us", "UTC")),
]


def test_a_type_that_would_not_come_back_is_refused_by_column(warehouse_dsn: str, subtests: pytest.Subtests) -> None:
    sink = PostgresSink("types", tables={"rows": "public.types"}, connection="w", create=True)
    with sink.opened(context(warehouse_dsn)) as live:
        for dtype in REFUSED:
            with subtests.test(str(dtype)):
                assert postgres_type(dtype) is None
                with pytest.raises(PreflightRefused, match=r"column odd\b"):
                    live.preflight({"rows": pa.schema({"fine": pa.int64(), "odd": dtype})})
        assert execute(warehouse_dsn, "SELECT to_regclass('public.types')") == [(None,)]


BEYOND = [
    (pa.timestamp("us"), -(1 << 63)),
    (pa.timestamp("us"), (1 << 63) - 1),
    (pa.timestamp("us"), -(1 << 63) + 946_684_800 * US),
    (pa.timestamp("us", "UTC"), -210_866_803_200 * US - 1),
    (pa.timestamp("s"), (1 << 62)),
    (pa.timestamp("ms"), -(1 << 63)),
    (pa.date32(), -(1 << 31)),
    (pa.date32(), (1 << 31) - 1),
    (pa.date32(), -2_440_589),
    (pa.list_(pa.date32()), [(1 << 31) - 1]),
    (pa.list_(pa.timestamp("us")), [0, -(1 << 63)]),
    (pa.string(), "nul \0 byte"),
]


@pytest.mark.fault("J4")
def test_a_value_that_postgres_would_change_is_rejected(
    warehouse_dsn: str, encoding: str, subtests: pytest.Subtests
) -> None:
    for dtype, value in BEYOND:
        with subtests.test(f"{dtype} {value!r}"):
            execute(warehouse_dsn, "DROP TABLE IF EXISTS types")
            with pytest.raises(SinkRejected, match=r"output rows into table public\.types"):
                round_trip(warehouse_dsn, pa.table({"value": pa.array([value], dtype)}))
            assert execute(warehouse_dsn, "SELECT count(*) FROM types") == [(0,)]
