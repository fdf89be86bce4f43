"""One epoch's fold into windows: rows into panes, panes into windows, merged with the windows before.

A pane is the time between two starts of windows: its rows belong to the same windows.
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
    ReadRows,
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
    late = read.maybe_late > 0
    if late:
        require_kept("rows are late, and shown")
    results, changes = _merge_panes(windows, bounds, read)
    no_rows = None
    if not late and read.local_panes is not None:
        no_rows = none_late(read, *([_MISSED] if bounds.size > bounds.step else []))
    return read.folded(results, no_rows or bounds.late(read.rows, read.schema.names, late), changes)


def _panes(windows: WindowDefinition, rows: DataFrame) -> DataFrame:
    return add_up(windows, rows)


def _merge_panes(windows: SteppedDefinition, bounds: Bounds, read: ReadRows) -> tuple[CountedFrame, CountedFrame]:
    """Results and changes of the state: made by this process if the panes and the state are few, else by Spark."""
    before, after, panes = read.rows_before, read.after, read.panes
    if read.local_panes is not None:
        with suppress(Unsure):
            return _merge_here(windows, bounds, before, read.local_panes, after)
        panes = frame_of(before.spark, read.local_panes)
    parts = checkpointed(bounds.expand(windows, panes))
    merged = checkpointed(_merged(windows, before, parts, after))
    return count_frames(results_of(windows, merged, after), changes_of(windows, merged, after))


def _merge_here(
    windows: SteppedDefinition, bounds: Bounds, before: StateRows, panes: pa.Table, after: Watermark
) -> tuple[CountedFrame, CountedFrame]:
    """Results and changes of the state, made by this process. Raises `Unsure` if Spark has to make them."""
    parts, declared = spread(windows, bounds, panes), before.declared
    hashed = parts.set_column(parts.schema.get_field_index(START), START, parts[START].cast(_TIME))
    touched = {int(bucket) for bucket in np.unique(buckets_of(hashed, declared.found_by, declared.buckets))}
    old = before.local_rows(None if before.needs_rewrite else touched, after.at)
    if old is None:
        raise Unsure("the windows before are too many")
    merged = merge(windows, parts, old, after)
    return count_local(before.spark, merged.results, merged.changes)


def _merged(windows: WindowDefinition, before: StateRows, parts: DataFrame, after: Watermark) -> DataFrame:
    """Each window that this epoch touches or that is due, with its rows of the epoch before."""
    key = [*windows.key, START]
    old = before.of(parts.select(*key))
    if after.at is not None:
        old = old.unionByName(before.until(after.at)).dropDuplicates(key)
    old = old.drop(DUE).withColumns({ROWS: F.lit(0).cast("long"), FRESH: F.lit(False)})
    fresh = parts.withColumns({EMITTED: F.lit(None).cast("int"), FRESH: F.lit(True)})
    return combined(windows, old, fresh)
