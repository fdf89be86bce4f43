"""A source that is open: it says where a range ends, and reads exactly that range again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lockstep.epoch import ChangedFile, Claim, Interval, Position
from lockstep.errors import SourceRefused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class OpenSource(ABC):
    """What `Source.open` returns: one caller's own. Positions are JSON, and nobody else looks into them.

    A range is given by where the epoch before ended (None: there is none) and by where this one ends.
    """

    def close(self) -> None:  # noqa: B027 - most sources hold nothing
        """Let go of every connection; called also after errors."""

    @abstractmethod
    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        """Where this epoch ends. Raises `SourceNotReady` when an expected input isn't there yet."""

    @abstractmethod
    def read(self, spark: SparkSession, start: Position | None, end: Position) -> DataFrame:
        """The rows of the frozen range, and nothing else. Raises `SourceChanged` when it can no longer be read."""

    def claims(self, start: Position | None, end: Position) -> Sequence[str | Claim]:
        """The files of the range: each may belong to one epoch only. A path claims the whole file."""
        return []

    def check(self, start: Position | None, end: Position) -> None:  # noqa: B027
        """Raise `SourceChanged` if the frozen range isn't what it was. Called before the read and before the seal."""

    def lacks(self, start: Position | None, end: Position) -> str | None:
        """What belongs to the range and isn't in it, as it came when that had been planned, in words. Such a range
        isn't sealed; and an interval whose epoch is like that keeps the next one from being planned."""
        return None

    def rows_planned(self, start: Position | None, end: Position) -> int | None:
        """How many rows the range had when it was planned, if they were counted: as many must be read."""
        return None

    def rows_held(self, start: Position | None, end: Position) -> int | None:
        """How many rows the range has, where that is told by what is read, without reading it: the job may not have
        read fewer. Raises `SourceNotReady` if it can't be asked."""
        return None

    def bytes_planned(self, start: Position | None, end: Position) -> int | None:
        """About how many bytes there are to read, as far as the range says: small epochs are staged in another way."""
        return None

    def is_empty(self, start: Position | None, end: Position) -> bool:
        """Whether the range is known to hold nothing."""
        return False

    def join(self, ends: Sequence[Position]) -> Position:
        """Where several ranges end as one, each of which goes on where the one before ended; `ends`: theirs. Raises
        `SourceRefused` if they can't be read as one."""
        raise SourceRefused("this source can't read several epochs' ranges as one")

    # --- for people and monitors ---

    def late_files(self, start: Position | None, end: Position) -> Sequence[str]:
        """Paths that came where the files of the range were looked for, or places of records, after it was decided:
        nobody reads them."""
        return []

    def changed_files(self, start: Position | None, end: Position) -> Sequence[ChangedFile]:
        """Files that are no longer what the range has of them, as far as a quick look tells."""
        return []

    def held_back_by(self, start: Position | None, end: Position) -> str | None:
        """What kept further rows out of the range when it was planned, in words."""
        return None

    def is_finished(self, start: Position | None, end: Position) -> bool:
        """Whether nothing comes behind the range, ever, as the source is defined."""
        return False

    def report_published(self, start: Position | None, end: Position) -> None:  # noqa: B027
        """Tell outside that every sink shows the range, for monitors: may be called again, or never after a crash."""
