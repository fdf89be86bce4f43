"""A `TableSink` by two-phase commit: the rows wait in a prepared transaction for the decision."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Self

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Vote
from lockstep.errors import KeysHeld, PublishBlocked, SinkRejected, SinkUnavailable
from lockstep.sinks.base import Batches, SinkContext, SinkEpoch, Txn
from lockstep.sinks.tables.claim import AnyClaim
from lockstep.sinks.tables.sink import TableSink
from lockstep.sinks.two_phase import TwoPhaseCommitSink


class TableTwoPhaseSink(TableSink, TwoPhaseCommitSink):
    """One branch an epoch for all tables of the sink. Stands before the database's class among the bases."""

    protocol = "two_phase"
    listed: ClassVar[str]  #: where the server lists what is prepared, for a message

    # --- what each database does in its own way ---

    @abstractmethod
    def _begin(self, epoch: SinkEpoch) -> tuple[str, AnyClaim]:
        """The epoch's handle, and a transaction that can be prepared under it, with the marker if that was free."""

    @abstractmethod
    def _prepare(self, claim: AnyClaim, txn: Txn) -> None:
        """Have the server prepare it; returns also when the connection breaks meanwhile."""

    def _await_release(self, txn: Txn) -> None:
        """Wait until the server has noticed that the session which prepared `txn` is gone."""

    # --- what is the same ---

    @property
    def holds_keys(self) -> bool:
        """A prepared upsert makes others wait that have a key of its rows."""
        return self.replaces

    def open(self, context: SinkContext) -> Self:
        super().open(context)
        self._open: dict[str, AnyClaim] = {}
        return self

    def close(self) -> None:
        for handle in list(getattr(self, "_open", ())):
            self._open.pop(handle).close()
        super().close()

    def begin_transaction(self, epoch: SinkEpoch) -> Txn:
        handle, claim = self._begin(epoch)
        if not claim.claimed:
            raise self._refuse_marker(epoch)
        self._open[handle] = claim
        return Txn(self.name, epoch.id, epoch.token, epoch.manifest_hash[:12], handle)

    def write(self, txn: Txn, batches: Batches) -> None:
        claim = self._open[txn.handle]
        try:
            self._load(claim, batches, SinkRejected)
        except BaseException:
            self._open.pop(txn.handle).close()
            raise
        reach(CrashPoint.PREPARE_AFTER_WRITE)

    def pre_commit(self, txn: Txn) -> Vote:
        claim = self._open.pop(txn.handle)
        try:
            with self._database.naming(f"preparing epoch {txn.epoch}"):
                self._own.record_rows(claim.cursor, claim.epoch, claim.rows)
            reach(CrashPoint.PREPARE_AFTER_COUNTS)
            self._prepare(claim, txn)
        finally:
            claim.close()  # nobody can finish the branch while its own session lives
        self._await_release(txn)
        if not self._branches.is_pending(txn.handle):
            raise SinkUnavailable(f"sink {self.name}: {txn.handle} is not {self.listed}; prepare again")
        return Vote(txn.token, txn.handle, claim.target_id, dict(claim.rows))

    def recover_and_commit(self, txn: Txn) -> bool:
        """Also False when somebody else finished it at the same moment: only the marker knows how."""
        return self.is_pending(txn) and self._commit(txn)

    def commit(self, txn: Txn) -> None:
        self._commit(txn)

    def _commit(self, txn: Txn) -> bool:
        reach(CrashPoint.PUBLISH_BEFORE_SINK_COMMIT)
        done = self._branches.commit(txn.handle)
        reach(CrashPoint.PUBLISH_AFTER_SINK_COMMIT)
        return done

    def abort(self, txn: Txn) -> None:
        if claim := self._open.pop(txn.handle, None):
            claim.close()
        self._branches.roll_back(txn.handle)

    def is_pending(self, txn: Txn) -> bool:
        return self._branches.is_pending(txn.handle)

    def pending(self) -> list[Txn]:
        return self._branches.pending()

    def write_again(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> bool:
        try:
            return self._write_again(epoch, wal)
        except KeysHeld:
            if epoch.interval is None:  # later epochs of a cursor wait for this one, which waits for their keys
                self._take_back_later_ones(epoch)
            raise

    def _take_back_later_ones(self, epoch: SinkEpoch) -> None:
        """Whatever was voted for is in the WAL, and is written again when its turn comes."""
        for txn in self.pending():
            if txn.epoch > epoch.id:
                self._branches.roll_back(txn.handle)

    def _write_again(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> bool:
        with self._publishing(epoch) as claim:
            if not claim.claimed:
                return False
            reach(CrashPoint.PUBLISH_AFTER_MARKER)
            for batches in wal:
                self._load(claim, batches, PublishBlocked)
                reach(CrashPoint.PUBLISH_AFTER_WRITE)
            with self._database.naming(f"publishing epoch {epoch.id}", PublishBlocked):
                self._own.record_rows(claim.cursor, epoch, claim.rows)
        return True
