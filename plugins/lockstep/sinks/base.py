"""What a sink is: two templates, as in Flink, and one marker.

`TwoPhaseCommitSink` (Flink's TwoPhaseCommitSinkFunction) has the data in the sink before the decision;
`WriteAheadSink` (Flink's GenericWriteAheadSink) sends it after the decision. Both are driven by the same two calls of
the roles, `prepare` and `publish`, and both prove publication by a marker whose key is
(deployment, pipeline, sink, epoch), never the attempt.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Protocol, Self

import pyarrow as pa

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Interval, Json, Vote, require_name
from lockstep.errors import InvalidPipeline, LedgerConflict, PublishBlocked, TargetChanged


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


@dataclass(frozen=True)
class SinkEpoch:
    """What a sink is told of an epoch. `token` names this execution's sessions and handles."""

    id: int
    token: int
    manifest_hash: str
    timestamp: datetime  #: when the epoch was planned: the same in every attempt
    interval: Interval | None = None


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


class Batches(Protocol):
    """The rows of one output of a sealed WAL; every iteration reads, and checks, the files anew."""

    output: str
    schema: pa.Schema
    rows: int

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


class Sink(ABC):
    """A target of a pipeline. Subclass one of the two templates, not this.

    A sink is built from plain arguments that stand in the plan: `arguments()` gives them back, JSON and free of
    secrets, so that any process can build the same sink years later with `Sink.from_spec`.
    """

    guarantee: Guarantee = Guarantee.EXACTLY_ONCE

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
        return {"type": f"{cls.__module__}:{cls.__qualname__}", "arguments": self.arguments()}

    @staticmethod
    def from_spec(spec: Json) -> Sink:
        """Build the sink that a plan froze. Raises `InvalidPipeline` if its class is gone or is no sink."""
        module, _, qualname = str(spec["type"]).partition(":")
        try:
            found: Any = importlib.import_module(module)
            for part in qualname.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError) as error:
            raise InvalidPipeline(f"the plan's sink class {spec['type']} can't be imported: {error}") from error
        if not (isinstance(found, type) and issubclass(found, Sink)):
            raise InvalidPipeline(f"{spec['type']} is not a Sink")
        return found(**spec["arguments"])

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
        (tables, columns, types). Works in short transactions of its own. Raises `PreflightRefused`, `TargetOwned`.
        """

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

    @abstractmethod
    def target_id(self) -> str:
        """The random id stored beside the markers: tells whether this is the target that voted."""

    @abstractmethod
    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The target's visible rows of one epoch, cast to the WAL's schema; for `verify`.

        Raises `PreflightRefused` when the target can't tell epochs apart (no epoch column).
        """

    def _require_target(self, vote: Vote) -> None:
        found = self.target_id()
        if found != vote.target_id:
            raise TargetChanged(
                f"sink {self.name}: the connection leads to target {found}, but target {vote.target_id} voted; "
                "point the connection back, nothing was written"
            )

    def _proof(self, epoch: SinkEpoch) -> Marker | None:
        marker = self.find_marker(epoch.id)
        if marker and marker.manifest_hash != epoch.manifest_hash:
            raise LedgerConflict(
                f"sink {self.name}: epoch {epoch.id} carries the marker of manifest {marker.manifest_hash[:12]}, the "
                f"ledger decided {epoch.manifest_hash[:12]}: the target holds another life of this epoch"
            )
        return marker


class TwoPhaseCommitSink(Sink):
    """The data is in the sink before the decision (Flink: TwoPhaseCommitSinkFunction)."""

    @abstractmethod
    def begin_transaction(self, epoch: SinkEpoch) -> Txn:
        """Open a transaction and insert the marker as its first row."""

    @abstractmethod
    def write(self, txn: Txn, batches: Batches) -> None:
        """Write one output's rows into `txn` (Flink: invoke)."""

    @abstractmethod
    def pre_commit(self, txn: Txn) -> Vote:
        """Make `txn` durable and finishable by any process; prove it before voting."""

    @abstractmethod
    def commit(self, txn: Txn) -> None:
        """Finish a pre-committed `txn`; fine when somebody else just has. Raises `SinkUnavailable` if unknown."""

    @abstractmethod
    def is_pending(self, txn: Txn) -> bool:
        """Whether the handle of `txn` is there to be finished."""

    @abstractmethod
    def write_again(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> bool:
        """Publish from the WAL in one transaction whose first row is the marker; False if the marker was taken."""

    def recover_and_commit(self, txn: Txn) -> bool:
        """Commit `txn` if its handle is there; False when it is gone, which proves nothing by itself."""
        if not self.is_pending(txn):
            return False
        self.commit(txn)
        return True

    def recover_and_abort(self, txn: Txn) -> None:
        """Roll back what a lower token left."""
        self.abort(txn)

    def txn_of(self, epoch: SinkEpoch, vote: Vote) -> Txn:
        """The transaction that a vote stands for."""
        if vote.handle is None:
            raise LedgerConflict(f"sink {self.name}: the vote of a two-phase sink has no handle")
        return Txn(self.name, epoch.id, vote.token, epoch.manifest_hash[:12], vote.handle)

    def prepare(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        txn = self.begin_transaction(epoch)
        reach(CrashPoint.PREPARE_AFTER_MARKER)
        for batches in wal:
            self.write(txn, batches)
        reach(CrashPoint.PREPARE_BEFORE_PRE_COMMIT)
        vote = self.pre_commit(txn)
        reach(CrashPoint.PREPARE_AFTER_PRE_COMMIT)
        return vote

    def publish(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches]) -> Publication:
        """Handle first, then the marker in a new transaction; both absent proves that it was not applied."""
        self._require_target(vote)
        committed = self.recover_and_commit(self.txn_of(epoch, vote))
        if self._proof(epoch):
            return Publication.COMMITTED if committed else Publication.FOUND
        if committed:
            raise PublishBlocked(f"sink {self.name}: epoch {epoch.id} was committed, yet its marker is not to be seen")
        if self.write_again(epoch, wal):
            return Publication.REPAIRED
        if self._proof(epoch):
            return Publication.FOUND
        raise PublishBlocked(f"sink {self.name}: somebody else is publishing epoch {epoch.id}; try again")


class Session(Protocol):
    """The unit of work in which an epoch is sent. `claimed` False: the marker was there, write nothing."""

    claimed: bool


class CheckpointCommitter(ABC):
    """Remembers which epochs a redo sink has sent (Flink: CheckpointCommitter).

    `session` opens the unit of work in which the marker is claimed, the batches are sent and the record is written: a
    transaction of the sink for a committer that lives in the sink (exactly once), nothing for one that doesn't
    (at least once, and the sink says so).
    """

    guarantee: ClassVar[Guarantee]

    def set_job_id(self, job_id: str) -> None:
        """`job_id`: deployment and pipeline."""
        self.job_id = job_id

    def set_operator_id(self, operator_id: str) -> None:
        """`operator_id`: the sink's name."""
        self.operator_id = operator_id

    @abstractmethod
    def create_resource(self) -> None:
        """Create the table or file that remembers; idempotent, in a transaction of its own."""

    @abstractmethod
    def open(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def session(self, epoch: SinkEpoch) -> AbstractContextManager[Session]:
        """Enter: claim the marker first. Leave without error: durable. Leave with an error: nothing happened."""

    @abstractmethod
    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        """The epoch's marker, read in a new transaction."""

    @abstractmethod
    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        """Record the epoch as sent, within `session`."""


class WriteAheadSink(Sink):
    """The data goes into the sink after the decision (Flink: GenericWriteAheadSink)."""

    committer: CheckpointCommitter

    @abstractmethod
    def validate(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        """Check before the decision whatever can be checked: after it, a row that is refused blocks the pipeline."""

    @abstractmethod
    def send_values(self, batches: Batches, epoch: SinkEpoch, timestamp: datetime, session: Session) -> bool:
        """Send one output's rows within `session`; False asks for another try, with everything rolled back."""

    def prepare(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        reach(CrashPoint.PREPARE_BEFORE_PRE_COMMIT)
        vote = self.validate(epoch, wal)
        reach(CrashPoint.PREPARE_AFTER_PRE_COMMIT)
        return vote

    def publish(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches]) -> Publication:
        self._require_target(vote)
        if self._proof(epoch):
            return Publication.FOUND
        with self.committer.session(epoch) as session:
            if session.claimed:
                reach(CrashPoint.PUBLISH_AFTER_MARKER)
                self._send(epoch, wal, session)
        if not session.claimed and not self._proof(epoch):
            raise PublishBlocked(f"sink {self.name}: somebody else is publishing epoch {epoch.id}; try again")
        return Publication.SENT if session.claimed else Publication.FOUND

    def _send(self, epoch: SinkEpoch, wal: Iterable[Batches], session: Session) -> None:
        for batches in wal:
            if not self.send_values(batches, epoch, epoch.timestamp, session):
                raise PublishBlocked(f"sink {self.name}: epoch {epoch.id} was not taken whole; it will be sent again")
        self.committer.commit_checkpoint(epoch, session)

    def find_marker(self, epoch: int) -> Marker | None:
        return self.committer.is_checkpoint_committed(epoch)

    def pending(self) -> list[Txn]:
        """A redo sink leaves nothing between transactions."""
        return []

    def abort(self, txn: Txn) -> None:
        """Nothing to roll back."""
