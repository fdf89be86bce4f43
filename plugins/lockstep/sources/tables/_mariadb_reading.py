"""Rows out of MariaDB on a Spark worker. This module goes there by value: it imports nothing of Lockstep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pymysql
from pymysql.constants import FIELD_TYPE
from pymysql.converters import conversions
from pymysql.cursors import SSCursor

_BATCH = 20_000  #: rows
#: What the text of values must not depend on; one state of the database for all that a session asks; every row of it,
#: however long that takes.
SETTINGS = (
    "SET SESSION time_zone = '+00:00', tx_isolation = 'REPEATABLE-READ', lock_wait_timeout = 10, "
    "sql_select_limit = 18446744073709551615, max_statement_time = 0, net_write_timeout = 300, wait_timeout = 300, "
    "idle_transaction_timeout = 300, idle_readonly_transaction_timeout = 300"
)


#: What pyarrow makes of text, a column at a time, and the driver would make of it a value at a time.
_ARROWS = (FIELD_TYPE.DECIMAL, FIELD_TYPE.NEWDECIMAL, FIELD_TYPE.DATE, FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP)
_CONVERSIONS = {kind: convert for kind, convert in conversions.items() if kind not in _ARROWS}


@dataclass(frozen=True)
class SelectOut:
    """Runs one query at a time. `arguments`: of the driver's connect, the password among them."""

    arguments: Mapping[str, Any] = field(repr=False)
    schema: pa.Schema

    def __call__(self, query: str) -> Iterator[pa.RecordBatch]:
        """The query's rows as batches of `schema`. Raises `RuntimeError` without the login in its text."""
        try:
            connection = pymysql.connect(**self.arguments, charset="utf8mb4", cursorclass=SSCursor, conv=_CONVERSIONS)
            try:
                with connection.cursor() as cursor:
                    cursor.execute(SETTINGS)
                    cursor.execute(query)
                    while rows := cursor.fetchmany(_BATCH):
                        yield self._batch(rows)
            finally:
                connection.close()
        except (pymysql.MySQLError, OSError) as error:
            text = str(error).replace(self.arguments.get("password") or "\0", "***")
            raise RuntimeError(f"reading from MariaDB: {text}") from None

    def _batch(self, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
        columns = zip(zip(*rows, strict=True), self.schema, strict=True)
        return pa.RecordBatch.from_arrays([_array(values, column) for values, column in columns], schema=self.schema)


def _array(values: Sequence[Any], column: pa.Field) -> pa.Array:
    try:
        if pa.types.is_timestamp(column.type):
            return pa.array(values, pa.string()).cast(pa.timestamp("us")).view(column.type)
        if pa.types.is_date32(column.type):
            return pa.array(values, pa.string()).cast(column.type)
        if pa.types.is_decimal(column.type):  # text, but for an unsigned integer
            return pa.array([value if value is None else str(value) for value in values]).cast(column.type)
        return pa.array(values, column.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise RuntimeError(
            f"UNREADABLE_VALUE: column {column.name} has one that {column.type} can't hold: {error}"
        ) from None
