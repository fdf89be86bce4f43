"""Tables by two-phase commit: the rows wait in a prepared transaction for the decision.

But for an epoch with which a table gets columns, where those come in the transaction of the rows: prepared, it would
keep every reader out until it is finished. Its rows are tried before the vote, which has no handle, and written after
the decision, as by write-ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import pyarrow as pa

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Vote
from lockstep.errors import KeysHeld, PreflightRefused, PublishBusy, SinkRejected, SinkUnavailable
from lockstep.sinks.base import Sink
from lockstep.sinks.tables.open_sink import OpenTableSink
from lockstep.sinks.tables.target import TableClaim, TableTarget
from lockstep.sinks.two_phase import EarlyTransaction, TwoPhaseCommitSink
from lockstep.sinks.values import Batches, Publication, SinkEpoch, Txn

Cursor = TypeVar("Cursor")


class TwoPhaseTableSink(TwoPhaseCommitSink, OpenTableSink[Cursor]):
    """One branch an epoch for all tables of the sink."""

    def __init__(self, sink: Sink, target: TableTarget[Cursor], *, create: bool, shared: bool) -> None:
        super().__init__(sink, target, create=create, shared=shared)
        self._branches = target.branches
        #: where rows wait for the decision: such a transaction adds no columns, whatever became of the table meanwhile
        held = {output: replace(table, held=True) for output, table in target.outputs.items()}
        self._holding: TableTarget[Cursor] = replace(target, outputs=held)
        self._open: dict[str, TableClaim[Cursor]] = {}  #: by handle

    def close(self) -> None:
        for handle in list(self._open):
            self._open.pop(handle).close()
        super().close()

    def _require_room(self, cursor: Cursor) -> None:
        self.room = self._branches.require_room(cursor)

    # --- an epoch with which a table gets columns ---

    @property
    def may_hold_none(self) -> bool:
        return any(table.adds_columns for table in self._target.outputs.values())

    @property
    def needs_turn(self) -> bool:
        """The next epoch may have such a column with another type."""
        return self._adds_columns

    def preflight(self, schemas: Mapping[str, pa.Schema] | None) -> None:
        super().preflight(schemas)
        if schemas is not None and self._adds_columns and not self.replaces:
            self._require_no_keys(schemas)

    def _require_no_keys(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Rows that are only tried keep no other epoch's from having their keys. Raises `PreflightRefused`."""
        with self._target.database.transaction("looking for unique keys", rejected=PreflightRefused) as cursor:
            for output, table in self._target.outputs.items():
                for key in table.unique_keys(cursor, schemas[output]):
                    if not key.by_epoch:
                        raise PreflightRefused(
                            f"sink {self.name}: {table.relation} has the unique key {key.name}: an epoch that brings "
                            "columns is written after the decision, when another one's rows may have its keys: add "
                            "the columns yourself, or say protocol='write_ahead'"
                        )

    def prepare(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        if not self._adds_columns:
            return super().prepare(epoch, wal)
        reach(CrashPoint.PREPARE_BEFORE_PRE_COMMIT)
        vote = self._try(epoch, wal)
        reach(CrashPoint.PREPARE_AFTER_PRE_COMMIT)
        return vote

    def publish(self, epoch: SinkEpoch, vote: Vote, wal: Iterable[Batches]) -> Publication:
        if vote.handle is not None:
            return super().publish(epoch, vote, wal)
        self._require_target(vote)
        if self._proof(epoch):
            return Publication.FOUND
        try:
            if self.write_again(epoch, wal):
                return Publication.SENT
        except SinkUnavailable as error:
            if isinstance(error, KeysHeld) or self._target.database.is_locked_out(error):
                self._take_back(epoch, lambda other: True)  # whoever is prepared has the table, and may wait for a turn
            raise
        if self._proof(epoch):
            return Publication.FOUND
        raise PublishBusy(f"sink {self.name}: somebody else is publishing epoch {epoch.id}; try again")

    # --- before the decision ---

    def begin_transaction(self, epoch: SinkEpoch) -> Txn:
        txn = self._txn(epoch)
        claim = self._holding.claim_to_vote(epoch, txn.handle)
        try:
            self._holding.remove_replaced(claim, CrashPoint.PREPARE_AFTER_REMOVAL)
        except BaseException:
            claim.close()
            raise
        self._open[txn.handle] = claim
        return txn

    def _txn(self, epoch: SinkEpoch) -> Txn:
        return Txn(self.name, epoch.id, epoch.token, epoch.manifest_hash[:12], self._branches.handle(epoch))

    def begin_early(self, epoch: SinkEpoch, schemas: Mapping[str, pa.Schema]) -> EarlyTransaction | None:
        """Only where nobody else has to wait for rows that aren't committed for as long as the job takes."""
        if self._adds_columns:
            return None
        with self._target.database.transaction("looking for keys and triggers") as cursor:
            held = [table.holds_others_up(cursor, schemas[name]) for name, table in self._target.outputs.items()]
        return None if any(held) else _EarlyBranch(self, self._holding.claim_to_vote(epoch))

    def adopt(self, claim: TableClaim[Cursor], epoch: SinkEpoch) -> Txn:
        """Go on with a claim whose rows were loaded before the manifest was known."""
        self._holding.name_manifest(claim, epoch)
        txn = self._txn(epoch)
        self._open[txn.handle] = claim
        return txn

    def write(self, txn: Txn, batches: Batches) -> None:
        claim = self._open[txn.handle]
        try:
            self._holding.load(claim, batches, SinkRejected)
            reach(CrashPoint.PREPARE_AFTER_WRITE)
            self._holding.settle_replaced(claim, batches.output, CrashPoint.PREPARE_AFTER_REMOVAL)
        except BaseException:
            self._open.pop(txn.handle).close()
            raise

    def pre_commit(self, txn: Txn) -> Vote:
        claim = self._open.pop(txn.handle)
        try:
            self._holding.record_rows(claim, f"preparing epoch {txn.epoch}")
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
                self._take_back(epoch, lambda other: other > epoch.id)
            raise

    def _take_back(self, epoch: SinkEpoch, is_in_the_way: Callable[[int], bool]) -> None:
        """Whatever other epochs have voted for is in the WAL, and is written again when its turn comes."""
        for txn in self.pending():
            if txn.epoch != epoch.id and is_in_the_way(txn.epoch):
                self._branches.roll_back(txn.handle)

    def _write_again(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> bool:
        with self._markers.session(epoch) as claim:
            if not claim.claimed:
                return False
            reach(CrashPoint.PUBLISH_AFTER_MARKER)
            self._begin_to_send(claim)
            for batches in wal:
                self._send_output(claim, batches)
            self._markers.commit_checkpoint(epoch, claim)
        return True


@dataclass
class _EarlyBranch(Generic[Cursor]):
    """See `EarlyTransaction`."""

    sink: TwoPhaseTableSink[Cursor]
    claim: TableClaim[Cursor]

    def write(self, batches: Batches) -> None:
        self.sink._holding.load_more(self.claim, batches, SinkRejected)
        reach(CrashPoint.PREPARE_AFTER_WRITE)

    def keep_alive(self) -> None:
        self.sink._holding.keep_alive(self.claim)

    def name_manifest(self, epoch: SinkEpoch) -> Txn:
        txn = self.sink.adopt(self.claim, epoch)
        reach(CrashPoint.PREPARE_AFTER_MANIFEST)
        return txn

    def close(self) -> None:
        self.claim.close()
