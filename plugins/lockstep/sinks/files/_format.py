"""How Arrow rows become Parquet, CSV, JSON lines or text, always the same bytes for the same rows, and rows again.

The same rows, cut into whatever batches, give the same files as long as pyarrow is the same: fixed options, no time, no
name of a machine, row groups and files cut by row numbers (and by bytes in memory, where rows are wide).
"""

from __future__ import annotations

import io
import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import partial
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from pyarrow import types

from lockstep.errors import SinkRejected
from lockstep.sinks.durable_file import HashedFile
from lockstep.wal.parquet import ParquetWriter

ROWS_PER_GROUP = 1 << 16
_FIRST, _END = -62_135_596_800, 253_402_300_800  # seconds: years 1 to 9999
_READ_BLOCK = 16 << 20  # bytes: no CSV row may be longer


class FileFormat(StrEnum):
    """What a published file is written in."""

    PARQUET = "parquet"
    CSV = "csv"  #: a header line, then one line a row; an unquoted empty field is null
    JSON = "json"  #: JSON lines: one object a row
    TEXT = "text"  #: one column of text, one line a row

    @property
    def suffix(self) -> str:
        """What file names end with."""
        return "txt" if self is FileFormat.TEXT else self.value


def plain(schema: pa.Schema) -> pa.Schema:
    """`schema` without the metadata of whoever wrote the WAL: the bytes shall depend on the rows alone."""
    return pa.schema([pa.field(field.name, field.type, field.nullable) for field in schema])


class RowGroups:
    """Rows, handed out in order as tables of ROWS_PER_GROUP rows, or fewer where they have reached `size` bytes."""

    def __init__(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int, size: int) -> None:
        self._batches, self._schema = iter(batches), schema
        self._rows, self._size = min(ROWS_PER_GROUP, rows), max(1, size)
        self._left: pa.RecordBatch | None = None

    def take(self, most: int) -> pa.Table | None:
        """The next rows, at most `most`; None at the end."""
        parts: list[pa.RecordBatch] = []
        wanted, room = min(self._rows, most), self._size
        while wanted and room > 0 and (batch := self._next()) is not None:
            part = _within(batch.slice(0, wanted), room)
            self._left = batch.slice(part.num_rows)
            parts.append(part)
            wanted, room = wanted - part.num_rows, room - part.nbytes
        return _table(parts, self._schema) if parts else None

    def _next(self) -> pa.RecordBatch | None:
        batch, self._left = self._left, None
        while batch is None or not batch.num_rows:
            if (batch := next(self._batches, None)) is None:
                return None
        return batch


def _within(batch: pa.RecordBatch, room: int) -> pa.RecordBatch:
    """The first rows of `batch`, up to the one that reaches `room` bytes."""
    if batch.nbytes <= room:
        return batch
    return batch.slice(0, bisect_left(range(1, batch.num_rows), room, key=lambda rows: batch.slice(0, rows).nbytes) + 1)


def _table(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    table = pa.Table.from_batches(batches).select(schema.names).cast(schema)
    return table.combine_chunks()  # Parquet's pages follow the chunks


@contextmanager
def encoder(format: FileFormat, file: HashedFile, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """What writes tables of `schema` (see `plain`) into one file; leaving the block writes what belongs at its end.

    The file stays open. What it yields raises `SinkRejected` for a row that can't stand in a file of this format.
    """
    match format:
        case FileFormat.PARQUET:
            parquet = ParquetWriter(file, schema, version="2.6", compression="snappy", store_schema=True)
            with _closing(parquet):
                yield _rejecting(format, lambda table: parquet.write_table(table, row_group_size=table.num_rows))
        case FileFormat.CSV:
            csv = pa_csv.CSVWriter(file, schema, write_options=pa_csv.WriteOptions(batch_size=ROWS_PER_GROUP))
            with _closing(csv):
                yield _rejecting(format, partial(_write_csv, csv))
        case FileFormat.JSON:
            yield _rejecting(format, partial(_write_json, file, _as_json(schema)))
        case FileFormat.TEXT:
            yield _rejecting(format, partial(_write_text, file))


@contextmanager
def _closing(writer: Any) -> Iterator[None]:
    try:
        yield
        writer.close()
    except BaseException:
        with suppress(Exception):  # or pyarrow tries it again later, when nobody listens
            writer.close()
        raise


def _rejecting(format: FileFormat, write: Callable[[pa.Table], None]) -> Callable[[pa.Table], None]:
    def write_or_reject(table: pa.Table) -> None:
        try:
            table.validate(full=True)  # text that isn't UTF-8 makes a file that no reader takes
            write(table)
        except (ValueError, NotImplementedError) as error:
            raise SinkRejected(f"a row can't be written as {format}: {error}") from error

    return write_or_reject


def _write_csv(csv: pa_csv.CSVWriter, table: pa.Table) -> None:
    _require_years(table)
    if table.num_columns == 1 and table.column(0).null_count:
        raise ValueError("a null in the only column would be an empty line, which is no row: add a column, or use json")
    csv.write(table)


def _require_years(table: pa.Table) -> None:
    """ValueError for a date or time of which pyarrow writes no text that readers take: one of other years."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        values = column
        while types.is_list(values.type):
            values = pc.list_flatten(values)
        if not types.is_date32(values.type) and not types.is_timestamp(values.type):
            continue
        seconds = 1 if types.is_timestamp(values.type) else 86_400
        each = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}.get(getattr(values.type, "unit", ""), 1)
        bounds = pc.min_max(values.cast(pa.int32() if seconds > 1 else pa.int64())).as_py().values()
        if any(bound is not None and not _FIRST <= bound // each * seconds < _END for bound in bounds):
            raise ValueError(f"column {name!r} holds a date or time outside of the years 1 to 9999")


def _write_json(file: HashedFile, schema: pa.Schema, table: pa.Table) -> None:
    _require_years(table)
    for row in table.cast(schema).to_pylist():
        line = json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        file.write(line.encode() + b"\n")


def _write_text(file: HashedFile, table: pa.Table) -> None:
    lines = table.column(0).to_pylist()
    for line in lines:
        if line is None or "\n" in line or "\r" in line or line.startswith("\ufeff"):
            raise ValueError(f"a null, a line end or a byte order mark, which text can't keep: {line!r:.60}")
    file.write("".join(f"{line}\n" for line in lines).encode())


# --- what a format can't keep ----------------------------------------------------------------------------------------


def unkept(format: FileFormat, schema: pa.Schema) -> list[str]:
    """One text for each column that a file of this format couldn't give back as it was."""
    if format is FileFormat.TEXT:
        fits = len(schema) == 1 and _is_text(schema.field(0).type)
        return [] if fits else [f"anything but one column of text; found are {', '.join(map(str, schema))}"]
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
        case FileFormat.TEXT:
            return _is_text(dtype)


def _is_text(dtype: pa.DataType) -> bool:
    return bool(types.is_string(dtype) or types.is_large_string(dtype))


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
    return bool(
        number or _is_text(dtype) or types.is_boolean(dtype) or types.is_date32(dtype) or types.is_timestamp(dtype)
    )


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


def read_rows(format: FileFormat, file: BinaryIO, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of one published file, cast to `schema`. Raises OSError, and ArrowInvalid or ValueError if damaged."""
    for table in _tables(format, file, schema):
        yield from table.select(schema.names).cast(schema).to_batches()


def _tables(format: FileFormat, file: BinaryIO, schema: pa.Schema) -> Iterator[pa.Table]:
    match format:
        case FileFormat.PARQUET:
            batches = pq.ParquetFile(file).iter_batches(ROWS_PER_GROUP, use_threads=False)
            yield from (pa.Table.from_batches([batch]) for batch in batches)
        case FileFormat.CSV:
            yield from (pa.Table.from_batches([batch]) for batch in _open_csv(file, schema))
        case FileFormat.JSON:
            yield from _json_tables(file, schema)
        case FileFormat.TEXT:
            yield from _text_tables(file, schema)


def _open_csv(file: BinaryIO, schema: pa.Schema) -> pa_csv.CSVStreamingReader:
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


def _json_tables(file: BinaryIO, schema: pa.Schema) -> Iterator[pa.Table]:
    while lines := file.readlines(_READ_BLOCK):
        yield pa.Table.from_pylist([json.loads(line) for line in lines], _as_json(schema))


def _text_tables(file: BinaryIO, schema: pa.Schema) -> Iterator[pa.Table]:
    while lines := file.readlines(_READ_BLOCK):
        if not lines[-1].endswith(b"\n"):
            raise ValueError("the last line has no end")
        yield pa.table([pa.array([line[:-1].decode() for line in lines], pa.string())], names=schema.names)
