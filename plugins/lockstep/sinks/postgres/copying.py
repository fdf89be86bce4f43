"""Arrow batches into a table and back, by COPY.

In: pgpq's binary encoder, or without it CSV, slower and as exact, in a thread of its own while the server reads. Out,
for `verify`: CSV that pyarrow parses, each column in a form that loses nothing: moments as whole microseconds since
1970, bytes in hex, lists as JSON of texts, floats with their shortest exact digits.
"""

from __future__ import annotations

import io
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from queue import Empty, Full, Queue
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import psycopg2
import pyarrow as pa
import pyarrow.compute as pc
from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor
from pyarrow import csv, types

from lockstep.connections.names import Relation
from lockstep.connections.postgres.connection import PostgresDatabase, close_quietly
from lockstep.connections.postgres.errors import line_of, quotes_row
from lockstep.errors import SinkRejected
from lockstep.observability.redaction import cause, describe_error, rows_shown, with_hint
from lockstep.sinks.postgres.column_types import PgType, PostgresTargetColumn, postgres_type, to_wire
from lockstep.sinks.tables.arrow_values import (
    Carrier,
    as_binary,
    as_hex,
    has_character,
    int64s,
    longest,
    options,
    restore,
)
from lockstep.sinks.tables.dialect import RowEncoding
from lockstep.sinks.values import Batches

try:
    import pgpq
except ImportError:
    pgpq = None  # type: ignore[assignment]

_log = logging.getLogger(__name__)
_ROWS = 8_192  # pgpq holds the GIL while it encodes: short turns keep the sender supplied
_QUEUE_LENGTH = 4
_QUEUE_SECONDS = 0.1
_BLOCK_BYTES = 16 << 20  #: of CSV at a time; a single row has to fit
_MAX_VALUE_BYTES = 1 << 28  #: a value may have four times as many

_QUOTED = csv.WriteOptions(include_header=False, quoting_style="all_valid")  # what isn't quoted is null
_CSV = "FORMAT csv, ENCODING 'UTF8'"  #: COPY's options for the output of `CsvEncoder`
_DAY = 86_400 * 1_000_000  # in microseconds
_FOUR_DIGITS = (-719_162, 2_932_896)  #: days of the years 1 to 9999, since 1970
_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}

_MICROSECONDS = "(extract(epoch FROM {}) * 1000000)::bigint"
_EXPRESSIONS = {
    "bytea": "encode({}, 'hex')",
    "date": "({} - date '1970-01-01')",
    "time": _MICROSECONDS,
    "timestamp": _MICROSECONDS,
    "timestamptz": _MICROSECONDS,
    "numeric": "trim_scale({})",
}
_LIST = (
    "CASE WHEN {column} IS NULL THEN NULL ELSE (SELECT coalesce(json_agg(({item})::text ORDER BY n), '[]'::json) "
    "FROM unnest({column}) WITH ORDINALITY AS items(item, n)) END"
)

_Piece: TypeAlias = bytes | BaseException | None


@dataclass(frozen=True)
class CopyEncoding(RowEncoding):
    """Encodes an output's batches as rows of COPY: by name, in the order of `names`."""

    database: PostgresDatabase
    fields: tuple[tuple[str, PgType, PostgresTargetColumn], ...]

    @property
    def by_text(self) -> bool:
        return any(column.reads_text for _, _, column in self.fields)

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.fields] + ([self.epoch_column] if self.epoch_column else [])

    @property
    def schema(self) -> pa.Schema:
        columns = [pa.field(name, kind.wire) for name, kind, _ in self.fields]
        return pa.schema(columns + ([pa.field(self.epoch_column, pa.int64())] if self.epoch_column else []))

    def send(self, cursor: Cursor, table: Relation, batches: Batches) -> int:
        """Send all rows, see `RowEncoding.send`. Errors name the row that the server refuses, where rows go as CSV."""
        options = sql.SQL(_CSV if self.by_text or pgpq is None else "FORMAT binary")
        columns = sql.SQL(", ").join(map(sql.Identifier, self.names))
        statement = sql.SQL("COPY {} ({}) FROM STDIN ({})").format(sql.Identifier(*table.names), columns, options)
        with self.database.naming(self.doing, self.rejected), _EncodedStream(self, batches) as stream:
            try:
                cursor.copy_expert(statement, cast(Any, stream))  # read() is all that COPY FROM uses
            except psycopg2.Error as error:
                if stream.failure is not None:  # the encoder's failure is the cause, the server only echoes it
                    raise stream.failure from None
                if not self.by_text or (line := line_of(error)) is None:
                    raise
                doing = f"{self.doing}: {self._row_at(batches, line)}"
                raise self.database.named(error, doing, self.rejected) from cause(error, quotes_row(error))
        if not cursor.rowcount == stream.rows == batches.rows:
            raise self.rejection(
                f"the server took {cursor.rowcount} of {stream.rows} rows, the manifest has {batches.rows}: a trigger "
                "may drop rows"
            )
        return stream.rows

    def pieces(self, batches: Batches) -> Iterator[tuple[bytes, int]]:
        """(bytes, rows) of one COPY stream, header and trailer included. Raises `SinkRejected` for values that the
        server would change."""
        encoder = self._encoder()
        yield encoder.write_header(), 0
        for batch in batches:
            wired = self.wire(batch)
            for start in range(0, wired.num_rows, _ROWS):
                piece = wired.slice(start, _ROWS)
                yield self._encoded(encoder, piece), piece.num_rows
        yield encoder.finish(), 0

    def check(self, batches: Batches) -> int:
        """Encode without sending. The encoder gets only the first rows of each batch: it accepts or refuses types."""
        encoder, rows = self._encoder(), 0
        encoder.write_header()
        for batch in batches:
            self._encoded(encoder, self.wire(batch).slice(0, _ROWS))
            rows += batch.num_rows
        return rows

    def _encoder(self) -> Encoder:
        return CsvEncoder() if self.by_text else encoder_of(self.schema)

    def _encoded(self, encoder: Encoder, piece: pa.RecordBatch) -> bytes:
        try:
            return encoder.write_batch(piece)
        except (ValueError, TypeError, RuntimeError, OverflowError) as error:
            raise SinkRejected(f"{self.where}: the rows can't be encoded: {describe_error(error)}") from cause(
                error, True
            )

    def wire(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        describe = partial(self._row, batch)
        arrays = [
            to_wire(batch.column(name), kind, column, f"{self.where}: column {name}", describe)
            for name, kind, column in self.fields
        ]
        if self.epoch_column:
            arrays.append(int64s(self.epoch, batch.num_rows))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def is_harmless(self, cursor: Cursor, batch: pa.RecordBatch) -> bool:
        """True without nulls in columns that are NOT NULL, and with texts that the server accepts: no NUL, and none
        that its encoding lacks."""
        if any(column.not_null and batch[name].null_count for name, _, column in self.fields):
            return False
        encoding, lengths = cursor.connection.info.parameter_status("server_encoding"), longest(batch)
        if encoding != "UTF8" or lengths is None or max(lengths.values(), default=0) > _MAX_VALUE_BYTES:
            return False
        return not has_character(batch, "\0")

    def _row_at(self, batches: Batches, line: int) -> str:
        """The row that ends at that line of a COPY by CSV, by its key.

        The server doesn't count line feeds of the first row, but its carriage returns: it doesn't know the end of line
        yet.
        """
        first = True
        for batch in batches:
            wired, encoder = self.wire(batch), self._encoder()
            if first and batch.num_rows:
                text, first = encoder.write_batch(wired.slice(0, 1)), False
                line += text.count(b"\n") - 1 - text.count(b"\r")
            lines = encoder.write_batch(wired).count(b"\n")
            if lines < line:
                line -= lines
                continue
            for row in range(batch.num_rows):
                line -= encoder.write_batch(wired.slice(row, 1)).count(b"\n")
                if line <= 0:
                    return self._row(batch, row)
        return "a row"

    def _row(self, batch: pa.RecordBatch, row: int) -> str:
        """A row by its primary key, or by the output's first column. A key that isn't a number counts as a value of the
        row, which may not be shown."""
        names = [name for name, _, column in self.fields if column.in_key] or [self.fields[0][0]]
        if not rows_shown() and not all(pa.types.is_integer(batch.schema.field(name).type) for name in names):
            return with_hint(f"a row with some {', '.join(names)}")
        return "the row with " + ", ".join(f"{name} {batch.column(name)[row]}" for name in names)


class _EncodedStream:
    """A file for psycopg2 to read, filled by the encoder's thread through a short queue."""

    def __init__(self, encoding: CopyEncoding, batches: Batches) -> None:
        self.rows = 0
        self.failure: BaseException | None = None
        self._queue: Queue[_Piece] = Queue(_QUEUE_LENGTH)
        self._stopped = threading.Event()
        self._pieces = encoding.pieces(batches)
        self._thread = threading.Thread(target=self._encode, name="lockstep-encoder", daemon=True)

    def __enter__(self) -> _EncodedStream:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        with suppress(Empty):
            while True:
                self._queue.get_nowait()
        self._thread.join()

    def read(self, _size: int = -1) -> bytes:
        """The next piece, of any length: psycopg2 accepts that."""
        piece = self._queue.get()
        if isinstance(piece, bytes):
            return piece
        self._queue.put(None)
        if piece is not None:
            self.failure = piece
            raise piece
        return b""

    def _encode(self) -> None:
        try:
            for data, rows in self._pieces:
                self.rows += rows
                if data and not self._offer(data):
                    return
            self._offer(None)
        except BaseException as error:  # raised in the thread that reads
            self._offer(error)

    def _offer(self, piece: _Piece) -> bool:
        while not self._stopped.is_set():
            with suppress(Full):
                self._queue.put(piece, timeout=_QUEUE_SECONDS)
                return True
        return False


# --- encoders ---------------------------------------------------------------------------------------------------------


class Encoder(Protocol):
    """One COPY stream: header, batches of one schema, end."""

    def write_header(self) -> bytes: ...

    def write_batch(self, batch: pa.RecordBatch) -> bytes: ...

    def finish(self) -> bytes: ...


def encoder_of(schema: pa.Schema) -> Encoder:
    """An encoder for rows of `schema`, each column of a type that `postgres_type` names as a wire."""
    if pgpq is not None:
        encoder: Encoder = pgpq.ArrowToPostgresBinaryEncoder(schema)
        return encoder
    _warn_once()
    return CsvEncoder()


@cache
def _warn_once() -> None:
    _log.warning("pgpq can't be imported: rows go into PostgreSQL by CSV, which is slower: pip install pgpq")


class CsvEncoder:
    """Writes every value as a text that its type's input function reads back to the bit, with any session settings."""

    def write_header(self) -> bytes:
        return b""

    def write_batch(self, batch: pa.RecordBatch) -> bytes:
        texts = [text_of(column) for column in batch.columns]
        out = io.BytesIO()
        csv.write_csv(pa.RecordBatch.from_arrays(texts, names=[str(n) for n in range(len(texts))]), out, _QUOTED)
        return out.getvalue()

    def finish(self) -> bytes:
        return b""


def text_of(array: pa.Array) -> pa.Array:
    """Large strings that PostgreSQL reads as the values of `array`; nulls stay null."""
    if types.is_list(array.type):
        return _lists(array)
    if types.is_date32(array.type):
        return _dates(array)
    if types.is_timestamp(array.type):
        return _moments(array)
    if types.is_binary(array.type) or types.is_large_binary(array.type) or types.is_fixed_size_binary(array.type):
        return _between("\\x", as_hex(array.cast(pa.large_binary())), "")
    return array.cast(pa.large_string())


def _lists(array: pa.Array) -> pa.Array:
    items = text_of(array.flatten())
    for special in ("\\", '"'):
        items = pc.replace_substring(items, special, f"\\{special}")
    items = _between('"', items, '"').fill_null("NULL")
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int64())
    joined = pc.binary_join(pa.LargeListArray.from_arrays(offsets, items), pa.scalar(",", pa.large_string()))
    return pc.if_else(array.is_valid(), _between("{", joined, "}"), pa.scalar(None, pa.large_string()))


def _dates(array: pa.Array) -> pa.Array:
    days = array.view(pa.int32())
    return _with_odd_years(array, days, _FOUR_DIGITS, lambda day: "{}{}".format(*_date(day)))


def _moments(array: pa.Array) -> pa.Array:
    factor = _MICROS[array.type.unit]
    zone = "+00" if array.type.tz else ""
    plain = array.view(pa.timestamp(array.type.unit))  # Arrow keeps UTC
    first, last = _FOUR_DIGITS
    bounds = (first * _DAY // factor, (last + 1) * _DAY // factor - 1)

    def text(value: int) -> str:
        days, rest = divmod(value * factor, _DAY)
        seconds, micros = divmod(rest, 1_000_000)
        day, era = _date(days)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"
        return f"{day} {clock}{zone}{era}"

    return _with_odd_years(plain, plain.view(pa.int64()), bounds, text, zone)


def _with_odd_years(
    array: pa.Array, numbers: pa.Array, bounds: tuple[int, int], text_of_odd: Callable[[int], str], zone: str = ""
) -> pa.Array:
    """Arrow's own text of years with four digits, `text_of_odd` for the others, which are rare."""
    odd = pc.or_(pc.less(numbers, bounds[0]), pc.greater(numbers, bounds[1])).fill_null(False)
    if not pc.any(odd).as_py():
        return _between("", array.cast(pa.large_string()), zone)
    zero = pa.scalar(0, numbers.type)
    plain = _between("", pc.if_else(odd, zero, numbers).view(array.type).cast(pa.large_string()), zone)
    texts = pa.array(map(text_of_odd, numbers.filter(odd).to_pylist()), pa.large_string())
    return pc.replace_with_mask(plain, odd, texts)


def _date(days: int) -> tuple[str, str]:
    """(year-month-day, " BC" or nothing) of a day since 1970, in the proleptic Gregorian calendar."""
    years, rest = divmod(days + 719_468, 146_097)  # spans of 400 years from the first of March of the year 0
    year = (rest - rest // 1_460 + rest // 36_524 - rest // 146_096) // 365
    rest -= 365 * year + year // 4 - year // 100
    month = (5 * rest + 2) // 153
    day = rest - (153 * month + 2) // 5 + 1
    year += 400 * years + (month >= 10)
    month = month - 9 if month >= 10 else month + 3
    return f"{year if year > 0 else 1 - year:04}-{month:02}-{day:02}", "" if year > 0 else " BC"


def _between(before: str, array: pa.Array, after: str) -> pa.Array:
    if not before and not after:
        return array
    scalars = [pa.scalar(text, pa.large_string()) for text in (before, after, "")]
    return pc.binary_join_element_wise(scalars[0], array, scalars[1], scalars[2])


# --- reading ----------------------------------------------------------------------------------------------------------


def read_rows(
    database: PostgresDatabase, relation: Relation, epoch_column: str, epoch: int, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The committed rows of `epoch`, cast to `schema`, in any order. Raises `SinkUnavailable`, `SinkRejected`."""
    carriers = [_carrier(postgres_type(field.type), sql.Identifier(field.name)) for field in schema]
    selected = sql.SQL(", ").join(
        sql.SQL("{} AS {}").format(carrier.select, sql.Identifier(str(index))) for index, carrier in enumerate(carriers)
    )
    query = sql.SQL("COPY (SELECT {} FROM {} WHERE {} = {}) TO STDOUT (FORMAT csv, HEADER)").format(
        selected, sql.Identifier(*relation.names), sql.Identifier(epoch_column), sql.Literal(epoch)
    )
    where = f"{database.where}: reading table {relation}"
    with _CsvPipe(database, query, where) as pipe:
        try:
            for batch in csv.open_csv(pipe.reader, **options(carriers, None, _BLOCK_BYTES)):
                yield restore(batch, carriers, schema)
        except pa.ArrowInvalid as error:
            pipe.raise_failure()
            raise SinkRejected(
                f"{where}: its rows don't come back as the output's types: {describe_error(error)}"
            ) from cause(error, True)
        pipe.raise_failure()


class _CsvPipe:
    """A COPY TO STDOUT that runs in a thread and can be read as a file."""

    def __init__(self, database: PostgresDatabase, query: sql.Composable, where: str) -> None:
        self._database, self._query, self._where = database, query, where
        self._failure: BaseException | None = None

    def __enter__(self) -> _CsvPipe:
        self._connection = self._database.connect(f"lockstep {self._database.where} verify"[:63])
        out, into = os.pipe()
        self.reader = os.fdopen(out, "rb")
        self._thread = threading.Thread(target=self._copy, args=(into,), name="lockstep-reader", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.close()  # the broken pipe stops a COPY that still runs
        self._thread.join()
        close_quietly(self._connection)

    def raise_failure(self) -> None:
        """Raise what ended the COPY, if anything did."""
        self._thread.join()
        if isinstance(self._failure, psycopg2.Error):
            error = self._database.named(self._failure, self._where)
            raise error from cause(self._failure, quotes_row(self._failure))
        if self._failure is not None:
            raise self._failure

    def _copy(self, into: int) -> None:
        try:
            with os.fdopen(into, "wb", 1 << 20) as file, self._connection.cursor() as cursor:
                self._database.guard(cursor)
                cursor.execute("SET LOCAL extra_float_digits = 1")
                cursor.copy_expert(self._query, file)
        except BaseException as error:  # also a broken pipe, after the reader has closed its end
            self._failure = error


# --- carriers --------------------------------------------------------------------------------------------------------


def _carrier(kind: PgType | None, column: sql.Composable) -> Carrier:
    assert kind is not None, "the table was compared with the schema"
    if kind.is_list:
        item = _carrier(PgType(kind.name[1:], kind.wire.value_type, ""), sql.Identifier("item"))
        select = sql.SQL(_LIST).format(column=column, item=item.select)
        return Carrier(select, pa.string(), lambda array: _parse_lists(array, item))
    select = sql.SQL(_EXPRESSIONS.get(kind.name, "{}")).format(column)
    match kind.name:
        case "bytea":
            return Carrier(select, pa.large_string(), as_binary)
        case "date":
            return Carrier(select, pa.int32(), lambda array: array.view(pa.date32()))
        case "time":
            return Carrier(select, pa.int64(), lambda array: array.view(pa.time64("us")))
        case "timestamp" | "timestamptz":
            micros = pa.timestamp("us", kind.wire.tz)
            return Carrier(select, pa.int64(), lambda array: array.view(micros))
        case _:
            return Carrier(select, kind.wire, lambda array: array)


def _parse_lists(array: pa.Array, item: Carrier) -> pa.Array:
    values = [None if text is None else json.loads(text) for text in array.to_pylist()]
    flat = pa.array([element for value in values if value for element in value], pa.string())
    items = item.finish(flat.cast(item.csv_type))
    offsets = np.concatenate(([0], np.cumsum([len(value or ()) for value in values]))).astype(np.int32)
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.ListArray.from_arrays(pa.array(offsets), items, mask=mask)
