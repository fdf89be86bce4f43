"""Numbered, forward-only migrations of the ledger's schema."""

from __future__ import annotations

from typing import Any

from lockstep.errors import LedgerRefused
from lockstep.ledger._connection import connect_as_owner
from lockstep.ledger._statements import migrations, statement

_LOCK = 7_305_808_869  # an arbitrary constant: two processes that migrate at once take turns
_REFUSED = (
    "the ledger lacks migrations, and this role may not apply them ({}): run `lockstep migrate` as the owner of its "
    "schema, see docs/security.md"
)


def migrate(dsn: str) -> list[str]:
    """Apply the migrations that are missing, each in its own transaction; return their names.

    Raises `LedgerRefused` when the schema is newer than this Lockstep, or older and not this role's to change;
    `LedgerUnavailable` when it can't be reached.
    """
    with connect_as_owner(dsn, "lockstep-migrate", refused=_REFUSED, failed="the ledger does not answer") as connection:
        with connection, connection.cursor() as cursor:
            cursor.execute(statement("disable_timeouts"))
            cursor.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        return _apply_missing(connection)


def _current(connection: Any) -> int:
    """The version that stands. Creates nothing where it is there: a task's role needn't be allowed to."""
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('lockstep.migration') IS NULL, to_regnamespace('lockstep') IS NULL")
        no_table, no_schema = cursor.fetchone()
        if no_schema:
            cursor.execute("CREATE SCHEMA lockstep")
        if no_table:
            cursor.execute(
                "CREATE TABLE lockstep.migration"
                " (version int PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
            )
        cursor.execute("SELECT coalesce(max(version), 0) FROM lockstep.migration")
        return int(cursor.fetchone()[0])


def _apply_missing(connection: Any) -> list[str]:
    applied = []
    known, current = migrations(), _current(connection)
    if current > known[-1][0]:
        raise LedgerRefused(f"the ledger is at migration {current}, this Lockstep knows {known[-1][0]}: upgrade it")
    for version, name, text in known:
        if version <= current:
            continue
        with connection, connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit = on")
            cursor.execute(text)
            cursor.execute("INSERT INTO lockstep.migration (version, name) VALUES (%s, %s)", (version, name))
        applied.append(name)
    return applied
