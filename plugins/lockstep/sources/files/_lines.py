"""Ranges of lines as records: Python workers read the bytes, Spark's own CSV and JSON parsers what stands in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lockstep.ddl import literal
from lockstep.errors import InvalidPipeline
from lockstep.sources.files._growth import FrozenRange
from lockstep.sources.files.line_pieces import FILE as FILE_OF_LINE
from lockstep.sources.files.line_pieces import VALUE, Header, reader_of, tasks_of
from lockstep.sources.records import BAD, FILE, Listing, Reading, Records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LINE_FORMATS = ("csv", "json", "text")
#: Options under which a record isn't a line that ends with "\n" in UTF-8, in small letters; others have a default.
_NOT_LINES = frozenset({"multiline", "linesep", "wholetext", "encoding", "charset", "compression"})
_ROW, _LINE, _PATH = "_lockstep_row", "_lockstep_line", "_lockstep_path"


def require_lines(where: str, reading: Reading) -> None:
    """Raise `InvalidPipeline` unless every record of the format is one line."""
    if reading.format not in LINE_FORMATS:
        raise InvalidPipeline(f"source {where!r}: only files of lines can grow: {', '.join(LINE_FORMATS)}")
    if taken := sorted(name for name in reading.options if name.lower() in _NOT_LINES):
        raise InvalidPipeline(f"source {where!r}: options {taken}: a growing file is read by lines of UTF-8 text")


def has_header(reading: Reading) -> bool:
    """Whether a file's first line names the columns."""
    return reading.format == "csv" and _small(reading.options).get("header", "false").lower() == "true"


def read_ranges(spark: SparkSession, reading: Reading, ranges: Sequence[FrozenRange]) -> Records:
    """Exactly the records of the ranges, the malformed ones marked as `Reading.read` marks them."""
    nothing = reading.read(spark, Listing({}))
    if not ranges:
        return nothing
    lines = _lines(spark, reading, nothing.columns, ranges)
    if not reading.marks:
        return Records(lines.select(VALUE), nothing.columns)
    parser = reading.parser(reading.decimals.schema, VALUE)
    record = f"{parser} AS {_ROW}"
    parsed = lines.where(_is_record(reading)).selectExpr(record, f"{VALUE} AS {_LINE}", f"{FILE_OF_LINE} AS {_PATH}")
    frame = parsed.selectExpr(f"{_ROW}.*", _LINE, _PATH)
    if reading.decimals.wide:
        frame = reading.decimals.marked(frame, _LINE, _LINE, _PATH)
    frame = frame.selectExpr("*", f"CASE WHEN {BAD} IS NOT NULL THEN {_PATH} END AS {FILE}").drop(_LINE, _PATH)
    return Records(frame, nothing.columns, marked=True, reading=reading)


def _lines(spark: SparkSession, reading: Reading, columns: tuple[str, ...], ranges: Sequence[FrozenRange]) -> DataFrame:
    tasks = tasks_of((one.path, one.starts, one.ends) for one in ranges)
    options = _small(reading.options)
    header = None
    if has_header(reading):
        separator = options.get("sep", options.get("delimiter", ","))
        header = Header(columns, separator.replace("\\t", "\t"), options.get("quote", '"'))
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    return numbers.mapInArrow(reader_of(tasks, header), f"{VALUE} STRING, {FILE_OF_LINE} STRING")


def _is_record(reading: Reading) -> str:
    """Spark's file readers pass over blank lines, and comments where the options name their sign."""
    comment = _small(reading.options).get("comment") if reading.format == "csv" else None
    blank = f"trim(BOTH ' \\t\\r' FROM {VALUE}) <> ''"
    return f"{blank} AND NOT startswith({VALUE}, {literal(comment)})" if comment else blank


def _small(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}
