"""Arrow types and the Postgres types that hold their values exactly.

COPY BINARY checks widths, not types: int64 sent into numeric or float8 becomes another value without an error. So a
column is written only if it has exactly the type that the encoder produces, and only values that come back unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lockstep.errors import SinkRejected
from lockstep.observability.redaction import rows_shown, with_hint

_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_FIRST_MICRO = -210_866_803_200_000_000  # 4713-11-24 BC, where Postgres' calendar starts; Arrow's ends before Postgres'
_LAST_MICRO = (1 << 63) - 2  # extract(epoch …) rounds the very last one
_DAYS = (-2_440_588, 2_145_042_905)  # 4713-11-24 BC to 5874897-12-31

Bounds: TypeAlias = tuple[int, int]

#: types whose input function parses a text
_FROM_TEXT = ("uuid", "json", "jsonb", "inet", "cidr", "bpchar", "enum")
#: types that don't give a text back as it was written, so that it can't be compared with the sealed one
REWRITTEN = ("jsonb", "inet", "cidr", "bpchar")


@dataclass(frozen=True)
class PgType:
    """A type of pg_catalog (`name` as in pg_type) and the Arrow type that is encoded for it.

    `bounds`: beyond them Postgres would store something else, such as -infinity, without an error.
    """

    name: str
    wire: pa.DataType
    ddl: str
    bounds: Bounds | None = None

    @property
    def is_list(self) -> bool:
        return self.name.startswith("_")


def postgres_type(dtype: pa.DataType) -> PgType | None:
    """The Postgres type that gives every value of `dtype` back, or None."""
    if types.is_dictionary(dtype):
        return postgres_type(dtype.value_type)
    if types.is_list(dtype) or types.is_large_list(dtype) or types.is_fixed_size_list(dtype):
        return _list_of(dtype.value_type)
    return _number(dtype) or _moment(dtype) or _bytes(dtype)


def _list_of(dtype: pa.DataType) -> PgType | None:
    item = postgres_type(dtype)
    # arrays name their elements' type on the wire, and pgpq names timestamp where timestamptz is due
    if item is None or item.is_list or item.name == "timestamptz":
        return None
    return PgType(f"_{item.name}", pa.list_(item.wire), f"{item.ddl}[]", item.bounds)


def _number(dtype: pa.DataType) -> PgType | None:
    if types.is_boolean(dtype):
        return PgType("bool", dtype, "boolean")
    if types.is_uint64(dtype):
        return PgType("numeric", pa.decimal128(20, 0), "numeric(20,0)")
    if types.is_integer(dtype):
        bits = dtype.bit_width * (2 if types.is_unsigned_integer(dtype) else 1)
        if bits <= 16:
            return PgType("int2", pa.int16(), "smallint")
        return PgType("int4", pa.int32(), "integer") if bits == 32 else PgType("int8", pa.int64(), "bigint")
    if types.is_float64(dtype):
        return PgType("float8", dtype, "double precision")
    if types.is_floating(dtype):
        return PgType("float4", pa.float32(), "real")
    if types.is_decimal(dtype) and dtype.bit_width <= 128 and 0 <= dtype.scale <= dtype.precision:
        wire = pa.decimal128(dtype.precision, dtype.scale)
        return PgType("numeric", wire, f"numeric({dtype.precision},{dtype.scale})")
    return None


def _moment(dtype: pa.DataType) -> PgType | None:
    if types.is_date32(dtype):
        return PgType("date", dtype, "date", _DAYS)
    if types.is_time(dtype) and dtype.unit in _MICROS:
        return PgType("time", dtype, "time")
    if types.is_timestamp(dtype) and dtype.unit in _MICROS:
        factor = _MICROS[dtype.unit]
        bounds = (-(-_FIRST_MICRO // factor), _LAST_MICRO // factor)
        name = "timestamptz" if dtype.tz else "timestamp"
        return PgType(name, dtype, name, bounds)
    return None


def _bytes(dtype: pa.DataType) -> PgType | None:
    if types.is_string(dtype) or types.is_large_string(dtype):
        return PgType("text", dtype, "text")
    if types.is_string_view(dtype):
        return PgType("text", pa.large_string(), "text")
    if types.is_binary(dtype) or types.is_large_binary(dtype) or types.is_fixed_size_binary(dtype):
        return PgType("bytea", dtype, "bytea")
    if types.is_binary_view(dtype):
        return PgType("bytea", pa.large_binary(), "bytea")
    return None


@dataclass(frozen=True)
class PostgresTargetColumn:
    """A column of a target table, from pg_attribute; a domain counts as its base type. `modifier`: atttypmod or -1."""

    name: str
    type_name: str  #: pg_type.typname, schema-qualified outside pg_catalog; "enum" for every enum
    type_text: str  #: as a person writes it
    modifier: int = -1
    not_null: bool = False
    has_default: bool = False
    generated: bool = False
    is_domain: bool = False
    in_key: bool = False  #: the primary one

    @property
    def reads_text(self) -> bool:
        """True if the type's input function parses a text, which it may refuse."""
        return self.is_domain or self.type_name in _FROM_TEXT

    @property
    def needed(self) -> bool:
        return self.not_null and not self.has_default and not self.generated

    @property
    def digits(self) -> tuple[int, int]:
        """p and s of numeric(p,s)."""
        return (self.modifier - 4) >> 16 & 0xFFFF, ((self.modifier - 4 & 0x7FF) ^ 1024) - 1024

    @property
    def max_chars(self) -> int | None:
        """n of varchar(n)."""
        return self.modifier - 4 if self.type_name in ("varchar", "bpchar") and self.modifier >= 0 else None

    @property
    def is_bigint(self) -> bool:
        return self.type_name == "int8"

    def refusal(self, field: pa.Field) -> str | None:
        """Why values of `field` would not come back as they are; None if they would."""
        kind = postgres_type(field.type)
        if kind is None:
            return f"Arrow type {field.type} has no Postgres type that gives it back: cast it in the transform"
        if self.generated:
            return "it is a generated column: leave it out of the output"
        compatible = {kind.name, "varchar", *_FROM_TEXT} if kind.name == "text" else {kind.name}
        if self.type_name not in compatible:
            return f"the table has {self.type_text}, the output's {field.type} needs {kind.ddl}: change one of them"
        if kind.name == "_numeric" and self.modifier >= 0:
            return _numeric_refusal(kind, self)
        if kind.name.lstrip("_").startswith("time") and self.modifier >= 0:
            return f"the table has {self.type_text}, which rounds: use {kind.ddl} without a precision"
        return None


def _numeric_refusal(kind: PgType, column: PostgresTargetColumn) -> str | None:
    dtype = kind.wire.value_type if kind.is_list else kind.wire
    precision, scale = column.digits
    if scale < dtype.scale or precision - scale < dtype.precision - dtype.scale:
        return f"the table has {column.type_text}, which can't hold every {dtype}: it needs {kind.ddl} or numeric"
    return None


def to_wire(
    array: pa.Array, kind: PgType, column: PostgresTargetColumn, where: str, describe: Callable[[int], str]
) -> pa.Array:
    """`array` as it is encoded. Raises `SinkRejected` for values that Postgres would change without an error.

    `describe`: names a row by its number.
    """
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.type != kind.wire:
        array = array.cast(kind.wire)
    if kind.bounds:
        _check_bounds(array.flatten() if kind.is_list else array, kind, where)
    for fits, why in _checks(kind, column):
        if not fits(array):
            row = next(row for row in range(len(array)) if not fits(array.slice(row, 1)))
            raise SinkRejected(f"{where}, {describe(row)}: {why}")
    return array


def _checks(kind: PgType, column: PostgresTargetColumn) -> Iterator[tuple[Callable[[pa.Array], bool], str]]:
    """Predicates that values of the column's type have to satisfy beyond those of `kind`, with an error text each."""
    if (max_chars := column.max_chars) is not None:
        yield (
            lambda texts: (pc.max(pc.utf8_length(texts)).as_py() or 0) <= max_chars,
            f"a text has more than {max_chars} characters",
        )
    if column.type_name in _FITS:
        yield _FITS[column.type_name]
    if kind.name == "numeric" and column.modifier >= 0 and _numeric_refusal(kind, column):
        dtype = pa.decimal128(min(column.digits[0], 38), column.digits[1])
        yield lambda numbers: _casts(numbers, dtype), f"{column.type_text} can't hold it"


def _casts(array: pa.Array, dtype: pa.DataType) -> bool:
    try:
        array.cast(dtype)
    except pa.ArrowInvalid:
        return False
    return True


def _has_names_once(array: pa.Array) -> bool:
    """True if no object in these JSON texts has a name twice. The server refuses texts that are no JSON."""
    twice: list[bool] = []
    decoder = json.JSONDecoder(
        object_pairs_hook=lambda pairs: twice.append(len(dict(pairs)) < len(pairs)), parse_int=str, parse_float=str
    )
    for text in array.drop_null().to_pylist():
        try:
            decoder.decode(text)
        except RecursionError:
            return False
        except ValueError:
            continue
    return not any(twice)


_UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
#: type → predicate that it keeps all of these texts, and an error text
_FITS: dict[str, tuple[Callable[[pa.Array], bool], str]] = {
    "uuid": (
        lambda texts: pc.all(pc.match_substring_regex(texts, _UUID)).as_py() is not False,
        "not a uuid in lower case with hyphens",
    ),
    "bpchar": (
        lambda texts: not pc.any(pc.ends_with(texts, " ")).as_py(),
        "char(n) keeps no space at the end: trim it",
    ),
    "jsonb": (_has_names_once, "an object has a name twice, and jsonb drops one of the values"),
}


def _check_bounds(array: pa.Array, kind: PgType, where: str) -> None:
    assert kind.bounds is not None
    width = pa.int32() if types.is_date32(array.type) else pa.int64()
    extremes = pc.min_max(array.view(width))
    low, high = extremes["min"].as_py(), extremes["max"].as_py()
    if low is not None and not (kind.bounds[0] <= low and high <= kind.bounds[1]):
        span = f"values from {low} to {high} ({array.type}, since 1970)"
        values = span if rows_shown() else with_hint(f"values of {array.type}")
        raise SinkRejected(f"{where}: {values} are outside what Postgres can hold")
