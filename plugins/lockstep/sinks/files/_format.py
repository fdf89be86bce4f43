"""Encoding of Arrow rows as Parquet, CSV, JSON lines or text files of bounded size, and decoding.

The same rows give the same bytes, however they are batched, with the same pyarrow: options are fixed, files contain no
time and no host name, row groups and files are cut by row numbers (and by bytes in memory, for wide rows).
"""

from __future__ import annotations

import io
import json
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from pyarrow import types

from lockstep.errors import SinkRejected
from lockstep.sinks.durable_file import HashedFile
from lockstep.sinks.files._target import Keep, PublishedFile
from lockstep.wal.parquet import ParquetWriter

ROWS_PER_GROUP = 1 << 16
ROWS_PER_FILE = 1 << 20
BYTES_PER_FILE = 128 << 20
_FIRST, _END = -62_135_596_800, 253_402_300_800  # seconds: years 1 to 9999
_READ_BLOCK = 16 << 20  # bytes: no CSV row may be longer


class FileFormat(StrEnum):
    """Format of published files."""

    PARQUET = "parquet"
    CSV = "csv"  #: a header line, then one line a row; an unquoted empty field is null
    JSON = "json"  #: JSON lines: one object a row
    TEXT = "text"  #: one column of text, one line a row

    @property
    def suffix(self) -> str:
        """Suffix of file names."""
        return "txt" if self is FileFormat.TEXT else self.value


def without_metadata(schema: pa.Schema) -> pa.Schema:
    """`schema` without metadata, so that the bytes depend on the rows alone."""
    return pa.schema([pa.field(field.name, field.type, field.nullable) for field in schema])


class RowGroups:
    """Hands out rows in order, as tables of ROWS_PER_GROUP rows, or fewer rows of `size` bytes."""

    def __init__(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int, size: int) -> None:
        self._batches, self._schema = iter(batches), schema
        self._rows, self._size = min(ROWS_PER_GROUP, rows), max(1, size)
        self._rest: pa.RecordBatch | None = None

    def take(self, most: int) -> pa.Table | None:
        """The next rows, at most `most`; None at the end."""
        parts: list[pa.RecordBatch] = []
        rows, size = min(self._rows, most), self._size
        while rows and size > 0 and (batch := self._next()) is not None:
            part = _within(batch.slice(0, rows), size)
            self._rest = batch.slice(part.num_rows)
            parts.append(part)
            rows, size = rows - part.num_rows, size - part.nbytes
        return _table(parts, self._schema) if parts else None

    def _next(self) -> pa.RecordBatch | None:
        batch, self._rest = self._rest, None
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
    """Yield a function that writes tables of `schema` (see `without_metadata`) into one file; the end of the block
    completes it.

    The file stays open. The function raises `SinkRejected` for a row that the format can't express.
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
        with suppress(Exception):  # otherwise pyarrow closes it again in its destructor
            writer.close()
        raise


def _rejecting(format: FileFormat, write: Callable[[pa.Table], None]) -> Callable[[pa.Table], None]:
    def write_or_reject(table: pa.Table) -> None:
        try:
            table.validate(full=True)  # text must be UTF-8
            write(table)
        except (ValueError, NotImplementedError) as error:
            raise SinkRejected(f"a row can't be written as {format}: {error}") from error

    return write_or_reject


def _write_csv(csv: pa_csv.CSVWriter, table: pa.Table) -> None:
    _require_years(table)
    if table.num_columns == 1 and table.column(0).null_count:
        raise ValueError("a null in the only column would be an empty line, not a row: add a column, or use json")
    csv.write(table)


def _require_years(table: pa.Table) -> None:
    """Raise ValueError for a date or time outside of the years 1 to 9999: readers don't accept its text."""
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
            raise ValueError(f"a null, a line end or a byte order mark, which a text file can't contain: {line!r:.60}")
    file.write("".join(f"{line}\n" for line in lines).encode())


# --- unsupported types --------------------------------------------------------------------------------------------


def unsupported(format: FileFormat, schema: pa.Schema) -> list[str]:
    """One sentence for each column that a file of this format couldn't give back unchanged."""
    if format is FileFormat.TEXT:
        fits = len(schema) == 1 and _is_text(schema.field(0).type)
        return [] if fits else [f"anything but one column of text, and the output has {', '.join(map(str, schema))}"]
    repeated = {name for name in schema.names if schema.names.count(name) > 1}
    duplicates = [f"column {name!r} occurs twice" for name in sorted(repeated)]
    return duplicates + [f"column {f.name!r} has the type {f.type}" for f in schema if not _keeps(format, f.type)]


def _keeps(format: FileFormat, dtype: pa.DataType) -> bool:
    match format:
        case FileFormat.PARQUET:
            schema, file = pa.schema([("column", dtype)]), io.BytesIO()
            try:
                pq.ParquetWriter(file, schema).close()  # empty_table() would import pandas, which takes a second
                return bool(pq.read_schema(pa.BufferReader(file.getvalue())).equals(schema))
            except (pa.ArrowException, NotImplementedError):
                return False
        case FileFormat.CSV:
            return _text_keeps(dtype)
        case FileFormat.JSON:
            return _json_keeps(dtype)
        case FileFormat.TEXT:
            return _is_text(dtype)


def _is_text(dtype: pa.DataType) -> bool:
    return bool(types.is_string(dtype) or types.is_large_string(dtype))


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
    """The type in JSON: numbers, booleans, lists and objects are JSON's own, anything else is text."""
    if types.is_list(dtype):
        return pa.list_(_json_type(dtype.value_type))
    if types.is_struct(dtype):
        return pa.struct([pa.field(f.name, _json_type(f.type)) for f in dtype])
    own = types.is_integer(dtype) or types.is_floating(dtype) or types.is_boolean(dtype)
    return dtype if own else pa.string()


# --- reading ---------------------------------------------------------------------------------------------------------


def read_rows(format: FileFormat, file: BinaryIO, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows of a published file, cast to `schema`. Raises OSError, and ArrowInvalid or ValueError if it is damaged."""
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
            while lines := file.readlines(_READ_BLOCK):
                yield pa.Table.from_pylist([json.loads(line) for line in lines], _as_json(schema))
        case FileFormat.TEXT:
            while lines := file.readlines(_READ_BLOCK):
                if not lines[-1].endswith(b"\n"):
                    raise ValueError("the last line has no line end")
                yield pa.table([pa.array([line[:-1].decode() for line in lines], pa.string())], names=schema.names)


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


# --- files of bounded size -------------------------------------------------------------------------------------------


def write_files(
    folder: Path,
    name: Callable[[int], str],
    format: FileFormat,
    schema: pa.Schema,
    buckets: Iterable[tuple[str, Iterable[pa.RecordBatch]]],
    *,
    max_rows: int = ROWS_PER_FILE,
    max_bytes: int = BYTES_PER_FILE,
    syncs: int = 1,
    keep: Keep | None = None,
) -> Iterator[PublishedFile]:
    """Write each bucket's rows as files in `folder`, one after the other; yield each once it is kept. No file is empty.

    `name(n)` is the n-th file's name, without the bucket. A file is closed at exactly `max_rows` rows, or once it has
    `max_bytes`, known after each row group (65,536 rows, or a quarter of `max_bytes` in memory). `syncs`: number of
    files that are kept concurrently while the next one is written; a journal writes several fsyncs at once, so many
    small files take a quarter of the time. `keep`: makes a file durable. Raises `SinkRejected`, OSError.
    """
    keep_file: Keep = keep or keep_synced

    def make_durable(name: str, rows: int, file: HashedFile) -> PublishedFile:
        try:
            return keep_file(name, rows, file)
        finally:
            file.release()

    files = _written_files(folder, name, format, schema, buckets, max_rows, max_bytes)
    if syncs == 1:
        yield from (make_durable(*file) for file in files)
        return
    with ThreadPoolExecutor(syncs) as pool:
        waiting: deque[Future[PublishedFile]] = deque()
        for file in files:
            waiting.append(pool.submit(make_durable, *file))
            if len(waiting) == syncs:
                yield waiting.popleft().result()
        yield from (future.result() for future in waiting)


def _written_files(
    folder: Path,
    name: Callable[[int], str],
    format: FileFormat,
    schema: pa.Schema,
    buckets: Iterable[tuple[str, Iterable[pa.RecordBatch]]],
    max_rows: int,
    max_bytes: int,
) -> Iterator[tuple[str, int, HashedFile]]:
    """(final name, rows, file) of each complete file, not durable yet."""
    number = 0
    for bucket, batches in buckets:
        groups = RowGroups(batches, schema, max_rows, max_bytes // 4)
        table = groups.take(max_rows)
        while table is not None:
            pending, rows = name(number), 0
            file = HashedFile(folder / pending)
            try:
                with encoder(format, file, schema) as write:
                    while table is not None:
                        write(table)
                        rows += table.num_rows
                        full = rows >= max_rows or file.size >= max_bytes
                        table = None if full else groups.take(max_rows - rows)
            except BaseException:
                file.release()
                raise
            yield f"{bucket}/{pending}" if bucket else pending, rows, file
            number += 1
            table = groups.take(max_rows)


def keep_synced(name: str, rows: int, file: HashedFile) -> PublishedFile:
    """A `Keep` that leaves the file where it is."""
    return PublishedFile(name, rows, sha256=file.finish(), bytes=file.size)
