"""A MariaDB table as a source, by a growing column."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pymysql

from lockstep.connections.mariadb.connection import dial
from lockstep.connections.mariadb.dsn import dataset_of, scrub_login
from lockstep.connections.mariadb.errors import OF_ROWS, SERVERS, classify, describe
from lockstep.connections.names import Dataset
from lockstep.errors import SOURCE_ERRORS, SourceRefused
from lockstep.observability.redaction import HINT, rows_shown
from lockstep.sources.base import SourceContext
from lockstep.sources.tables._mariadb_reading import SETTINGS, SelectOut
from lockstep.sources.tables.source import (
    OpenTableSource,
    Span,
    TableSession,
    TableSource,
    schema_of,
    select_columns,
    why_restarted,
    youth,
)

COLUMNS = """
    SELECT column_name, data_type, column_type, numeric_precision, numeric_scale, is_nullable = 'YES'
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = %s ORDER BY ordinal_position
"""
_SIGNED = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "mediumint": pa.int32(),
    "int": pa.int32(),
    "bigint": pa.int64(),
}
_UNSIGNED = {
    "tinyint": pa.int16(),
    "smallint": pa.int32(),
    "mediumint": pa.int32(),
    "int": pa.int64(),
    "bigint": pa.decimal128(20, 0),
}
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "uuid")
_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_OTHER_TYPES = {
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
}
INTEGERS = tuple(_SIGNED)
MOMENTS = ("datetime", "timestamp")

_log = logging.getLogger(__name__)
_SERVER = "SELECT @@server_id, DATABASE()"
#: A hash of the machine's address and the port; servers of early 10.11 versions have none.
_UID = "SHOW GLOBAL VARIABLES LIKE 'server_uid'"
_DEFAULT_ID = 1
_NEXT = """
    SELECT t.auto_increment
    FROM information_schema.tables t JOIN information_schema.columns c USING (table_schema, table_name)
    WHERE t.table_schema = DATABASE() AND t.table_name = %s AND c.column_name = %s AND c.extra LIKE '%%auto_increment%%'
"""
_CLOCK = "SELECT CAST(NOW(6) AS CHAR)"
_GUARD = "SELECT @@GLOBAL.read_only, @@GLOBAL.innodb_flush_log_at_trx_commit"
_ENGINE = "SELECT engine, table_type FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = %s"
_INDEXED = """
    SELECT 1 FROM information_schema.statistics
    WHERE table_schema = DATABASE() AND table_name = %s AND column_name = %s AND seq_in_index = 1
"""


@dataclass(frozen=True)
class MariaDbColumn:
    """A column as in information_schema. `type_text`: including length, sign and so on."""

    name: str
    type_name: str
    type_text: str
    precision: int | None
    scale: int | None
    nullable: bool

    @property
    def arrow(self) -> pa.DataType | None:
        """The type that holds every value; None if Spark has none."""
        if self.type_name in INTEGERS:
            return (_UNSIGNED if "unsigned" in self.type_text else _SIGNED)[self.type_name]
        if self.type_name == "decimal":
            return pa.decimal128(self.precision, self.scale) if (self.precision or 99) <= 38 else None
        if self.type_name in _TEXTS:
            return pa.string()
        return pa.binary() if self.type_name in _BYTES else _OTHER_TYPES.get(self.type_name)

    @property
    def select(self) -> str:
        """The column as SQL with exact text: that of a FLOAT has only six digits."""
        return f"CAST({quoted(self.name)} AS DOUBLE)" if self.type_name == "float" else quoted(self.name)

    def literal(self, value: str) -> str:
        """Return `value`, in this column's text form, as SQL."""
        if self.type_name in INTEGERS:
            return str(int(value))
        if not set(value) <= set("0123456789-:. "):
            raise ValueError(f"{value!r} is no time")
        return f"TIMESTAMP'{value}'"


def quoted(name: str) -> str:
    """Return a quoted identifier."""
    return "`" + name.replace("`", "``") + "`"


class MariaDbTableSource(TableSource):
    """The rows that came into a table since the last epoch; a cursor source.

    `table`: its name in the connection's database. `order_by`: an integer, DATETIME or TIMESTAMP column. No transaction
    may take longer than `settle`: it may commit rows below the cursor, which are never read. An epoch ends at rows
    older than that. Age is determined by the server's clock and `settled_by`, a TIMESTAMP column (default: `order_by`);
    if it is another column, rows must be older than twice `settle`. `timedelta(0)` if rows are committed in the order
    of the column. The other arguments are those of `PostgresTableSource`.

    Positions are `{"server", "order_by", "after", "upto"[, "rows"][, "held_by"]}`.
    """

    def datasets(self, connections: Mapping[str, str]) -> tuple[Dataset, ...]:
        return (dataset_of(self.connection, connections[self.connection], self.table),)

    def why_no_snapshot(self) -> str | None:
        return "MariaDB doesn't expose versions of rows, so updates would go unnoticed"

    def open(self, context: SourceContext) -> OpenTableSource:
        return OpenTableSource(self, context, partial(_session, self, context))


@contextmanager
def _session(source: TableSource, context: SourceContext, *, durable: bool = False) -> Iterator[TableSession]:
    """Open a session. `durable` has no effect: the server writes within a second, and `settle` is longer."""
    where = f"source {context.source}: connection {source.connection}"
    dsn = context.dsn(source.connection)
    connection = None
    try:
        connection, arguments = dial(source.connection, dsn, autocommit=False)
        with connection.cursor() as cursor:
            cursor.execute(SETTINGS)
            cursor.execute(_CLOCK)  # before the snapshot, which contains everything committed by then
            [(now,)] = cursor.fetchall()
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        yield _MariaDbSession(source, context.source, connection, arguments, now)
    except (pymysql.MySQLError, OSError) as error:
        message = scrub_login(describe(error), source.connection, dsn)
        raise SOURCE_ERRORS.of(classify(error))(f"{where}: {message}") from None
    finally:
        if connection is not None:
            connection.close()


@dataclass
class _MariaDbSession:
    source: TableSource
    name: str  #: of the source in the pipeline
    connection: pymysql.connections.Connection[Any]
    arguments: Mapping[str, Any]
    now: str  #: the server's clock in UTC, just before its snapshot was taken

    # --- table and columns ---

    def server(self) -> str:
        """Identify the server by its configured id; servers with the default id by server_uid."""
        [(id, database)] = self._rows(_SERVER)
        uid = self._rows(_UID) if id == _DEFAULT_ID else []
        server = " ".join([str(id), *(f"({value})" for _, value in uid)])
        return f"server {server}, database {database}, table {self.source.table}"

    @cached_property
    def _where(self) -> str:
        return f"source {self.name}: table {self.source.table}"

    @property
    def _table(self) -> str:
        return quoted(self.source.table)

    @cached_property
    def _columns(self) -> dict[str, MariaDbColumn]:
        return {row[0]: MariaDbColumn(*row) for row in self._rows(COLUMNS, self.source.table)}

    @cached_property
    def _chosen(self) -> list[MariaDbColumn]:
        if not self._columns:
            raise SourceRefused(f"{self._where}: there is no such table, or the user may not read it")
        return select_columns(self._where, self.source.columns, self._columns)

    def schema(self) -> pa.Schema:
        return schema_of(self._where, self._chosen)

    @cached_property
    def _order(self) -> MariaDbColumn:
        name = self.source.order_by
        column = self._columns.get(name)
        if column is None:
            raise SourceRefused(f"{self._where}: it has no column {name}; it has {list(self._columns)}")
        if column.type_name not in (*INTEGERS, *MOMENTS):
            raise SourceRefused(
                f"{self._where}: column {name} is {column.type_text}; rows are ordered by an integer, a "
                "DATETIME or a TIMESTAMP"
            )
        if column.nullable:
            raise SourceRefused(f"{self._where}: column {name} may be NULL, and such a row would never be read")
        return column

    # --- ranges ---

    def _require_usable(self) -> None:
        settle, by = self.source.settle, self.source.settled_by or self._order.name
        if settle is None:
            raise SourceRefused(
                f"{self._where}: a row committed late with a smaller {self._order.name} would never be read: give "
                "settle=, longer than any transaction takes, or timedelta(0) if rows are committed in this order"
            )
        if settle and (by not in self._columns or self._columns[by].type_name != "timestamp"):
            raise SourceRefused(
                f"{self._where}: settled_by= has to name a TIMESTAMP column (a DATETIME has no time zone); is {by!r}"
            )
        read_only, flush = self._rows(_GUARD)[0]
        if read_only:
            raise SourceRefused(f"{self._where}: the server is read_only: a replica may be behind; use the primary")
        if flush != 1 and not self.source.settle:
            raise SourceRefused(
                f"{self._where}: innodb_flush_log_at_trx_commit = {flush}: a crash loses rows that epochs have read, "
                "and their numbers are reused; set it to 1, or settle= to some seconds"
            )
        [(engine, kind)] = self._rows(_ENGINE, self.source.table)
        if kind == "BASE TABLE" and engine != "InnoDB":
            raise SourceRefused(f"{self._where}: its engine is {engine}, which has no transactions; use InnoDB")
        if kind == "BASE TABLE" and not self._rows(_INDEXED, self.source.table, self._order.name):
            _log.warning("%s has no index that starts with %s: every epoch reads it all", self._where, self._order.name)

    def upto(self, after: str | None) -> str | None:
        self._require_usable()
        first_young = self._first_young(after)
        below = f"{quoted(self._order.name)} < {self._order.literal(first_young)}" if first_young else "TRUE"
        column, span = quoted(self._order.name), Span(after, None)
        query = f"SELECT CAST(MAX({column}) AS CHAR) FROM {self._table} WHERE {self._within(span)} AND {below}"  # noqa: S608
        [(end,)] = self._rows(query)
        if end is not None and self._order.type_name in MOMENTS:
            if end not in self.source.accepted_rows and self._is_ahead(end):
                raise self.source.refuse_ahead(self._where, end, self.now)
            [(end,)] = self._rows(f"{query} AND {column} <= {self._clock}")
        cap = self.source.max_rows_per_epoch
        if end is None or cap is None:
            return after if end is None else str(end)
        return self._nth(self._within(Span(after, end)), cap - 1) or str(end)

    def restarted(self, after: str) -> str | None:
        if self._order.type_name not in INTEGERS:
            return f"the server's clock is at {self.now}" if self._is_ahead(after) else None
        [(largest,)] = self._rows(f"SELECT MAX({quoted(self._order.name)}) FROM {self._table}")  # noqa: S608
        rows = self._rows(_NEXT, self.source.table, self._order.name)
        return why_restarted(self._order.name, after, largest, int(rows[0][0] or 1) if rows else None)

    @property
    def _clock(self) -> str:
        """The server's clock in the ordering column's type; local time may be 14 hours ahead of UTC."""
        return f"TIMESTAMP'{self.now}' + INTERVAL {14 if self._order.type_name == 'datetime' else 0} HOUR"

    def _is_ahead(self, value: str) -> bool:
        """Return True if a time is ahead of the clock by more than the tolerance of a minute."""
        return bool(self._rows(f"SELECT {self._order.literal(value)} > {self._clock} + INTERVAL 1 MINUTE")[0][0])

    def held_by(self, after: str | None) -> str | None:
        """Describe the first row with a time that is NULL or ahead of the clock."""
        if not self.source.settle:
            return None
        order, by = quoted(self._order.name), quoted(self.source.settled_by or self._order.name)
        rows = self._rows(
            f"SELECT CAST({order} AS CHAR), CAST({by} AS CHAR), CAST(NOW(6) AS CHAR) FROM {self._table} "  # noqa: S608
            f"WHERE {self._younger(after, 'NOW(6)')} ORDER BY {order} LIMIT 1"
        )
        return self.source.describe_unsettled(*rows[0]) if rows else None

    def _younger(self, after: str | None, moment: str) -> str:
        """Return a condition for rows above `after` that may be younger than `moment` and aren't accepted."""
        order, by = quoted(self._order.name), quoted(self.source.settled_by or self._order.name)
        texts = ", ".join(self.connection.escape(text) for text in ("", *self.source.accepted_rows))
        young = f"({by} IS NULL OR {by} > {moment}) AND CAST({order} AS CHAR) NOT IN ({texts})"
        return f"{self._within(Span(after, None))} AND {young}"

    def _first_young(self, after: str | None) -> str | None:
        settle = self.source.settle
        if not settle:
            return None
        young_for = youth(settle, self._order.name, self.source.settled_by or self._order.name)
        age = (young_for + timedelta(seconds=1)) // timedelta(microseconds=1)  # a TIMESTAMP may lack fractions
        return self._nth(self._younger(after, f"TIMESTAMP'{self.now}' - INTERVAL {age} MICROSECOND"), 0)

    def _nth(self, condition: str, offset: int) -> str | None:
        column = quoted(self._order.name)
        query = (
            f"SELECT CAST({column} AS CHAR) FROM {self._table} WHERE {condition} ORDER BY {column} LIMIT {offset}, 1"  # noqa: S608
        )
        rows = self._rows(query)
        return str(rows[0][0]) if rows else None

    def _within(self, span: Span) -> str:
        column, ends = quoted(self._order.name), ((">", span.after), ("<=", span.upto))
        conditions = [f"{column} {sign} {self._order.literal(value)}" for sign, value in ends if value is not None]
        return " AND ".join(conditions) or "TRUE"

    def count(self, span: Span) -> int:
        if span.is_empty:
            return 0
        return int(self._rows(f"SELECT COUNT(*) FROM {self._table} WHERE {self._within(span)}")[0][0])  # noqa: S608

    def split(self, span: Span, parts: int) -> list[Span]:
        column = quoted(self._order.name)
        tiles = f"SELECT {column} AS bound, NTILE({parts}) OVER (ORDER BY {column}) AS tile FROM {self._table}"  # noqa: S608
        tiles = f"{tiles} WHERE {self._within(span)}"
        rows = self._rows(f"SELECT CAST(MAX(bound) AS CHAR) FROM ({tiles}) AS t GROUP BY tile ORDER BY tile")  # noqa: S608
        ends = dict.fromkeys(str(bound) for (bound,) in rows)
        bounds = [span.after, *(bound for bound in ends if bound not in (span.after, span.upto)), span.upto]
        return [Span(after, upto) for after, upto in pairwise(bounds)]

    # --- reading ---

    def query(self, span: Span) -> str:
        selected = ", ".join(column.select for column in self._chosen)
        return f"SELECT {selected} FROM {self._table} WHERE {self._within(span)}"  # noqa: S608

    def reader(self, schema: pa.Schema) -> Callable[[str], Iterator[pa.RecordBatch]]:
        return SelectOut(self.arguments, schema, show_values=rows_shown(), hint=HINT, of_rows=OF_ROWS, servers=SERVERS)

    def _rows(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(query, parameters or None)
            return list(cursor.fetchall())
