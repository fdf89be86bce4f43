"""The template of sinks that can hold rows back: the data is there before the decision."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

import pyarrow as pa

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Vote
from lockstep.errors import LedgerConflict, PublishBlocked, PublishBusy
from lockstep.sinks.handles import named_by
from lockstep.sinks.open_sink import OpenSink
from lockstep.sinks.values import Batches, Publication, SinkEpoch, Txn

_log = logging.getLogger(__name__)


class EarlyTransaction(Protocol):
    """An open transaction for rows of a WAL that nobody has sealed yet: its marker names no manifest."""

    def write(self, batches: Batches) -> None:
        """Write one file's rows."""

    def keep_alive(self) -> None:
        """Tell the target that somebody still is at it. Raises `SinkUnavailable` if the transaction is gone."""

    def name_manifest(self, epoch: SinkEpoch) -> Txn:
        """Say in the marker of which manifest the rows are, once the caller has compared every file that it wrote with
        the sealed one: from here on it is what `begin_transaction` and `write` would have left."""

    def close(self) -> None:
        """Roll back what wasn't pre-committed."""


class TwoPhaseCommitSink(OpenSink):
    """The data is in the sink before the decision (Flink: TwoPhaseCommitSinkFunction).

    A target that drops what is pending too long has a `transaction_timeout`. It is only for warnings, from the moment
    when `transaction_timeout_warning` of it is over: an epoch whose transaction is gone is published from the WAL.
    """

    transaction_timeout: timedelta | None = None  #: after which the target may drop what is pending; None: never
    transaction_timeout_warning: float = 0.8  #: the part of the timeout after which to warn

    @property
    def may_hold_none(self) -> bool:
        """Whether some epochs are voted for without a handle, and written from the WAL after the decision."""
        return False

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

    def begin_early(self, epoch: SinkEpoch, schemas: Mapping[str, pa.Schema]) -> EarlyTransaction | None:
        """`begin_transaction` before the seal, for an `epoch` whose manifest nobody knows yet; None: nothing was begun,
        rows of this epoch are loaded when they are sealed. Asked only of a sink whose description `loads_early`."""
        return None

    def recover_and_commit(self, txn: Txn) -> bool:
        """Commit `txn` if its handle is there; False when it is gone, which proves nothing by itself."""
        if not self.is_pending(txn):
            return False
        self.commit(txn)
        return True

    def recover_and_abort(self, txn: Txn) -> None:
        """Roll back what a lower token left."""
        self.abort(txn)

    def finish_recovering(self, handled: Sequence[Txn]) -> None:
        """Called last by a round of recovery that met no problem and nobody who publishes, for a sink that tidies up.

        By then what is decided is published, what is dead was aborted, and the last sweep has committed or aborted
        `handled`; what is still `pending` is live. Idempotent, like every step (Flink: finishRecoveringContext).
        """

    def outlived(self, age: timedelta | None) -> bool:
        """Whether a transaction that was pre-committed `age` ago may be gone by its timeout."""
        return age is not None and self.transaction_timeout is not None and age > self.transaction_timeout

    def warn_of_timeout(self, handle: str | None, age: timedelta | None) -> None:
        """Log a warning if what was pre-committed `age` ago is near its timeout or over it."""
        limit = self.transaction_timeout
        if age is None or limit is None or age <= limit * self.transaction_timeout_warning:
            return
        _log.warning(
            "sink %s: %s has been pending for %.0f s, its target may drop it after %.0f s: publish the epoch soon, or "
            "it is written again from the WAL",
            self.name,
            handle,
            age.total_seconds(),
            limit.total_seconds(),
        )

    def txn_of(self, epoch: SinkEpoch, vote: Vote) -> Txn:
        """The transaction that a vote stands for. Raises `LedgerConflict` if its handle names another one."""
        if vote.handle is None:
            raise LedgerConflict(f"sink {self.name}: the vote of a two-phase sink has no handle")
        txn = Txn(self.name, epoch.id, vote.token, epoch.manifest_hash[:12], vote.handle)
        if named_by(vote.handle) not in (None, (txn.epoch, txn.token, txn.manifest)):
            raise LedgerConflict(
                f"sink {self.name}: the vote's handle {vote.handle} isn't of epoch {txn.epoch}, token {txn.token}, "
                f"manifest {txn.manifest}, which the ledger holds: was the ledger altered? Nothing was committed"
            )
        return txn

    def prepare(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        txn = self.begin_transaction(epoch)
        reach(CrashPoint.PREPARE_AFTER_MARKER)
        for batches in wal:
            self.write(txn, batches)
        return self.vote_for(txn)

    def vote_for(self, txn: Txn) -> Vote:
        """Pre-commit what was written."""
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
        raise PublishBusy(f"sink {self.name}: somebody else is publishing epoch {epoch.id}; try again")
