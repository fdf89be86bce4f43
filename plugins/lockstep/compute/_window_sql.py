"""Windows as Spark's SQL: their aggregates, which of a row's windows are late, and panes merged with the windows
before.

An event is late by what earlier epochs have seen, as in Spark: neither the order of rows within an epoch nor the size
of epochs makes a row late within its own. `_window_merging` does the merging of few rows in this process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from lockstep.compute._counting import CountedFrame
from lockstep.compute._watermarks import BEGINNING, FIRST, LAST, Watermark
from lockstep.definition.ddl import quote_name
from lockstep.definition.keyed_state import DELETED
from lockstep.definition.windows import (
    DUE,
    EMITTED,
    END,
    MISSED,
    REVISION,
    START,
    Aggregate,
    AggregateFunction,
    SteppedDefinition,
    WindowDefinition,
    micros,
)
from lockstep.errors import InvalidPipeline
from lockstep.spark.ddl import struct_of
from lockstep.spark.session import require_ansi

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: columns added to a row: whether it passes the condition; its event time and its pane's start, in µs
PASSES, AT, PANE = "_window_passes", "_window_at", "_window_pane"
_START, _BACK = "_window_start", "_window_back"  # of a part: its window's start, and the distance to its pane's
#: of a pane, if the watermark has partitions: its partition, and its greatest event time
PARTITION, SEEN = "_window_partition", "_window_seen"
BEGAN = "_window_began"  #: of a pane of sessions: its rows' least event time; SEEN is the greatest
ROWS = "_window_rows"  #: of a part of a window: the number of rows whose newest window it is
FRESH = "_window_fresh"  #: true if this epoch has rows of it


def partial_aggregates(aggregate: Aggregate) -> list[Column]:
    """The columns of the state, from rows."""
    argument = F.lit(1) if aggregate.argument == "*" else F.expr(aggregate.argument)
    types = aggregate.state_columns()
    match aggregate.function:
        case AggregateFunction.COUNT:
            columns = [F.count(argument)]
        case AggregateFunction.SUM:
            columns = [F.sum(argument.cast(aggregate.type))]
        case AggregateFunction.MIN:
            columns = [F.min(argument)]
        case AggregateFunction.MAX:
            columns = [F.max(argument)]
        case AggregateFunction.AVG:
            columns = [F.sum(argument.cast(next(iter(types.values())))), F.count(argument)]
    return [column.cast(kind).alias(name) for column, (name, kind) in zip(columns, types.items(), strict=True)]


def merged_aggregates(aggregate: Aggregate) -> list[Column]:
    """The columns of the state, merged from parts with the same columns."""
    merge = {AggregateFunction.MIN: F.min, AggregateFunction.MAX: F.max}.get(aggregate.function, F.sum)
    return [merge(F.col(name)).cast(kind).alias(name) for name, kind in aggregate.state_columns().items()]


def final_aggregate(aggregate: Aggregate) -> Column:
    """The column of the results, from the columns of the state."""
    if aggregate.function is not AggregateFunction.AVG:
        return F.col(aggregate.name)
    total, count = (F.col(name) for name in aggregate.state_columns())
    declared = struct_of(f"mean {aggregate.type}").fields[0].dataType
    rows = F.nullif(count, F.lit(0))
    mean = _rounded_once(total, rows, declared.scale) if isinstance(declared, T.DecimalType) else total / rows
    return mean.cast(aggregate.type).alias(aggregate.name)


def _rounded_once(total: Column, rows: Column, scale: int) -> Column:
    """total / rows, rounded half up to `scale` decimals. Spark divides to six at least: a cast would round again."""
    if scale >= 6:
        return total / rows
    step = F.lit(Decimal(1).scaleb(-scale))
    unit = (rows.cast("DECIMAL(20,0)") * step).cast(f"DECIMAL({20 + scale},{scale})")
    rest = total % unit
    up = F.when(F.abs(rest) * 2 >= unit, F.when(total < 0, -step).otherwise(step)).otherwise(F.lit(0))
    return (total - rest) / rows + up


def require_types(windows: WindowDefinition, frame: DataFrame, where: str | None) -> T.StructType:
    """Return the frame's schema. Refuse, before a row is read, expressions whose values would be cut, rounded or read
    in an implicit time zone.

    Raises `InvalidPipeline`, `SparkRefused`; Spark's own errors for expressions that it can't resolve.
    """
    require_ansi(frame.sparkSession, f"windows {windows.name}")
    declared = {field.name: field.dataType for field in struct_of(windows.schema).fields}
    folds = [aggregate for aggregate in windows.aggregate_columns() if aggregate.argument != "*"]
    columns = [F.col(quote_name(column)) for column in windows.key]
    columns += [F.expr(text) for text in (windows.time, where or "true", *(aggregate.argument for aggregate in folds))]
    fields = frame.select("*", *(column.alias(f"c{number}") for number, column in enumerate(columns))).schema.fields
    types = [field.dataType for field in fields[-len(columns) :]]
    keys, (time, condition), arguments = (
        types[: len(windows.key)],
        types[len(windows.key) : len(windows.key) + 2],
        types[len(windows.key) + 2 :],
    )
    wrong = [
        *(
            f"{name} is {kind.simpleString()}, declared {declared[name].simpleString()}"
            for name, kind in zip(windows.key, keys, strict=True)
            if kind != declared[name]
        ),
        *([f"time={windows.time!r} is {time.simpleString()}, not timestamp"] if time != T.TimestampType() else []),
        *([f"where={where!r} is {condition.simpleString()}, not boolean"] if condition != T.BooleanType() else []),
        *(
            text
            for aggregate, kind in zip(folds, arguments, strict=True)
            if (text := _unfit(aggregate, kind, declared[aggregate.name]))
        ),
    ]
    if wrong:
        raise InvalidPipeline(f"windows {windows.name}: {'; '.join(wrong)}: cast in the expression, or declare it so")
    return T.StructType(fields[: -len(columns)])


def _unfit(aggregate: Aggregate, actual: T.DataType, declared: T.DataType) -> str | None:
    """Why values of type `actual` don't fit this aggregate, or None. Sums that grow too large fail at run time."""
    match aggregate.function:
        case AggregateFunction.COUNT:
            fits = True
        case AggregateFunction.MIN | AggregateFunction.MAX:
            fits = actual == declared
        case AggregateFunction.SUM | AggregateFunction.AVG:
            if isinstance(declared, T.DoubleType):
                fits = isinstance(actual, T.NumericType)
            elif isinstance(actual, T.DecimalType):
                fits = isinstance(declared, T.DecimalType) and actual.scale <= declared.scale
            else:
                fits = isinstance(actual, T.IntegralType)
    call = f"{aggregate.function}({aggregate.argument})"
    return None if fits else f"{call} reads {actual.simpleString()}, {aggregate.name} is {declared.simpleString()}"


@dataclass(frozen=True)
class Bounds:
    """Times in µs: windows that end by `closed` are closed, by `forgotten` forgotten.

    `newest` and `oldest`: SQL for the ends of a row's newest and oldest windows.
    """

    closed: int
    forgotten: int
    size: int
    step: int

    @classmethod
    def of(cls, windows: SteppedDefinition, before: Watermark) -> Bounds:
        forgotten = before.forgetting(windows).forgotten
        return cls(before.bound, forgotten, micros(windows.size), micros(windows.step))

    @property
    def newest(self) -> str:
        return f"({PANE} + {self.size}L)"

    @property
    def oldest(self) -> str:
        return f"({PANE} + {self.step}L)"

    def last_by(self, bound: int) -> str:
        """SQL for the greatest end of a row's windows that is at or before `bound`, if it is not before `oldest`."""
        return f"least({self.newest}, {bound}L - pmod({bound}L - {self.newest}, {self.step}L))"

    def missed_windows(self) -> str:
        """SQL for the number of a row's windows that were forgotten."""
        return f"greatest(0L, ({self.last_by(self.forgotten)} - {self.oldest}) div {self.step}L + 1L)"

    def counts(self, windows: WindowDefinition) -> dict[str, str]:
        """SQL aggregates by name over rows as they are read; corrected and partly_late are parts of folded."""
        late = f"{self.newest} <= {self.forgotten}L"
        last = self.last_by(self.closed)
        return {
            **counts_of_any(windows),
            "corrected": rows_with(f"{last} > {self.forgotten}L AND {last} >= {self.oldest}"),
            "partly_late": rows_with(f"{self.oldest} <= {self.forgotten}L AND NOT {late}"),
            "missed": rows_with(f"{self.oldest} <= {self.forgotten}L"),
        }

    def expand(self, windows: WindowDefinition, panes: DataFrame) -> DataFrame:
        """Parts of windows that aren't forgotten, from panes."""
        parts = self._spread(windows, panes) if self.size > self.step else panes.withColumnRenamed(PANE, _START)
        start, end = F.timestamp_micros(_START), F.timestamp_micros(F.col(_START) + self.size)
        remembered = parts.where(f"{_START} + {self.size}L > {self.forgotten}L")
        return remembered.withColumns({START: start, END: end}).drop(_START, PARTITION, SEEN)

    def _spread(self, windows: WindowDefinition, panes: DataFrame) -> DataFrame:
        """Copy each pane to its windows. A row counts for the newest of them, the last one to close."""
        back = F.explode(F.expr(f"sequence(0L, {self.size - self.step}L, {self.step}L)"))
        spread = panes.withColumn(_BACK, back).withColumn(_START, F.col(PANE) - F.col(_BACK))
        own = F.sum(F.expr(f"CASE WHEN {_BACK} = 0 THEN {ROWS} ELSE 0L END")).alias(ROWS)
        return spread.groupBy(*windows.key, _START).agg(
            *(c for aggregate in windows.aggregate_columns() for c in merged_aggregates(aggregate)), own
        )

    def late(self, rows: DataFrame, columns: Sequence[str], some: bool) -> CountedFrame:
        """The rows that missed windows. `some`: false if there are none, so that nothing is read."""
        panes = self.size // self.step
        missed = [F.expr(self.missed_windows()).cast("int").alias(MISSED)] if panes > 1 else []
        late = rows.where(f"{self.oldest} <= {self.forgotten}L" if some else "false")
        selected = late.select(*(F.col(f"`{name}`") for name in columns), *missed)
        return CountedFrame.of(selected, late=rows_with(f"{MISSED} = {panes}" if missed else "true"))


def counts_of_any(windows: WindowDefinition) -> dict[str, str]:
    """SQL aggregates by name over rows as they are read, for any kind of windows."""
    null = " OR ".join(f"`{column}` IS NULL" for column in windows.key)
    return {
        "in": "count(1)",
        "filtered": rows_with(f"NOT {PASSES}"),
        "untimed": rows_with(f"{PASSES} AND {AT} IS NULL"),
        "unkeepable": rows_with(f"{PASSES} AND NOT ({keepable(windows)})"),
        "keyless": rows_with(f"{PASSES} AND ({null})"),
        "greatest": f"coalesce(max({AT}), {BEGINNING}L)",
    }


def keepable(windows: WindowDefinition) -> str:
    """SQL that is true if a row's event time, and the time when its windows are forgotten, are in the years 1 to
    9999."""
    return f"{AT} BETWEEN {FIRST}L AND {LAST - micros(windows.span + windows.lateness)}L"


def rows_with(condition: str) -> str:
    """SQL that counts the rows for which the condition is true."""
    return f"count(CASE WHEN {condition} THEN 1 END)"


def combined(windows: WindowDefinition, old: DataFrame, fresh: DataFrame, *more: Column) -> DataFrame:
    """Merge to one row per key and window start. Both frames have the columns of the state but `due`, and ROWS and
    FRESH."""
    columns = [column for aggregate in windows.aggregate_columns() for column in merged_aggregates(aggregate)]
    merged = old.unionByName(fresh).groupBy(*windows.key, START)
    greatest = [F.max(column).alias(column) for column in (END, EMITTED, FRESH)]
    return merged.agg(*greatest, *columns, F.sum(ROWS).alias(ROWS), *more)


def results_of(windows: WindowDefinition, merged: DataFrame, after: Watermark) -> DataFrame:
    """The combined windows that are emitted; ROWS counts the rows of windows that are forgotten at once."""
    emitted = merged.where(_emits(windows, after)).withColumn(REVISION, F.expr(f"coalesce({EMITTED}, 0)"))
    return result_columns(windows, emitted, F.expr(f"CASE WHEN {_is_forgotten(after)} THEN {ROWS} ELSE 0L END"))


def result_columns(windows: WindowDefinition, emitted: DataFrame, rows: Column, *more: Column) -> DataFrame:
    """Windows with the columns of the results. `rows`: the number of their rows that the state doesn't count."""
    finals = map(final_aggregate, windows.aggregate_columns())
    return emitted.select(*windows.key, START, END, *finals, REVISION, *more, rows.alias(ROWS))


def changes_of(windows: WindowDefinition, merged: DataFrame, after: Watermark) -> DataFrame:
    """The changes of state. A window that is created and forgotten within the epoch isn't among them; the results count
    it."""
    emitted = f"coalesce({EMITTED}, 0) + CAST({_emits(windows, after)} AS INT)"
    forgotten = F.timestamp_micros(F.unix_micros(END) + micros(windows.lateness))
    due = F.when(F.col(EMITTED) == 0, F.col(END)).otherwise(forgotten) if windows.emit == "final" else forgotten
    stored = merged.where(f"NOT ({_is_forgotten(after)} AND {EMITTED} IS NULL)")
    changes = (
        stored.withColumn(EMITTED, F.expr(emitted))
        .withColumn(DUE, due)
        .withColumn(DELETED, F.expr(_is_forgotten(after)))
    )
    state_columns = [column for aggregate in windows.aggregate_columns() for column in aggregate.state_columns()]
    return changes.select(*windows.key, START, END, *state_columns, EMITTED, DUE, DELETED, ROWS)


def _is_forgotten(after: Watermark) -> str:
    return f"unix_micros({END}) <= {after.forgotten}L"


def _emits(windows: WindowDefinition, after: Watermark) -> str:
    """SQL that is true of a window to emit. Of the emitted windows only sessions can be open again."""
    if windows.emit == "updates":
        return FRESH
    emitted = f"coalesce({EMITTED}, 0)"
    return f"((unix_micros({END}) <= {after.bound}L OR {emitted} > 0) AND ({FRESH} OR {emitted} = 0))"
