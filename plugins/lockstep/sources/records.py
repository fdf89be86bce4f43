"""The records of frozen files as Spark reads them, the malformed ones among them marked.

Spark drops, nulls or shortens a malformed row without a word unless it reads with an explicit schema in PERMISSIVE mode
into a column for the raw record. That column is filled only for the columns that a query asks for, whatever the option
columnPruning says, so whoever counts must ask for all of them: `Records.every_column` does.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from lockstep.definition.ddl import literal, quote_name
from lockstep.epoch import Json, Position
from lockstep.errors import BadRecords
from lockstep.sources._strict import BAD as BAD
from lockstep.sources._strict import WHY as WHY
from lockstep.sources._strict import Strict, has_decimals, strange_decimal, tame_json
from lockstep.sources.base import OpenSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

FILE = "_lockstep_file"  #: URI of the file that a malformed record stands in, else null
#: Not `_metadata.file_path`: Spark would build all of `_metadata` for each row, also where nobody asks for FILE.
FILE_OF_BAD = f"CASE WHEN {BAD} IS NOT NULL THEN input_file_name() END AS {FILE}"


@dataclass(frozen=True)
class Records:
    """`frame` has `columns`, and with `marked` also BAD and FILE. `reading`: how a raw record was read, if by that.
    `sound`: a job that reads every column fails at a malformed record. `confirm_bad`: to be called with these records
    where some are malformed, before that decides anything; raises where they may be good ones at another try."""

    frame: DataFrame
    columns: tuple[str, ...]
    marked: bool = False
    reading: Reading | None = None
    sound: bool = False
    confirm_bad: Callable[[Records], None] | None = None
    sizes: tuple[int, ...] = ()  #: of the files that Spark looks up by itself, where it must read to their end

    @property
    def every_column(self) -> str:
        """An SQL condition that is always true and reads every column: the optimizer must not see through it."""
        return f"size(array({', '.join(f'{quote_name(name)} IS NULL' for name in self.columns)})) >= 0"

    @property
    def no_value(self) -> str:
        """An SQL condition that has Spark read every column, and mostly looks at the first one alone."""
        return " AND ".join(f"{quote_name(name)} IS NULL" for name in self.columns)

    def good(self) -> DataFrame:
        """The records that parse, with the schema's columns."""
        if not self.marked:
            return self.frame
        return self.frame.where(f"{BAD} IS NULL AND {self.every_column}").drop(BAD, FILE, WHY)

    def bad(self) -> DataFrame:
        """The malformed ones: `file`, `record`, and `why` where the parser took it for a good one."""
        why = [f"{WHY} AS why"] if WHY in self.frame.columns else []
        return self.frame.where(f"{BAD} IS NOT NULL AND {self.every_column}").selectExpr(
            f"{FILE} AS file", f"{BAD} AS record", *why
        )


class OpenRecordSource(OpenSource):
    """A source whose records may be malformed. `on_bad_records`: "fail" or "quarantine"."""

    on_bad_records: str

    @abstractmethod
    def read_records(self, spark: SparkSession, start: Position | None, end: Position) -> Records:
        """Every record of the frozen range, with the malformed ones marked."""

    def read_sound(self, spark: SparkSession, start: Position | None, end: Position) -> Records | None:
        """Every record, unmarked and for less, by a job that fails where one is malformed; None if that can't be had.

        Only for who reads the range again by `read_records` then, which tells the records.
        """
        return None

    def read(self, spark: SparkSession, start: Position | None, end: Position) -> DataFrame:
        """The records of the frozen range that parse."""
        return self.read_records(spark, start, end).good()


@dataclass(frozen=True)
class Listing:
    """Frozen files: what is known of each, by the URI that Spark has for it, not percent-encoded."""

    files: Mapping[str, Json]

    @property
    def paths(self) -> list[str]:
        """As Spark takes them: every path is a glob pattern for it."""
        return [re.sub(r"([\\{}\[\]*?])", r"\\\1", uri) for uri in self.files]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes, of each file."""
        return tuple(file["size"] for file in self.files.values())

    @property
    def digest(self) -> str:
        """Another one for files that changed, under whatever names."""
        return hashlib.sha256(json.dumps(dict(self.files), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Reading:
    """How to read one kind of file. `schema`: DDL, or None where the files know it (Parquet)."""

    format: str
    schema: str | None
    options: Mapping[str, str]

    @property
    def marks(self) -> bool:
        return self.format in ("csv", "json")

    def read(self, spark: SparkSession, found: Listing) -> Records:
        """Exactly the records of the files, which are no Parquet; without any an empty frame with the schema."""
        names = found.paths
        if not names:
            return self._nothing(spark)
        reader = self.reader(spark, found)
        if self.format == "text":
            frame = marked_text(reader.load(names), "NOT is_valid_utf8(value)").selectExpr("*", FILE_OF_BAD)
            return Records(frame, ("value",), marked=True, sizes=found.sizes)
        self._require_whole_values(spark, names)
        frame = reader.schema(f"{self.strict.schema}, {BAD} STRING").load(names)
        columns = tuple(frame.columns)[:-1]
        # a good record for Spark, which doesn't show it
        separator = f", map('sep', {literal(self.separator)})" if self.format == "csv" else ""
        values = f"to_{self.format}(struct({', '.join(map(quote_name, columns))}){separator})"
        frame = self.strict.marked(frame, values)
        return Records(frame.selectExpr("*", FILE_OF_BAD), columns, marked=True, reading=self, sizes=found.sizes)

    def reader(self, spark: SparkSession, found: Listing) -> DataFrameReader:
        """Spark's reader of the files, with the options that no user can turn off."""
        return spark.read.format(self.format).options(**self._forced(found))

    def read_sound(self, spark: SparkSession, found: Listing) -> Records | None:
        """As `read`, with no record marked: the parser gives up at the first malformed one. Of CSV alone, where a
        column for marks has each value of each record looked up by its name; None for all else."""
        names = found.paths
        if self.format != "csv" or self.schema is None or not names:
            return None
        self._require_whole_values(spark, names)
        options = self._forced(found) | {"mode": "FAILFAST"}
        frame = self.strict.sound(spark.read.format("csv").options(**options).schema(self.strict.schema).load(names))
        return Records(frame, tuple(frame.columns), sound=True, sizes=found.sizes)

    @cached_property
    def strict(self) -> Strict:
        """What a text may be for each column."""
        return Strict(self.schema or "", self.format, self.options)

    def option(self, name: str, default: str) -> str:
        """What the options say, in whatever case."""
        return {key.lower(): value for key, value in self.options.items()}.get(name, default)

    @property
    def separator(self) -> str:
        """Of CSV's fields."""
        return self.option("sep", self.option("delimiter", ","))

    @property
    def blank_lines(self) -> bool:
        """Whether a line of blanks is a row of CSV: of one column, or of nothing between separators that are blanks.
        Spark takes each character up to U+0020 for a blank."""
        blank_separator = re.fullmatch(r"([\0- ]|\\[tbfr]|\\u0000)*", self.separator)
        return self.format == "csv" and (len(self.strict.fields) == 1 or blank_separator is not None)

    def _require_whole_values(self, spark: SparkSession, names: Sequence[str]) -> None:
        """Raise `BadRecords` for a file over which `multiLine` would lose what stands behind its first JSON value, take
        all lines behind an odd quote of CSV into one value, or change a line end in it; and for blank rows of CSV."""
        whole = self.option("multiline", "false").lower() == "true"
        if not whole and not self.blank_lines:
            return
        if not whole:
            wrong = "value <> '' AND NOT value RLIKE '[^\\\\x00-\\\\x20]'"
            what = "has a line of blanks or control characters alone, which Spark skips: put its values into quotes"
        elif self.format == "json":
            array, first = (
                "from_json(value, 'ARRAY<STRING>')",
                f"from_json(value, '{BAD} STRING', map('columnNameOfCorruptRecord', '{BAD}'))",
            )
            all = "from_json(concat('[', value, ',\"end\"]'), 'ARRAY<STRING>')"
            wrong = f"NOT coalesce(size({all}) = 2 AND {all}[1] = 'end', false)"
            wrong = f"{wrong} AND ({array} IS NOT NULL OR {first}.{BAD} IS NULL)"
            wrong = f"({wrong}) OR {strange_decimal('value', 'value')}" if has_decimals(self.schema or "") else wrong
            what = "has something behind its first JSON value, which multiLine doesn't read, or a number like 1E99999"
            what += ": cut it, or leave that away"
        else:  # of the parts between quotes every other one, from the second on, is inside of quotes
            end, sep = "regexp_extract(value, '\\r\\n|\\r|\\n', 0)", literal(self.separator.replace("\\t", "\t"))
            begins = f"(i = 0 OR startswith(part, {sep}) OR part RLIKE '^[\\r\\n]')"
            ends = f"(i + 1 = size(parts) OR endswith(part, {sep}) OR right(part, 1) IN ('\\r', '\\n'))"
            inside = f"{end} <> '\\n' AND {end} <> '' AND contains(part, {end})"
            each = f"IF(i % 2 = 1, {inside}, part <> '' AND NOT ({begins} AND {ends}))"
            quote = re.escape(self.option("quote", '"') or "\1")
            parts = f"split(value, {literal(quote)})"
            any = f"exists(transform(parts, (part, i) -> {each}), w -> w)"
            wrong = f"exists(array({parts}), parts -> size(parts) % 2 = 0 OR {any})"
            what = (
                "has an odd number of quotes, one in a value that isn't doubled, or CRLF or CR in a value and behind "
            )
            what += "lines, which multiLine changes: double the quotes in values, end lines with LF"
        files = spark.read.format("text").option("wholetext", str(whole)).load(list(names))
        files = files.selectExpr("trim(LEADING '\ufeff' FROM value) AS value")
        blank = "trim(BOTH ' \\r\\n\\t' FROM value) = ''"
        found = files.where(f"NOT {blank} AND ({wrong})" if whole else wrong)
        found = found.selectExpr("input_file_name() AS file")
        if (row := found.first()) is not None:
            raise BadRecords(f"file {path_of(row['file'])} {what}; nothing was sealed")

    def parser(self, schema: str, value: str) -> str:
        """An SQL expression of the column `value`'s text, one record, as `schema` with BAD."""
        options = {**self.options, **self._locale, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD}
        pairs = ", ".join(f"{literal(name)}, {literal(found)}" for name, found in options.items())
        value = tame_json(schema, value, pairs) if self.format == "json" else value
        return f"from_{self.format}({value}, {literal(f'{schema}, {BAD} STRING')}, map({pairs}))"

    def _nothing(self, spark: SparkSession) -> Records:
        frame = spark.createDataFrame([], self.strict.plain or "value STRING")
        return Records(frame, tuple(frame.columns))

    def _forced(self, found: Listing) -> dict[str, str]:
        """The user's options, and those that no user can turn off: they would lose rows without a word. Requests to
        read files that changed meanwhile are never equal, so that nobody answers one by what the other was told."""
        forced = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false", "lockstepFrozen": found.digest}
        if self.marks:
            forced |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD}
        if self.format == "csv":
            forced |= {"columnPruning": "false", "enforceSchema": "false"}
        return {**self.options, **self._locale, **forced}

    @property
    def _locale(self) -> dict[str, str]:
        return JSON_LOCALE if self.format == "json" else {}


#: Spark takes commas out of a decimal that is a JSON string, but in a locale whose numbers have none.
JSON_LOCALE = {"locale": "de-CH"}


def marked_text(frame: DataFrame, wrong: str, *others: str) -> DataFrame:
    """Lines with BAD and WHY where they are no text, and `others`."""
    bad = f"CASE WHEN {wrong} THEN make_valid_utf8(value) END AS {BAD}"
    return frame.selectExpr("value", bad, f"CASE WHEN {wrong} THEN 'no UTF-8' END AS {WHY}", *others)


def lines_of(uri: str, records: Iterable[str]) -> list[int | None]:
    """The line, counted from 1, on which each raw record starts in the file; None where it isn't found.

    Equal records get one line after the other. Reads the file once: only for messages about failures.
    """
    if not path_of(uri).startswith("/"):
        return [None for _ in records]  # no file: the URI says which record it is
    wanted = [(index, _squeezed(record.splitlines()[0] if record else record)) for index, record in enumerate(records)]
    found: list[int | None] = [None] * len(wanted)
    path = Path(path_of(uri))
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        if file.peek(4).startswith(b"PAR1"):  # Parquet has no lines
            return found
        for number, line in enumerate(file, start=1):
            text = _squeezed(line.decode("utf-8", "replace"))
            hit = next((pair for pair in wanted if pair[1] == text), None)
            if hit is not None:
                found[hit[0]] = number
                wanted.remove(hit)
            if not wanted:
                break
    return found


def _squeezed(text: str) -> str:
    """Without white space and quotes: Spark writes a record that it could parse with others of them than it read."""
    return "".join(text.replace('"', "").split())


def path_of(uri: str) -> str:
    """The local path that Spark's file URI means."""
    return unquote(urlsplit(uri).path) if uri.startswith("file:") else uri
