"""The tables that rows go into: what they are, whether they can keep an output, and how to make one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lockstep.connections.mariadb.sql import columns as column_list
from lockstep.connections.mariadb.sql import compose, identifier
from lockstep.connections.mariadb.wire import Cursor
from lockstep.connections.names import Relation
from lockstep.errors import PreflightRefused
from lockstep.sinks.mariadb._types import Column, mariadb_type, refusal
from lockstep.sinks.tables.fit import TargetTable
from lockstep.sinks.tables.output import UniqueKey
from lockstep.sinks.tables.upserts import DELETED_COLUMN, ORDER_COLUMN

_FIND = "SELECT table_type, engine FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"

_COLUMNS = """
    SELECT column_name, data_type, column_type, is_nullable = 'NO',
           COALESCE(column_default, 'NULL') <> 'NULL', extra,
           character_set_name, numeric_precision, numeric_scale, datetime_precision, collation_name
    FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""

_UNIQUE_KEYS = """
    SELECT s.index_name, MAX(s.column_name = %(epoch_column)s AND s.sub_part IS NULL),
           MAX(c.column_name NOT IN %(given)s AND (c.extra LIKE '%%auto_increment%%'
               OR c.column_default REGEXP '^(nextval|uuid|sys_guid|uuid_v[47])[(]'))
    FROM information_schema.statistics s JOIN information_schema.columns c
      ON (c.table_schema, c.table_name, c.column_name) = (s.table_schema, s.table_name, s.column_name)
    WHERE s.table_schema = %(database)s AND s.table_name = %(table)s AND s.non_unique = 0
    GROUP BY s.index_name ORDER BY s.index_name
"""


class Table(TargetTable[Column]):
    """See `TargetTable`."""

    def epoch_column(self, name: str | None) -> str | None:
        """MariaDB tells no case apart."""
        return next((column for column in self.columns if name and column.lower() == name.lower()), None)

    def _refusal(self, field: pa.Field, column: Column) -> str | None:
        return refusal(field, column)

    def _is_bigint(self, column: Column) -> bool:
        return column.data_type == "bigint" and not column.unsigned

    def require_fit(self, where: str, schema: pa.Schema, epoch_column: str | None) -> None:
        if len(schema) == 0:
            raise PreflightRefused(f"{where} has no column")
        super().require_fit(where, schema, epoch_column)


def find_table(cursor: Cursor, relation: Relation, who: str) -> Table | None:
    """The table, None if there is none. Raises `PreflightRefused` for what can't keep rows safely."""
    cursor.execute(_FIND, relation.names)
    found = cursor.fetchone()
    if found is None:
        return None
    kind, engine = found
    where = f"{who}: {relation}"
    if kind != "BASE TABLE":
        raise PreflightRefused(f"{where} is a {kind}: rows are loaded only into tables")
    if engine != "InnoDB":
        raise PreflightRefused(
            f"{where}: its engine is {engine}, whose rows survive a rollback: use ALTER TABLE … ENGINE = InnoDB"
        )
    cursor.execute(_COLUMNS, relation.names)
    return Table(relation, {row[0]: _column(*row) for row in cursor.fetchall()})


def _column(name: str, data_type: str, type_text: str, not_null: int, has_default: int, *rest: Any) -> Column:
    extra, charset, precision, scale, fraction, collation = rest
    return Column(
        name,
        data_type,
        type_text,
        not_null=bool(not_null),
        has_default=bool(has_default) or "auto_increment" in extra,
        extra=extra,
        charset=charset,
        precision=precision,
        scale=scale,
        fraction=fraction,
        collation=collation,
    )


def find_unique_keys(
    cursor: Cursor, relation: Relation, given: Sequence[str], epoch_column: str | None
) -> list[UniqueKey]:
    """What refuses a second row; not keys that the server makes itself, in columns that aren't `given`."""
    wanted = {
        "database": relation.schema,
        "table": relation.table,
        "given": list(given),
        "epoch_column": epoch_column,
    }
    cursor.execute(_UNIQUE_KEYS, wanted)
    return [UniqueKey(str(name), bool(by_epoch)) for name, by_epoch, numbered in cursor.fetchall() if not numbered]


def require_insert(cursor: Cursor, relation: Relation, names: list[str]) -> None:
    """Raises the driver's error unless this user may insert these columns; no row is."""
    nothing = ", ".join(["NULL"] * len(names))
    statement = compose("INSERT INTO {table} ", table=relation.names)
    cursor.execute(f"{statement}({column_list(names)}) SELECT {nothing} WHERE FALSE")


def create_table(
    cursor: Cursor,
    relation: Relation,
    schema: pa.Schema,
    epoch_column: str | None,
    who: str,
    key: Sequence[str] = (),
) -> None:
    """Create the table of an output, with the epoch column and, unless rows are replaced by `key`, an index on it.

    With a `key` what orders the rows and says what is deleted is NOT NULL. Raises `PreflightRefused` for Arrow types
    that MariaDB can't give back.
    """
    lines = [_line(field, relation, who, key) for field in schema]
    if epoch_column is not None:
        lines.append(f"{identifier(epoch_column)} bigint NOT NULL")
    if key:
        lines.append(f"PRIMARY KEY ({column_list(list(key))})")
    elif epoch_column is not None:
        lines.append(f"KEY ({column_list([epoch_column])})")
    body = ", ".join(lines)
    cursor.execute(
        compose("CREATE TABLE {table} ", table=relation.names) + f"({body}) ENGINE = InnoDB CHARSET = utf8mb4"
    )


def add_columns(cursor: Cursor, relation: Relation, new: Sequence[pa.Field], who: str) -> None:
    """Add them, nullable: at once and for everybody. Raises `PreflightRefused` as `create_table`."""
    lines = [f"ADD COLUMN IF NOT EXISTS {_line(field.with_nullable(True), relation, who, ())}" for field in new]
    # who waits for it has everybody wait who comes after
    cursor.execute(compose("ALTER TABLE {table} WAIT 1 ", table=relation.names) + ", ".join(lines))


def _line(field: pa.Field, relation: Relation, who: str, key: Sequence[str]) -> str:
    kind = mariadb_type(field.type)
    if kind is None:
        raise PreflightRefused(
            f"{who}: column {field.name} of {relation}: Arrow type {field.type} has no MariaDB type that gives "
            "it back: cast it in the transform"
        )
    # ddl comes from our own table of types, never from a name
    ddl = kind.key_ddl if field.name in key else kind.ddl
    ours = key and field.name in (ORDER_COLUMN, DELETED_COLUMN)
    return f"{identifier(field.name)} {ddl}{' NOT NULL' if ours or not field.nullable else ''}"
