"""Spark's types from its DDL, without a Spark session: a process that plans an epoch has none."""

from __future__ import annotations

import re

from pyspark.sql import types as T

from lockstep.definition.ddl import fields_of, plain, split, split_nested
from lockstep.errors import InvalidPipeline

_SIMPLE_TYPES: dict[str, T.DataType] = {
    "BOOLEAN": T.BooleanType(),
    "TINYINT": T.ByteType(),
    "SMALLINT": T.ShortType(),
    "INT": T.IntegerType(),
    "BIGINT": T.LongType(),
    "FLOAT": T.FloatType(),
    "DOUBLE": T.DoubleType(),
    "DECIMAL": T.DecimalType(10, 0),
    "STRING": T.StringType(),
    "BINARY": T.BinaryType(),
    "DATE": T.DateType(),
    "TIMESTAMP": T.TimestampType(),
    "TIMESTAMP_NTZ": T.TimestampNTZType(),
}
_DECIMAL = re.compile(r"DECIMAL\((\d+)(?:,(\d+))?\)")


def struct_of(ddl: str) -> T.StructType:
    """`name TYPE [NOT NULL] [COMMENT …], …` as a StructType. Raises `InvalidPipeline` for unknown types."""
    return T.StructType([T.StructField(field.name, _type(field.type), not field.required) for field in fields_of(ddl)])


def _type(text: str) -> T.DataType:
    match split_nested(text):
        case ("STRUCT", inside):
            return struct_of(inside)
        case ("ARRAY", inside):
            return T.ArrayType(_type(inside))
        case ("MAP", inside) if len(pair := split(inside)) == 2:
            return T.MapType(_type(pair[0]), _type(pair[1]))
    name = plain(text)
    if decimal := _DECIMAL.fullmatch(name):
        return T.DecimalType(int(decimal[1]), int(decimal[2] or 0))
    if (simple := _SIMPLE_TYPES.get(name)) is None:
        raise InvalidPipeline(
            f"schema: type {text.strip()!r} can't be read without Spark: have schema() give a StructType"
        )
    return simple
