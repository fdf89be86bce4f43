"""The interface of sources: `Source` describes an input, `OpenSource` is connected to it.

To write a source, implement both:

    @dataclass(frozen=True)
    class MySource(Source):
        path: str

        identity = KeyedBy.CURSOR

        def open(self, context): return OpenMySource(self.path)
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from lockstep.connections.names import Dataset
from lockstep.definition.user_code import ClassNames, argument_as_json
from lockstep.epoch import ChangedFile, Claim, Interval, Json, KeyedBy, Position
from lockstep.errors import InvalidPipeline, SourceRefused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger(__name__)

_NAMES = ClassNames("lockstep.sources")


class OpenSource(ABC):
    """An input that one caller has opened. It decides where an epoch's range ends, and reads exactly that range again.

    A range is the pair `start`, `end` of positions: `start` is the end of the epoch before (None for the first epoch),
    `end` is what `latest` returned for this epoch. Positions are JSON values that only the source interprets; the plan
    stores them. `read` and `check` may be called in other processes than `latest`, repeatedly, and years later.
    """

    def close(self) -> None:  # noqa: B027 - most sources have nothing to close
        """Release all connections. Called also after errors."""

    @abstractmethod
    def latest(self, start: Position | None, interval: Interval | None) -> Position:
        """Return where this epoch ends. Called when the epoch is planned, which freezes the result.

        `interval` is the data interval of the run, if it has one. Raises `SourceNotReady` when an expected input isn't
        there yet.
        """

    @abstractmethod
    def read(self, spark: SparkSession, start: Position | None, end: Position) -> DataFrame:
        """Return exactly the rows of the range: the same rows on every call, whatever has arrived since.

        Raises `SourceChanged` when they can no longer be read. Never returns fewer rows instead.
        """

    def claims(self, start: Position | None, end: Position) -> Sequence[str | Claim]:
        """Return the files of the range, each of which may belong to one epoch only. A path claims the whole file."""
        return []

    def check(self, start: Position | None, end: Position) -> None:  # noqa: B027
        """Raise `SourceChanged` if the input of the range has changed. Called before the read and before the seal."""

    def lacks(self, start: Position | None, end: Position) -> str | None:
        """Describe input that belongs to the range but arrived after it was planned; None if there is none.

        Such a range isn't sealed, and no later interval is planned until it is replanned or restated.
        """
        return None

    def rows_planned(self, start: Position | None, end: Position) -> int | None:
        """Return the number of rows counted at planning, all of which must be read; None if they weren't counted."""
        return None

    def rows_held(self, start: Position | None, end: Position) -> int | None:
        """Return the number of rows that the input itself states, without reading them; None if it states none.

        Reading fewer rows fails the epoch. Raises `SourceNotReady` if the input can't be reached.
        """
        return None

    def bytes_planned(self, start: Position | None, end: Position) -> int | None:
        """Return the approximate size of the range in bytes; None if unknown. Small epochs are staged without Spark."""
        return None

    def is_empty(self, start: Position | None, end: Position) -> bool:
        """Return True if the range is known to have no rows; this saves the read."""
        return False

    def join(self, ends: Sequence[Position]) -> Position:
        """Return the end of one range that covers several consecutive ranges, given by their `ends`.

        Raises `SourceRefused` if they can't be read as one range.
        """
        raise SourceRefused("this source can't read several epochs' ranges as one")

    # --- for `lockstep status` and monitoring ---

    def late_files(self, start: Position | None, end: Position) -> Sequence[str]:
        """Return paths of files, or places of records, that belong to the range but arrived later and aren't read."""
        return []

    def changed_files(self, start: Position | None, end: Position) -> Sequence[ChangedFile]:
        """Return files of the range that have changed since, as far as a quick check shows."""
        return []

    def held_back_by(self, start: Position | None, end: Position) -> str | None:
        """Describe what kept further rows out of the range when it was planned; None if nothing did."""
        return None

    def is_finished(self, start: Position | None, end: Position) -> bool:
        """Return True if, by the source's definition, nothing can follow the range."""
        return False

    def report_published(self, start: Position | None, end: Position) -> None:  # noqa: B027
        """Report to external monitoring that the range is visible in all sinks. May be called repeatedly, or never."""


@dataclass(frozen=True)
class SourceContext:
    """The context in which a source is opened.

    `pipeline` and `source` are names for messages. `claimed` returns those of the given paths that an epoch already
    owns, `claims` the last claim on each of them by path, `claimed_by_head` the paths of files claimed with these head
    digests; all three query the ledger, which is not available where rows are read. `connections` maps connection ids
    to DSNs or URIs, which contain secrets: never log them.
    """

    pipeline: str
    source: str
    claimed: Callable[[Iterable[str]], set[str]]
    connections: Mapping[str, str] = field(default_factory=dict, repr=False)
    claims: Callable[[Iterable[str]], Mapping[str, Claim]] = lambda paths: {}
    claimed_by_head: Callable[[Iterable[str]], set[str]] = lambda heads: set()

    @classmethod
    def for_reading(cls, pipeline: str, source: str, connections: Mapping[str, str]) -> SourceContext:
        """Return the context for reading frozen ranges, without access to the ledger."""

        def claimed(paths: Iterable[str]) -> set[str]:
            raise InvalidPipeline(
                f"pipeline {pipeline}: source {source} queries the ledger for its files while it is read"
            )

        return cls(pipeline, source, claimed, connections)

    def dsn(self, connection: str) -> str:
        """Return the DSN or URI of the connection id `connection`. Raises `InvalidPipeline` if it wasn't given."""
        dsn = self.connections.get(connection)
        if dsn is None:
            raise InvalidPipeline(f"source {self.source}: no connection with the id {connection!r} was given")
        return dsn


class Source(ABC):
    """The immutable description of a resettable input. It holds no connection, so pipelines and threads may share it.

    A source is built from plain arguments, which `arguments()` returns, so that a plan can store them and any process
    can open the planned source later. A frozen dataclass needs to implement only `identity` and `open`.
    """

    #: INTERVAL: a data interval determines what an epoch reads. CURSOR: an epoch continues where the last one ended.
    identity: KeyedBy
    #: Names of the arguments that say how rows are read, or how many per epoch, but not which input. Frozen ranges are
    #: read with the deployed definition's values of these: like the transform, they may be corrected until the seal.
    operational: ClassVar[frozenset[str]] = frozenset()
    #: True for sources that each epoch reads completely, without consuming anything. Only `Snapshot` is one.
    is_snapshot: ClassVar[bool] = False

    # --- identity ---

    def arguments(self) -> dict[str, Json]:
        """Return the constructor's keyword arguments as JSON without secrets. The default returns a dataclass's fields.

        Raises `InvalidPipeline` for a value that isn't JSON.
        """
        if not is_dataclass(self):
            raise InvalidPipeline(
                f"{type(self).__name__} is no dataclass: override `arguments` to return its arguments"
            )
        owner = f"source of type {type(self).__name__}"
        return {item.name: argument_as_json(self, item.name, owner) for item in fields(self) if item.init}

    def spec(self) -> Json | None:
        """Return what the plan stores of this source: its class and arguments.

        None if its arguments aren't JSON or other processes can't import its class; its ranges are then read by the
        current definition.
        """
        cls = type(self)
        if "<locals>" in cls.__qualname__ or cls.__module__ == "__main__":
            return None
        try:
            return {"type": _NAMES.name(cls), "arguments": self.arguments()}
        except InvalidPipeline:
            return None

    @staticmethod
    def from_spec(spec: Json, settings: Mapping[str, Json] = MappingProxyType({})) -> Source:
        """Build the source that a plan stored, with the operational arguments among `settings` in place of its own.

        Raises `InvalidPipeline` if its class can't be imported, is no source, or doesn't accept the arguments.
        """
        cls = _NAMES.load(str(spec["type"]))
        if not (isinstance(cls, type) and issubclass(cls, Source)):
            raise InvalidPipeline(f"{spec['type']} is not a Source")
        try:
            return cls.from_arguments(spec["arguments"], settings)
        except TypeError as error:
            raise InvalidPipeline(f"{spec['type']} doesn't accept the arguments that the plan has: {error}") from error

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Json], settings: Mapping[str, Json]) -> Source:
        """Build the source from `arguments()` of another one, with the operational arguments among `settings`."""
        operational = {name: value for name, value in settings.items() if name in cls.operational}
        constructor: Any = cls
        source: Source = constructor(**{**arguments, **operational})
        return source

    def frozen_arguments(self) -> dict[str, Json] | None:
        """Return the arguments that aren't operational; None for a source without a spec."""
        spec = self.spec()
        return spec and {name: value for name, value in spec["arguments"].items() if name not in self.operational}

    def reads_from(self) -> str:
        """Return a secret-free description of what is read.

        It is used to detect a different pipeline deployed under the same name.
        """
        cls = type(self)
        return f"{cls.__module__}:{cls.__qualname__}"

    def datasets(self, connections: Mapping[str, str]) -> tuple[Dataset, ...]:
        """Return the lineage names of what is read, if it has any. Connects to nothing.

        `connections` maps connection ids to DSNs or URIs.
        """
        return ()

    @property
    def connections(self) -> tuple[str, ...]:
        """The ids of the connections that `open` uses: a separate Spark driver is given only these."""
        return ()

    @abstractmethod
    def open(self, context: SourceContext) -> OpenSource:
        """Return the opened source, which the caller closes. Must leave nothing open if it raises.

        Called in each process that plans, checks or reads a range.
        """

    def why_no_snapshot(self) -> str | None:
        """Return why each epoch can't read this source completely, as `Snapshot` does; None if `open_snapshot` can."""
        return "it has no way to read everything at once and to detect changes (`open_snapshot`)"

    def open_snapshot(self, context: SourceContext) -> OpenSource:
        """Return the source opened for a `Snapshot`: like `open`, but each epoch reads everything.

        `latest` freezes all rows that exist now, `read` returns exactly these or raises `SourceChanged`, and nothing is
        claimed. `start` is always None.
        """
        raise InvalidPipeline(f"source {context.source} can't be read whole: {self.why_no_snapshot()}")

    @contextmanager
    def opened(self, context: SourceContext) -> Iterator[OpenSource]:
        """Open the source, and close it on exit."""
        source = self.open(context)
        try:
            yield source
        finally:
            source.close()


@dataclass(frozen=True, eq=False)
class Snapshot(Source):
    """All rows of `source` as they are at the first `begin` of each epoch: reference data to join a stream with.

    A pipeline also needs a source that divides its rows among epochs. A snapshot claims no files. Every attempt of an
    epoch reads the same rows, or raises `SourceChanged`. Positions are those of `source`. Raises `InvalidPipeline` for
    a source that can't guarantee that.
    """

    source: Source
    identity: KeyedBy = field(init=False)  #: of `source`; INTERVAL: each interval reads other input
    is_snapshot: ClassVar[bool] = True

    def __post_init__(self) -> None:
        what = f"a snapshot of {self.source.reads_from()}"
        if (reason := self.source.why_no_snapshot()) is not None:
            raise InvalidPipeline(f"{what} can't be taken: {reason}")
        if self.source.spec() is None:
            raise InvalidPipeline(
                f"{what} can't be taken: no plan can store the source for other processes to open "
                "(its class has to be importable, its arguments plain values)"
            )
        object.__setattr__(self, "identity", self.source.identity)

    def arguments(self) -> dict[str, Json]:
        return {"source": self.source.spec()}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Json], settings: Mapping[str, Json]) -> Source:
        planned, defined = arguments["source"], settings.get("source") or {}
        same_type = defined.get("type") == planned["type"]
        return cls(Source.from_spec(planned, defined["arguments"] if same_type else {}))

    def frozen_arguments(self) -> dict[str, Json] | None:
        return {"source": [type(self.source).__qualname__, self.source.frozen_arguments()]}

    def reads_from(self) -> str:
        return f"a snapshot of {self.source.reads_from()}"

    def datasets(self, connections: Mapping[str, str]) -> tuple[Dataset, ...]:
        return self.source.datasets(connections)

    @property
    def connections(self) -> tuple[str, ...]:
        return self.source.connections

    def why_no_snapshot(self) -> str | None:
        return "it is one already"

    def open(self, context: SourceContext) -> OpenSource:
        return self.source.open_snapshot(context)


def planned_source(name: str, spec: Json | None, defined: Source | None) -> Source:
    """Return the source that a plan stored, with operational arguments of the definition if that has the same type.

    Returns the definition itself if nothing else differs or the plan has no spec. Raises `InvalidPipeline` if there is
    neither.
    """
    if spec is None and defined is not None:
        return defined
    if spec is None:
        raise InvalidPipeline(f"source {name}: its plan doesn't describe it: this needs the pipeline's definition")
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
    _log.info("source %s is read from %s, as planned, and not as it is defined now", name, planned.reads_from())
    try:
        return Source.from_spec(spec, defined.arguments())
    except InvalidPipeline as error:  # the planned and the defined arguments don't go together
        _log.warning("source %s is read with all arguments as it was planned: %s", name, error)
        return planned
