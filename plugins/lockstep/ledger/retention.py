"""How long the history is kept: old partitions of it are dropped whole, new ones begun. Nothing else is dropped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg2 import sql
from psycopg2.extras import RealDictCursor

from lockstep.errors import InvalidPipeline
from lockstep.ledger._connection import connect_as_owner, require_schema
from lockstep.ledger._statements import statement

KEEP = timedelta(days=400)
PERIOD = timedelta(days=30)
_LOCK_SECONDS = 5  #: tasks write the history all the time: who waits for it longer than that would hold them up
_REFUSED = (
    "this role may not drop or begin partitions of the history ({}): run `lockstep prune` as the owner of the ledger's "
    "schema, see docs/security.md"
)


@dataclass(frozen=True)
class HistoryPart:
    """A partition of the history: transitions from `starts` up to, and not with, `ends`."""

    name: str
    starts: datetime | None  #: None: of the first one
    ends: datetime | None  #: None: of the one that is written to
    bytes: int


@dataclass(frozen=True)
class Pruning:
    """What was done, or in a dry run would be. `held_by`: the unfinished epoch for which older parts were kept."""

    dry_run: bool
    before: datetime  #: what is older may go
    dropped: tuple[HistoryPart, ...]
    kept: tuple[HistoryPart, ...]
    begun: str | None  #: a new partition; in a dry run "" for one that has no name yet
    held_by: str | None


def prune(dsn: str, keep: timedelta = KEEP, *, period: timedelta = PERIOD, dry_run: bool = False) -> Pruning:
    """Drop the partitions of the history that are older than `keep`; begin a new one where the last is `period` old.

    A partition with a transition of an epoch that isn't cleaned or void stays, and so do all after it. Decisions,
    markers' tokens, claims and votes stand elsewhere and stay for good. Raises `InvalidPipeline` if `keep` is negative,
    `LedgerRefused` for a role that doesn't own the tables, `LedgerUnavailable`, also where tasks hold the history.
    """
    if keep < timedelta(0) or period <= timedelta(0):
        raise InvalidPipeline(f"what is to be kept is a time that has passed, not {keep}")
    with _owner(dsn) as cursor:
        cursor.execute("SELECT clock_timestamp() AS now")
        now: datetime = cursor.fetchone()["now"]
        parts = _parts(cursor)
        held_by, dropped = _droppable(cursor, parts, now - keep)
        kept, begun = parts[len(dropped) :], None
        split = kept[-1].starts is not None and kept[-1].starts < now - period
        if dry_run:
            return Pruning(True, now - keep, tuple(dropped), tuple(kept), "" if split else None, held_by)
        if dropped:
            _drop(cursor, dropped)
        if split:
            cursor.execute("SELECT lockstep.split_history_partition(%s, %s) AS begun", (kept[-1].name, kept[-1].starts))
            begun = cursor.fetchone()["begun"]
        return Pruning(False, now - keep, tuple(dropped), tuple(_parts(cursor)), begun, held_by)


@contextmanager
def _owner(dsn: str) -> Iterator[Any]:
    """One transaction of the tables' owner, that doesn't wait long."""
    session = f"-c lock_timeout={_LOCK_SECONDS}s -c statement_timeout=10min"
    with connect_as_owner(
        dsn, "lockstep-prune", refused=_REFUSED, failed="nothing was pruned", options=session
    ) as connection:
        require_schema(connection)
        with connection, connection.cursor(cursor_factory=RealDictCursor) as cursor:
            cursor.execute("SET LOCAL synchronous_commit = on")
            cursor.execute("LOCK TABLE lockstep.finished_rollup IN SHARE UPDATE EXCLUSIVE MODE")  # one prunes at a time
            yield cursor


def _parts(cursor: Any) -> list[HistoryPart]:
    cursor.execute(statement("list_history_partitions"))
    return [HistoryPart(**row) for row in cursor.fetchall()]


def _droppable(cursor: Any, parts: list[HistoryPart], before: datetime) -> tuple[str | None, list[HistoryPart]]:
    """The parts that end before that, and the epoch that keeps the first of those that stay."""
    found: list[HistoryPart] = []
    for part in parts[:-1]:
        if part.ends is None or part.ends > before:
            break
        cursor.execute(sql.SQL(statement("find_unfinished_in_history")).format(_table(part)))
        if row := cursor.fetchone():
            return f"{row['pipeline']} epoch {row['id']}", found
        found.append(part)
    return None, [] if [part.name for part in found] == [_bottom(part) for part in found] else found


def _drop(cursor: Any, parts: list[HistoryPart]) -> None:
    """An empty one takes their place: a row of any time must find a partition, whatever a clock says."""
    for part in parts:
        cursor.execute(sql.SQL("DROP TABLE {}").format(_table(part)))
    last = parts[-1]
    cursor.execute("SELECT lockstep.add_history_partition(%s, NULL, %s)", (_bottom(last), last.ends))


def _bottom(part: HistoryPart) -> str:
    """What an empty part is called that ends where `part` does."""
    return f"transition_before_{part.ends:%Y%m%d}"


def _table(part: HistoryPart) -> sql.Identifier:
    return sql.Identifier("lockstep", part.name)
