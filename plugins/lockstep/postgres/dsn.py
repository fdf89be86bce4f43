"""DSNs of Postgres as libpq reads them, and what may be told of a connection that fails."""

from __future__ import annotations

import re

import psycopg2
from psycopg2.extensions import parse_dsn

_SECRETS = ("password", "sslpassword")
_URI = re.compile(r"postgres(?:ql)?://([^/?]*)([^?]*)", re.DOTALL)


def parts_of(dsn: str) -> dict[str, str] | None:
    """The parameters in a DSN; None if libpq can't read it, or reads pieces of a password as something else.

    It takes the first @ of a URI for the end of the login, and no @ behind a slash: an unescaped one in the password
    would make the rest of it a host, a port or a database, which its messages quote.
    """
    try:
        parts: dict[str, str] = parse_dsn(dsn)
    except psycopg2.Error:  # its text repeats the DSN
        return None
    uri = _URI.match(dsn)
    strays = uri is not None and "@" in uri[2]
    odd_host = any(mark in parts.get("host", "") for mark in "@?#")
    return None if strays or odd_host or not re.fullmatch(r"[0-9,]*", parts.get("port", "")) else parts


def told(error: BaseException, dsn: str) -> str:
    """The error's text in one line, without a secret of the DSN. For DSNs that have `parts_of`."""
    return scrubbed(" ".join(str(error).split()), dsn)


def scrubbed(text: str, dsn: str) -> str:
    """`text` without a secret of the DSN."""
    parts = parts_of(dsn) or {}
    for secret in (dsn, *(parts.get(name) for name in _SECRETS)):
        text = text.replace(secret, "***") if secret else text
    return text
