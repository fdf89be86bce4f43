"""Columns of frozen files from Parquet footers and from folder names.

A Parquet column with another type than the declared one is read by its own type and cast. A cast that may change a
value is checked row by row, and a row with such a value is malformed; types without a suitable cast are refused by file
and column.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from lockstep.definition.ddl import Field, fields_of, literal, plain, quote_name, split, split_nested
from lockstep.errors import BadRecords
from lockstep.sources._checked_schema import BAD, TEXT, WHY, CheckedSchema, decimal_of, plain_text
from lockstep.sources.files.line_pieces import header_names
from lockstep.sources.records import FILE_OF_BAD, Reading, SourceRecords

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader

NULL = "__HIVE_DEFAULT_PARTITION__"  #: the name of a folder whose value is NULL
_FOLDER = re.compile(r"/([^/=]+)=([^/]*)(?=/)")
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ")
_NANOS = {"NANOSECONDS": "TIMESTAMP", "NANOSECONDS WITHOUT A ZONE": "TIMESTAMP_NTZ"}  #: types that Spark doesn't have
_NAMES = {
    pa.type_for_alias(alias): name
    for name, aliases in (
        *(("BOOLEAN", "bool"), ("TINYINT", "int8"), ("SMALLINT", "uint8 int16"), ("INT", "uint16 int32")),
        *(("BIGINT", "duration[s] duration[ms] duration[us] duration[ns] uint32 int64"), ("VOID", "null")),
        *(("DECIMAL(20,0)", "uint64"), ("FLOAT", "float"), ("DOUBLE", "double"), ("DATE", "date32")),
        *(("STRING", "large_string string_view string"), ("BINARY", "binary_view binary large_binary")),
    )
    for alias in aliases.split()
}
#: Casts between kinds of types that keep every value; a time without a zone is in UTC.
_KEEPING = {
    *(("STRING", "BINARY"), ("FLOAT", "DOUBLE"), _TIMES, _TIMES[::-1]),
    *(("TINYINT", "FLOAT"), ("SMALLINT", "FLOAT"), ("TINYINT", "DOUBLE"), ("SMALLINT", "DOUBLE"), ("INT", "DOUBLE")),
}


@dataclass(frozen=True)
class Footer:
    """The footer of a Parquet file."""

    rows: int
    columns: Mapping[str, pa.DataType]

    @classmethod
    def of(cls, file: BinaryIO) -> Footer:
        """Read the footer. Raises OSError, `pa.ArrowException`."""
        parquet = pq.ParquetFile(file, coerce_int96_timestamp_unit="us")
        leaves = [parquet.schema.column(number) for number in range(parquet.metadata.num_columns)]
        int96 = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}
        columns = {f.name: pa.timestamp("us", "UTC") if f.name in int96 else f.type for f in parquet.schema_arrow}
        return cls(parquet.metadata.num_rows, columns)

    def name_of(self, column: str) -> str | None:
        """Return the file's own spelling of a declared column; None if it has no such column."""
        matches = [name for name in self.columns if name.casefold() == column.casefold()]
        return column if column in self.columns else matches[0] if len(matches) == 1 else None


@dataclass(frozen=True)
class _Column:
    """The SQL for one declared column: `value` and the cases of `why` use the columns of `read`, which is DDL."""

    value: str
    read: str = ""
    why: str = ""  #: WHEN a row is bad THEN the reason in words


def read_parquet(
    reader: DataFrameReader, schema: str | None, paths: Mapping[str, str], footers: Mapping[str, Footer]
) -> SourceRecords:
    """Read every row of the files with the columns of `schema`, or if that is None with all columns.

    `paths`: by URI, as Spark takes them. Raises `BadRecords` for a file that can't provide a column.
    """
    declared = fields_of(schema) if schema else _columns_of_all(footers)
    if not declared:
        frame = reader.load(list(paths.values()))
        return SourceRecords(frame, tuple(frame.columns))
    groups: dict[tuple[_Column, ...], list[str]] = {}
    columns_of_types: dict[tuple[tuple[str, pa.DataType], ...], tuple[_Column, ...]] = {}
    for uri, footer in footers.items():
        key = tuple(footer.columns.items())
        if key not in columns_of_types:
            columns_of_types[key] = tuple(_column(uri, field, declared, footers) for field in declared)
        groups.setdefault(columns_of_types[key], []).append(paths[uri])
    marked = any(column.why for columns in groups for column in columns)
    frames = [_frame(reader, paths_of_group, columns, declared, marked) for columns, paths_of_group in groups.items()]
    return SourceRecords(
        reduce(lambda first, second: first.unionAll(second), frames),
        tuple(field.name for field in declared),
        marked=marked,
    )


def _column(uri: str, field: Field, declared: Sequence[Field], footers: Mapping[str, Footer]) -> _Column:
    name, quoted = footers[uri].name_of(field.name), quote_name(field.name)
    if name is None:
        declared_names = {column.name.casefold() for column in declared}
        undeclared = [column for column in footers[uri].columns if column.casefold() not in declared_names]
        in_folder = field.name.casefold() in (unquote(key).casefold() for key, _ in _FOLDER.findall(uri))
        problems = {
            f"but has {', '.join(undeclared[:3])}, which schema= lacks": bool(undeclared),
            "nor has any other file": not any(footer.name_of(field.name) for footer in footers.values()),
            "only a folder of that name (put it into all files, or into none)": in_folder,
            "which is NOT NULL": field.required,
        }
        if problem := next((problem for problem, holds in problems.items() if holds), None):
            raise BadRecords(
                f"input file {uri} has no column {field.name}, {problem}: correct the name in the file or in schema=, "
                "remove the column from schema= if files shouldn't have it, or declare the columns that they do have"
            )
        return _Column(f"CAST(NULL AS {plain_text(field.type)}) AS {quoted}")
    source, arrow_type, ddl_type = quote_name(name), footers[uri].columns[name], plain_text(field.type)
    file_type, why = _name_of(arrow_type), ""
    is_extension = isinstance(arrow_type, pa.BaseExtensionType)  # such as UUID, whose bytes are no text
    if _reads(arrow_type, ddl_type):
        value, read = source, f"{source} {ddl_type}"
    elif file_type == "VOID":
        value, read = f"CAST(NULL AS {ddl_type})", ""
    elif file_type == "ARRAY<VOID>" and (nested := split_nested(ddl_type)) and nested[0] == "ARRAY":
        value, read = f"transform({source}, element -> CAST(NULL AS {nested[1]}))", f"{source} {file_type}"
    elif (is_extension and file_type == "BINARY" and ddl_type != file_type) or (
        file_type not in _NANOS and not _is_known(file_type)
    ):
        raise BadRecords(
            f"input file {uri}: its column {name} is {arrow_type if is_extension else file_type}, but schema= "
            f"says {field.type}: correct schema=, or have the file written with another type"
        )
    else:
        value, bad = _cast(file_type, ddl_type if split_nested(ddl_type) else _normalized(ddl_type), source)
        read = f"{source} {'BIGINT' if file_type in _NANOS else file_type}"
        reason = literal(f"column {field.name} is {file_type} in the file, and has a value that is no {field.type}")
        why = f"WHEN {bad} THEN {reason} " if bad else ""
    why += CheckedSchema("", "parquet").case_of(field, value)
    return _Column(value if value == quoted else f"{value} AS {quoted}", read, why)


def _frame(
    reader: DataFrameReader, paths: Sequence[str], columns: Sequence[_Column], declared: Sequence[Field], marked: bool
) -> DataFrame:
    reads = [column.read for column in columns if column.read] or ["_lockstep_none INT"]
    frame = reader.schema(", ".join(reads)).load(list(paths))
    if not marked and [column.value for column in columns] == [quote_name(field.name) for field in declared]:
        return frame
    marks = []
    if marked:
        record = f"to_json(struct({', '.join(map(quote_name, frame.columns))}))"
        cases = "".join(column.why for column in columns)
        why = f"CASE {cases}END" if cases else "CAST(NULL AS STRING)"
        marks = [f"CASE WHEN {why} IS NOT NULL THEN {record} END AS {BAD}", f"{why} AS {WHY}"]
    read = frame.selectExpr(*(column.value for column in columns), *marks)
    return read.selectExpr("*", FILE_OF_BAD) if marked else read


def _columns_of_all(footers: Mapping[str, Footer]) -> list[Field]:
    """Return the columns that all files have; empty if Spark infers the same. Raises `BadRecords` if files differ."""
    types_of_files = {
        uri: {name: _name_of(kind) for name, kind in footer.columns.items()} for uri, footer in footers.items()
    }
    (first, columns), *rest = types_of_files.items()
    for uri, columns_of_other in rest:
        if differing := [f"{name} ({kind})" for name, kind in columns.items() ^ columns_of_other.items()]:
            raise BadRecords(
                f"input files {first} and {uri} differ in columns or types: {', '.join(sorted(differing))}; declare in "
                "schema= what to read; columns that some files lack are read as NULL there"
            )
    alike = all(footer.columns == footers[first].columns for footer in footers.values())
    if alike and "NANOSECONDS" not in " ".join(columns.values()):
        return []
    for name, file_type in columns.items():
        if file_type not in _NANOS and re.search("NANOSECONDS|[a-z]", re.sub("`[^`]*`", "", file_type)):
            raise BadRecords(
                f"input file {first}: column {name} is {file_type}, which Spark can't read: declare the other columns"
            )
    return [Field(name, _NANOS.get(file_type, file_type)) for name, file_type in columns.items()]


# --- types -----------------------------------------------------------------------------------------------------------


def _name_of(arrow_type: pa.DataType) -> str:
    """Return the DDL name of an Arrow type; for a type that Spark lacks, a name that isn't in DDL."""
    if types.is_dictionary(arrow_type) or isinstance(arrow_type, pa.BaseExtensionType):
        return _name_of(arrow_type.value_type if types.is_dictionary(arrow_type) else arrow_type.storage_type)
    if types.is_timestamp(arrow_type):
        return list(_NANOS if arrow_type.unit == "ns" else _TIMES)[arrow_type.tz is None]
    if types.is_decimal(arrow_type):
        return f"DECIMAL({arrow_type.precision},{arrow_type.scale})"
    if _is_list(arrow_type):
        return f"ARRAY<{_name_of(arrow_type.value_type)}>"
    if types.is_map(arrow_type):
        return f"MAP<{_name_of(arrow_type.key_type)}, {_name_of(arrow_type.item_type)}>"
    if types.is_struct(arrow_type):
        return f"STRUCT<{', '.join(f'{quote_name(field.name)}: {_name_of(field.type)}' for field in arrow_type)}>"
    return "BINARY" if types.is_fixed_size_binary(arrow_type) else _NAMES.get(arrow_type, str(arrow_type))


def _normalized(ddl: str) -> str:
    """Return a declared type in the notation of `_name_of`."""
    if decimal := decimal_of(plain(ddl)):
        return f"DECIMAL({decimal[0]},{decimal[1]})"
    return plain(plain_text(ddl))


def _is_list(arrow_type: pa.DataType) -> bool:
    kinds = types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view
    return any(is_of(arrow_type) for is_of in kinds)


def _is_known(kind: str) -> bool:
    return kind in _NAMES.values() or kind in _TIMES or decimal_of(kind) is not None


def _reads(arrow_type: pa.DataType, ddl: str, nested: bool = False) -> bool:
    """Return True if Spark reads every value unchanged, or is left to decide: its own types, and times in lists."""
    match split_nested(ddl):
        case ("ARRAY", inside):
            return _is_list(arrow_type) and _reads(arrow_type.value_type, inside, True)
        case ("MAP", inside):
            pair = split(inside)
            return (
                types.is_map(arrow_type)
                and _reads(arrow_type.key_type, pair[0], True)
                and _reads(arrow_type.item_type, pair[1], True)
            )
        case ("STRUCT", inside):
            own = {field.name.casefold(): field.type for field in arrow_type} if types.is_struct(arrow_type) else {}
            fields = [(own.get(field.name.casefold()), field.type) for field in fields_of(inside)]
            return all(kind is not None and _reads(kind, ddl_type, True) for kind, ddl_type in fields)
    kind = _normalized(ddl)
    time_in_list = nested and kind in _TIMES and types.is_timestamp(arrow_type) and arrow_type.unit != "ns"
    return kind == _name_of(arrow_type) or not _is_known(kind) or time_in_list


def _cast(file_type: str, ddl_type: str, name: str) -> tuple[str, str]:
    """Return a cast, and an SQL condition that it would change the value: "" for never."""
    (whole, scale), (to_whole, to_scale) = _places(file_type), _places(ddl_type)
    wider = 0 <= whole <= to_whole and scale <= to_scale
    if (file_type, ddl_type) in _KEEPING or (
        wider and (file_type in _DIGITS or ddl_type not in _DIGITS or whole < to_whole)
    ):
        return f"CAST({name} AS {ddl_type})", ""
    if file_type in _NANOS and ddl_type in _TIMES:
        return f"CAST(timestamp_micros({name} DIV 1000) AS {ddl_type})", f"{name} % 1000 <> 0"
    if (file_type, ddl_type) == ("BINARY", "STRING"):
        return f"CAST({name} AS STRING)", f"NOT is_valid_utf8(CAST({name} AS STRING))"
    floating = file_type in ("FLOAT", "DOUBLE") and ddl_type in ("FLOAT", *_DIGITS)
    if not floating and min(whole, to_whole) < 0:
        return f"CAST(NULL AS {ddl_type})", f"{name} IS NOT NULL"
    value = f"try_cast({name} AS {ddl_type})"
    same = f"coalesce(try_cast({value} AS {file_type}) = {name}, false)"
    if floating and ddl_type == "BIGINT":  # a double of 2^63 is cast to 2^63 - 1, which is the same double
        same += f" AND {name} < 9223372036854775807D"
    return value, f"{name} IS NOT NULL AND NOT ({same})"


def _places(kind: str) -> tuple[int, int]:
    """Return the number of digits before and after the decimal point; -1 for types without such a limit."""
    decimal = decimal_of(kind)
    return (decimal[0] - decimal[1], decimal[1]) if decimal else (_DIGITS.get(kind, -1), 0)


# --- folders ---------------------------------------------------------------------------------------------------------


def columns_of_folders(fields: Iterable[Field], uris: Iterable[str]) -> dict[str, str]:
    """Return SQL by column for columns that the names of all files' folders provide (`carrier=UA/`).

    Raises `BadRecords` for a value that doesn't match the column's type.
    """
    places = {uri.rpartition("/")[0] + "/" for uri in uris}
    folders = {
        place: [(key, unquote(key).casefold(), text) for key, text in _FOLDER.findall(place)] for place in places
    }
    path = "url_decode(replace(input_file_name(), '+', '%2B'))"
    columns = {}
    for field in fields:
        values = {
            place: [(key, text) for key, name, text in parts if name == field.name.casefold()]
            for place, parts in folders.items()
        }
        if not any(values.values()):
            continue
        for place, pairs in values.items():
            if len(pairs) != 1 or not _is_value(pairs[0][1], field):
                raise BadRecords(
                    f"input folder {place}: its name gives column {field.name} no {field.type}"
                    f"{' NOT NULL' if field.required else ''}: rename it, or declare "
                    "the column as STRING (folders give texts, integers, booleans and ISO dates)"
                )
        keys = "|".join(sorted({re.escape(key) for [(key, _)] in values.values()}))
        text = f"regexp_extract({path}, {literal(f'/(?:{keys})=([^/]*)/')}, 1)"
        text = f"url_decode(replace({text}, '+', '%2B'))"
        columns[field.name] = f"CAST(nullif({text}, {literal(NULL)}) AS {field.type})"
    return columns


def _is_value(escaped: str, field: Field) -> bool:
    """Return True if a folder's text is NULL, a text, an integer, a boolean or an ISO date that matches the column."""
    types_by_name = {name: kind for kind, name in _NAMES.items() if name in ("STRING", "BOOLEAN", "DATE", *_DIGITS)}
    try:
        text = unquote(escaped, errors="strict")
        if text == NULL:
            return not field.required
        pa.scalar(text).cast(types_by_name[_normalized(field.type)])
    except (KeyError, UnicodeDecodeError, pa.ArrowException):
        return False
    if (text_type := TEXT.fullmatch(plain(field.type))) and text_type[1] and len(text) > int(text_type[1]):
        return False
    if _normalized(field.type) in _DIGITS and not re.fullmatch("-?[0-9]+", text):
        return False
    return text != "" and not re.search("%(?![0-9A-Fa-f]{2})", escaped)


def header_of(file: BinaryIO, reading: Reading) -> set[str]:
    """Return the casefolded names in a CSV file's header. Spark skips blank lines before it."""
    packed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    lines = gzip.GzipFile(fileobj=file) if packed else file
    encoding = reading.option("encoding", reading.option("charset", "utf-8"))
    for line in iter(lambda: lines.readline(1 << 20), b""):
        for text in re.split("[\r\n]", line.decode(encoding, "replace").removeprefix("\ufeff")):
            if text.strip("".join(map(chr, range(33)))):
                names = header_names(text, reading.separator.replace("\\t", "\t"), reading.option("quote", '"'))
                return {name.strip().casefold() for name in names}
    return set()


def with_folders(
    reading: Reading, in_folders: Mapping[str, str], read: Callable[[Reading], SourceRecords]
) -> SourceRecords:
    """Add the columns of folders to what `read` returns; a value in a JSON object takes precedence."""
    if not in_folders:
        return read(reading)
    fields = fields_of(reading.schema or "")
    own = fields if reading.format == "json" else [field for field in fields if field.name not in in_folders]
    declarations = []
    for field in own:  # a record needs no value where a folder provides one
        required = " NOT NULL" if field.required and field.name not in in_folders else ""
        comment = f" COMMENT {field.comment}" if field.comment else ""
        declarations.append(f"{quote_name(field.name)} {field.type}{required}{comment}")
    records = read(replace(reading, schema=", ".join(declarations)))
    values = []
    for field in fields:
        name, value = quote_name(field.name), in_folders.get(field.name)
        value = f"coalesce({name}, {value})" if value and field in own else value
        values.append(f"{value} AS {name}" if value else name)
    marks = [name for name in records.frame.columns if name not in records.columns]
    return replace(records, frame=records.frame.selectExpr(*values, *marks))
