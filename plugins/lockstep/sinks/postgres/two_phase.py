"""PostgresSink by two-phase commit: the rows wait in a prepared transaction for the decision."""

from __future__ import annotations

from collections.abc import Iterable

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Vote
from lockstep.errors import (
    KeysHeld,
    PreflightRefused,
    PublishBlocked,
    SinkRejected,
    SinkUnavailable,
    TargetFull,
)
from lockstep.sinks.base import Batches, SinkContext, SinkEpoch, Txn
from lockstep.sinks.postgres.claim import Claim
from lockstep.sinks.postgres.connection import is_lost
from lockstep.sinks.postgres.sink import PostgresSink
from lockstep.sinks.two_phase import TwoPhaseCommitSink


class PostgresTwoPhaseSink(PostgresSink, TwoPhaseCommitSink):
    """One branch an epoch for all tables of the sink; needs max_prepared_transactions > 0."""

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

    def _preflight_settings(self, cursor: Cursor) -> None:
        cursor.execute(
            "SELECT current_setting('max_prepared_transactions')::int, "
            "ARRAY(SELECT gid FROM pg_prepared_xacts WHERE database = current_database()), "
            "(SELECT count(*) FROM pg_prepared_xacts)"
        )
        limit, here, used = cursor.fetchone() or (0, [], 0)
        own = [gid for gid in here if self._branches.owner.parse(gid)]  # those go before the next one comes
        if limit == 0:
            raise PreflightRefused(
                f"sink {self.name}: max_prepared_transactions = 0: a two_phase sink needs one for each epoch under "
                "way; raise it and restart the server, or say protocol='write_ahead'"
            )
        if used - len(own) >= limit:
            raise TargetFull(
                f"sink {self.name}: max_prepared_transactions = {limit}, {used} in use, all by others (see "
                f"pg_prepared_xacts): try again when one is finished; if they are no leftovers, raise it to at least "
                f"{used + 1} and restart the server, or say protocol='write_ahead'"
            )

    def begin_transaction(self, epoch: SinkEpoch) -> Txn:
        handle = self._branches.owner.handle(epoch)
        claim = self._claims.before_decision(epoch)
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
        if not self._branches.is_pending(txn.handle):
            raise SinkUnavailable(f"sink {self.name}: {txn.handle} is not in pg_prepared_xacts; prepare again")
        return Vote(txn.token, txn.handle, claim.target_id, dict(claim.rows))

    def _prepare(self, claim: Claim, txn: Txn) -> None:
        try:
            claim.cursor.execute(sql.SQL("PREPARE TRANSACTION {}").format(sql.Literal(txn.handle)))
        except psycopg2.Error as error:
            if is_lost(error):
                return  # the look into pg_prepared_xacts tells
            raise self._database.named(error, f"PREPARE TRANSACTION of epoch {txn.epoch}") from error
        tag = claim.cursor.statusmessage
        if tag != "PREPARE TRANSACTION":
            raise SinkRejected(
                f"sink {self.name}: PREPARE TRANSACTION of epoch {txn.epoch} was answered with {tag}: a statement had "
                "failed before, and the server rolled everything back"
            )

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
