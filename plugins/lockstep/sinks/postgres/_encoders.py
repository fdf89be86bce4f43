"""Arrow batches as what COPY reads: by pgpq's binary encoder, or without it by CSV, slower and as exact."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from functools import cache
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from psycopg2 import sql
from pyarrow import csv, types

from lockstep.sinks.tables.csv_carriers import as_hex

try:
    import pgpq
except ImportError:
    pgpq = None  # type: ignore[assignment]

_log = logging.getLogger(__name__)
_QUOTED = csv.WriteOptions(include_header=False, quoting_style="all_valid")  # what isn't quoted is null
BY_TEXT = "FORMAT csv, ENCODING 'UTF8'"  #: how COPY is told what `CsvEncoder` writes
_DAY = 86_400 * 1_000_000  # in microseconds
_FOUR_DIGITS = (-719_162, 2_932_896)  #: days of the years 1 to 9999, since 1970
_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


class Encoder(Protocol):
    """One COPY stream: header, batches of one schema, end."""

    def write_header(self) -> bytes: ...

    def write_batch(self, batch: pa.RecordBatch) -> bytes: ...

    def finish(self) -> bytes: ...


def encoder_of(schema: pa.Schema) -> Encoder:
    """An encoder for rows of `schema`, each column of a type that `postgres_type` names as a wire."""
    if pgpq is not None:
        found: Encoder = pgpq.ArrowToPostgresBinaryEncoder(schema)
        return found
    _tell_once()
    return CsvEncoder()


def copy_options() -> sql.SQL:
    """How COPY is told what `encoder_of` writes."""
    return sql.SQL("FORMAT binary" if pgpq is not None else BY_TEXT)


@cache
def _tell_once() -> None:
    _log.warning("pgpq can't be imported: rows go into PostgreSQL by CSV, which is slower: pip install pgpq")


class CsvEncoder:
    """Every value as a text that its type's input function reads back to the bit, whatever the session's settings."""

    def write_header(self) -> bytes:
        return b""

    def write_batch(self, batch: pa.RecordBatch) -> bytes:
        texts = [text_of(column) for column in batch.columns]
        out = io.BytesIO()
        csv.write_csv(pa.RecordBatch.from_arrays(texts, names=[str(n) for n in range(len(texts))]), out, _QUOTED)
        return out.getvalue()

    def finish(self) -> bytes:
        return b""


def text_of(array: pa.Array) -> pa.Array:
    """Large strings that PostgreSQL reads as the values of `array`; nulls stay null."""
    if types.is_list(array.type):
        return _lists(array)
    if types.is_date32(array.type):
        return _dates(array)
    if types.is_timestamp(array.type):
        return _moments(array)
    if types.is_binary(array.type) or types.is_large_binary(array.type) or types.is_fixed_size_binary(array.type):
        return _between("\\x", as_hex(array.cast(pa.large_binary())), "")
    return array.cast(pa.large_string())


def _lists(array: pa.Array) -> pa.Array:
    items = text_of(array.flatten())
    for special in ("\\", '"'):
        items = pc.replace_substring(items, special, f"\\{special}")
    items = _between('"', items, '"').fill_null("NULL")
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int64())
    joined = pc.binary_join(pa.LargeListArray.from_arrays(offsets, items), pa.scalar(",", pa.large_string()))
    return pc.if_else(array.is_valid(), _between("{", joined, "}"), pa.scalar(None, pa.large_string()))


def _dates(array: pa.Array) -> pa.Array:
    days = array.view(pa.int32())
    return _with_odd_years(array, days, _FOUR_DIGITS, lambda day: "{}{}".format(*_date(day)))


def _moments(array: pa.Array) -> pa.Array:
    factor = _MICROS[array.type.unit]
    zone = "+00" if array.type.tz else ""
    plain = array.view(pa.timestamp(array.type.unit))  # Arrow keeps UTC
    first, last = _FOUR_DIGITS
    bounds = (first * _DAY // factor, (last + 1) * _DAY // factor - 1)

    def told(value: int) -> str:
        days, rest = divmod(value * factor, _DAY)
        seconds, micros = divmod(rest, 1_000_000)
        day, era = _date(days)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"
        return f"{day} {clock}{zone}{era}"

    return _with_odd_years(plain, plain.view(pa.int64()), bounds, told, zone)


def _with_odd_years(
    array: pa.Array, numbers: pa.Array, bounds: tuple[int, int], told: Callable[[int], str], zone: str = ""
) -> pa.Array:
    """Arrow's own text of years with four digits, `told` for the rest, of which there are seldom any."""
    odd = pc.or_(pc.less(numbers, bounds[0]), pc.greater(numbers, bounds[1])).fill_null(False)
    if not pc.any(odd).as_py():
        return _between("", array.cast(pa.large_string()), zone)
    zero = pa.scalar(0, numbers.type)
    text = _between("", pc.if_else(odd, zero, numbers).view(array.type).cast(pa.large_string()), zone)
    return pc.replace_with_mask(text, odd, pa.array(map(told, numbers.filter(odd).to_pylist()), pa.large_string()))


def _date(days: int) -> tuple[str, str]:
    """(year-month-day, " BC" or nothing) of a day since 1970, in the Gregorian calendar without end."""
    years, rest = divmod(days + 719_468, 146_097)  # spans of 400 years from the first of March of the year 0
    year = (rest - rest // 1_460 + rest // 36_524 - rest // 146_096) // 365
    rest -= 365 * year + year // 4 - year // 100
    month = (5 * rest + 2) // 153
    day = rest - (153 * month + 2) // 5 + 1
    year += 400 * years + (month >= 10)
    month = month - 9 if month >= 10 else month + 3
    return f"{year if year > 0 else 1 - year:04}-{month:02}-{day:02}", "" if year > 0 else " BC"


def _between(before: str, array: pa.Array, after: str) -> pa.Array:
    if not before and not after:
        return array
    scalars = [pa.scalar(text, pa.large_string()) for text in (before, after, "")]
    return pc.binary_join_element_wise(scalars[0], array, scalars[1], scalars[2])
