"""Rows as JSON objects and back, a column at a time: what `append_only.records` writes a row at a time, byte for byte.

Arrow makes the text of what is common, Python of the rest, and one join makes the objects.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lockstep.errors import SinkRejected, TargetUnreadable
from lockstep.sinks.append_only.records import json_text

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_UTC = ("UTC", "Etc/UTC", "+00:00")
#: What a JSON text writes in another way than it is.
_CONTROLS = "[\\x00-\\x1f]"

_TextOf = Callable[[pa.Array], pa.Array | None]


def json_objects(batch: pa.RecordBatch, where: str) -> pa.Array:
    """Each row as a JSON object in UTF-8, binary. Raises `SinkRejected` for a value that JSON can't say."""
    pieces: list[object] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        opening = f"{',' if pieces else '{'}{json.dumps(name, ensure_ascii=False)}:"
        pieces += [opening, _texts(column, where)]
    if not pieces:
        return pa.array([b"{}"] * batch.num_rows, pa.binary())
    joined = pc.binary_join_element_wise(*pieces, "}", "", null_handling="replace", null_replacement="null")
    return joined.cast(pa.binary())


def _texts(column: pa.Array, where: str) -> pa.Array:
    """JSON of each value; null stays null."""
    found = _text_of(column.type)(column)
    return _one_by_one(column, where) if found is None else found


def _text_of(dtype: pa.DataType) -> _TextOf:
    if types.is_integer(dtype) or types.is_boolean(dtype):
        return lambda column: column.cast(pa.string())
    if types.is_string(dtype):
        return _quoted
    if types.is_date32(dtype):
        return _days
    if types.is_timestamp(dtype):
        return _instants
    return lambda column: None


def _quoted(column: pa.Array) -> pa.Array | None:
    try:
        column.validate(full=True)  # text that is no UTF-8 would pass unseen
    except pa.ArrowInvalid:
        return None
    if pc.any(pc.match_substring_regex(column, _CONTROLS)).as_py():
        return None
    for mark in ("\\", '"'):
        column = pc.replace_substring(column, mark, f"\\{mark}")
    return _in_quotes(column)


def _days(column: pa.Array) -> pa.Array | None:
    number = column.cast(pa.int32())
    if not _within(number, 1 - _EPOCH_DAY, date.max.toordinal() - _EPOCH_DAY):
        return None
    return _in_quotes(column.cast(pa.string()))


def _instants(column: pa.Array) -> pa.Array | None:
    """Whole seconds of UTC, or without a zone, in the years that `datetime` knows."""
    if column.type.tz is not None and column.type.tz not in _UTC:
        return None
    try:
        seconds = column.cast(pa.timestamp("s"))
    except pa.ArrowInvalid:  # parts of a second
        return None
    first, last = (1 - _EPOCH_DAY) * 86_400, (date.max.toordinal() - _EPOCH_DAY) * 86_400
    if not _within(seconds.cast(pa.int64()), first, last):
        return None
    text = pc.replace_substring(seconds.cast(pa.string()), " ", "T")
    return _in_quotes(text, "+00:00" if column.type.tz else "")


def _within(numbers: pa.Array, least: int, most: int) -> bool:
    found = pc.min_max(numbers).as_py()
    return found["min"] is None or (least <= found["min"] and found["max"] <= most)


def _in_quotes(column: pa.Array, suffix: str = "") -> pa.Array:
    return pc.binary_join_element_wise('"', column, f'{suffix}"', "")


def _one_by_one(column: pa.Array, where: str) -> pa.Array:
    try:
        values = column.to_pylist()
    except (ValueError, OverflowError, pa.ArrowException) as error:  # text that is no UTF-8, a year above 9999
        raise SinkRejected(f"{where}: a value can't be read: {type(error).__name__}: {str(error)[:200]}") from error
    return pa.array([None if one is None else json_text(one, where) for one in values], pa.string())


def json_columns(bodies: Sequence[bytes | None], schema: pa.Schema) -> dict[str, pa.Array]:
    """The columns of `schema` that the bodies have. Raises `TargetUnreadable`."""
    rows = [json.loads(body or b"{}") for body in bodies]
    return {field.name: _column([row.get(field.name) for row in rows], field) for field in schema}


def _column(values: list[Any], field: pa.Field) -> pa.Array:
    dtype = field.type
    if types.is_nested(dtype) or types.is_duration(dtype) or types.is_time(dtype):
        raise TargetUnreadable(f"column {field.name} is {dtype}, which can't be read back from JSON exactly")
    if types.is_binary(dtype) or types.is_large_binary(dtype):
        return pa.array([None if one is None else base64.b64decode(one) for one in values], dtype)
    if types.is_temporal(dtype) or types.is_decimal(dtype):
        return pa.array(values, pa.string()).cast(dtype)
    return pa.array(values, dtype)
