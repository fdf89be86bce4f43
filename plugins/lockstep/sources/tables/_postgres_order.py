"""Columns of a Postgres table, and where an epoch may end so that no row can come below that any more."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

import pyarrow as pa
from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor

from lockstep.errors import SourceChanged, SourceRefused
from lockstep.sources.tables.source import Span, TableSource, why_restarted, youth

_MICROSECONDS = "(extract(epoch FROM {}) * 1000000)::bigint"
_TEXT = "{}::text"

#: type of pg_catalog → (expression, Arrow type)
_EXACT: dict[str, tuple[str, pa.DataType]] = {
    "bool": ("{}", pa.bool_()),
    "int2": ("{}", pa.int16()),
    "int4": ("{}", pa.int32()),
    "int8": ("{}", pa.int64()),
    "float4": ("{}", pa.float32()),
    "float8": ("{}", pa.float64()),
    "text": ("{}", pa.string()),
    "varchar": ("{}", pa.string()),
    "uuid": (_TEXT, pa.string()),
    "json": (_TEXT, pa.string()),
    "jsonb": (_TEXT, pa.string()),
    "bytea": ("encode({}, 'hex')", pa.binary()),
    "date": ("({} - date '1970-01-01')", pa.date32()),
    "timestamp": (_MICROSECONDS, pa.timestamp("us")),
    "timestamptz": (_MICROSECONDS, pa.timestamp("us", "UTC")),
    "xid8": ("{}::text::bigint", pa.int64()),
}

#: type of pg_catalog → the values that its Arrow type can't hold
_UNHELD = {
    "numeric": "{} = 'NaN'",
    "date": "NOT isfinite({})",
    "timestamp": "NOT isfinite({}) OR {} > '294246-12-31'",
    "timestamptz": "NOT isfinite({}) OR {} > '294246-12-31'",
}

COLUMNS = """
    SELECT a.attname, CASE WHEN n.nspname = 'pg_catalog' THEN t.typname::text ELSE '' END, t.typtype::text,
           format_type(a.atttypid, a.atttypmod), a.atttypmod, a.attnotnull
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace n ON n.oid = t.typnamespace
    WHERE a.attrelid = %s::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum
"""

#: Each column's name and definition. The xmin of a catalog entry also shows a change that was reverted.
SHAPES = """
    SELECT a.attname, a.attnum, a.xmin::text, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid),
           (SELECT string_agg(concat_ws(' ', e.oid, e.xmin, e.enumlabel), ',' ORDER BY e.enumsortorder)
            FROM pg_enum e WHERE e.enumtypid = a.atttypid)
    FROM pg_attribute a
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.attgenerated <> ''
    WHERE a.attrelid = %s::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
"""

_log = logging.getLogger(__name__)
_LONG = timedelta(minutes=1)  #: how long a transaction may hold rows back without being reported
VIEW = "v"  #: relkind
VIEWS = (VIEW, "m")  #: relkinds, whose columns' constraints aren't known
_INTEGERS = ("int2", "int4", "int8")
_MOMENTS = ("timestamp", "timestamptz")
_HORIZON = "SELECT pg_snapshot_xmin(now)::text, pg_snapshot_xmax(now)::text FROM pg_current_snapshot() AS now"
_HOLDER = """
    WITH oldest AS (SELECT mod(pg_snapshot_xmin(pg_current_snapshot())::text::numeric, 4294967296)::text::xid AS xid)
    SELECT 'session ' || pid || ' of ' || coalesce(usename, '?') || ' ('
           || coalesce(nullif(application_name, ''), 'unnamed') || ') in database '
           || coalesce(datname, '?') || coalesce(', ' || state, ''), now() - xact_start
    FROM pg_stat_activity JOIN oldest ON backend_xid = xid
    UNION ALL
    SELECT 'prepared transaction ' || gid || ' of ' || owner || ' in database ' || database, now() - prepared
    FROM pg_prepared_xacts JOIN oldest ON transaction = xid
"""
_FILLS_IT = """
    SELECT EXISTS (SELECT FROM pg_attrdef d JOIN pg_attribute a ON (a.attrelid, a.attnum) = (d.adrelid, d.adnum)
                   WHERE a.attrelid = %(oid)s::bigint::oid AND a.attname = %(column)s
                     AND pg_get_expr(d.adbin, d.adrelid) = 'pg_current_xact_id()')
        OR EXISTS (SELECT FROM pg_trigger WHERE tgrelid = %(oid)s::bigint::oid AND tgenabled <> 'D' AND tgtype & 7 = 7)
"""
_SEQUENCE = """
    SELECT n.nspname, c.relname, s.seqincrement
    FROM pg_depend d JOIN pg_attribute a ON (a.attrelid, a.attnum) = (d.refobjid, d.refobjsubid)
    JOIN pg_sequence s ON s.seqrelid = d.objid
    JOIN pg_class c ON c.oid = d.objid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
      AND d.refobjid = %(oid)s::bigint::oid AND a.attname = %(column)s
      AND s.seqincrement > 0 AND NOT s.seqcycle AND has_sequence_privilege(c.oid, 'SELECT')
"""
_INDEXED = """
    SELECT EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON (a.attrelid, a.attnum) = (i.indrelid, i.indkey[0])
                   WHERE i.indrelid = %s::bigint::oid AND a.attname = %s AND i.indisvalid AND i.indpred IS NULL)
"""


@dataclass(frozen=True)
class PostgresColumn:
    """A column as in pg_attribute. `kind`: pg_type.typtype, `e` for an enum; `modifier`: atttypmod."""

    name: str
    type_name: str
    kind: str
    type_text: str
    modifier: int
    not_null: bool

    @property
    def arrow(self) -> pa.DataType | None:
        """The type that holds every value; None if Spark has none."""
        if self.kind == "e":
            return pa.string()
        if self.type_name != "numeric":
            return _EXACT[self.type_name][1] if self.type_name in _EXACT else None
        if self.modifier < 0:
            return None
        precision, scale = (self.modifier - 4) >> 16 & 0xFFFF, ((self.modifier - 4 & 0x7FF) ^ 1024) - 1024
        return pa.decimal128(precision, scale) if 0 <= scale <= precision <= 38 else None

    def select(self, order_by: str) -> sql.Composable:
        """Return the column as SQL with exact text.

        A value that the Arrow type can't hold is returned with its row's `order_by`, as a text that is no valid value.
        """
        expression = _TEXT if self.kind == "e" else _EXACT.get(self.type_name, ("{}",))[0]
        if self.type_name not in _UNHELD:
            return sql.SQL(expression).format(sql.Identifier(self.name))
        checked = f"CASE WHEN {_UNHELD[self.type_name]} THEN concat({{0}}, {{1}}, {{2}}) ELSE ({expression})::text END"
        key = (sql.Literal(f" where {order_by} is "), sql.Identifier(order_by))
        return sql.SQL(checked.replace("{}", "{0}")).format(sql.Identifier(self.name), *key)


class RowOrder(Protocol):
    """An order of a table's rows, by which values of a column form ranges."""

    def within(self, span: Span) -> sql.Composable:
        """Return a condition for the rows of the span."""

    def end(self, cursor: Cursor, table: sql.Identifier, after: str | None) -> str | None:
        """Return the end of the longest range that starts at `after`; `after` if it would be empty."""

    def restarted(self, cursor: Cursor, table: sql.Identifier, oid: int, after: str) -> str | None:
        """Return why new rows may have numbers up to `after`; None if nothing indicates it."""

    def held_by(self, cursor: Cursor, table: sql.Identifier, after: str | None) -> str | None:
        """Return what has long kept rows above `after` from being read."""

    def capped(self, cursor: Cursor, table: sql.Identifier, span: Span, rows: int) -> str | None:
        """Return the end of a range of about `rows` rows that starts as `span` does."""


def require_usable(where: str, kind: str, column: PostgresColumn) -> None:
    """Raise `SourceRefused` unless `column` can order the table's rows. `kind`: pg_class.relkind."""
    if column.type_name not in ("xid8", *_INTEGERS, *_MOMENTS):
        raise SourceRefused(
            f"{where}: column {column.name} is {column.type_text}; rows are ordered by an xid8, an integer "
            "or a timestamp"
        )
    if kind not in VIEWS and not column.not_null:
        raise SourceRefused(
            f"{where}: column {column.name} may be NULL, and such a row would never be read: "
            f"ALTER COLUMN {column.name} SET NOT NULL"
        )


def warn_unindexed(cursor: Cursor, where: str, oid: int, kind: str, column: str) -> None:
    """Log a warning if every epoch reads the whole table."""
    if kind not in VIEWS and not _is_true(cursor, _INDEXED, (oid, column)):
        _log.warning("%s has no index that starts with %s: every epoch reads the whole table", where, column)


@dataclass(frozen=True)
class CommitOrder:
    """Orders rows by the inserting transaction's number: [after, upto). All below pg_snapshot_xmin have ended."""

    where: str
    column: str

    @classmethod
    def of(cls, cursor: Cursor, where: str, oid: int, kind: str, column: str) -> CommitOrder:
        """Raise `SourceRefused` if nothing fills the column with this server's transaction numbers."""
        if kind not in VIEWS and not _is_true(cursor, _FILLS_IT, {"oid": oid, "column": column}):
            raise SourceRefused(
                f"{where}: column {column} has neither the default pg_current_xact_id() nor a trigger that could set "
                f"it: ALTER COLUMN {column} SET DEFAULT pg_current_xact_id()"
            )
        return cls(where, column)

    def within(self, span: Span) -> sql.Composable:
        return _between(self.column, ">=", span.after, "<", span.upto, "xid8")

    def end(self, cursor: Cursor, table: sql.Identifier, after: str | None) -> str | None:
        cursor.execute(_HORIZON)
        horizon, following = _row(cursor)
        query = sql.SQL("SELECT EXISTS (SELECT FROM {} WHERE {} >= {}::text::xid8)")
        if _is_true(cursor, query.format(table, sql.Identifier(self.column), sql.Literal(following))):
            raise SourceRefused(
                f"{self.where}: rows carry transaction numbers that this server has not reached ({following}): they "
                f"were restored from another server; set column {self.column} again"
            )
        if after is not None and int(horizon) < int(after):
            raise SourceChanged(
                f"{self.where}: epochs have read up to transaction {after}, and the server is at {horizon}: it was "
                "restored or reset, and new rows would be mistaken for old ones; pg_resetwal --epoch raises its numbers"
            )
        return horizon

    def restarted(self, cursor: Cursor, table: sql.Identifier, oid: int, after: str) -> str | None:
        return None  # `end` compares with the server's own numbers

    def held_by(self, cursor: Cursor, table: sql.Identifier, after: str | None) -> str | None:
        cursor.execute(_HOLDER)
        for holder, age in cursor.fetchall():
            if age is None:
                return f"{holder}; GRANT pg_read_all_stats to the source's role to see for how long"
            if age >= _LONG:
                return f"{holder}, for {age}"
        return None

    def capped(self, cursor: Cursor, table: sql.Identifier, span: Span, rows: int) -> str | None:
        first, beyond = self._nth(cursor, table, span, 0), self._nth(cursor, table, span, rows)
        if beyond is None or first is None:
            return span.upto
        if beyond != first:
            return beyond  # exclusive: the transaction that would be split is left to the next epoch
        return self._nth(cursor, table, Span(str(int(first) + 1), span.upto), 0) or span.upto

    def _nth(self, cursor: Cursor, table: sql.Identifier, span: Span, offset: int) -> str | None:
        return _nth(cursor, table, self.column, self.within(span), offset)


@dataclass(frozen=True)
class GrowingColumn:
    """Orders rows by a growing column: (after, upto], where every row is older than `young_for`.

    `clocked`: rows ahead of the clock aren't read.
    """

    where: str
    source: TableSource
    column: PostgresColumn
    young_for: timedelta
    settled_by: str
    clocked: bool

    @classmethod
    def of(
        cls, where: str, columns: Mapping[str, PostgresColumn], source: TableSource, *, clocked: bool
    ) -> GrowingColumn:
        """Raise `SourceRefused` if it isn't declared, or can't be determined, when a row has settled."""
        order_by, settle = source.order_by, source.settle
        column = columns[order_by]
        if settle is None:
            raise SourceRefused(
                f"{where}: a row committed late with a smaller {order_by} would never be read: give settle=, longer "
                "than any transaction takes (timedelta(0) if rows are committed in this order), or order by an xid8"
            )
        by = source.settled_by or order_by
        if settle and (by not in columns or columns[by].type_name != "timestamptz"):
            raise SourceRefused(
                f"{where}: settled_by= has to name a timestamptz column, set by the server (a timestamp without time "
                f"zone depends on the writer's clock); is {by!r}"
            )
        clocked = clocked and column.type_name in _MOMENTS
        return cls(where, source, column, youth(settle, order_by, by), by, clocked)

    def within(self, span: Span) -> sql.Composable:
        return _between(self.column.name, ">", span.after, "<=", span.upto, self.column.type_name)

    def end(self, cursor: Cursor, table: sql.Identifier, after: str | None) -> str | None:
        settled = self._settled(cursor, table, after)
        end = self._last(cursor, table, Span(after, None), settled)
        if end is not None and self.clocked:
            if end not in self.source.accepted_rows and (now := self._clock_below(cursor, end)):
                raise self.source.refuse_ahead(self.where, end, now)
            reached = sql.SQL("{} AND {} <= {}").format(settled, sql.Identifier(self.column.name), self._clock)
            end = self._last(cursor, table, Span(after, None), reached)
        return after if end is None else end

    @property
    def _clock(self) -> sql.Composable:
        """The server's clock in the column's type; local time may be 14 hours ahead of UTC."""
        naive = "timezone('UTC', clock_timestamp()) + interval '14 hours'"
        return sql.SQL(naive if self.column.type_name == "timestamp" else "clock_timestamp()")

    def _clock_below(self, cursor: Cursor, value: str) -> str | None:
        """Return the server's clock if `value` is ahead of it by more than the tolerance of a minute."""
        ahead = sql.SQL("SELECT clock_timestamp()::text WHERE {}::text::{} > {} + interval '1 minute'")
        cursor.execute(ahead.format(sql.Literal(value), sql.SQL(self.column.type_name), self._clock))
        row: tuple[str] | None = cursor.fetchone()
        return row and row[0]

    def restarted(self, cursor: Cursor, table: sql.Identifier, oid: int, after: str) -> str | None:
        if self.column.type_name not in _INTEGERS:
            now = self._clock_below(cursor, after) if self.clocked else None
            return f"the server's clock is at {now}" if now else None
        largest = self._last(cursor, table, Span(None, None), sql.SQL("true"))
        return why_restarted(self.column.name, after, largest, self._following(cursor, oid))

    def _following(self, cursor: Cursor, oid: int) -> int | None:
        """Return the next number of the column's sequence, if it has one that only grows and is readable."""
        cursor.execute(_SEQUENCE, {"oid": oid, "column": self.column.name})
        for schema, name, increment in cursor.fetchall():
            cursor.execute(sql.SQL("SELECT last_value, is_called FROM {}").format(sql.Identifier(schema, name)))
            last, called = _row(cursor)
            return int(last) + (int(increment) if called else 0)
        return None

    def held_by(self, cursor: Cursor, table: sql.Identifier, after: str | None) -> str | None:
        """Describe the first row with a time that is NULL or ahead of the clock."""
        if not self.young_for:
            return None
        query = sql.SQL("SELECT {0}::text, {1}::text, clock_timestamp()::text FROM {2} WHERE {3} ORDER BY {0} LIMIT 1")
        condition = self._younger(after, sql.SQL("clock_timestamp()"))
        cursor.execute(query.format(*map(sql.Identifier, (self.column.name, self.settled_by)), table, condition))
        row: tuple[str, str | None, str] | None = cursor.fetchone()
        return row and self.source.describe_unsettled(*row)

    def _younger(self, after: str | None, moment: sql.Composable) -> sql.Composable:
        """Return a condition for rows above `after` that may be younger than `moment` and aren't accepted."""
        young = sql.SQL("{} AND ({} > {}) IS NOT FALSE AND {}::text <> ALL ({})")
        by, order = sql.Identifier(self.settled_by), sql.Identifier(self.column.name)
        return young.format(self.within(Span(after, None)), by, moment, order, sql.Literal(self.source.accepted_rows))

    def _settled(self, cursor: Cursor, table: sql.Identifier, after: str | None) -> sql.Composable:
        """Return a condition for the rows below the first that is too young."""
        if not self.young_for:
            return sql.SQL("true")
        condition = self._younger(after, sql.SQL("now() - {}").format(sql.Literal(self.young_for)))
        first = _nth(cursor, table, self.column.name, condition, 0)
        return _between(self.column.name, ">", None, "<", first, self.column.type_name)

    def _last(self, cursor: Cursor, table: sql.Identifier, span: Span, condition: sql.Composable) -> str | None:
        query = sql.SQL("SELECT max({})::text FROM {} WHERE {} AND {}")
        cursor.execute(query.format(sql.Identifier(self.column.name), table, self.within(span), condition))
        value: str | None = _row(cursor)[0]
        return value

    def capped(self, cursor: Cursor, table: sql.Identifier, span: Span, rows: int) -> str | None:
        return _nth(cursor, table, self.column.name, self.within(span), rows - 1) or span.upto


def _between(
    column: str, above: str, after: str | None, below: str, upto: str | None, type_name: str
) -> sql.Composable:
    """Return a condition for `column` between two values given as text; None leaves an end open."""
    statement = sql.SQL("{} {} {}::text::{}")
    ends = [
        statement.format(sql.Identifier(column), sql.SQL(sign), sql.Literal(value), sql.SQL(type_name))
        for sign, value in ((above, after), (below, upto))
        if value is not None
    ]
    return sql.SQL("({})").format(sql.SQL(" AND ").join(ends)) if ends else sql.SQL("true")


def _nth(cursor: Cursor, table: sql.Identifier, column: str, condition: sql.Composable, offset: int) -> str | None:
    query = sql.SQL("SELECT {0}::text FROM {1} WHERE {2} ORDER BY {0} OFFSET {3} LIMIT 1")
    cursor.execute(query.format(sql.Identifier(column), table, condition, sql.Literal(offset)))
    row = cursor.fetchone()
    return row[0] if row else None


def _is_true(cursor: Cursor, query: str | sql.Composable, parameters: Any = None) -> bool:
    cursor.execute(query, parameters)
    return bool(_row(cursor)[0])


def _row(cursor: Cursor) -> tuple[str, ...]:
    row: tuple[str, ...] | None = cursor.fetchone()
    assert row is not None
    return row
