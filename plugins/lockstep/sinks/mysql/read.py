"""Rows back out of a table, exactly as they went in: for `verify`.

The server makes a line of CSV of each row and pyarrow parses them, with every column in a form that loses nothing:
moments as whole microseconds since 1970, bytes in hex, floats as doubles with their shortest exact digits.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa
import pymysql
from pyarrow import csv

from lockstep.errors import SinkRejected
from lockstep.sinks.mysql.connection import Database
from lockstep.sinks.mysql.sql import compose, identifier
from lockstep.sinks.mysql.tables import Relation
from lockstep.sinks.mysql.types import mysql_type
from lockstep.sinks.mysql.wire import Loader, close_quietly
from lockstep.sinks.tables.csv_carriers import Carrier, as_binary, options, restored
from lockstep.sinks.tables.disclosure import cause, quoted

_ROWS = 65_536

_MICROSECONDS = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {})"
_EXPRESSIONS = {
    "varbinary": "CONCAT('\"', LOWER(HEX({})), '\"')",
    "varchar": "CONCAT('\"', REPLACE({}, '\"', '\"\"'), '\"')",
    "date": "DATEDIFF({}, '1970-01-01')",
    "time": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', TIMESTAMP('1970-01-01', {}))",
    "datetime": _MICROSECONDS,
    "float": "CAST({} AS double)",
}


def read_rows(
    database: Database, relation: Relation, epoch_column: str, epoch: int, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The committed rows of `epoch`, cast to `schema`, in any order. Raises `SinkUnavailable`, `SinkRejected`."""
    carriers = [_carrier(field) for field in schema]
    fields = ", ".join(f"IFNULL({carrier.select}, '')" for carrier in carriers)
    query = f"SELECT CONCAT_WS(',', {fields}) " + compose(
        "FROM {table} WHERE {column} = ", table=relation.name, column=epoch_column
    )
    query = f"{query}{epoch:d}"
    where = f"sink {database.sink}: reading table {relation}"
    connection = database.connect()
    try:
        with database.naming(where):
            with connection.cursor() as cursor:
                database.guard(cursor)
            for lines in _lines(connection, query, where):
                yield from _parsed(lines, carriers, schema, where)
    finally:
        close_quietly(connection)


def _lines(connection: Loader, query: str, where: str) -> Iterator[bytes]:
    """CSV of many rows at a time, a last line end included."""
    with connection.cursor(pymysql.cursors.SSCursor) as cursor:
        cursor.execute(query)
        while rows := cursor.fetchmany(_ROWS):
            if any(row[0] is None for row in rows):
                raise SinkRejected(f"{where}: a row is longer than max_allowed_packet; raise that on the server")
            yield "\n".join([*(row[0] for row in rows), ""]).encode()


def _parsed(lines: bytes, carriers: list[Carrier], schema: pa.Schema, where: str) -> Iterator[pa.RecordBatch]:
    names = [str(index) for index in range(len(carriers))]
    try:
        for batch in csv.open_csv(io.BytesIO(lines), **options(carriers, names, block=len(lines) + 1)):
            yield restored(batch, carriers, schema)
    except pa.ArrowInvalid as error:
        told = f"{where}: its rows don't come back as the output's types: {quoted(error)}"
        raise SinkRejected(told) from cause(error, True)


def _carrier(field: pa.Field) -> Carrier:
    kind = mysql_type(field.type)
    assert kind is not None, "the table was compared with the schema"
    select = _EXPRESSIONS.get(kind.kind, "{}").format(identifier(field.name))
    wire = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    match kind.kind:
        case "varbinary":
            return Carrier(select, pa.large_string(), as_binary)
        case "varchar":
            return Carrier(select, pa.large_string(), _same)
        case "date":
            return Carrier(select, pa.int32(), lambda array: array.view(pa.date32()))
        case "time":
            return Carrier(select, pa.int64(), lambda array: array.view(pa.time64("us")))
        case "datetime":
            zoned = pa.timestamp("us", wire.tz)
            return Carrier(select, pa.int64(), lambda array: array.view(zoned))
        case "decimal":
            return Carrier(select, pa.decimal128(wire.precision, wire.scale), _same)
        case "float":
            return Carrier(select, pa.float64(), _same)
        case "tinyint" if pa.types.is_boolean(wire):
            return Carrier(select, pa.int8(), lambda array: array.cast(pa.bool_()))
        case _:
            return Carrier(select, wire, _same)


def _same(array: pa.Array) -> pa.Array:
    return array
