"""Connections to the ledger's database; whatever goes wrong, no message of theirs holds a password."""

from __future__ import annotations

from typing import Any

import psycopg2
from psycopg2.extensions import connection as Connection

from lockstep.errors import LedgerRefused, LedgerUnavailable
from lockstep.postgres.connection import dial
from lockstep.postgres.dsn import parse_dsn
from lockstep.postgres.errors import describe


def connect(dsn: str, application: str, **session: Any) -> Connection:
    """Raises `LedgerRefused` for a DSN that doesn't parse and for a replica, `LedgerUnavailable` otherwise."""
    if parse_dsn(dsn) is None:
        raise LedgerRefused(
            "the ledger's DSN can't be parsed (it isn't shown, it may hold a password): "
            "percent-encode special characters of a URI, quote values with spaces"
        )
    replica = LedgerRefused("the ledger's connection leads to a replica; connect to the primary")
    try:
        return dial(dsn, application, replica=replica, readonly=None, **session)
    except psycopg2.Error as error:
        failed = describe(error, dsn)
    raise LedgerUnavailable(f"the ledger can't be reached: {failed}")


def first_line(error: BaseException) -> str:
    """What the server or libpq said, without its context."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
