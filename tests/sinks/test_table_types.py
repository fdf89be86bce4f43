"""Every Arrow type that a table takes comes back as it went in, extremes included; every other is named.

In PostgreSQL both ways of encoding have to do it: pgpq's binary one, and the CSV that is taken without pgpq.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pgpq
import pyarrow as pa
import pytest
from psycopg2 import sql

from lockstep.connections.mariadb.wire import compose
from lockstep.errors import PreflightRefused, SinkRejected, TargetUnreadable
from lockstep.sinks.mariadb import MariaDbSink
from lockstep.sinks.mariadb.column_types import mariadb_type
from lockstep.sinks.postgres import PostgresSink, copying
from lockstep.sinks.postgres.column_types import postgres_type
from lockstep.sinks.tables.sink import TableSink
from lockstep.sinks.values import RowStatus
from lockstep.testing._sealed_rows import SealedRows
from lockstep.testing._under_test import epoch
from lockstep.wal.digest import digest_batches
from stack.mariadb import MariaDbServer
from tests.sinks import mariadb_target, postgres_target
from tests.sinks.one_sink import context, published
from tests.sinks.postgres_target import LOCK_TIMEOUT

Values: TypeAlias = list[tuple[pa.DataType, Sequence[object]]]

US = 1_000_000
TEXTS = [
    "",
    " ",
    "NULL",
    "\\N",
    "\\.",
    '"',
    '""',
    "a,b",
    "a\nb",
    "a\r\nb",
    "\r",
    "\t",
    "'",
    "\\",
    "\\\\n",
    "\x1a",
    "%s",
]
TEXTS += ["\x1a", "%s", "ünï ✓ 𝄞", "\u2028", "nan", "trailing ", "x" * 5000, "0"]
BYTES = [b"", b"\0", b"\\N", b"\\x00", b"\t\n\\", bytes(range(256)), b"a" * 3000]


def _ints(bits: int, signed: bool) -> list[int]:
    return [-(1 << bits - 1), (1 << bits - 1) - 1, 0, -1, 1] if signed else [0, (1 << bits) - 1, 1]


#: those that are the same in every database
VALUES: Values = [
    (pa.bool_(), [True, False]),
    *[(getattr(pa, f"int{bits}")(), _ints(bits, True)) for bits in (8, 16, 32, 64)],
    *[(getattr(pa, f"uint{bits}")(), _ints(bits, False)) for bits in (8, 16, 32, 64)],
    (pa.decimal32(5, 2), [Decimal("-999.99"), Decimal("0.01"), Decimal("0.00")]),
    (pa.decimal64(18, 0), [Decimal(10**18 - 1), Decimal(-1)]),
    (pa.decimal128(38, 0), [Decimal(10**38 - 1), Decimal(-(10**38) + 1)]),
    (pa.decimal128(38, 38), [Decimal(1).scaleb(-38), Decimal("0." + "9" * 38)]),
    (pa.decimal128(20, 4), [Decimal("1.5"), Decimal("-0.0001"), Decimal("1234567890123456.7890")]),
    *[(dtype, TEXTS) for dtype in (pa.string(), pa.large_string(), pa.string_view())],
    *[(dtype, BYTES) for dtype in (pa.binary(), pa.large_binary(), pa.binary_view())],
    (pa.binary(3), [b"abc", b"\0\0\0"]),
    (pa.time32("s"), [0, 86_399]),
    (pa.time32("ms"), [0, 86_399_999]),
    (pa.time64("us"), [0, 86_399_999_999, 1]),
    *[(pa.timestamp(unit, "UTC"), [0, -1, 1_357_000_000]) for unit in ("s", "ms")],
    (pa.dictionary(pa.int32(), pa.string()), ["a", "b", "a", ""]),
]
#: types that no database here gives back
REFUSED = [
    pa.null(),
    pa.decimal256(50, 2),
    pa.decimal128(5, -2),
    pa.timestamp("ns"),
    pa.time64("ns"),
    pa.date64(),
    pa.duration("us"),
    pa.struct({"a": pa.int64()}),
    pa.map_(pa.string(), pa.int64()),
]


def side_by_side(values: Values) -> pa.Table:
    """A column a type, each filled up with nulls; its arrays begin in the middle of others."""
    length = max(len(of_type) for _, of_type in values) + 2
    arrays = [pa.array([None, *of_type, *[None] * (length - 1 - len(of_type))], dtype) for dtype, of_type in values]
    names = [f"value_{number}" for number in range(len(values))]
    return pa.table([pa.array(range(length)), *arrays], ["n", *names]).slice(1)


def digest(rows: pa.Table) -> tuple[int, str]:
    found = digest_batches(rows.schema, rows.to_batches())
    return found.rows, found.hexdigest()


def changed(found: pa.Table, rows: pa.Table) -> dict[str, str]:
    """By type of column."""
    return {
        str(rows.schema.field(name).type): f"{found.column(name)} instead of {rows.column(name)}"
        for name in rows.column_names
        if digest(found.select([name])) != digest(rows.select([name]))
    }


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


IN_POSTGRES: Values = [
    *VALUES,
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

FINITE = [0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 0.1, 1 / 3, 2.0**53 + 2, 1e23, 1e-7]
FINITE_SINGLES = [0.0, 1e-45, 3.4028234663852886e38, 0.1, 16777217.0, 1 / 3]
FIRST, LAST = -62_135_596_800, 253_402_300_799  # seconds of 0001-01-01 and of the end of 9999
YEARS = [0, -1, 1, 1_357_000_000 * US + 1, FIRST * US, LAST * US + 999_999]
IN_MARIADB: Values = [
    *VALUES,
    (pa.string(), ["\x00"]),
    (pa.float16(), [np.float16(x) for x in (0.0, 65504.0, 6e-8, 0.1)]),
    (pa.float32(), FINITE_SINGLES),
    (pa.float64(), FINITE),
    (pa.date32(), [0, -1, -719_162, 2_932_896]),
    *[(pa.timestamp("us", zone), YEARS) for zone in (None, "UTC", "Europe/Berlin", "+05:30")],
]

LISTS = [
    pa.list_(pa.list_(pa.int64())),
    pa.list_(pa.struct({"a": pa.int64()})),
    pa.list_(pa.timestamp("us", "UTC")),
]

BEYOND_POSTGRES = [
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

BEYOND_MARIADB = [
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


@dataclass(frozen=True)
class Typed:
    """A database, and what it takes."""

    dsn: str
    kind: type[TableSink]
    execute: Callable[..., list[tuple[Any, ...]]]
    stored_as: Callable[[pa.DataType], object]
    refused: Sequence[pa.DataType]
    beyond: Sequence[tuple[pa.DataType, object]]

    def sink(self, **arguments: Any) -> TableSink:
        given = {"tables": {"rows": "types"}, "connection": "w", "lock_timeout": LOCK_TIMEOUT, **arguments}
        return self.kind("types", create=True, **given)

    def published(self, rows: pa.Table, batch_rows: int = 1000, **arguments: Any) -> pa.Table:
        return published(self.dsn, self.sink(**arguments), rows, batch_rows)


@pytest.fixture
def postgres(warehouse_dsn: str) -> Typed:
    refused = [*REFUSED, *LISTS]
    return Typed(warehouse_dsn, PostgresSink, postgres_target.execute, postgres_type, refused, BEYOND_POSTGRES)


@pytest.fixture
def mariadb(mariadb_dsn: str) -> Typed:
    refused = [*REFUSED, pa.list_(pa.int64())]
    return Typed(mariadb_dsn, MariaDbSink, mariadb_target.execute, mariadb_type, refused, BEYOND_MARIADB)


@pytest.fixture(params=["postgres binary", "postgres csv", "mariadb"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Typed:
    database, _, encoding = request.param.partition(" ")
    if encoding == "csv":
        monkeypatch.setattr(copying, "pgpq", None)
    found: Typed = request.getfixturevalue(database)
    return found


@pytest.mark.fault("C20")
def test_values_come_back_as_they_went_in_whatever_settings_a_role_has(
    postgres: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By both encodings, which give the server the same rows."""
    database = postgres.dsn.rsplit("/", 1)[1]
    for setting in ("TimeZone = 'Asia/Kathmandu'", "DateStyle = 'SQL, DMY'", "extra_float_digits = -15"):
        postgres.execute(postgres.dsn, f"ALTER DATABASE {database} SET {setting}")
    for setting in ("bytea_output = 'escape'", "client_encoding = 'LATIN1'"):
        postgres.execute(postgres.dsn, f"ALTER DATABASE {database} SET {setting}")
    rows, stored = side_by_side(IN_POSTGRES), []
    for encoder in (pgpq, None):
        monkeypatch.setattr(copying, "pgpq", encoder)
        postgres_target.empty(postgres.dsn)
        found = postgres.published(rows, batch_rows=2)
        assert found.schema == rows.schema
        assert changed(found, rows) == {}, encoder
        assert digest(found) == digest(rows)
        texts = ", ".join(f"md5({name}::text)" for name in rows.column_names)
        query = f"SET extra_float_digits = 3; SELECT {texts} FROM types ORDER BY n"
        stored.append(postgres.execute(postgres.dsn, query))
    assert stored[0] == stored[1]
    assert len(stored[0]) == rows.num_rows


def test_values_come_back_as_they_went_in(mariadb: Typed) -> None:
    rows = side_by_side(IN_MARIADB)
    found = mariadb.published(rows)
    assert found.schema == rows.schema
    assert changed(found, rows) == {}
    assert digest(found) == digest(rows)
    mariadb_target.execute(
        mariadb.dsn, "CREATE OR REPLACE TABLE types (value timestamp(6) NULL, lockstep_epoch bigint)"
    )
    moments = pa.table({"value": pa.array([1, 1_357_000_000 * US + 7, None], pa.timestamp("us", "Europe/Berlin"))})
    mariadb.execute(mariadb.dsn, "DELETE FROM lockstep_marker")
    assert digest(mariadb.published(moments)) == digest(moments)


def test_columns_go_by_name_not_by_place(place: Typed) -> None:
    place.execute(place.dsn, "CREATE TABLE types (b bigint, note text DEFAULT 'x', lockstep_epoch bigint, a bigint)")
    rows = pa.table({"a": [1, 2], "b": [10, 20]})
    assert digest(place.published(rows)) == digest(rows)
    found = place.execute(place.dsn, "SELECT a, b, note, lockstep_epoch FROM types ORDER BY a")
    assert found == [(1, 10, "x", 1), (2, 20, "x", 1)]


AWKWARD = 'say "hi" `hi` {0} 5% %s {table}; DROP TABLE types; --'


@pytest.mark.parametrize("arguments", [{}, {"mode": "upsert", "key": [AWKWARD, "%s"]}], ids=["append", "upsert"])
def test_awkward_names_are_only_names(place: Typed, arguments: dict[str, Any]) -> None:
    """Of columns, tables, and the schema or database in which Lockstep's own tables are."""
    in_mariadb = place.kind is MariaDbSink
    if in_mariadb:
        place.execute(place.dsn, compose("CREATE OR REPLACE DATABASE {name}", name=AWKWARD))
    else:
        place.execute(place.dsn, sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(AWKWARD)))
    columns = [AWKWARD, "%s", "%%", "{table}", "select", "ünï"]
    rows = pa.table({name: [index] for index, name in enumerate(columns)} | {"100% blob": [b"\x00%"]})
    names: dict[str, Any] = {"tables": {"rows": f"{AWKWARD}.%s {AWKWARD}"}, "schema": AWKWARD}
    assert digest(place.published(rows, **names, **arguments)) == digest(rows)
    if in_mariadb:
        place.execute(place.dsn, compose("DROP DATABASE {name}", name=AWKWARD))


@pytest.mark.parametrize("place", ["postgres", "mariadb"], indirect=True)
def test_a_type_that_would_not_come_back_is_refused_by_column(place: Typed, subtests: pytest.Subtests) -> None:
    with place.sink().opened(context(place.dsn)) as live:
        for dtype in place.refused:
            with subtests.test(str(dtype)):
                assert place.stored_as(dtype) is None
                with pytest.raises(PreflightRefused, match=r"column odd\b"):
                    live.preflight({"rows": pa.schema({"fine": pa.int64(), "odd": dtype})})
    tables = "SELECT count(*) FROM information_schema.tables WHERE table_name = 'types'"
    assert place.execute(place.dsn, tables) == [(0,)]


@pytest.mark.fault("J4")
def test_a_value_that_the_server_would_change_is_rejected(place: Typed, subtests: pytest.Subtests) -> None:
    for dtype, value in place.beyond:
        with subtests.test(f"{dtype} {value!r}"):
            place.execute(place.dsn, "DROP TABLE IF EXISTS types")
            with pytest.raises(SinkRejected, match=r"output rows into table \w+\.types"):
                place.published(pa.table({"value": pa.array([value], dtype)}))
            assert place.execute(place.dsn, "SELECT count(*) FROM types") == [(0,)]


# --- columns of PostgreSQL that read texts, or are narrower ----------------------------------------------------------

READING = """
    CREATE TYPE mood AS ENUM ('sad', 'fine'); CREATE DOMAIN positive AS bigint CHECK (value > 0);
    CREATE DOMAIN code AS varchar(5) CHECK (value ~ '^[A-Z]+$')
"""
#: column of the table; what it keeps; what is no value of it; whether what was written can be compared
READ: list[tuple[str, pa.Array, object, bool]] = [
    ("uuid", pa.array(["00000000-0000-0000-0000-00000000000a", None]), "no uuid", True),
    ("uuid", pa.array(["00000000-0000-0000-0000-00000000000a"]), "{00000000-0000-0000-0000-00000000000A}", True),
    ("json", pa.array(['{ "a":  1.0}\n', "[1]"]), "{", True),
    ("jsonb", pa.array(['{"a":1.50, "b": [null]}']), '{"a": nan}', False),
    ("jsonb", pa.array(["7"]), '[{"a": 1, "a": 2}]', False),
    ("mood", pa.array(["fine", None, "sad"]), "happy", True),
    ("inet", pa.array(["10.0.0.1", "fe80::1/64"]), "10.0.0.256", False),
    ("char(3)", pa.array(["ab", "abc", ""]), "abcd", False),
    ("char(3)", pa.array(["a b"]), "ab ", False),
    ("varchar(3)", pa.array(["ab", "ab "]), "ab  ", True),
    ("positive", pa.array([1, None, 1 << 62]), 0, True),
    ("code", pa.array(["A", "AB"]), "xyz", True),
    ("numeric(5,1)", pa.array([Decimal("9999.90"), Decimal("-0.10")], pa.decimal128(10, 2)), Decimal("0.05"), True),
    ("numeric(5,1)", pa.array([None], pa.decimal128(10, 2)), Decimal("10000.00"), True),
    ("numeric(3,-2)", pa.array([Decimal(99900)], pa.decimal128(8, 0)), Decimal(99950), True),
]


@pytest.mark.fault("X6")
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        pytest.param({"protocol": "write_ahead"}, marks=pytest.mark.tier("all")),
        pytest.param({"mode": "upsert", "key": ["id"]}, marks=pytest.mark.tier("all")),
    ],
    ids=str,
)
def test_texts_become_values_by_the_types_own_function_and_every_one_is_checked_before_the_vote(
    postgres: Typed, arguments: dict[str, Any], subtests: pytest.Subtests
) -> None:
    order = ", lockstep_order bigint NOT NULL" if arguments.get("mode") else ""
    for column, good, odd, comparable in READ:
        ddl = f"CREATE TABLE types (id bigint PRIMARY KEY, value {column}, lockstep_epoch bigint NOT NULL{order})"
        postgres.execute(postgres_target.empty(postgres.dsn), f"{READING}; {ddl}")
        rows = pa.table({"id": pa.array(range(len(good))), "value": good})
        with subtests.test(f"{column} {good}"):
            if comparable:
                assert digest(postgres.published(rows, **arguments)) == digest(rows)
            else:
                with pytest.raises(TargetUnreadable, match=r"value \("):
                    postgres.published(rows, **arguments)
            assert postgres.execute(postgres.dsn, "SELECT count(*), count(value) FROM types") == [
                (len(good), len(good) - good.null_count)
            ]
        bad = pa.table({"id": pa.array([7, 8, 9]), "value": pa.array([good[0].as_py(), odd, None], good.type)})
        with subtests.test(f"{column} {odd}"), postgres.sink(**arguments).opened(context(postgres.dsn)) as live:
            with pytest.raises(SinkRejected, match=r"id 8\b") as refused:
                live.prepare(epoch(2), [SealedRows(bad)])
            assert "column value" in str(refused.value)
            assert str(odd) not in str(refused.value).replace("id 8", "")


# --- columns of MariaDB that are narrower ----------------------------------------------------------------------------

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


def test_a_column_that_would_change_values_is_refused_by_name(mariadb: Typed) -> None:
    with mariadb.sink().opened(context(mariadb.dsn)) as live:
        for column, dtype in MISFITS:
            columns = f"{column}, other bigint, lockstep_epoch bigint"
            mariadb.execute(mariadb.dsn, f"CREATE OR REPLACE TABLE types ({columns})")
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


def test_a_value_that_a_narrower_column_would_cut_is_rejected(mariadb: Typed) -> None:
    for column, value in TOO_NARROW:
        mariadb.execute(mariadb.dsn, f"CREATE OR REPLACE TABLE types (value {column}, lockstep_epoch bigint)")
        values = pa.array([value], pa.binary() if isinstance(value, bytes) else pa.string())
        with pytest.raises(SinkRejected, match=r"with 1 warnings: .*'value'"):
            mariadb.published(pa.table({"value": values}))
        assert mariadb.execute(mariadb.dsn, "SELECT count(*) FROM types") == [(0,)]


# --- values beyond a packet -------------------------------------------------------------------------------------------

PACKET = 1 << 20
LONG = 'say "x", \n\\ü\t' * (PACKET // 8)  #: more than a packet
HALF = bytes(range(256)) * (3 * PACKET // 1024)  #: less than a packet, more as hex
PACKED = pa.schema({"id": pa.int64(), "text": pa.string(), "data": pa.binary()})


@pytest.fixture
def tight(mariadb_server: MariaDbServer, mariadb: Typed) -> Iterator[Typed]:
    """On a server that lets packets be of 1 MB."""
    [(before,)] = mariadb.execute(mariadb.dsn, "SELECT @@GLOBAL.max_allowed_packet")
    mariadb_server.execute(f"SET GLOBAL max_allowed_packet = {PACKET}")
    yield mariadb
    mariadb_server.execute(f"SET GLOBAL max_allowed_packet = {before}")


def rows(*values: tuple[int, str | None, bytes | None]) -> pa.Table:
    return pa.Table.from_arrays(
        [pa.array(column, kind) for column, kind in zip(zip(*values, strict=True), PACKED.types, strict=True)],
        schema=PACKED,
    )


SENT = rows((1, LONG, None), (2, "short", b"short"), (3, None, HALF), (4, LONG, HALF), (5, None, None), (6, "", b""))


@pytest.mark.tier("all")
@pytest.mark.fault("J16")
@pytest.mark.parametrize("arguments", [{}, {"protocol": "write_ahead"}, {"mode": "upsert", "key": ["id"]}], ids=str)
def test_values_above_the_packet_come_back_as_they_went_in(tight: Typed, arguments: dict[str, Any]) -> None:
    assert tight.published(SENT, **arguments).sort_by("id") == SENT


@pytest.mark.tier("all")
@pytest.mark.fault("J16")
def test_values_that_changed_are_noticed_whatever_their_length_and_tiny_packets_refused(
    mariadb_server: MariaDbServer, tight: Typed
) -> None:
    given = tight.sink(mode="upsert", key=["id"])
    published(tight.dsn, given, SENT)

    def standing(text: str) -> RowStatus:
        sealed = SealedRows(pa.concat_tables([rows((1, text, None)), SENT.slice(1)]))
        with given.opened(context(tight.dsn)) as live:
            return live.standing(epoch(), sealed)

    assert standing(LONG) == RowStatus(own=6, overwritten=0, missing=0, changed=0)
    assert standing(f"{LONG[:-1]}x") == RowStatus(own=5, overwritten=0, missing=0, changed=1)
    assert standing("short") == RowStatus(own=5, overwritten=0, missing=0, changed=1)
    mariadb_server.execute("SET GLOBAL max_allowed_packet = 16384")
    with pytest.raises(PreflightRefused, match="max_allowed_packet = 16384"):
        published(tight.dsn, given, SENT)
