"""What a source is: something that can say where a range ends, and read exactly that range again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockstep.epoch import Identity, Interval, Position

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class SourceContext:
    """What a source may ask of the ledger while it plans. `claimed` gives those paths that an epoch already owns."""

    pipeline: str
    source: str
    claimed: Callable[[Iterable[str]], set[str]]


class Source(ABC):
    """A resettable input. Positions are JSON and only this source reads them."""

    identity: Identity

    def open(self, context: SourceContext) -> None:  # noqa: B027 - most sources need nothing
        """Called before `latest`."""

    @abstractmethod
    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        """Where this epoch ends. Raises `SourceNotReady` when an expected input isn't there yet."""

    @abstractmethod
    def read(self, spark: SparkSession, start: Position | None, end: Position) -> DataFrame:
        """The rows of the frozen range, and nothing else. Raises `SourceChanged` when it can no longer be read."""

    def claims(self, start: Position | None, end: Position) -> list[str]:
        """The files of the range: each may belong to one epoch only."""
        return []

    def check(self, start: Position | None, end: Position) -> None:  # noqa: B027
        """Raise `SourceChanged` if the frozen range isn't what it was. Called before the read and before the seal."""

    def is_empty(self, start: Position | None, end: Position) -> bool:
        """Whether the range is known to hold nothing."""
        return False
