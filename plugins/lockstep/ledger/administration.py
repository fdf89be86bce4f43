"""Administration of the ledger: migrations, history partitions, and the checks of `lockstep doctor`.

Migrations and pruning need the owner of the schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg2
from psycopg2 import sql
from psycopg2.extras import RealDictCursor

from lockstep.errors import InvalidPipeline, LedgerRefused, LedgerUnavailable
from lockstep.ledger._connection import connect, connect_as_owner, first_line, migrations, require_schema, statement

_LOCK = 7_305_808_869  # an arbitrary constant: serializes concurrent migrations
_MIGRATION_REFUSED = (
    "the ledger lacks migrations, and this role may not apply them ({}): run `lockstep migrate` as the owner of its "
    "schema, see docs/security.md"
)


def migrate(dsn: str) -> list[str]:
    """Apply missing migrations, each in its own transaction; returns their names.

    Raises `LedgerRefused` if the schema is newer than this Lockstep, or this role may not change it;
    `LedgerUnavailable`.
    """
    with connect_as_owner(
        dsn, "lockstep-migrate", refused=_MIGRATION_REFUSED, failed="the ledger does not answer"
    ) as connection:
        with connection, connection.cursor() as cursor:
            cursor.execute(statement("disable_timeouts"))
            cursor.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        return _apply_missing(connection)


def _current(connection: Any) -> int:
    """Current schema version. Creates schema and table only if missing: a task's role needs no privilege for that."""
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
    available, current = migrations(), _current(connection)
    if current > available[-1][0]:
        raise LedgerRefused(
            f"the ledger is at migration {current}, this Lockstep supports {available[-1][0]}: upgrade it"
        )
    for version, name, text in available:
        if version <= current:
            continue
        with connection, connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit = on")
            cursor.execute(text)
            cursor.execute("INSERT INTO lockstep.migration (version, name) VALUES (%s, %s)", (version, name))
        applied.append(name)
    return applied


KEEP = timedelta(days=400)
PERIOD = timedelta(days=30)
_LOCK_SECONDS = 5  #: tasks write the history constantly: a longer wait would block them
_PRUNING_REFUSED = (
    "this role may not drop or begin partitions of the history ({}): run `lockstep prune` as the owner of the ledger's "
    "schema, see docs/security.md"
)


@dataclass(frozen=True)
class HistoryPart:
    """A partition of the history: transitions from `starts` (inclusive) to `ends` (exclusive)."""

    name: str
    starts: datetime | None  #: None for the first one
    ends: datetime | None  #: None for the current one
    bytes: int


@dataclass(frozen=True)
class Pruning:
    """The result of pruning, or of its dry run. `held_by`: the unfinished epoch that keeps older partitions."""

    dry_run: bool
    before: datetime  #: older partitions can be dropped
    dropped: tuple[HistoryPart, ...]
    kept: tuple[HistoryPart, ...]
    begun: str | None  #: the new partition; "" in a dry run
    held_by: str | None


def prune(dsn: str, keep: timedelta = KEEP, *, period: timedelta = PERIOD, dry_run: bool = False) -> Pruning:
    """Drop history partitions older than `keep`; start a new one if the last is older than `period`.

    Partitions with transitions of unfinished epochs, and all later ones, stay. Decisions, tokens, claims and votes are
    in other tables and are never dropped. Raises `InvalidPipeline` for a negative `keep`, `LedgerRefused` for a role
    that doesn't own the tables, `LedgerUnavailable`, also while tasks lock the history.
    """
    if keep < timedelta(0) or period <= timedelta(0):
        raise InvalidPipeline(f"the history to keep is a duration of at least 0, not {keep}, in periods above 0")
    with _owner(dsn) as cursor:
        cursor.execute("SELECT clock_timestamp() AS now")
        now: datetime = cursor.fetchone()["now"]
        parts = _parts(cursor)
        held_by, dropped = _droppable(cursor, parts, now - keep)
        remaining, new_partition = parts[len(dropped) :], None
        split = remaining[-1].starts is not None and remaining[-1].starts < now - period
        if dry_run:
            return Pruning(True, now - keep, tuple(dropped), tuple(remaining), "" if split else None, held_by)
        if dropped:
            _drop(cursor, dropped)
        if split:
            cursor.execute(
                "SELECT lockstep.split_history_partition(%s, %s) AS begun", (remaining[-1].name, remaining[-1].starts)
            )
            new_partition = cursor.fetchone()["begun"]
        return Pruning(False, now - keep, tuple(dropped), tuple(_parts(cursor)), new_partition, held_by)


@contextmanager
def _owner(dsn: str) -> Iterator[Any]:
    """A cursor in one transaction of the tables' owner, with a short lock timeout."""
    session = f"-c lock_timeout={_LOCK_SECONDS}s -c statement_timeout=10min"
    with connect_as_owner(
        dsn, "lockstep-prune", refused=_PRUNING_REFUSED, failed="nothing was pruned", options=session
    ) as connection:
        require_schema(connection)
        with connection, connection.cursor(cursor_factory=RealDictCursor) as cursor:
            cursor.execute("SET LOCAL synchronous_commit = on")
            cursor.execute("LOCK TABLE lockstep.finished_rollup IN SHARE UPDATE EXCLUSIVE MODE")  # serializes pruning
            yield cursor


def _parts(cursor: Any) -> list[HistoryPart]:
    cursor.execute(statement("list_history_partitions"))
    return [HistoryPart(**row) for row in cursor.fetchall()]


def _droppable(cursor: Any, parts: list[HistoryPart], before: datetime) -> tuple[str | None, list[HistoryPart]]:
    """The partitions that can be dropped, and the epoch that keeps the first remaining one."""
    droppable: list[HistoryPart] = []
    for part in parts[:-1]:
        if part.ends is None or part.ends > before:
            break
        cursor.execute(sql.SQL(statement("find_unfinished_in_history")).format(_table(part)))
        if row := cursor.fetchone():
            return f"{row['pipeline']} epoch {row['id']}", droppable
        droppable.append(part)
    return None, [] if [part.name for part in droppable] == [_bottom(part) for part in droppable] else droppable


def _drop(cursor: Any, parts: list[HistoryPart]) -> None:
    """Drop partitions and add an empty one in their place: a row of any time needs a partition."""
    for part in parts:
        cursor.execute(sql.SQL("DROP TABLE {}").format(_table(part)))
    last = parts[-1]
    cursor.execute("SELECT lockstep.add_history_partition(%s, NULL, %s)", (_bottom(last), last.ends))


def _bottom(part: HistoryPart) -> str:
    """Name of the empty partition that ends where `part` does."""
    return f"transition_before_{part.ends:%Y%m%d}"


def _table(part: HistoryPart) -> sql.Identifier:
    return sql.Identifier("lockstep", part.name)


@dataclass(frozen=True)
class LedgerCondition:
    """Findings about the ledger's server. `migration` 0: no ledger in the database. `unreadable`: tables that this role
    can't read."""

    server: int  #: server_version_num of PostgreSQL: 160004 is 16.4
    migration: int
    known: int  #: latest migration of this version
    settings_off: tuple[str, ...]  #: settings that are off, so that decisions could be lost
    connections: int
    max_connections: int
    unreadable: tuple[str, ...]
    may_write: bool
    clock_ahead: timedelta  #: lower bound for the server's clock minus the local clock


def examine_ledger(dsn: str) -> LedgerCondition:
    """Examine the ledger's server without changes. Raises `LedgerRefused`, `LedgerUnavailable`."""
    with closing(connect(dsn, "lockstep-doctor", options="-c statement_timeout=20s")) as connection:
        try:
            with connection.cursor(cursor_factory=RealDictCursor) as cursor:
                sent_at = datetime.now(UTC)
                cursor.execute(statement("examine_server"))
                server = dict(cursor.fetchone() or {})
                received_at = datetime.now(UTC)
                migration = 0
                if server["migrated"]:
                    cursor.execute(statement("find_schema"))
                    migration = int(dict(cursor.fetchone() or {})["version"])
        except psycopg2.Error as error:
            raise LedgerUnavailable(f"the ledger does not answer: {first_line(error)}") from error
    return LedgerCondition(
        server=server["server"],
        migration=migration,
        known=migrations()[-1][0],
        settings_off=tuple(server["settings_off"]),
        connections=server["connections"],
        max_connections=server["max_connections"],
        unreadable=tuple(server["unreadable"]),
        may_write=server["may_write"],
        clock_ahead=min(server["at"] - sent_at, timedelta())
        if server["at"] < received_at
        else server["at"] - received_at,
    )
