"""What the committers share that live outside of the sink they remember for.

By itself the record follows the rows and isn't in their transaction, so a crash between the two sends the epoch again:
at least once (Flink: GenericWriteAheadSink with a CassandraCommitter). A sink that has transactions keeps the marker in
its own. `lockstep.sinks.committers.outside` has the record go before the rows.
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
    """The session of a committer that can undo nothing."""

    claimed: bool = True


class OutsideCommitter(CheckpointCommitter):
    """A committer that a sink gets by a setting, since it isn't the sink's own: see `open_committer`."""

    guarantee = Guarantee.AT_LEAST_ONCE

    @abstractmethod
    def setting(self) -> str | None:
        """What `open_committer` makes the same committer from."""

    def connect(self, context: SinkContext) -> None:
        """Take from `context` what leads to the records. Raises `InvalidPipeline`."""

    def open(self) -> None:
        """The first look connects."""

    def close(self) -> None:
        """See `open`."""

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[Session]:
        """Not claimed while another process sends the epoch, and when it has recorded it meanwhile."""
        with self.alone(epoch) as alone:
            yield NoTransaction(alone and self.is_checkpoint_committed(epoch.id) is None)

    def alone(self, epoch: SinkEpoch) -> AbstractContextManager[bool]:
        """False while another process sends the epoch and shows that it is alive."""
        return nullcontext(True)

    # --- the record before the rows: see `BegunCommitter` ---

    def create_begun(self) -> None:
        """Make what `begin` needs; idempotent."""

    def begin(self, epoch: SinkEpoch) -> bool:
        """Record that the epoch's sending begins, durable when it returns. True to one caller alone, unless that one
        has taken it back; False where it has begun, or is recorded."""
        raise NotImplementedError

    def end(self, epoch: SinkEpoch, *, whole: bool) -> None:
        """Record one that has begun as sent or as cut off, durable when it returns. What was recorded first stays."""
        raise NotImplementedError

    def take_back(self, epoch: SinkEpoch) -> None:
        """By whom `begin` said True, and who has sent nothing and won't: let it begin again, if nobody has recorded it
        meanwhile."""
        raise NotImplementedError

    def find_begun_span(self, span: str) -> Marker | None:
        """As `find_span`, of an epoch that has begun."""
        return None

    def list_begun(self, *, newest: bool = False) -> list[Marker]:
        """The markers of epochs that have begun, of which some may be recorded since; or the newest of them."""
        return []

    def _require_same(self, epoch: SinkEpoch) -> None:
        """What stands is this epoch's record. Raises `LedgerConflict`, `SinkUnavailable`."""
        marker = self.is_checkpoint_committed(epoch.id)
        if marker is None:
            raise SinkUnavailable(f"committer of {self.operator_id}: the record of epoch {epoch.id} didn't stay")
        if marker.manifest_hash != epoch.manifest_hash:
            raise LedgerConflict(
                f"committer of {self.operator_id}: epoch {epoch.id} is recorded with manifest "
                f"{marker.manifest_hash[:12]}, the ledger decided {epoch.manifest_hash[:12]}"
            )


class NoCommitter(OutsideCommitter):
    """Remembers nothing, for guarantee "none"."""

    guarantee = Guarantee.NONE

    def setting(self) -> None:
        return None

    def create_resource(self) -> None:
        """Nothing is kept."""

    def resource_id(self) -> str:
        return "none"

    def is_checkpoint_committed(self, epoch: int) -> None:
        return None

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        """See `create_resource`."""


class BegunCommitter(CheckpointCommitter):
    """`elsewhere` records an epoch as begun before the session is claimed, and as sent at its end.

    One that is begun and isn't sent is left to its sender as long as that lives. Then it is recorded as cut off: its
    marker isn't `whole`, and nobody sends what is missing. A sender that raises `NothingSent` takes its record back.
    """

    guarantee = Guarantee.AT_MOST_ONCE

    def __init__(self, elsewhere: OutsideCommitter) -> None:
        self._elsewhere = elsewhere

    def set_job_id(self, job_id: str) -> None:
        self._elsewhere.set_job_id(job_id)

    def set_operator_id(self, operator_id: str) -> None:
        self._elsewhere.set_operator_id(operator_id)

    def open(self) -> None:
        self._elsewhere.open()

    def create_resource(self) -> None:
        self._elsewhere.create_resource()
        self._elsewhere.create_begun()

    def resource_id(self) -> str:
        return self._elsewhere.resource_id()

    def close(self) -> None:
        self._elsewhere.close()

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[Session]:
        """Raises `LedgerConflict`, `SinkUnavailable`."""
        with self._elsewhere.alone(epoch) as alone:
            claimed = alone and self._claim(epoch)
            try:
                yield NoTransaction(claimed)
            except NothingSent:
                if claimed:
                    self._elsewhere.take_back(epoch)
                raise

    def _claim(self, epoch: SinkEpoch) -> bool:
        if self._elsewhere.is_checkpoint_committed(epoch.id) is not None:
            return False
        if self._elsewhere.begin(epoch):
            return True
        begun = self.find_begun(epoch.id)
        if begun is not None and begun.manifest_hash != epoch.manifest_hash:
            raise LedgerConflict(
                f"committer of {self._elsewhere.operator_id}: epoch {epoch.id} is recorded as begun with manifest "
                f"{begun.manifest_hash[:12]}, the ledger decided {epoch.manifest_hash[:12]}"
            )
        if begun is not None:
            self._elsewhere.end(epoch, whole=False)
        return False

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        return self._elsewhere.is_checkpoint_committed(epoch)

    def find_begun(self, epoch: int) -> Marker | None:
        return self._elsewhere.find_begun(epoch)

    def find_span(self, span: str) -> Marker | None:
        return self._elsewhere.find_span(span) or self._elsewhere.find_begun_span(span)

    def newest(self) -> list[Marker]:
        markers = [*self._elsewhere.newest(), *self._elsewhere.list_begun(newest=True)]
        return sorted(markers, key=lambda marker: (marker.epoch, marker.token))[-1:]

    def all(self) -> Iterable[Marker]:
        recorded = {marker.epoch: marker for marker in self._elsewhere.all()}
        unfinished = {marker.epoch: marker for marker in self._elsewhere.list_begun()}
        return [marker for _, marker in sorted({**unfinished, **recorded}.items())]

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        self._elsewhere.end(epoch, whole=True)


STANDSTILL = 30.0  #: seconds after which a sender that gives no sign is not waited for
_log = logging.getLogger(__name__)


@contextmanager
def beating(beat: Callable[[], object]) -> Iterator[None]:
    """Call `beat` from a thread, three times within STANDSTILL, until the block is left or a beat fails.

    A process that was stopped, or that lost its machine, doesn't beat.
    """
    done = threading.Event()
    thread = threading.Thread(target=_beat, args=(beat, done), daemon=True, name="lockstep-sender")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(STANDSTILL)


def _beat(beat: Callable[[], object], done: threading.Event) -> None:
    while not done.wait(STANDSTILL / 3):
        try:
            beat()
        except Exception as error:
            _log.warning("another process may start to send the same epoch: %s", type(error).__name__)
            return
