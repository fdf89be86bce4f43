"""A Postgres table that each epoch reads whole. Rows may be updated and deleted at any time: the plan freezes which
versions of them there were, and whoever finds others says so.

Postgres gives each new version of a row its transaction's number, `xmin`, and no transaction makes any once it has
ended. So what has as many rows, and the same digest of their numbers, has the very same versions; these were there all
the time between two looks, and with as many rows read as planned nothing else was.

What a version of a row says hangs on the table's definition, too: a label of an enum is renamed, two columns exchange
their names, one is added or dropped, and no row gets another version. So the plan freezes the columns' catalog entries
as well.
"""

from __future__ import annotations

from typing import Protocol, cast

from lockstep.epoch import Interval, Json, Position
from lockstep.errors import SourceChanged
from lockstep.sources.tables.source import OpenTableSource, Span, TableSession, span_of


class VersionedSession(TableSession, Protocol):
    """One that tells which versions of rows there are."""

    def versions(self, span: Span) -> str:
        """A digest of those in the span. Raises `SourceRefused` where rows have none."""

    def shapes(self) -> dict[str, str]:
        """By column a digest of what its values hang on beside the rows."""


class OpenTableSnapshot(OpenTableSource):
    """Positions have `"versions"` and `"columns"`, too."""

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        return super().latest(None, None)

    def _facts(self, session: TableSession, span: Span) -> dict[str, Json]:
        asked = cast(VersionedSession, session)
        return {"rows": session.count(span), "versions": asked.versions(span), "columns": asked.shapes()}

    def _require_same_rows(self, session: TableSession, end: Position) -> None:
        now = self._facts(session, span_of(end))
        columns: dict[str, str] = now.pop("columns")
        if changed := self._changed(end["columns"], columns):
            raise SourceChanged(
                f"source {self._name}: columns {', '.join(changed)} of table {self._source.table} were renamed, added, "
                "dropped or altered, or labels of their type were, since its snapshot was taken, and nobody has it as "
                "it was: `lockstep replan` takes another one"
            )
        if now != {name: end[name] for name in now}:
            raise SourceChanged(
                f"source {self._name}: rows of table {self._source.table} were added, updated or deleted since its "
                f"snapshot was taken ({end['rows']:,} rows then, {now['rows']:,} now), and nobody has it as it was: "
                "`lockstep replan` takes another one"
            )

    def _changed(self, then: dict[str, str], now: dict[str, str]) -> list[str]:
        """The columns that are read and no longer what they were. Which are read may be corrected meanwhile."""
        read = {*self._source.columns, self._source.order_by} if self._source.columns else {*then, *now}
        return sorted(name for name in read if then.get(name) != now.get(name))
