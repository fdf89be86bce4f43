"""JSON bodies of records as columns again, type by type as `append_records` wrote them."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from lockstep.errors import TargetUnreadable


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
