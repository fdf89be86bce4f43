"""Rows out of MariaDB on a Spark worker, which gets this module and `lockstep.errors` by value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pymysql
from pymysql.constants import FIELD_TYPE
from pymysql.converters import conversions
from pymysql.cursors import SSCursor

from lockstep.errors import BadRecords, StageFailed

_BATCH = 20_000  #: rows
#: Makes the text of values independent of the server's settings, shows a session one state, and reads without limits.
SETTINGS = (
    "SET SESSION sql_mode = '', time_zone = '+00:00', tx_isolation = 'REPEATABLE-READ', lock_wait_timeout = 10, "
    "sql_select_limit = 18446744073709551615, max_statement_time = 0, net_write_timeout = 300, wait_timeout = 300, "
    "idle_transaction_timeout = 300, idle_readonly_transaction_timeout = 300"
)


#: Types that pyarrow converts from text by column, which is faster than the driver's conversion by value.
_ARROWS = (FIELD_TYPE.DECIMAL, FIELD_TYPE.NEWDECIMAL, FIELD_TYPE.DATE, FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP)
_CONVERSIONS = {kind: convert for kind, convert in conversions.items() if kind not in _ARROWS}


@dataclass(frozen=True)
class SelectOut:
    """Runs one query at a time on a worker.

    `arguments`: of the driver's connect, including the password. `show_values`: errors may quote values; otherwise they
    contain `hint`. `of_rows`: numbers of the server's errors that quote values. Numbers above `servers` are
    application-defined.
    """

    arguments: Mapping[str, Any] = field(repr=False)
    schema: pa.Schema
    show_values: bool = field(default=False, repr=False)
    hint: str = field(default="", repr=False)
    of_rows: frozenset[int] = field(default=frozenset(), repr=False)
    servers: int = field(default=0, repr=False)

    def __call__(self, query: str) -> Iterator[pa.RecordBatch]:
        """Yield the query's rows as batches of `schema`.

        Raises `BadRecords` or `StageFailed`, without the login, and without values of rows unless `show_values`.
        """
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
            raise StageFailed(f"reading from MariaDB: {self._refused(error)}") from None

    def _refused(self, error: Exception) -> str:
        code = error.args[0] if isinstance(error, pymysql.MySQLError) and error.args else None
        if not self.show_values and isinstance(code, int) and (code in self.of_rows or code > self.servers):
            return f"the server can't give a row, by its error {code} {self.hint}".rstrip()
        return str(error).replace(self.arguments.get("password") or "\0", "***")

    def _batch(self, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
        columns = zip(zip(*rows, strict=True), self.schema, strict=True)
        return pa.RecordBatch.from_arrays([self._array(*column) for column in columns], schema=self.schema)

    def _array(self, values: Sequence[Any], column: pa.Field) -> pa.Array:
        try:
            return _array(values, column)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            why = f"UNREADABLE_VALUE: column {column.name} has one that {column.type} can't hold"
            raise BadRecords(f"{why}: {error}" if self.show_values else f"{why} {self.hint}".rstrip()) from None


def _array(values: Sequence[Any], column: pa.Field) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        return pa.array(values, pa.string()).cast(pa.timestamp("us")).view(column.type)
    if pa.types.is_date32(column.type):
        return pa.array(values, pa.string()).cast(column.type)
    if pa.types.is_decimal(column.type):  # text, but for an unsigned integer
        return pa.array([value if value is None else str(value) for value in values]).cast(column.type)
    return pa.array(values, column.type)
