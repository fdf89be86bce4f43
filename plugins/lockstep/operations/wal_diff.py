"""diff: what two sealed WALs have different, as multisets of rows. Digests come first, rows only if they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lockstep.connections.duckdb import WatchedBatches, engine
from lockstep.errors import QueryRefused
from lockstep.operations.wal_log import find_output, naming_refusals, open_output
from lockstep.protocol.runtime import Runtime
from lockstep.wal.manifest import OutputManifest
from lockstep.wal.reading import OutputBatches

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Progress = Callable[[int, int], object]  #: rows read so far, of how many


@dataclass(frozen=True)
class DifferentRow:
    """Rows of one value that `epoch` has `times` more often than the other. `row`: a batch of one row."""

    epoch: int
    times: int
    row: pa.RecordBatch


@dataclass(frozen=True)
class WalDiff:
    """`first` and `second`: epochs. Rows are compared by the columns that both have."""

    output: str
    first: int
    second: int
    rows: tuple[int, int]
    only: tuple[int, int]  #: rows that only one has, as often as it has them more
    changed: int | None  #: keys under which each has rows that the other hasn't; None where nobody said by what
    columns_only: tuple[tuple[str, ...], tuple[str, ...]]
    by_digest: bool  #: equal, and no row was read
    examples: tuple[DifferentRow, ...]  #: with keys the rows of one beside each other, the first epoch's first

    @property
    def equal(self) -> bool:
        return not any(self.only) and not any(self.columns_only)


def diff(
    runtime: Runtime,
    first: int,
    second: int,
    output: str,
    by: Sequence[str] = (),
    limit: int = 20,
    progress: Progress = lambda done, of: None,
) -> WalDiff:
    """Compare an output of two epochs; `limit`: how many different rows are shown.

    Of columns that only one has nothing is compared, they are named. What is equal by digest needs no rows, so WALs
    that are gone do. Raises `QueryRefused`, `PackageMissing`, and as `open_output`.
    """
    sealed = [find_output(runtime, epoch, output) for epoch in (first, second)]
    rows = (sealed[0].rows, sealed[1].rows)
    if _are_equal(*sealed):
        changed = 0 if by else None
        return WalDiff(output, first, second, rows, (0, 0), changed, ((), ()), True, ())
    names = [list(batches.schema.names) for batches in sealed]
    common = [name for name in names[0] if name in names[1]]
    _require_keys(by, common, output)
    alone = [tuple(name for name in own if name not in common) for own in names]
    opened = [open_output(runtime, epoch, output) for epoch in (first, second)]
    only, changed, examples = _compare((first, second), opened, common, list(by), limit, progress)
    return WalDiff(output, first, second, rows, only, changed, (alone[0], alone[1]), False, tuple(examples))


def _are_equal(first: OutputManifest, second: OutputManifest) -> bool:
    return (first.rows, first.digest, first.columns) == (second.rows, second.digest, second.columns)


def _require_keys(by: Sequence[str], common: Sequence[str], output: str) -> None:
    if lacking := [name for name in by if name not in common]:
        raise QueryRefused(
            f"output {output} has no column {', '.join(lacking)} in both epochs; it has {', '.join(common)}"
        )
    if not common:
        raise QueryRefused(f"output {output} of the two epochs has no column in common")


def _compare(
    epochs: tuple[int, int],
    opened: Sequence[OutputBatches],
    columns: Sequence[str],
    by: Sequence[str],
    limit: int,
    progress: Progress,
) -> tuple[tuple[int, int], int | None, list[DifferentRow]]:
    read, total = [0], sum(output.rows for output in opened)

    def seen(rows: int) -> None:
        read[0] += rows
        progress(read[0], total)

    watched = [
        WatchedBatches(_numbered_schema(output.schema, columns, by), _numbered(output, columns, by, sign), seen)
        for output, sign in zip(opened, (1, -1), strict=True)
    ]
    with engine() as connection, naming_refusals(*watched):
        for name, output in zip(("first", "second"), watched, strict=True):
            connection.register(name, output.reader())
        connection.execute(_DIFFER)
        only = _one_row(connection, _COUNT_ROWS)
        changed = _one_row(connection, _COUNT_KEYS)[0] if by else None
        differences = connection.sql(_ROWS_BY_KEY if by else _ROWS, params=[limit]).to_arrow_table()
        return (only[0], only[1]), changed, list(_examples(epochs, differences, columns))


#: Columns have numbers in place of names there, beside the key, and `times`: 1 of a row of the first, -1 of the second.
_DIFFER = """
    CREATE TABLE different AS SELECT * EXCLUDE (times), sum(times)::BIGINT AS times
    FROM (SELECT * FROM first UNION ALL SELECT * FROM second) GROUP BY ALL HAVING sum(times) <> 0
"""
_COUNT_ROWS = """
    SELECT coalesce(sum(times) FILTER (WHERE times > 0), 0)::BIGINT,
           coalesce(-sum(times) FILTER (WHERE times < 0), 0)::BIGINT FROM different
"""
_COUNT_KEYS = """
    SELECT count(*) FROM (SELECT key FROM different GROUP BY key HAVING bool_or(times > 0) AND bool_or(times < 0))
"""
_ROWS = "SELECT * FROM different ORDER BY ALL LIMIT $1"
_ROWS_BY_KEY = "SELECT * FROM different ORDER BY key, times DESC LIMIT $1"


def _numbered_schema(schema: pa.Schema, columns: Sequence[str], by: Sequence[str]) -> pa.Schema:
    key = pa.struct([pa.field(str(number), schema.field(name).type) for number, name in enumerate(by)])
    fields = [pa.field(str(number), schema.field(name).type) for number, name in enumerate(columns)]
    return pa.schema([pa.field("key", key if by else pa.bool_()), *fields, pa.field("times", pa.int64())])


def _numbered(
    batches: Iterable[pa.RecordBatch], columns: Sequence[str], by: Sequence[str], sign: int
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = batch.num_rows
        keys = [batch.column(name) for name in by]
        key = pa.StructArray.from_arrays(keys, [str(n) for n in range(len(by))]) if by else pa.nulls(rows, pa.bool_())
        own = [batch.column(name) for name in columns]
        names = ["key", *(str(number) for number in range(len(columns))), "times"]
        yield pa.RecordBatch.from_arrays([key, *own, pa.repeat(pa.scalar(sign, pa.int64()), rows)], names)


def _examples(epochs: tuple[int, int], differences: pa.Table, columns: Sequence[str]) -> Iterator[DifferentRow]:
    rows = differences.drop_columns(["key", "times"]).rename_columns(list(columns))
    for number, often in enumerate(differences["times"].to_pylist()):
        [row] = rows.slice(number, 1).combine_chunks().to_batches()
        yield DifferentRow(epochs[0] if often > 0 else epochs[1], abs(often), row)


def _one_row(connection: DuckDBPyConnection, sql: str) -> tuple[int, ...]:
    [row] = connection.execute(sql).fetchall()
    return tuple(map(int, row))
