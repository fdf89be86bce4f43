"""Which rows of sessions are late, by the watermark that the epoch began with.

One that is no older than `forgotten` can't have a part in a session that was forgotten: that ended by then. An older
one can, unless it is within a session that is kept, which no other one reaches into. So whatever is taken in, the
sessions are those of one computation over all that was.
"""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.compute._lateness import AT, PASSES, counts_of_any, rows_with
from lockstep.compute._watermarks import Watermark
from lockstep.definition.sessions import SessionDefinition
from lockstep.definition.windows import micros


@dataclass(frozen=True)
class SessionBounds:
    """In µs: sessions that end by `closed` are closed, by `forgotten` forgotten."""

    closed: int
    forgotten: int
    gap: int

    @classmethod
    def of(cls, windows: SessionDefinition, before: Watermark) -> SessionBounds:
        return cls(before.bound, before.forgetting(windows).forgotten, micros(windows.gap))

    @property
    def pane(self) -> str:
        """SQL for a row's pane: rows of one are less than the gap apart. Each time that may be late has its own."""
        stretch = f"greatest({AT} - pmod({AT}, {self.gap}L), {self.forgotten}L)"
        return f"CASE WHEN {AT} < {self.forgotten}L THEN {AT} ELSE {stretch} END"

    @property
    def doubtful(self) -> str:
        """SQL for whether a row is late unless a session that is kept began by then."""
        return f"({PASSES} AND {AT} < {self.forgotten}L)"

    def counts(self, windows: SessionDefinition) -> dict[str, str]:
        """What is counted of rows as they are read."""
        return {**counts_of_any(windows), "missed": rows_with(self.doubtful)}
