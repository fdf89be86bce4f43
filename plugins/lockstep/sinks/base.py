"""The description of a sink: what a plan freezes, and what any process can open.

`open` returns the object that the roles work with, see `lockstep.sinks.open_sink`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import ClassVar

from lockstep.connections.names import Dataset, absolute
from lockstep.definition.user_code import ClassNames, argument_as_json
from lockstep.epoch import Json, require_name
from lockstep.errors import InvalidPipeline
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Guarantee, SinkContext
from lockstep.wal.table_staging import TableStaging


class Sink(ABC):
    """A description of one target of a pipeline. It holds no connection and never changes.

    Lockstep freezes `spec()` in each epoch's plan and builds the sink again from it with `Sink.from_spec`, in other
    processes and perhaps years later. So every argument has to be plain JSON and free of secrets: name a connection
    instead. Best is a frozen dataclass:

        @dataclass(frozen=True)
        class MySink(Sink):
            name: str
            output: str
            path: str

            def open(self, context): return OpenMySink(self, context)

    `open` returns a subclass of one of the templates `TwoPhaseCommitSink`, `WriteAheadSink` and `AdoptingSink`. The
    classic mistake is to connect in the constructor: a DAG file that only declares the pipeline would connect, too.
    """

    name: str
    output: str  #: if the sink takes one output of the transform; otherwise define `outputs`
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    #: True if newer rows replace older ones by key (upserts); `lockstep verify` then calls `standing`
    replaces: bool = False
    #: number of transactions in which an epoch is sent; separate processes may send them, see `OpenSink.publish_shard`
    shards: int = 1
    #: True if the sealed files of the one output become files of the table: `open` returns an `AdoptingSink`, and the
    #: output is staged in `home`
    adopts: ClassVar[bool] = False
    #: True if `lockstep compact` can rewrite small files of the table into few
    compacts: ClassVar[bool] = False
    #: True if a foreign writer may overwrite a commit of Lockstep: `cleanup` and `doctor` then check markers again
    may_lose_commits: ClassVar[bool] = False
    #: Arguments about how rows are written (timeouts, retries, sizes), not where or which. They aren't frozen in plans
    #: but come from the deployed definition or from `lockstep override`, and may differ between processes of one epoch.
    operational: ClassVar[Set[str]] = frozenset()
    #: Arguments of a dataclass that are paths; they are made absolute, starting from LOCKSTEP_HOME.
    local_paths: ClassVar[Set[str]] = frozenset()

    def __init__(self, name: str) -> None:
        self.name = require_name("sink", name)

    def __post_init__(self) -> None:
        """Check a dataclass's arguments; call it first if you override it. Raises `InvalidPipeline`."""
        require_name("sink", self.name)
        for argument in self.local_paths:
            object.__setattr__(self, argument, absolute(getattr(self, argument)))

    # --- identity ---

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the transform's outputs that this sink takes."""
        return (self.output,)

    def arguments(self) -> dict[str, Json]:
        """Return the constructor's keyword arguments as JSON, without secrets, paths absolute. A dataclass inherits it.

        Raises `InvalidPipeline` for a field that is no JSON.
        """
        if not is_dataclass(self):
            raise NotImplementedError(
                f"{type(self).__name__} is no dataclass: define `arguments`, the constructor's keyword arguments"
            )
        return {f.name: argument_as_json(self, f.name, f"sink {self.name}") for f in fields(self) if f.init}

    def spec(self) -> Json:
        """Return what the plan freezes: the class and all arguments that aren't operational."""
        frozen = {name: value for name, value in self.arguments().items() if name not in self.operational}
        return {"type": type_name(type(self)), "arguments": frozen}

    def settings(self) -> dict[str, Json]:
        """Return the operational arguments."""
        return {name: value for name, value in self.arguments().items() if name in self.operational}

    def writes_to(self) -> frozenset[str]:
        """Return secret-free descriptions of the places it writes to. Used to detect a different pipeline deployed
        under the same name, so leave out arguments that may change, such as timeouts."""
        return frozenset({json.dumps({**self.spec()["arguments"], "name": None}, sort_keys=True)})

    def datasets(self, connections: Mapping[str, str]) -> Mapping[str, Dataset | tuple[Dataset, ...]]:
        """Return the lineage dataset, or datasets, of each output; leave out outputs that have no such name. Must not
        connect: `connections` maps connection ids to DSNs or URIs."""
        return {}

    @staticmethod
    def from_spec(spec: Json, settings: Mapping[str, Json] = MappingProxyType({})) -> Sink:
        """Build the sink that a plan froze, with the operational arguments in `settings`; others there are ignored.

        Raises `InvalidPipeline` if the class can't be imported or is no sink, or if its arguments don't fit `settings`.
        """
        cls: object = _NAMES.load(str(spec["type"]))
        if not (isinstance(cls, type) and issubclass(cls, Sink)):
            raise InvalidPipeline(f"{spec['type']} is not a Sink")
        operational = {name: value for name, value in settings.items() if name in cls.operational}
        return cls(**{**spec["arguments"], **operational})

    @property
    def numbers_rows(self) -> bool:
        """True if rows are identified by their position in the WAL, so a repeated publication must send them in the
        same order. Not needed if an epoch becomes visible as a whole or not at all."""
        return self.guarantee is not Guarantee.EXACTLY_ONCE

    @property
    def loads_early(self) -> bool:
        """True if `TwoPhaseCommitSink.begin_early` may open a transaction before the WAL is sealed."""
        return False

    def home(self, context: SinkContext) -> TableStaging:
        """Return the table's folder, below which the output is staged, and its epoch column; only if `adopts`. Called
        after `preflight`, so the table exists. Raises `PreflightRefused`, `SinkUnavailable`."""
        raise NotImplementedError

    @property
    def holds_keys(self) -> bool:
        """True if a vote locks its keys: epochs with the same keys wait until it is published or aborted."""
        return False

    def lacks_deletes(self, output: str) -> bool:
        """True if the sink keeps one row per key of this output, and no row can delete its key."""
        return False

    @abstractmethod
    def open(self, context: SinkContext) -> OpenSink:
        """Connect and return the open sink; the caller closes it. If it raises, it leaves nothing open."""

    @contextmanager
    def opened(self, context: SinkContext) -> Iterator[OpenSink]:
        """Open the sink, and close it at the end of the block."""
        sink = self.open(context)
        try:
            yield sink
        finally:
            sink.close()


_NAMES = ClassNames("lockstep.sinks")
type_name, current_type = _NAMES.name, _NAMES.current


class SinkPool:
    """Open sinks of one thread, reused from one epoch to the next: connecting takes as long as a small epoch.

    Only sinks with `serves_many` are kept open, and none that has raised.
    """

    def __init__(self) -> None:
        self._idle: dict[str, OpenSink] = {}

    @contextmanager
    def opened(self, sink: Sink, context: SinkContext) -> Iterator[OpenSink]:
        """Yield an open sink, an idle one if its description is equal."""
        key = json.dumps([sink.spec()["type"], sink.arguments()], sort_keys=True)
        open_sink = self._idle.pop(key, None) or sink.open(context)
        try:
            yield open_sink
        except BaseException:
            open_sink.close()
            raise
        if open_sink.serves_many and key not in self._idle:
            self._idle[key] = open_sink
        else:
            open_sink.close()

    def close(self) -> None:
        while self._idle:
            self._idle.popitem()[1].close()
