"""Reading a table source's frozen range without Spark: what each of its tasks does, one after the other."""

from __future__ import annotations

from typing import Any

from lockstep.epoch import Position
from lockstep.sources.tables.source import OpenTableSource, Span


def rows_of(source: OpenTableSource, position: Position, parts: int = 1) -> list[dict[str, Any]]:
    """The rows of the range, read in `parts` pieces."""
    span = Span(position["after"], position["upto"])
    if span.is_empty:
        return []
    with source.session() as session:
        schema = session.schema()
        queries = [session.query(piece) for piece in (session.split(span, parts) if parts > 1 else [span])]
        read = session.reader(schema)
    return [row for query in queries for batch in read(query) for row in batch.to_pylist()]
