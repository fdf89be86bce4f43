"""What a server may refuse of a value whose type fits: how long it is, and what stands in it."""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

Rows: TypeAlias = "pa.Table | pa.RecordBatch"


def longest(rows: Rows) -> dict[str, int] | None:
    """The bytes of the longest value of each column of text or bytes; None where a text is no UTF-8, or a column is
    neither that nor of numbers or times."""
    if not all(_is_plain(field.type) for field in rows.schema):
        return None
    columns = {field.name: rows[field.name] for field in rows.schema if _has_length(field.type)}
    try:
        for column in columns.values():
            column.validate(full=True)
    except pa.ArrowInvalid:
        return None
    return {name: pc.max(pc.binary_length(column)).as_py() or 0 for name, column in columns.items()}


def has_character(rows: Rows, character: str) -> bool:
    """Whether some text has it."""
    columns = (rows[field.name] for field in rows.schema if _is_text(field.type))
    return any(pc.any(pc.match_substring(column, character)).as_py() for column in columns)


def _is_plain(dtype: pa.DataType) -> bool:
    number = types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype) or types.is_boolean(dtype)
    return bool(number or types.is_temporal(dtype) or _has_length(dtype))


def _has_length(dtype: pa.DataType) -> bool:
    data = types.is_binary(dtype) or types.is_large_binary(dtype) or types.is_fixed_size_binary(dtype)
    return bool(data or _is_text(dtype))


def _is_text(dtype: pa.DataType) -> bool:
    return bool(types.is_string(dtype) or types.is_large_string(dtype))
