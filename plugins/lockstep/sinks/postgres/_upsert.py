"""Rows into a table where newer ones replace older ones of the same key: COPY into a table of our own, then one INSERT.

The table of our own is made, emptied and dropped in the transaction that uses it, so nobody else sees it and nothing of
it is left. It can't be a temporary one: PREPARE TRANSACTION refuses a transaction that has touched one.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor

from lockstep.connections.names import Relation
from lockstep.errors import PreflightRefused
from lockstep.observability.redaction import cause
from lockstep.sinks.postgres._copy import Encoding
from lockstep.sinks.postgres._tables import Table, find_table
from lockstep.sinks.tables.load import TableUpsert
from lockstep.sinks.tables.upserts import ORDER_COLUMN, Order, Upserts

_TABLE = "to_regclass(format('%%I.%%I', %(schema)s::text, %(table)s::text))"
_RIGHTS = f"SELECT has_table_privilege({_TABLE}, 'SELECT') AND has_table_privilege({_TABLE}, 'UPDATE')"
_MAY_CREATE = "SELECT has_schema_privilege(%s, 'CREATE')"
_GROWN = f"""
    SELECT sum(pg_stat_get_xact_tuples_inserted(m.oid) - pg_stat_get_xact_tuples_deleted(m.oid))
    FROM (SELECT {_TABLE}::oid UNION SELECT relid FROM pg_partition_tree({_TABLE})) m (oid)
"""  # noqa: S608

# the columns of every unique index that ON CONFLICT can go by
_UNIQUE = f"""
    SELECT array_agg(a.attname::text)
    FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
    WHERE i.indrelid = {_TABLE} AND i.indisunique AND i.indisvalid AND i.indimmediate
      AND i.indpred IS NULL AND i.indexprs IS NULL
    GROUP BY i.indexrelid
"""  # noqa: S608
# unique indexes that lack a column of the key, with as many predicates and expressions as they like; and exclusions,
# which may take any two rows for alike
_OTHERS = f"""
    SELECT i.indexrelid::regclass::text FROM pg_index i
    LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
    WHERE i.indrelid = {_TABLE} AND (i.indisunique OR i.indisexclusion)
    GROUP BY i.indexrelid HAVING bool_or(i.indisexclusion) OR NOT array_agg(a.attname::text) @> %(key)s ORDER BY 1
"""  # noqa: S608
_BY_BYTES = f"""
    SELECT coalesce(bool_and(c.collisdeterministic), true)
    FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation
    WHERE a.attrelid = {_TABLE} AND a.attname = ANY (%(key)s)
"""  # noqa: S608
# what the unique index on just the key has first
_LEADING = f"""
    SELECT min(a.attname::text) FILTER (WHERE a.attnum = i.indkey[0])
    FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
    WHERE i.indrelid = {_TABLE} AND i.indisunique AND i.indisvalid AND i.indimmediate
      AND i.indpred IS NULL AND i.indexprs IS NULL
    GROUP BY i.indexrelid HAVING array_agg(a.attname::text) <@ %(key)s AND count(*) = cardinality(%(key)s)
"""  # noqa: S608


@dataclass(frozen=True)
class Upsert(TableUpsert[Cursor, Encoding]):
    """One output's way into one table for one epoch."""

    def _staging(self) -> Relation:
        return Relation(self.own.home, f"lockstep_upsert_{uuid.uuid4().hex}")

    def _create(self, cursor: Cursor, staging: Relation, encoding: Encoding) -> None:
        """Unlogged, as nobody needs it after a crash."""
        cursor.execute(
            sql.SQL("CREATE UNLOGGED TABLE {} AS SELECT {} FROM {} WITH NO DATA").format(
                _table(staging), _names(encoding.names), _table(self.load.relation)
            )
        )

    def _drop(self, cursor: Cursor, staging: Relation) -> None:
        cursor.execute(sql.SQL("TRUNCATE {}").format(_table(staging)))  # the room is free now, not at the end
        cursor.execute(sql.SQL("DROP TABLE {}").format(_table(staging)))

    def _merge(self, cursor: Cursor, staging: Relation, encoding: Encoding, rows: int) -> int:
        before = self._growth(cursor)
        cleared = self._cleared(cursor, encoding)
        cursor.execute(self._insert_or_update(staging, encoding, cleared, by_bytes=self._tells_apart_by_bytes(cursor)))
        if cursor.rowcount != rows:  # else each was put in
            self._require_all(cursor, staging, encoding)
        return self._growth(cursor) - before

    def _tells_apart_by_bytes(self, cursor: Cursor) -> bool:
        """Not where a collation takes different texts for the same."""
        cursor.execute(_BY_BYTES, self._named)
        return cursor.fetchone() == (True,)

    def _leading(self, cursor: Cursor) -> str | None:
        cursor.execute(_LEADING, self._named)
        return next((str(name) for (name,) in cursor.fetchall()), None)

    def _is_free(self, cursor: Cursor, column: str, span: tuple[object, object]) -> bool:
        statement = sql.SQL(
            "SELECT (SELECT min({column}) FROM {table} WHERE {column} >= {least}) <= {most} IS NOT TRUE"
        )
        least, most = map(sql.Literal, span)
        names = {"column": sql.Identifier(column), "table": _table(self.load.relation)}
        cursor.execute(statement.format(**names, least=least, most=most))
        return cursor.fetchone() == (True,)

    def _left_out(self, cursor: Cursor, encoding: Encoding) -> list[str]:
        table = find_table(cursor, self.load.relation, self.load.database.where)
        return table.null_without(encoding.names) if table is not None else []

    @property
    def _named(self) -> dict[str, object]:
        return {"schema": self.load.relation.schema, "table": self.load.relation.table, "key": self._key}

    def _growth(self, cursor: Cursor) -> int:
        """By how many rows this transaction has made the table grow; 0 where the server doesn't count."""
        cursor.execute(_GROWN, self._named)
        (grown,) = cursor.fetchone() or (0,)
        return int(grown)

    def _require_unique(self, cursor: Cursor, staging: Relation) -> None:
        columns: list[sql.Composable] = [sql.Identifier(name) for name in self._key]
        if self.upserts.order is Order.COLUMN:
            columns.append(sql.SQL("{} DESC").format(sql.Identifier(ORDER_COLUMN)))
        try:
            cursor.execute(
                sql.SQL("CREATE UNIQUE INDEX ON {} ({})").format(_table(staging), sql.SQL(", ").join(columns))
            )
        except psycopg2.errors.UniqueViolation as error:
            found = (error.diag.message_detail or "").removesuffix(" is duplicated.")
            raise self.load.rejected(self.upserts.duplicates(self.load.output, [found])) from cause(error, True)

    def _insert_or_update(
        self, staging: Relation, encoding: Encoding, cleared: Sequence[str], *, by_bytes: bool
    ) -> sql.Composable:
        """`by_bytes`: sorted as held rows are, so that those who insert and those who update don't deadlock."""
        key, by_column = _names(self._key), self.upserts.order is Order.COLUMN
        texts = {name for name, _, column in encoding.fields if column.type_name in ("text", "varchar") and by_bytes}
        sorted_by = sql.SQL(", ").join(
            sql.SQL('{} COLLATE "C"' if name in texts else "{}").format(sql.Identifier(name)) for name in self._key
        )
        newest = sql.SQL("DISTINCT ON ({})").format(sorted_by) if by_column else sql.SQL("")
        replaced = [name for name in encoding.names if name not in self._key]
        return sql.SQL(
            "INSERT INTO {table} AS t ({columns}) SELECT {newest} {columns} FROM {staging} "
            "ORDER BY {sorted_by}{descending} ON CONFLICT ({key}) "
            "DO UPDATE SET {replaced} WHERE {age_here} < {age_given}"
        ).format(
            table=_table(self.load.relation),
            columns=_names(encoding.names),
            newest=newest,
            staging=_table(staging),
            key=key,
            sorted_by=sorted_by,
            descending=sql.SQL(", {} DESC").format(sql.Identifier(ORDER_COLUMN)) if by_column else sql.SQL(""),
            replaced=sql.SQL(", ").join(
                [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in replaced]
                + [sql.SQL("{} = NULL").format(sql.Identifier(name)) for name in cleared]
            ),
            age_here=self._age("t", encoding),
            age_given=self._age("excluded", encoding),
        )

    def _require_all(self, cursor: Cursor, staging: Relation, encoding: Encoding) -> None:
        """Whoever was not put in found a newer row."""
        cursor.execute(
            sql.SQL("SELECT count(*) FROM {} s WHERE NOT EXISTS (SELECT FROM {} t WHERE {} AND {} >= {})").format(
                _table(staging),
                _table(self.load.relation),
                self._same_key(),
                self._age("t", encoding),
                self._age("s", encoding),
            )
        )
        (missing,) = cursor.fetchone() or (0,)
        if missing:
            raise self.load.rejection(f"the server has not taken {missing} rows: a trigger may drop them")

    def _look(self, cursor: Cursor, staging: Relation, encoding: Encoding) -> tuple[Any, ...]:
        given, here = self._age("s", encoding), self._age("t", encoding)
        same = sql.SQL("{} IS NOT DISTINCT FROM {}").format(_row("s", encoding.names), _row("t", encoding.names))
        look = sql.SQL(
            "SELECT count(*) FILTER (WHERE {here} = {given} AND {same}), count(*) FILTER (WHERE {here} > {given}), "
            "count(*) FILTER (WHERE ({here} >= {given}) IS NOT TRUE), "
            "count(*) FILTER (WHERE {here} = {given} AND NOT ({same})) "
            "FROM {staging} s LEFT JOIN {table} t ON {keys}"
        ).format(
            here=here,
            given=given,
            same=same,
            staging=_table(staging),
            table=_table(self.load.relation),
            keys=self._same_key(),
        )
        cursor.execute(look)
        return cursor.fetchone() or (0, 0, 0, 0)

    def _same_key(self) -> sql.Composable:
        return sql.SQL(" AND ").join(sql.SQL("t.{0} = s.{0}").format(sql.Identifier(name)) for name in self._key)

    def _age(self, alias: str, encoding: Encoding) -> sql.Composable:
        return _row(alias, [ORDER_COLUMN, str(encoding.epoch_column)])


def _table(relation: Relation) -> sql.Identifier:
    return sql.Identifier(*relation.names)


def _names(names: list[str]) -> sql.Composable:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _row(alias: str, names: list[str]) -> sql.Composable:
    return sql.SQL("ROW({})").format(sql.SQL(", ").join(sql.Identifier(alias, name) for name in names))


# --- preflight -------------------------------------------------------------------------------------------------------


def require_upsertable(cursor: Cursor, table: Table, output: str, upserts: Upserts, epoch_column: str) -> None:
    """Refuse a table that can't say which of two rows is newer, or has no unique key. Raises `PreflightRefused`."""
    where = f"sink {upserts.sink}: table {table.relation}"
    key, named = upserts.keys[output], {"schema": table.relation.schema, "table": table.relation.table}
    table.require_order(where, upserts, epoch_column)
    cursor.execute(_UNIQUE, named)
    if set(key) not in [set(columns) for (columns,) in cursor.fetchall()]:
        raise PreflightRefused(
            f"{where}: mode='upsert' needs a primary key or unique index on just ({', '.join(key)}), neither partial "
            "nor deferrable; create it"
        )
    cursor.execute(_OTHERS, {**named, "key": list(key)})
    if others := [str(name) for (name,) in cursor.fetchall()]:
        raise PreflightRefused(
            f"{where}: mode='upsert' replaces by the key alone, but {', '.join(others)} is unique too, and could "
            "refuse a row after the decision: drop it"
        )
    cursor.execute(_RIGHTS, named)
    if cursor.fetchone() != (True,):
        raise PreflightRefused(f"{where}: mode='upsert' reads and updates rows: GRANT SELECT, UPDATE")


def require_staging(cursor: Cursor, schema: str, who: str) -> None:
    """Raises `PreflightRefused` where the role can't make the table in between."""
    cursor.execute(_MAY_CREATE, (schema,))
    if cursor.fetchone() != (True,):
        raise PreflightRefused(
            f"{who}: mode='upsert' makes, and drops, a table in schema {schema} for each epoch: GRANT CREATE ON "
            "SCHEMA, or give another schema"
        )
