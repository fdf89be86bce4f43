"""One epoch's fold: rows into panes, panes into windows, windows into what the epoch before left of them.

A pane is the stretch between two starts of windows: its rows belong to the same windows, so that a sliding window's
rows are added up once: Li et al., "No pane, no gain", SIGMOD Record 2005.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from lockstep.compute._balances import Balance, CountedFrame, Part, register
from lockstep.compute._inputs import ObservedFrame
from lockstep.compute._key_hash import buckets_of
from lockstep.compute._lateness import AT, PANE, PARTITION, PASSES, ROWS, SEEN, Bounds, keepable
from lockstep.compute._local_rows import LocalFrame, arrow_schema, collect_few, frame_of, remember
from lockstep.compute._reading_once import note_read, require_kept
from lockstep.compute._watermarks import BEGINNING, WHOLE, Watermark, partition_name
from lockstep.compute._window_columns import final_aggregate, merged_aggregates, partial_aggregates, require_types
from lockstep.compute._window_merging import (
    Unsure,
    can_merge,
    folded_changes,
    folded_results,
    greatest_times,
    merge,
    spread,
)
from lockstep.errors import BadRecords, InvalidPipeline
from lockstep.keyed_state import DELETED
from lockstep.window_definition import DUE, EMITTED, END, MISSED, REVISION, START, WindowDefinition, micros

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from lockstep.compute.state import StateRows

_FOLDED_RESULTS = f"coalesce(sum({ROWS}), 0L)"
_FOLDED_CHANGES = f"coalesce(sum(CASE WHEN NOT {DELETED} THEN {ROWS} END), 0L)"
_TIME = pa.timestamp("us", "UTC")
_FRESH = "_window_fresh"  # whether this epoch has rows of it


@dataclass(frozen=True)
class Folded:
    """What a transform returns of a fold: `results` and `late` as outputs, `state` as changes of state.

    `results`: key, window_start, window_end, the aggregates, revision (INT: how often the window was emitted before).
    `late`: rows as they came, of windows that were forgotten already; of sliding windows with `windows_missed` (INT):
    a row that missed some stands there, too. `watermark`: at the epoch's end; None before the first event.
    """

    results: DataFrame
    late: DataFrame
    state: Mapping[str, DataFrame]
    watermark: datetime | None
    balance: Balance


def fold(windows: WindowDefinition, frame: DataFrame, state: Mapping[str, StateRows], where: str | None) -> Folded:
    """See `Windows.fold`."""
    kept, marks = _states(windows, state)
    schema = require_types(windows, frame, where)
    _require_free(windows, schema)
    before = Watermark.read(windows, marks)
    bounds = Bounds.of(windows, before)
    rows = _with_event_time(windows, frame, where)
    read = CountedFrame.of(rows, **bounds.counts(windows))
    panes = _panes(windows, read.frame)
    found = collect_few(panes) if can_merge(windows) else None
    if found is None:
        require_kept("the panes are too many for this process")
        panes = _checkpointed(panes)
    else:
        note_read(panes)
    counts = _require_sound(windows, read)
    if late := counts.pop("missed") > 0:
        require_kept("rows are late, and shown")
    after = before.advance(windows, _greatest(windows, panes, found, counts.pop("greatest")))
    fold = _Fold(windows, kept, bounds, before, after)
    results, changes = fold.merged(panes, found)
    missed = bounds.late(rows, schema.names, late) if late or found is None else _none_late(bounds, rows, schema)
    return Folded(
        results=results.shown,
        late=missed.shown,
        state=fold.state(changes.shown),
        watermark=after.at,
        balance=register(
            Balance(
                name=windows.name,
                read=counts,
                written=[Part("results", results), Part("late", missed), Part("state", changes)],
                terms=("folded", "late"),
            )
        ),
    )


def _none_late(bounds: Bounds, rows: DataFrame, schema: StructType) -> CountedFrame:
    """What `Bounds.late` gives where no row is late: no job has to find that out."""
    try:
        table = arrow_schema(schema).empty_table()
    except PySparkException:  # a type that Arrow doesn't have
        return bounds.late(rows, schema.names, False)
    if bounds.size > bounds.step:
        table = table.append_column(MISSED, pa.array([], pa.int32()))
    return LocalFrame.over(rows.sparkSession, table, None, lambda rows: {"late": len(rows)}, late="count(1)")


@dataclass(frozen=True)
class _Fold:
    """One epoch's fold, once its rows have become panes."""

    windows: WindowDefinition
    kept: StateRows
    bounds: Bounds
    before: Watermark
    after: Watermark

    def merged(self, panes: DataFrame, found: pa.Table | None) -> tuple[CountedFrame, CountedFrame]:
        """Results and changes of the state: by this process where `found`, the panes, and the state allow it."""
        if found is not None:
            with suppress(Unsure):
                return self._merged_here(found)
            panes = frame_of(self.kept.spark, found)
        parts = _checkpointed(self.bounds.expand(self.windows, panes))
        merged = _checkpointed(_merged(self.windows, self.kept, parts, self.after))
        return _results(self.windows, merged, self.after), _window_changes(self.windows, merged, self.after)

    def _merged_here(self, panes: pa.Table) -> tuple[CountedFrame, CountedFrame]:
        """Raises `Unsure`."""
        parts = spread(self.windows, self.bounds, panes)
        declared = self.kept.declared
        hashed = parts.set_column(parts.schema.get_field_index(START), START, parts[START].cast(_TIME))
        touched = {int(bucket) for bucket in np.unique(buckets_of(hashed, declared.key, declared.buckets))}
        old = self.kept.few(None if self.kept.moves else touched, self.after.at)
        if old is None:
            raise Unsure("the windows before are too many")
        found, spark = merge(self.windows, parts, old, self.after), self.kept.spark
        results = LocalFrame.over(spark, found.results, ROWS, folded_results, folded=_FOLDED_RESULTS)
        changes = LocalFrame.over(spark, found.changes, ROWS, folded_changes, folded=_FOLDED_CHANGES)
        return results, changes

    def state(self, changes: DataFrame) -> dict[str, DataFrame]:
        """The changes of both states."""
        if self.after == self.before:
            return {self.windows.name: changes}
        table = self.after.table(self.windows)
        marks = remember(frame_of(changes.sparkSession, table), table)
        return {self.windows.name: changes, self.windows.watermark_name: marks}


def _states(windows: WindowDefinition, state: Mapping[str, StateRows]) -> tuple[StateRows, StateRows]:
    for name, declared in windows.state().items():
        if name not in state or state[name].declared != declared:
            raise InvalidPipeline(
                f"windows {windows.name}: the pipeline doesn't declare their state {name}: say state=windows.state() "
                "with these very windows"
            )
    return state[windows.name], state[windows.watermark_name]


def _require_free(windows: WindowDefinition, schema: StructType) -> None:
    if taken := {PASSES, AT, PANE, PARTITION, SEEN, ROWS, MISSED} & set(schema.names):
        raise InvalidPipeline(f"windows {windows.name}: the rows have columns {sorted(taken)}, rename them")


def _with_event_time(windows: WindowDefinition, frame: DataFrame, where: str | None) -> DataFrame:
    """The rows with whether they pass, their event time and their pane, both in µs since 1970 UTC."""
    passes = F.coalesce(F.expr(where), F.lit(False)) if where else F.lit(True)
    at = F.when(F.col(PASSES), F.unix_micros(F.expr(windows.time)))
    start = f"{AT} - pmod({AT} - {micros(windows.offset)}L, {micros(windows.step)}L)"
    pane = F.expr(f"CASE WHEN {keepable(windows)} THEN {start} END")  # else it might overflow before it is refused
    return frame.withColumn(PASSES, passes).withColumn(AT, at).withColumn(PANE, pane)


def _panes(windows: WindowDefinition, rows: DataFrame) -> DataFrame:
    """One row a key and pane, and, where the watermark is one of partitions, a partition."""
    columns = [column for one in windows.aggregate_columns() for column in partial_aggregates(one)]
    columns.append(F.count(F.lit(1)).alias(ROWS))
    key: list[Column | str] = [*windows.key, PANE]
    if windows.partition is not None:
        key.append(partition_name(windows.partition).alias(PARTITION))
        columns.append(F.max(AT).alias(SEEN))
    return rows.where(PASSES).groupBy(*key).agg(*columns)


def _require_sound(windows: WindowDefinition, read: CountedFrame) -> dict[str, int]:
    counts = read.counts()
    untimed, keyless, unkeepable = counts.pop("untimed"), counts.pop("keyless"), counts.pop("unkeepable")
    if untimed or keyless:
        raise BadRecords(
            f"windows {windows.name}: {untimed} rows have no event time ({windows.time}), {keyless} a null in their "
            f"key {list(windows.key)}: leave them out by where=, which counts them, or give them values"
        )
    if unkeepable:
        last = datetime.max - windows.size - windows.lateness
        raise BadRecords(
            f"windows {windows.name}: {unkeepable} rows have an event time ({windows.time}) that lies outside "
            f"{datetime.min} to {last} UTC: their windows' ends plus lateness must be within the years 1 to 9999: "
            "leave them out by where=, which counts them"
        )
    return counts


def _greatest(windows: WindowDefinition, panes: DataFrame, found: pa.Table | None, greatest: int) -> dict[str, int]:
    """The greatest event time of each partition that had rows."""
    if greatest == BEGINNING:
        return {}
    if windows.partition is None:
        return {WHOLE: greatest}
    if found is not None:
        return greatest_times(found)
    times = panes.groupBy(PARTITION).agg(F.max(SEEN).alias(SEEN))
    return {row[PARTITION]: row[SEEN] for row in times.collect()}


def _merged(windows: WindowDefinition, kept: StateRows, parts: DataFrame, after: Watermark) -> DataFrame:
    """Each window that this epoch touches or that falls due, with what the epoch before left of it."""
    key = [*windows.key, START]
    old = kept.of(parts.select(*key))
    if after.at is not None:
        old = old.unionByName(kept.until(after.at)).dropDuplicates(key)
    old = old.drop(DUE).withColumns({ROWS: F.lit(0).cast("long"), _FRESH: F.lit(False)})
    fresh = parts.withColumns({EMITTED: F.lit(None).cast("int"), _FRESH: F.lit(True)})
    columns = [column for one in windows.aggregate_columns() for column in merged_aggregates(one)]
    merged = old.unionByName(fresh).groupBy(*key)
    told = [F.max(column).alias(column) for column in (END, EMITTED, _FRESH)]
    return merged.agg(*told, *columns, F.sum(ROWS).alias(ROWS))


def _is_closed(after: Watermark) -> str:
    return f"unix_micros({END}) <= {after.bound}L"


def _is_gone(after: Watermark) -> str:
    return f"unix_micros({END}) <= {after.forgotten}L"


def _emits(windows: WindowDefinition, after: Watermark) -> str:
    if windows.emit == "updates":
        return _FRESH
    return f"({_is_closed(after)} AND ({_FRESH} OR coalesce({EMITTED}, 0) = 0))"


def _results(windows: WindowDefinition, merged: DataFrame, after: Watermark) -> CountedFrame:
    emitted = merged.where(_emits(windows, after)).withColumn(REVISION, F.expr(f"coalesce({EMITTED}, 0)"))
    gone = F.expr(f"CASE WHEN {_is_gone(after)} THEN {ROWS} ELSE 0L END").alias(ROWS)
    columns: list[Column | str] = [
        *windows.key,
        START,
        END,
        *map(final_aggregate, windows.aggregate_columns()),
        REVISION,
        gone,
    ]
    return CountedFrame.of(emitted.select(*columns), ROWS, folded=_FOLDED_RESULTS)


def _window_changes(windows: WindowDefinition, merged: DataFrame, after: Watermark) -> CountedFrame:
    """The windows' new state; one that comes and goes within the epoch never gets there, the results count it."""
    emitted = f"coalesce({EMITTED}, 0) + CAST({_emits(windows, after)} AS INT)"
    forgotten = F.timestamp_micros(F.unix_micros(END) + micros(windows.lateness))
    due = F.when(F.col(EMITTED) == 0, F.col(END)).otherwise(forgotten) if windows.emit == "final" else forgotten
    known = merged.where(f"NOT ({_is_gone(after)} AND {EMITTED} IS NULL)")
    changes = known.withColumn(EMITTED, F.expr(emitted)).withColumn(DUE, due)
    changes = changes.withColumn(DELETED, F.expr(_is_gone(after))).drop(_FRESH)
    return CountedFrame.of(changes, ROWS, folded=_FOLDED_CHANGES)


def _checkpointed(frame: DataFrame) -> DataFrame:
    """Computed now, once."""
    return ObservedFrame.of(frame, rows="count(1)").checkpoint()
