"""An audit's rule as Spark asks it of each row: what DuckDB finds by the audit's query, over the same values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, TimestampNTZType, TimestampType

from lockstep.audits.audit import Rule, Value
from lockstep.definition.ddl import quote_name
from lockstep.errors import InvalidPipeline

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def offends(rule: Rule, frame: DataFrame, audit: str) -> Column:
    """True of a row that offends; null or false of others. Raises `InvalidPipeline` for a column that isn't there."""
    if rule.offence == "where":
        return F.expr(f"({rule.condition})")
    found = [field for field in frame.schema.fields if field.name.casefold() == (rule.column or "").casefold()]
    if len(found) != 1:
        raise InvalidPipeline(
            f"audit {audit} looks at column {rule.column}, and the output has {len(found)} of that name; it has "
            f"{', '.join(frame.columns)}: correct the transform, or the audit, and then `lockstep replan`"
        )
    [field] = found
    column, kind = F.col(quote_name(field.name)), field.dataType
    match rule.offence:
        case "null":
            return column.isNull()
        case "not_in":
            return ~_any([_compared(kind, column, value, lambda left, right: left == right) for value in rule.values])
    bounds = []
    if rule.at_least is not None:
        bounds.append(_compared(kind, column, rule.at_least, lambda left, right: left < right))
    if rule.at_most is not None:
        bounds.append(_compared(kind, column, rule.at_most, lambda left, right: left > right))
    return _any(bounds)


def _any(conditions: list[Column]) -> Column:
    return reduce(lambda left, right: left | right, conditions)


def _compared(kind: DataType, column: Column, value: Value, compare: Callable[[Column, Column], Column]) -> Column:
    """Times compare as instants, whatever the session's zone is: one without a zone is UTC's, and a date its start."""
    if isinstance(value, date) and isinstance(kind, DateType | TimestampNTZType):
        return compare(column.cast("timestamp_ntz"), F.lit(_naive(value).isoformat(sep=" ")).cast("timestamp_ntz"))
    if isinstance(value, date) and isinstance(kind, TimestampType):
        return compare(column, F.lit(_naive(value).replace(tzinfo=UTC)))
    return compare(column, F.lit(value))


def _naive(value: date) -> datetime:
    if not isinstance(value, datetime):
        return datetime.combine(value, time())
    return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
