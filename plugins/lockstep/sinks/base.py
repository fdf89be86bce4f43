"""What a sink is, and the one marker that proves publication.

There are two templates, as in Flink: `TwoPhaseCommitSink` (Flink's TwoPhaseCommitSinkFunction) has the data in the sink
before the decision, `WriteAheadSink` (GenericWriteAheadSink) sends it after. Both are driven by the same two calls of
the roles, `prepare` and `publish`, and both prove publication by a marker whose key is
(deployment, pipeline, sink, epoch), never the attempt.
"""

from __future__ import annotations

import importlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, Self

import pyarrow as pa

from lockstep.epoch import Interval, Json, Vote, require_name
from lockstep.errors import InvalidPipeline, LedgerConflict, TargetChanged
from lockstep.extras import naming


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
    """A target of a pipeline. Subclass one of the two templates, not this.

    A sink is built from plain arguments that stand in the plan: `arguments()` gives them back, JSON and free of
    secrets, so that any process can build the same sink years later with `Sink.from_spec`. Those that are `operational`
    don't: see there.
    """

    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    #: whether newer rows replace older ones (upserts); then `verify` asks for `standing` as long as the WAL is there
    replaces: bool = False
    #: Arguments that say how the rows get there, and neither where nor which: timeouts, tries, sizes. They stand in no
    #: plan, and come from the deployed definition or a person's override: what a decided epoch needs may be another one
    #: than its plan's. The sink has to be right whichever of them each of an epoch's processes works with.
    operational: ClassVar[frozenset[str]] = frozenset()
    #: those that stand in the plan all the same, as an older version froze them
    planned: Mapping[str, Json] = MappingProxyType({})
    #: whether it sends rows one by one under their place in the WAL: those that a publication which died has sent must
    #: not be sent again in another order
    numbers_rows: bool = False

    def __init__(self, name: str) -> None:
        self.name = require_name("sink", name)

    # --- identity ---

    @property
    @abstractmethod
    def outputs(self) -> tuple[str, ...]:
        """The names of the transform's outputs that this sink takes."""

    @abstractmethod
    def arguments(self) -> dict[str, Json]:
        """The constructor's keyword arguments, JSON, without secrets and with absolute paths."""

    def spec(self) -> Json:
        """What the plan freezes of this sink."""
        cls = type(self)
        frozen = {name: value for name, value in self.arguments().items() if name not in self.operational}
        return {"type": f"{cls.__module__}:{cls.__qualname__}", "arguments": frozen}

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
        cls, given = Sink._class_of(spec), spec["arguments"]
        found = cls(**{**given, **{name: value for name, value in settings.items() if name in cls.operational}})
        found.planned = {name: value for name, value in given.items() if name in cls.operational}
        return found

    @staticmethod
    def _class_of(spec: Json) -> type[Sink]:
        module, _, qualname = str(spec["type"]).partition(":")
        try:
            with naming(qualname):
                found: Any = importlib.import_module(module)
            for part in qualname.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError) as error:
            raise InvalidPipeline(f"the plan's sink class {spec['type']} can't be imported: {error}") from error
        if not (isinstance(found, type) and issubclass(found, Sink)):
            raise InvalidPipeline(f"{spec['type']} is not a Sink")
        return found

    @property
    def holds_keys(self) -> bool:
        """Whether a vote makes other epochs with the same keys wait until it is published or taken back."""
        return False

    @property
    def needs_turn(self) -> bool:
        """Whether another epoch's rows, validated at the same time, could make the target refuse this one's after the
        decision. Then one epoch of the pipeline at a time goes from `prepare` to its publication. Known after a
        `preflight` with schemas."""
        return False

    # --- life cycle ---

    @abstractmethod
    def open(self, context: SinkContext) -> None:
        """Connect. Called before anything else, once a process and task."""

    @abstractmethod
    def close(self) -> None:
        """Let go of every connection; called also after errors."""

    @contextmanager
    def opened(self, context: SinkContext) -> Iterator[Self]:
        """`open` now, `close` at the end."""
        try:
            self.open(context)
            yield self
        finally:
            self.close()

    @abstractmethod
    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        """Refuse what the target can't keep, before any row is written; claim the target; create what is missing.

        Called at `begin` with None (settings, ownership, room) and at `prepare` with the Arrow schema of each output
        (tables, columns, types). Works in short transactions of its own. Raises `PreflightRefused`, `TargetOwned`, and
        `TargetFull` where waiting may help.
        """

    def disclaim(self) -> None:  # noqa: B027 - most targets belong to nobody
        """Own the target no longer: the pipeline is forgotten, and never showed a row there. Fine where nothing is
        owned."""

    # --- the two calls of the roles ---

    @abstractmethod
    def prepare(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        """Take part without showing anything; return the vote. Raises `SinkRejected`, `SinkUnavailable`."""

    @abstractmethod
    def publish(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches]) -> Publication:
        """Make the decided epoch visible; idempotent, by anyone. Raises `TargetChanged`, `LedgerConflict`,
        `OutcomeUnknown`, and `Retryable` errors when it has to be tried again."""

    # --- recovery and verification ---

    @abstractmethod
    def pending(self) -> list[Txn]:
        """Every unfinished transaction of this deployment, pipeline and sink: nothing foreign, whole names parsed."""

    @abstractmethod
    def abort(self, txn: Txn) -> None:
        """Roll `txn` back; fine when it is gone. The caller has asked the ledger first."""

    @abstractmethod
    def find_marker(self, epoch: int) -> Marker | None:
        """The epoch's marker, read in a new transaction on the primary."""

    def find_marker_of_span(self, span: str) -> Marker | None:
        """The marker of a range, whatever number its epoch has; read as `find_marker` does."""
        return None

    def newest_markers(self) -> list[Marker]:
        """Of this sink's markers the one with the largest epoch and, where that is quick, with the largest token."""
        return []

    def markers(self) -> Iterable[Marker]:
        """Every marker of this sink; for a person who looks what a target knows."""
        return self.newest_markers()

    @abstractmethod
    def target_id(self) -> str:
        """The random id stored beside the markers: tells whether this is the target that voted."""

    @abstractmethod
    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The target's visible rows of one epoch, cast to the WAL's schema; for `verify`.

        Raises `PreflightRefused` when the target can't tell epochs apart (no epoch column).
        """

    def standing(self, epoch: SinkEpoch, sealed: Batches) -> Standing:
        """Look for every sealed row of an epoch by its key; only for sinks that say `replaces`. Changes nothing."""
        raise NotImplementedError

    def missing_keys(self, output: str) -> int | None:
        """How many of the keys that any epoch has brought into the table are gone; None if nobody has counted them."""
        return None

    def _require_target(self, vote: Vote) -> None:
        found = self.target_id()
        if found != vote.target_id:
            raise TargetChanged(
                f"sink {self.name}: the connection leads to target {found}, but target {vote.target_id} voted; "
                "point the connection back, nothing was written"
            )

    def refuse_shown(self, epoch: SinkEpoch) -> None:
        """Before the vote: raise `LedgerConflict` if the target shows this epoch as another manifest, or its range
        under another number."""
        shown = self.find_marker(epoch.id)
        if shown is not None and shown.manifest_hash != epoch.manifest_hash:
            raise shown_before(self.name, epoch, shown)
        if shown is None and epoch.span is not None:
            self._refuse_other(epoch, self.find_marker_of_span(epoch.span))

    def has_shown(self, epoch: SinkEpoch) -> bool:
        """Whether the epoch's marker stands, as far as that can be told without waiting for anybody."""
        return self._proof(epoch) is not None

    def _proof(self, epoch: SinkEpoch) -> Marker | None:
        marker = self.find_marker(epoch.id)
        if marker and marker.manifest_hash != epoch.manifest_hash:
            raise LedgerConflict(
                f"sink {self.name}: epoch {epoch.id} carries the marker of manifest {marker.manifest_hash[:12]}, the "
                f"ledger has {epoch.manifest_hash[:12]}: the target holds another life of this epoch"
            )
        if marker is None and epoch.span is not None:
            self._refuse_other(epoch, self.find_marker_of_span(epoch.span))
        return marker

    def _refuse_other(self, epoch: SinkEpoch, shown: Marker | None) -> None:
        if shown is not None and shown.epoch != epoch.id:
            raise shown_before(self.name, epoch, shown)


def shown_before(sink: str, epoch: SinkEpoch, shown: Marker) -> LedgerConflict:
    """What to say where a target shows an epoch's number, or its range, by the word of another ledger."""
    asked = f"epoch {epoch.id}{f' of {epoch.span}' if epoch.span else ''}"
    there = f"epoch {shown.epoch}{f' of {shown.span}' if shown.span else ''}"
    way = "if they are to be written anew, take away the rows and their marker by hand"
    if shown.span == epoch.span or shown.span is None:
        way = f"if all its rows are there, in every sink, give it up: lockstep void … {epoch.id} --reason …; {way}"
    return LedgerConflict(
        f"sink {sink}: {asked} can't be taken, the target shows {there} (token {shown.token}, manifest "
        f"{shown.manifest_hash[:12] or 'unknown'}), by a ledger that this one has no memory of: {way}"
    )
