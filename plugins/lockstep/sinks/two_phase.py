"""The template of sinks that can hold rows back: the data is in the target before the decision."""

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
    """An open transaction for rows of a WAL that isn't sealed yet. Its marker names no manifest."""

    def write(self, batches: Batches) -> None:
        """Write one file's rows."""

    def keep_alive(self) -> None:
        """Keep the target from ending an idle session. Raises `SinkUnavailable` if the transaction is gone."""

    def name_manifest(self, epoch: SinkEpoch) -> Txn:
        """Enter the manifest into the marker. Called once every written file was compared with the sealed one.
        Afterwards the transaction is what `begin_transaction` and `write` would have left."""

    def close(self) -> None:
        """Roll back whatever was not pre-committed."""


class TwoPhaseCommitSink(OpenSink):
    """The data is in the target before the decision (Flink: TwoPhaseCommitSinkFunction).

    Implement the abstract methods of this class and of `OpenSink`. Lockstep calls them in this order, the steps of one
    epoch often in different processes:

    1. prepare: `begin_transaction`, `write` for each output, `pre_commit`.
    2. publish, after the decision: `is_pending`, then `commit`; if the handle is gone and the target has no marker,
       `write_again`.
    3. recovery, at any time: `pending`, then `abort` for transactions whose epoch was not decided.

    `commit` is never called before the decision, and `abort` never for a decided transaction. The classic mistake is to
    take a missing handle for a committed one: only the marker proves that rows are visible, so write the marker in the
    same transaction as the rows.

    If the target drops pending transactions after some time, set `transaction_timeout`. It is used for warnings only:
    an epoch whose transaction is gone is written from the WAL.
    """

    transaction_timeout: timedelta | None = None  #: after which the target may drop what is pending; None: never
    transaction_timeout_warning: float = 0.8  #: the fraction of the timeout after which to warn

    @property
    def may_hold_none(self) -> bool:
        """True if some votes have no handle; such an epoch is written from the WAL after the decision."""
        return False

    @abstractmethod
    def begin_transaction(self, epoch: SinkEpoch) -> Txn:
        """Open a transaction and write the epoch's marker as its first row.

        The marker's key is (deployment, pipeline, sink, epoch), never the token: two attempts that both write it must
        conflict. Roll back transactions of smaller tokens of this epoch first, they would hold locks.
        """

    @abstractmethod
    def write(self, txn: Txn, batches: Batches) -> None:
        """Write one output's rows into `txn`; called once for each output of the sink (Flink: invoke).

        Raise `SinkRejected` for rows the target can't take, also if `batches` gives other rows than `batches.rows`.
        """

    @abstractmethod
    def pre_commit(self, txn: Txn) -> Vote:
        """Make `txn` durable, so that any process can commit it by its handle, and return the vote.

        Nothing of it may be visible yet. After it returns, this process may die without loss. The classic mistake is to
        vote before the target has confirmed that the transaction is durable.
        """

    @abstractmethod
    def commit(self, txn: Txn) -> None:
        """Make a pre-committed `txn` visible. Called after the decision, by any process, perhaps several times.

        Return if another process has just committed it. Raises `SinkUnavailable` if the outcome isn't known.
        """

    @abstractmethod
    def is_pending(self, txn: Txn) -> bool:
        """Return True if the target holds the handle of `txn` and it can be committed."""

    @abstractmethod
    def write_again(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> bool:
        """Publish from the WAL in one transaction whose first row is the marker.

        Called after the decision if neither the handle nor the marker is there. Several processes may call it at once:
        return False, with nothing written, if another one has written the marker.
        """

    def begin_early(self, epoch: SinkEpoch, schemas: Mapping[str, pa.Schema]) -> EarlyTransaction | None:
        """Open a transaction before the WAL is sealed, so before the manifest of `epoch` is known.

        Called only if the description's `loads_early` is true. None: rows of this epoch are loaded after the seal.
        """
        return None

    def recover_and_commit(self, txn: Txn) -> bool:
        """Commit `txn` if its handle is there. False: the handle is gone, which proves nothing by itself."""
        if not self.is_pending(txn):
            return False
        self.commit(txn)
        return True

    def recover_and_abort(self, txn: Txn) -> None:
        """Roll back what an attempt with a smaller token left."""
        self.abort(txn)

    def finish_recovering(self, handled: Sequence[Txn]) -> None:
        """Remove leftovers. Called at the end of a recovery round that met no problem and no active publisher.

        By then every decided epoch is published, undecided ones are aborted, and `handled` are the transactions that
        the last sweep committed or aborted; what is still `pending` belongs to a running attempt. Must be idempotent
        (Flink: finishRecoveringContext).
        """

    def outlived(self, age: timedelta | None) -> bool:
        """Return True if the target may have dropped a transaction that was pre-committed `age` ago."""
        return age is not None and self.transaction_timeout is not None and age > self.transaction_timeout

    def warn_of_timeout(self, handle: str | None, age: timedelta | None) -> None:
        """Log a warning if a transaction that was pre-committed `age` ago is near its timeout or past it."""
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
        """Return the transaction of a vote. Raises `LedgerConflict` if the vote's handle names another one."""
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
        """Pre-commit what was written and return the vote."""
        reach(CrashPoint.PREPARE_BEFORE_PRE_COMMIT)
        vote = self.pre_commit(txn)
        reach(CrashPoint.PREPARE_AFTER_PRE_COMMIT)
        return vote

    def publish(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches]) -> Publication:
        """Commit by the handle, then read the marker in a new transaction. If both are missing the epoch was not
        applied, and is written from the WAL."""
        self._require_target(vote)
        committed = self.recover_and_commit(self.txn_of(epoch, vote))
        if self._proof(epoch):
            return Publication.COMMITTED if committed else Publication.FOUND
        if committed:
            raise PublishBlocked(f"sink {self.name}: epoch {epoch.id} was committed, but its marker is not visible")
        if self.write_again(epoch, wal):
            return Publication.REPAIRED
        if self._proof(epoch):
            return Publication.FOUND
        raise PublishBusy(f"sink {self.name}: another process is publishing epoch {epoch.id}; try again")
