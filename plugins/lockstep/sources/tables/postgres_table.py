"""A Postgres table as a source, by commit order or by a column that only grows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import pyarrow as pa
from psycopg2 import sql
from psycopg2.extensions import connection as Connection

from lockstep.connections.dataset import Dataset
from lockstep.connections.postgres.dsn import complete_dsn, dataset_of
from lockstep.connections.postgres.errors import ROWLESS
from lockstep.connections.relation import Relation
from lockstep.errors import SourceRefused
from lockstep.observability.redaction import HINT, rows_shown
from lockstep.sources.base import SourceContext
from lockstep.sources.tables._postgres_columns import COLUMNS, SHAPES, SourceColumn
from lockstep.sources.tables._postgres_order import (
    VIEW,
    VIEWS,
    CommitOrder,
    GrowingColumn,
    Order,
    require_usable,
    warn_unindexed,
)
from lockstep.sources.tables._postgres_reading import CopyOut
from lockstep.sources.tables._postgres_session import snapshot
from lockstep.sources.tables._postgres_snapshot import OpenTableSnapshot
from lockstep.sources.tables.source import OpenTableSource, Span, TableSession, TableSource

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


class PostgresTableSource(TableSource):
    """The rows that came into a table since the last epoch; a cursor source.

    `table`: schema.table, a table, partitioned table or view. `connection`: id of the DSN. `order_by` of type xid8,
    filled by `DEFAULT pg_current_xact_id()`: an epoch ends below the oldest transaction that still runs, so no commit
    is ever too late. `order_by` of an integer or timestamp type: it ends at rows older than `settle`, longer than any
    transaction takes, by the server's clock, judged by `settled_by`, a timestamptz column (default: `order_by` itself);
    older than twice that if it is another column; `timedelta(0)` if rows are committed in its order.

    `columns`: what to read, all if empty. `max_rows_per_epoch`: about; a transaction's rows stay together.
    `rows_per_partition`: about how many rows a Spark task reads. `verify_count`: count the range when it is planned,
    and again before it is read and sealed. `accept`: what an error, or `held_by`, tells to say, once a person has
    looked.
    Positions are `{"server", "order_by", "after", "upto"[, "rows"][, "held_by"]}`.
    """

    def datasets(self, connections: Mapping[str, str]) -> tuple[Dataset, ...]:
        return (dataset_of(connections[self.connection], Relation.parse(self.table, "public")),)

    def why_no_snapshot(self) -> str | None:
        if self.max_rows_per_epoch is not None:
            return "a snapshot has all rows, and max_rows_per_epoch leaves some of them away"
        if not self.verify_count:
            return "with verify_count=False nobody would notice that rows have changed since it was planned"
        return None

    def open(self, context: SourceContext) -> OpenTableSource:
        return OpenTableSource(self, context, partial(_session, self, context))

    def open_snapshot(self, context: SourceContext) -> OpenTableSource:
        """`settle` may be left away: what comes too late for one epoch is in the next one's snapshot."""
        source = self if self.settle is not None else replace(self, settle=timedelta(0))
        return OpenTableSnapshot(source, context, partial(_session, source, context, whole=True))


@contextmanager
def _session(
    source: TableSource, context: SourceContext, *, durable: bool = False, whole: bool = False
) -> Iterator[TableSession]:
    where = f"source {context.source}: connection {source.connection}"
    application = f"lockstep {context.pipeline} {context.source}"
    with snapshot(where, context.dsn(source.connection), application, durable=durable) as connection:
        yield _Session(source, context.source, connection, application, whole)


@dataclass
class _Session:
    source: TableSource
    name: str  #: by which the pipeline calls the source
    connection: Connection
    application: str
    whole: bool  #: each epoch reads all rows, so those ahead of the clock leave none unread

    # --- what it is ---

    def server(self) -> str:
        return f"{self._rows(_SERVER)[0][0]}, table {self._oid}"

    @cached_property
    def _where(self) -> str:
        return f"source {self.name}: table {self.source.table}"

    @cached_property
    def _relation(self) -> tuple[sql.Identifier, int, str]:
        relation = Relation.parse(self.source.table, "public")
        found = self._rows(_TABLE, relation.names)
        if not found:
            raise SourceRefused(f"{self._where}: there is no such table or view")
        oid, kind, may_select, row_security = found[0]
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
    def _columns(self) -> dict[str, SourceColumn]:
        return {row[0]: SourceColumn(*row) for row in self._rows(COLUMNS, (self._oid,))}

    @cached_property
    def _chosen(self) -> list[SourceColumn]:
        names = self.source.columns or tuple(self._columns)
        if missing := [name for name in names if name not in self._columns]:
            raise SourceRefused(f"{self._where}: it has no columns {missing}; it has {list(self._columns)}")
        return [self._columns[name] for name in names]

    def schema(self) -> pa.Schema:
        if unfit := [f"{column.name} ({column.type_text})" for column in self._chosen if column.arrow is None]:
            raise SourceRefused(
                f"{self._where}: no type of Spark holds every value of {', '.join(unfit)}: name the columns to read in "
                "columns=, or read a view that casts them"
            )
        return pa.schema([(column.name, column.arrow) for column in self._chosen])

    @cached_property
    def _order(self) -> Order:
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
        self._require_ordered()
        with self.connection.cursor() as cursor:
            end = self._order.end(cursor, self._relation[0], after)
            warn_unindexed(cursor, self._where, self._oid, self._relation[2], self.source.order_by)
            cap = self.source.max_rows_per_epoch
            if cap is None or end == after:
                return end
            return self._order.capped(cursor, self._relation[0], Span(after, end), cap)

    def _require_ordered(self) -> None:
        """Raise `SourceRefused` for rows of a view without a place in the order; a table's column is NOT NULL."""
        column = sql.Identifier(self.source.order_by)
        query = sql.SQL("SELECT FROM {} WHERE {} IS NULL LIMIT 1").format(self._relation[0], column)
        if self._relation[2] in VIEWS and self._rows(query):
            raise SourceRefused(
                f"{self._where}: rows of the view have NULL in {self.source.order_by} and would never be read: have "
                "the view give them a value, or leave them out"
            )

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
        """A digest of which versions of its rows the span has. Raises `SourceRefused` for a view."""
        if self._relation[2] == VIEW:
            raise SourceRefused(
                f"{self._where}: it is a view, and its rows have no versions by which a change would be noticed: take "
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
        """By column a digest of what its values hang on beside the rows."""
        found = self._rows(SHAPES, (self._oid,))
        return {name: hashlib.sha256(repr(shape).encode()).hexdigest()[:16] for name, *shape in found}

    def split(self, span: Span, parts: int) -> list[Span]:
        statement = """
            SELECT bound::text
            FROM (SELECT DISTINCT unnest(percentile_disc({}::float8[]) WITHIN GROUP (ORDER BY {})) AS bound
                  FROM {} WHERE {}) AS bounds
            ORDER BY bounds.bound
        """
        fractions = sql.Literal([part / parts for part in range(1, parts)])
        column, table = sql.Identifier(self.source.order_by), self._relation[0]
        found = self._rows(sql.SQL(statement).format(fractions, column, table, self._order.within(span)))
        bounds = [span.after, *(bound for (bound,) in found if bound not in (span.after, span.upto)), span.upto]
        return [Span(after, upto) for after, upto in pairwise(bounds)]

    # --- reading ---

    def query(self, span: Span) -> str:
        selected = sql.SQL(", ").join(column.select(self.source.order_by) for column in self._chosen)
        statement = sql.SQL("SELECT {} FROM {} WHERE {}")
        within = self._order.within(span)
        return statement.format(selected, self._relation[0], within).as_string(self.connection)

    def reader(self, schema: pa.Schema) -> Callable[[str], Iterator[pa.RecordBatch]]:
        dsn, application = complete_dsn(self.connection), self.application[:63]
        return CopyOut(dsn, application, schema, shown=rows_shown(), hint=HINT, rowless=ROWLESS)

    def _rows(self, query: str | sql.Composable, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(query, parameters or None)
            return cursor.fetchall()
