"""One output's rows written into a folder, as files of bounded size, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from lockstep.sinks.durable_file import HashedFile
from lockstep.sinks.files._format import FileFormat, RowGroups, encoder
from lockstep.sinks.files._listing import FileFact

#: (final name, rows, file with all of them) → what the file is once it is durable. Raises OSError, `SinkRejected`.
Keep: TypeAlias = Callable[[str, int, HashedFile], FileFact]

ROWS_PER_FILE = 1 << 20
BYTES_PER_FILE = 128 << 20


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
) -> Iterator[FileFact]:
    """Each bucket's rows as files in `folder`, one at a time, none without rows; each is kept before it is yielded.

    `name(n)` is the n-th file's name, without the bucket. A file is closed when it has `max_rows` rows exactly, or has
    reached `max_bytes`: the size is known after each row group (65,536 rows, or a quarter of `max_bytes` in memory).
    `syncs`: how many files may be kept at once, while the next one is written; a journal takes several in one
    write, so many small files take a quarter of the time. `keep`: what does that. Raises `SinkRejected`, OSError.
    """
    written = _written_files(folder, name, format, schema, buckets, max_rows, max_bytes)
    make_durable = partial(_make_durable, keep or keep_synced)
    if syncs == 1:
        yield from (make_durable(*one) for one in written)
        return
    with ThreadPoolExecutor(syncs) as pool:
        waiting: deque[Future[FileFact]] = deque()
        for one in written:
            waiting.append(pool.submit(make_durable, *one))
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
    """(final name, rows, file): files that have all their rows and may be lost yet."""
    number = 0
    for bucket, batches in buckets:
        groups = RowGroups(batches, schema, max_rows, max_bytes // 4)
        while (first := groups.take(max_rows)) is not None:
            pending = name(number)
            file = HashedFile(folder / pending)
            try:
                rows = _write_file(file, format, schema, first, groups, max_rows, max_bytes)
            except BaseException:
                file.release()
                raise
            yield f"{bucket}/{pending}" if bucket else pending, rows, file
            number += 1


def _write_file(
    file: HashedFile,
    format: FileFormat,
    schema: pa.Schema,
    first: pa.Table,
    rest: RowGroups,
    max_rows: int,
    max_bytes: int,
) -> int:
    table: pa.Table | None = first
    rows = 0
    with encoder(format, file, schema) as write:
        while table is not None:
            write(table)
            rows += table.num_rows
            full = rows >= max_rows or file.size >= max_bytes
            table = None if full else rest.take(max_rows - rows)
    return rows


def _make_durable(keep: Keep, name: str, rows: int, file: HashedFile) -> FileFact:
    try:
        return keep(name, rows, file)
    finally:
        file.release()


def keep_synced(name: str, rows: int, file: HashedFile) -> FileFact:
    """A `Keep`: the file stays where it is."""
    return FileFact(name, rows, sha256=file.finish(), bytes=file.size)
