"""Records of frozen files as Spark reads them, with malformed ones marked.

Spark silently drops, nulls or shortens malformed rows unless it reads with an explicit schema in PERMISSIVE mode into a
column for the raw record. Spark fills that column only from the columns that a query uses, whatever the option
columnPruning says, so code that counts must use all of them: `SourceRecords.every_column` does.
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
from lockstep.sources._checked_schema import BAD as BAD
from lockstep.sources._checked_schema import WHY as WHY
from lockstep.sources._checked_schema import CheckedSchema, costly_decimal, has_decimals, without_costly_decimals
from lockstep.sources.base import OpenSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

FILE = "_lockstep_file"  #: URI of the file of a malformed record, else null
#: Not `_metadata.file_path`: Spark would build all of `_metadata` for each row, even if FILE isn't used.
FILE_OF_BAD = f"CASE WHEN {BAD} IS NOT NULL THEN input_file_name() END AS {FILE}"

#: Spark removes commas from decimals in JSON strings, except in a locale that has none in numbers.
JSON_LOCALE = {"locale": "de-CH"}


@dataclass(frozen=True)
class SourceRecords:
    """Records as a data frame of `columns`, and with `marked` also BAD and FILE.

    `reading`: how raw records were parsed, if by a `Reading`. `sound`: a job that reads every column fails at a
    malformed record. `confirm_bad`: called with these records before malformed ones have any effect; raises if they may
    be well-formed on a retry.
    """

    frame: DataFrame
    columns: tuple[str, ...]
    marked: bool = False
    reading: Reading | None = None
    sound: bool = False
    confirm_bad: Callable[[SourceRecords], None] | None = None
    sizes: tuple[int, ...] = ()  #: bytes of the files that Spark opens itself and must read to their end

    @property
    def every_column(self) -> str:
        """An SQL condition that is always true, reads every column and isn't optimized away."""
        return f"size(array({', '.join(f'{quote_name(name)} IS NULL' for name in self.columns)})) >= 0"

    @property
    def no_value(self) -> str:
        """An SQL condition that makes Spark parse every column, but usually evaluates only the first."""
        return " AND ".join(f"{quote_name(name)} IS NULL" for name in self.columns)

    def good(self) -> DataFrame:
        """Return the well-formed records, with the schema's columns."""
        if not self.marked:
            return self.frame
        return self.frame.where(f"{BAD} IS NULL AND {self.every_column}").drop(BAD, FILE, WHY)

    def bad(self) -> DataFrame:
        """Return the malformed records: `file`, `record`, and `why` if Spark's own parser accepted the record."""
        why = [f"{WHY} AS why"] if WHY in self.frame.columns else []
        return self.frame.where(f"{BAD} IS NOT NULL AND {self.every_column}").selectExpr(
            f"{FILE} AS file", f"{BAD} AS record", *why
        )


class OpenRecordSource(OpenSource):
    """A source with records that may be malformed. `on_bad_records`: "fail" or "quarantine"."""

    on_bad_records: str

    @abstractmethod
    def read_records(self, spark: SparkSession, start: Position | None, end: Position) -> SourceRecords:
        """Return every record of the frozen range, with malformed ones marked."""

    def read_sound(self, spark: SparkSession, start: Position | None, end: Position) -> SourceRecords | None:
        """Return every record, unmarked, for a job that fails at a malformed record; None if unsupported.

        This is cheaper. After such a failure the caller reads the range again with `read_records`, which names the
        records.
        """
        return None

    def read(self, spark: SparkSession, start: Position | None, end: Position) -> DataFrame:
        """Return the well-formed records of the frozen range."""
        return self.read_records(spark, start, end).good()


@dataclass(frozen=True)
class FrozenFiles:
    """Frozen files by the URI that Spark uses, not percent-encoded."""

    files: Mapping[str, Json]

    @property
    def paths(self) -> list[str]:
        """Paths for Spark's readers, which interpret every path as a glob pattern."""
        return [re.sub(r"([\\{}\[\]*?])", r"\\\1", uri) for uri in self.files]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of each file in bytes."""
        return tuple(file["size"] for file in self.files.values())

    @property
    def digest(self) -> str:
        """A digest that changes when any of the files changes."""
        return hashlib.sha256(json.dumps(dict(self.files), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Reading:
    """Settings for reading files of one format. `schema`: DDL; None if the files contain it (Parquet)."""

    format: str
    schema: str | None
    options: Mapping[str, str]

    @property
    def marks(self) -> bool:
        return self.format in ("csv", "json")

    def read(self, spark: SparkSession, listing: FrozenFiles) -> SourceRecords:
        """Return exactly the records of files that aren't Parquet; without files an empty frame with the schema."""
        names = listing.paths
        if not names:
            return self._nothing(spark)
        reader = self.reader(spark, listing)
        if self.format == "text":
            frame = marked_text(reader.load(names), "NOT is_valid_utf8(value)").selectExpr("*", FILE_OF_BAD)
            return SourceRecords(frame, ("value",), marked=True, sizes=listing.sizes)
        self._require_whole_values(spark, names)
        frame = reader.schema(f"{self.checked_schema.schema}, {BAD} STRING").load(names)
        columns = tuple(frame.columns)[:-1]
        # a good record for Spark, which doesn't show it
        separator = f", map('sep', {literal(self.separator)})" if self.format == "csv" else ""
        values = f"to_{self.format}(struct({', '.join(map(quote_name, columns))}){separator})"
        frame = self.checked_schema.with_marks(frame, values)
        return SourceRecords(
            frame.selectExpr("*", FILE_OF_BAD), columns, marked=True, reading=self, sizes=listing.sizes
        )

    def reader(self, spark: SparkSession, listing: FrozenFiles) -> DataFrameReader:
        """Return Spark's reader of the files, with the options that no user can turn off."""
        return spark.read.format(self.format).options(**self._forced(listing))

    def read_sound(self, spark: SparkSession, listing: FrozenFiles) -> SourceRecords | None:
        """Return unmarked CSV records, read in FAILFAST mode, which fails at the first malformed one; None for other
        formats.

        For CSV this is faster, because a column for raw records makes Spark look up each value of each record by name.
        """
        names = listing.paths
        if self.format != "csv" or self.schema is None or not names:
            return None
        self._require_whole_values(spark, names)
        options = self._forced(listing) | {"mode": "FAILFAST"}
        frame = self.checked_schema.failing(
            spark.read.format("csv").options(**options).schema(self.checked_schema.schema).load(names)
        )
        return SourceRecords(frame, tuple(frame.columns), sound=True, sizes=listing.sizes)

    @cached_property
    def checked_schema(self) -> CheckedSchema:
        """The check of each column's text."""
        return CheckedSchema(self.schema or "", self.format, self.options)

    def option(self, name: str, default: str) -> str:
        """Return an option's value; names are case-insensitive."""
        return {key.lower(): value for key, value in self.options.items()}.get(name, default)

    @property
    def separator(self) -> str:
        """The separator of CSV fields."""
        return self.option("sep", self.option("delimiter", ","))

    @property
    def blank_lines(self) -> bool:
        """True if a blank line can be a CSV row: with a single column, or with a blank separator.

        Spark treats every character up to U+0020 as blank.
        """
        blank_separator = re.fullmatch(r"([\0- ]|\\[tbfr]|\\u0000)*", self.separator)
        return self.format == "csv" and (len(self.checked_schema.fields) == 1 or blank_separator is not None)

    def _require_whole_values(self, spark: SparkSession, names: Sequence[str]) -> None:
        """Raise `BadRecords` for files with rows that Spark's parser would lose or alter silently.

        With `multiLine` these are: text after the first JSON value, an odd number of CSV quotes, and line ends inside
        CSV values that would be changed. Without it: blank rows of CSV.
        """
        multi_line = self.option("multiline", "false").lower() == "true"
        if not multi_line and not self.blank_lines:
            return
        if not multi_line:
            wrong = "value <> '' AND NOT value RLIKE '[^\\\\x00-\\\\x20]'"
            what = "has a line of blanks or control characters alone, which Spark skips: quote its values"
        elif self.format == "json":
            array, first = (
                "from_json(value, 'ARRAY<STRING>')",
                f"from_json(value, '{BAD} STRING', map('columnNameOfCorruptRecord', '{BAD}'))",
            )
            closed_array = "from_json(concat('[', value, ',\"end\"]'), 'ARRAY<STRING>')"
            wrong = f"NOT coalesce(size({closed_array}) = 2 AND {closed_array}[1] = 'end', false)"
            wrong = f"{wrong} AND ({array} IS NOT NULL OR {first}.{BAD} IS NULL)"
            wrong = f"({wrong}) OR {costly_decimal('value', 'value')}" if has_decimals(self.schema or "") else wrong
            what = "has text after its first JSON value, which multiLine doesn't read, or a number like 1E99999"
            what += ": remove it, or don't set multiLine"
        else:  # parts with odd indexes, from 0, are inside quotes
            end, sep = "regexp_extract(value, '\\r\\n|\\r|\\n', 0)", literal(self.separator.replace("\\t", "\t"))
            begins = f"(i = 0 OR startswith(part, {sep}) OR part RLIKE '^[\\r\\n]')"
            ends = f"(i + 1 = size(parts) OR endswith(part, {sep}) OR right(part, 1) IN ('\\r', '\\n'))"
            inside = f"{end} <> '\\n' AND {end} <> '' AND contains(part, {end})"
            faulty_part = f"IF(i % 2 = 1, {inside}, part <> '' AND NOT ({begins} AND {ends}))"
            quote = re.escape(self.option("quote", '"') or "\1")
            parts = f"split(value, {literal(quote)})"
            any = f"exists(transform(parts, (part, i) -> {faulty_part}), w -> w)"
            wrong = f"exists(array({parts}), parts -> size(parts) % 2 = 0 OR {any})"
            what = "has an odd number of quotes, one in a value that isn't doubled, or CRLF or CR in a value and after "
            what += "lines, which multiLine changes: double the quotes in values, end lines with LF"
        files = spark.read.format("text").option("wholetext", str(multi_line)).load(list(names))
        files = files.selectExpr("trim(LEADING '\ufeff' FROM value) AS value")
        blank = "trim(BOTH ' \\r\\n\\t' FROM value) = ''"
        faulty = files.where(f"NOT {blank} AND ({wrong})" if multi_line else wrong)
        faulty = faulty.selectExpr("input_file_name() AS file")
        if (row := faulty.first()) is not None:
            raise BadRecords(f"file {path_of(row['file'])} {what}; nothing was sealed")

    def parser(self, schema: str, value: str) -> str:
        """Return an SQL expression that parses the text column `value` as one record of `schema` with BAD."""
        options = {**self.options, **self._locale, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD}
        pairs = ", ".join(f"{literal(name)}, {literal(option)}" for name, option in options.items())
        value = without_costly_decimals(schema, value, pairs) if self.format == "json" else value
        return f"from_{self.format}({value}, {literal(f'{schema}, {BAD} STRING')}, map({pairs}))"

    def _nothing(self, spark: SparkSession) -> SourceRecords:
        frame = spark.createDataFrame([], self.checked_schema.plain or "value STRING")
        return SourceRecords(frame, tuple(frame.columns))

    def _forced(self, listing: FrozenFiles) -> dict[str, str]:
        """Return the user's options with the options that prevent silent loss of rows.

        `lockstepFrozen` differs when files change, so that Spark never answers from a cached plan of the earlier files.
        """
        forced = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false", "lockstepFrozen": listing.digest}
        if self.marks:
            forced |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD}
        if self.format == "csv":
            forced |= {"columnPruning": "false", "enforceSchema": "false"}
        return {**self.options, **self._locale, **forced}

    @property
    def _locale(self) -> dict[str, str]:
        return JSON_LOCALE if self.format == "json" else {}


def marked_text(frame: DataFrame, wrong: str, *columns: str) -> DataFrame:
    """Return the lines with BAD and WHY where they are no valid text, and `columns`."""
    bad = f"CASE WHEN {wrong} THEN make_valid_utf8(value) END AS {BAD}"
    return frame.selectExpr("value", bad, f"CASE WHEN {wrong} THEN 'no UTF-8' END AS {WHY}", *columns)


def lines_of(uri: str, records: Iterable[str]) -> list[int | None]:
    """Return the line number, from 1, at which each raw record starts in the file; None if it isn't found.

    Equal records get successive lines. Reads the file once; only used for error messages.
    """
    if not path_of(uri).startswith("/"):
        return [None for _ in records]  # not a local file: the URI names the record
    pending = [(index, _squeezed(record.splitlines()[0] if record else record)) for index, record in enumerate(records)]
    numbers: list[int | None] = [None] * len(pending)
    path = Path(path_of(uri))
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        if file.peek(4).startswith(b"PAR1"):  # Parquet has no lines
            return numbers
        for number, line in enumerate(file, start=1):
            text = _squeezed(line.decode("utf-8", "replace"))
            match = next((pair for pair in pending if pair[1] == text), None)
            if match is not None:
                numbers[match[0]] = number
                pending.remove(match)
            if not pending:
                break
    return numbers


def _squeezed(text: str) -> str:
    """Return the text without white space and quotes, which Spark may change when it writes a record back."""
    return "".join(text.replace('"', "").split())


def path_of(uri: str) -> str:
    """Return the local path of Spark's file URI; other URIs are returned unchanged."""
    return unquote(urlsplit(uri).path) if uri.startswith("file:") else uri
