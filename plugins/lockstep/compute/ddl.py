"""Spark's DDL for schemas, read without a Spark session: a process that plans an epoch has none."""

from __future__ import annotations

import re

from pyspark.sql import types as T

from lockstep.errors import InvalidPipeline

_NAMED: dict[str, T.DataType] = {
    "BOOLEAN": T.BooleanType(),
    "TINYINT": T.ByteType(),
    "BYTE": T.ByteType(),
    "SMALLINT": T.ShortType(),
    "SHORT": T.ShortType(),
    "INT": T.IntegerType(),
    "INTEGER": T.IntegerType(),
    "BIGINT": T.LongType(),
    "LONG": T.LongType(),
    "FLOAT": T.FloatType(),
    "REAL": T.FloatType(),
    "DOUBLE": T.DoubleType(),
    "DECIMAL": T.DecimalType(10, 0),
    "STRING": T.StringType(),
    "BINARY": T.BinaryType(),
    "DATE": T.DateType(),
    "TIMESTAMP": T.TimestampType(),
    "TIMESTAMP_LTZ": T.TimestampType(),
    "TIMESTAMP_NTZ": T.TimestampNTZType(),
}
_FIELD = re.compile(r"\s*(`(?:[^`]|``)+`|\w+)\s*:?\s*(.+?)(\s+NOT\s+NULL)?(?:\s+COMMENT\s+.*)?\s*", re.I | re.S)
_NESTED = re.compile(r"(ARRAY|MAP|STRUCT)\s*<(.*)>", re.I | re.S)
_DECIMAL = re.compile(r"(?:DECIMAL|DEC|NUMERIC)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", re.I)


def struct_of(ddl: str) -> T.StructType:
    """`name TYPE [NOT NULL] [COMMENT …], …` as a StructType. Raises `InvalidPipeline` for what it doesn't know."""
    return T.StructType([_field(part) for part in _split(ddl)])


def _field(text: str) -> T.StructField:
    found = _FIELD.fullmatch(text)
    if found is None:
        raise InvalidPipeline(f"schema: {text.strip()!r} is no column of Spark's DDL")
    name, kind, required = found.groups()
    return T.StructField(name.strip("`").replace("``", "`"), _type(kind), required is None)


def _type(text: str) -> T.DataType:
    if nested := _NESTED.fullmatch(text.strip()):
        inner = _split(nested[2])
        match nested[1].upper():
            case "ARRAY" if len(inner) == 1:
                return T.ArrayType(_type(inner[0]))
            case "MAP" if len(inner) == 2:
                return T.MapType(_type(inner[0]), _type(inner[1]))
            case "STRUCT":
                return T.StructType([_field(part) for part in inner])
    if decimal := _DECIMAL.fullmatch(text.strip()):
        return T.DecimalType(int(decimal[1]), int(decimal[2] or 0))
    if (found := _NAMED.get(text.strip().upper())) is None:
        raise InvalidPipeline(
            f"schema: type {text.strip()!r} can't be read without Spark: have schema() give a StructType"
        )
    return found


def _split(text: str) -> list[str]:
    """At the commas that stand in no brackets and no quotes."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "`'\"":
            quote = character
        elif character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append("")
            continue
        parts[-1] += character
    return parts
