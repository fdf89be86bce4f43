"""MySqlSink by two-phase commit: the rows wait in a prepared XA branch for the decision."""

from __future__ import annotations

from collections.abc import Iterable

import pymysql

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Vote
from lockstep.errors import KeysHeld, LedgerConflict, PublishBlocked, SinkRejected, SinkUnavailable
from lockstep.sinks.base import Batches, SinkContext, SinkEpoch, Txn
from lockstep.sinks.mysql.branches import waited, xid
from lockstep.sinks.mysql.claim import Claim
from lockstep.sinks.mysql.sink import MySqlSink
from lockstep.sinks.mysql.wire import is_lost
from lockstep.sinks.two_phase import TwoPhaseCommitSink


class MySqlTwoPhaseSink(MySqlSink, TwoPhaseCommitSink):
    """One branch an epoch for all tables of the sink. It outlives its connection and the server's crash."""

    protocol = "two_phase"

    @property
    def holds_keys(self) -> bool:
        """A prepared upsert makes others wait that have a key of its rows."""
        return self.replaces

    def open(self, context: SinkContext) -> None:
        super().open(context)
        self._open: dict[str, Claim] = {}

    def close(self) -> None:
        for handle in list(getattr(self, "_open", ())):
            self._open.pop(handle).close()
        super().close()

    def begin_transaction(self, epoch: SinkEpoch) -> Txn:
        handle = self._branches.names.handle(epoch.id, epoch.token, epoch.manifest_hash)
        claim = self._claims.before_decision(epoch, handle)
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
        if not waited(lambda: not self._branches.is_alive(txn.epoch, txn.token), self._lock_timeout):
            self._branches.end_session(txn.epoch, txn.token)
        if not self._branches.is_pending(txn.handle):
            raise SinkUnavailable(f"sink {self.name}: {txn.handle} is not among XA RECOVER; prepare again")
        return Vote(txn.token, txn.handle, claim.target_id, dict(claim.rows))

    def _prepare(self, claim: Claim, txn: Txn) -> None:
        try:
            claim.cursor.execute("XA END %s, %s", xid(txn.handle))
            claim.cursor.execute("XA PREPARE %s, %s", xid(txn.handle))
        except pymysql.MySQLError as error:
            if is_lost(error):
                return  # the look into XA RECOVER tells
            raise self._database.named(error, f"XA PREPARE of epoch {txn.epoch}") from error

    def txn_of(self, epoch: SinkEpoch, vote: Vote) -> Txn:
        txn = super().txn_of(epoch, vote)
        found = self._branches.names.parse(txn.handle)
        if found != txn:
            raise LedgerConflict(
                f"sink {self.name}: the vote's handle {txn.handle} isn't of epoch {txn.epoch}, token {txn.token}, "
                f"manifest {txn.manifest} in database {self._own.database}: was the ledger altered? Nothing was "
                "committed"
            )
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
