"""What a Delta log says of a file, by what its footer said: rows, nulls, bounds, the partition it belongs to.

Only bounds that are surely right: a reader leaves files out by them. Texts are cut so that they stay bounds; a column
that the footer is silent about has none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa

from lockstep.epoch import Json
from lockstep.errors import SinkRejected
from lockstep.wal.file_facts import ColumnFacts, FileFacts

_COLUMNS = 32  #: with bounds, as Delta's own writers have by default; the epoch's column always
_TEXT = 32  #: characters of a text that stand in the log
_LARGEST = "\U0010ffff"
_EXACT = 10**15  #: up to which JSON's readers keep decimals apart: a double has 15 digits


def plain_columns(facts: FileFacts) -> dict[str, ColumnFacts]:
    """By name, every column that holds plain values; a part of a nested one may have the same path."""
    return {column.path: column for column in facts.columns if not column.nested}


def statistics(found: FileFacts, epoch_column: str) -> str:
    """The `stats` of an `add` action."""
    facts = plain_columns(found)
    told = [name for number, name in enumerate(facts) if number < _COLUMNS or name == epoch_column]
    least = {name: value for name in told if (value := _least(facts[name])) is not None}
    greatest = {name: value for name in told if (value := _greatest(facts[name])) is not None}
    nulls = {name: facts[name].nulls for name in told if facts[name].nulls is not None}
    return json.dumps(
        {
            "numRecords": found.rows,
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
        case str(text) if len(text) <= _TEXT:
            return text
        case str(text):
            return text[:_TEXT] + _LARGEST if text[_TEXT] != _LARGEST else None  # else what follows may be larger
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
    sink: str, path: str, found: FileFacts, partition_by: Sequence[str], if_several: str = ""
) -> dict[str, str | None]:
    """The one value that all rows of a file have in each of these columns, as Delta writes it. Raises `SinkRejected`
    for a file that has several, or that doesn't tell; `if_several` says what to do about it."""
    facts: Mapping[str, ColumnFacts] = plain_columns(found) if partition_by else {}
    remedy = f": {if_several}" if if_several else ""
    return {name: _partition_value(sink, path, name, facts[name], remedy) for name in partition_by}


def _partition_value(sink: str, path: str, column: str, facts: ColumnFacts, remedy: str) -> str | None:
    if facts.nulls == facts.values:
        return None
    if facts.nulls != 0 or facts.least is None or facts.least != facts.greatest:
        raise SinkRejected(
            f"sink {sink}: rows of {path} have several values of {column}, by which the table is partitioned, and a "
            f"file belongs to one partition{remedy}"
        )
    if (text := partition_text(facts.least)) is None:
        raise SinkRejected(f"sink {sink}: {column} is {facts.least!r} in {path}, which is no value to partition by")
    return text


def partition_text(value: object) -> str | None:
    """A value to partition by as Delta writes it; None of a null, and of what is none."""
    match value:
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
    return None
