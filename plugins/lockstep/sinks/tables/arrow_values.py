"""Arrow values on their way into and out of tables: text, CSV, sizes, and a small epoch's rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, types

from lockstep.sinks.values import Batches

Rows: TypeAlias = "pa.Table | pa.RecordBatch"

#: limit of `sort_in_memory`, in bytes of Arrow data before sorting; larger epochs are read batch by batch
MAX_BYTES = 48 << 20
_MAX_EXAMPLES = 3
_BATCH_ROWS = 65_536


# --- columns from a database to pyarrow by CSV: an empty field is null, "" an empty text ------------------------------


@dataclass(frozen=True)
class Carrier:
    """Transport of one column by CSV: the expression to select, the CSV type to parse, and the last conversion."""

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
    """Cast the parsed columns to those of `schema`."""
    columns = [
        carrier.finish(column).cast(field.type)
        for carrier, column, field in zip(carriers, batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


# --- hex digits, by numpy on the buffers ------------------------------------------------------------------------------


def as_binary(array: pa.Array) -> pa.Array:
    """Decode large strings of hex digits to large binaries."""
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
    """Encode large binaries as large strings of hex digits."""
    offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, array.offset * 8)
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    text = np.empty(2 * len(data), np.uint8)
    text[0::2], text[1::2] = digits[data >> 4], digits[data & 15]
    validity = array.is_valid().buffers()[1] if array.null_count else None
    places = pa.py_buffer(2 * (offsets - offsets[0]))
    return pa.LargeStringArray.from_buffers(len(array), places, pa.py_buffer(text), validity)


def int64s(value: int, rows: int) -> pa.Array:
    """An array of `rows` times `value`; pa.array and pa.repeat would import pandas first, which takes a second."""
    return pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(np.full(rows, value, np.int64))])


# --- what a server may refuse of a value whose type fits --------------------------------------------------------------


def longest(rows: Rows) -> dict[str, int] | None:
    """Bytes of the longest value of each column of text or bytes.

    None where a text is no UTF-8, or a column holds neither that nor numbers or times.
    """
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


# --- a small epoch's rows, sorted by key ------------------------------------------------------------------------------


@dataclass(frozen=True)
class SortedRows:
    """An output's rows in memory, in the order of their keys. Satisfies `Batches`; `rows`: the sealed number."""

    output: str
    rows: int
    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from self.table.to_batches(_BATCH_ROWS)

    def repeated(self, columns: Sequence[str]) -> list[object]:
        """Some values of `columns` that occur more than once. The rows have to be sorted by these columns first."""
        if self.table.num_rows < 2:
            return []
        equal = reduce(pc.and_, (_equals_previous(self.table[name]) for name in columns))
        places = np.flatnonzero(equal.to_numpy(zero_copy_only=False))[:_MAX_EXAMPLES] + 1
        rows = [tuple(row.values()) for row in self.table.select(columns).take(pa.array(places)).to_pylist()]
        return list(dict.fromkeys(row if len(row) > 1 else row[0] for row in rows))

    def span(self, name: str) -> tuple[object, object] | None:
        """Least and greatest value of a column of numbers or times; None for other types and for no rows."""
        dtype = self.schema.field(name).type
        is_ordered = types.is_integer(dtype) or types.is_date32(dtype) or types.is_timestamp(dtype)
        if not self.table.num_rows or not is_ordered:
            return None
        try:
            extremes = pc.min_max(self.table[name]).as_py()
        except (ValueError, OverflowError):  # a year that Python doesn't have
            return None
        return extremes["min"], extremes["max"]


def sort_in_memory(batches: Batches, order: Sequence[tuple[str, str]], max_bytes: int) -> SortedRows | None:
    """All rows, sorted by the columns of `order` ("ascending" or "descending").

    None if they take more than `max_bytes`, or Arrow can't sort them.
    """
    decoded: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        columns = [array.dictionary_decode() if types.is_dictionary(array.type) else array for array in batch.columns]
        decoded.append(pa.RecordBatch.from_arrays(columns, names=batch.schema.names))
        size += decoded[-1].nbytes
        if size > max_bytes:
            return None
    schema = decoded[0].schema if decoded else batches.schema
    table = pa.Table.from_batches(decoded, schema).combine_chunks()
    try:
        places = pc.sort_indices(table, sort_keys=list(order))
    except pa.ArrowNotImplementedError:
        return None
    if not np.array_equal(places.to_numpy(), np.arange(len(places))):
        table = table.take(places)
    return SortedRows(batches.output, batches.rows, table)


def _equals_previous(column: pa.ChunkedArray) -> pa.Array:
    values: Any = column.combine_chunks()
    return pc.equal(values.slice(1), values.slice(0, len(values) - 1))
