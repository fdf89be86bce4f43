"""The template of sinks that can't hold rows back: the data is sent from the WAL after the decision."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import ClassVar, Protocol

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Vote
from lockstep.errors import PublishBlocked, PublishBusy, SinkUnavailable
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Batches, Guarantee, Marker, Publication, SinkEpoch, Txn


class Session(Protocol):
    """The unit of work in which an epoch is sent. `claimed` False: the marker exists, send nothing."""

    @property
    def claimed(self) -> bool: ...


class NothingSent(SinkUnavailable):
    """Raise it if no byte of an output has left this process. With at most once the epoch then counts as not begun,
    and the next publication sends it."""


class CheckpointCommitter(ABC):
    """Remembers which epochs a write-ahead sink has sent (Flink: CheckpointCommitter).

    `session` is entered first and claims the epoch, then the rows are sent, then `commit_checkpoint` records it. Where
    the record is written decides the guarantee:

    - in the target's own transaction, with the rows: exactly once;
    - elsewhere, after the rows: at least once, since a crash in between sends the epoch again;
    - elsewhere, before the rows: at most once. `session` records the epoch as begun and doesn't claim an epoch that it
      finds begun. An epoch that is begun and not recorded as sent gets a marker that isn't `whole`.

    The classic mistake is to claim exactly once with a record outside of the target's transaction.
    """

    guarantee: ClassVar[Guarantee]

    def set_job_id(self, job_id: str) -> None:
        """Set the first part of the records' key: deployment and pipeline."""
        self.job_id = job_id

    def set_operator_id(self, operator_id: str) -> None:
        """Set the second part of the records' key: the sink's name."""
        self.operator_id = operator_id

    @abstractmethod
    def create_resource(self) -> None:
        """Create the table or file of the records; idempotent, in a transaction of its own. Called at preflight."""

    def resource_id(self) -> str:
        """Return a random id that is stored with the records; only needed if the target has no id of its own."""
        raise NotImplementedError

    def open(self) -> None:  # noqa: B027 - some connect for each step
        """Connect."""

    def close(self) -> None:  # noqa: B027 - see `open`
        """Close every connection."""

    @abstractmethod
    def session(self, epoch: SinkEpoch) -> AbstractContextManager[Session]:
        """Open the unit of work for sending `epoch`. On entry: claim the marker. On exit without error: make everything
        durable. On exit with an error: roll everything back."""

    @abstractmethod
    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        """Return the epoch's marker, read in a new transaction."""

    def find_begun(self, epoch: int) -> Marker | None:
        """Return the record that was written before the epoch's first row was sent; None if there is none."""
        return None

    def find_span(self, span: str) -> Marker | None:
        """Return the marker of a range (`SinkEpoch.span`), under any epoch number."""
        return None

    def newest(self) -> list[Marker]:
        """Return the marker with the largest epoch and, if that is cheap, the one with the largest token."""
        return []

    def all(self) -> Iterable[Marker]:
        """Return every marker."""
        return self.newest()

    @abstractmethod
    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        """Record the epoch as sent, within `session`. Called after the last row."""


class WriteAheadSink(OpenSink):
    """The data is sent after the decision, from the WAL (Flink: GenericWriteAheadSink).

    Implement `validate`, `send_values` and the abstract methods of `OpenSink`, and set `committer`. Before the decision
    Lockstep calls `validate` only. After it, in any process and as often as needed: `committer.session`, `send_values`
    for each output, `committer.commit_checkpoint`. Nothing is sent before the decision, and nothing that was sent is
    taken back. The classic mistake is to check a row in `send_values` only: the epoch is decided then, so a row the
    target refuses blocks the pipeline.
    """

    committer: CheckpointCommitter

    @abstractmethod
    def validate(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        """Check before the decision whatever the target might refuse. Raises `SinkRejected`. Sends nothing."""

    @abstractmethod
    def send_values(self, batches: Batches, epoch: SinkEpoch, timestamp: datetime, session: Session) -> bool:
        """Send one output's rows within `session`; called once for each output.

        `timestamp`: when the epoch was planned, the same at every attempt. Return True once the target has all rows.
        False: roll back and try again. Raises `NothingSent` if no row has left.
        """

    def prepare(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        reach(CrashPoint.PREPARE_BEFORE_PRE_COMMIT)
        vote = self.validate(epoch, wal)
        reach(CrashPoint.PREPARE_AFTER_PRE_COMMIT)
        return vote

    def publish(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches]) -> Publication:
        self._require_target(vote)
        if (proof := self._proof(epoch)) is not None:
            return _publication_of(proof)
        with self._session(epoch, vote) as session:
            publication = self._send_claimed(epoch, wal, session)
        if session.claimed:
            return publication
        if (proof := self._proof(epoch)) is None:
            raise PublishBusy(f"sink {self.name}: another process is publishing epoch {epoch.id}; try again")
        return _publication_of(proof)

    def _session(self, epoch: SinkEpoch, vote: Vote) -> AbstractContextManager[Session]:
        """Open the unit of work for sending `epoch` as `vote` says."""
        return self.committer.session(epoch)

    def _send_claimed(self, epoch: SinkEpoch, wal: Iterable[Batches], session: Session) -> Publication:
        if not session.claimed:
            return Publication.FOUND
        reach(CrashPoint.PUBLISH_AFTER_MARKER)
        self._send(epoch, wal, session)
        return Publication.SENT

    def _send(self, epoch: SinkEpoch, wal: Iterable[Batches], session: Session) -> None:
        for number, batches in enumerate(wal):
            try:
                complete = self.send_values(batches, epoch, epoch.timestamp, session)
            except NothingSent as error:
                if number:  # earlier outputs have left
                    raise SinkUnavailable(str(error)) from error
                raise
            if not complete:
                raise PublishBlocked(f"sink {self.name}: the target did not take all of epoch {epoch.id}")
        self.committer.commit_checkpoint(epoch, session)

    def find_marker(self, epoch: int) -> Marker | None:
        return self.committer.is_checkpoint_committed(epoch)

    def find_any_marker(self, epoch: int) -> Marker | None:
        return self.find_marker(epoch) or self.committer.find_begun(epoch)

    def has_shown(self, epoch: SinkEpoch) -> bool:
        return super().has_shown(epoch) or self.committer.find_begun(epoch.id) is not None

    def can_complete(self, epoch: int) -> bool:
        return self.committer.find_begun(epoch) is not None

    def find_marker_of_span(self, span: str) -> Marker | None:
        return self.committer.find_span(span)

    def newest_markers(self) -> list[Marker]:
        return self.committer.newest()

    def markers(self) -> Iterable[Marker]:
        return self.committer.all()

    def pending(self) -> list[Txn]:
        """Return nothing: a write-ahead sink leaves no transactions."""
        return []

    def abort(self, txn: Txn) -> None:
        """Do nothing: there is nothing to roll back."""


def _publication_of(marker: Marker) -> Publication:
    return Publication.FOUND if marker.whole else Publication.CUT_OFF
