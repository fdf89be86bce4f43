"""Parquet files of one schema written anew as one: batch by batch, counted and digested as read and as written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep.errors import CompactionRefused, InvalidPipeline
from lockstep.wal.digest import RowDigest
from lockstep.wal.file_facts import FileFacts
from lockstep.wal.parquet import ParquetWriter

BATCH_BYTES = 8 << 20  #: of rows as they stand in memory, about
GROUP_BYTES = 64 << 20  #: of a row group that is written, as it stands in memory: what rewriting needs of it
_ROWS, _BUFFER = 1 << 16, 1 << 20
_TEXT, _BYTES = pa.string(), pa.binary()
_PLAIN = {pa.large_string(): _TEXT, pa.string_view(): _TEXT, pa.large_binary(): _BYTES, pa.binary_view(): _BYTES}

OpenFile = Callable[[], Any]  #: a fresh, seekable binary file
Choose = Callable[[pa.RecordBatch], pa.RecordBatch]  #: rows of a batch that are to be written


def schema_of(footer: pq.FileMetaData) -> pa.Schema:
    """Columns with field ids and nullability, without what a writer says of itself: large and view types of Arrow, and
    dictionaries, become plain ones, and timestamps of INT96 are microseconds in UTC."""
    leaves = (footer.schema.column(number) for number in range(footer.num_columns))
    int96 = any(leaf.physical_type == "INT96" for leaf in leaves)
    return pa.schema([_plain(column, int96) for column in footer.schema.to_arrow_schema()])


def _plain(column: pa.Field, int96: bool) -> pa.Field:
    type = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_struct(type):
        type = pa.struct([_plain(part, int96) for part in type])
    elif pa.types.is_list(type) or pa.types.is_large_list(type):
        type = pa.list_(_plain(type.value_field, int96))
    elif int96 and type == pa.timestamp("ns"):
        type = pa.timestamp("us", "UTC")
    return column.with_type(_PLAIN.get(type, type))


def facts_of(footer: pq.FileMetaData) -> FileFacts:
    """Facts of a file that is to be rewritten, with the schema that it is rewritten by."""
    return replace(FileFacts.of(footer), schema=schema_of(footer))


def is_comparable(schema: pa.Schema) -> bool:
    """Whether the digest takes every column."""
    try:
        RowDigest(schema)
    except InvalidPipeline:
        return False
    return True


def footer_of(open_file: OpenFile) -> pq.FileMetaData:
    """What a file says of itself."""
    with closing(open_file()) as raw:
        return pq.read_metadata(raw)


def rewrite(
    sources: Sequence[OpenFile],
    target: Any,
    choose: Choose = lambda batch: batch,
    numbered: Callable[[pa.Schema], pa.Schema] = lambda schema: schema,
) -> RowDigest:
    """Write the rows of all `sources` that are chosen, in order, to `target`; the count and digest of those read.

    All of them have one schema, once they are `numbered`, which is what is written. No more is in memory than a row
    group of `GROUP_BYTES`, whatever the files' sizes. Raises `InvalidPipeline` for a type that the digest can't take,
    OSError, pa.ArrowException.
    """
    writer: ParquetWriter | None = None
    try:
        for number, open_file in enumerate(sources):
            with closing(open_file()) as raw, _reading(raw) as file:
                if writer is None:
                    schema = numbered(schema_of(file.metadata))
                    digest, rows = RowDigest(schema), _Group(schema)
                    writer = ParquetWriter(target, schema, compression=_codec(file.metadata))
                if not numbered(schema_of(file.metadata)).equals(schema, check_metadata=True):
                    raise ValueError(f"file {number} has another schema than those before it")
                for batch in (choose(batch.rename_columns(schema.names)) for batch in _batches(file)):
                    digest.update(batch)
                    rows.add(batch, writer)
        if writer is None:
            raise ValueError("no files")
        rows.flush(writer)
    finally:
        if writer is not None:
            writer.close()
    return digest


def require_written(open_file: OpenFile, read: RowDigest, who: str, path: str) -> pq.FileMetaData:
    """Read back what was written; its footer. Raises `CompactionRefused` if it isn't what was read."""
    with closing(open_file()) as raw, _reading(raw) as file:
        written = RowDigest(schema_of(file.metadata))
        for batch in _batches(file):
            written.update(batch)
        footer = file.metadata
    if (written.rows, written.hexdigest()) != (read.rows, read.hexdigest()):
        raise CompactionRefused(
            f"{who}: {path} has {written.rows} rows with digest {written.hexdigest()}, those that were read were "
            f"{read.rows} with {read.hexdigest()}: the table was left as it is; look at the disk and its log"
        )
    return footer


class _Group:
    """Rows that wait to become a row group."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema, self._waiting, self._bytes = schema, list[pa.RecordBatch](), 0

    def add(self, batch: pa.RecordBatch, writer: ParquetWriter) -> None:
        self._waiting.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= GROUP_BYTES:
            self.flush(writer)

    def flush(self, writer: ParquetWriter) -> None:
        if self._waiting:
            batches = [batch.replace_schema_metadata(None) for batch in self._waiting]
            writer.write_table(pa.Table.from_batches(batches, self._schema))
            self._waiting, self._bytes = [], 0


def _reading(raw: Any) -> pq.ParquetFile:
    """Pages are read as they are needed: a whole row group may be larger than memory."""
    return pq.ParquetFile(raw, pre_buffer=False, buffer_size=_BUFFER, coerce_int96_timestamp_unit="us")


def _batches(file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    schema = schema_of(file.metadata)
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        bytes_a_row = max(1, group.total_byte_size // max(1, group.num_rows))
        rows = max(1, min(_ROWS, BATCH_BYTES // bytes_a_row))
        yield from (batch.cast(schema) for batch in file.iter_batches(batch_size=rows, row_groups=[number]))


def _codec(footer: pq.FileMetaData) -> str:
    """As the files had it that are written anew."""
    if footer.num_row_groups and footer.num_columns:
        found = str(footer.row_group(0).column(0).compression)
        return "none" if found == "UNCOMPRESSED" else found.lower()
    return "snappy"
