"""What a sink is: a frozen description that stands in the plan, and that any process can open.

`open` returns what the roles work with, see `lockstep.sinks.open_sink` (bytewax: a Sink builds its partitions).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import ClassVar

from lockstep.connections.dataset import Dataset
from lockstep.connections.home import absolute
from lockstep.definition.user_code import ClassNames, argument_as_json
from lockstep.epoch import Json, require_name
from lockstep.errors import InvalidPipeline
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Guarantee, SinkContext
from lockstep.wal.table_staging import TableStaging


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

    `open` connects: what it returns subclasses one of the three templates, `TwoPhaseCommitSink`, `WriteAheadSink` and
    `AdoptingSink`.
    """

    name: str
    output: str  #: of a sink that takes one output of the transform; others say `outputs`
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    #: whether newer rows replace older ones (upserts); then `verify` asks for `standing` as long as the WAL is there
    replaces: bool = False
    #: transactions in which an epoch is sent; of several each can be sent by a process of its own, side by side with
    #: the others: see `OpenSink.publish_shard`
    shards: int = 1
    #: whether the sealed files of its one output become files of its table: it opens as an `AdoptingSink`, and the
    #: output is staged at `home`
    adopts: ClassVar[bool] = False
    #: whether Lockstep writes the small files of its table anew into few
    compacts: ClassVar[bool] = False
    #: whether another writer may put its commit over one of Lockstep's: `cleanup` and `doctor` look for markers again
    may_lose_commits: ClassVar[bool] = False
    #: Arguments that say how the rows get there, and neither where nor which: timeouts, tries, sizes. They stand in no
    #: plan, and come from the deployed definition or a person's override: what a decided epoch needs may be another one
    #: than its plan's. The sink has to be right whichever of them each of an epoch's processes works with.
    operational: ClassVar[Set[str]] = frozenset()
    #: Arguments of a dataclass that are paths: made absolute, from LOCKSTEP_HOME, so that any process means the same.
    local_paths: ClassVar[Set[str]] = frozenset()

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

    def datasets(self, connections: Mapping[str, str]) -> Mapping[str, Dataset | tuple[Dataset, ...]]:
        """What lineage calls the place of each output, or the places; of one that has no such name nothing. Connects to
        nothing: `connections` gives a DSN or URI by connection id."""
        return {}

    @staticmethod
    def from_spec(spec: Json, settings: Mapping[str, Json] = MappingProxyType({})) -> Sink:
        """Build the sink that a plan froze, with these operational arguments; others in `settings` count for nothing.

        Raises `InvalidPipeline` if its class is gone or is no sink, or if it doesn't go together with `settings`.
        """
        cls, given = _class_of(spec), spec["arguments"]
        return cls(**{**given, **{name: value for name, value in settings.items() if name in cls.operational}})

    @property
    def numbers_rows(self) -> bool:
        """Whether it knows a row by its place in the WAL, so that what a publication which died has sent must not be
        sent again in another order: unless an epoch is sent whole or not at all."""
        return self.guarantee is not Guarantee.EXACTLY_ONCE

    @property
    def loads_early(self) -> bool:
        """Whether `TwoPhaseCommitSink.begin_early` may open a transaction before it is known what is sealed."""
        return False

    def home(self, context: SinkContext) -> TableStaging:
        """Of a sink that `adopts`: the folder of its table, below which the output is staged, and the column of its
        epochs. The table is there: `preflight` has made it. Raises `PreflightRefused`, `SinkUnavailable`."""
        raise NotImplementedError

    @property
    def holds_keys(self) -> bool:
        """Whether a vote makes other epochs with the same keys wait until it is published or taken back."""
        return False

    def lacks_deletes(self, output: str) -> bool:
        """Whether it keeps one row a key of this output, and no row can say that its key goes."""
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


_NAMES = ClassNames("lockstep.sinks")
type_name, current_type = _NAMES.name, _NAMES.current


def _class_of(spec: Json) -> type[Sink]:
    found = _NAMES.load(str(spec["type"]))
    if not (isinstance(found, type) and issubclass(found, Sink)):
        raise InvalidPipeline(f"{spec['type']} is not a Sink")
    return found
