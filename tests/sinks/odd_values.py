"""Values of each type that bounds of files have to hold for, whoever reads them: all that a column has, null last."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

_TIMES = [datetime(1, 1, 1), datetime(1582, 10, 9, 0, 0, 0, 1), datetime(1969, 12, 31, 23, 59, 59, 999999)]
_TIMES += [datetime(2013, 1, 1, 0, 0, 0, 1999), datetime(9999, 12, 31, 23, 59, 59, 999999)]
_FLOATS = [float("nan"), float("inf"), float("-inf"), -0.0, 2.0**-30, None]
ODD: dict[str, list[Any]] = {
    "b": [-(2**7), 2**7 - 1, 0, -1, 1, None],
    "i": [-(2**31), 2**31 - 1, 0, -1, 1, None],
    "l": [-(2**63), 2**63 - 1, 2**53 + 1, -1, 0, None],
    "f": _FLOATS,
    "d": _FLOATS,
    "s.x": _FLOATS,
    "price": [*map(Decimal, ("89999999999999.99", "-99999999999999.99", "9999999999999.99", "0.01", "0.00")), None],
    "small": [Decimal("0.000001"), Decimal("-0.000001"), Decimal("1e-5"), Decimal("9999.999999"), Decimal(0), None],
    "huge": [Decimal(10) ** 37, -(Decimal(10) ** 37), Decimal(2**53 + 1), Decimal(2**53), Decimal(1), None],
    "text": ["", "x" * 5000, "\U0010ffff" * 40, "\ud7ff" * 40, "é" * 33, None],
    "day": [date(1, 1, 1), date(1582, 10, 9), date(1969, 12, 31), date(2013, 1, 1), date(9999, 12, 31), None],
    "moment": [*(moment.replace(tzinfo=UTC) for moment in _TIMES), None],
    "local": [*_TIMES, None],
}
_TYPES = {"b": pa.int8(), "i": pa.int32(), "l": pa.int64(), "f": pa.float32(), "d": pa.float64(), "text": pa.string()}
_TYPES |= {"price": pa.decimal128(16, 2), "small": pa.decimal128(10, 6), "huge": pa.decimal128(38, 0)}
_TYPES |= {"day": pa.date32(), "moment": pa.timestamp("us", "UTC"), "local": pa.timestamp("us")}


def tables() -> list[pa.Table]:
    """One of each value, four rows long; of floats half are 0.5 instead."""
    return [pa.table({name.partition(".")[0]: _column(name, number) for name in ODD}) for number in range(6)]


def _column(name: str, number: int) -> pa.Array:
    value = ODD[name][number]
    values = [value, 0.5] * 2 if ODD[name] is _FLOATS else [value] * 4
    if name == "s.x":
        return pa.array([{"x": one} for one in values], pa.struct([("x", pa.float64())]))
    return pa.array(values, _TYPES[name])
