"""Tables by two-phase commit: the rows wait in a prepared transaction for the decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Vote
from lockstep.errors import KeysHeld, PublishBlocked, SinkRejected, SinkUnavailable
from lockstep.sinks.base import Sink
from lockstep.sinks.tables.open_sink import OpenTableSink
from lockstep.sinks.tables.target import TableClaim, TableTarget
from lockstep.sinks.two_phase import EarlyTransaction, TwoPhaseCommitSink
from lockstep.sinks.values import Batches, SinkEpoch, Txn

Cursor = TypeVar("Cursor")


class TwoPhaseTableSink(TwoPhaseCommitSink, OpenTableSink[Cursor]):
    """One branch an epoch for all tables of the sink."""

    def __init__(self, sink: Sink, target: TableTarget[Cursor], *, create: bool, shared: bool) -> None:
        super().__init__(sink, target, create=create, shared=shared)
        self._branches = target.branches
        self._open: dict[str, TableClaim[Cursor]] = {}  #: by handle

    def close(self) -> None:
        for handle in list(self._open):
            self._open.pop(handle).close()
        super().close()

    def _require_room(self, cursor: Cursor) -> None:
        self._branches.require_room(cursor)

    # --- before the decision ---

    def begin_transaction(self, epoch: SinkEpoch) -> Txn:
        txn = self._txn(epoch)
        claim = self._target.claim_to_vote(epoch, txn.handle)
        try:
            self._target.remove_replaced(claim, CrashPoint.PREPARE_AFTER_REMOVAL)
        except BaseException:
            claim.close()
            raise
        self._open[txn.handle] = claim
        return txn

    def _txn(self, epoch: SinkEpoch) -> Txn:
        return Txn(self.name, epoch.id, epoch.token, epoch.manifest_hash[:12], self._branches.handle(epoch))

    def begin_early(self, epoch: SinkEpoch, schemas: Mapping[str, pa.Schema]) -> EarlyTransaction | None:
        """Only where nobody else has to wait for rows that aren't committed for as long as the job takes."""
        with self._target.database.transaction("looking for keys and triggers") as cursor:
            held = [table.holds_others_up(cursor, schemas[name]) for name, table in self._target.outputs.items()]
        return None if any(held) else _EarlyBranch(self, self._target.claim_to_vote(epoch))

    def adopt(self, claim: TableClaim[Cursor], epoch: SinkEpoch) -> Txn:
        """Go on with a claim whose rows were loaded before the manifest was known."""
        self._target.name_manifest(claim, epoch)
        txn = self._txn(epoch)
        self._open[txn.handle] = claim
        return txn

    def write(self, txn: Txn, batches: Batches) -> None:
        try:
            self._target.load(self._open[txn.handle], batches, SinkRejected)
        except BaseException:
            self._open.pop(txn.handle).close()
            raise
        reach(CrashPoint.PREPARE_AFTER_WRITE)

    def pre_commit(self, txn: Txn) -> Vote:
        claim = self._open.pop(txn.handle)
        try:
            self._target.record_rows(claim, f"preparing epoch {txn.epoch}")
            reach(CrashPoint.PREPARE_AFTER_COUNTS)
            self._branches.prepare(claim.cursor, txn)
        finally:
            claim.close()  # nobody can finish the branch while its own session lives
        self._branches.await_release(txn)
        if not self._branches.is_pending(txn.handle):
            raise SinkUnavailable(f"sink {self.name}: {txn.handle} is not {self._branches.listed}; prepare again")
        return Vote(txn.token, txn.handle, claim.target_id, dict(claim.rows))

    # --- after the decision ---

    def txn_of(self, epoch: SinkEpoch, vote: Vote) -> Txn:
        txn = super().txn_of(epoch, vote)
        self._branches.require_own(txn)
        return txn

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
        with self._markers.session(epoch) as claim:
            if not claim.claimed:
                return False
            reach(CrashPoint.PUBLISH_AFTER_MARKER)
            self._target.remove_replaced(claim, CrashPoint.PUBLISH_AFTER_REMOVAL, decided=True)
            for batches in wal:
                self._target.load(claim, batches, PublishBlocked)
                reach(CrashPoint.PUBLISH_AFTER_WRITE)
            self._markers.commit_checkpoint(epoch, claim)
        return True


@dataclass
class _EarlyBranch(Generic[Cursor]):
    """See `EarlyTransaction`."""

    sink: TwoPhaseTableSink[Cursor]
    claim: TableClaim[Cursor]

    def write(self, batches: Batches) -> None:
        self.sink._target.load_more(self.claim, batches, SinkRejected)
        reach(CrashPoint.PREPARE_AFTER_WRITE)

    def keep_alive(self) -> None:
        self.sink._target.keep_alive(self.claim)

    def name_manifest(self, epoch: SinkEpoch) -> Txn:
        txn = self.sink.adopt(self.claim, epoch)
        reach(CrashPoint.PREPARE_AFTER_MANIFEST)
        return txn

    def close(self) -> None:
        self.claim.close()
