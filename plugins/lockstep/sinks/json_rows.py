"""Rows as JSON objects and back, a column at a time, with the same bytes as row by row.

Arrow makes the text of common types, Python of the others, and one join makes the objects.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lockstep.epoch import Json
from lockstep.errors import SinkRejected, TargetUnreadable

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_FIRST_DAY, _LAST_DAY = 1 - _EPOCH_DAY, date.max.toordinal() - _EPOCH_DAY
_UTC = ("UTC", "Etc/UTC", "+00:00")
_MICROSECONDS = {"s": 1_000_000, "ms": 1000, "us": 1}
#: Between these Arrow writes floats as Python does, except for the ".0" of whole numbers.
_PLAIN_FLOATS = (1e-4, 1e9)
#: Limits for making text at once: what fits a processor's cache, and below the 2 GB of an Arrow text column.
_ROWS, _BYTES = 8192, 32 << 20


# --- out -------------------------------------------------------------------------------------------------------------


def json_text(value: object, where: str) -> str:
    """Return the JSON text of one value. Raises `SinkRejected` for one that JSON can't express."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise SinkRejected(f"{where}: JSON can't say this: {_first_line(error)}") from error


def json_objects(batch: pa.RecordBatch, where: str, first: int = 0) -> pa.Array:
    """Return each row as a JSON object in UTF-8, binary. `first`: the number of the first row in messages. Raises
    `SinkRejected` for a value that JSON can't express."""
    return joined_objects(batch, where, first, ["{"], "}")


def joined_objects(batch: pa.RecordBatch, where: str, first: int, opening: Sequence[object], closing: str) -> pa.Array:
    """Like `json_objects`, with another beginning, made of texts and text columns, and another end."""
    pieces: list[object] = list(opening)
    separator = ""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        is_text = types.is_string(column.type) and not column.null_count
        text, quote = (_escaped(column) if is_text else None), '"'  # the quotes of a text join the text around it
        if text is None:
            text, quote = _text_of(column, where, first), ""
        _append(pieces, f"{separator}{json.dumps(name, ensure_ascii=False)}:{quote}")
        pieces.append(text)
        _append(pieces, quote)
        separator = ","
    _append(pieces, closing)
    if not any(isinstance(piece, pa.Array) for piece in pieces):
        return pa.array(["".join(map(str, pieces)).encode()] * batch.num_rows, pa.binary())
    joined = pc.binary_join_element_wise(*pieces, "", null_handling="replace", null_replacement="null")
    return joined.view(pa.binary())


def small_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of a size for which making text is fast."""
    for batch in batches:
        yield from _pieces(batch)


def max_bytes_of(column: pa.Array, where: str, first: int) -> int:
    """Return an upper bound for the bytes of a value in JSON; for most types without making the text. Raises
    `SinkRejected` for a value that JSON can't express."""
    bound = _bound_of(column)
    if bound is None:
        bound = pc.max(pc.binary_length(_text_of(column, where, first))).as_py()
    return max(bound or 0, len("null"))


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows <= 1 or (batch.num_rows <= _ROWS and batch.nbytes <= _BYTES):
        yield batch
        return
    half = batch.num_rows // 2
    yield from _pieces(batch.slice(0, half))
    yield from _pieces(batch.slice(half))


def _append(pieces: list[object], text: str) -> None:
    """Append to the last piece if that is text, too: each piece costs a copy per row."""
    if pieces and isinstance(pieces[-1], str):
        pieces[-1] += text
    elif text:
        pieces.append(text)


def _text_of(column: pa.Array, where: str, first: int) -> pa.Array:
    """Return the JSON text of each value; null stays null."""
    text = _arrow_text(column)
    return _one_by_one(column, where, first) if text is None else text


def _arrow_text(column: pa.Array) -> pa.Array | None:
    dtype = column.type
    if types.is_integer(dtype) or types.is_boolean(dtype):
        return column.cast(pa.string())
    if types.is_string(dtype):
        escaped = _escaped(column)
        return None if escaped is None else _in_quotes(escaped)
    if types.is_date32(dtype):
        return _in_quotes(column.cast(pa.string())) if _has_python_days(column) else None
    if types.is_timestamp(dtype):
        return _instants(column) if _has_python_instants(column) else None
    if types.is_decimal128(dtype):
        return _in_quotes(column.cast(pa.string())) if 0 <= dtype.scale <= dtype.precision else None
    if types.is_floating(dtype):
        return _floats(column)
    return None


def _escaped(column: pa.Array) -> pa.Array | None:
    """Return the escaped text without quotes; None if Python has to make it."""
    if not _is_text(column):
        return None
    content = _content(column)
    marks = [
        mark for mark in ("\\", '"') if (content == ord(mark)).any()
    ]  # the backslash first: the other escapes add some
    marks += map(chr, np.unique(content[content < 0x20]))
    for mark in marks:
        column = pc.replace_substring(column, mark, json.dumps(mark)[1:-1])
    return column


def _is_text(column: pa.Array) -> bool:
    try:
        column.validate(full=True)  # text that is no UTF-8 would pass unseen
    except pa.ArrowInvalid:
        return False
    return True


def _content(column: pa.Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return all bytes of a text column, those under nulls included."""
    _, places, content = column.buffers()
    if content is None or not len(column):
        return np.empty(0, np.uint8)
    ends = np.frombuffer(places, np.int32, len(column) + 1, 4 * column.offset)
    return np.frombuffer(content, np.uint8)[ends[0] : ends[-1]]


def _instants(column: pa.Array) -> pa.Array:
    """Write instants like `datetime.isoformat`, in UTC or without a zone; fractions of a second only if there are
    any."""
    local = column.cast(pa.int64()).cast(pa.timestamp(column.type.unit))
    try:
        text = local.cast(pa.timestamp("s")).cast(pa.string())
    except pa.ArrowInvalid:  # parts of a second
        micros = local.cast(pa.timestamp("us"))
        seconds = pc.floor_temporal(micros, unit="second")
        without = seconds.cast(pa.timestamp("s")).cast(pa.string())
        text = pc.if_else(pc.equal(micros, seconds), without, micros.cast(pa.string()))
    return _in_quotes(pc.replace_substring(text, " ", "T"), "+00:00" if column.type.tz else "")


def _floats(column: pa.Array) -> pa.Array | None:
    """Write floats like `repr`; None if one isn't finite."""
    wide = column.cast(pa.float64())
    size = pc.abs(wide)
    plain = pc.or_(
        pc.and_(pc.greater_equal(size, _PLAIN_FLOATS[0]), pc.less(size, _PLAIN_FLOATS[1])), pc.equal(size, 0.0)
    )
    if pc.any(pc.invert(plain)).as_py():
        return _encoded(wide)
    text = wide.cast(pa.string())
    return pc.if_else(pc.equal(wide, pc.trunc(wide)), pc.binary_join_element_wise(text, ".0", ""), text)


def _encoded(numbers: pa.Array) -> pa.Array | None:
    """Encode all numbers by one call; None if JSON can't express one of them."""
    try:
        text = _ENCODER.encode(numbers.to_pylist())
    except ValueError:
        return None
    return pa.array([None if number == "null" else number for number in text[1:-1].split(",")], pa.string())


def _in_quotes(column: pa.Array, suffix: str = "") -> pa.Array:
    return pc.binary_join_element_wise('"', column, f'{suffix}"', "")


def _one_by_one(column: pa.Array, where: str, first: int) -> pa.Array:
    try:
        values = column.to_pylist()
    except (ValueError, OverflowError, pa.ArrowException) as error:  # text that is no UTF-8, a year above 9999
        rows = f"{where}, the rows from {first} on"
        raise SinkRejected(f"{rows}: a value can't be read: {_first_line(error)}") from error
    texts = (
        None if value is None else json_text(value, f"{where}, row {number}")
        for number, value in enumerate(values, first)
    )
    return pa.array(texts, pa.string())


def _bound_of(column: pa.Array) -> int | None:
    """Return an upper bound for the length of a value's text; None if the text has to be made to check it."""
    dtype = column.type
    if types.is_null(dtype) or types.is_integer(dtype) or types.is_boolean(dtype):
        return 20
    if types.is_string(dtype):
        return 6 * (pc.max(pc.binary_length(column)).as_py() or 0) + 2 if _is_text(column) else None
    if types.is_date32(dtype):
        return 12 if _has_python_days(column) else None
    if types.is_timestamp(dtype):
        return 34 if _has_python_instants(column) else None
    if types.is_decimal128(dtype):
        return 48 if 0 <= dtype.scale <= dtype.precision else None
    if types.is_floating(dtype):
        return 26 if pc.all(pc.is_finite(column)).as_py() in (True, None) else None
    return None


def _has_python_days(column: pa.Array) -> bool:
    return _within(column.cast(pa.int32()), _FIRST_DAY, _LAST_DAY)


def _has_python_instants(column: pa.Array) -> bool:
    """Return True if all are in UTC or without a zone, in the years of `datetime`, and not finer than microseconds."""
    if (column.type.tz is not None and column.type.tz not in _UTC) or column.type.unit not in _MICROSECONDS:
        return False
    second = 1_000_000 // _MICROSECONDS[column.type.unit]
    return _within(column.cast(pa.int64()), _FIRST_DAY * 86_400 * second, (_LAST_DAY + 1) * 86_400 * second - 1)


def _within(numbers: pa.Array, smallest: int, largest: int) -> bool:
    extremes = pc.min_max(numbers).as_py()
    return extremes["min"] is None or (smallest <= extremes["min"] and extremes["max"] <= largest)


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"


#: how types that JSON lacks are written; a subclass like its parent
_WORDS: dict[type, Callable[[Any], Json]] = {
    Decimal: str,
    datetime: datetime.isoformat,
    date: date.isoformat,
    time: time.isoformat,
    timedelta: timedelta.total_seconds,
    bytes: lambda value: base64.b64encode(value).decode(),
}


def _as_json(value: object) -> Json:
    for kind in type(value).__mro__:
        if kind in _WORDS:
            return _WORDS[kind](value)
    raise TypeError(f"a value of type {type(value).__name__}")


_ENCODER = json.JSONEncoder(default=_as_json, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


# --- back ------------------------------------------------------------------------------------------------------------


def json_columns(bodies: Sequence[bytes | None], schema: pa.Schema) -> dict[str, pa.Array]:
    """Parse JSON objects into the columns of `schema`. Raises `TargetUnreadable`."""
    rows = [json.loads(body or b"{}") for body in bodies]
    return {field.name: _column([row.get(field.name) for row in rows], field) for field in schema}


def _column(values: list[Any], field: pa.Field) -> pa.Array:
    dtype = field.type
    if types.is_nested(dtype) or types.is_duration(dtype) or types.is_time(dtype):
        raise TargetUnreadable(f"column {field.name} is {dtype}, which can't be read back from JSON exactly")
    if types.is_binary(dtype) or types.is_large_binary(dtype):
        return pa.array([None if value is None else base64.b64decode(value) for value in values], dtype)
    if types.is_temporal(dtype) or types.is_decimal(dtype):
        return pa.array(values, pa.string()).cast(dtype)
    return pa.array(values, dtype)
