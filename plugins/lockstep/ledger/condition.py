"""In what condition the ledger is: what `lockstep doctor` asks of its server before any role would work with it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psycopg2
from psycopg2.extras import RealDictCursor

from lockstep.errors import LedgerUnavailable
from lockstep.ledger._connection import connect, first_line
from lockstep.ledger._statements import migrations, statement


@dataclass(frozen=True)
class LedgerCondition:
    """`migration` 0: the database holds no ledger. `unreadable`: tables that this role may not read."""

    server: int  #: server_version_num of PostgreSQL: 160004 is 16.4
    migration: int
    known: int  #: the last migration of this Lockstep
    settings_off: tuple[str, ...]  #: settings without which a decision could be lost
    connections: int
    max_connections: int
    unreadable: tuple[str, ...]
    may_write: bool
    clock_ahead: timedelta  #: by how much the server's clock is ahead of this machine's, at least


def examine_ledger(dsn: str) -> LedgerCondition:
    """Ask, and change nothing. Raises `LedgerRefused`, `LedgerUnavailable`."""
    with closing(connect(dsn, "lockstep-doctor", options="-c statement_timeout=20s")) as connection:
        try:
            with connection.cursor(cursor_factory=RealDictCursor) as cursor:
                asked = datetime.now(UTC)
                cursor.execute(statement("examine_server"))
                found = dict(cursor.fetchone() or {})
                answered = datetime.now(UTC)
                migration = 0
                if found["migrated"]:
                    cursor.execute(statement("find_schema"))
                    migration = int(dict(cursor.fetchone() or {})["version"])
        except psycopg2.Error as error:
            raise LedgerUnavailable(f"the ledger does not answer: {first_line(error)}") from error
    return LedgerCondition(
        server=found["server"],
        migration=migration,
        known=migrations()[-1][0],
        settings_off=tuple(found["settings_off"]),
        connections=found["connections"],
        max_connections=found["max_connections"],
        unreadable=tuple(found["unreadable"]),
        may_write=found["may_write"],
        clock_ahead=_ahead(found["at"], asked, answered),
    )


def _ahead(at: datetime, asked: datetime, answered: datetime) -> timedelta:
    """The server looked at its clock some time between the two: within that nothing is known."""
    return min(at - asked, timedelta()) if at < answered else at - answered
