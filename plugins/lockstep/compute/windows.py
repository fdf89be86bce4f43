"""One epoch's fold: rows into panes, panes into windows, windows into what the epoch before left of them.

A pane is the stretch between two starts of windows: its rows belong to the same windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from lockstep.compute._folding import (
    Folded,
    Read,
    add_up,
    checkpointed,
    count_frames,
    count_local,
    none_late,
    read_marks,
    read_rows,
)
from lockstep.compute._key_hash import buckets_of
from lockstep.compute._local_rows import frame_of
from lockstep.compute._reading_once import require_kept
from lockstep.compute._window_merging import Unsure, merge, spread
from lockstep.compute._window_sql import AT, FRESH, ROWS, Bounds, changes_of, combined, results_of
from lockstep.definition.windows import DUE, EMITTED, MISSED, START, SteppedDefinition, WindowDefinition, micros

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.compute._counting import CountedFrame
    from lockstep.compute._watermarks import Watermark
    from lockstep.compute.state import StateRows

_TIME = pa.timestamp("us", "UTC")
_MISSED = pa.field(MISSED, pa.int32())


def fold(windows: SteppedDefinition, frame: DataFrame, state: Mapping[str, StateRows], where: str | None) -> Folded:
    """See `Windows.fold`."""
    before = read_marks(windows, state)
    bounds = Bounds.of(windows, before)
    pane = f"{AT} - pmod({AT} - {micros(windows.offset)}L, {micros(windows.step)}L)"
    read = read_rows(windows, frame, state, where, before, pane, bounds.counts(windows), _panes)
    if late := read.maybe_late > 0:
        require_kept("rows are late, and shown")
    results, changes = _Fold(windows, read, bounds).merged()
    missed = None if late or read.local_panes is None else _none_late(read, bounds)
    return read.folded(results, missed or bounds.late(read.rows, read.schema.names, late), changes)


def _none_late(read: Read, bounds: Bounds) -> CountedFrame | None:
    return none_late(read, *([_MISSED] if bounds.size > bounds.step else []))


class _Fold:
    """One epoch's fold, once its rows have become panes."""

    def __init__(self, windows: SteppedDefinition, read: Read, bounds: Bounds) -> None:
        self.windows, self.read, self.bounds, self.rows_before, self.after = (
            windows,
            read,
            bounds,
            read.rows_before,
            read.after,
        )

    def merged(self) -> tuple[CountedFrame, CountedFrame]:
        """Results and changes of the state: by this process where the panes and the state allow it."""
        panes = self.read.panes
        if self.read.local_panes is not None:
            with suppress(Unsure):
                return self._merged_here(self.read.local_panes)
            panes = frame_of(self.rows_before.spark, self.read.local_panes)
        parts = checkpointed(self.bounds.expand(self.windows, panes))
        merged = checkpointed(_merged(self.windows, self.rows_before, parts, self.after))
        return count_frames(results_of(self.windows, merged, self.after), changes_of(self.windows, merged, self.after))

    def _merged_here(self, panes: pa.Table) -> tuple[CountedFrame, CountedFrame]:
        """Raises `Unsure`."""
        parts = spread(self.windows, self.bounds, panes)
        declared = self.rows_before.declared
        hashed = parts.set_column(parts.schema.get_field_index(START), START, parts[START].cast(_TIME))
        touched = {int(bucket) for bucket in np.unique(buckets_of(hashed, declared.found_by, declared.buckets))}
        old = self.rows_before.few(None if self.rows_before.moves else touched, self.after.at)
        if old is None:
            raise Unsure("the windows before are too many")
        merged = merge(self.windows, parts, old, self.after)
        return count_local(self.rows_before.spark, merged.results, merged.changes)


def _panes(windows: WindowDefinition, rows: DataFrame) -> DataFrame:
    return add_up(windows, rows)


def _merged(windows: WindowDefinition, rows_before: StateRows, parts: DataFrame, after: Watermark) -> DataFrame:
    """Each window that this epoch touches or that falls due, with what the epoch before left of it."""
    key = [*windows.key, START]
    old = rows_before.of(parts.select(*key))
    if after.at is not None:
        old = old.unionByName(rows_before.until(after.at)).dropDuplicates(key)
    old = old.drop(DUE).withColumns({ROWS: F.lit(0).cast("long"), FRESH: F.lit(False)})
    fresh = parts.withColumns({EMITTED: F.lit(None).cast("int"), FRESH: F.lit(True)})
    return combined(windows, old, fresh)
