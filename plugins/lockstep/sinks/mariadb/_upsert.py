"""Rows into a table where newer ones replace older ones of the same key: LOAD DATA into a temporary table, one INSERT.

The temporary table is Aria's, so it is no part of the XA branch or transaction and dies with the session. Where InnoDB
calls it a deadlock that transactions want the same keys, one of them is tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lockstep.connections.mariadb.sql import columns, compose, identifier
from lockstep.connections.mariadb.wire import Cursor
from lockstep.connections.names import Relation
from lockstep.errors import PreflightRefused
from lockstep.sinks.mariadb._load import LoadText, loader_of
from lockstep.sinks.mariadb._tables import Table, find_table
from lockstep.sinks.mariadb._types import KEY_COLLATION
from lockstep.sinks.tables.load import TableUpsert
from lockstep.sinks.tables.upserts import ORDER_COLUMN, Order, Upserts

_STAGING = "lockstep_upsert"

# the columns of every unique index; a prefix of a column counts as something else
_UNIQUE = """
    SELECT index_name, GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR '\\0'), MAX(sub_part IS NOT NULL)
    FROM information_schema.statistics WHERE table_schema = %s AND table_name = %s AND non_unique = 0
    GROUP BY index_name
"""
_LEADING = """
    SELECT column_name FROM information_schema.statistics
    WHERE table_schema = %s AND table_name = %s AND non_unique = 0 AND seq_in_index = 1
"""


@dataclass(frozen=True)
class Upsert(TableUpsert[Cursor, LoadText]):
    """One output's way into one table for one epoch."""

    def _staging(self) -> Relation:
        return Relation(self.load.relation.schema, _STAGING)

    def _create(self, cursor: Cursor, staging: Relation, encoding: LoadText) -> None:
        start = compose("CREATE OR REPLACE TEMPORARY TABLE {table} ENGINE = Aria AS ", table=staging.names)
        end = compose(" FROM {table} WHERE FALSE", table=self.load.relation.names)
        cursor.execute(f"{start}SELECT {columns(encoding.names)}{end}")

    def _drop(self, cursor: Cursor, staging: Relation) -> None:
        cursor.execute(compose("DROP TEMPORARY TABLE {table}", table=staging.names))

    def _require_unique(self, cursor: Cursor, staging: Relation) -> None:
        by_column = self.upserts.order is Order.COLUMN
        grouped = columns([*self._key, ORDER_COLUMN] if by_column else self._key)
        source = compose("FROM {table} GROUP BY ", table=staging.names)
        cursor.execute(f"SELECT {grouped} {source}{grouped} HAVING count(*) > 1 LIMIT 3")
        if found := [row if len(row) > 1 else row[0] for row in cursor.fetchall()]:
            raise self.load.rejected(self.upserts.duplicates(self.load.output, found))

    def _tells_apart_by_bytes(self, cursor: Cursor) -> bool:
        """Preflight lets no other collation be."""
        return True

    def _leading(self, cursor: Cursor) -> str | None:
        """Preflight lets the table have no other unique index."""
        cursor.execute(_LEADING, self.load.relation.names)
        return next((str(name) for (name,) in cursor.fetchall()), None)

    def _is_free(self, cursor: Cursor, column: str, span: tuple[object, object]) -> bool:
        statement = "SELECT COALESCE((SELECT MIN({column}) FROM {table} WHERE {column} >= %s) > %s, TRUE)"
        cursor.execute(compose(statement, column=column, table=self.load.relation.names), span)
        return cursor.fetchone() == (1,)

    def _merge(self, cursor: Cursor, staging: Relation, encoding: LoadText, rows: int) -> int:
        cursor.execute(self._insert_or_update(staging, encoding, self._cleared(cursor, encoding)))
        return loader_of(cursor).last_insert().new

    def _left_out(self, cursor: Cursor, encoding: LoadText) -> list[str]:
        table = find_table(cursor, self.load.relation, self.load.database.where)
        return table.null_without(encoding.names) if table is not None else []

    def _insert_or_update(self, staging: Relation, encoding: LoadText, cleared: Sequence[str]) -> str:
        """The order is assigned last and the epoch before it: assignments see what those before them have done."""
        start = compose("INSERT INTO {table} ", table=self.load.relation.names)
        source = compose(" FROM {table} ORDER BY ", table=staging.names)
        rest = [name for name in encoding.names if name not in (*self._key, ORDER_COLUMN, encoding.epoch_column)]
        newer = _newer(self._given, self._here, encoding)
        replaced = [f"{self._here(name)} = IF({newer}, NULL, {self._here(name)})" for name in cleared]
        replaced += [
            f"{self._here(name)} = IF({newer}, {self._given(name)}, {self._here(name)})"
            for name in (*rest, str(encoding.epoch_column))
        ]
        here, given = self._here(ORDER_COLUMN), self._given(ORDER_COLUMN)
        replaced.append(f"{here} = GREATEST({here}, {given})")
        return (
            f"{start}({columns(encoding.names)}) SELECT {columns(encoding.names)}{source}{columns(self._key)} "
            f"ON DUPLICATE KEY UPDATE {', '.join(replaced)}"
        )

    def _here(self, name: str) -> str:
        """The row that stands; the temporary table has columns of the same names."""
        return identifier((*self.load.relation.names, name))

    def _given(self, name: str) -> str:
        return f"VALUES({identifier(name)})"

    def _look(self, cursor: Cursor, staging: Relation, encoding: LoadText) -> tuple[Any, ...]:
        same = " AND ".join(map(_same, encoding.names))
        keys = " AND ".join(f"{_sealed(name)} = {_standing(name)}" for name in self._key)
        newer = _newer(_standing, _sealed, encoding)
        equal = " AND ".join(
            f"{_standing(name)} = {_sealed(name)}" for name in (ORDER_COLUMN, str(encoding.epoch_column))
        )
        source = compose(
            "FROM {staging} s LEFT JOIN {table} t ON ", staging=staging.names, table=self.load.relation.names
        )
        look = (
            f"SELECT SUM({equal} AND {same}), SUM({newer}), SUM(IF(({equal}) OR {newer}, 0, 1)), "
            f"SUM({equal} AND NOT ({same})) {source}{keys}"
        )
        cursor.execute(look)
        return cursor.fetchone() or (0, 0, 0, 0)


def _sealed(name: str) -> str:
    return f"s.{identifier(name)}"


def _standing(name: str) -> str:
    return f"t.{identifier(name)}"


def _same(name: str) -> str:
    """SQL: both rows have the same in this column. BINARY gives NULL for what is longer than a packet."""
    one, other = _sealed(name), _standing(name)
    digests = f"(LENGTH({one}) < @@max_allowed_packet OR SHA2({one}, 256) <=> SHA2({other}, 256))"
    return f"BINARY {one} <=> BINARY {other} AND {digests}"


def _newer(one: Callable[[str], str], other: Callable[[str], str], text: LoadText) -> str:
    """SQL: the row of `one` is newer than that of `other`; both make a reference of a column's name."""
    order, epoch = ORDER_COLUMN, str(text.epoch_column)
    same_order = f"{one(order)} = {other(order)} AND {one(epoch)} > {other(epoch)}"
    return f"({one(order)} > {other(order)} OR ({same_order}))"


# --- preflight -------------------------------------------------------------------------------------------------------


def require_upsertable(cursor: Cursor, table: Table, output: str, upserts: Upserts, epoch_column: str) -> None:
    """Refuse a table that can't say which of two rows is newer, or which rows are alike. Raises `PreflightRefused`."""
    where = f"sink {upserts.sink}: table {table.relation}"
    key = upserts.keys[output]
    table.require_order(where, upserts, epoch_column)
    for name in key:
        collation = table.columns[name].collation
        if collation not in (None, KEY_COLLATION):
            raise PreflightRefused(
                f"{where}: key column {name} has the collation {collation}, which takes different texts for the same "
                f"key: use {KEY_COLLATION}"
            )
    _require_one_key(cursor, table, key, where)
    cursor.execute(compose("UPDATE {table} SET {key} = {key} WHERE FALSE", table=table.relation.names, key=key[0]))
    staging = compose(
        "CREATE OR REPLACE TEMPORARY TABLE {table} (id int) ENGINE = Aria", table=(table.relation.schema, _STAGING)
    )
    cursor.execute(staging)  # or the server says which right is missing
    cursor.execute(compose("DROP TEMPORARY TABLE {table}", table=(table.relation.schema, _STAGING)))


def _require_one_key(cursor: Cursor, table: Table, key: tuple[str, ...], where: str) -> None:
    """ON DUPLICATE KEY goes by whatever unique index a row meets first, so there has to be one alone."""
    cursor.execute(_UNIQUE, table.relation.names)
    found = {str(name): (set(str(names).split("\0")), bool(prefix)) for name, names, prefix in cursor.fetchall()}
    if not any(names == set(key) and not prefix for names, prefix in found.values()):
        raise PreflightRefused(
            f"{where}: mode='upsert' needs a primary key or unique index on just ({', '.join(key)}); create it"
        )
    others = sorted(name for name, (names, prefix) in found.items() if names != set(key) or prefix)
    if others:
        raise PreflightRefused(
            f"{where}: mode='upsert' replaces by the key alone, but {', '.join(others)} is unique too: drop it"
        )
