"""What a text may be for each type of a schema: where it is anything else, its record is malformed.

Spark's parsers guess: `10:30:00` is a moment of today, `20260105` a day of the year 57440, `1,50` is 150.00, `1e400` is
infinite, digits beyond a decimal's scale are rounded. So columns of such types are read as text, of JSON's numbers as a
wider type, and converted by one table of expressions, `_leaf`. What it has no row for is refused.
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

BAD = "_lockstep_bad"  #: the raw record where it is malformed, else null
WHY = "_lockstep_why"  #: of a record that the parser takes for a good one: what is wrong with it
_CONVERTED = "_lockstep_converted_"
_MOST = 38
_DECIMAL = re.compile(r"DECIMAL(?:\((\d+)(?:,(\d+))?\))?")
_TEXT = re.compile(r"STRING(?: COLLATE \S+)?|(?:VAR)?CHAR\((\d+)\)")
_UNIT = re.compile(r"unit=(\w+)")
_UNITS = {"seconds": 1, "milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}
#: The signs that group digits, and the one before a fraction.
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


def _whole(pattern: str, text: str) -> str:
    groupless = re.sub(r"\((?!\?)", "(?:", f"^({pattern})").replace("[0-9]{2}", "[0-9][0-9]")
    return f"{text} RLIKE {literal(groupless + chr(92) + 'z')}"


def _ends(text: str) -> str:
    """A condition, quicker than a pattern: a text that Java takes for a number is one, and has no exponent."""
    signs = " AND ".join(f"NOT contains({text}, '{sign}')" for sign in "eExX")
    return f"({text} >= '+' AND substr({text}, -1) BETWEEN '.' AND '9' AND {signs})"


@dataclass(frozen=True)
class _Leaf:
    """`read`: the type to read by. `convert`: of what was read, as it is declared, null where it can't be. `fits`: of
    both, a condition besides that."""

    read: str
    convert: Callable[[str], str] = lambda text: text
    fits: Callable[[str, str], str] | None = None
    converts: bool = False


@dataclass(frozen=True)
class Strict:
    """A schema of CSV or JSON records. `options`: the reader's. `line`: SQL of a whole JSON record, if there is one."""

    ddl: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    line: str = "''"

    @cached_property
    def fields(self) -> Sequence[Field]:
        return tuple(fields_of(self.ddl)) if self.ddl else ()

    @property
    def schema(self) -> str:
        """DDL to read by. Raises `InvalidPipeline` for a type whose values can't be checked."""
        return ", ".join(f"{quote_name(one.name)} {self._read(one)}" for one in self.fields)

    @property
    def plain(self) -> str:
        """DDL as it is declared, with what Spark's frames have no types for as text."""
        return ", ".join(f"{quote_name(one.name)} {plain_text(one.type)}" for one in self.fields)

    def fitted(self, row: str) -> str:
        """A struct that was read by `schema`, with BAD behind its fields, as it is declared."""
        if not any(map(self._converts, self.fields)):
            return row
        members = "".join(f"{literal(one.name)}, {self._convert(one, _member(row, one))}, " for one in self.fields)
        return f"IF({row} IS NULL, NULL, named_struct({members}'{BAD}', {row}.{BAD}))"

    def changed(self, row: str) -> str:
        """A condition: some value of such a struct isn't what the text says."""
        wrong = (self._wrong(one, _member(row, one), None) for one in self.fields)
        return f"({row} IS NOT NULL AND ({' OR '.join(one for one in wrong if one) or 'false'}))"

    def marked(self, frame: DataFrame, record: str, *others: str) -> DataFrame:
        """What was read by `schema`, with its columns as they are declared, BAD, WHY, and `others`.

        `record`: an SQL expression of what BAD gets where a value isn't what the text says.
        """
        frame = self._converted(frame).selectExpr("*", f"CASE WHEN {BAD} IS NULL THEN {self._why} END AS {WHY}")
        bad = f"CASE WHEN {WHY} IS NOT NULL THEN {record} ELSE {BAD} END AS {BAD}"
        return frame.selectExpr(*self._declared, bad, WHY, *others)

    def sound(self, frame: DataFrame) -> DataFrame:
        """The same of what was read without BAD, by a job that fails where a value isn't what the text says."""
        frame = self._converted(frame).selectExpr("*", f"{self._why} AS {WHY}")
        fails = f"CASE WHEN {WHY} IS NULL THEN true ELSE raise_error(concat('MALFORMED_RECORD: ', {WHY})) END"
        return frame.where(f"CAST({fails} AS BOOLEAN)").selectExpr(*self._declared)

    def _converted(self, frame: DataFrame) -> DataFrame:
        """Each conversion once: Spark computes it again for each use, unless that is in another projection."""
        added = [
            f"{self._convert(one, quote_name(one.name))} AS {_CONVERTED}{number}"
            for number, one in enumerate(self.fields)
            if self._converts(one)
        ]
        return frame.selectExpr("*", *added)

    @property
    def _declared(self) -> list[str]:
        return [
            f"{f'{_CONVERTED}{number}' if self._converts(one) else quote_name(one.name)} AS {quote_name(one.name)}"
            for number, one in enumerate(self.fields)
        ]

    @property
    def _why(self) -> str:
        """The first column of which a value isn't what its type would make of it, in words; null if there is none."""
        cases = ""
        for number, one in enumerate(self.fields):
            converted = f"{_CONVERTED}{number}" if self._converts(one) else None
            cases += self.case_of(one, quote_name(one.name), converted)
        return f"CASE {cases}END" if cases else "CAST(NULL AS STRING)"

    def case_of(self, one: Field, read: str, converted: str | None = None) -> str:
        """WHEN a value isn't what its type would make of it THEN that in words; empty where every one is."""
        wrong = self._wrong(one, read, converted)
        return f"WHEN {wrong} THEN {self._reason(one, read, converted)} " if wrong else ""

    def _reason(self, one: Field, read: str, converted: str | None) -> str:
        no = literal(f"column {one.name} is no {one.type}")
        if has_decimals(one.type):
            digits = literal(f"column {one.name} has more digits than {one.type}")
            text = f"IF(try_cast({read} AS DOUBLE) IS NULL, {no}, {digits})"
            no = text if _DECIMAL.fullmatch(one.type) and (self.format == "csv" or self._exact) else digits
        elif _TEXT.fullmatch(one.type):
            no = literal(f"column {one.name} is no {one.type} or has bytes that are no text in the file's encoding")
        null = literal(f"column {one.name} is NOT NULL and has no value")
        return f"IF({read} IS NULL, {null}, {no})" if one.required else no

    @property
    def _exact(self) -> bool:
        """Whether Spark gives JSON numbers as written: `from_json` doesn't, nor `multiLine` of a compressed file."""
        options = {name.lower(): value.lower() for name, value in self.options.items()}
        return self.line == "''" and options.get("multiline") != "true"

    # --- by recursion through JSON's nested types ---

    def _read(self, one: Field) -> str:
        match split_nested(one.type):
            case None:
                return self._leaf(one).read
            case ("ARRAY", inside) if self.format == "json":
                return f"ARRAY<{self._read(_inner(one, inside))}>"
            case ("MAP", inside) if self.format == "json" and plain(split(inside)[0]) == "STRING":
                return f"MAP<STRING, {self._read(_inner(one, inside.partition(',')[2]))}>"
            case ("STRUCT", inside) if self.format == "json":
                members = (f"{quote_name(part.name)}: {self._read(part)}" for part in fields_of(inside))
                return f"STRUCT<{', '.join(members)}>"
        raise self._refused(one)

    def _converts(self, one: Field) -> bool:
        match split_nested(one.type):
            case None:
                return self._leaf(one).converts
            case ("STRUCT", inside):
                return any(self._converts(part) for part in fields_of(inside))
            case ("MAP", inside):
                return self._converts(_inner(one, inside.partition(",")[2]))
            case (_, inside):
                return self._converts(_inner(one, inside))
        return False

    def _convert(self, one: Field, read: str, depth: int = 0) -> str:
        if not self._converts(one):
            return read
        v = f"v{depth}"
        match split_nested(one.type):
            case ("ARRAY", inside):
                return f"transform({read}, {v} -> {self._convert(_inner(one, inside), v, depth + 1)})"
            case ("MAP", inside):
                value = self._convert(_inner(one, inside.partition(",")[2]), v, depth + 1)
                return f"transform_values({read}, (k{depth}, {v}) -> {value})"
            case ("STRUCT", inside):
                parts = [(part, _member(read, part)) for part in fields_of(inside)]
                members = ", ".join(f"{literal(part.name)}, {self._convert(part, at, depth)}" for part, at in parts)
                return f"IF({read} IS NULL, NULL, named_struct({members}))"
        return self._leaf(one).convert(read)

    def _wrong(self, one: Field, read: str, converted: str | None, depth: int = 0) -> str:
        """A condition, never null: a value isn't what was read; empty where none can be."""
        v, wrong = f"w{depth}", ""
        match split_nested(one.type):
            case None:
                leaf, made = self._leaf(one), converted or self._convert(one, read)
                checks = [f"{made} IS NOT NULL"] if leaf.converts else []
                checks += [leaf.fits(read, made)] if leaf.fits else []
                wrong = f"({read} IS NOT NULL AND NOT coalesce({' AND '.join(checks)}, false))" if checks else ""
            case ("STRUCT", inside):
                parts = (self._wrong(part, _member(read, part), None, depth) for part in fields_of(inside))
                either = " OR ".join(part for part in parts if part)
                wrong = f"({read} IS NOT NULL AND ({either}))" if either else ""
            case (kind, inside):
                each = self._wrong(
                    _inner(one, inside if kind == "ARRAY" else inside.partition(",")[2]), v, None, depth + 1
                )
                values = read if kind == "ARRAY" else f"map_values({read})"
                wrong = f"coalesce(exists({values}, {v} -> {each}), false)" if each else ""
                if kind == "MAP":
                    no_key = f"coalesce(exists(map_keys({read}), {v} -> contains({v}, {_NO_TEXT})), false)"
                    wrong = f"({wrong} OR {no_key})" if wrong else no_key
        missing = f"{read} IS NULL" if one.required else ""
        return " OR ".join(part for part in (missing, wrong) if part)

    # --- of one value ---

    def _leaf(self, one: Field) -> _Leaf:
        """What a text may be of each type that isn't nested."""
        kind, csv = one.type, self.format == "csv"
        if self.format == "parquet":  # a value has its type, and perhaps not its length
            size = (_TEXT.fullmatch(kind) or [None, None])[1]
            return _Leaf(kind, fits=(lambda read, _: f"length({read}) <= {size}") if size else None)
        if (unit := _UNIT.search(one.comment)) and (kind == "TIMESTAMP" or unit[1] in _UNITS):
            return self._number_of(one, unit[1])
        if found := _TEXT.fullmatch(kind):
            length = f" AND length({{0}}) <= {found[1]}" if found[1] else ""
            return _Leaf("STRING", fits=lambda read, _: f"NOT contains({read}, {_NO_TEXT}){length.format(read)}")
        if found := _DECIMAL.fullmatch(kind):
            return self._decimal(int(found[1] or 10), int(found[2] or 0))
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
                        f"CASE WHEN {_ends(text)} OR {_whole(_FLOAT, text)} THEN try_cast({text} AS {kind}) END"
                    ),
                    lambda text, made: (
                        f"(abs({made}) <> CAST('Infinity' AS {kind}) OR {text} RLIKE '[Ii]nf') "
                        f"AND ({made} <> 0 OR {text} RLIKE '^[-+]?[0.]+([eE]|$)')"
                    ),
                    converts=True,
                )
            case "FLOAT" | "DOUBLE":  # an infinite one may be a number that is too large
                large = f"{self.line} RLIKE '[0-9.][eE][+]?[0-9]{{2}}|[0-9]{{39}}'"
                said = f"{self.line} RLIKE '(?i)[-+:,\\\\[ \"]inf' AND NOT {large}"
                return _Leaf(kind, fits=lambda read, _: f"(abs({read}) <> CAST('Infinity' AS {kind}) OR {said})")
            case "DATE" | "TIMESTAMP" | "TIMESTAMP_NTZ":
                return self._time(one)
        raise self._refused(one)

    def _time(self, one: Field) -> _Leaf:
        kind = one.type
        option = {"DATE": "dateformat", "TIMESTAMP": "timestampformat"}.get(kind, "timestampntzformat")
        said = {name.lower(): value for name, value in self.options.items()}.get(option)
        if said is not None and kind == "TIMESTAMP_NTZ" and re.search("[VzOXx]", re.sub("'[^']*'", "", said)):
            raise InvalidPipeline(f"schema: column {one.name}: {option}={said!r} has a time zone, and {kind} has none")
        if said is not None and "SSSSSSS" in said:
            raise InvalidPipeline(
                f"schema: column {one.name}: {option}={said!r}: {kind} holds six digits of a second; read STRING"
            )
        if said is not None:
            return _Leaf(
                "STRING", lambda text: f"CAST(try_to_timestamp({text}, {literal(said)}) AS {kind})", converts=True
            )
        shape = _DATE + _CLOCK % (_ZONE if kind == "TIMESTAMP" else "")
        number, whole = "", "{0}"
        if kind == "TIMESTAMP":  # Spark takes no zone behind minutes
            whole = "IF(substr({0}, 17, 1) IN ('Z', '+', '-'), concat(substr({0}, 1, 16), ':00', substr({0}, 17)), {0})"
        if kind == "TIMESTAMP" and self.format == "json":
            number = " WHEN {0} RLIKE '^1[0-9]{{9}}$' THEN timestamp_seconds(CAST({0} AS BIGINT))"
        # quicker than a pattern: where Spark takes a text and these signs stand there, all else is digits
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
                cases += f" WHEN {_whole(shape, text)} THEN try_cast({whole.format(text)} AS {kind})"
            return f"CASE {cases}{number.format(text)} END"

        return _Leaf("STRING", convert, converts=True)

    def _number_of(self, one: Field, unit: str) -> _Leaf:
        """A number that counts from 1970 in UTC, of the years 1 to 9999."""
        if one.type != "TIMESTAMP" or unit not in _UNITS:
            raise InvalidPipeline(
                f"schema: column {one.name}: unit={unit} goes with TIMESTAMP, and is one of {', '.join(_UNITS)}"
            )
        parts = _UNITS[unit]
        within = f"{{0}} BETWEEN {-62_135_596_800 * parts:d} AND {253_402_300_800 * parts - 1:d}"
        micros = (
            f"{{0}} * {1_000_000 // parts}" if parts <= 1_000_000 else "CASE WHEN {0} % 1000 = 0 THEN {0} DIV 1000 END"
        )
        text = f"CASE WHEN {within} THEN timestamp_micros({micros}) END"
        return _Leaf("BIGINT", lambda read: text.format(read), converts=True)

    def _decimal(self, precision: int, scale: int) -> _Leaf:
        kind, rest = f"DECIMAL({precision},{scale})", _MOST - precision
        wide = f"DECIMAL({_MOST},{rest + scale})"
        locale = {name.lower(): value for name, value in self.options.items()}.get("locale")
        if self.format == "json" and locale is not None:
            raise InvalidPipeline(f"locale={locale!r} of JSON: numbers in text aren't read by a locale; read STRING")
        if self.format == "json" and not self._exact:
            same = (lambda read, made: f"{read} = CAST({made} AS {wide})") if rest else None
            return _casting(wide, kind, same)
        if locale is not None and locale not in _LOCALES:
            raise InvalidPipeline(f"locale={locale!r}: decimals are read by {', '.join(sorted(_LOCALES))}; read STRING")
        groups, point = _LOCALES.get(locale or "", ("", "."))
        whole = f"[0-9]+|[0-9]{{1,3}}([{groups}][0-9]{{3}})+" if groups else "[0-9]+"
        exact = f"[-+]?({whole})([{point}][0-9]{{0,{scale}}}0*)?|[-+]?[{point}](?=[0-9])[0-9]{{0,{scale}}}0*"
        power = "[-+]?[0-9]{1,38}([.][0-9]{0,38})?[eE][-+]?[0-9]{1,2}"

        def convert(text: str) -> str:
            number = f"translate({text}, {literal(point + groups)}, '.')" if locale else text
            value, cases = f"try_cast({number} AS {kind})", [_whole(exact, text)]
            if not locale:
                at = f"locate('.', {text})"
                cases.insert(0, f"{at} > 0 AND {at} + {scale} >= length({text}) AND {_ends(text)}")
            if not locale:
                places = f"length(regexp_extract({text}, '[.]([0-9]*?)0*[eE]', 1))"
                exponent = f"try_cast(regexp_extract({text}, '[eE](.*)', 1) AS INT)"
                cases.append(f"{_whole(power, text)} AND {places} - {exponent} <= {scale}")
            return f"CASE WHEN ({') OR ('.join(cases)}) THEN {value} END"

        return _Leaf("STRING", convert, converts=True)

    def _refused(self, one: Field) -> InvalidPipeline:
        return InvalidPipeline(
            f"schema: column {one.name}: no text of {self.format} can be checked as {one.type}; "
            "read it as STRING, and cast it in the transform"
        )


def _casting(read: str, kind: str, fits: Callable[[str, str], str] | None = None) -> _Leaf:
    return _Leaf(read, lambda text: f"try_cast({text} AS {kind})", fits, converts=True)


def plain_text(type: str) -> str:
    """The type, with STRING for CHAR and VARCHAR."""
    return re.sub(r"\b(VAR)?CHAR ?\([0-9 ]+\)", "STRING", type, flags=re.IGNORECASE)


def _inner(one: Field, type: str) -> Field:
    """What an array or a map holds, with the name that messages have for it."""
    return Field(one.name, plain(type))


def _member(row: str, one: Field) -> str:
    return f"{row}.{quote_name(one.name)}"


#: Of decimals in JSON: an exponent that Java writes out in digits, for minutes; in quotes also what it takes for a
#: sign that groups digits, U+2019.
_EXPONENT = "[0-9.][eE][-+]?[0-9]{5}"
_QUOTED = rf'"[-+0-9.eE\u2019]*([eE][-+]?[0-9]{{5}}|\u2019)[-+0-9.eE\u2019]*{chr(92) * 4}?"'


def strange_decimal(text: str, quoted: str) -> str:
    """A condition: `text` has such a number outside of quotes, or `quoted` in quotes."""
    outside = rf"""regexp_replace({text}, '"[^"{chr(92) * 4}]*+({chr(92) * 4}.[^"{chr(92) * 4}]*+)*+"', '')"""
    return f"({outside} RLIKE '{_EXPONENT}' OR {quoted} RLIKE '{_QUOTED}')"


def tame_json(schema: str, text: str, options: str) -> str:
    """The text of a JSON record; one that is malformed, where `schema` has decimals and a number is strange."""
    names = [f"{quote_name(one.name)} STRING, " for one in fields_of(schema) if has_decimals(one.type)]
    if not names:
        return text
    # by their names, as other texts may look like such numbers; only of lines that may have some
    parsed = f"from_json({text}, {literal(''.join(names) + BAD + ' STRING')}, map({options}))"
    strange = f"{parsed}.{BAD} IS NOT NULL OR {strange_decimal(text, f'to_json({parsed})')}"
    may = f"contains({text}, '\u2019') OR contains({text}, '{chr(92) * 2}u') OR {text} RLIKE '[eE][-+]?[0-9]{{5}}'"
    return f"IF(IF({may}, {strange}, false), '{{', {text})"


def has_decimals(ddl: str) -> bool:
    """Whether a type is a decimal, or holds some."""
    return re.search(r"\b(DECIMAL|DEC|NUMERIC)\b", ddl, re.IGNORECASE) is not None


def has_more_json(text: str) -> str:
    """Whether something stands behind the object of `text`: the parser doesn't look there. Nothing does where the first
    brace that closes is the last character; only other texts are parsed once more. Nor may an escape stand for half a
    character, which becomes `?`, nor the object have a key twice."""
    closed = f"coalesce(locate('}}', {text}) = length({text}), false)"
    found = f"""get(from_json(concat('[', {text}, ',"', md5({text}), '"]'), 'ARRAY<STRING>'), 1) = md5({text})"""
    pairs = r"(?i)\\\\ud[89ab][0-9a-f]{2}\\\\ud[c-f][0-9a-f]{2}"
    escaped = f"regexp_replace({text}, '{chr(92) * 8}', '')"  # two backslashes stand for one
    half = rf"regexp_replace({escaped}, '{pairs}', '') RLIKE '(?i)\\\\ud[89a-f]'"
    half = f"IF(contains({text}, '\\\\u'), {half}, false)"
    # IF: what stands in one branch is computed only there, while Spark computes the hashes of an OR first
    keys = f"array(json_object_keys({text}))"  # in a function of one argument it is computed once
    twice = f"coalesce(exists({keys}, keys -> size(keys) <> size(array_distinct(keys))), false)"
    return f"(IF({closed}, false, NOT coalesce({found}, false)) OR {half} OR {twice})"
