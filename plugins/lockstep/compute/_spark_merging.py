"""Parts of windows and the windows before as one of each, by Spark: what `_window_merging.py` does with few."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.compute._lateness import ROWS
from lockstep.compute._watermarks import Watermark
from lockstep.compute._window_columns import final_aggregate, merged_aggregates
from lockstep.definition.keyed_state import DELETED
from lockstep.definition.windows import DUE, EMITTED, END, REVISION, START, WindowDefinition, micros

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FRESH = "_window_fresh"  #: whether this epoch has rows of it


def combined(windows: WindowDefinition, old: DataFrame, fresh: DataFrame, *more: Column) -> DataFrame:
    """One row a key and start of a window. Both have the columns of the state but `due`, and ROWS, and FRESH."""
    columns = [column for one in windows.aggregate_columns() for column in merged_aggregates(one)]
    merged = old.unionByName(fresh).groupBy(*windows.key, START)
    told = [F.max(column).alias(column) for column in (END, EMITTED, FRESH)]
    return merged.agg(*told, *columns, F.sum(ROWS).alias(ROWS), *more)


def results_of(windows: WindowDefinition, merged: DataFrame, after: Watermark) -> DataFrame:
    """What is emitted of combined windows, with the rows of those that are forgotten at once."""
    emitted = merged.where(_emits(windows, after)).withColumn(REVISION, F.expr(f"coalesce({EMITTED}, 0)"))
    return shown(windows, emitted, F.expr(f"CASE WHEN {_is_gone(after)} THEN {ROWS} ELSE 0L END"))


def shown(windows: WindowDefinition, emitted: DataFrame, rows: Column, *more: Column) -> DataFrame:
    """Windows as results show them. `rows`: how many of them aren't counted anywhere else."""
    finals = map(final_aggregate, windows.aggregate_columns())
    return emitted.select(*windows.key, START, END, *finals, REVISION, *more, rows.alias(ROWS))


def changes_of(windows: WindowDefinition, merged: DataFrame, after: Watermark) -> DataFrame:
    """The windows' new state; one that comes and goes within the epoch never gets there, the results count it."""
    emitted = f"coalesce({EMITTED}, 0) + CAST({_emits(windows, after)} AS INT)"
    forgotten = F.timestamp_micros(F.unix_micros(END) + micros(windows.lateness))
    due = F.when(F.col(EMITTED) == 0, F.col(END)).otherwise(forgotten) if windows.emit == "final" else forgotten
    known = merged.where(f"NOT ({_is_gone(after)} AND {EMITTED} IS NULL)")
    changes = (
        known.withColumn(EMITTED, F.expr(emitted)).withColumn(DUE, due).withColumn(DELETED, F.expr(_is_gone(after)))
    )
    kept = [column for one in windows.aggregate_columns() for column in one.state_columns()]
    return changes.select(*windows.key, START, END, *kept, EMITTED, DUE, DELETED, ROWS)


def _is_closed(after: Watermark) -> str:
    return f"unix_micros({END}) <= {after.bound}L"


def _is_gone(after: Watermark) -> str:
    return f"unix_micros({END}) <= {after.forgotten}L"


def _emits(windows: WindowDefinition, after: Watermark) -> str:
    """What was emitted once may be open again only if it is a session."""
    if windows.emit == "updates":
        return FRESH
    emitted = f"coalesce({EMITTED}, 0)"
    return f"(({_is_closed(after)} OR {emitted} > 0) AND ({FRESH} OR {emitted} = 0))"
