"""Committers that record outside of the target which epochs a sink has sent.

By default the record follows the rows and isn't in their transaction, so a crash between the two sends the epoch again:
at least once (Flink: GenericWriteAheadSink with a CassandraCommitter). `BegunCommitter` records before the rows: at
most once. A sink that has transactions keeps the marker in its own instead.
"""

from __future__ import annotations

import logging
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from lockstep.errors import LedgerConflict, SinkUnavailable
from lockstep.sinks.values import Guarantee, Marker, SinkContext, SinkEpoch
from lockstep.sinks.write_ahead import CheckpointCommitter, NothingSent, Session


@dataclass(frozen=True)
class NoTransaction:
    """The session of a committer that can't roll anything back."""

    claimed: bool = True


class ExternalCommitter(CheckpointCommitter):
    """A committer that the user selects by the sink's `committer` argument, see `open_committer`.

    At most one process at a time sends an epoch, as long as that process shows that it is alive. That saves work; no
    guarantee depends on it.
    """

    guarantee = Guarantee.AT_LEAST_ONCE

    @abstractmethod
    def setting(self) -> str | None:
        """Return the argument from which `open_committer` makes an equal committer."""

    def connect(self, context: SinkContext) -> None:
        """Take the connection from `context`. Raises `InvalidPipeline`. Connects at first use."""

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[Session]:
        """Open a session. Not claimed if another process is sending the epoch or has recorded it."""
        with self.sender_lock(epoch) as alone:
            yield NoTransaction(alone and self.is_checkpoint_committed(epoch.id) is None)

    def sender_lock(self, epoch: SinkEpoch) -> AbstractContextManager[bool]:
        """Enter with True, or with False while another process that shows that it is alive sends the epoch."""
        return nullcontext(True)

    # --- the record before the rows, for `BegunCommitter` ---

    def create_begun(self) -> None:
        """Create the table or file that `begin` needs; idempotent."""

    def begin(self, epoch: SinkEpoch) -> bool:
        """Record durably that sending the epoch begins. Returns True to a single caller, unless that one has taken it
        back; False if the epoch has begun or is recorded."""
        raise NotImplementedError

    def end(self, epoch: SinkEpoch, *, whole: bool) -> None:
        """Record durably that the begun epoch is sent, or with `whole` False that it was cut off. The first record
        wins.
        """
        raise NotImplementedError

    def take_back(self, epoch: SinkEpoch) -> None:
        """Undo `begin`, unless the epoch was recorded meanwhile. Called only by the process to which `begin` returned
        True and that has sent nothing."""
        raise NotImplementedError

    def find_begun_span(self, span: str) -> Marker | None:
        """Return the record of a begun epoch of this range."""
        return None

    def list_begun(self, *, newest: bool = False) -> list[Marker]:
        """Return the records of begun epochs, or the newest one only. Some epochs may be recorded as sent since."""
        return []

    def _require_same(self, epoch: SinkEpoch) -> None:
        """Raise `LedgerConflict` or `SinkUnavailable` unless the record of this epoch has its manifest."""
        marker = self.is_checkpoint_committed(epoch.id)
        if marker is None:
            raise SinkUnavailable(f"committer of {self.operator_id}: the record of epoch {epoch.id} is gone again")
        if marker.manifest_hash != epoch.manifest_hash:
            raise LedgerConflict(
                f"committer of {self.operator_id}: epoch {epoch.id} is recorded with manifest "
                f"{marker.manifest_hash[:12]}, the ledger decided {epoch.manifest_hash[:12]}"
            )


class NoCommitter(ExternalCommitter):
    """Records nothing, for guarantee "none"."""

    guarantee = Guarantee.NONE

    def setting(self) -> None:
        return None

    def create_resource(self) -> None:
        """Do nothing."""

    def resource_id(self) -> str:
        return "none"

    def is_checkpoint_committed(self, epoch: int) -> None:
        return None

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        """Do nothing."""


class BegunCommitter(CheckpointCommitter):
    """Records an epoch as begun before its rows are sent, and as sent afterwards: at most once.

    A begun epoch is left to its sender while that one is alive. Otherwise it is recorded as cut off: its marker isn't
    `whole`, and the missing rows are never sent. A sender that raises `NothingSent` takes its record back. Flink has no
    such committer: its GenericWriteAheadSink records afterwards.
    """

    guarantee = Guarantee.AT_MOST_ONCE

    def __init__(self, records: ExternalCommitter) -> None:
        self._records = records

    def set_job_id(self, job_id: str) -> None:
        self._records.set_job_id(job_id)

    def set_operator_id(self, operator_id: str) -> None:
        self._records.set_operator_id(operator_id)

    def open(self) -> None:
        self._records.open()

    def create_resource(self) -> None:
        self._records.create_resource()
        self._records.create_begun()

    def resource_id(self) -> str:
        return self._records.resource_id()

    def close(self) -> None:
        self._records.close()

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[Session]:
        """Raises `LedgerConflict`, `SinkUnavailable`."""
        with self._records.sender_lock(epoch) as alone:
            claimed = alone and self._claim(epoch)
            try:
                yield NoTransaction(claimed)
            except NothingSent:
                if claimed:
                    self._records.take_back(epoch)
                raise

    def _claim(self, epoch: SinkEpoch) -> bool:
        if self._records.is_checkpoint_committed(epoch.id) is not None:
            return False
        if self._records.begin(epoch):
            return True
        record = self.find_begun(epoch.id)
        if record is not None and record.manifest_hash != epoch.manifest_hash:
            raise LedgerConflict(
                f"committer of {self._records.operator_id}: epoch {epoch.id} is recorded as begun with manifest "
                f"{record.manifest_hash[:12]}, the ledger decided {epoch.manifest_hash[:12]}"
            )
        if record is not None:
            self._records.end(epoch, whole=False)
        return False

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        return self._records.is_checkpoint_committed(epoch)

    def find_begun(self, epoch: int) -> Marker | None:
        return self._records.find_begun(epoch)

    def find_span(self, span: str) -> Marker | None:
        return self._records.find_span(span) or self._records.find_begun_span(span)

    def newest(self) -> list[Marker]:
        markers = [*self._records.newest(), *self._records.list_begun(newest=True)]
        return sorted(markers, key=lambda marker: (marker.epoch, marker.token))[-1:]

    def all(self) -> Iterable[Marker]:
        recorded = {marker.epoch: marker for marker in self._records.all()}
        unfinished = {marker.epoch: marker for marker in self._records.list_begun()}
        return [marker for _, marker in sorted({**unfinished, **recorded}.items())]

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        self._records.end(epoch, whole=True)


STANDSTILL = 30.0  #: seconds without a heartbeat after which other processes no longer wait for a sender
_log = logging.getLogger(__name__)


@contextmanager
def heartbeat(beat: Callable[[], object]) -> Iterator[None]:
    """Call `beat` in a thread, three times per STANDSTILL, until the block ends or a beat fails. A stopped process, or
    one whose machine is lost, sends no heartbeat."""
    done = threading.Event()

    def run() -> None:
        while not done.wait(STANDSTILL / 3):
            try:
                beat()
            except Exception as error:
                _log.warning("another process may start to send the same epoch: %s", type(error).__name__)
                return

    thread = threading.Thread(target=run, daemon=True, name="lockstep-sender")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(STANDSTILL)
