"""Rows out of Postgres on a Spark worker: COPY sends CSV, and pyarrow parses it without loss.

Times are sent as whole microseconds since 1970, bytes in hex, floats with their shortest exact digits. This module is
shipped to the workers by value, with `lockstep.errors`; it imports nothing else of Lockstep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import Any

import psycopg2
import pyarrow as pa
from pyarrow import csv

from lockstep.errors import BadRecords, StageFailed

_IN_MEMORY = 64 << 20  #: bytes of CSV that are not worth a file
_BLOCK = 16 << 20  #: bytes of CSV at a time, or as many as the longest row has
_COLUMN = re.compile(r"CSV column #(\d+)")
_UNHELD = re.compile(r"'(\S.* where .*)'")

#: For every session that reads or compares values: their text must not depend on the server's settings, and reading may
#: take longer than a role's limits. transaction_timeout exists since Postgres 17.
SETTINGS = """
    SET timezone = 'UTC'; SET datestyle = 'ISO'; SET extra_float_digits = 1; SET lock_timeout = '10s';
    SET statement_timeout = 0;
    SELECT CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL
                THEN set_config('transaction_timeout', '0', false) END
"""


@dataclass(frozen=True)
class CopyOut:
    """Runs one query at a time on a worker.

    `dsn`: complete, with the password. `show_values`: errors may quote values; otherwise they contain `hint`.
    `rowless`: classes of the server's errors that never quote values.
    """

    dsn: str = field(repr=False)
    application: str
    schema: pa.Schema
    show_values: bool = field(default=False, repr=False)
    hint: str = field(default="", repr=False)
    rowless: tuple[str, ...] = field(default=(), repr=False)

    def __call__(self, query: str) -> Iterator[pa.RecordBatch]:
        """Yield the query's rows as batches of `schema`.

        Raises `BadRecords` or `StageFailed`, without the login, and without values of rows unless `show_values`.
        """
        with SpooledTemporaryFile(_IN_MEMORY) as file:
            longest = self._copy(query, file)
            if file.tell() == 0:
                return
            file.seek(0)
            try:
                for batch in csv.open_csv(file, **self._options(max(_BLOCK, longest))):
                    arrays = [
                        _finish(column, kind.type) for column, kind in zip(batch.columns, self.schema, strict=True)
                    ]
                    yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
            except (pa.ArrowInvalid, ValueError) as error:
                raise BadRecords(f"UNREADABLE_VALUE: {self._unreadable(str(error))}") from None

    def _copy(self, query: str, file: Any) -> int:
        """Write the rows into `file`. Returns the size of the longest row in bytes."""
        rows = _RowFile(file)
        try:
            connection = psycopg2.connect(self.dsn, application_name=self.application, client_encoding="UTF8")
            try:
                with connection, connection.cursor() as cursor:
                    cursor.execute(SETTINGS)
                    cursor.copy_expert(f"COPY ({query}) TO STDOUT (FORMAT csv)", rows)
            finally:
                connection.close()
        except psycopg2.Error as error:
            unreadable = (error.pgcode or "").startswith(("22", "0A"))  # 0A: infinity has no microseconds
            sign, failure = ("UNREADABLE_VALUE: ", BadRecords) if unreadable else ("", StageFailed)
            raise failure(f"{sign}reading from Postgres: {self._refused(error)}") from None
        return rows.longest

    def _unreadable(self, message: str) -> str:
        column_match = _COLUMN.search(message)
        column = self.schema.field(int(column_match[1])) if column_match else None
        if column and (unheld := _UNHELD.search(message)):
            return f"column {column.name} is {unheld[1]}, and {column.type} can't hold it: read a view that casts it"
        where = f"column {column.name} has one that {column.type} can't hold" if column else "a row can't be read"
        return f"{where}: {message}" if self.show_values else f"{where} {self.hint}".rstrip()

    def _refused(self, error: psycopg2.Error) -> str:
        code, text = error.pgcode, str(error)
        raised = "RAISE" in (error.diag.context or "")  # RAISE may quote values in any class of error
        if not self.show_values and code is not None and (raised or not code.startswith(self.rowless)):
            return f"the server can't give a row, by SQLSTATE {code} {self.hint}".rstrip()
        secrets = psycopg2.extensions.parse_dsn(self.dsn)
        for name in ("password", "sslpassword"):
            text = text.replace(secrets.get(name) or "\0", "***")
        return text.strip()

    def _options(self, block: int) -> dict[str, Any]:
        names = [str(index) for index in range(len(self.schema))]
        return {
            "read_options": csv.ReadOptions(block_size=block, column_names=names),
            "parse_options": csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            "convert_options": csv.ConvertOptions(
                column_types={name: _carrier(kind.type) for name, kind in zip(names, self.schema, strict=True)},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=["t"],
                false_values=["f"],
            ),
        }


class _RowFile:
    """A file that COPY writes to, one row per call."""

    def __init__(self, file: Any) -> None:
        self._file, self.longest = file, 0

    def write(self, row: bytes) -> None:
        self._file.write(row)
        self.longest = max(self.longest, len(row))


def _carrier(dtype: pa.DataType) -> pa.DataType:
    """Return the type that the CSV's text is parsed as."""
    if pa.types.is_binary(dtype):
        return pa.string()
    if pa.types.is_timestamp(dtype):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(dtype) else dtype


def _finish(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    if pa.types.is_binary(dtype):
        return pa.array([None if text is None else bytes.fromhex(text) for text in column.to_pylist()], dtype)
    return column.view(dtype) if pa.types.is_timestamp(dtype) or pa.types.is_date32(dtype) else column
