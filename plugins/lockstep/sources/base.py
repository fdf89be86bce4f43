"""What a source is: a frozen description that any process can open."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from lockstep.connections.dataset import Dataset
from lockstep.definition.user_code import ClassNames, argument_as_json
from lockstep.epoch import Claim, Json, KeyedBy
from lockstep.errors import InvalidPipeline
from lockstep.sources.open_source import OpenSource

_log = logging.getLogger(__name__)


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

    A source is built from plain arguments, which `arguments()` gives back, so that the plan can say what was planned,
    and any process can open that years later. Best it is a frozen dataclass:

        @dataclass(frozen=True)
        class MySource(Source):
            place: str

            identity = Identity.CURSOR

            def open(self, context): return OpenMySource(self.place)

    `open` returns what the roles work with, see `lockstep.sources.open_source` (bytewax: a Source builds its
    partitions).
    """

    identity: KeyedBy
    #: Arguments that say how rows are read, or how many at once, and neither from where nor which. Frozen ranges are
    #: read with those of the deployed definition, where there is one: like the transform, they may be corrected until
    #: the rows are sealed.
    operational: ClassVar[frozenset[str]] = frozenset()
    #: Whether each epoch reads all of it, and uses none of it up. Only `Snapshot` is like that.
    is_snapshot: ClassVar[bool] = False

    # --- identity ---

    def arguments(self) -> dict[str, Json]:
        """The constructor's keyword arguments, JSON, without secrets; of a dataclass: its fields.

        Raises `InvalidPipeline` for what is no JSON.
        """
        if not is_dataclass(self):
            raise InvalidPipeline(f"{type(self).__name__} is no dataclass: say in `arguments` what it is made with")
        whose = f"source of type {type(self).__name__}"
        return {one.name: argument_as_json(self, one.name, whose) for one in fields(self) if one.init}

    def spec(self) -> Json | None:
        """What the plan freezes of this source. None if that can't be said: its arguments are no JSON, or its class
        isn't one that other processes can import. Then what it has planned is read by the definition of the day."""
        cls = type(self)
        if "<locals>" in cls.__qualname__ or cls.__module__ == "__main__":
            return None
        try:
            return {"type": _NAMES.name(cls), "arguments": self.arguments()}
        except InvalidPipeline:
            return None

    @staticmethod
    def from_spec(spec: Json, settings: Mapping[str, Json] = MappingProxyType({})) -> Source:
        """Build the source that a plan froze, with these operational arguments; others in `settings` count for nothing.

        Raises `InvalidPipeline` if its class is gone or is no source, or if it doesn't take the arguments.
        """
        cls = _NAMES.load(str(spec["type"]))
        if not (isinstance(cls, type) and issubclass(cls, Source)):
            raise InvalidPipeline(f"{spec['type']} is not a Source")
        try:
            return cls.from_arguments(spec["arguments"], settings)
        except TypeError as error:
            raise InvalidPipeline(f"{spec['type']} takes other arguments than the plan has: {error}") from error

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Json], settings: Mapping[str, Json]) -> Source:
        """Made with what `arguments()` has given, but for those of `settings` that are operational."""
        operational = {name: value for name, value in settings.items() if name in cls.operational}
        make: Any = cls
        found: Source = make(**{**arguments, **operational})
        return found

    def frozen_arguments(self) -> dict[str, Json] | None:
        """Those that aren't operational; None if it has no spec."""
        spec = self.spec()
        return spec and {name: value for name, value in spec["arguments"].items() if name not in self.operational}

    def reads_from(self) -> str:
        """What is read, without secrets: by that another pipeline is told apart which goes by this one's name."""
        cls = type(self)
        return f"{cls.__module__}:{cls.__qualname__}"

    def datasets(self, connections: Mapping[str, str]) -> tuple[Dataset, ...]:
        """What lineage calls the places that are read; none where they have no such name. Connects to nothing:
        `connections` gives a DSN or URI by connection id."""
        return ()

    @property
    def connections(self) -> tuple[str, ...]:
        """The ids of the connections that `open` asks for: a Spark driver of its own is given these and no other."""
        return ()

    @abstractmethod
    def open(self, context: SourceContext) -> OpenSource:
        """For each role that has something to ask, and where the rows are read. What is returned is the caller's own,
        and closed by it; an error leaves nothing open."""

    def why_no_snapshot(self) -> str | None:
        """Why it can't be read whole by each epoch, as `Snapshot` does; None: it can, by `open_snapshot`."""
        return "it has no way to read all that is there at once and to notice what changes of it (`open_snapshot`)"

    def open_snapshot(self, context: SourceContext) -> OpenSource:
        """The same as `open`, for a `Snapshot`: `latest` freezes all that is there now, `read` gives exactly that or
        raises `SourceChanged`, and nothing is claimed. `start` is None throughout."""
        raise InvalidPipeline(f"source {context.source} can't be read whole: {self.why_no_snapshot()}")

    @contextmanager
    def opened(self, context: SourceContext) -> Iterator[OpenSource]:
        """`open` now, `close` at the end."""
        source = self.open(context)
        try:
            yield source
        finally:
            source.close()


def planned_source(name: str, spec: Json | None, defined: Source | None) -> Source:
    """The source as a plan froze it, with the operational arguments of the definition where that is of the same type.

    The definition itself, where nothing else differs, and where the plan doesn't tell. Raises `InvalidPipeline` if
    there is neither.
    """
    if spec is None and defined is not None:
        return defined
    if spec is None:
        raise InvalidPipeline(f"source {name}: its plan doesn't say what it is: this needs the pipeline's definition")
    try:
        planned = Source.from_spec(spec)
    except InvalidPipeline as error:
        if defined is None:
            raise
        _log.warning("source %s is read as it is defined now: %s", name, error)
        return defined
    if defined is None or type(planned) is not type(defined):
        return planned
    if planned.frozen_arguments() == defined.frozen_arguments():
        return defined
    _log.info("source %s is read where it was planned, and not as it is defined now: %s", name, planned.reads_from())
    try:
        return Source.from_spec(spec, defined.arguments())
    except InvalidPipeline as error:  # of a definition that is another one in more than these
        _log.warning("source %s is read as it was planned in every respect: %s", name, error)
        return planned


_NAMES = ClassNames("lockstep.sources")
