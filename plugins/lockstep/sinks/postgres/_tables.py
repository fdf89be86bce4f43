"""The tables that rows go into: what they are, whether they can keep an output, and how to make one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor

from lockstep.connections.names import Relation
from lockstep.errors import PreflightRefused
from lockstep.sinks.postgres._types import Column, postgres_type, refusal
from lockstep.sinks.tables.fit import TargetTable
from lockstep.sinks.tables.output import UniqueKey
from lockstep.sinks.tables.upserts import DELETED_COLUMN, ORDER_COLUMN

_KINDS = {"v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence", "c": "a type"}

_FIND = """
    SELECT c.oid::bigint, c.relkind::text, has_table_privilege(c.oid, 'INSERT'), row_security_active(c.oid),
           (SELECT string_agg(l.oid::regclass::text, ', ' ORDER BY l.oid::regclass::text)
            FROM (SELECT c.oid UNION SELECT relid FROM pg_partition_tree(c.oid)) AS member(oid)
            JOIN pg_class l ON l.oid = member.oid
            WHERE l.relpersistence <> 'p' OR l.relkind NOT IN ('r', 'p'))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relname = %s
"""

_COLUMNS = """
    SELECT a.attname, CASE WHEN t.typtype = 'e' THEN 'enum' WHEN n.nspname = 'pg_catalog' THEN t.typname::text
                           ELSE n.nspname || '.' || t.typname END,
           format_type(a.atttypid, a.atttypmod), CASE d.typtype WHEN 'd' THEN d.typtypmod ELSE a.atttypmod END,
           a.attnotnull, a.atthasdef OR a.attidentity <> '', a.attgenerated <> '',
           d.typtype = 'd',
           EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (indkey))
    FROM pg_attribute a JOIN pg_type d ON d.oid = a.atttypid
    JOIN pg_type t ON t.oid = CASE d.typtype WHEN 'd' THEN d.typbasetype ELSE d.oid END
    JOIN pg_namespace n ON n.oid = t.typnamespace
    WHERE a.attrelid = %s::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum
"""


# a partition's part of a parent's index is that index; an exclusion may take any two rows for alike
_TRIGGERS = """
    WITH target (oid) AS (SELECT to_regclass(format('%%I.%%I', %(schema)s::text, %(table)s::text)))
    SELECT EXISTS (
        SELECT FROM pg_trigger g
        WHERE g.tgrelid IN (SELECT oid FROM target UNION SELECT p.relid FROM target, pg_partition_tree(target.oid) p))
"""
_UNIQUE_KEYS = """
    SELECT i.indexrelid::regclass::text, NOT i.indisexclusion AND bool_or(a.attname = %(epoch_column)s)
    FROM (SELECT to_regclass(format('%%I.%%I', %(schema)s::text, %(table)s::text))) t (oid)
    JOIN LATERAL (SELECT t.oid UNION SELECT relid FROM pg_partition_tree(t.oid)) m (oid) ON true
    JOIN pg_index i ON i.indrelid = m.oid AND (i.indisunique OR i.indisexclusion)
    LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = i.indexrelid)
    GROUP BY i.indexrelid, i.indisexclusion
    HAVING i.indisexclusion OR bool_or(a.attname <> ALL (%(given)s) AND (
        a.attidentity <> '' OR pg_get_expr(d.adbin, d.adrelid) ~ %(numbering)s)) IS NOT TRUE
    ORDER BY 1
"""
_NUMBERING = r"\m(nextval|gen_random_uuid|uuid_generate_v[0-9a-z]+|uuidv[47])\("  #: defaults that are never alike


class Table(TargetTable[Column]):
    """See `TargetTable`."""

    def epoch_column(self, name: str | None) -> str | None:
        """`name` if the table has such a column, or what Postgres keeps of a longer one."""
        kept = (name or "").encode()[:63].decode(errors="ignore")
        return next((column for column in (name, kept) if column in self.columns), None)

    def _refusal(self, field: pa.Field, column: Column) -> str | None:
        return refusal(field, column)

    def _is_bigint(self, column: Column) -> bool:
        return column.type_name == "int8"


def find_table(cursor: Cursor, relation: Relation, who: str) -> Table | None:
    """The table, None if there is none. Raises `PreflightRefused` for what can't keep rows safely."""
    cursor.execute(_FIND, (relation.schema, relation.table))
    row = cursor.fetchone()
    if row is None:
        return None
    oid, kind, may_insert, row_security, weak = row
    where = f"{who}: {relation}"
    if kind not in ("r", "p"):
        raise PreflightRefused(f"{where} is {_KINDS.get(kind, 'no table')}: rows are copied only into tables")
    if weak:
        raise PreflightRefused(
            f"{where}: {weak} is UNLOGGED, temporary or foreign and would lose committed rows at a crash: "
            "use ALTER TABLE … SET LOGGED"
        )
    if not may_insert:
        raise PreflightRefused(f"{where}: the role may not INSERT into it: GRANT INSERT")
    if row_security:
        raise PreflightRefused(
            f"{where} has row-level security, which COPY FROM can't pass: use a role that bypasses it"
        )
    cursor.execute(_COLUMNS, (oid,))
    return Table(relation, {row[0]: Column(*row) for row in cursor.fetchall()})


def find_unique_keys(
    cursor: Cursor, relation: Relation, given: Sequence[str], epoch_column: str | None
) -> list[UniqueKey]:
    """What refuses a second row, of the table and its partitions; not keys that the server makes itself, in columns
    that aren't `given`."""
    cursor.execute(
        _UNIQUE_KEYS,
        {
            "schema": relation.schema,
            "table": relation.table,
            "given": list(given),
            "epoch_column": epoch_column,
            "numbering": _NUMBERING,
        },
    )
    return [UniqueKey(name, bool(by_epoch)) for name, by_epoch in cursor.fetchall()]


def has_triggers(cursor: Cursor, relation: Relation) -> bool:
    """Whether the table or a partition of it has any, foreign keys included."""
    cursor.execute(_TRIGGERS, {"schema": relation.schema, "table": relation.table})
    return cursor.fetchone() == (True,)


def create_table(
    cursor: Cursor,
    relation: Relation,
    schema: pa.Schema,
    epoch_column: str | None,
    who: str,
    key: Sequence[str] = (),
) -> None:
    """Create the table of an output with the epoch column, and a small index on it or, for upserts, a primary key.

    Raises `PreflightRefused` for Arrow types that Postgres can't give back.
    """
    columns = []
    for field in schema:
        kind = postgres_type(field.type)
        if kind is None:
            raise PreflightRefused(
                f"{who}: column {field.name} of {relation}: Arrow type {field.type} has no Postgres type that "
                "gives it back: cast it in the transform"
            )
        # ddl comes from our own table of types, never from a name
        ddl = f"{kind.ddl} NOT NULL" if key and field.name in (ORDER_COLUMN, DELETED_COLUMN) else kind.ddl
        columns.append(sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(ddl)))
    if epoch_column is not None:
        columns.append(sql.SQL("{} bigint NOT NULL").format(sql.Identifier(epoch_column)))
    if key:
        columns.append(sql.SQL("PRIMARY KEY ({})").format(sql.SQL(", ").join(map(sql.Identifier, key))))
    cursor.execute(sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(*relation.names), sql.SQL(", ").join(columns)))
    if epoch_column is not None and not key:  # an upsert changes the epoch, and would have to change the index, too
        statement = sql.SQL("CREATE INDEX ON {} USING brin ({}) WITH (pages_per_range = 32)")
        cursor.execute(statement.format(sql.Identifier(*relation.names), sql.Identifier(epoch_column)))
