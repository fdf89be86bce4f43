"""What a source is: a frozen description that any process can open."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from lockstep.epoch import Claim, Identity
from lockstep.errors import InvalidPipeline
from lockstep.sources.open_source import OpenSource


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
    """A resettable input, described: nothing here is connected to anything, and nothing changes once it is made. So two
    pipelines, or two threads, may share one.

    `open` returns what the roles work with, see `lockstep.sources.open_source` (bytewax: a Source builds its
    partitions).
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

    @abstractmethod
    def open(self, context: SourceContext) -> OpenSource:
        """For each role that has something to ask, and where the rows are read. What is returned is the caller's own,
        and closed by it; an error leaves nothing open."""

    @contextmanager
    def opened(self, context: SourceContext) -> Iterator[OpenSource]:
        """`open` now, `close` at the end."""
        source = self.open(context)
        try:
            yield source
        finally:
            source.close()
