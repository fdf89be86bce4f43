"""One output's rows written into a folder, as files of bounded size, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from lockstep.errors import SinkRejected
from lockstep.sinks.base import Batches
from lockstep.sinks.durable_file import HashedFile
from lockstep.sinks.file_format import Encoder, FileFormat, encoder, groups, plain
from lockstep.sinks.file_listing import FileFact

ROWS_PER_FILE = 1 << 20
BYTES_PER_FILE = 128 << 20


def write_files(folder: Path, name: Callable[[int], str], format: FileFormat, batches: Batches) -> tuple[FileFact, ...]:
    """Files named `name(0)`, `name(1)`, … of at most 1,048,576 rows or about 128 MB, each fsynced; none without rows.

    Raises `SinkRejected` if a row can't be written or the rows aren't as many as were sealed, and OSError.
    """
    schema = plain(batches.schema)
    tables = groups(batches, schema)
    facts: list[FileFact] = []
    while (table := next(tables, None)) is not None:
        facts.append(_write_file(folder, name(len(facts)), format, schema, table, tables))
    rows = sum(fact.rows for fact in facts)
    if rows != batches.rows:
        raise SinkRejected(f"output {batches.output}: the WAL gave {rows} rows, {batches.rows} are sealed")
    return tuple(facts)


def _write_file(
    folder: Path, name: str, format: FileFormat, schema: pa.Schema, first: pa.Table, rest: Iterator[pa.Table]
) -> FileFact:
    file = HashedFile(folder / name)
    writer = encoder(format, file, schema)
    try:
        rows = _fill(writer, file, name, first, rest)
        writer.close()
        return FileFact(name, rows, sha256=file.finish(), bytes=file.size)
    except BaseException:
        with suppress(Exception):  # or pyarrow tries it again later, when nobody listens
            writer.close()
        raise
    finally:
        file.release()


def _fill(writer: Encoder, file: HashedFile, name: str, first: pa.Table, rest: Iterator[pa.Table]) -> int:
    table: pa.Table | None = first
    rows = 0
    while table is not None:
        try:
            writer.write(table)
        except (ValueError, NotImplementedError) as error:
            raise SinkRejected(f"{name}: a row can't be written: {error}") from error
        rows += table.num_rows
        table = next(rest, None) if rows < ROWS_PER_FILE and file.size < BYTES_PER_FILE else None
    return rows
