"""The template of sinks that can't hold rows back: the data goes in from the WAL after the decision."""

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
    """The unit of work in which an epoch is sent. `claimed` False: the marker was there, write nothing."""

    @property
    def claimed(self) -> bool: ...


class NothingSent(SinkUnavailable):
    """Not a byte has left this process: at most once the epoch hasn't begun after all, and is sent by whoever comes
    next."""


class CheckpointCommitter(ABC):
    """Remembers which epochs a redo sink has sent (Flink: CheckpointCommitter).

    `session` opens the unit of work in which the marker is claimed, the batches are sent and the record is written: a
    transaction of the sink for a committer that lives in the sink (exactly once), nothing for one that doesn't
    (at least once, and the sink says so). One that records in `session`, before the first row goes out, that the epoch
    has begun, and leaves it unclaimed wherever it finds that, keeps at most once: what is begun and isn't recorded as
    sent has a marker that isn't `whole` as soon as somebody has found it.
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

    def resource_id(self) -> str:
        """A random id that stands beside the records; only for a sink whose target can't be asked for one."""
        raise NotImplementedError

    def open(self) -> None:  # noqa: B027 - some connect for each step
        """Connect."""

    def close(self) -> None:  # noqa: B027 - see `open`
        """Let go of every connection."""

    @abstractmethod
    def session(self, epoch: SinkEpoch) -> AbstractContextManager[Session]:
        """Enter: claim the marker first. Leave without error: durable. Leave with an error: nothing happened."""

    @abstractmethod
    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        """The epoch's marker, read in a new transaction."""

    def find_begun(self, epoch: int) -> Marker | None:
        """What was recorded before the epoch's first row went out, as far as anything is."""
        return None

    def find_span(self, span: str) -> Marker | None:
        """The marker of a range, whatever number its epoch has."""
        return None

    def newest(self) -> list[Marker]:
        """The marker with the largest epoch and, where that is quick, with the largest token."""
        return []

    def all(self) -> Iterable[Marker]:
        """Every marker."""
        return self.newest()

    @abstractmethod
    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        """Record the epoch as sent, within `session`."""


class WriteAheadSink(OpenSink):
    """The data goes into the sink after the decision (Flink: GenericWriteAheadSink)."""

    committer: CheckpointCommitter

    @abstractmethod
    def validate(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        """Check before the decision whatever can be checked: after it, a row that is refused blocks the pipeline."""

    @abstractmethod
    def send_values(self, batches: Batches, epoch: SinkEpoch, timestamp: datetime, session: Session) -> bool:
        """Send one output's rows within `session`; False asks for another try, with everything rolled back. Raises
        `NothingSent` where none of them has left."""

    def prepare(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        reach(CrashPoint.PREPARE_BEFORE_PRE_COMMIT)
        vote = self.validate(epoch, wal)
        reach(CrashPoint.PREPARE_AFTER_PRE_COMMIT)
        return vote

    def publish(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches]) -> Publication:
        self._require_target(vote)
        if (proof := self._proof(epoch)) is not None:
            return _found(proof)
        with self._session(epoch, vote) as session:
            publication = self._send_claimed(epoch, wal, session)
        if session.claimed:
            return publication
        if (proof := self._proof(epoch)) is None:
            raise PublishBusy(f"sink {self.name}: somebody else is publishing epoch {epoch.id}; try again")
        return _found(proof)

    def _session(self, epoch: SinkEpoch, vote: Vote) -> AbstractContextManager[Session]:
        """The unit of work in which an epoch is sent that was voted for like this."""
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
                taken = self.send_values(batches, epoch, epoch.timestamp, session)
            except NothingSent as error:
                if number:  # of this output, and the ones before it have left
                    raise SinkUnavailable(str(error)) from error
                raise
            if not taken:
                raise PublishBlocked(f"sink {self.name}: epoch {epoch.id} was not taken whole")
        self.committer.commit_checkpoint(epoch, session)

    def find_marker(self, epoch: int) -> Marker | None:
        return self.committer.is_checkpoint_committed(epoch)

    def find_any_marker(self, epoch: int) -> Marker | None:
        return self.find_marker(epoch) or self.committer.find_begun(epoch)

    def has_shown(self, epoch: SinkEpoch) -> bool:
        return super().has_shown(epoch) or self.committer.find_begun(epoch.id) is not None

    def tells_rest(self, epoch: int) -> bool:
        return self.committer.find_begun(epoch) is not None

    def find_marker_of_span(self, span: str) -> Marker | None:
        return self.committer.find_span(span)

    def newest_markers(self) -> list[Marker]:
        return self.committer.newest()

    def markers(self) -> Iterable[Marker]:
        return self.committer.all()

    def pending(self) -> list[Txn]:
        """A redo sink leaves nothing between transactions."""
        return []

    def abort(self, txn: Txn) -> None:
        """Nothing to roll back."""


def _found(marker: Marker) -> Publication:
    return Publication.FOUND if marker.whole else Publication.CUT_OFF
