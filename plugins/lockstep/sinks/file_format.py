"""How Arrow rows become Parquet, CSV or JSON lines, always the same bytes for the same rows, and rows again.

The same rows, cut into whatever batches, give the same files as long as pyarrow is the same: fixed options, no time, no
name of a machine, row groups and files cut by row numbers (and by bytes, where 65,536 rows take more than 64 MB).
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from pyarrow import types

from lockstep.sinks.durable_file import HashedFile

ROWS_PER_GROUP = 1 << 16
BYTES_PER_GROUP = 64 << 20  # of Arrow buffers
_READ_BLOCK = 16 << 20  # bytes: no CSV row may be longer


class FileFormat(StrEnum):
    """What a published file is written in."""

    PARQUET = "parquet"
    CSV = "csv"  #: a header line, then one line a row; an unquoted empty field is null
    JSON = "json"  #: JSON lines: one object a row


class Encoder(Protocol):
    """Writes tables into one open file; `close` writes what belongs at its end and leaves the file open."""

    def write(self, table: pa.Table) -> None: ...
    def close(self) -> None: ...


def plain(schema: pa.Schema) -> pa.Schema:
    """`schema` without the metadata of whoever wrote the WAL: the bytes shall depend on the rows alone."""
    return pa.schema([pa.field(field.name, field.type, field.nullable) for field in schema])


def groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows again as tables of ROWS_PER_GROUP rows (the last may be shorter, wide rows make shorter ones)."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        while batch.num_rows:
            part = batch.slice(0, ROWS_PER_GROUP - rows)
            batch = batch.slice(part.num_rows)
            waiting.append(part)
            rows, size = rows + part.num_rows, size + part.nbytes
            if rows == ROWS_PER_GROUP or size >= BYTES_PER_GROUP:
                yield _table(waiting, schema)
                waiting, rows, size = [], 0, 0
    if waiting:
        yield _table(waiting, schema)


def _table(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    table = pa.Table.from_batches(batches).select(schema.names).cast(schema)
    return table.combine_chunks()  # Parquet's pages follow the chunks


def encoder(format: FileFormat, file: HashedFile, schema: pa.Schema) -> Encoder:
    """An encoder for one file of `schema` (see `plain`)."""
    match format:
        case FileFormat.PARQUET:
            return _Parquet(file, schema)
        case FileFormat.CSV:
            return _Csv(file, schema)
        case FileFormat.JSON:
            return _JsonLines(file, schema)


class _Parquet:
    def __init__(self, file: HashedFile, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(file, schema, version="2.6", compression="snappy", store_schema=True)

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=table.num_rows)

    def close(self) -> None:
        self._writer.close()


class _Csv:
    def __init__(self, file: HashedFile, schema: pa.Schema) -> None:
        self._writer = pa_csv.CSVWriter(file, schema, write_options=pa_csv.WriteOptions(batch_size=ROWS_PER_GROUP))

    def write(self, table: pa.Table) -> None:
        self._writer.write(table)

    def close(self) -> None:
        self._writer.close()


class _JsonLines:
    def __init__(self, file: HashedFile, schema: pa.Schema) -> None:
        self._file, self._schema = file, _as_json(schema)

    def write(self, table: pa.Table) -> None:
        for row in table.cast(self._schema).to_pylist():
            line = json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            self._file.write(line.encode() + b"\n")

    def close(self) -> None:
        """JSON lines have no end."""


# --- what a format can't keep ----------------------------------------------------------------------------------------


def unkept(format: FileFormat, schema: pa.Schema) -> list[str]:
    """One text for each column that a file of this format couldn't give back as it was."""
    doubled = {name for name in schema.names if schema.names.count(name) > 1}
    found = [f"column {name!r} stands twice" for name in sorted(doubled)]
    return found + [f"column {f.name!r} has the type {f.type}" for f in schema if not _keeps(format, f.type)]


def _keeps(format: FileFormat, dtype: pa.DataType) -> bool:
    match format:
        case FileFormat.PARQUET:
            return _parquet_keeps(dtype)
        case FileFormat.CSV:
            return _text_keeps(dtype)
        case FileFormat.JSON:
            return _json_keeps(dtype)


def _parquet_keeps(dtype: pa.DataType) -> bool:
    schema = pa.schema([("column", dtype)])
    file = io.BytesIO()
    try:
        pq.ParquetWriter(file, schema).close()  # an empty_table() would import pandas first, which takes a second
        return bool(pq.read_schema(pa.BufferReader(file.getvalue())).equals(schema))
    except (pa.ArrowException, NotImplementedError):
        return False


def _text_keeps(dtype: pa.DataType) -> bool:
    number = types.is_integer(dtype) or types.is_float32(dtype) or types.is_float64(dtype) or types.is_decimal128(dtype)
    text = types.is_string(dtype) or types.is_large_string(dtype)
    return bool(number or text or types.is_boolean(dtype) or types.is_date32(dtype) or types.is_timestamp(dtype))


def _json_keeps(dtype: pa.DataType) -> bool:
    if types.is_list(dtype):
        return _json_keeps(dtype.value_type)
    if types.is_struct(dtype):  # texts under a null struct can't be cast back, so its fields have to be JSON's own
        return all(_json_keeps(field.type) and _json_type(field.type).equals(field.type) for field in dtype)
    return _text_keeps(dtype)


def _as_json(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, _json_type(field.type)) for field in schema])


def _json_type(dtype: pa.DataType) -> pa.DataType:
    """What JSON has in the place of a type: numbers, booleans, lists and objects are its own, the rest is text."""
    if types.is_list(dtype):
        return pa.list_(_json_type(dtype.value_type))
    if types.is_struct(dtype):
        return pa.struct([pa.field(f.name, _json_type(f.type)) for f in dtype])
    own = types.is_integer(dtype) or types.is_floating(dtype) or types.is_boolean(dtype)
    return dtype if own else pa.string()


# --- reading ---------------------------------------------------------------------------------------------------------


def read_rows(format: FileFormat, path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of one published file, cast to `schema`. Raises OSError, and ArrowInvalid or ValueError if damaged."""
    for table in _tables(format, path, schema):
        yield from table.select(schema.names).cast(schema).to_batches()


def _tables(format: FileFormat, path: Path, schema: pa.Schema) -> Iterator[pa.Table]:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        match format:
            case FileFormat.PARQUET:
                batches = pq.ParquetFile(file).iter_batches(ROWS_PER_GROUP, use_threads=False)
                yield from (pa.Table.from_batches([batch]) for batch in batches)
            case FileFormat.CSV:
                yield from (pa.Table.from_batches([batch]) for batch in _open_csv(file, schema))
            case FileFormat.JSON:
                yield from _json_tables(file, schema)


def _open_csv(file: io.BufferedReader, schema: pa.Schema) -> pa_csv.CSVStreamingReader:
    return pa_csv.open_csv(
        file,
        read_options=pa_csv.ReadOptions(use_threads=False, block_size=_READ_BLOCK),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(schema.names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _json_tables(file: io.BufferedReader, schema: pa.Schema) -> Iterator[pa.Table]:
    while lines := file.readlines(_READ_BLOCK):
        yield pa.Table.from_pylist([json.loads(line) for line in lines], _as_json(schema))
