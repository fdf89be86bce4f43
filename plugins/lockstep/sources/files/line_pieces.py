"""Ranges of lines, read by Spark's Python workers, which get this module and `lockstep.errors` by value."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lockstep.errors import BadRecords, StageFailed
from lockstep.observability.redaction import list_known

#: Columns that a worker returns to Spark.
VALUE, FILE = "value", "file"
_PIECE = 32 << 20
_FILES = 256  #: small files that one task reads
_BATCH_LINES, _BATCH_BYTES = 20_000, 4 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Piece:
    """The lines that begin in the bytes [start, end) of `path`. `first`: a line is known to begin at `start`."""

    path: str
    start: int
    end: int
    first: bool


@dataclass(frozen=True)
class Header:
    """The column names, in order and ignoring case, that the first line of each CSV file must contain."""

    columns: tuple[str, ...]
    separator: str
    quote: str


def tasks_of(ranges: Iterable[tuple[str, int, int]], size: int = _PIECE) -> list[list[Piece]]:
    """Cut ranges (path, from, to) into pieces of at most `size` bytes, grouped into tasks of about that size."""
    tasks: list[list[Piece]] = []
    room = 0
    for path, starts, ends in ranges:
        for start in range(starts, ends, size):
            piece = Piece(path, start, min(start + size, ends), start == starts)
            if not tasks or piece.end - piece.start > room or len(tasks[-1]) >= _FILES:
                tasks.append([])
                room = size
            tasks[-1].append(piece)
            room -= piece.end - piece.start
    return tasks


def reader_of(
    tasks: Sequence[Sequence[Piece]], header: Header | None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow` that maps numbers of tasks to lines, each with its file."""

    def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for piece in tasks[number]:
                    lines, size = list[bytes](), 0
                    for line in _lines(piece, header):
                        lines.append(line)
                        size += len(line)
                        if len(lines) >= _BATCH_LINES or size >= _BATCH_BYTES:
                            yield _batch(lines, piece.path)
                            lines, size = [], 0
                    if lines:
                        yield _batch(lines, piece.path)

    return read


def _lines(piece: Piece, header: Header | None) -> Iterator[bytes]:
    with open(piece.path, "rb") as file:  # noqa: PTH123 - a worker's hot path
        file.seek(piece.start if piece.first else piece.start - 1)
        place = piece.start
        if not piece.first:  # the piece of the byte before reads this line
            place += len(file.readline()) - 1
        while place < piece.end:
            line = file.readline()
            if not line.endswith(b"\n"):
                raise StageFailed(f"{piece.path} is shorter than planned, or its lines end elsewhere")
            text = line[:-2] if line.endswith(b"\r\n") else line[:-1]
            if place == 0:
                text = text.removeprefix(_BOM)
                if header is not None:
                    _require_header(text, header, piece.path)
                    place += len(line)
                    continue
            place += len(line)
            yield text


def _batch(lines: list[bytes], path: str) -> pa.RecordBatch:
    try:
        values = pa.array(lines, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:  # decode like Java
        values = pa.array([line.decode("utf-8", "replace") for line in lines], pa.string())
    return pa.RecordBatch.from_arrays([values, pa.array([path] * len(lines), pa.string())], [VALUE, FILE])


def header_names(text: str, separator: str, quote: str) -> list[str]:
    """Return the column names in a CSV file's first line."""
    if len(separator) != 1:
        return [name.strip(quote) if quote else name for name in text.split(separator)]
    return next(csv.reader([text], delimiter=separator, quotechar=quote), []) if quote else text.split(separator)


def _require_header(line: bytes, header: Header, path: str) -> None:
    names = header_names(line.decode("utf-8", "replace"), header.separator, header.quote)
    if [name.lower() for name in names] != [name.lower() for name in header.columns]:
        raise BadRecords(
            f"CSV header does not conform to the schema. Header: {list_known(names, header.columns)} "
            f"Schema: {', '.join(header.columns)} CSV file: {path}; all lines of an "
            "epoch must have the schema's columns: have the writer start a new file when they change"
        )
