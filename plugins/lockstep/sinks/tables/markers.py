"""How markers are looked for beside the data: by number, by range, the newest, all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from lockstep.sinks.base import Marker

_SELECT = """
    SELECT m.epoch, m.token, m.manifest_hash, r.span FROM {markers} m
    LEFT JOIN {ranges} r USING (deployment, pipeline, sink, token, epoch)
    WHERE m.deployment = %s AND m.pipeline = %s AND m.sink = %s
"""
_BY_EPOCH = f"{_SELECT} AND m.epoch = %s"
_EVERY = f"{_SELECT} ORDER BY m.epoch DESC"
_LAST = f"{_EVERY} LIMIT 1"
_YOUNGEST = """
    SELECT m.epoch, m.token, m.manifest_hash, r.span FROM {ranges} r
    JOIN {markers} m USING (deployment, pipeline, sink, epoch)
    WHERE r.deployment = %s AND r.pipeline = %s AND r.sink = %s ORDER BY r.token DESC LIMIT 1
"""
_BY_SPAN = """
    SELECT r.epoch, r.token, COALESCE(m.manifest_hash, ''), r.span FROM {ranges} r
    LEFT JOIN {markers} m USING (deployment, pipeline, sink, epoch)
    WHERE r.deployment = %s AND r.pipeline = %s AND r.sink = %s AND r.span = %s
"""


class MarkerLooks(ABC):
    """Committed markers of one sink; the cursor's transaction must be a new one."""

    @abstractmethod
    def _selected(self, cursor: Any, statement: str, *values: object) -> list[Marker]:
        """What `statement` finds, with the tables' names and the owner put in; nothing where there is no table yet."""

    def find_marker(self, cursor: Any, epoch: int) -> Marker | None:
        """The epoch's."""
        return next(iter(self._selected(cursor, _BY_EPOCH, epoch)), None)

    def find_marker_of_span(self, cursor: Any, span: str) -> Marker | None:
        """That of a range, whatever number its epoch has."""
        return next(iter(self._selected(cursor, _BY_SPAN, span)), None)

    def newest_markers(self, cursor: Any) -> list[Marker]:
        """The one with the largest epoch, and of those with a range the one with the largest token."""
        return list(dict.fromkeys([*self._selected(cursor, _LAST), *self._selected(cursor, _YOUNGEST)]))

    def markers(self, cursor: Any) -> list[Marker]:
        """Every one."""
        return self._selected(cursor, _EVERY)
