"""Rows as JSON records. Each has a key that is the same at every attempt, so a receiver can drop repeats.

The key is (deployment, pipeline, output, epoch, ordinal). The ordinal is the row's position in the sealed WAL, whose
order never changes. A new ledger counts epochs from one again; by the deployment in the key its rows aren't taken for
repeats.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lockstep.epoch import Json
from lockstep.errors import SinkRejected
from lockstep.sinks.json_rows import joined_objects, max_bytes_of, small_batches
from lockstep.sinks.values import Batches

ENVELOPE = "lockstep"  #: the member of each record that holds its key


@dataclass(frozen=True)
class Origin:
    """The origin of records: one output of one epoch. `replaced`: the epochs that it replaces."""

    deployment: str
    pipeline: str
    output: str
    epoch: int
    replaced: tuple[int, ...] = ()

    def key(self, ordinal: int) -> str:
        """Return "<deployment>/<pipeline>/<output>/<epoch>/<ordinal>"."""
        return f"{self.deployment}/{self.pipeline}/{self.output}/{self.epoch}/{ordinal}"

    def envelope(self, **more: int) -> dict[str, Json]:
        """Return the key's parts by name, and the replaced epochs."""
        return {
            "deployment": self.deployment,
            "pipeline": self.pipeline,
            "output": self.output,
            "epoch": self.epoch,
            **({"replaces": list(self.replaced)} if self.replaced else {}),
            **more,
        }


@dataclass(frozen=True, slots=True)
class Record:
    """One row. `line`: a JSON object in UTF-8 without a line end."""

    key: str
    line: bytes


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records that are sent together. `first`: the ordinal of the first one. `body`: their lines with line ends."""

    origin: Origin
    first: int
    count: int
    body: bytes

    @property
    def key(self) -> str:
        """The key of the first record."""
        return self.origin.key(self.first)

    @property
    def last(self) -> int:
        """The ordinal of the last record."""
        return self.first + self.count - 1


class JsonRecords(Iterator[Record]):
    """The records of one output in the order of the WAL: one by one, or several at once by `chunks`. Use it once.

    Iterating raises `SinkRejected` for a value that JSON can't express and for a record of more than `max_bytes`.
    """

    def __init__(self, batches: Batches, origin: Origin, max_bytes: int | None = None) -> None:
        self.origin = origin
        self._lines = _lines_of(batches, origin, max_bytes)
        self._records = self._each()

    def __next__(self) -> Record:
        return next(self._records)

    def chunks(self, count: int, size: int) -> Iterator[Chunk]:
        """Yield chunks of at most `count` records and `size` bytes; a larger record gets a chunk of its own. The chunks
        are the same each time, however the WAL is divided into batches."""
        bodies: list[bytes] = []
        first = rows = size_so_far = 0
        for lines in self._lines:
            begin = 0
            while begin < len(lines):
                more = lines.fitting(begin, count - rows, size - size_so_far) or (0 if rows else 1)
                if more:
                    bodies.append(lines.body(begin, begin + more))
                    rows, size_so_far, begin = rows + more, size_so_far + len(bodies[-1]), begin + more
                if not more or begin < len(lines) or rows == count:
                    yield Chunk(self.origin, first, rows, b"".join(bodies))
                    first, rows, size_so_far = first + rows, 0, 0
                    bodies.clear()
        if rows:
            yield Chunk(self.origin, first, rows, b"".join(bodies))

    def _each(self) -> Iterator[Record]:
        ordinal = 0
        for lines in self._lines:
            for line in lines:
                yield Record(self.origin.key(ordinal), line)
                ordinal += 1


class _Lines:
    """The lines of some rows in one buffer, each with its line end."""

    def __init__(self, lines: pa.Array) -> None:
        _, places, content = lines.buffers()
        self.ends = np.frombuffer(places, np.int32, len(lines) + 1, 4 * lines.offset)
        self._places = self.ends.data  # faster for single lookups
        self._content = memoryview(content) if content is not None else memoryview(b"")

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __iter__(self) -> Iterator[bytes]:
        """Yield the lines without their line ends."""
        return (bytes(self._content[self._places[n] : self._places[n + 1] - 1]) for n in range(len(self)))

    def body(self, begin: int, end: int) -> bytes:
        return bytes(self._content[self._places[begin] : self._places[end]])

    def fitting(self, begin: int, count: int, size: int) -> int:
        """Return how many lines from `begin` on fit into `count` lines and `size` bytes."""
        last = min(begin + count, len(self))
        return max(0, bisect_right(self._places, self._places[begin] + size, begin, last + 1) - 1 - begin)


def refused_columns(schema: pa.Schema) -> str | None:
    """Return why rows of this schema can't be records, or None."""
    if not schema.names:
        return "it has no columns"
    if ENVELOPE in schema.names:
        return f"column {ENVELOPE!r} is the record's key; rename it"
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    return f"column {twice[0]!r} is there twice, a JSON object has it once; rename one" if twice else None


def check_records(batches: Batches, origin: Origin, max_bytes: int) -> int:
    """Count the records. Raises `SinkRejected` where `JsonRecords` would; most rows need no text for that."""
    where = _require_columns(batches)
    ordinal = 0
    keys = len(_opening(origin)) + len(str(batches.rows)) + len("},}")
    names = sum(len(json.dumps(name, ensure_ascii=False).encode()) + len(":,") for name in batches.schema.names)
    for batch in small_batches(iter(batches)):
        if keys + names + sum(max_bytes_of(column, where, ordinal) for column in batch.columns) > max_bytes:
            _LineMaker(origin, where, max_bytes).lines(batch, ordinal)
        ordinal += batch.num_rows
    _require_all(batches, ordinal)
    return ordinal


def _lines_of(batches: Batches, origin: Origin, max_bytes: int | None) -> Iterator[_Lines]:
    maker = _LineMaker(origin, _require_columns(batches), max_bytes)
    ordinal = 0
    for batch in small_batches(iter(batches)):
        if batch.num_rows:
            yield maker.lines(batch, ordinal)
        ordinal += batch.num_rows
    _require_all(batches, ordinal)


@dataclass(frozen=True)
class _LineMaker:
    """Makes lines. `where`: the output's name in messages."""

    origin: Origin
    where: str
    max_bytes: int | None

    def lines(self, batch: pa.RecordBatch, first: int) -> _Lines:
        ordinals = pa.array(np.arange(first, first + batch.num_rows)).cast(pa.string())
        beginning: list[Any] = [_opening(self.origin), ordinals, "},"]
        lines = _Lines(joined_objects(batch, self.where, first, beginning, "}\n"))
        sizes = np.diff(lines.ends) - 1
        if self.max_bytes is not None and sizes.max() > self.max_bytes:
            place = int(np.argmax(sizes > self.max_bytes))
            record = f"{self.where}: record {self.origin.key(first + place)}"
            raise SinkRejected(f"{record} has {sizes[place]} bytes, max_record_bytes is {self.max_bytes}")
        return lines


def _opening(origin: Origin) -> str:
    """Return the beginning of every record, up to its ordinal."""
    envelope = json.dumps({ENVELOPE: origin.envelope()}, ensure_ascii=False, separators=(",", ":"))
    return f'{envelope[:-2]},"ordinal":'


def _require_columns(batches: Batches) -> str:
    where = f"output {batches.output}"
    if problem := refused_columns(batches.schema):
        raise SinkRejected(f"{where}: {problem}")
    return where


def _require_all(batches: Batches, rows: int) -> None:
    if rows != batches.rows:
        raise SinkRejected(f"output {batches.output}: the WAL gave {rows} rows, {batches.rows} are sealed")
