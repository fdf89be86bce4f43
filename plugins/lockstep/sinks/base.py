"""What a sink is: a frozen description that stands in the plan, and that any process can open.

`open` returns what the roles work with, see `lockstep.sinks.open_sink` (bytewax: a Sink builds its partitions).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Protocol

import pyarrow as pa

from lockstep.class_names import ClassNames, argument_as_json
from lockstep.epoch import Interval, Json, require_name
from lockstep.errors import InvalidPipeline
from lockstep.home import absolute

if TYPE_CHECKING:
    from lockstep.sinks.open_sink import OpenSink


class Guarantee(StrEnum):
    """How often a row of a published epoch stands in the sink."""

    NONE = "none"
    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"


class Publication(StrEnum):
    """How an epoch came to be visible in a sink; recorded in the ledger."""

    COMMITTED = "committed"  #: the prepared transaction was committed
    SENT = "sent"  #: sent from the WAL after the decision
    FOUND = "found"  #: the marker was there already
    REPAIRED = "repaired"  #: the prepared transaction was gone: written again from the WAL
    RESOLVED = "resolved"  #: a person said so


@dataclass(frozen=True)
class SinkContext:
    """What a sink is opened with. `connections` gives a DSN or path by connection id; never log its values."""

    deployment: str
    pipeline: str
    connections: Mapping[str, str]

    def dsn(self, connection: str, sink: str) -> str:
        """What `connection` leads to. Raises `InvalidPipeline` when nobody gave it."""
        found = self.connections.get(connection)
        if found is None:
            given = ", ".join(map(repr, sorted(self.connections))) or "no other"
            raise InvalidPipeline(
                f"sink {sink}: no connection with the id {connection!r} was given, but {given}: add it to "
                "connections=, or correct the sink's connection="
            )
        return found


@dataclass(frozen=True)
class SinkEpoch:
    """What a sink is told of an epoch. `token` names this execution's sessions and handles."""

    id: int
    token: int
    manifest_hash: str
    timestamp: datetime  #: when the epoch was planned: the same in every attempt
    interval: Interval | None = None

    @property
    def span(self) -> str | None:
        """The interval as markers carry it, by which they are found whatever number the epoch has; None: a cursor's."""
        return f"{self.interval.start.isoformat()}/{self.interval.end.isoformat()}" if self.interval else None


@dataclass(frozen=True)
class Txn:
    """A transaction of a sink: enough to finish it from any process. `manifest` is the first 12 hex digits."""

    sink: str
    epoch: int
    token: int
    manifest: str
    handle: str


@dataclass(frozen=True)
class Marker:
    """What a sink wrote in the same transaction as the data: proof of publication."""

    epoch: int
    token: int
    manifest_hash: str
    span: str | None = None  #: see `SinkEpoch.span`; None also for markers of older versions


@dataclass(frozen=True)
class Standing:
    """What became of an epoch's rows of one output in a table where newer rows replace older ones."""

    own: int  #: rows of this epoch, as they were sealed
    overwritten: int  #: a newer row has the key now, from a later epoch or from this one
    missing: int  #: nothing has the key, or something older
    changed: int  #: rows of this epoch with other content than was sealed


class Batches(Protocol):
    """The rows of one output of a sealed WAL; every iteration reads, and checks, the files anew."""

    @property
    def output(self) -> str: ...

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def rows(self) -> int: ...

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


class Sink(ABC):
    """A target of a pipeline, described: nothing here is connected to anything, and nothing changes once it is made.

    A sink is built from plain arguments that stand in the plan: `arguments()` gives them back, JSON and free of
    secrets, so that any process can build the same sink years later with `Sink.from_spec`. Those that are `operational`
    don't: see there. Best it is a frozen dataclass:

        @dataclass(frozen=True)
        class MySink(Sink):
            name: str
            output: str
            path: str

            def open(self, context): return OpenMySink(self, context)

    `open` connects: what it returns subclasses one of the two templates, `TwoPhaseCommitSink` and `WriteAheadSink`.
    """

    name: str
    output: str  #: of a sink that takes one output of the transform; others say `outputs`
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    #: whether newer rows replace older ones (upserts); then `verify` asks for `standing` as long as the WAL is there
    replaces: bool = False
    #: Arguments that say how the rows get there, and neither where nor which: timeouts, tries, sizes. They stand in no
    #: plan, and come from the deployed definition or a person's override: what a decided epoch needs may be another one
    #: than its plan's. The sink has to be right whichever of them each of an epoch's processes works with.
    operational: ClassVar[Set[str]] = frozenset()
    #: Arguments of a dataclass that are paths: made absolute, from LOCKSTEP_HOME, so that any process means the same.
    local_paths: ClassVar[Set[str]] = frozenset()
    #: those that stand in the plan all the same, as an older version froze them
    planned: Mapping[str, Json] = MappingProxyType({})

    def __init__(self, name: str) -> None:
        self.name = require_name("sink", name)

    def __post_init__(self) -> None:
        """Check what a dataclass was made with; one that checks more calls this first. Raises `InvalidPipeline`."""
        require_name("sink", self.name)
        for argument in self.local_paths:
            object.__setattr__(self, argument, absolute(getattr(self, argument)))

    # --- identity ---

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the transform's outputs that this sink takes."""
        return (self.output,)

    def arguments(self) -> dict[str, Json]:
        """The constructor's keyword arguments, JSON, without secrets, paths absolute; of a dataclass: its fields.

        Raises `InvalidPipeline` for a field that is no JSON.
        """
        if not is_dataclass(self):
            raise NotImplementedError(f"{type(self).__name__} is no dataclass: say in `arguments` what it is made with")
        return {one.name: argument_as_json(self, one.name, f"sink {self.name}") for one in fields(self) if one.init}

    def spec(self) -> Json:
        """What the plan freezes of this sink."""
        frozen = {name: value for name, value in self.arguments().items() if name not in self.operational}
        return {"type": type_name(type(self)), "arguments": frozen}

    def settings(self) -> dict[str, Json]:
        """The operational arguments."""
        return {name: value for name, value in self.arguments().items() if name in self.operational}

    def writes_to(self) -> frozenset[str]:
        """The places that it fills, without secrets and whatever else it is told: by them another pipeline is told
        apart which goes by this one's name."""
        return frozenset({json.dumps({**self.spec()["arguments"], "name": None}, sort_keys=True)})

    @staticmethod
    def from_spec(spec: Json, settings: Mapping[str, Json] = MappingProxyType({})) -> Sink:
        """Build the sink that a plan froze, with these operational arguments; others in `settings` count for nothing.

        Raises `InvalidPipeline` if its class is gone or is no sink, or if it doesn't go together with `settings`.
        """
        cls, given = _class_of(spec), spec["arguments"]
        found = cls(**{**given, **{name: value for name, value in settings.items() if name in cls.operational}})
        planned = {name: value for name, value in given.items() if name in cls.operational}
        object.__setattr__(found, "planned", planned)
        return found

    @property
    def numbers_rows(self) -> bool:
        """Whether it knows a row by its place in the WAL, so that what a publication which died has sent must not be
        sent again in another order: unless an epoch is sent whole or not at all."""
        return self.guarantee is not Guarantee.EXACTLY_ONCE

    @property
    def holds_keys(self) -> bool:
        """Whether a vote makes other epochs with the same keys wait until it is published or taken back."""
        return False

    @abstractmethod
    def open(self, context: SinkContext) -> OpenSink:
        """Connect. What is returned is closed by whoever asked for it; an error leaves nothing open."""

    @contextmanager
    def opened(self, context: SinkContext) -> Iterator[OpenSink]:
        """`open` now, `close` at the end."""
        sink = self.open(context)
        try:
            yield sink
        finally:
            sink.close()


_NAMES = ClassNames("lockstep.sinks", {"MySqlSink": "MariaDbSink"})
type_name, current_type = _NAMES.name, _NAMES.current


def _class_of(spec: Json) -> type[Sink]:
    found = _NAMES.load(str(spec["type"]))
    if not (isinstance(found, type) and issubclass(found, Sink)):
        raise InvalidPipeline(f"{spec['type']} is not a Sink")
    return found
