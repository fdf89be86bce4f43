"""The check that a text is exactly a value of its column's type; any other text makes its record malformed.

Spark's parsers guess: `10:30:00` is read as a time of today, `20260105` as a day in the year 57440, `1,50` as 150.00,
`1e400` as infinity, and digits beyond a decimal's scale are rounded. So columns of such types are read as text, JSON
numbers as a wider type, and converted by one table of expressions, `CheckedSchema._leaf`. Other types are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from lockstep.definition.ddl import Field, fields_of, literal, plain, quote_name, split, split_nested
from lockstep.errors import InvalidPipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BAD = "_lockstep_bad"  #: column with the raw record if it is malformed, else null
WHY = "_lockstep_why"  #: column with the reason why a record that Spark's parser accepted is malformed
_CONVERTED = "_lockstep_converted_"
_MAX_PRECISION = 38
_DECIMAL = re.compile(r"DECIMAL(?:\((\d+)(?:,(\d+))?\))?")
TEXT = re.compile(r"STRING(?: COLLATE \S+)?|(?:VAR)?CHAR\((\d+)\)")
_UNIT = re.compile(r"unit=(\w+)")
_UNITS = {"seconds": 1, "milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}
#: Characters that group digits, and the decimal point, by locale.
_LOCALES = {
    **dict.fromkeys(("en-US", "en-GB"), (",", ".")),
    **dict.fromkeys(("de-DE", "es-ES", "it-IT", "nl-NL", "pt-BR", "da-DK", "id-ID", "tr-TR"), (".", ",")),
    **dict.fromkeys(("fr-FR", "pl-PL", "ru-RU", "sv-SE", "cs-CZ", "fi-FI", "nb-NO"), (" \u00a0\u202f", ",")),
}
_DATE = "(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = "([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6}0*)?)?%s)?"
_ZONE = "(Z|[-+][0-9]{2}:?[0-9]{2})?"
_FLOAT = "[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?|NaN|nan|[-+]?[Ii]nf(inity)?"
_NO_TEXT = "'\ufffd'"

#: JSON numbers whose exponent makes Java write out digits for minutes; in quotes also U+2019, which Java accepts as a
#: grouping character.
_EXPONENT = "[0-9.][eE][-+]?[0-9]{5}"
_QUOTED = rf'"[-+0-9.eE\u2019]*([eE][-+]?[0-9]{{5}}|\u2019)[-+0-9.eE\u2019]*{chr(92) * 4}?"'


def _matches(pattern: str, text: str) -> str:
    """A condition that the regular expression matches all of `text`."""
    groupless = re.sub(r"\((?!\?)", "(?:", f"^({pattern})").replace("[0-9]{2}", "[0-9][0-9]")
    return f"{text} RLIKE {literal(groupless + chr(92) + 'z')}"


def _has_no_exponent(text: str) -> str:
    """A condition, faster than a regular expression, that a text which Java accepts as a number has no exponent."""
    signs = " AND ".join(f"NOT contains({text}, '{sign}')" for sign in "eExX")
    return f"({text} >= '+' AND substr({text}, -1) BETWEEN '.' AND '9' AND {signs})"


@dataclass(frozen=True)
class _Leaf:
    """The rule by which a type that isn't nested is read and checked.

    `read`: the type to read by. `convert`: SQL that makes the declared type of what was read, null if impossible.
    `fits`: a further condition on both. `converts`: `convert` isn't the identity.
    """

    read: str
    convert: Callable[[str], str] = lambda text: text
    fits: Callable[[str, str], str] | None = None
    converts: bool = False


@dataclass(frozen=True)
class CheckedSchema:
    """The schema of CSV or JSON records. `options`: the reader's. `line`: SQL of a whole JSON record, if known."""

    ddl: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    line: str = "''"

    @cached_property
    def fields(self) -> Sequence[Field]:
        return tuple(fields_of(self.ddl)) if self.ddl else ()

    @property
    def schema(self) -> str:
        """The DDL to read by. Raises `InvalidPipeline` for a type that can't be checked."""
        return ", ".join(f"{quote_name(column.name)} {self._read(column)}" for column in self.fields)

    @property
    def plain(self) -> str:
        """The declared DDL, with STRING for types that Spark's data frames lack."""
        return ", ".join(f"{quote_name(column.name)} {plain_text(column.type)}" for column in self.fields)

    def to_declared(self, row: str) -> str:
        """Return SQL that converts a struct, read by `schema` with BAD after its fields, to the declared types."""
        if not any(map(self._converts, self.fields)):
            return row
        members = "".join(
            f"{literal(column.name)}, {self._convert(column, _member(row, column))}, " for column in self.fields
        )
        return f"IF({row} IS NULL, NULL, named_struct({members}'{BAD}', {row}.{BAD}))"

    def mismatch(self, row: str) -> str:
        """Return a condition that some value of such a struct differs from its text."""
        mismatches = (self._mismatch(column, _member(row, column), None) for column in self.fields)
        return f"({row} IS NOT NULL AND ({' OR '.join(filter(None, mismatches)) or 'false'}))"

    def with_marks(self, frame: DataFrame, record: str, *columns: str) -> DataFrame:
        """Return a frame that was read by `schema`, with declared types, BAD, WHY and `columns`.

        `record`: SQL for the content of BAD where a value differs from its text.
        """
        frame = self._converted(frame).selectExpr("*", f"CASE WHEN {BAD} IS NULL THEN {self._why} END AS {WHY}")
        bad = f"CASE WHEN {WHY} IS NOT NULL THEN {record} ELSE {BAD} END AS {BAD}"
        return frame.selectExpr(*self._declared, bad, WHY, *columns)

    def failing(self, frame: DataFrame) -> DataFrame:
        """Convert a frame that was read without BAD. The job fails where a value differs from its text."""
        frame = self._converted(frame).selectExpr("*", f"{self._why} AS {WHY}")
        fails = f"CASE WHEN {WHY} IS NULL THEN true ELSE raise_error(concat('MALFORMED_RECORD: ', {WHY})) END"
        return frame.where(f"CAST({fails} AS BOOLEAN)").selectExpr(*self._declared)

    def _converted(self, frame: DataFrame) -> DataFrame:
        """Add the conversions in a projection of their own, or Spark would compute each one at every use."""
        added = [
            f"{self._convert(column, quote_name(column.name))} AS {_CONVERTED}{number}"
            for number, column in enumerate(self.fields)
            if self._converts(column)
        ]
        return frame.selectExpr("*", *added)

    @property
    def _declared(self) -> list[str]:
        return [
            f"{f'{_CONVERTED}{n}' if self._converts(column) else quote_name(column.name)} AS {quote_name(column.name)}"
            for n, column in enumerate(self.fields)
        ]

    @property
    def _why(self) -> str:
        """SQL of the reason why the first mismatching column doesn't match its type; null if all columns do."""
        cases = ""
        for number, column in enumerate(self.fields):
            converted = f"{_CONVERTED}{number}" if self._converts(column) else None
            cases += self.case_of(column, quote_name(column.name), converted)
        return f"CASE {cases}END" if cases else "CAST(NULL AS STRING)"

    def case_of(self, column: Field, read: str, converted: str | None = None) -> str:
        """Return `WHEN mismatch THEN reason ` for one column; empty if there can be no mismatch."""
        if not (mismatch := self._mismatch(column, read, converted)):
            return ""
        start = f"column {column.name}"
        reason = literal(f"{start} is no {column.type}")
        if has_decimals(column.type):
            digits = literal(f"{start} has more digits than {column.type}")
            is_text = decimal_of(column.type) and (self.format == "csv" or self._exact)
            reason = f"IF(try_cast({read} AS DOUBLE) IS NULL, {reason}, {digits})" if is_text else digits
        elif TEXT.fullmatch(column.type):
            reason = literal(f"{start} is no {column.type} or has bytes that are no text in the file's encoding")
        if column.required:
            reason = f"IF({read} IS NULL, {literal(f'{start} is NOT NULL and has no value')}, {reason})"
        return f"WHEN {mismatch} THEN {reason} "

    @property
    def _exact(self) -> bool:
        """True if Spark returns JSON numbers as written: not with `from_json`, nor reliably with `multiLine`."""
        options = {name.lower(): value.lower() for name, value in self.options.items()}
        return self.line == "''" and options.get("multiline") != "true"

    # --- recursion through nested types ---

    def _read(self, column: Field) -> str:
        match split_nested(column.type):
            case None:
                return self._leaf(column).read
            case ("ARRAY", inner) if self.format == "json":
                return f"ARRAY<{self._read(_inner(column, inner))}>"
            case ("MAP", inner) if self.format == "json" and plain(split(inner)[0]) == "STRING":
                return f"MAP<STRING, {self._read(_inner(column, inner.partition(',')[2]))}>"
            case ("STRUCT", inner) if self.format == "json":
                members = (f"{quote_name(member.name)}: {self._read(member)}" for member in fields_of(inner))
                return f"STRUCT<{', '.join(members)}>"
        raise self._unsupported(column)

    def _converts(self, column: Field) -> bool:
        match split_nested(column.type):
            case None:
                return self._leaf(column).converts
            case ("STRUCT", inner):
                return any(self._converts(member) for member in fields_of(inner))
            case ("MAP", inner):
                return self._converts(_inner(column, inner.partition(",")[2]))
            case (_, inner):
                return self._converts(_inner(column, inner))
        return False

    def _convert(self, column: Field, read: str, depth: int = 0) -> str:
        if not self._converts(column):
            return read
        v = f"v{depth}"
        match split_nested(column.type):
            case ("ARRAY", inner):
                return f"transform({read}, {v} -> {self._convert(_inner(column, inner), v, depth + 1)})"
            case ("MAP", inner):
                value = self._convert(_inner(column, inner.partition(",")[2]), v, depth + 1)
                return f"transform_values({read}, (k{depth}, {v}) -> {value})"
            case ("STRUCT", inner):
                pairs = [(member, _member(read, member)) for member in fields_of(inner)]
                members = ", ".join(
                    f"{literal(member.name)}, {self._convert(member, member_read, depth)}"
                    for member, member_read in pairs
                )
                return f"IF({read} IS NULL, NULL, named_struct({members}))"
        return self._leaf(column).convert(read)

    def _mismatch(self, column: Field, read: str, converted: str | None, depth: int = 0) -> str:
        """Return a condition, never null, that a value differs from what was read; empty if it can't."""
        v, mismatch = f"w{depth}", ""
        match split_nested(column.type):
            case None:
                leaf, value = self._leaf(column), converted or self._convert(column, read)
                checks = [f"{value} IS NOT NULL"] if leaf.converts else []
                checks += [leaf.fits(read, value)] if leaf.fits else []
                mismatch = f"({read} IS NOT NULL AND NOT coalesce({' AND '.join(checks)}, false))" if checks else ""
            case ("STRUCT", inner):
                parts = (self._mismatch(member, _member(read, member), None, depth) for member in fields_of(inner))
                any_member = " OR ".join(filter(None, parts))
                mismatch = f"({read} IS NOT NULL AND ({any_member}))" if any_member else ""
            case (kind, inner):
                any_value = self._mismatch(
                    _inner(column, inner if kind == "ARRAY" else inner.partition(",")[2]), v, None, depth + 1
                )
                values = read if kind == "ARRAY" else f"map_values({read})"
                mismatch = f"coalesce(exists({values}, {v} -> {any_value}), false)" if any_value else ""
                if kind == "MAP":
                    no_key = f"coalesce(exists(map_keys({read}), {v} -> contains({v}, {_NO_TEXT})), false)"
                    mismatch = f"({mismatch} OR {no_key})" if mismatch else no_key
        missing = f"{read} IS NULL" if column.required else ""
        return " OR ".join(filter(None, (missing, mismatch)))

    # --- single values ---

    def _leaf(self, column: Field) -> _Leaf:
        """Return what a text may be for a type that isn't nested."""
        kind, csv = column.type, self.format == "csv"
        if self.format == "parquet":  # a value has its type, and perhaps not its length
            size = (TEXT.fullmatch(kind) or [None, None])[1]
            return _Leaf(kind, fits=(lambda read, _: f"length({read}) <= {size}") if size else None)
        if (unit := _UNIT.search(column.comment)) and (kind == "TIMESTAMP" or unit[1] in _UNITS):
            return self._count(column, unit[1])
        if match := TEXT.fullmatch(kind):
            length = f" AND length({{0}}) <= {match[1]}" if match[1] else ""
            return _Leaf("STRING", fits=lambda read, _: f"NOT contains({read}, {_NO_TEXT}){length.format(read)}")
        if (decimal := decimal_of(kind)) is not None:
            return self._decimal(*decimal)
        match kind:
            case "BINARY" if csv:
                return _casting("STRING", kind, lambda read, _: f"NOT contains({read}, {_NO_TEXT})")
            case "BOOLEAN" | "SMALLINT" | "INT" | "BIGINT" | "BINARY":
                return _Leaf(kind)
            case "TINYINT":  # the JSON parser takes 128 to 255 for negative numbers
                return _Leaf("TINYINT") if csv else _casting("SMALLINT", kind)
            case "FLOAT" | "DOUBLE" if csv:
                return _Leaf(
                    "STRING",
                    lambda text: (
                        f"CASE WHEN {_has_no_exponent(text)} OR {_matches(_FLOAT, text)} "
                        f"THEN try_cast({text} AS {kind}) END"
                    ),
                    lambda text, value: (
                        f"(abs({value}) <> CAST('Infinity' AS {kind}) OR {text} RLIKE '[Ii]nf') "
                        f"AND ({value} <> 0 OR {text} RLIKE '^[-+]?[0.]+([eE]|$)')"
                    ),
                    converts=True,
                )
            case "FLOAT" | "DOUBLE":  # an infinite one may be a number that is too large
                large = f"{self.line} RLIKE '[0-9.][eE][+]?[0-9]{{2}}|[0-9]{{39}}'"
                infinite = f"{self.line} RLIKE '(?i)[-+:,\\\\[ \"]inf' AND NOT {large}"
                return _Leaf(kind, fits=lambda read, _: f"(abs({read}) <> CAST('Infinity' AS {kind}) OR {infinite})")
            case "DATE" | "TIMESTAMP" | "TIMESTAMP_NTZ":
                return self._time(column)
        raise self._unsupported(column)

    def _time(self, column: Field) -> _Leaf:
        kind = column.type
        option = {"DATE": "dateformat", "TIMESTAMP": "timestampformat"}.get(kind, "timestampntzformat")
        pattern = {name.lower(): value for name, value in self.options.items()}.get(option)
        if pattern is not None and kind == "TIMESTAMP_NTZ" and re.search("[VzOXx]", re.sub("'[^']*'", "", pattern)):
            raise InvalidPipeline(
                f"schema: column {column.name}: {option}={pattern!r} has a time zone, but {kind} has none"
            )
        if pattern is not None and "SSSSSSS" in pattern:
            raise InvalidPipeline(
                f"schema: column {column.name}: {option}={pattern!r}: {kind} has six digits of a second; read STRING"
            )
        if pattern is not None:
            return _Leaf(
                "STRING", lambda text: f"CAST(try_to_timestamp({text}, {literal(pattern)}) AS {kind})", converts=True
            )
        shape = _DATE + _CLOCK % (_ZONE if kind == "TIMESTAMP" else "")
        number, complete = "", "{0}"
        if kind == "TIMESTAMP":  # Spark accepts no zone after minutes
            complete = (
                "IF(substr({0}, 17, 1) IN ('Z', '+', '-'), concat(substr({0}, 1, 16), ':00', substr({0}, 17)), {0})"
            )
        if kind == "TIMESTAMP" and self.format == "json":
            number = " WHEN {0} RLIKE '^1[0-9]{{9}}$' THEN timestamp_seconds(CAST({0} AS BIGINT))"
        # faster than a pattern: where Spark accepts a text with these characters in place, the others are digits
        quick = "{0} >= '0001' AND locate('-', {0}) = 5 AND "
        if kind == "DATE":
            quick += "octet_length({0}) = 10 AND locate('-', {0}, 6) = 8 AND substr({0}, 10) BETWEEN '0' AND '9'"
        else:
            utc = " OR octet_length({0}) = 20 AND endswith({0}, 'Z')" if kind == "TIMESTAMP" else ""
            quick += f"(octet_length({{0}}) = 19{utc}) AND locate(':', {{0}}) = 14 AND locate(':', {{0}}, 15) = 17 "
            quick += "AND substr({0}, 19, 1) BETWEEN '0' AND '9'"

        def convert(text: str) -> str:
            cases = f"WHEN {quick.format(text)} THEN try_cast({text} AS {kind})"
            if kind != "DATE":
                cases += f" WHEN {_matches(shape, text)} THEN try_cast({complete.format(text)} AS {kind})"
            return f"CASE {cases}{number.format(text)} END"

        return _Leaf("STRING", convert, converts=True)

    def _count(self, column: Field, unit: str) -> _Leaf:
        """Read a number of units since 1970 in UTC, within the years 1 to 9999."""
        if column.type != "TIMESTAMP" or unit not in _UNITS:
            raise InvalidPipeline(
                f"schema: column {column.name}: unit={unit} requires TIMESTAMP and one of {', '.join(_UNITS)}"
            )
        parts = _UNITS[unit]
        in_range = f"{{0}} BETWEEN {-62_135_596_800 * parts:d} AND {253_402_300_800 * parts - 1:d}"
        micros = (
            f"{{0}} * {1_000_000 // parts}" if parts <= 1_000_000 else "CASE WHEN {0} % 1000 = 0 THEN {0} DIV 1000 END"
        )
        text = f"CASE WHEN {in_range} THEN timestamp_micros({micros}) END"
        return _Leaf("BIGINT", lambda read: text.format(read), converts=True)

    def _decimal(self, precision: int, scale: int) -> _Leaf:
        kind, rest = f"DECIMAL({precision},{scale})", _MAX_PRECISION - precision
        wide = f"DECIMAL({_MAX_PRECISION},{rest + scale})"
        locale = {name.lower(): value for name, value in self.options.items()}.get("locale")
        if self.format == "json" and locale is not None:
            raise InvalidPipeline(
                f"locale={locale!r} of JSON: numbers in JSON strings aren't parsed by locale; read STRING"
            )
        if self.format == "json" and not self._exact:
            same = (lambda read, decimal: f"{read} = CAST({decimal} AS {wide})") if rest else None
            return _casting(wide, kind, same)
        if locale is not None and locale not in _LOCALES:
            raise InvalidPipeline(
                f"locale={locale!r}: decimals can be parsed by {', '.join(sorted(_LOCALES))}; read STRING"
            )
        groups, point = _LOCALES.get(locale or "", ("", "."))
        integer = f"[0-9]+|[0-9]{{1,3}}([{groups}][0-9]{{3}})+" if groups else "[0-9]+"
        exact = f"[-+]?({integer})([{point}][0-9]{{0,{scale}}}0*)?|[-+]?[{point}](?=[0-9])[0-9]{{0,{scale}}}0*"
        power = "[-+]?[0-9]{1,38}([.][0-9]{0,38})?[eE][-+]?[0-9]{1,2}"

        def convert(text: str) -> str:
            number = f"translate({text}, {literal(point + groups)}, '.')" if locale else text
            value, cases = f"try_cast({number} AS {kind})", [_matches(exact, text)]
            if not locale:
                point_at = f"locate('.', {text})"
                cases.insert(
                    0, f"{point_at} > 0 AND {point_at} + {scale} >= length({text}) AND {_has_no_exponent(text)}"
                )
            if not locale:
                places = f"length(regexp_extract({text}, '[.]([0-9]*?)0*[eE]', 1))"
                exponent = f"try_cast(regexp_extract({text}, '[eE](.*)', 1) AS INT)"
                cases.append(f"{_matches(power, text)} AND {places} - {exponent} <= {scale}")
            return f"CASE WHEN ({') OR ('.join(cases)}) THEN {value} END"

        return _Leaf("STRING", convert, converts=True)

    def _unsupported(self, column: Field) -> InvalidPipeline:
        return InvalidPipeline(
            f"schema: column {column.name}: a text of {self.format} can't be checked as {column.type}; "
            "read it as STRING, and cast it in the transform"
        )


def _casting(read: str, kind: str, fits: Callable[[str, str], str] | None = None) -> _Leaf:
    return _Leaf(read, lambda text: f"try_cast({text} AS {kind})", fits, converts=True)


def plain_text(type: str) -> str:
    """Return the type with STRING in place of CHAR and VARCHAR."""
    return re.sub(r"\b(VAR)?CHAR ?\([0-9 ]+\)", "STRING", type, flags=re.IGNORECASE)


def decimal_of(type: str) -> tuple[int, int] | None:
    """Return precision and scale of a decimal type; None for other types."""
    match = _DECIMAL.fullmatch(type)
    return (int(match[1] or 10), int(match[2] or 0)) if match else None


def _inner(column: Field, type: str) -> Field:
    """Return an array's or map's element as a field, under the column's name for messages."""
    return Field(column.name, plain(type))


def _member(row: str, column: Field) -> str:
    return f"{row}.{quote_name(column.name)}"


def costly_decimal(text: str, quoted: str) -> str:
    """Return a condition that `text` has such a number outside quotes, or `quoted` inside quotes."""
    outside = rf"""regexp_replace({text}, '"[^"{chr(92) * 4}]*+({chr(92) * 4}.[^"{chr(92) * 4}]*+)*+"', '')"""
    return f"({outside} RLIKE '{_EXPONENT}' OR {quoted} RLIKE '{_QUOTED}')"


def without_costly_decimals(schema: str, text: str, options: str) -> str:
    """Return a JSON record's text, made malformed if `schema` has decimals and a number is costly."""
    names = [f"{quote_name(column.name)} STRING, " for column in fields_of(schema) if has_decimals(column.type)]
    if not names:
        return text
    # parse the decimals by name, as other texts may look like such numbers; only in lines that may contain some
    parsed = f"from_json({text}, {literal(''.join(names) + BAD + ' STRING')}, map({options}))"
    strange = f"{parsed}.{BAD} IS NOT NULL OR {costly_decimal(text, f'to_json({parsed})')}"
    may = f"contains({text}, '\u2019') OR contains({text}, '{chr(92) * 2}u') OR {text} RLIKE '[eE][-+]?[0-9]{{5}}'"
    return f"IF(IF({may}, {strange}, false), '{{', {text})"


def has_decimals(ddl: str) -> bool:
    """Return True if a type is or contains a decimal."""
    return re.search(r"\b(DECIMAL|DEC|NUMERIC)\b", ddl, re.IGNORECASE) is not None


def loses_json(text: str) -> str:
    """Return a condition that Spark's JSON parser would ignore or alter part of `text`.

    That is text after the object, half a surrogate pair written as an escape, which becomes `?`, or a repeated key.
    If the first closing brace is the last character, nothing follows the object; only other texts are parsed
    again.
    """
    closed = f"coalesce(locate('}}', {text}) = length({text}), false)"
    round_trip = f"""get(from_json(concat('[', {text}, ',"', md5({text}), '"]'), 'ARRAY<STRING>'), 1) = md5({text})"""
    pairs = r"(?i)\\\\ud[89ab][0-9a-f]{2}\\\\ud[c-f][0-9a-f]{2}"
    escaped = f"regexp_replace({text}, '{chr(92) * 8}', '')"  # two backslashes stand for one
    half_character = rf"regexp_replace({escaped}, '{pairs}', '') RLIKE '(?i)\\\\ud[89a-f]'"
    half_character = f"IF(contains({text}, '\\\\u'), {half_character}, false)"
    # IF evaluates its branches lazily, while Spark would compute the hashes of an OR first
    keys = f"array(json_object_keys({text}))"  # as a lambda's argument it is computed once
    repeated_key = f"coalesce(exists({keys}, keys -> size(keys) <> size(array_distinct(keys))), false)"
    return f"(IF({closed}, false, NOT coalesce({round_trip}, false)) OR {half_character} OR {repeated_key})"
