"""DSNs of Postgres as libpq reads them, and texts without what is secret in them."""

from __future__ import annotations

import re

import psycopg2
from psycopg2 import extensions

from lockstep.connections.login import given
from lockstep.connections.names import Dataset, Relation
from lockstep.errors import InvalidPipeline

_SECRETS = ("password", "sslpassword")
_PORT = 5432
_URI = re.compile(r"postgres(?:ql)?://([^/?]*)([^?]*)", re.DOTALL)


def parse_dsn(dsn: str) -> dict[str, str] | None:
    """The parameters in a DSN; None if libpq can't read it, or reads pieces of a password as something else.

    It takes the first @ of a URI for the end of the login, and no @ behind a slash: an unescaped one in the password
    would make the rest of it a host, a port or a database, which its messages quote.
    """
    try:
        parts: dict[str, str] = extensions.parse_dsn(dsn)
    except psycopg2.Error:  # its text repeats the DSN
        return None
    uri = _URI.match(dsn)
    strays = uri is not None and "@" in uri[2]
    odd_host = any(mark in parts.get("host", "") for mark in "@?#")
    return None if strays or odd_host or not re.fullmatch(r"[0-9,]*", parts.get("port", "")) else parts


def require_dsn(dsn: str, where: str) -> None:
    """Raises `InvalidPipeline`: of what doesn't parse, libpq's own messages would quote the password."""
    if parse_dsn(dsn) is None:
        raise InvalidPipeline(
            f"{where} is not a DSN that libpq reads: give postgresql://user@host:port/database with special characters "
            "of the password percent-encoded"
        )


def dataset_of(dsn: str, relation: Relation) -> Dataset:
    """The name of a table of the database in lineage. Raises `InvalidPipeline`."""
    require_dsn(dsn, "the connection of a table")
    parts = parse_dsn(dsn) or {}
    port = parts.get("port", "").split(",")[0] or _PORT
    database = parts.get("dbname") or parts.get("user") or "postgres"
    return Dataset.on("postgres", parts.get("host", ""), port, f"{database}.{relation}")


def complete_dsn(connection: extensions.connection) -> str:
    """The DSN of `connection` for another machine: with the password, wherever libpq has found it."""
    parts = {name: value for name, value in connection.info.dsn_parameters.items() if name != "passfile" and value}
    password = connection.info.password
    return extensions.make_dsn(**parts, password=password) if password else extensions.make_dsn(**parts)


def scrub(text: str, dsn: str) -> str:
    """`text` without a secret of the DSN, or of an earlier one of the same `Login`."""
    for login in given(dsn):
        parts = parse_dsn(login) or {}
        for secret in (login, *(parts.get(name) for name in _SECRETS)):
            text = text.replace(secret, "***") if secret else text
    return text
