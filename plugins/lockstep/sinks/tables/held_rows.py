"""A small epoch's rows in memory, in the order of their keys: what can be told of them without asking the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lockstep.sinks.values import Batches

#: Of Arrow's, before they are sorted; of more rows a publishing process holds a batch at a time.
MOST_BYTES = 48 << 20
_SHOWN = 3
_ROWS = 65_536


@dataclass(frozen=True)
class HeldRows:
    """Satisfies `Batches`. `rows`: as many as are sealed."""

    output: str
    rows: int
    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from self.table.to_batches(_ROWS)

    def repeated(self, columns: Sequence[str]) -> list[object]:
        """Values of `columns`, by which the rows are sorted first, that stand more than once; some of them."""
        if self.table.num_rows < 2:
            return []
        alike = reduce(pc.and_, (_like_the_one_before(self.table[name]) for name in columns))
        places = np.flatnonzero(alike.to_numpy(zero_copy_only=False))[:_SHOWN] + 1
        rows = self.table.select(columns).take(pa.array(places)).to_pylist()
        found = [tuple(row.values()) for row in rows]
        return list(dict.fromkeys(row if len(row) > 1 else row[0] for row in found))

    def span(self, name: str) -> tuple[object, object] | None:
        """The least and the greatest value of a column of numbers or times, where Python has them."""
        if not self.table.num_rows or not _is_ordered(self.schema.field(name).type):
            return None
        try:
            found = pc.min_max(self.table[name]).as_py()
        except (ValueError, OverflowError):  # a year that Python doesn't have
            return None
        return found["min"], found["max"]


def hold(batches: Batches, order: Sequence[tuple[str, str]], most_bytes: int) -> HeldRows | None:
    """All rows, sorted by the columns of `order` ("ascending" or "descending"); None if they take more than that, or
    Arrow can't sort them."""
    held, taken = [], 0
    for batch in batches:
        held.append(_decoded(batch))
        taken += held[-1].nbytes
        if taken > most_bytes:
            return None
    schema = held[0].schema if held else batches.schema
    table = pa.Table.from_batches(held, schema).combine_chunks()
    try:
        places = pc.sort_indices(table, sort_keys=list(order))
    except pa.ArrowNotImplementedError:
        return None
    if not np.array_equal(places.to_numpy(), np.arange(len(places))):
        table = table.take(places)
    return HeldRows(batches.output, batches.rows, table)


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [column.dictionary_decode() if types.is_dictionary(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _like_the_one_before(column: pa.ChunkedArray) -> pa.Array:
    whole: Any = column.combine_chunks()
    return pc.equal(whole.slice(1), whole.slice(0, len(whole) - 1))


def _is_ordered(dtype: pa.DataType) -> bool:
    return bool(types.is_integer(dtype) or types.is_date32(dtype) or types.is_timestamp(dtype))
