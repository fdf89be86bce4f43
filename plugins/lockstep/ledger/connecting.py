"""Connections to the ledger's database; whatever goes wrong, no message of theirs holds a password."""

from __future__ import annotations

from typing import Any

import psycopg2

from lockstep.errors import LedgerRefused, LedgerUnavailable
from lockstep.postgres.dsn import parts_of, told


def connect(dsn: str, **session: Any) -> Any:
    """A psycopg2 connection. Raises `LedgerRefused` for a DSN that doesn't parse, `LedgerUnavailable` otherwise."""
    if parts_of(dsn) is None:
        raise LedgerRefused(
            "the ledger's DSN can't be parsed (it isn't shown, it may hold a password): "
            "percent-encode special characters of a URI, quote values with spaces"
        )
    failed = ""
    try:
        return psycopg2.connect(dsn, **session)
    except psycopg2.OperationalError as error:
        failed = told(error, dsn)
    raise LedgerUnavailable(f"the ledger can't be reached: {failed}")


def first_line(error: BaseException) -> str:
    """What the server or libpq said, without its context."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
