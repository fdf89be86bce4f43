"""A window's aggregates as Spark columns: of the rows of one part, of parts together, and as a result shows them."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from lockstep.definition.windows import Aggregate, Function, WindowDefinition
from lockstep.errors import InvalidPipeline
from lockstep.spark.ddl import struct_of
from lockstep.spark.session import require_ansi

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def partial_aggregates(one: Aggregate) -> list[Column]:
    """What the state keeps, from rows."""
    argument = F.lit(1) if one.argument == "*" else F.expr(one.argument)
    kept = one.state_columns()
    match one.function:
        case Function.COUNT:
            made = [F.count(argument)]
        case Function.SUM:
            made = [F.sum(argument.cast(one.type))]
        case Function.MIN:
            made = [F.min(argument)]
        case Function.MAX:
            made = [F.max(argument)]
        case Function.AVG:
            made = [F.sum(argument.cast(next(iter(kept.values())))), F.count(argument)]
    return [column.cast(kind).alias(name) for column, (name, kind) in zip(made, kept.items(), strict=True)]


def merged_aggregates(one: Aggregate) -> list[Column]:
    """What the state keeps, from parts that keep the same."""
    merge = {Function.MIN: F.min, Function.MAX: F.max}.get(one.function, F.sum)
    return [merge(F.col(name)).cast(kind).alias(name) for name, kind in one.state_columns().items()]


def final_aggregate(one: Aggregate) -> Column:
    """What a result shows, from what the state keeps."""
    if one.function is not Function.AVG:
        return F.col(one.name)
    total, count = (F.col(name) for name in one.state_columns())
    found = struct_of(f"mean {one.type}").fields[0].dataType
    rows = F.nullif(count, F.lit(0))
    mean = _rounded_once(total, rows, found.scale) if isinstance(found, T.DecimalType) else total / rows
    return mean.cast(one.type).alias(one.name)


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
    """Refuse, before a row is read, what would be cut, rounded or read in a zone that nobody named; the frame's schema,
    which is asked for on the way.

    Raises `InvalidPipeline`, `SparkRefused`; Spark's own errors for expressions that it can't resolve.
    """
    require_ansi(frame.sparkSession, f"windows {windows.name}")
    declared = {field.name: field.dataType for field in struct_of(windows.schema).fields}
    folds = [one for one in windows.aggregate_columns() if one.argument != "*"]
    asked = [F.col(_quoted(column)) for column in windows.key]
    asked += [F.expr(text) for text in (windows.time, where or "true", *(one.argument for one in folds))]
    every = frame.select("*", *(column.alias(f"c{number}") for number, column in enumerate(asked))).schema.fields
    found = [field.dataType for field in every[-len(asked) :]]
    keys, (time, condition), arguments = (
        found[: len(windows.key)],
        found[len(windows.key) : len(windows.key) + 2],
        found[len(windows.key) + 2 :],
    )
    wrong = [
        *_differing(zip(windows.key, keys, (declared[column] for column in windows.key), strict=True)),
        *([f"time={windows.time!r} is {time.simpleString()}, not timestamp"] if time != T.TimestampType() else []),
        *([f"where={where!r} is {condition.simpleString()}, not boolean"] if condition != T.BooleanType() else []),
        *(text for one, kind in zip(folds, arguments, strict=True) if (text := _unfit(one, kind, declared[one.name]))),
    ]
    if wrong:
        raise InvalidPipeline(f"windows {windows.name}: {'; '.join(wrong)}: cast in the expression, or declare it so")
    return T.StructType(every[: -len(asked)])


def _differing(columns: Iterable[tuple[str, T.DataType, T.DataType]]) -> list[str]:
    return [
        f"{name} is {found.simpleString()}, declared {declared.simpleString()}"
        for name, found, declared in columns
        if found != declared
    ]


def _unfit(one: Aggregate, found: T.DataType, declared: T.DataType) -> str | None:
    """Why a value of type `found` may not go into this aggregate; sums that grow too large fail while they are made."""
    match one.function:
        case Function.COUNT:
            fits = True
        case Function.MIN | Function.MAX:
            fits = found == declared
        case Function.SUM | Function.AVG:
            fits = _adds_exactly(found, declared)
    text = f"{one.function}({one.argument}) reads {found.simpleString()}, {one.name} is {declared.simpleString()}"
    return None if fits else text


def _adds_exactly(found: T.DataType, total: T.DataType) -> bool:
    if isinstance(total, T.DoubleType):
        return isinstance(found, T.NumericType)
    if isinstance(found, T.DecimalType):
        return isinstance(total, T.DecimalType) and found.scale <= total.scale
    return isinstance(found, T.IntegralType)


def _quoted(column: str) -> str:
    return f"`{column}`"
