"""All files that are there, whichever epochs read them, too."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lockstep.epoch import ChangedFile, Claim, Interval, Position
from lockstep.errors import SourceNotReady
from lockstep.sources.base import SourceContext
from lockstep.sources.files._changes import find_late
from lockstep.sources.files._paths import pattern_of
from lockstep.sources.files.open_source import OpenFileSource
from lockstep.sources.files.places import EXPECTS

if TYPE_CHECKING:
    from lockstep.sources.files.source import FileSource


class OpenFileSnapshot(OpenFileSource):
    """A file that changes from one epoch to the next is what a snapshot is for. Within one it is `SourceChanged`, as
    for any file that a plan froze."""

    def __init__(self, source: FileSource, context: SourceContext) -> None:
        nobodys = replace(
            context, claimed=lambda paths: set(), claims=lambda paths: {}, claimed_by_head=lambda heads: set()
        )
        super().__init__(source, nobodys)

    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        """Raises `SourceNotReady` where there is no file, unless the source says `missing="empty"`: it may be on its
        way, and each row would be joined with none."""
        end = super().latest(None, interval)
        if not end["files"] and self._source.missing == "error":
            where = self._file_system.place(pattern_of(self._source.path))
            raise SourceNotReady(f"a snapshot of {where} is to be taken, and there is no such file yet", [where])
        return end

    def claims(self, start: Position | None, end: Position) -> list[Claim]:
        return []

    def late_files(self, start: Position | None, end: Position) -> list[str]:
        """Of an interval those that came after it was planned: who restates it afresh has them."""
        own = {claim.path for claim in super().claims(start, end)}
        return find_late(self._file_system, end, lambda paths: own)

    def changed_files(self, start: Position | None, end: Position) -> list[ChangedFile]:
        """Of an interval, too. What a later epoch finds changed in a folder that is read by all of them is no news."""
        return super().changed_files(start, end) if EXPECTS in end else []
