"""Arrow batches into a table: a thread of their own encodes them while the server takes them in by COPY."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, Full, Queue
from typing import Any, TypeAlias, cast

import numpy as np
import psycopg2
import pyarrow as pa
from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor

from lockstep.connections.names import Relation
from lockstep.connections.postgres.connection import Database
from lockstep.connections.postgres.refusals import line_of, quotes_row
from lockstep.errors import PreflightRefused, SinkRejected
from lockstep.observability.redaction import cause, describe_error, rows_shown, with_hint
from lockstep.sinks.postgres._encoders import BY_TEXT, CsvEncoder, Encoder, copy_options, encoder_of
from lockstep.sinks.postgres._harmless import takes_text, takes_what_fits
from lockstep.sinks.postgres._new_columns import add_columns
from lockstep.sinks.postgres._tables import Table, find_table
from lockstep.sinks.postgres._types import Column, PgType, postgres_type, to_wire
from lockstep.sinks.tables.load import TableLoad
from lockstep.sinks.values import Batches

_ROWS = 8_192  # pgpq holds the GIL while it encodes: short turns keep the sender fed
_AHEAD = 4
_PATIENCE = 0.1

_Piece: TypeAlias = bytes | BaseException | None


@dataclass(frozen=True)
class Copy(TableLoad[Cursor, "Encoding"]):
    """One output's way into one table for one epoch."""

    database: Database

    def _make_fit(self, cursor: Cursor, schema: pa.Schema) -> None:
        if not self.adds_columns:
            return
        table = find_table(cursor, self.relation, self.database.where)
        if table is not None and (new := table.lacking(schema, self.epoch_column)):
            add_columns(cursor, self.relation, new, self.database.where)

    def send(self, cursor: Cursor, encoding: Encoding, into: Relation, batches: Batches) -> int:
        with self.database.naming(self.what, self.rejected), _EncodedStream(encoding, batches) as stream:
            self._copy(cursor, encoding, into, stream, batches)
        if not cursor.rowcount == stream.rows == batches.rows:
            raise self.rejection(
                f"the server took {cursor.rowcount} of {stream.rows} rows, the manifest has {batches.rows}: a trigger "
                "may drop rows"
            )
        return stream.rows

    def _copy(
        self, cursor: Cursor, encoding: Encoding, into: Relation, stream: _EncodedStream, batches: Batches
    ) -> None:
        columns = sql.SQL(", ").join(map(sql.Identifier, encoding.names))
        options = sql.SQL(BY_TEXT) if encoding.by_text else copy_options()
        statement = sql.SQL("COPY {} ({}) FROM STDIN ({})").format(sql.Identifier(*into.names), columns, options)
        try:
            cursor.copy_expert(statement, cast(Any, stream))  # read() is all that COPY FROM uses
        except psycopg2.Error as error:
            if stream.failure is not None:  # what broke off the stream is the cause, the server only echoes it
                raise stream.failure from None
            if not encoding.by_text or (line := line_of(error)) is None:
                raise
            row = encoding.row_at(batches, line)
            raise self.database.named(error, f"{self.what}: {row}", self.rejected) from cause(error, quotes_row(error))

    def _takes_what_fits(self, cursor: Cursor, encoding: Encoding) -> bool:
        return takes_what_fits(cursor, self.relation, encoding.names)

    def _is_harmless(self, cursor: Cursor, encoding: Encoding, batch: pa.RecordBatch) -> bool:
        nulls = any(column.not_null and batch[name].null_count for name, _, column in encoding.fields)
        return not nulls and takes_text(cursor, batch)

    def _lock(self, cursor: Cursor) -> None:
        # the lock that COPY takes, taken before looking: no column changes its type in between
        statement = sql.SQL("LOCK TABLE {} IN ROW EXCLUSIVE MODE")
        cursor.execute(statement.format(sql.Identifier(*self.relation.names)))

    def _compare(self, cursor: Cursor, schema: pa.Schema) -> Encoding:
        table = find_table(cursor, self.relation, self.database.where)
        if table is None:
            raise PreflightRefused(f"{self.database.where}: table {self.relation} is gone: create it again")
        table.require_fit(f"{self.database.where}: output {self.output}", schema, self.epoch_column)
        return Encoding.of(table, schema, self.epoch, self.epoch_column, f"{self.database.where}: {self.what}")


@dataclass(frozen=True)
class Encoding:
    """How an output's batches become rows of COPY: by name, in the order of `names`."""

    fields: tuple[tuple[str, PgType, Column], ...]
    epoch_column: str | None
    epoch: int
    where: str

    @classmethod
    def of(cls, table: Table, schema: pa.Schema, epoch: int, epoch_column: str | None, where: str) -> Encoding:
        kinds = [(field.name, postgres_type(field.type)) for field in schema]
        fields = tuple((name, kind, table.columns[name]) for name, kind in kinds if kind is not None)
        return cls(fields, table.epoch_column(epoch_column), epoch, where)

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

    def pieces(self, batches: Batches) -> Iterator[tuple[bytes, int]]:
        """(bytes, rows) of one COPY stream, header and trailer included. Raises `SinkRejected` for unsafe values."""
        encoder = self._encoder()
        yield encoder.write_header(), 0
        for batch in batches:
            wired = self.wire(batch)
            for start in range(0, wired.num_rows, _ROWS):
                piece = wired.slice(start, _ROWS)
                yield self._encoded(encoder, piece), piece.num_rows
        yield encoder.finish(), 0

    def check(self, batches: Batches) -> int:
        """Rows, of which each is made fit for the encoder; it is tried with the first of each batch, as its types
        decide what it takes."""
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
            # pa.array and pa.repeat would import pandas first, which takes a second
            epochs = pa.py_buffer(np.full(batch.num_rows, self.epoch, np.int64))
            arrays.append(pa.Array.from_buffers(pa.int64(), batch.num_rows, [None, epochs]))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def row_at(self, batches: Batches, line: int) -> str:
        """The row that a COPY by text ends at that line, by its key. The server takes the first row's line feeds for
        none, and its carriage returns for some, as it doesn't know yet what ends a line."""
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
        """A row by its primary key, or by the output's first column; a key that isn't a number is a value of the row
        that may not be shown."""
        names = [name for name, _, column in self.fields if column.in_key] or [self.fields[0][0]]
        if not rows_shown() and not all(pa.types.is_integer(batch.schema.field(name).type) for name in names):
            return with_hint(f"a row with some {', '.join(names)}")
        return "the row with " + ", ".join(f"{name} {batch.column(name)[row]}" for name in names)


class _EncodedStream:
    """A file for psycopg2 to read, filled by the encoder's thread through a short queue."""

    def __init__(self, encoding: Encoding, batches: Batches) -> None:
        self.rows = 0
        self.failure: BaseException | None = None
        self._queue: Queue[_Piece] = Queue(_AHEAD)
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
        """The next piece, however long; psycopg2 takes any length."""
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
        except BaseException as error:  # it belongs to the thread that reads
            self._offer(error)

    def _offer(self, piece: _Piece) -> bool:
        while not self._stopped.is_set():
            with suppress(Full):
                self._queue.put(piece, timeout=_PATIENCE)
                return True
        return False
