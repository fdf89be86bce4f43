"""Removal of replaced epochs' rows from a table's files.

A file that an epoch added has its rows alone, and is removed. A file into which its rows were compacted, by Lockstep or
by other software, has rows of other epochs too: these are rewritten into a new file, as by a compaction with a number
of its own, and the same commit swaps the files. Until then the table is unchanged; see `lockstep.sinks.compacting` for
files that are never committed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Generic

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockstep.errors import PreflightRefused, PublishBlocked, SinkUnavailable
from lockstep.sinks.adopting import TableVersion
from lockstep.sinks.compacting import (
    CompactingTable,
    RewrittenFile,
    TableFile,
    facts_of,
    footer_of,
    is_comparable,
    new_number,
    schema_of,
    write_anew,
)
from lockstep.sinks.values import SinkEpoch


@dataclass(frozen=True)
class RowRemoval:
    """Files to remove, and new files, written by compaction `number`, with those of their rows that stay. `number` is
    None if nothing was written."""

    removed: Sequence[TableFile] = ()
    added: Sequence[RewrittenFile] = ()
    number: int | None = None


NOTHING = RowRemoval()


class RowRemover(Generic[TableVersion]):
    """Removes the rows of all epochs that `epoch` replaces; kept while its publication tries several table versions.

    `column`: the epoch column; `output`: the output in the table.
    """

    def __init__(self, table: CompactingTable[TableVersion], column: str, epoch: SinkEpoch, output: str) -> None:
        self.epoch, self._table, self._column = epoch, table, column
        self._replaced = {replaced.id: replaced for replaced in (*epoch.replaced, *epoch.earlier)}
        self._epochs = f"epoch {', '.join(map(str, sorted(self._replaced)))}"
        self._output = output
        self._number = new_number()
        self._last: int | None = None
        self._counts: dict[TableFile, tuple[Counter[int], int]] = {}  # rows by replaced epoch, and rows that stay
        self._rewritten: dict[TableFile, RewrittenFile] = {}

    def require_removable(self, head: TableVersion) -> None:
        """Check before commit that every file can be rewritten. Writes nothing. Raises `PreflightRefused`."""
        for file, remaining in self._affected_files(head):
            if remaining:
                self._require_rewritable(head, file)

    def removal_at(self, head: TableVersion) -> RowRemoval:
        """Changes for a commit on this table version; writes the new files. Raises `PublishBlocked` for a file that
        can't be rewritten, `SinkUnavailable`, `CompactionRefused`."""
        try:
            if self._rewritten and self._table.last(head) != self._last:  # fenced: files written so far may be deleted
                self._start_anew()
            self._last = self._table.last(head)
            files = self._affected_files(head)
            added = [self._rewrite(head, file) for file, remaining in files if remaining]
        except PreflightRefused as error:
            raise PublishBlocked(f"{error}; the epoch that replaces it is decided, and waits for that") from error
        except (OSError, pa.ArrowException) as error:
            self._start_anew()  # a file may be incomplete
            raise SinkUnavailable(
                f"sink {self._table.name}: files with rows of {self._epochs} can't be rewritten: "
                f"{' '.join(str(error).split())}; nothing was changed"
            ) from error
        return RowRemoval(tuple(file for file, _ in files), tuple(added), self._number if added else None)

    def _start_anew(self) -> None:
        self._number, self._rewritten = new_number(), {}

    def _affected_files(self, head: TableVersion) -> list[tuple[TableFile, int]]:
        """Files with rows of the replaced epochs, and how many other rows they have. Raises `PreflightRefused`."""
        files, total = list[tuple[TableFile, int]](), Counter[int]()
        for file in self._table.files(head):
            if file.epoch is not None:
                counts, remaining = Counter({file.epoch: file.rows} if file.epoch in self._replaced else {}), 0
            elif self._may_hold(file):
                counts, remaining = self._count(head, file)
            else:
                continue
            if file.epoch in self._replaced or counts:
                self._require_visible(file)
                files.append((file, remaining))
                total += counts
        self._require_unmixed(total)
        return files

    def _may_hold(self, file: TableFile) -> bool:
        if file.epochs is None:
            return True
        least, greatest = file.epochs
        return any(least <= epoch <= greatest for epoch in self._replaced)

    def _require_visible(self, file: TableFile) -> None:
        if file.hides_rows:
            raise PreflightRefused(
                f"sink {self._table.name}: {file.path} is {file.skip_reason}, and with rows of {self._epochs}: have "
                "the table rewrite it without them (Delta: REORG TABLE … APPLY (PURGE); Iceberg: rewrite_data_files)"
            )

    def _require_unmixed(self, rows: Counter[int]) -> None:
        """Raise `PreflightRefused` if rows with these numbers aren't the epochs' own: an epoch has more rows than it
        published, or has rows together with the epoch that replaced it."""
        for number, replaced in sorted(self._replaced.items()):
            sealed = replaced.rows.get(self._output)
            if sealed is not None and rows[number] > sealed:
                raise self._refusal(f"{rows[number]} rows have the number of epoch {number}, which published {sealed}")
            if replaced.replaced_by is not None and rows[number] and rows[replaced.replaced_by]:
                raise self._refusal(
                    f"{rows[number]} rows have the number of epoch {number}, which epoch {replaced.replaced_by} "
                    f"replaced, besides {rows[replaced.replaced_by]} of that"
                )

    def _refusal(self, problem: str) -> PreflightRefused:
        return PreflightRefused(
            f"sink {self._table.name}: {problem}: some belong to another writer, a former owner for instance, and "
            f"would be removed with them; give those another number in {self._column}, or null"
        )

    def _count(self, head: TableVersion, file: TableFile) -> tuple[Counter[int], int]:
        """Rows by replaced epoch, and other rows, read from the file. Raises `PreflightRefused` if it isn't Parquet."""
        if file in self._counts:
            return self._counts[file]
        counts = Counter[int]()
        try:
            with closing(self._table.open_file(head, file.path)) as raw, pq.ParquetFile(raw) as parquet:
                rows, names = parquet.metadata.num_rows, self._table.numbered(head, schema_of(parquet.metadata)).names
                if self._column in names:  # files of other writers may lack it
                    for batch in parquet.iter_batches(columns=[parquet.schema_arrow.names[names.index(self._column)]]):
                        batch = batch.rename_columns([self._column])
                        entries = batch.filter(self._is_replaced(batch)).column(0).value_counts().to_pylist()
                        counts.update({entry["values"]: entry["counts"] for entry in entries})
        except pa.ArrowInvalid as error:
            raise PreflightRefused(
                f"sink {self._table.name}: {file.path} may have rows of {self._epochs}, and isn't a readable Parquet "
                f"file: {' '.join(str(error).split())}: have the table rewrite it, or restore what is damaged"
            ) from error
        self._counts[file] = counts, rows - counts.total()
        return self._counts[file]

    def _is_replaced(self, batch: pa.RecordBatch) -> pa.Array:
        column = batch.column(batch.schema.get_field_index(self._column))
        return pc.is_in(column, pa.array(sorted(self._replaced), column.type))

    def _require_rewritable(self, head: TableVersion, file: TableFile) -> None:
        footer = footer_of(partial(self._table.open_file, head, file.path))
        fault = self._table.fault(head, facts_of(footer))
        if fault is None and not is_comparable(schema_of(footer)):
            fault = "with columns of a type that the digest can't take"
        if fault is not None:
            raise PreflightRefused(
                f"sink {self._table.name}: {file.path} has rows of {self._epochs} and of other epochs, and can't be "
                f"rewritten, because it is a file {fault}: have the table rewrite it, or delete those rows by hand"
            )

    def _rewrite(self, head: TableVersion, file: TableFile) -> RewrittenFile:
        """The rows of other epochs, in a new file."""
        if file not in self._rewritten:
            self._require_rewritable(head, file)
            path = f"{self._table.folder(self._number)}/part-{len(self._rewritten):05}.parquet"
            self._rewritten[file] = write_anew(
                self._table,
                head,
                [file],
                path,
                self._counts[file][1],
                lambda batch: batch.filter(pc.invert(self._is_replaced(batch))),
            )
        return self._rewritten[file]
