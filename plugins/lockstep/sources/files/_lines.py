"""Ranges of lines as records: Python workers read the bytes, Spark's CSV and JSON parsers the lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lockstep.definition.ddl import quote_name
from lockstep.errors import InvalidPipeline
from lockstep.sources._checked_schema import BAD, WHY, loses_json
from lockstep.sources.files.frozen import FileRange
from lockstep.sources.files.line_pieces import FILE as FILE_OF_LINE
from lockstep.sources.files.line_pieces import VALUE, Header, reader_of, tasks_of
from lockstep.sources.records import FILE, FrozenFiles, Reading, SourceRecords, marked_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LINE_FORMATS = ("csv", "json", "text")
#: Options, in lower case, with which a record may not be a line of UTF-8 that ends with "\n".
_NOT_LINES = frozenset({"multiline", "linesep", "wholetext", "encoding", "charset", "compression"})
_ROW, _LINE, _PATH = "_lockstep_row", "_lockstep_line", "_lockstep_path"


def require_lines(where: str, reading: Reading) -> None:
    """Raise `InvalidPipeline` unless every record of the format is one line."""
    if reading.format not in LINE_FORMATS:
        raise InvalidPipeline(f"source {where!r}: grow requires a format of lines: {', '.join(LINE_FORMATS)}")
    if unsupported := sorted(name for name in reading.options if name.lower() in _NOT_LINES):
        raise InvalidPipeline(
            f"source {where!r}: options {unsupported} aren't supported: a growing file is read by lines of UTF-8 text"
        )


def has_header(reading: Reading) -> bool:
    """Return True if a file's first line names the columns."""
    return reading.format == "csv" and reading.option("header", "false").lower() == "true"


def read_ranges(spark: SparkSession, reading: Reading, ranges: Sequence[FileRange]) -> SourceRecords:
    """Read exactly the records of the ranges, with malformed ones marked as by `Reading.read`."""
    no_records = reading.read(spark, FrozenFiles({}))
    if not ranges:
        return no_records
    lines = _lines(spark, reading, no_records.columns, ranges)
    if not reading.marks:
        texts = marked_text(lines, f"contains({VALUE}, '\ufffd')", FILE_OF_LINE)
        frame = texts.selectExpr(VALUE, BAD, WHY, f"CASE WHEN {BAD} IS NOT NULL THEN {FILE_OF_LINE} END AS {FILE}")
        return SourceRecords(frame, no_records.columns, marked=True)
    checked_schema = replace(reading.checked_schema, line=_LINE)
    record = f"{reading.parser(checked_schema.schema, VALUE)} AS {_ROW}"
    blanks = "\\r" if reading.format == "csv" and reading.blank_lines else " \\t\\r"
    parsed = lines.where(f"trim(BOTH '{blanks}' FROM {VALUE}) <> ''").selectExpr(
        record, f"{VALUE} AS {_LINE}", f"{FILE_OF_LINE} AS {_PATH}"
    )
    frame = checked_schema.with_marks(parsed.selectExpr(f"{_ROW}.*", _LINE, _PATH), _LINE, _LINE, _PATH)
    if reading.format == "json":  # the parser ignores text after the first object
        more = f"{BAD} IS NULL AND {loses_json(_LINE)}"
        columns = (quote_name(name) for name in no_records.columns)
        frame = frame.selectExpr(
            *columns,
            f"IF({more}, {_LINE}, {BAD}) AS {BAD}",
            f"IF({more}, 'more than one JSON value, or a repeated key', {WHY}) AS {WHY}",
            _LINE,
            _PATH,
        )
    columns = (quote_name(name) for name in no_records.columns)
    bad = (f"IF({BAD} IS NULL, NULL, {_LINE}) AS {BAD}", WHY, f"IF({BAD} IS NULL, NULL, {_PATH}) AS {FILE}")
    frame = frame.selectExpr(*columns, *bad)
    return SourceRecords(frame, no_records.columns, marked=True, reading=reading)


def _lines(spark: SparkSession, reading: Reading, columns: tuple[str, ...], ranges: Sequence[FileRange]) -> DataFrame:
    tasks = tasks_of((file_range.path, file_range.starts, file_range.ends) for file_range in ranges)
    header = None
    if has_header(reading):
        header = Header(columns, reading.separator.replace("\\t", "\t"), reading.option("quote", '"'))
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    return numbers.mapInArrow(reader_of(tasks, header), f"{VALUE} STRING, {FILE_OF_LINE} STRING")
