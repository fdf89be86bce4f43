"""Rows as JSON records that a receiver can tell apart: each carries a key that is the same at every try.

The key is (deployment, pipeline, output, epoch, ordinal). The ordinal is the row's place in the sealed WAL, whose files
and rows never change their order. The deployment is part of it because a ledger that is made anew counts its epochs
from one again: without it a receiver would take new rows for repeats of old ones.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lockstep.epoch import Json
from lockstep.errors import SinkRejected
from lockstep.sinks.values import Batches

ENVELOPE = "lockstep"  #: the member of every record that holds its key


@dataclass(frozen=True)
class Origin:
    """Where the records of one output of one epoch come from."""

    deployment: str
    pipeline: str
    output: str
    epoch: int

    def key(self, ordinal: int) -> str:
        """ "<deployment>/<pipeline>/<output>/<epoch>/<ordinal>"."""
        return f"{self.deployment}/{self.pipeline}/{self.output}/{self.epoch}/{ordinal}"

    def envelope(self, **more: int) -> dict[str, Json]:
        """The key's parts by name."""
        return {
            "deployment": self.deployment,
            "pipeline": self.pipeline,
            "output": self.output,
            "epoch": self.epoch,
            **more,
        }


@dataclass(frozen=True, slots=True)
class Record:
    """One row. `line`: a JSON object in UTF-8, no line end in it."""

    key: str
    line: bytes


def records_of(batches: Batches, origin: Origin) -> Iterator[Record]:
    """The rows of one output, in the order of the WAL. Raises `SinkRejected` for a value that JSON can't say."""
    if problem := refused_columns(batches.schema):
        raise SinkRejected(f"output {batches.output}: {problem}")
    opening = _ENCODER.encode({ENVELOPE: origin.envelope()})[:-2]  # the same in every row, but for the ordinal
    ordinal = 0
    for batch in batches:
        for row in _rows_of(batch, f"output {batches.output}, the rows from {ordinal} on"):
            told = json_text(row, f"output {batches.output}, row {ordinal}")
            yield Record(origin.key(ordinal), f'{opening},"ordinal":{ordinal}}},{told[1:]}'.encode())
            ordinal += 1
    if ordinal != batches.rows:
        raise SinkRejected(f"output {batches.output}: the WAL gave {ordinal} rows, {batches.rows} are sealed")


def json_text(value: object, where: str) -> str:
    """One value as the records have it. Raises `SinkRejected` for one that JSON can't say."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise SinkRejected(f"{where}: JSON can't say this: {_first_line(error)}") from error


def refused_columns(schema: pa.Schema) -> str | None:
    """Why rows of this schema can't be records, or None."""
    if not schema.names:
        return "it has no columns"
    if ENVELOPE in schema.names:
        return f"column {ENVELOPE!r} stands where the record's key goes; rename it"
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    return f"column {twice[0]!r} is there twice, a JSON object has it once; rename one" if twice else None


def chunks(records: Iterable[Record], count: int, size: int) -> Iterator[list[Record]]:
    """Lists of at most `count` records and `size` bytes; a record that is larger stands alone. The same each time."""
    chunk: list[Record] = []
    held = 0
    for record in records:
        length = len(record.line) + 1
        if chunk and (len(chunk) == count or held + length > size):
            yield chunk
            chunk, held = [], 0
        chunk.append(record)
        held += length
    if chunk:
        yield chunk


def lines_of(chunk: Iterable[Record]) -> bytes:
    """Each record with its line end."""
    return b"".join(record.line + b"\n" for record in chunk)


def _rows_of(batch: pa.RecordBatch, where: str) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = batch.to_pylist()
    except (ValueError, OverflowError, pa.ArrowException) as error:  # text that is no UTF-8, a year above 9999
        raise SinkRejected(f"{where}: a value can't be read: {_first_line(error)}") from error
    return rows


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"


#: what JSON has no word for; a subclass is told as its parent is
_WORDS: dict[type, Callable[[Any], Json]] = {
    Decimal: str,
    datetime: datetime.isoformat,
    date: date.isoformat,
    time: time.isoformat,
    timedelta: timedelta.total_seconds,
    bytes: lambda value: base64.b64encode(value).decode(),
}


def _as_json(value: object) -> Json:
    for kind in type(value).__mro__:
        if kind in _WORDS:
            return _WORDS[kind](value)
    raise TypeError(f"a value of type {type(value).__name__}")


_ENCODER = json.JSONEncoder(default=_as_json, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
