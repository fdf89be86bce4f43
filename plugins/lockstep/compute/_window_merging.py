"""An epoch's few panes merged with the windows before, in this process; Spark merges many (`_window_sql`).

As exact as Spark: sums are made with 76 digits and must fit their declared type. What this process can't decide it
leaves to Spark (`Unsure`), which returns the result, or its own error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lockstep.compute._key_hash import can_hash
from lockstep.compute._local_rows import arrow_schema, most_rows
from lockstep.compute._watermarks import Watermark
from lockstep.compute._window_sql import PANE, PARTITION, ROWS, SEEN, Bounds
from lockstep.definition.keyed_state import DELETED
from lockstep.definition.windows import (
    DUE,
    EMITTED,
    END,
    REVISION,
    START,
    Aggregate,
    AggregateFunction,
    WindowDefinition,
    micros,
)
from lockstep.spark.ddl import struct_of

_FRESH = "_window_fresh"
_EXACT = 76  #: digits of Arrow's widest decimal
_WHOLE_DIGITS = 32  #: of Spark's quotient of decimals with fewer than six decimals
_SPARK_SCALE = 6
_TIME = pa.timestamp("us", "UTC")
_VALUE = pc.ScalarAggregateOptions(skip_nulls=True, min_count=1)  # null if there is nothing else, as in SQL


class Unsure(Exception):
    """Spark has to do it."""


@dataclass(frozen=True)
class Merged:
    """Arrow tables with the columns that `_window_sql` makes: results and changes, both with the rows folded."""

    results: pa.Table
    changes: pa.Table


def can_merge(windows: WindowDefinition) -> bool:
    """True if this process merges these types as Spark does: not keys, minima and maxima of floats."""
    schema = arrow_schema(struct_of(windows.state()[windows.name].schema))
    if not all(can_hash(schema.field(name).type) for name in windows.key):
        return False
    ordered = (AggregateFunction.MIN, AggregateFunction.MAX)
    return all(
        can_hash(schema.field(aggregate.name).type)
        for aggregate in windows.aggregate_columns()
        if aggregate.function in ordered
    )


def greatest_times(panes: pa.Table) -> dict[str, int]:
    """The greatest event time of each partition."""
    groups = panes.group_by([PARTITION]).aggregate([(SEEN, "max")])
    return dict(zip(groups[PARTITION].to_pylist(), groups[f"{SEEN}_max"].to_pylist(), strict=True))


def spread(windows: WindowDefinition, bounds: Bounds, panes: pa.Table) -> pa.Table:
    """Parts of windows that aren't forgotten, from panes. A row counts for the newest of its windows.

    Raises `Unsure` if there are more than this process takes.
    """
    behind = range(0, bounds.size, bounds.step)
    if len(panes) * len(behind) > most_rows():
        raise Unsure(f"{len(panes)} panes, each in {len(behind)} windows")
    none = pa.array([0] * len(panes), pa.int64())
    parts = []
    for back in behind:
        start = pc.subtract(panes[PANE], back)
        part = panes.append_column(START, start).append_column(END, pc.add(start, bounds.size))
        part = part.set_column(part.schema.get_field_index(ROWS), ROWS, part[ROWS] if back == 0 else none)
        parts.append(part.filter(pc.greater(part[END], bounds.forgotten)))
    return pa.concat_tables(parts)


def merge(windows: WindowDefinition, parts: pa.Table, old: pa.Table, after: Watermark) -> Merged:
    """Merge `parts`, as from `spread`, with the `old` windows, of which this epoch may not touch some.

    Raises `Unsure`.
    """
    try:
        merged = _grouped(windows, parts, old)
        return _split(windows, merged, after)
    except pa.ArrowException as error:
        raise Unsure(str(error)) from error


def _columns(windows: WindowDefinition) -> dict[str, tuple[AggregateFunction, str]]:
    """The merge function and the declared type of each column of the state."""
    return {
        name: (
            aggregate.function
            if aggregate.function in (AggregateFunction.MIN, AggregateFunction.MAX)
            else AggregateFunction.SUM,
            kind,
        )
        for aggregate in windows.aggregate_columns()
        for name, kind in aggregate.state_columns().items()
    }


def _grouped(windows: WindowDefinition, parts: pa.Table, old: pa.Table) -> pa.Table:
    """One row per key and window, with exact sums."""
    key = [*windows.key, START]
    columns = _columns(windows)
    fresh = {
        **{name: parts[name] for name in (*key, END, *columns)},
        EMITTED: pa.nulls(len(parts), pa.int32()),
        DUE: pa.nulls(len(parts), pa.int64()),
        ROWS: parts[ROWS],
        _FRESH: pa.array([1] * len(parts), pa.int8()),
    }
    before = pa.table(
        {
            **{
                name: old[name].cast(pa.int64()) if name in (START, END, DUE) else old[name]
                for name in list(fresh)[:-2]
            },
            ROWS: pa.array([0] * len(old), pa.int64()),
            _FRESH: pa.array([0] * len(old), pa.int8()),
        }
    )
    table = pa.concat_tables([pa.table(fresh).cast(before.schema), before])
    kinds = {name: before.schema.field(name).type for name in columns}
    functions: list[tuple[str, str, pc.FunctionOptions | None]] = []
    for name, (function, _) in columns.items():
        if function is AggregateFunction.SUM and not at.is_floating(kinds[name]):
            scale = kinds[name].scale if at.is_decimal(kinds[name]) else 0
            wide = table[name].cast(pa.decimal256(_EXACT, scale))
            table = table.set_column(table.schema.get_field_index(name), name, wide)
        functions.append((name, str(function), _VALUE))
    functions += [(END, "max", _VALUE), (EMITTED, "max", _VALUE), (DUE, "max", _VALUE), (_FRESH, "max", _VALUE)]
    groups = table.group_by(key).aggregate([*functions, (ROWS, "sum", _VALUE)])
    arrays = {name: groups[name] for name in key}
    for name, how, _ in [*functions, (ROWS, "sum", None)]:
        arrays[name] = groups[f"{name}_{how}"].cast(table.schema.field(name).type)
    for name, kind in kinds.items():
        arrays[name] = arrays[name].cast(kind)  # what doesn't fit is an error
    return pa.table(arrays)


def _split(windows: WindowDefinition, merged: pa.Table, after: Watermark) -> Merged:
    due = pc.fill_null(pc.less_equal(merged[DUE], after.bound), False)
    merged = merged.filter(pc.or_(pc.equal(merged[_FRESH], 1), due))
    fresh = pc.equal(merged[_FRESH], 1)
    emitted = pc.fill_null(merged[EMITTED], 0)
    closed, forgotten = pc.less_equal(merged[END], after.bound), pc.less_equal(merged[END], after.forgotten)
    emits = fresh
    if windows.emit == "final":
        none = pc.equal(emitted, 0)  # of emitted windows only sessions can be open again
        emits = pc.and_(pc.or_(closed, pc.invert(none)), pc.or_(fresh, none))
    return Merged(
        _results(windows, merged, emits, emitted, forgotten),
        _changes(windows, merged, emits, emitted, forgotten),
    )


def _results(
    windows: WindowDefinition, merged: pa.Table, emits: pa.Array, emitted: pa.Array, forgotten: pa.Array
) -> pa.Table:
    table = merged.append_column(REVISION, emitted.cast(pa.int32()))
    table = table.set_column(table.schema.get_field_index(ROWS), ROWS, pc.if_else(forgotten, merged[ROWS], 0))
    return result_table(windows, table.filter(emits))


def result_table(windows: WindowDefinition, table: pa.Table) -> pa.Table:
    """Windows with the columns of the results, from the columns of the state, REVISION and ROWS."""
    types = {field.name: field.type for field in arrow_schema(struct_of(windows.schema))}
    return pa.table(
        {
            **{name: table[name] for name in windows.key},
            START: table[START].cast(_TIME),
            END: table[END].cast(_TIME),
            **{
                aggregate.name: _final(aggregate, table, types[aggregate.name])
                for aggregate in windows.aggregate_columns()
            },
            REVISION: table[REVISION],
            ROWS: table[ROWS],
        }
    )


def _changes(
    windows: WindowDefinition, merged: pa.Table, emits: pa.Array, emitted: pa.Array, forgotten: pa.Array
) -> pa.Table:
    stored = pc.invert(pc.and_(forgotten, pc.is_null(merged[EMITTED])))
    times = pc.add(emitted, emits.cast(pa.int32()))
    due = pc.add(merged[END], micros(windows.lateness))
    if windows.emit == "final":
        due = pc.if_else(pc.equal(times, 0), merged[END], due)
    return pa.table(
        {
            **{name: merged[name] for name in windows.key},
            START: merged[START].cast(_TIME),
            END: merged[END].cast(_TIME),
            **{name: merged[name] for name in _columns(windows)},
            EMITTED: times.cast(pa.int32()),
            DUE: due.cast(_TIME),
            DELETED: forgotten,
            ROWS: merged[ROWS],
        }
    ).filter(stored)


def _final(aggregate: Aggregate, table: pa.Table, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """The column of the results, from the columns of the state, as `_window_sql.final_aggregate` in Spark."""
    if aggregate.function is not AggregateFunction.AVG:
        return table[aggregate.name]
    total, count = (table[name] for name in aggregate.state_columns())
    count = pc.if_else(pc.equal(count, 0), None, count)
    if at.is_floating(kind):
        return pc.divide(total.cast(pa.float64(), safe=False), count.cast(pa.float64(), safe=False)).cast(kind)
    return pa.array(_means(total.to_pylist(), count.to_pylist(), kind.scale), kind)


def _means(totals: Sequence[Decimal | None], counts: Sequence[int | None], scale: int) -> list[Decimal | None]:
    """total / count of each pair, rounded half up to `scale` decimals, once."""
    means: list[Decimal | None] = []
    for total, count in zip(totals, counts, strict=True):
        if total is None or count is None:
            means.append(None)
            continue
        sign, digits, exponent = total.as_tuple()
        units = int("".join(map(str, digits))) * 10 ** (scale + int(exponent))
        mean = (2 * units + count) // (2 * count)
        if scale < _SPARK_SCALE and mean >= 10 ** (_WHOLE_DIGITS + scale):
            raise Unsure("Spark's quotient has no room for it")
        means.append(Decimal((sign, tuple(map(int, str(mean))), -scale)))
    return means


def folded_results(table: pa.Table) -> dict[str, int]:
    """The rows of windows that are emitted and forgotten at once."""
    return {"folded": pc.sum(table[ROWS]).as_py() or 0}


def folded_changes(table: pa.Table) -> dict[str, int]:
    """The rows of windows that stay."""
    return {"folded": pc.sum(table.filter(pc.invert(table[DELETED]))[ROWS]).as_py() or 0}
