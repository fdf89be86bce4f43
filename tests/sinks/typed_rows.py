"""Values of every Arrow type that a table takes, extremes included."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa

from lockstep.wal.digest import digest_batches

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
