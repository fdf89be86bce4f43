"""SQL over sealed rows, by DuckDB."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from lockstep.connections.duckdb.engine import WatchedBatches, engine
from lockstep.errors import QueryRefused

_ROWS = 8192  #: of one batch


@contextmanager
def naming_refusals(*watched: WatchedBatches) -> Iterator[None]:
    """What the engine says in one sentence. Raises `QueryRefused`, or what went wrong with the rows that it was fed."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        for one in watched:
            if one.error is not None:
                raise one.error from None
        said = " ".join(str(error).partition("\nLINE ")[0].split())
        raise QueryRefused(f"the rows can't be asked that: {said[:300]}") from error


def matching(batches: Any, where: str) -> Generator[pa.RecordBatch, None, None]:
    """The rows of `batches`, which has a `schema`, for which the expression is true."""
    with engine() as connection:
        watched = WatchedBatches(batches.schema, batches, lambda rows: None)
        with naming_refusals(watched):
            found = connection.from_arrow(watched.reader()).filter(where).to_arrow_reader(_ROWS)
            yield from found
