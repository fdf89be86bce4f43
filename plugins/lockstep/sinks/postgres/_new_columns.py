"""Columns that a table gets from an epoch, in the very transaction that shows its rows.

Whoever adds one keeps every reader out until that transaction ends, and, while it waits for those that are at work,
everybody behind it: so it waits a moment, lets them through, and tries again.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg2
import pyarrow as pa
from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor

from lockstep.connections.names import Relation
from lockstep.errors import PreflightRefused
from lockstep.sinks.postgres._types import postgres_type

_WAIT = "200ms"
_TRIES = 25
_NAME = 63  #: bytes
_MAY_ADD = """
    SELECT pg_has_role(c.relowner, 'USAGE'), current_user
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
"""


def require_addable(cursor: Cursor, relation: Relation, new: Sequence[pa.Field], who: str) -> None:
    """Raises `PreflightRefused`, naming each column that `relation` can't get from a sink that is `who`."""
    faults = [f"column {field.name}: {fault}" for field in new if (fault := _fault(field))]
    if faults:
        raise PreflightRefused(f"{who}: table {relation} can't get what it lacks: {'; '.join(faults)}")
    cursor.execute(_MAY_ADD, (relation.schema, relation.table))
    may_add, role = cursor.fetchone() or (False, "")
    if not may_add:
        raise PreflightRefused(
            f"{who}: table {relation} lacks the columns {', '.join(field.name for field in new)}, and role {role} may "
            f"not add them: let its owner run: {_statement(relation, new).as_string(cursor)};"
        )


def add_columns(cursor: Cursor, relation: Relation, new: Sequence[pa.Field], who: str) -> None:
    """Add them within the cursor's transaction. Raises `PreflightRefused`, and the driver's error where others have the
    table for too long."""
    require_addable(cursor, relation, new, who)
    cursor.execute("SELECT current_setting('lock_timeout')")
    [max_wait] = cursor.fetchone() or ("0",)
    cursor.execute("SELECT set_config('lock_timeout', %s, true)", (_WAIT,))
    for tried in range(1, _TRIES + 1):
        cursor.execute("SAVEPOINT lockstep_columns")
        try:
            cursor.execute(_statement(relation, new))
            break
        except psycopg2.errors.LockNotAvailable:
            if tried == _TRIES:
                raise
            cursor.execute("ROLLBACK TO SAVEPOINT lockstep_columns")
    cursor.execute("RELEASE SAVEPOINT lockstep_columns")
    cursor.execute("SELECT set_config('lock_timeout', %s, true)", (max_wait,))


def _fault(field: pa.Field) -> str | None:
    if postgres_type(field.type) is None:
        return f"Arrow type {field.type} has no Postgres type that gives it back: cast it in the transform"
    if len(field.name.encode()) > _NAME:
        return f"Postgres cuts a name of more than {_NAME} bytes: give it a shorter one in the transform"
    return None


def _statement(relation: Relation, new: Sequence[pa.Field]) -> sql.Composed:
    kinds = [(field.name, postgres_type(field.type)) for field in new]
    # ddl comes from our own table of types, never from a name
    columns = [
        sql.SQL("ADD COLUMN IF NOT EXISTS {} {}").format(sql.Identifier(name), sql.SQL(kind.ddl))
        for name, kind in kinds
        if kind is not None
    ]
    return sql.SQL("ALTER TABLE {} {}").format(sql.Identifier(*relation.names), sql.SQL(", ").join(columns))
