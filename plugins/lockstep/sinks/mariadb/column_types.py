"""Arrow types, the MariaDB types that hold their values exactly, and the text of each value.

LOAD DATA reads text. Types without an exact counterpart are refused before a row is sent, and values that MariaDB would
change (NaN, a negative zero, a year beyond 9999) when the text is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lockstep.errors import SinkRejected
from lockstep.sinks.tables.arrow_values import as_hex

_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, in days since 1970
_DAY = 86_400_000_000
_INTEGERS = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}
_TEXTS = ("varchar", "tinytext", "text", "mediumtext", "longtext")
_BLOBS = ("varbinary", "tinyblob", "blob", "mediumblob", "longblob")


KEY_COLLATION = "utf8mb4_nopad_bin"  #: compares texts byte by byte; others ignore case, or spaces at the end
_KEY_TYPES = {"longtext": f"varchar(255) COLLATE {KEY_COLLATION}", "longblob": "varbinary(255)"}

Text: TypeAlias = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True)
class MariaDbType:
    """A MariaDB type and how values become its text.

    `names`: data types of information_schema.columns that hold every value. `ddl`: the type in a created table. `load`:
    the expression by which LOAD DATA reads the text {}.
    """

    names: tuple[str, ...]
    ddl: str
    text: Text
    unsigned: bool = False
    load: str = "{}"

    @property
    def kind(self) -> str:
        return self.names[0]

    @property
    def key_ddl(self) -> str:
        """The type as part of a key, which can't hold a text of any length."""
        return _KEY_TYPES.get(self.ddl, self.ddl)


@dataclass(frozen=True)
class MariaDbTargetColumn:
    """A column of a target table, from information_schema.columns."""

    name: str
    data_type: str
    type_text: str  #: as a person writes it
    not_null: bool = False
    has_default: bool = False
    extra: str = ""
    charset: str | None = None
    precision: int | None = None
    scale: int | None = None
    fraction: int | None = None  #: digits of a second
    collation: str | None = None

    @property
    def generated(self) -> bool:
        return "GENERATED" in self.extra.upper()

    @property
    def needed(self) -> bool:
        return self.not_null and not self.has_default and not self.generated

    @property
    def unsigned(self) -> bool:
        return "unsigned" in self.type_text

    @property
    def is_bigint(self) -> bool:
        return self.data_type == "bigint" and not self.unsigned

    def refusal(self, field: pa.Field) -> str | None:
        """Why values of `field` would not come back as they are; None if they would."""
        kind = mariadb_type(field.type)
        if kind is None:
            return f"Arrow type {field.type} has no MariaDB type that gives it back: cast it in the transform"
        if self.generated:
            return "it is a generated column: leave it out of the output"
        if "auto_increment" in self.extra:
            return "it is AUTO_INCREMENT, which makes a number of a null: leave it out of the output"
        needs = f"the output's {field.type} needs {kind.ddl}: change one of them"
        if self.data_type not in kind.names or self.unsigned != kind.unsigned:
            return f"the table has {self.type_text}, {needs}"
        return _narrower(field.type, self, needs)


def mariadb_type(dtype: pa.DataType) -> MariaDbType | None:
    """The MariaDB type that gives every value of `dtype` back, or None."""
    if types.is_dictionary(dtype):
        inner = mariadb_type(dtype.value_type)
        return inner and MariaDbType(inner.names, inner.ddl, _decoded(inner.text), inner.unsigned, inner.load)
    return _number(dtype) or _moment(dtype) or _bytes(dtype)


def _decoded(text: Text) -> Text:
    return lambda array: text(array.dictionary_decode())


def _number(dtype: pa.DataType) -> MariaDbType | None:
    if types.is_boolean(dtype):
        return MariaDbType(("tinyint",), "boolean", lambda array: _as_text(array.cast(pa.int8())))
    if types.is_integer(dtype):
        name, unsigned = _INTEGERS[dtype.bit_width], types.is_unsigned_integer(dtype)
        return MariaDbType((name,), f"{name} unsigned" if unsigned else name, _as_text, unsigned)
    if types.is_floating(dtype):
        name = "double" if types.is_float64(dtype) else "float"
        return MariaDbType((name,), name, _float_text)
    if types.is_decimal(dtype) and dtype.bit_width <= 128 and 0 <= dtype.scale <= dtype.precision:
        return MariaDbType(("decimal",), f"decimal({dtype.precision},{dtype.scale})", _as_text)
    return None


def _moment(dtype: pa.DataType) -> MariaDbType | None:
    if types.is_date32(dtype):
        return MariaDbType(("date",), "date", _date_text)
    if types.is_time(dtype) and dtype.unit in _MICROS:
        return MariaDbType(("time",), "time(6)", _as_text)
    if types.is_timestamp(dtype) and dtype.unit in _MICROS:
        names = ("datetime", "timestamp") if dtype.tz else ("datetime",)
        return MariaDbType(names, "datetime(6)", _instant_text)
    return None


def _bytes(dtype: pa.DataType) -> MariaDbType | None:
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        return MariaDbType(_TEXTS, "longtext", _escaped)
    if types.is_fixed_size_binary(dtype) or types.is_binary_view(dtype):
        return MariaDbType(_BLOBS, "longblob", lambda array: as_hex(array.cast(pa.large_binary())), load="UNHEX({})")
    if types.is_binary(dtype) or types.is_large_binary(dtype):
        return MariaDbType(_BLOBS, "longblob", lambda array: as_hex(array.cast(pa.large_binary())), load="UNHEX({})")
    return None


def _narrower(dtype: pa.DataType, column: MariaDbTargetColumn, needs: str) -> str | None:
    """Why a column of the same kind of type would change values."""
    if column.data_type == "decimal" and types.is_decimal(dtype):
        precision, scale = column.precision or 0, column.scale or 0
        if scale < dtype.scale or precision - scale < dtype.precision - dtype.scale:
            return f"the table has {column.type_text}, {needs}"
    if column.data_type in ("time", "datetime", "timestamp") and column.fraction != 6:
        return f"the table has {column.type_text}, which cuts seconds off: {needs}"
    if column.data_type == "timestamp" and column.not_null:
        return "a timestamp that is NOT NULL makes the current time of a null: use datetime(6)"
    if column.data_type in ("float", "double") and "(" in column.type_text:
        return f"the table has {column.type_text}, which rounds: {needs}"
    if column.data_type in _TEXTS and column.charset != "utf8mb4":
        return f"its character set is {column.charset}, which lacks characters: use utf8mb4"
    return None


# --- text ------------------------------------------------------------------------------------------------------------


class Unfit(SinkRejected):
    """A value that MariaDB would change; the caller adds the column's name."""


def _as_text(array: pa.Array) -> pa.Array:
    return array.cast(pa.large_string())


def _float_text(array: pa.Array) -> pa.Array:
    """The shortest digits that give the same double, also of a narrower float."""
    wide = array.cast(pa.float64())
    values = wide.drop_null().to_numpy()
    if not np.isfinite(values).all():
        raise Unfit("NaN or infinity, which MariaDB can't hold")
    if (np.signbit(values) & (values == 0)).any():
        raise Unfit("a negative zero, which MariaDB gives back as zero: add 0.0 to it in the transform")
    return _as_text(wide)


def _date_text(array: pa.Array) -> pa.Array:
    _check_bounds(array.view(pa.int32()), _FIRST_DAY, _LAST_DAY)
    return _as_text(array)


def _instant_text(array: pa.Array) -> pa.Array:
    per_day = _DAY // _MICROS[array.type.unit]
    _check_bounds(array.view(pa.int64()), _FIRST_DAY * per_day, (_LAST_DAY + 1) * per_day - 1)
    return _as_text(array.view(pa.timestamp(array.type.unit)))  # Arrow keeps UTC; without the zone it prints no Z


def _check_bounds(array: pa.Array, low: int, high: int) -> None:
    extremes = pc.min_max(array)
    first, last = extremes["min"].as_py(), extremes["max"].as_py()
    if first is not None and not (low <= first and last <= high):
        raise Unfit("a year before 1 or after 9999, which MariaDB can't hold")


def _escaped(array: pa.Array) -> pa.Array:
    """Escape backslash, tab and newline for LOAD DATA; most texts have none and remain unchanged."""
    array = _as_text(array)
    offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, array.offset * 8)
    present = memoryview(array.buffers()[2] or b"")[offsets[0] : offsets[-1]].tobytes()
    for character, escape in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n")):
        if character.encode() in present:
            array = pc.replace_substring(array, character, escape)
    return array
