"""Rows as lines of JSON for people and programs, whatever is in them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from lockstep.epoch import Json
from lockstep.errors import SinkRejected
from lockstep.sinks.json_rows import json_objects, small_batches


def row_lines(batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """An object a row, as sinks of JSON write it. What they refuse is text: NaN, infinities, and what has no word."""
    for batch in small_batches(iter(batches)):
        try:
            yield from (one.decode() for one in json_objects(batch, "the rows").to_pylist())
        except SinkRejected:
            for row in batch.to_pylist():
                yield json.dumps(_plain(row), ensure_ascii=False, default=str, separators=(",", ":"))


def _plain(value: Any) -> Json:
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    return value
