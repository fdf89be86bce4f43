"""What a Delta log says of a file, by its Parquet footer: rows, nulls, bounds, the partition it belongs to.

Only bounds that are surely right: a reader leaves files out by them. Floats have none, since no footer says whether a
NaN is among the values; texts are cut so that they stay bounds; a column that the footer is silent about has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep.epoch import Json
from lockstep.errors import SinkRejected

_COLUMNS = 32  #: with bounds, as Delta's own writers have by default; the epoch's column always
_TEXT = 32  #: characters of a text that stand in the log
_LARGEST = "\U0010ffff"
_EXACT = 1 << 53  #: up to which JSON's readers keep numbers apart


@dataclass(frozen=True)
class ColumnFacts:
    """Of one column in one file. `least` and `greatest` are None where the footer doesn't tell."""

    type: pa.DataType
    rows: int
    nulls: int | None
    least: Any = None
    greatest: Any = None


def column_facts(footer: pq.FileMetaData) -> dict[str, ColumnFacts]:
    """Of every column that holds plain values. Found by position: a path is also that of another column's part."""
    found, leaf = {}, 0
    for column in footer.schema.to_arrow_schema():
        if not pa.types.is_nested(column.type):
            found[column.name] = _facts_of(footer, leaf, column.type)
        leaf += _leaves(column.type)
    return found


def _leaves(type: pa.DataType) -> int:
    """How many columns of a Parquet file a type takes."""
    if not pa.types.is_nested(type):
        return 1
    return sum(_leaves(type.field(number).type) for number in range(type.num_fields))


def _facts_of(footer: pq.FileMetaData, index: int, type: pa.DataType) -> ColumnFacts:
    nulls: int | None = 0
    bounds: list[Any] = []
    known = True
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group).column(index)
        found = chunk.statistics if chunk.is_stats_set else None
        if found is None or not found.has_null_count:
            return ColumnFacts(type, footer.num_rows, None)
        nulls = (nulls or 0) + found.null_count
        if found.null_count == chunk.num_values:
            continue
        try:
            pair = [found.min, found.max] if found.has_min_max else [None, None]
        except (ValueError, OverflowError, pa.ArrowException):  # a date that Python doesn't know
            pair = [None, None]
        known = known and None not in pair
        bounds += pair
    if not known or not bounds:
        return ColumnFacts(type, footer.num_rows, nulls)
    return ColumnFacts(type, footer.num_rows, nulls, min(bounds), max(bounds))


def statistics(footer: pq.FileMetaData, epoch_column: str) -> str:
    """The `stats` of an `add` action."""
    facts = column_facts(footer)
    told = [name for number, name in enumerate(facts) if number < _COLUMNS or name == epoch_column]
    least = {name: value for name in told if (value := _least(facts[name])) is not None}
    greatest = {name: value for name in told if (value := _greatest(facts[name])) is not None}
    nulls = {name: facts[name].nulls for name in told if facts[name].nulls is not None}
    return json.dumps(
        {
            "numRecords": footer.num_rows,
            "minValues": {name: value for name, value in least.items() if name in greatest},
            "maxValues": {name: value for name, value in greatest.items() if name in least},
            "nullCount": nulls,
        }
    )


def _least(facts: ColumnFacts) -> Json | None:
    match facts.least:
        case str(text):
            return text[:_TEXT]
        case datetime() as moment:
            return _moment(moment.replace(microsecond=moment.microsecond // 1000 * 1000))
        case value:
            return _plain(facts.type, value)


def _greatest(facts: ColumnFacts) -> Json | None:
    match facts.greatest:
        case str(text):
            return text if len(text) <= _TEXT else text[:_TEXT] + _LARGEST
        case datetime() as moment:
            try:
                return _moment(moment + timedelta(microseconds=-moment.microsecond % 1000))
            except OverflowError:
                return None
        case value:
            return _plain(facts.type, value)


def _moment(moment: datetime) -> str:
    """Milliseconds: readers expect no more."""
    text = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{text}Z" if moment.tzinfo else text


def _plain(type: pa.DataType, value: Any) -> Json | None:
    if pa.types.is_integer(type) and isinstance(value, int):
        return value
    if pa.types.is_date(type) and isinstance(value, date):
        return value.isoformat()
    if pa.types.is_decimal(type) and value is not None and abs(value) * 10**type.scale < _EXACT:
        return float(value) if type.scale else int(value)
    return None


def partition_values(
    sink: str, path: str, footer: pq.FileMetaData, partition_by: Sequence[str]
) -> dict[str, str | None]:
    """The one value that all rows of a file have in each of these columns, as Delta writes it. Raises `SinkRejected`
    for a file that has several, or that doesn't tell."""
    facts = column_facts(footer) if partition_by else {}
    return {name: _partition_value(sink, path, name, facts[name]) for name in partition_by}


def _partition_value(sink: str, path: str, column: str, facts: ColumnFacts) -> str | None:
    if facts.nulls == facts.rows:
        return None
    if facts.nulls != 0 or facts.least is None or facts.least != facts.greatest:
        raise SinkRejected(
            f"sink {sink}: rows of {path} have several values of {column}, by which the table is partitioned, and a "
            f"file belongs to one partition: give an epoch one value of {column} (an interval of a day for a table by "
            "day), or have the table without partitions and let it be clustered"
        )
    match facts.least:
        case bool(flag):
            return str(flag).lower()
        case datetime() as moment:
            return moment.replace(tzinfo=None).isoformat(" ", "microseconds")
        case date() as day:
            return day.isoformat()
        case str(text) if text:
            return text
        case int(number):
            return str(number)
        case other:
            raise SinkRejected(f"sink {sink}: {column} is {other!r} in {path}, which is no value to partition by")


def each_null_count(footer: pq.FileMetaData) -> Iterator[tuple[str, int | None]]:
    """How many nulls each plain column has, None where the footer doesn't say."""
    yield from ((name, facts.nulls) for name, facts in column_facts(footer).items())
