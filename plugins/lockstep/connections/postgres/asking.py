"""One question to a database that belongs to others: it is read, within bounds, and nothing is left there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import psycopg2

from lockstep.connections.postgres.connection import close_quietly, dial
from lockstep.connections.postgres.dsn import require_dsn
from lockstep.connections.postgres.errors import classify, describe
from lockstep.errors import SOURCE_ERRORS, SourceRefused

_READ_ONLY = "25006"
_SETTINGS = "SET timezone = 'UTC'; SET lock_timeout = '10s'; SET statement_timeout = {}"


def read_rows(
    where: str, dsn: str, query: str, parameters: Mapping[str, object], *, most: int, within: timedelta
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The names of the query's columns and its rows, `most` at most, in a transaction that may only read.

    `query` names parameters as `%(name)s`. `where` opens each message. Raises `SourceUnavailable`, `SourceRefused` for
    what the server refuses, or gives too many rows of; none holds a secret.
    """
    require_dsn(dsn, where)
    replica = SourceRefused(f"{where}: it leads to a replica, which may lag behind what it is compared with")
    settings = _SETTINGS.format(within // timedelta(milliseconds=1))
    connection = None
    try:
        connection = dial(dsn, "lockstep audit", replica=replica, readonly=True, settings=settings)
        with connection, connection.cursor(name="lockstep_audit") as cursor:  # one of ours would get all rows at once
            cursor.execute(query, parameters)
            rows = cursor.fetchmany(most + 1)
            if cursor.description is None:
                raise SourceRefused(f"{where}: what it was asked gives no rows: give one SELECT")
            if len(rows) > most:
                raise SourceRefused(f"{where}: more than {most:,} rows came: aggregate them there")
            return [column.name for column in cursor.description], rows
    except psycopg2.Error as error:
        if error.pgcode == _READ_ONLY:  # elsewhere a primary that has become a replica, and passes
            raise SourceRefused(f"{where}: {describe(error, dsn)}") from None
        raise SOURCE_ERRORS.of(classify(error))(f"{where}: {describe(error, dsn)}") from None
    except (KeyError, TypeError, ValueError, IndexError) as error:  # of the query's placeholders
        raise SourceRefused(
            f"{where}: its query's parameters can't be filled in ({type(error).__name__}): there are "
            f"{', '.join(f'%({name})s' for name in parameters)}, and a percent sign is written %%"
        ) from error
    finally:
        if connection is not None:
            close_quietly(connection)
