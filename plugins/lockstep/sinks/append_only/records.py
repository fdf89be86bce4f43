"""Rows as JSON records that a receiver can tell apart: each carries a key that is the same at every try.

The key is (deployment, pipeline, output, epoch, ordinal). The ordinal is the row's place in the sealed WAL, whose files
and rows never change their order. The deployment is part of it because a ledger that is made anew counts its epochs
from one again: without it a receiver would take new rows for repeats of old ones.
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
from lockstep.sinks.json_rows import joined_objects, most_bytes, small_batches
from lockstep.sinks.values import Batches

ENVELOPE = "lockstep"  #: the member of every record that holds its key


@dataclass(frozen=True)
class Origin:
    """Where the records of one output of one epoch come from. `replaced`: the epochs whose place it takes."""

    deployment: str
    pipeline: str
    output: str
    epoch: int
    replaced: tuple[int, ...] = ()

    def key(self, ordinal: int) -> str:
        """ "<deployment>/<pipeline>/<output>/<epoch>/<ordinal>"."""
        return f"{self.deployment}/{self.pipeline}/{self.output}/{self.epoch}/{ordinal}"

    def envelope(self, **more: int) -> dict[str, Json]:
        """The key's parts by name, and whose place the epoch takes."""
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
    """One row. `line`: a JSON object in UTF-8, no line end in it."""

    key: str
    line: bytes


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records that go out together. `first`: the ordinal of the first one. `body`: each with its line end."""

    origin: Origin
    first: int
    count: int
    body: bytes

    @property
    def key(self) -> str:
        """Of the first record."""
        return self.origin.key(self.first)

    @property
    def last(self) -> int:
        """The ordinal of the last record."""
        return self.first + self.count - 1


class Records(Iterator[Record]):
    """The rows of one output, in the order of the WAL: one after the other, or some at once by `chunks`; once.

    Iterating raises `SinkRejected` for a value that JSON can't say, and for a record of more than `most_bytes`.
    """

    def __init__(self, batches: Batches, origin: Origin, most_bytes: int | None = None) -> None:
        self.origin = origin
        self._lines = _lines_of(batches, origin, most_bytes)
        self._records = self._each()

    def __next__(self) -> Record:
        return next(self._records)

    def chunks(self, count: int, size: int) -> Iterator[Chunk]:
        """At most `count` records and `size` bytes; a record that is larger stands alone. However the WAL is cut into
        batches, the same each time."""
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
    """The lines of some rows, each with its end, in one buffer."""

    def __init__(self, lines: pa.Array) -> None:
        _, places, content = lines.buffers()
        self.ends = np.frombuffer(places, np.int32, len(lines) + 1, 4 * lines.offset)
        self._places = self.ends.data  # to look in it one by one
        self._content = memoryview(content) if content is not None else memoryview(b"")

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __iter__(self) -> Iterator[bytes]:
        """Without their ends."""
        return (bytes(self._content[self._places[n] : self._places[n + 1] - 1]) for n in range(len(self)))

    def body(self, begin: int, end: int) -> bytes:
        return bytes(self._content[self._places[begin] : self._places[end]])

    def fitting(self, begin: int, count: int, size: int) -> int:
        """How many from `begin` on are no more than these."""
        last = min(begin + count, len(self))
        return max(0, bisect_right(self._places, self._places[begin] + size, begin, last + 1) - 1 - begin)


def refused_columns(schema: pa.Schema) -> str | None:
    """Why rows of this schema can't be records, or None."""
    if not schema.names:
        return "it has no columns"
    if ENVELOPE in schema.names:
        return f"column {ENVELOPE!r} stands where the record's key goes; rename it"
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    return f"column {twice[0]!r} is there twice, a JSON object has it once; rename one" if twice else None


def check_records(batches: Batches, origin: Origin, longest: int) -> int:
    """How many they are. Raises `SinkRejected` for whatever `Records` would; most rows aren't made for that."""
    where = _require_columns(batches)
    ordinal = 0
    keys = len(_opening(origin)) + len(str(batches.rows)) + len("},}")
    names = sum(len(json.dumps(name, ensure_ascii=False).encode()) + len(":,") for name in batches.schema.names)
    for batch in small_batches(iter(batches)):
        if keys + names + sum(most_bytes(column, where, ordinal) for column in batch.columns) > longest:
            _Made(origin, where, longest).lines(batch, ordinal)
        ordinal += batch.num_rows
    _require_all(batches, ordinal)
    return ordinal


def _lines_of(batches: Batches, origin: Origin, longest: int | None) -> Iterator[_Lines]:
    maker = _Made(origin, _require_columns(batches), longest)
    ordinal = 0
    for batch in small_batches(iter(batches)):
        if batch.num_rows:
            yield maker.lines(batch, ordinal)
        ordinal += batch.num_rows
    _require_all(batches, ordinal)


@dataclass(frozen=True)
class _Made:
    """Makes lines. `where`: how messages name the output."""

    origin: Origin
    where: str
    longest: int | None

    def lines(self, batch: pa.RecordBatch, first: int) -> _Lines:
        ordinals = pa.array(np.arange(first, first + batch.num_rows)).cast(pa.string())
        beginning: list[Any] = [_opening(self.origin), ordinals, "},"]
        lines = _Lines(joined_objects(batch, self.where, first, beginning, "}\n"))
        self._require_short(lines, first)
        return lines

    def _require_short(self, lines: _Lines, first: int) -> None:
        sizes = np.diff(lines.ends) - 1
        if self.longest is None or sizes.max() <= self.longest:
            return
        place = int(np.argmax(sizes > self.longest))
        key = self.origin.key(first + place)
        raise SinkRejected(f"{self.where}: record {key} has {sizes[place]} bytes, max_record_bytes is {self.longest}")


def _opening(origin: Origin) -> str:
    """The same in every record, before its ordinal."""
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
