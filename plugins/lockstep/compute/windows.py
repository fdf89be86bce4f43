"""Folding rows into windows: rows into panes, panes into windows, merged with the windows before.

A pane holds rows that are in the same windows, so that they are added up once: Li et al., "No pane, no gain", SIGMOD
Record 2005. Here it is the time between two starts of windows. Sessions share all but `fold` and what it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from lockstep.compute._conservation import Balance, Part, register
from lockstep.compute._counting import CountedFrame, ObservedFrame
from lockstep.compute._key_hash import buckets_of
from lockstep.compute._local_rows import LocalFrame, arrow_schema, collect_few, frame_of, remember
from lockstep.compute._reading_once import note_read, require_kept
from lockstep.compute._watermarks import BEGINNING, WHOLE, Watermark, partition_name
from lockstep.compute._window_merging import (
    Unsure,
    can_merge,
    folded_changes,
    folded_results,
    greatest_times,
    merge,
    spread,
)
from lockstep.compute._window_sql import (
    AT,
    BEGAN,
    FRESH,
    PANE,
    PARTITION,
    PASSES,
    ROWS,
    SEEN,
    Bounds,
    changes_of,
    combined,
    keepable,
    partial_aggregates,
    require_types,
    results_of,
)
from lockstep.definition.keyed_state import DELETED
from lockstep.definition.windows import DUE, EMITTED, MISSED, START, SteppedDefinition, WindowDefinition, micros
from lockstep.errors import BadRecords, InvalidPipeline

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lockstep.compute.state import StateRows

_FOLDED_RESULTS = f"coalesce(sum({ROWS}), 0L)"
_FOLDED_CHANGES = f"coalesce(sum(CASE WHEN NOT {DELETED} THEN {ROWS} END), 0L)"
_TIME = pa.timestamp("us", "UTC")
_MISSED = pa.field(MISSED, pa.int32())


@dataclass(frozen=True)
class Folded:
    """The result of a fold, for the transform to return: `results` and `late` as outputs, `state` as changes of state.

    `results`: key, window_start, window_end, the aggregates, revision (INT: how often the window was emitted before);
    for sessions also absorbed (BOOLEAN). `late`: input rows of windows that were forgotten already; for sliding windows
    also rows that missed only some windows, with `windows_missed` (INT). `watermark`: at the epoch's end; None before
    the first event.
    """

    results: DataFrame
    late: DataFrame
    state: Mapping[str, DataFrame]
    watermark: datetime | None
    balance: Balance


@dataclass(frozen=True)
class ReadRows:
    """One epoch's rows, read and counted. `panes`: one row per key and pane; `local_panes`: the same in this process,
    if few."""

    windows: WindowDefinition
    rows_before: StateRows
    schema: StructType  #: of the input rows
    rows: DataFrame
    panes: DataFrame
    local_panes: pa.Table | None
    counts: dict[str, int]
    maybe_late: int  #: rows that may be late
    before: Watermark
    after: Watermark

    def folded(
        self, results: CountedFrame, late: CountedFrame, changes: CountedFrame, *, retracts: bool = False
    ) -> Folded:
        """The result for the transform; registers its balance. `retracts`: the results may delete keys."""
        written = [Part("results", results), Part("late", late), Part("state", changes)]
        balance = Balance(
            name=self.windows.name,
            read=self.counts,
            written=written,
            terms=("folded", "late"),
            retracts=retracts,
        )
        state = {self.windows.name: changes.visible}
        if self.after != self.before:
            table = self.after.table(self.windows)
            state[self.windows.watermark_name] = remember(frame_of(changes.visible.sparkSession, table), table)
        return Folded(results.visible, late.visible, state, self.after.at, register(balance))


def read_marks(windows: WindowDefinition, state: Mapping[str, StateRows]) -> Watermark:
    """The watermark that the epoch begins with. Raises `InvalidPipeline`, `PlanMismatch`."""
    for name, declared in windows.state().items():
        if name not in state or state[name].declared != declared:
            raise InvalidPipeline(
                f"windows {windows.name}: the pipeline doesn't declare their state {name}: say state=windows.state() "
                "with these very windows"
            )
    return Watermark.read(windows, state[windows.watermark_name])


def read_rows(
    windows: WindowDefinition,
    frame: DataFrame,
    state: Mapping[str, StateRows],
    where: str | None,
    before: Watermark,
    pane: str,
    counts: Mapping[str, str],
    panes_of: Callable[[WindowDefinition, DataFrame], DataFrame],
) -> ReadRows:
    """Read the rows of `frame`, by one job. `pane`: SQL for a row's pane; `counts`: SQL aggregates over the rows by
    name.

    Raises `BadRecords` for rows that can't be in any window, `InvalidPipeline`.
    """
    rows_before = state[windows.name]
    schema = require_types(windows, frame, where)
    if reserved := {PASSES, AT, PANE, PARTITION, SEEN, BEGAN, ROWS, MISSED} & set(schema.names):
        raise InvalidPipeline(f"windows {windows.name}: the rows have columns {sorted(reserved)}, rename them")
    rows = _with_event_time(windows, frame, where, pane)
    read = CountedFrame.of(rows, **counts)
    panes = panes_of(windows, read.frame)
    local_panes = collect_few(panes) if can_merge(windows) else None
    if local_panes is None:
        require_kept("the panes are too many for this process")
        panes = checkpointed(panes)
    else:
        note_read(panes)
    counted = _require_sound(windows, read)
    after = before.advance(windows, _greatest(windows, panes, local_panes, counted.pop("greatest")))
    return ReadRows(
        windows, rows_before, schema, rows, panes, local_panes, counted, counted.pop("missed"), before, after
    )


def add_up(windows: WindowDefinition, rows: DataFrame, *more: Column) -> DataFrame:
    """Aggregate to one row per key, pane and, if the watermark has partitions, partition."""
    columns = [column for aggregate in windows.aggregate_columns() for column in partial_aggregates(aggregate)]
    columns += [F.count(F.lit(1)).alias(ROWS), *more]
    key: list[Column | str] = [*windows.key, PANE]
    if windows.partition is not None:
        key.append(partition_name(windows.partition).alias(PARTITION))
        columns.append(F.max(AT).alias(SEEN))
    return rows.where(PASSES).groupBy(*key).agg(*columns)


def count_local(spark: SparkSession, results: pa.Table, changes: pa.Table) -> tuple[CountedFrame, CountedFrame]:
    """Count the folded rows of results and changes that this process holds."""
    return (
        LocalFrame.over(spark, results, ROWS, folded_results, folded=_FOLDED_RESULTS),
        LocalFrame.over(spark, changes, ROWS, folded_changes, folded=_FOLDED_CHANGES),
    )


def count_frames(results: DataFrame, changes: DataFrame) -> tuple[CountedFrame, CountedFrame]:
    """Count the folded rows of results and changes that Spark makes."""
    return (
        CountedFrame.of(results, ROWS, folded=_FOLDED_RESULTS),
        CountedFrame.of(changes, ROWS, folded=_FOLDED_CHANGES),
    )


def none_late(read: ReadRows, *more: pa.Field) -> CountedFrame | None:
    """An empty frame of late rows, which needs no job. None for types that Arrow doesn't have."""
    try:
        table = arrow_schema(read.schema).empty_table()
    except PySparkException:
        return None
    for field in more:
        table = table.append_column(field, pa.array([], field.type))
    return LocalFrame.over(read.rows.sparkSession, table, None, lambda rows: {"late": len(rows)}, late="count(1)")


def checkpointed(frame: DataFrame) -> DataFrame:
    """Compute the frame now, once."""
    return ObservedFrame.of(frame, rows="count(1)").checkpoint()


def _with_event_time(windows: WindowDefinition, frame: DataFrame, where: str | None, pane: str) -> DataFrame:
    """Add columns: whether the row passes `where`, its event time and its pane, both in µs since 1970 UTC."""
    passes = F.coalesce(F.expr(where), F.lit(False)) if where else F.lit(True)
    at = F.when(F.col(PASSES), F.unix_micros(F.expr(windows.time)))
    pane_start = F.expr(f"CASE WHEN {keepable(windows)} THEN {pane} END")  # else it might overflow before it is refused
    return frame.withColumn(PASSES, passes).withColumn(AT, at).withColumn(PANE, pane_start)


def _require_sound(windows: WindowDefinition, read: CountedFrame) -> dict[str, int]:
    counts = read.counts()
    untimed, keyless, unkeepable = counts.pop("untimed"), counts.pop("keyless"), counts.pop("unkeepable")
    if untimed or keyless:
        raise BadRecords(
            f"windows {windows.name}: {untimed} rows have no event time ({windows.time}), {keyless} a null in their "
            f"key {list(windows.key)}: leave them out by where=, which counts them, or give them values"
        )
    if unkeepable:
        last = datetime.max - windows.span - windows.lateness
        raise BadRecords(
            f"windows {windows.name}: {unkeepable} rows have an event time ({windows.time}) that lies outside "
            f"{datetime.min} to {last} UTC: their windows' ends plus lateness must be within the years 1 to 9999: "
            "leave them out by where=, which counts them"
        )
    return counts


def _greatest(
    windows: WindowDefinition, panes: DataFrame, local_panes: pa.Table | None, greatest: int
) -> dict[str, int]:
    """The greatest event time of each partition that had rows."""
    if greatest == BEGINNING:
        return {}
    if windows.partition is None:
        return {WHOLE: greatest}
    if local_panes is not None:
        return greatest_times(local_panes)
    times = panes.groupBy(PARTITION).agg(F.max(SEEN).alias(SEEN))
    return {row[PARTITION]: row[SEEN] for row in times.collect()}


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
