"""One transaction at the Postgres server of a source: whose it is, and that what it has seen will still be true."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg2
from psycopg2.extensions import connection as Connection
from psycopg2.extensions import make_dsn

from lockstep.errors import InvalidPipeline, SourceRefused, SourceUnavailable
from lockstep.postgres.dsn import parts_of, told
from lockstep.sources.tables.postgres_reading import SETTINGS

_DENIED = "42501"
#: A crash takes transactions that were committed with synchronous_commit = off, and the server gives their numbers away
#: again. A message in the log, and a commit that waits for it, make all that was committed before it durable.
_MAKE_DURABLE = "SET LOCAL synchronous_commit = on; SELECT pg_logical_emit_message(true, 'lockstep', '')"


@contextmanager
def opened(where: str, dsn: str, application: str, *, durable: bool) -> Iterator[Connection]:
    """A transaction that sees one state of the database.

    `durable`: once it has ended, what it saw outlives a crash of the server. `where` opens each message.
    Raises `SourceUnavailable`, `SourceRefused`, `InvalidPipeline`; none holds a secret.
    """
    if parts_of(dsn) is None:
        raise InvalidPipeline(
            f"{where}: not a DSN that libpq reads: give postgresql://user@host:port/database with special characters "
            "of the password percent-encoded"
        )
    connection = None
    try:
        connection = psycopg2.connect(
            dsn, application_name=application[:63], client_encoding="UTF8", connect_timeout=10
        )
        connection.autocommit = True
        with connection.cursor() as cursor:
            _require_primary(where, cursor)  # a replica refuses READ WRITE with an error of its own
            cursor.execute(SETTINGS)
        connection.set_session("REPEATABLE READ", readonly=False, autocommit=False)
        with connection, connection.cursor() as cursor:
            yield connection
            if durable:
                cursor.execute(_MAKE_DURABLE)
    except psycopg2.Error as error:
        text = f"{where}: {told(error, dsn)}"
        if error.pgcode == _DENIED:
            raise SourceRefused(f"{text}; GRANT the role what it lacks") from None
        raise (SourceUnavailable if _may_pass(error) else SourceRefused)(text) from None
    finally:
        if connection is not None:
            connection.close()


def complete_dsn(connection: Connection) -> str:
    """What `connection` was made with, for another machine: the password in it, wherever libpq had found it."""
    found = {name: value for name, value in connection.info.dsn_parameters.items() if name != "passfile" and value}
    return make_dsn(**found, password=connection.info.password) if connection.info.password else make_dsn(**found)


def _require_primary(where: str, cursor: Any) -> None:
    cursor.execute("SELECT pg_is_in_recovery()")
    if cursor.fetchone()[0]:
        raise SourceRefused(
            f"{where}: it leads to a replica (pg_is_in_recovery): which transactions still run, only the primary "
            "knows; connect to the primary"
        )


def _may_pass(error: psycopg2.Error) -> bool:
    """Whether waiting may help: connection, resources, locks, an operator."""
    return error.pgcode is None or error.pgcode.startswith(("08", "25P", "40", "53", "55P03", "57", "58"))
