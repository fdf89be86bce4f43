"""Arrow batches into a table and back.

In: as the text that LOAD DATA LOCAL reads, sent from memory. One statement a batch: its rows and warnings are counted
at once, and other sessions that wait for the marker see progress. LOCAL makes warnings of errors and skips duplicates,
so the server's count has to be the batch's, without a warning.

Out, for `verify`: the server makes a line of CSV of each row and pyarrow parses them, with every column in a form that
loses nothing: moments as whole microseconds since 1970, bytes in hex, floats as doubles with their shortest exact
digits.
"""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pymysql
from pyarrow import csv

from lockstep.connections.mariadb.connection import MariaDbDatabase
from lockstep.connections.mariadb.errors import without_values
from lockstep.connections.mariadb.wire import Cursor, Loader, close_quietly, compose, identifier
from lockstep.connections.names import Relation
from lockstep.errors import SinkRejected, SinkUnavailable
from lockstep.observability.redaction import cause, describe_error, rows_shown, with_hint
from lockstep.sinks.mariadb.column_types import MariaDbType, Unfit, mariadb_type
from lockstep.sinks.tables.arrow_values import Carrier, as_binary, options, restore
from lockstep.sinks.tables.dialect import RowEncoding
from lockstep.sinks.values import Batches

_BATCH_ROWS = 16_384
_EMPTY, _TAB, _NEWLINE, _NULL = (pa.scalar(text, pa.large_string()) for text in ("", "\t", "\n", "\\N"))

_COMMA = ", ',', "
_READ_ROWS, _READ_LONG_ROWS = 65_536, 8
_MICROSECONDS = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {})"
_EXPRESSIONS = {
    "varbinary": "CONCAT('\"', LOWER(HEX({})), '\"')",
    "varchar": "CONCAT('\"', REPLACE({}, '\"', '\"\"'), '\"')",
    "date": "DATEDIFF({}, '1970-01-01')",
    "time": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', TIMESTAMP('1970-01-01', {}))",
    "datetime": _MICROSECONDS,
    "float": "CAST({} AS double)",
}

_Piece: TypeAlias = tuple[memoryview, int]  #: the text and how many rows it has


@dataclass(frozen=True)
class LoadEncoding(RowEncoding):
    """Encodes an output's batches as lines: by name, in the order of `fields`, the epoch last."""

    database: MariaDbDatabase
    fields: tuple[tuple[str, MariaDbType], ...]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.fields] + ([self.epoch_column] if self.epoch_column else [])

    def send(self, cursor: Cursor, table: Relation, batches: Batches) -> int:
        total, statement = 0, self._statement(table)
        with closing(_encode_ahead(self._pieces(batches))) as pieces:
            for data, rows in pieces:
                loaded = loader_of(cursor).load(statement, [data])
                if loaded.warnings or loaded.rows != rows:
                    raise self.rejection(
                        f"the server took {loaded.rows} of {rows} rows with {loaded.warnings} warnings: "
                        f"{_warnings(cursor)}"
                    )
                total += rows
        self.require_complete(total, batches)
        return total

    def check(self, batches: Batches) -> int:
        return sum(rows for _, rows in self._pieces(batches))

    def _statement(self, relation: Relation) -> str:
        """LOAD DATA without parameters."""
        columns, assignments = [], []
        for index, (name, kind) in enumerate(self.fields):
            if kind.load == "{}":
                columns.append(identifier(name))
            else:
                columns.append(f"@lockstep_{index}")
                assignments.append(f"{identifier(name)} = {kind.load.format(f'@lockstep_{index}')}")
        if self.epoch_column:
            assignments.append(f"{identifier(self.epoch_column)} = {self.epoch:d}")
        template = (
            "LOAD DATA LOCAL INFILE 'lockstep' INTO TABLE {table} CHARACTER SET utf8mb4 "
            "FIELDS TERMINATED BY '\\t' ESCAPED BY '\\\\' LINES TERMINATED BY '\\n' "
        )
        lists = f"({', '.join(columns)})" + (f" SET {', '.join(assignments)}" if assignments else "")
        return compose(template, table=relation.names) + lists

    def _pieces(self, batches: Batches) -> Iterator[_Piece]:
        """Raises `SinkRejected` for values that MariaDB would change."""
        for batch in batches:
            for start in range(0, batch.num_rows, _BATCH_ROWS):
                piece = batch.slice(start, _BATCH_ROWS)
                yield self._lines(piece), piece.num_rows

    def _lines(self, batch: pa.RecordBatch) -> memoryview:
        columns = []
        for name, kind in self.fields:
            try:
                text = kind.text(batch.column(name))
            except Unfit as unfit:
                raise SinkRejected(f"{self.where}: column {name} has {unfit}") from None
            columns.append(text.fill_null(_NULL) if text.null_count else text)
        columns[-1] = pc.binary_join_element_wise(columns[-1], _NEWLINE, _EMPTY)
        joined = pc.binary_join_element_wise(*columns, _TAB)
        offsets = np.frombuffer(joined.buffers()[1], np.int64, len(joined) + 1, joined.offset * 8)
        return memoryview(joined.buffers()[2])[offsets[0] : offsets[-1]]


def loader_of(cursor: Cursor) -> Loader:
    """The cursor's connection, which sends the data of LOAD DATA."""
    assert isinstance(cursor.connection, Loader)
    return cursor.connection


def _encode_ahead(pieces: Iterator[_Piece]) -> Generator[_Piece, None, None]:
    """Yield the pieces, each encoded by a thread while the server loads the one before."""
    with ThreadPoolExecutor(1, thread_name_prefix="lockstep-encoder") as encoder:
        future = encoder.submit(next, pieces, None)
        while (piece := future.result()) is not None:
            future = encoder.submit(next, pieces, None)
            yield piece


def _warnings(cursor: Cursor) -> str:
    """The server's warnings, once each; a duplicate key is one of them."""
    cursor.execute("SHOW WARNINGS LIMIT 5")
    warnings = [(int(code), str(message)) for _, code, message in cursor.fetchall()]
    if rows_shown() or not warnings:
        return "; ".join(dict.fromkeys(message for _, message in warnings)) or "a row was skipped"
    return with_hint("; ".join(dict.fromkeys(without_values(code, message) for code, message in warnings)))


# --- reading ----------------------------------------------------------------------------------------------------------


def read_rows(
    database: MariaDbDatabase, relation: Relation, epoch_column: str, epoch: int, schema: pa.Schema
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
    """SELECT of one text a row. A function whose result is larger than max_allowed_packet gives NULL,
    which makes the line NULL."""

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
        """Rows whose line is NULL, column by column, without a function around texts and bytes."""
        fields = zip(self.names, self.carriers, strict=True)
        columns = (name if _is_long(carrier) else _field(name, carrier) for name, carrier in fields)
        return f"SELECT {', '.join(columns)} {self.source} AND {self.text} IS NULL"


def _read(connection: Loader, line: _Line, schema: pa.Schema, where: str) -> Iterator[pa.RecordBatch]:
    long, read = 0, 0
    for rows in _fetched(connection, line.lines, _READ_ROWS):
        short = [str(text) for (text,) in rows if text is not None]
        long += len(rows) - len(short)
        if short:
            yield from _parsed("\n".join([*short, ""]).encode(), line.carriers, schema, where)
    for rows in _fetched(connection, line.long_rows, _READ_LONG_ROWS) if long else ():
        read += len(rows)
        lines = (",".join(map(_as_csv, row, line.carriers)) for row in rows)
        yield from _parsed("\n".join([*lines, ""]).encode(), line.carriers, schema, where)
    if read != long:
        raise SinkUnavailable(f"{where}: it changes while it is read; try again")


def _fetched(connection: Loader, query: str, size: int) -> Iterator[Sequence[tuple[object, ...]]]:
    with connection.cursor(pymysql.cursors.SSCursor) as cursor:
        cursor.execute(query)
        while rows := cursor.fetchmany(size):
            yield rows


def _field(name: str, carrier: Carrier) -> str:
    return f"IF({name} IS NULL, '', {carrier.select})"


def _is_long(carrier: Carrier) -> bool:
    """True for texts and bytes; every other value is short, and has the same text as in a line."""
    return bool(carrier.csv_type == pa.large_string())


def _as_csv(value: object, carrier: Carrier) -> str:
    """A field of `long_rows` as in a line."""
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
        raise SinkRejected(
            f"{where}: its rows don't come back as the output's types: {describe_error(error)}"
        ) from cause(error, True)


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
