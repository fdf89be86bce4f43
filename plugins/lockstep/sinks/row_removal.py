"""The rows of replaced epochs, lifted out of a table's files: what is to go, and what stands for the rest of it.

The files that an epoch brought hold its rows alone, and go whole. Those into which its rows were compacted, by Lockstep
or by others, hold rows of other epochs too: these are written anew, as a compaction with a number of its own, and go
into the table by the same commit. Until then the table is as it was; see `lockstep.sinks.compacting` for what becomes
of files that never get there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Generic

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockstep.errors import PreflightRefused, PublishBlocked, SinkUnavailable
from lockstep.sinks.adopting import Head
from lockstep.sinks.compacting import (
    CompactingTable,
    NewFile,
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
    """`removed` go, and `added`, written by compaction `number`, hold the rows of theirs that stay. None: nothing was
    written."""

    removed: Sequence[TableFile] = ()
    added: Sequence[NewFile] = ()
    number: int | None = None


NOTHING = RowRemoval()


class Lifting(Generic[Head]):
    """For `epoch`, however many states of the table its publication looks at. `column`: the epoch column; `output`: of
    the epochs, which the table shows."""

    def __init__(self, table: CompactingTable[Head], column: str, epoch: SinkEpoch, output: str) -> None:
        self.epoch, self._table, self._column = epoch, table, column
        self._taken = {one.id: one for one in (*epoch.replaced, *epoch.earlier)}
        self._output = output
        self._number = new_number()
        self._last: int | None = None
        self._counts: dict[TableFile, tuple[Counter[int], int]] = {}  # rows of each replaced epoch, and others
        self._rests: dict[TableFile, NewFile] = {}

    def require_liftable(self, head: Head) -> None:
        """Before the decision. Raises `PreflightRefused` for a file that can't be written anew; writes nothing."""
        for file, others in self._found(head):
            if others:
                self._require_rewritable(head, file)

    def lift(self, head: Head) -> RowRemoval:
        """What one commit on this very state has to do, after the decision. Raises `PublishBlocked` for a file that
        can't be written anew, `SinkUnavailable`, `CompactionRefused`."""
        try:
            return self._lift(head)
        except PreflightRefused as error:
            raise PublishBlocked(f"{error}; the epoch that takes its place is decided, and waits for that") from error
        except (OSError, pa.ArrowException) as error:
            self._start_anew()  # what was written in part
            raise SinkUnavailable(
                f"sink {self._table.name}: files with rows of {self._told} can't be written anew: "
                f"{' '.join(str(error).split())}; nothing was changed"
            ) from error

    def _start_anew(self) -> None:
        self._number, self._rests = new_number(), {}

    def _lift(self, head: Head) -> RowRemoval:
        self._forget_if_fenced(head)
        gone, rests = list[TableFile](), list[NewFile]()
        for file, others in self._found(head):
            gone.append(file)
            if others:
                rests.append(self._rest_of(head, file))
        return RowRemoval(tuple(gone), tuple(rests), self._number if rests else None)

    def _forget_if_fenced(self, head: Head) -> None:
        """Whoever has fenced the table may delete what was written so far."""
        if self._rests and self._table.last(head) != self._last:
            self._start_anew()
        self._last = self._table.last(head)

    def _found(self, head: Head) -> list[tuple[TableFile, int]]:
        """Files with rows of the replaced epochs, and how many others they have. Raises `PreflightRefused`."""
        found = list(self._holding(head))
        self._require_whole_lives(sum((theirs for _, theirs, _ in found), Counter[int]()))
        return [(file, others) for file, _, others in found]

    def _require_whole_lives(self, rows: Counter[int]) -> None:
        """Raise `PreflightRefused` for rows that aren't what these epochs brought: none has more than it had, and none
        stands beside the one that took its place."""
        for number, one in sorted(self._taken.items()):
            sealed = one.rows.get(self._output)
            if sealed is not None and rows[number] > sealed:
                raise self._refusal(f"{rows[number]} rows have the number of epoch {number}, which brought {sealed}")
            if one.replaced_by is not None and rows[number] and rows[one.replaced_by]:
                raise self._refusal(
                    f"{rows[number]} rows have the number of epoch {number}, which epoch {one.replaced_by} replaced, "
                    f"beside {rows[one.replaced_by]} of that"
                )

    def _refusal(self, found: str) -> PreflightRefused:
        return PreflightRefused(
            f"sink {self._table.name}: {found}: some are somebody else's, a former owner's for instance, and would go "
            f"with them; give those another number in {self._column}, or null"
        )

    def _holding(self, head: Head) -> Iterator[tuple[TableFile, Counter[int], int]]:
        """Files with rows of the replaced epochs: how many of each, and how many others."""
        for file in self._table.files(head):
            if file.epoch is not None:
                if file.epoch in self._taken:
                    yield self._whole(file), Counter({file.epoch: file.rows}), 0
            elif self._may_hold(file):
                theirs, others = self._count(head, file)
                if theirs:
                    yield self._whole(file), theirs, others

    def _may_hold(self, file: TableFile) -> bool:
        if file.epochs is None:
            return True
        least, greatest = file.epochs
        return any(least <= epoch <= greatest for epoch in self._taken)

    def _whole(self, file: TableFile) -> TableFile:
        if file.hides_rows:
            raise PreflightRefused(
                f"sink {self._table.name}: {file.path} is {file.kept}, and with rows of {self._told}: have the table "
                "rewrite it without them (Delta: REORG TABLE … APPLY (PURGE); Iceberg: rewrite_data_files)"
            )
        return file

    def _count(self, head: Head, file: TableFile) -> tuple[Counter[int], int]:
        """By the file itself: the table may not tell. Raises `PreflightRefused` for one that isn't Parquet."""
        if file in self._counts:
            return self._counts[file]
        theirs = Counter[int]()
        try:
            with closing(self._table.open_file(head, file.path)) as raw, pq.ParquetFile(raw) as parquet:
                rows, names = parquet.metadata.num_rows, self._table.numbered(head, schema_of(parquet.metadata)).names
                if self._column in names:  # not in what others brought
                    for batch in parquet.iter_batches(columns=[parquet.schema_arrow.names[names.index(self._column)]]):
                        batch = batch.rename_columns([self._column])
                        counted = batch.filter(self._is_theirs(batch)).column(0).value_counts()
                        theirs.update({one["values"]: one["counts"] for one in counted.to_pylist()})
        except pa.ArrowInvalid as error:
            raise PreflightRefused(
                f"sink {self._table.name}: {file.path} may have rows of {self._told}, and isn't a Parquet file that "
                f"can be read: {' '.join(str(error).split())}: have the table rewrite it, or restore what is damaged"
            ) from error
        self._counts[file] = theirs, rows - theirs.total()
        return self._counts[file]

    def _is_theirs(self, batch: pa.RecordBatch) -> pa.Array:
        column = batch.column(batch.schema.get_field_index(self._column))
        return pc.is_in(column, pa.array(sorted(self._taken), column.type))

    def _others(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.invert(self._is_theirs(batch)))

    def _require_rewritable(self, head: Head, file: TableFile) -> None:
        footer = footer_of(partial(self._table.open_file, head, file.path))
        fault = self._table.fault(head, facts_of(footer))
        if fault is None and not is_comparable(schema_of(footer)):
            fault = "with columns of a type that the digest can't take"
        if fault is not None:
            raise PreflightRefused(
                f"sink {self._table.name}: rows of {self._told} stand in {file.path} together with others', and it "
                f"can't be written anew, as it is a file {fault}: have the table rewrite it, or take the epoch's rows "
                "away by hand"
            )

    def _rest_of(self, head: Head, file: TableFile) -> NewFile:
        """The rows of other epochs, in a file of their own."""
        if file not in self._rests:
            self._require_rewritable(head, file)
            path = f"{self._table.folder(self._number)}/part-{len(self._rests):05}.parquet"
            self._rests[file] = write_anew(self._table, head, [file], path, self._counts[file][1], self._others)
        return self._rests[file]

    @property
    def _told(self) -> str:
        return f"epoch {', '.join(map(str, sorted(self._taken)))}"
