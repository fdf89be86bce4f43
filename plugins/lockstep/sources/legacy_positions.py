"""Plans of older versions don't say what a source was: its positions tell enough of that for a person's questions."""

from __future__ import annotations

from lockstep.epoch import Position
from lockstep.sources.base import Source
from lockstep.sources.files.places import EXPECTS
from lockstep.sources.files.source import FileSource
from lockstep.sources.tables.source import HELD_BY


def source_of_position(end: Position) -> Source | None:
    """A source that can tell which files of the range are late or changed, or who held its rows back; None: that is
    nobody's question here. It reads no rows."""
    if not isinstance(end, dict):
        return None
    if "files" in end or EXPECTS in end:
        return FileSource(str(end.get(EXPECTS, "/")), format="text")
    if HELD_BY in end:
        from lockstep.sources.tables.postgres_table import PostgresTableSource

        return PostgresTableSource("unknown", connection="unknown", order_by=end.get("order_by", "unknown"))
    return None
