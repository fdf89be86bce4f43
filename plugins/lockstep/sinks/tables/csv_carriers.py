"""How columns travel from a database to pyarrow by CSV, without a loss: an empty field is null, "" an empty text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv


@dataclass(frozen=True)
class Carrier:
    """How one column travels: what to select, what CSV type to parse, and what to make of that."""

    select: Any  #: an expression, in the form that its database's driver takes
    csv_type: pa.DataType
    finish: Callable[[pa.Array], pa.Array]


def options(carriers: Sequence[Carrier], names: Sequence[str] | None, block: int) -> dict[str, Any]:
    """Arguments of `csv.open_csv`. `names` None: there is a header of 0, 1, …; `block`: bytes, a row has to fit."""
    return {
        "read_options": csv.ReadOptions(block_size=block, column_names=names),
        "parse_options": csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        "convert_options": csv.ConvertOptions(
            column_types={str(index): carrier.csv_type for index, carrier in enumerate(carriers)},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        ),
    }


def restore(batch: pa.RecordBatch, carriers: Sequence[Carrier], schema: pa.Schema) -> pa.RecordBatch:
    """The parsed columns as those of `schema`."""
    columns = [
        carrier.finish(column).cast(field.type)
        for carrier, column, field in zip(carriers, batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def as_binary(array: pa.Array) -> pa.Array:
    """Binary of large strings of hex digits, by numpy on their buffers."""
    buffers = array.buffers()
    offsets = np.frombuffer(buffers[1], np.int64, len(array) + 1, array.offset * 8)
    digits = np.frombuffer(buffers[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    nibbles = np.where(digits < ord("a"), digits - ord("0"), digits - (ord("a") - 10))
    data = (nibbles[0::2] << 4 | nibbles[1::2]).astype(np.uint8)
    halves = (offsets - offsets[0]) // 2
    validity = array.is_valid().buffers()[1] if array.null_count else None
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(array), [validity, pa.py_buffer(halves), pa.py_buffer(data)]
    )


def as_hex(array: pa.Array) -> pa.Array:
    """Large strings of hex digits, by numpy on the buffers of large binaries."""
    offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, array.offset * 8)
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    text = np.empty(2 * len(data), np.uint8)
    text[0::2], text[1::2] = digits[data >> 4], digits[data & 15]
    validity = array.is_valid().buffers()[1] if array.null_count else None
    places = pa.py_buffer(2 * (offsets - offsets[0]))
    return pa.LargeStringArray.from_buffers(len(array), places, pa.py_buffer(text), validity)
