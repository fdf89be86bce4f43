"""Rows as JSON records that a receiver can tell apart: each carries (pipeline, epoch, ordinal), the same at every try.

The ordinal is the row's place in the sealed WAL, whose files and rows never change their order.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import singledispatch
from typing import Any

from lockstep.errors import SinkRejected
from lockstep.sinks.base import Batches

ENVELOPE = "lockstep"  #: the member of every record that holds its key


@dataclass(frozen=True)
class Record:
    """One row. `key`: "<pipeline>/<output>/<epoch>/<ordinal>"; `line`: a JSON object in UTF-8, no line end."""

    ordinal: int
    key: str
    line: bytes


def records_of(batches: Batches, pipeline: str, epoch: int) -> Iterator[Record]:
    """The rows of one output, in the order of the WAL. Raises `SinkRejected` for a value that JSON can't say."""
    if ENVELOPE in batches.schema.names:
        raise SinkRejected(
            f"output {batches.output}: column {ENVELOPE!r} stands where the record's key goes; rename it"
        )
    ordinal = 0
    for batch in batches:
        for row in batch.to_pylist():
            told = {"pipeline": pipeline, "output": batches.output, "epoch": epoch, "ordinal": ordinal}
            line = _line({ENVELOPE: told, **row}, f"output {batches.output}, row {ordinal}")
            yield Record(ordinal, f"{pipeline}/{batches.output}/{epoch}/{ordinal}", line)
            ordinal += 1
    if ordinal != batches.rows:
        raise SinkRejected(f"output {batches.output}: the WAL gave {ordinal} rows, {batches.rows} are sealed")


def _line(record: dict[str, Any], where: str) -> bytes:
    try:
        return json.dumps(record, default=_as_json, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise SinkRejected(f"{where}: JSON can't say this: {error}") from error


@singledispatch
def _as_json(value: object) -> object:
    raise TypeError(f"a value of type {type(value).__name__}")


@_as_json.register
def _(value: Decimal) -> str:
    return str(value)


@_as_json.register(date)
@_as_json.register(datetime)
@_as_json.register(time)
def _(value: date | datetime | time) -> str:
    return value.isoformat()


@_as_json.register
def _(value: timedelta) -> float:
    return value.total_seconds()


@_as_json.register
def _(value: bytes) -> str:
    return base64.b64encode(value).decode()
