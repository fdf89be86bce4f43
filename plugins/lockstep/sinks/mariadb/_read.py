"""Rows back out of a table, exactly as they went in: for `verify`.

The server makes a line of CSV of each row and pyarrow parses them, with every column in a form that loses nothing:
moments as whole microseconds since 1970, bytes in hex, floats as doubles with their shortest exact digits.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pymysql
from pyarrow import csv

from lockstep.connections.mariadb.connection import Database
from lockstep.connections.mariadb.sql import compose, identifier
from lockstep.connections.mariadb.wire import Loader, close_quietly
from lockstep.connections.names import Relation
from lockstep.errors import SinkRejected, SinkUnavailable
from lockstep.observability.redaction import cause, describe_error
from lockstep.sinks.mariadb._types import mariadb_type
from lockstep.sinks.tables.csv_carriers import Carrier, as_binary, options, restore

_COMMA = ", ',', "
_ROWS, _LONG_ROWS = 65_536, 8

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
    line = _Line(relation, epoch_column, epoch, carriers, [identifier(name) for name in schema.names])
    where = f"{database.where}: reading table {relation}"
    connection = database.connect()
    try:
        with database.naming(where):
            with connection.cursor() as cursor:
                database.guard(cursor)
            yield from _read(connection, line, schema, where)
    finally:
        close_quietly(connection)


@dataclass(frozen=True)
class _Line:
    """How the server makes one text of a row. A function whose result is larger than max_allowed_packet gives NULL, and
    with it the whole line is."""

    relation: Relation
    epoch_column: str
    epoch: int
    carriers: list[Carrier]
    names: list[str]

    @property
    def text(self) -> str:
        return f"CONCAT({_COMMA.join(map(_field, self.names, self.carriers))})"

    @property
    def source(self) -> str:
        source = compose("FROM {table} WHERE {column} = ", table=self.relation.names, column=self.epoch_column)
        return f"{source}{self.epoch:d}"

    @property
    def lines(self) -> str:
        return f"SELECT {self.text} {self.source}"

    @property
    def long_rows(self) -> str:
        """What has no line, column by column, without a function around the texts and bytes."""
        fields = zip(self.names, self.carriers, strict=True)
        columns = (name if _is_long(carrier) else _field(name, carrier) for name, carrier in fields)
        return f"SELECT {', '.join(columns)} {self.source} AND {self.text} IS NULL"


def _read(connection: Loader, line: _Line, schema: pa.Schema, where: str) -> Iterator[pa.RecordBatch]:
    long, read = 0, 0
    for rows in _fetched(connection, line.lines, _ROWS):
        short = [str(text) for (text,) in rows if text is not None]
        long += len(rows) - len(short)
        if short:
            yield from _parsed("\n".join([*short, ""]).encode(), line.carriers, schema, where)
    for rows in _fetched(connection, line.long_rows, _LONG_ROWS) if long else ():
        read += len(rows)
        lines = (",".join(map(_as_csv, row, line.carriers)) for row in rows)
        yield from _parsed("\n".join([*lines, ""]).encode(), line.carriers, schema, where)
    if read != long:
        raise SinkUnavailable(f"{where}: it changes while it is read; try again")


def _fetched(connection: Loader, query: str, at_once: int) -> Iterator[Sequence[tuple[object, ...]]]:
    with connection.cursor(pymysql.cursors.SSCursor) as cursor:
        cursor.execute(query)
        while rows := cursor.fetchmany(at_once):
            yield rows


def _field(name: str, carrier: Carrier) -> str:
    return f"IF({name} IS NULL, '', {carrier.select})"


def _is_long(carrier: Carrier) -> bool:
    """Texts and bytes; everything else is short, and comes as the text that it is in a line."""
    return bool(carrier.csv_type == pa.large_string())


def _as_csv(value: object, carrier: Carrier) -> str:
    """A field of `long_rows` as it would stand in a line."""
    if value is None:
        return ""
    if not _is_long(carrier):
        return value.decode() if isinstance(value, bytes) else str(value)
    text = value.hex() if isinstance(value, bytes) else str(value).replace('"', '""')
    return f'"{text}"'


def _parsed(lines: bytes, carriers: list[Carrier], schema: pa.Schema, where: str) -> Iterator[pa.RecordBatch]:
    names = [str(index) for index in range(len(carriers))]
    try:
        for batch in csv.open_csv(io.BytesIO(lines), **options(carriers, names, block=len(lines) + 1)):
            yield restore(batch, carriers, schema)
    except pa.ArrowInvalid as error:
        told = f"{where}: its rows don't come back as the output's types: {describe_error(error)}"
        raise SinkRejected(told) from cause(error, True)


def _carrier(field: pa.Field) -> Carrier:
    kind = mariadb_type(field.type)
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
