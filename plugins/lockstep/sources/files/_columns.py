"""From where each declared column of each frozen file comes: its Parquet footer, or the name of its folder.

A footer's type that isn't the declared one is read as it is and cast. A cast that may change a value is checked row by
row, and a row with such a value is malformed; types that no cast joins are refused by file and column.
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
from lockstep.sources._strict import Strict, plain_text
from lockstep.sources.files.line_pieces import header_names
from lockstep.sources.records import BAD, FILE_OF_BAD, WHY, Reading, SourceRecords

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader

NULL = "__HIVE_DEFAULT_PARTITION__"  #: the name of a folder whose value is NULL
_FOLDER = re.compile(r"/([^/=]+)=([^/]*)(?=/)")
_DECIMAL = re.compile(r"DECIMAL(?:\((\d+)(?:,(\d+))?\))?")
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
#: Casts between types of other kinds that keep every value; a time without a zone is UTC's.
_KEEPING = {
    *(("STRING", "BINARY"), ("FLOAT", "DOUBLE"), _TIMES, _TIMES[::-1]),
    *(("TINYINT", "FLOAT"), ("SMALLINT", "FLOAT"), ("TINYINT", "DOUBLE"), ("SMALLINT", "DOUBLE"), ("INT", "DOUBLE")),
}


@dataclass(frozen=True)
class Footer:
    """What a Parquet file says of itself."""

    rows: int
    columns: Mapping[str, pa.DataType]

    @classmethod
    def of(cls, file: BinaryIO) -> Footer:
        """Raises OSError, `pa.ArrowException`."""
        found = pq.ParquetFile(file, coerce_int96_timestamp_unit="us")
        leaves = [found.schema.column(number) for number in range(found.metadata.num_columns)]
        int96 = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}
        columns = {f.name: pa.timestamp("us", "UTC") if f.name in int96 else f.type for f in found.schema_arrow}
        return cls(found.metadata.num_rows, columns)

    def name_of(self, column: str) -> str | None:
        """The file's own spelling of a declared column."""
        alike = [name for name in self.columns if name.casefold() == column.casefold()]
        return column if column in self.columns else alike[0] if len(alike) == 1 else None


@dataclass(frozen=True)
class _Column:
    """`value`, and the cases of `why`, are SQL over the columns of `read`, which is DDL."""

    value: str
    read: str = ""
    why: str = ""  #: WHEN a row is bad THEN the reason in words


def read_parquet(
    reader: DataFrameReader, schema: str | None, paths: Mapping[str, str], footers: Mapping[str, Footer]
) -> SourceRecords:
    """Every row of the files, as `schema` has it, or with all columns that any of them has. `paths`, by URI: as Spark
    takes them. Raises `BadRecords` for a file that can't give a column."""
    declared = fields_of(schema) if schema else _columns_of_all(footers)
    if not declared:
        frame = reader.load(list(paths.values()))
        return SourceRecords(frame, tuple(frame.columns))
    groups: dict[tuple[_Column, ...], list[str]] = {}
    known: dict[tuple[tuple[str, pa.DataType], ...], tuple[_Column, ...]] = {}
    for uri, footer in footers.items():
        key = tuple(footer.columns.items())
        if key not in known:
            known[key] = tuple(_column(uri, field, declared, footers) for field in declared)
        groups.setdefault(known[key], []).append(paths[uri])
    marked = any(column.why for columns in groups for column in columns)
    frames = [_frame(reader, found, columns, declared, marked) for columns, found in groups.items()]
    return SourceRecords(
        reduce(lambda left, right: left.unionAll(right), frames), tuple(field.name for field in declared), marked=marked
    )


def _column(uri: str, field: Field, declared: Sequence[Field], footers: Mapping[str, Footer]) -> _Column:
    name, quoted = footers[uri].name_of(field.name), quote_name(field.name)
    if name is None:
        known = {other.name.casefold() for other in declared}
        others = [other for other in footers[uri].columns if other.casefold() not in known]
        in_folder = field.name.casefold() in (unquote(key).casefold() for key, _ in _FOLDER.findall(uri))
        reasons = {
            f"and has {', '.join(others[:3])}, which schema= lacks": bool(others),
            "nor has another file": not any(footer.name_of(field.name) for footer in footers.values()),
            "but for its folder's name (put it into all files, or into none)": in_folder,
            "which is NOT NULL": field.required,
        }
        if instead := next((reason for reason, holds in reasons.items() if holds), None):
            raise BadRecords(
                f"input file {uri} has no column {field.name}, {instead}: correct the name, in the file or in schema=; "
                "a column that it isn't to have can be left out there, and one that it has, too, be declared"
            )
        return _Column(f"CAST(NULL AS {plain_text(field.type)}) AS {quoted}")
    source, found, kind = quote_name(name), footers[uri].columns[name], plain_text(field.type)
    own, why, is_code = _name_of(found), "", isinstance(found, pa.BaseExtensionType)  # as a UUID's bytes are no text
    if _reads(found, kind):
        value, read = source, f"{source} {kind}"
    elif own == "VOID":
        value, read = f"CAST(NULL AS {kind})", ""
    elif own == "ARRAY<VOID>" and (nested := split_nested(kind)) and nested[0] == "ARRAY":
        value, read = f"transform({source}, element -> CAST(NULL AS {nested[1]}))", f"{source} {own}"
    elif (is_code and own == "BINARY" and kind != own) or (own not in _NANOS and not _is_known(own)):
        raise BadRecords(
            f"input file {uri}: its column {name} is of the type {found if is_code else own}, and schema= says "
            f"{field.type}: correct schema=, or have the file written with another type"
        )
    else:
        value, bad = _cast(own, kind if split_nested(kind) else _named(kind), source)
        read = f"{source} {'BIGINT' if own in _NANOS else own}"
        reason = literal(f"column {field.name} is {own} in the file, and has a value that is no {field.type}")
        why = f"WHEN {bad} THEN {reason} " if bad else ""
    why += Strict("", "parquet").case_of(field, value)
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
        whole = f"to_json(struct({', '.join(map(quote_name, frame.columns))}))"
        cases = "".join(column.why for column in columns)
        why = f"CASE {cases}END" if cases else "CAST(NULL AS STRING)"
        marks = [f"CASE WHEN {why} IS NOT NULL THEN {whole} END AS {BAD}", f"{why} AS {WHY}"]
    read = frame.selectExpr(*(column.value for column in columns), *marks)
    return read.selectExpr("*", FILE_OF_BAD) if marked else read


def _columns_of_all(footers: Mapping[str, Footer]) -> list[Field]:
    """The columns that all files have; none where Spark comes to the same. Raises `BadRecords` if they differ."""
    named = {uri: {name: _name_of(kind) for name, kind in footer.columns.items()} for uri, footer in footers.items()}
    (first, columns), *others = named.items()
    for uri, found in others:
        if differing := [f"{name} ({kind})" for name, kind in columns.items() ^ found.items()]:
            raise BadRecords(
                f"input files {first} and {uri} differ in columns or types: {', '.join(sorted(differing))}; say in "
                "schema= what is to be read, where NULL stands for a column that some files lack"
            )
    alike = all(footer.columns == footers[first].columns for footer in footers.values())
    if alike and "NANOSECONDS" not in " ".join(columns.values()):
        return []
    for name, own in columns.items():
        if own not in _NANOS and re.search("NANOSECONDS|[a-z]", re.sub("`[^`]*`", "", own)):
            raise BadRecords(f"input file {first}: column {name} is {own}, which Spark can't read: declare the others")
    return [Field(name, _NANOS.get(own, own)) for name, own in columns.items()]


# --- types -----------------------------------------------------------------------------------------------------------


def _name_of(found: pa.DataType) -> str:
    """What Spark's DDL calls a column's type; for one that Spark doesn't have a name that isn't among those."""
    if types.is_dictionary(found) or isinstance(found, pa.BaseExtensionType):
        return _name_of(found.value_type if types.is_dictionary(found) else found.storage_type)
    if types.is_timestamp(found):
        return list(_NANOS if found.unit == "ns" else _TIMES)[found.tz is None]
    if types.is_decimal(found):
        return f"DECIMAL({found.precision},{found.scale})"
    if _is_list(found):
        return f"ARRAY<{_name_of(found.value_type)}>"
    if types.is_map(found):
        return f"MAP<{_name_of(found.key_type)}, {_name_of(found.item_type)}>"
    if types.is_struct(found):
        return f"STRUCT<{', '.join(f'{quote_name(field.name)}: {_name_of(field.type)}' for field in found)}>"
    return "BINARY" if types.is_fixed_size_binary(found) else _NAMES.get(found, str(found))


def _named(ddl: str) -> str:
    """A declared type as `_name_of` has it."""
    if decimal := _DECIMAL.fullmatch(plain(ddl)):
        return f"DECIMAL({decimal[1] or 10},{decimal[2] or 0})"
    return plain(plain_text(ddl))


def _is_list(found: pa.DataType) -> bool:
    kinds = types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view
    return any(is_of(found) for is_of in kinds)


def _is_known(kind: str) -> bool:
    return kind in _NAMES.values() or kind in _TIMES or _DECIMAL.fullmatch(kind) is not None


def _reads(found: pa.DataType, ddl: str, nested: bool = False) -> bool:
    """Whether Spark reads every value as it is; a type that only Spark knows, and a time in a list, is left to it."""
    match split_nested(ddl):
        case ("ARRAY", inside):
            return _is_list(found) and _reads(found.value_type, inside, True)
        case ("MAP", inside):
            pair = split(inside)
            return (
                types.is_map(found) and _reads(found.key_type, pair[0], True) and _reads(found.item_type, pair[1], True)
            )
        case ("STRUCT", inside):
            own = {field.name.casefold(): field.type for field in found} if types.is_struct(found) else {}
            fields = [(own.get(field.name.casefold()), field.type) for field in fields_of(inside)]
            return all(kind is not None and _reads(kind, wanted, True) for kind, wanted in fields)
    kind = _named(ddl)
    whole = nested and kind in _TIMES and types.is_timestamp(found) and found.unit != "ns"
    return kind == _name_of(found) or not _is_known(kind) or whole


def _cast(own: str, kind: str, name: str) -> tuple[str, str]:
    """A cast, and a condition in SQL that is true where it would change the value: "" for never."""
    (whole, scale), (wanted, wanted_scale) = _places(own), _places(kind)
    wider = 0 <= whole <= wanted and scale <= wanted_scale
    if (own, kind) in _KEEPING or (wider and (own in _DIGITS or kind not in _DIGITS or whole < wanted)):
        return f"CAST({name} AS {kind})", ""
    if own in _NANOS and kind in _TIMES:
        return f"CAST(timestamp_micros({name} DIV 1000) AS {kind})", f"{name} % 1000 <> 0"
    if (own, kind) == ("BINARY", "STRING"):
        return f"CAST({name} AS STRING)", f"NOT is_valid_utf8(CAST({name} AS STRING))"
    floating = own in ("FLOAT", "DOUBLE") and kind in ("FLOAT", *_DIGITS)
    if not floating and min(whole, wanted) < 0:
        return f"CAST(NULL AS {kind})", f"{name} IS NOT NULL"
    value = f"try_cast({name} AS {kind})"
    same = f"coalesce(try_cast({value} AS {own}) = {name}, false)"
    if floating and kind == "BIGINT":  # a double of 2^63 is cast to 2^63 - 1, which is the same double
        same += f" AND {name} < 9223372036854775807D"
    return value, f"{name} IS NOT NULL AND NOT ({same})"


def _places(kind: str) -> tuple[int, int]:
    """How many digits stand before the point and behind it; -1 where the type has no such number."""
    decimal = _DECIMAL.fullmatch(kind)
    return (int(decimal[1]) - int(decimal[2]), int(decimal[2])) if decimal else (_DIGITS.get(kind, -1), 0)


# --- folders ---------------------------------------------------------------------------------------------------------


def columns_of_folders(fields: Iterable[Field], uris: Iterable[str]) -> dict[str, str]:
    """SQL of each column that the names of all files' folders give (`carrier=UA/`), by column. Raises `BadRecords`
    for a value that isn't one of the column's type."""
    places = {uri.rpartition("/")[0] + "/" for uri in uris}
    folders = {
        place: [(key, unquote(key).casefold(), text) for key, text in _FOLDER.findall(place)] for place in places
    }
    path = "url_decode(replace(input_file_name(), '+', '%2B'))"
    columns = {}
    for field in fields:
        given = {
            place: [(key, text) for key, name, text in parts if name == field.name.casefold()]
            for place, parts in folders.items()
        }
        if not any(given.values()):
            continue
        for place, pairs in given.items():
            if len(pairs) != 1 or not _is_value(pairs[0][1], field):
                raise BadRecords(
                    f"input folder {place}: its name gives column {field.name} no {field.type}"
                    f"{' NOT NULL' if field.required else ''}: rename it, or declare "
                    "the column as STRING (folders give texts, integers, booleans and ISO dates)"
                )
        keys = "|".join(sorted({re.escape(key) for [(key, _)] in given.values()}))
        text = f"regexp_extract({path}, {literal(f'/(?:{keys})=([^/]*)/')}, 1)"
        text = f"url_decode(replace({text}, '+', '%2B'))"
        columns[field.name] = f"CAST(nullif({text}, {literal(NULL)}) AS {field.type})"
    return columns


def _is_value(escaped: str, field: Field) -> bool:
    """Whether a folder's text is NULL, a text, an integer, a boolean or an ISO date, as the column takes it."""
    types_by_name = {name: kind for kind, name in _NAMES.items() if name in ("STRING", "BOOLEAN", "DATE", *_DIGITS)}
    length = re.match(r"(?:VAR)?CHAR\((\d+)\)", plain(field.type))
    try:
        text = unquote(escaped, errors="strict")
        if text == NULL:
            return not field.required
        pa.scalar(text).cast(types_by_name[_named(field.type)])
    except (KeyError, UnicodeDecodeError, pa.ArrowException):
        return False
    fits = length is None or len(text) <= int(length[1])
    fits = fits and (_named(field.type) not in _DIGITS or re.fullmatch("-?[0-9]+", text) is not None)
    return fits and text != "" and not re.search("%(?![0-9A-Fa-f]{2})", escaped)


def header_of(file: BinaryIO, reading: Reading) -> set[str]:
    """The names in a CSV file's header, casefolded. Spark skips blank lines before it."""
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
    """What `read` gives, with the columns of folders; where a JSON object has a value of its own, that counts."""
    if not in_folders:
        return read(reading)
    fields = fields_of(reading.schema or "")
    own = fields if reading.format == "json" else [field for field in fields if field.name not in in_folders]
    records = read(replace(reading, schema=", ".join(_ddl_of(field, field.name in in_folders) for field in own)))
    values = []
    for field in fields:
        name, value = quote_name(field.name), in_folders.get(field.name)
        value = f"coalesce({name}, {value})" if value and field in own else value
        values.append(f"{value} AS {name}" if value else name)
    marks = [name for name in records.frame.columns if name not in records.columns]
    return replace(records, frame=records.frame.selectExpr(*values, *marks))


def _ddl_of(field: Field, in_folders: bool) -> str:
    """The column as it is declared; where a folder has a value for it, a record needs none."""
    required = " NOT NULL" if field.required and not in_folders else ""
    return f"{quote_name(field.name)} {field.type}{required}{f' COMMENT {field.comment}' if field.comment else ''}"
