"""Parquet files of a WAL: reads return rows of exactly the hashed bytes; writes omit bounds of floats.

Files of up to 16 MB are read once into memory. Larger files are hashed in a first pass that also records the sha256 of
each chunk; `_CheckedFile` compares each chunk with it before the parser gets it. If a file changes between the passes,
`WalCorrupt` is raised. Memory is bounded at any file size: pages are read through 1 MB buffers, and the rows per batch
follow from the footer's uncompressed size.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep.connections.raw_file import RawFile
from lockstep.errors import WalCorrupt
from lockstep.wal._storage import ReadableFile, Storage, naming_errors
from lockstep.wal.file_facts import NULLS

IN_MEMORY = 16 << 20  #: bytes up to which a file is read once
BATCH_ROWS = 1 << 16
_BATCH_BYTES = 16 << 20
_CHUNK = 256 << 10
_BLOCK = 16 * _CHUNK  # one request to an object store
_BUFFER = 1 << 20


@dataclass(frozen=True)
class Fingerprint:
    """Size and hashes of a file's bytes."""

    size: int
    sha256: str
    chunks: tuple[bytes, ...] = field(repr=False)  #: sha256 of each 256 kB; empty if `content` is there
    content: bytes | None = field(repr=False)  #: complete, of a small file


def fingerprint(storage: Storage, path: str, fresh: bool = False) -> Fingerprint:
    """Hash the file at `path`; `fresh` bypasses caches where possible. Raises OSError and `StagingRefused`."""
    with closing(storage.open(path, fresh)) as file:
        size = file.seek(0, io.SEEK_END) or file.tell()
        file.seek(0)
        if size <= IN_MEMORY:
            content = file.read()
            return Fingerprint(len(content), hashlib.sha256(content).hexdigest(), (), content)
        return _hash_chunks(file)


def _hash_chunks(file: ReadableFile) -> Fingerprint:
    whole, size, chunks = hashlib.sha256(), 0, []
    while block := file.read(_BLOCK):
        whole.update(block)
        size += len(block)
        chunks += [_digest(block, start) for start in range(0, len(block), _CHUNK)]
    return Fingerprint(size, whole.hexdigest(), tuple(chunks), None)


def _digest(block: bytes, start: int) -> bytes:
    return hashlib.sha256(memoryview(block)[start : start + _CHUNK]).digest()


class ParquetRows:
    """Rows of one fingerprinted file; close it after use.

    Raises `WalCorrupt` for an invalid file, `StagingUnavailable` for an unreadable one.
    """

    def __init__(self, storage: Storage, path: str, hashed: Fingerprint) -> None:
        self._path = path
        self._source: _CheckedFile | None = None
        if hashed.content is None:
            with naming_errors("read", path):
                self._source = _CheckedFile(storage.open(path), path, hashed)
        try:
            self._file = self._parse(self._source or pa.BufferReader(hashed.content))
        except BaseException:
            self.close()
            raise
        self.schema: pa.Schema = self._file.schema_arrow
        self.footer: pq.FileMetaData = self._file.metadata
        self.rows: int = self.footer.num_rows

    def _parse(self, source: object) -> pq.ParquetFile:
        with _parsing(self._path):
            return pq.ParquetFile(source, buffer_size=_BUFFER, pre_buffer=False)

    def batches(self, schema: pa.Schema, only: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows under `schema`, which must match the file's first columns; further columns are omitted.

        `only`: names of the columns of `schema` if they are not the first ones; others aren't parsed.
        """
        parsed = None if only is None or any("." in name for name in only) else list(only)  # Arrow takes dots as paths
        with _parsing(self._path):
            groups = range(self.footer.num_row_groups)
            size: int = sum(self.footer.row_group(group).total_byte_size for group in groups)
            batch_rows = max(1, min(BATCH_ROWS, _BATCH_BYTES * self.rows // max(size, 1)))
            rows = iter(self._file.iter_batches(batch_size=batch_rows, columns=parsed))
        while True:
            with _parsing(self._path):
                batch = next(rows, None)
                if batch is None:
                    return
                columns = batch.columns[: len(schema)] if only is None else [batch[name] for name in schema.names]
                batch = pa.RecordBatch.from_arrays(columns, schema=schema)
            yield batch

    def close(self) -> None:
        if self._source is not None:
            self._source.close()

    def __enter__(self) -> ParquetRows:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _parsing:  # no generator: entered once per batch
    """Converts Arrow's errors on verified bytes to `WalCorrupt`: the file was sealed corrupt."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, OSError | pa.ArrowException):
            raise WalCorrupt(f"{self._path} can't be parsed as Parquet: {error}") from error


class _CheckedFile(RawFile):
    """A file read in chunks that are compared with its fingerprint."""

    def __init__(self, file: ReadableFile, path: str, hashed: Fingerprint) -> None:
        super().__init__(hashed.size)
        self._file, self._path, self._hashed = file, path, hashed

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._at + size, self._size)
        if end <= self._at:
            return b""
        first, last = self._at // _CHUNK, (end - 1) // _CHUNK
        block = self._chunks(first, last)
        start = first * _CHUNK
        data = block[self._at - start : end - start]
        self._at = end
        return data

    def _chunks(self, first: int, last: int) -> bytes:
        with naming_errors("read", self._path):
            self._file.seek(first * _CHUNK)
            block = self._file.read((last - first + 1) * _CHUNK)
        digests = [_digest(block, start) for start in range(0, len(block), _CHUNK)]
        if digests != list(self._hashed.chunks[first : last + 1]):
            raise WalCorrupt(f"{self._path} changed while it was read, near byte {first * _CHUNK}")
        return block

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def columns_with_statistics(schema: pa.Schema) -> list[str] | bool:
    """Value for pyarrow's `write_statistics`: paths of all columns but floats, including nested ones."""
    pq.ParquetWriter(empty := io.BytesIO(), schema).close()
    footer = pq.read_metadata(empty).schema
    columns = [footer.column(number) for number in range(len(footer))]
    kinds = {column.path: {column.physical_type, column.logical_type.type} for column in columns}
    floats = {path for path, kind in kinds.items() if kind & {"FLOAT", "DOUBLE", "FLOAT16"}}
    return [path for path in kinds if path not in floats] if floats else True


class ParquetWriter(pq.ParquetWriter):  # type: ignore[misc]  # pyarrow has no types
    """Parquet writer without statistics of floats: pyarrow omits NaN from bounds, and readers that order NaN above all
    numbers would skip row groups. Null counts of float columns are written to the metadata."""

    def __init__(self, target: Any, schema: pa.Schema, **options: Any) -> None:
        self._nulls = {field.name: 0 for field in schema if pa.types.is_floating(field.type)}
        super().__init__(target, schema, write_statistics=columns_with_statistics(schema), **options)

    def write_table(self, table: pa.Table, row_group_size: int | None = None) -> None:
        for name in self._nulls:
            self._nulls[name] += table[name].null_count
        super().write_table(table, row_group_size)

    def close(self) -> None:
        if self.is_open and self._nulls:
            self.add_key_value_metadata({NULLS: json.dumps(self._nulls)})
        super().close()
