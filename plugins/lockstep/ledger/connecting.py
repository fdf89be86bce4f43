"""Connections to the ledger's database; whatever goes wrong, no message of theirs holds a password."""

from __future__ import annotations

from typing import Any

import psycopg2
from psycopg2.extensions import parse_dsn

from lockstep.errors import LedgerRefused, LedgerUnavailable


def connect(dsn: str, **session: Any) -> Any:
    """A psycopg2 connection. Raises `LedgerRefused` for a DSN that doesn't parse, `LedgerUnavailable` otherwise."""
    parts = _parsed(dsn)
    if parts is None or "@" in parts.get("host", ""):
        raise LedgerRefused(
            "the ledger's DSN can't be parsed (it isn't shown, it may hold a password): "
            "percent-encode special characters of a URI, quote values with spaces"
        )
    failed = ""
    try:
        return psycopg2.connect(dsn, **session)
    except psycopg2.OperationalError as error:
        failed = first_line(error)
    password = parts.get("password")
    raise LedgerUnavailable(f"the ledger can't be reached: {failed.replace(password, '***') if password else failed}")


def first_line(error: BaseException) -> str:
    """What the server or libpq said, without its context."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _parsed(dsn: str) -> dict[str, str] | None:
    try:
        found: dict[str, str] = parse_dsn(dsn)
    except psycopg2.ProgrammingError:  # its text repeats the DSN
        return None
    return found
