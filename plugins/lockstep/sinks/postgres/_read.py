"""Rows back out of a table, exactly as they went in: for `verify`.

COPY sends CSV and pyarrow parses it, with every column in a form that loses nothing: moments as whole microseconds
since 1970, bytes in hex, lists as JSON of texts, floats with their shortest exact digits.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg2
import pyarrow as pa
from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor
from pyarrow import csv

from lockstep.connections.names import Relation
from lockstep.connections.postgres.connection import Database, close_quietly
from lockstep.connections.postgres.refusals import quotes_row
from lockstep.errors import SinkRejected
from lockstep.observability.redaction import cause, describe_error
from lockstep.sinks.postgres._types import PgType, postgres_type
from lockstep.sinks.tables.csv_carriers import Carrier, as_binary, options, restore

_BLOCK = 16 << 20  #: bytes of CSV at a time; a single row has to fit

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


def read_rows(
    database: Database, relation: Relation, epoch_column: str, epoch: int, schema: pa.Schema
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
            for batch in csv.open_csv(pipe.reader, **options(carriers, None, _BLOCK)):
                yield restore(batch, carriers, schema)
        except pa.ArrowInvalid as error:
            pipe.raise_failure()
            told = f"{where}: its rows don't come back as the output's types: {describe_error(error)}"
            raise SinkRejected(told) from cause(error, True)
        pipe.raise_failure()


class _CsvPipe:
    """A COPY TO STDOUT that runs in a thread and can be read as a file."""

    def __init__(self, database: Database, query: sql.Composable, where: str) -> None:
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
        self.reader.close()  # a writer that is still at it stops at the broken pipe
        self._thread.join()
        close_quietly(self._connection)

    def raise_failure(self) -> None:
        """Raise what ended the COPY, if anything did."""
        self._thread.join()
        if isinstance(self._failure, psycopg2.Error):
            named = self._database.named(self._failure, self._where)
            raise named from cause(self._failure, quotes_row(self._failure))
        if self._failure is not None:
            raise self._failure

    def _copy(self, into: int) -> None:
        try:
            with os.fdopen(into, "wb", 1 << 20) as file, self._connection.cursor() as cursor:
                self._run(cursor, file)
        except BaseException as error:  # also a broken pipe: then nobody reads any more, nor asks
            self._failure = error

    def _run(self, cursor: Cursor, file: Any) -> None:
        self._database.guard(cursor)
        cursor.execute("SET LOCAL extra_float_digits = 1")
        cursor.copy_expert(self._query, file)


# --- carriers --------------------------------------------------------------------------------------------------------


def _carrier(kind: PgType | None, column: sql.Composable) -> Carrier:
    assert kind is not None, "the table was compared with the schema"
    if kind.is_list:
        item = _carrier(PgType(kind.name[1:], kind.wire.value_type, ""), sql.Identifier("item"))
        select = sql.SQL(_LIST).format(column=column, item=item.select)
        return Carrier(select, pa.string(), lambda array: _lists(array, item))
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


def _lists(array: pa.Array, item: Carrier) -> pa.Array:
    values = [None if text is None else json.loads(text) for text in array.to_pylist()]
    flat = pa.array([element for value in values if value for element in value], pa.string())
    items = item.finish(flat.cast(item.csv_type))
    offsets = np.concatenate(([0], np.cumsum([len(value or ()) for value in values]))).astype(np.int32)
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.ListArray.from_arrays(pa.array(offsets), items, mask=mask)
