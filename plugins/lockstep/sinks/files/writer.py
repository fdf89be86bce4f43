"""One output's rows written into a folder, as files of bounded size, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from lockstep.sinks.durable_file import HashedFile
from lockstep.sinks.files.format import Encoder, FileFormat, RowGroups, encoder
from lockstep.sinks.files.listing import FileFact

ROWS_PER_FILE = 1 << 20
BYTES_PER_FILE = 128 << 20


class Unwritable(ValueError):
    """A row can't stand in a file of this format."""


@dataclass(frozen=True)
class Rolling:
    """When a file is closed and the next begun: it has `rows` rows exactly, or has reached `bytes`.

    The size is known after each row group (65,536 rows, or a quarter of `bytes` in memory).
    """

    rows: int = ROWS_PER_FILE
    bytes: int = BYTES_PER_FILE


@dataclass(frozen=True)
class FileWriter:
    """Writes files of one format and schema into `folder`, one at a time; all that it writes have numbers of their own.

    `name(n)` is the n-th file's name, without the bucket. `syncs`: how many files may be made durable at once, while
    the next one is written; a journal takes several in one write, so many small files take a quarter of the time.
    """

    folder: Path
    name: Callable[[int], str]
    format: FileFormat
    schema: pa.Schema
    rolling: Rolling
    syncs: int = 1

    def write(self, buckets: Iterable[tuple[str, Iterable[pa.RecordBatch]]]) -> Iterator[FileFact]:
        """Each bucket's rows as files, none without rows; a file that is told is fsynced. Raises `Unwritable`, OSError.

        The files are told in the order of their numbers.
        """
        if self.syncs == 1:
            yield from (written.durable() for written in self._written(buckets))
            return
        with ThreadPoolExecutor(self.syncs) as pool:
            waiting: deque[Future[FileFact]] = deque()
            for written in self._written(buckets):
                waiting.append(pool.submit(written.durable))
                if len(waiting) == self.syncs:
                    yield waiting.popleft().result()
            yield from (one.result() for one in waiting)

    def _written(self, buckets: Iterable[tuple[str, Iterable[pa.RecordBatch]]]) -> Iterator[_Written]:
        number = 0
        for bucket, batches in buckets:
            groups = RowGroups(batches, self.schema, self.rolling.rows, self.rolling.bytes // 4)
            while (first := groups.take(self.rolling.rows)) is not None:
                yield self._write_file(bucket, self.name(number), first, groups)
                number += 1

    def _write_file(self, bucket: str, name: str, first: pa.Table, rest: RowGroups) -> _Written:
        file = HashedFile(self.folder / name)
        try:
            writer = encoder(self.format, file, self.schema)
            try:
                rows = self._fill(writer, file, first, rest)
                writer.close()
            except BaseException:
                with suppress(Exception):  # or pyarrow tries it again later, when nobody listens
                    writer.close()
                raise
        except BaseException:
            file.release()
            raise
        return _Written(f"{bucket}/{name}" if bucket else name, rows, file)

    def _fill(self, writer: Encoder, file: HashedFile, first: pa.Table, rest: RowGroups) -> int:
        table: pa.Table | None = first
        rows = 0
        while table is not None:
            try:
                writer.write(table)
            except (ValueError, NotImplementedError) as error:
                raise Unwritable(str(error)) from error
            rows += table.num_rows
            full = rows >= self.rolling.rows or file.size >= self.rolling.bytes
            table = None if full else rest.take(self.rolling.rows - rows)
        return rows


@dataclass(frozen=True)
class _Written:
    """A file that has all its rows and may be lost yet."""

    name: str
    rows: int
    file: HashedFile

    def durable(self) -> FileFact:
        try:
            return FileFact(self.name, self.rows, sha256=self.file.finish(), bytes=self.file.size)
        finally:
            self.file.release()
