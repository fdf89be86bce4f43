"""What a source is: something that can say where a range ends, and read exactly that range again."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from lockstep.epoch import Claim, Identity, Interval, Position
from lockstep.errors import InvalidPipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class SourceContext:
    """What a source is opened with.

    `claimed` gives those paths that an epoch already owns, `claims` the last claim on each of them, by path,
    `claimed_by_head` the paths of files that were claimed with such heads; a Spark driver can't ask that. `connections`
    gives a DSN or URI by connection id; never log its values.
    """

    pipeline: str
    source: str
    claimed: Callable[[Iterable[str]], set[str]]
    connections: Mapping[str, str] = field(default_factory=dict, repr=False)
    claims: Callable[[Iterable[str]], Mapping[str, Claim]] = lambda paths: {}
    claimed_by_head: Callable[[Iterable[str]], set[str]] = lambda heads: set()

    @classmethod
    def for_reading(cls, pipeline: str, source: str, connections: Mapping[str, str]) -> SourceContext:
        """Where frozen ranges are read: whoever reads has no ledger to ask."""

        def claimed(paths: Iterable[str]) -> set[str]:
            raise InvalidPipeline(
                f"pipeline {pipeline}: source {source} asks the ledger for its files while it is read"
            )

        return cls(pipeline, source, claimed, connections)

    def dsn(self, connection: str) -> str:
        """What `connection` leads to. Raises `InvalidPipeline` when nobody gave it."""
        found = self.connections.get(connection)
        if found is None:
            raise InvalidPipeline(f"source {self.source}: no connection with the id {connection!r} was given")
        return found


class Source(ABC):
    """A resettable input. Positions are JSON and only this source reads them.

    What stands in a pipeline's definition is a description: it is never opened itself, only copies of it are. So two
    pipelines, or two threads, may share one.
    """

    identity: Identity

    def reads_from(self) -> str:
        """What is read, without secrets: by that another pipeline is told apart which goes by this one's name."""
        cls = type(self)
        return f"{cls.__module__}:{cls.__qualname__}"

    @property
    def connections(self) -> tuple[str, ...]:
        """The ids of the connections that `open` asks for: a Spark driver of its own is given these and no other."""
        return ()

    def opened(self, context: SourceContext) -> Self:
        """A copy of this source that is open. This one stays as it was."""
        found = copy.copy(self)
        found.open(context)
        return found

    def open(self, context: SourceContext) -> None:  # noqa: B027 - most sources need nothing
        """Called before anything else, on a copy of its own, by each role that has something to ask and where the rows
        are read. Keep what you are given in attributes; don't change what stands in them already: copies share it."""

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

    def published(self, start: Position | None, end: Position) -> None:  # noqa: B027
        """Tell outside that every sink shows the range, for monitors: may be called again, or never after a crash."""

    def rows_planned(self, start: Position | None, end: Position) -> int | None:
        """How many rows the range had when it was planned, if they were counted: as many must be read."""
        return None

    def is_empty(self, start: Position | None, end: Position) -> bool:
        """Whether the range is known to hold nothing."""
        return False
