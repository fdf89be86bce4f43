"""One transaction at the Postgres server of a source: whose it is, and that what it has seen will still be true."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2
from psycopg2.extensions import connection as Connection

from lockstep.connections.postgres.connection import dial
from lockstep.connections.postgres.dsn import require_dsn
from lockstep.connections.postgres.errors import classify, describe
from lockstep.errors import SOURCE_ERRORS, Failure, SourceRefused
from lockstep.sources.tables._postgres_reading import SETTINGS

#: A crash takes transactions that were committed with synchronous_commit = off, and the server gives their numbers away
#: again. A message in the log, and a commit that waits for it, make all that was committed before it durable.
_MAKE_DURABLE = "SET LOCAL synchronous_commit = on; SELECT pg_logical_emit_message(true, 'lockstep', '')"


@contextmanager
def snapshot(where: str, dsn: str, application: str, *, durable: bool) -> Iterator[Connection]:
    """A transaction that sees one state of the database.

    `durable`: once it has ended, what it saw outlives a crash of the server. `where` opens each message.
    Raises `SourceUnavailable`, `SourceRefused`, `InvalidPipeline`; none holds a secret.
    """
    require_dsn(dsn, where)
    replica = SourceRefused(
        f"{where}: it leads to a replica (pg_is_in_recovery): which transactions still run, only the primary knows; "
        "connect to the primary"
    )
    connection = None
    try:
        connection = dial(dsn, application, replica=replica, isolation="REPEATABLE READ", settings=SETTINGS)
        with connection, connection.cursor() as cursor:
            yield connection
            if durable:
                cursor.execute(_MAKE_DURABLE)
    except psycopg2.Error as error:
        failure = classify(error)
        remedy = "; GRANT the role what it lacks" if failure is Failure.DENIED else ""
        raise SOURCE_ERRORS.of(failure)(f"{where}: {describe(error, dsn)}{remedy}") from None
    finally:
        if connection is not None:
            connection.close()
