"""A Postgres table as a source, by commit order or by a growing column, and snapshots of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, cast

import psycopg2
import pyarrow as pa
from psycopg2 import sql
from psycopg2.extensions import connection as Connection

from lockstep.connections.names import Dataset, Relation
from lockstep.connections.postgres.connection import dial
from lockstep.connections.postgres.dsn import complete_dsn, dataset_of, require_dsn
from lockstep.connections.postgres.errors import ROWLESS, classify, describe
from lockstep.epoch import Interval, Json, Position
from lockstep.errors import SOURCE_ERRORS, Failure, SourceChanged, SourceRefused
from lockstep.observability.redaction import HINT, rows_shown
from lockstep.sources.base import SourceContext
from lockstep.sources.tables._postgres_order import (
    COLUMNS,
    SHAPES,
    VIEW,
    VIEWS,
    CommitOrder,
    GrowingColumn,
    PostgresColumn,
    RowOrder,
    require_usable,
    warn_unindexed,
)
from lockstep.sources.tables._postgres_reading import SETTINGS, CopyOut
from lockstep.sources.tables.source import (
    OpenTableSource,
    Span,
    TableSession,
    TableSource,
    schema_of,
    select_columns,
    span_of,
)

#: A crash loses transactions that were committed with synchronous_commit = off, and the server reuses their numbers. A
#: message in the WAL, and a commit that waits for it, make everything committed before it durable.
_MAKE_DURABLE = "SET LOCAL synchronous_commit = on; SELECT pg_logical_emit_message(true, 'lockstep', '')"

_TABLE = """
    SELECT c.oid::bigint, c.relkind::text, has_table_privilege(c.oid, 'SELECT'), row_security_active(c.oid)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p', 'v', 'm')
"""
_SERVER = """
    SELECT 'system ' || system_identifier || ', timeline ' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
           || ', database ' || (SELECT oid FROM pg_database WHERE datname = current_database())
    FROM pg_control_system()
"""


@contextmanager
def snapshot(where: str, dsn: str, application: str, *, durable: bool) -> Iterator[Connection]:
    """Open a transaction that sees one state of the database.

    `durable`: what it saw survives a crash of the server once it has ended. `where` starts each message. Raises
    `SourceUnavailable`, `SourceRefused`, `InvalidPipeline`, none of which contains a secret.
    """
    require_dsn(dsn, where)
    replica = SourceRefused(
        f"{where}: it leads to a replica (pg_is_in_recovery): only the primary knows the running transactions; "
        "connect to the primary"
    )
    connection = None
    try:
        connection = dial(dsn, application, replica=replica, isolation="REPEATABLE READ", settings=SETTINGS)
        with connection, connection.cursor() as cursor:
            yield connection
            if durable:
                cursor.execute(_MAKE_DURABLE)
    except psycopg2.Error as error:
        failure = classify(error)
        remedy = "; GRANT the role the missing privilege" if failure is Failure.DENIED else ""
        raise SOURCE_ERRORS.of(failure)(f"{where}: {describe(error, dsn)}{remedy}") from None
    finally:
        if connection is not None:
            connection.close()


class PostgresTableSource(TableSource):
    """The rows that came into a table since the last epoch; a cursor source.

    `table`: schema.table, a table, partitioned table or view. `connection`: id of the DSN.

    `order_by` of type xid8, filled by `DEFAULT pg_current_xact_id()`: an epoch ends below the oldest running
    transaction, so no commit comes too late. `order_by` of an integer or timestamp type: an epoch ends at rows older
    than `settle`, which must exceed the duration of any transaction. Age is determined by the server's clock and
    `settled_by`, a timestamptz column (default: `order_by`); if it is another column, rows must be older than twice
    `settle`. `timedelta(0)` if rows are committed in the order of the column.

    `columns`: the columns to read; empty: all. `max_rows_per_epoch`: approximate limit; a transaction's rows stay
    together. `rows_per_partition`: rows per Spark task. `verify_count`: count the rows at planning, and again before
    the read and the seal. `accept`: confirmations, as quoted by an error message or by `held_by`.

    Positions are `{"server", "order_by", "after", "upto"[, "rows"][, "held_by"]}`.
    """

    def datasets(self, connections: Mapping[str, str]) -> tuple[Dataset, ...]:
        return (dataset_of(connections[self.connection], Relation.parse(self.table, "public")),)

    def why_no_snapshot(self) -> str | None:
        if self.max_rows_per_epoch is not None:
            return "a snapshot has all rows, and max_rows_per_epoch excludes some of them"
        if not self.verify_count:
            return "with verify_count=False changes of rows since planning would go unnoticed"
        return None

    def open(self, context: SourceContext) -> OpenTableSource:
        return OpenTableSource(self, context, partial(_session, self, context))

    def open_snapshot(self, context: SourceContext) -> OpenTableSource:
        """Open a snapshot, for which `settle` is optional: late rows are in the next epoch's snapshot."""
        source = self if self.settle is not None else replace(self, settle=timedelta(0))
        return OpenTableSnapshot(source, context, partial(_session, source, context, whole=True))


@contextmanager
def _session(
    source: TableSource, context: SourceContext, *, durable: bool = False, whole: bool = False
) -> Iterator[TableSession]:
    where = f"source {context.source}: connection {source.connection}"
    application = f"lockstep {context.pipeline} {context.source}"
    with snapshot(where, context.dsn(source.connection), application, durable=durable) as connection:
        yield _PostgresSession(source, context.source, connection, application, whole)


@dataclass
class _PostgresSession:
    source: TableSource
    name: str  #: of the source in the pipeline
    connection: Connection
    application: str
    whole: bool  #: each epoch reads all rows, so rows ahead of the clock need no check

    # --- table and columns ---

    def server(self) -> str:
        return f"{self._rows(_SERVER)[0][0]}, table {self._oid}"

    @cached_property
    def _where(self) -> str:
        return f"source {self.name}: table {self.source.table}"

    @cached_property
    def _relation(self) -> tuple[sql.Identifier, int, str]:
        relation = Relation.parse(self.source.table, "public")
        rows = self._rows(_TABLE, relation.names)
        if not rows:
            raise SourceRefused(f"{self._where}: there is no such table or view")
        oid, kind, may_select, row_security = rows[0]
        if not may_select:
            raise SourceRefused(f"{self._where}: the role may not read it: GRANT SELECT")
        if row_security:
            raise SourceRefused(
                f"{self._where}: row-level security hides rows from this role: use one that bypasses it"
            )
        return sql.Identifier(*relation.names), oid, kind

    @property
    def _oid(self) -> int:
        return self._relation[1]

    @cached_property
    def _columns(self) -> dict[str, PostgresColumn]:
        return {row[0]: PostgresColumn(*row) for row in self._rows(COLUMNS, (self._oid,))}

    @cached_property
    def _chosen(self) -> list[PostgresColumn]:
        return select_columns(self._where, self.source.columns, self._columns)

    def schema(self) -> pa.Schema:
        return schema_of(self._where, self._chosen)

    @cached_property
    def _order(self) -> RowOrder:
        column = self._columns.get(self.source.order_by)
        if column is None:
            raise SourceRefused(f"{self._where}: it has no column {self.source.order_by}; it has {list(self._columns)}")
        require_usable(self._where, self._relation[2], column)
        with self.connection.cursor() as cursor:
            if column.type_name == "xid8":
                return CommitOrder.of(cursor, self._where, self._oid, self._relation[2], column.name)
        return GrowingColumn.of(self._where, self._columns, self.source, clocked=not self.whole)

    # --- ranges ---

    def upto(self, after: str | None) -> str | None:
        column = sql.Identifier(self.source.order_by)
        query = sql.SQL("SELECT FROM {} WHERE {} IS NULL LIMIT 1").format(self._relation[0], column)
        if self._relation[2] in VIEWS and self._rows(query):  # a table's column is NOT NULL
            raise SourceRefused(
                f"{self._where}: rows of the view have NULL in {self.source.order_by} and would never be read: have "
                "the view give them a value, or exclude them"
            )
        with self.connection.cursor() as cursor:
            end = self._order.end(cursor, self._relation[0], after)
            warn_unindexed(cursor, self._where, self._oid, self._relation[2], self.source.order_by)
            cap = self.source.max_rows_per_epoch
            if cap is None or end == after:
                return end
            return self._order.capped(cursor, self._relation[0], Span(after, end), cap)

    def restarted(self, after: str) -> str | None:
        with self.connection.cursor() as cursor:
            return self._order.restarted(cursor, self._relation[0], self._oid, after)

    def held_by(self, after: str | None) -> str | None:
        with self.connection.cursor() as cursor:
            return self._order.held_by(cursor, self._relation[0], after)

    def count(self, span: Span) -> int:
        if span.is_empty:
            return 0
        query = sql.SQL("SELECT count(*) FROM {} WHERE {}").format(self._relation[0], self._order.within(span))
        return int(self._rows(query)[0][0])

    def versions(self, span: Span) -> str:
        """Return a digest of the versions of the span's rows. Raises `SourceRefused` for a view."""
        if self._relation[2] == VIEW:
            raise SourceRefused(
                f"{self._where}: it is a view, whose rows have no versions that would show a change: take "
                "snapshots of its tables, or of a materialized view"
            )
        if span.is_empty:
            return "0"
        query = sql.SQL(
            "SELECT coalesce(sum(hashtextextended(xmin::text || ' ' || {}::text, 0)), 0)::text FROM {} WHERE {}"
        )
        column = sql.Identifier(self.source.order_by)
        return str(self._rows(query.format(column, self._relation[0], self._order.within(span)))[0][0])

    def shapes(self) -> dict[str, str]:
        """Return a digest by column of its definition, on which its values depend."""
        rows = self._rows(SHAPES, (self._oid,))
        return {name: hashlib.sha256(repr(shape).encode()).hexdigest()[:16] for name, *shape in rows}

    def split(self, span: Span, parts: int) -> list[Span]:
        statement = """
            SELECT bound::text
            FROM (SELECT DISTINCT unnest(percentile_disc({}::float8[]) WITHIN GROUP (ORDER BY {})) AS bound
                  FROM {} WHERE {}) AS bounds
            ORDER BY bounds.bound
        """
        fractions = sql.Literal([part / parts for part in range(1, parts)])
        column, table = sql.Identifier(self.source.order_by), self._relation[0]
        rows = self._rows(sql.SQL(statement).format(fractions, column, table, self._order.within(span)))
        bounds = [span.after, *(bound for (bound,) in rows if bound not in (span.after, span.upto)), span.upto]
        return [Span(after, upto) for after, upto in pairwise(bounds)]

    # --- reading ---

    def query(self, span: Span) -> str:
        selected = sql.SQL(", ").join(column.select(self.source.order_by) for column in self._chosen)
        statement = sql.SQL("SELECT {} FROM {} WHERE {}")
        within = self._order.within(span)
        return statement.format(selected, self._relation[0], within).as_string(self.connection)

    def reader(self, schema: pa.Schema) -> Callable[[str], Iterator[pa.RecordBatch]]:
        dsn, application = complete_dsn(self.connection), self.application[:63]
        return CopyOut(dsn, application, schema, show_values=rows_shown(), hint=HINT, rowless=ROWLESS)

    def _rows(self, query: str | sql.Composable, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(query, parameters or None)
            return cursor.fetchall()


class OpenTableSnapshot(OpenTableSource):
    """A Postgres table that each epoch reads completely. Positions also have `"versions"` and `"columns"`.

    The plan freezes which versions of rows existed. Postgres gives each new version of a row its transaction's number,
    `xmin`, and no transaction creates any once it has ended. So equal counts and equal digests of these numbers mean
    equal versions, which existed all the time between two checks.

    A version's values also depend on the table's definition: renaming an enum label or exchanging two columns' names
    creates no new version. So the plan also freezes the columns' catalog entries.
    """

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        return super().latest(None, None)

    def _facts(self, session: TableSession, span: Span) -> dict[str, Json]:
        versioned = cast(_PostgresSession, session)
        return {"rows": session.count(span), "versions": versioned.versions(span), "columns": versioned.shapes()}

    def _require_same_rows(self, session: TableSession, end: Position) -> None:
        now = self._facts(session, span_of(end))
        columns: dict[str, str] = now.pop("columns")
        if changed := self._changed(end["columns"], columns):
            raise SourceChanged(
                f"source {self._name}: columns {', '.join(changed)} of table {self._source.table} were renamed, added, "
                "dropped or altered, or labels of their type were, since its snapshot was taken, which can't be read "
                "any more: `lockstep replan` takes another one"
            )
        if now != {name: end[name] for name in now}:
            raise SourceChanged(
                f"source {self._name}: rows of table {self._source.table} were added, updated or deleted since its "
                f"snapshot was taken ({end['rows']:,} rows then, {now['rows']:,} now), which can't be read any more: "
                "`lockstep replan` takes another one"
            )

    def _changed(self, then: dict[str, str], now: dict[str, str]) -> list[str]:
        """Return the changed columns among those read. The choice of columns may be corrected meanwhile."""
        read = {*self._source.columns, self._source.order_by} if self._source.columns else {*then, *now}
        return sorted(name for name in read if then.get(name) != now.get(name))
