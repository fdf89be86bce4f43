"""MariaDbSink by two-phase commit: the rows wait in a prepared XA branch for the decision."""

from __future__ import annotations

import pymysql

from lockstep.disclosure import cause
from lockstep.epoch import Vote
from lockstep.errors import LedgerConflict
from lockstep.mariadb.refusals import quotes_row
from lockstep.mariadb.wire import is_lost
from lockstep.sinks.base import SinkEpoch, Txn
from lockstep.sinks.mariadb.branches import waited, xid
from lockstep.sinks.mariadb.claim import Claim
from lockstep.sinks.mariadb.sink import MariaDbSink
from lockstep.sinks.tables.two_phase import TableTwoPhaseSink


class MariaDbTwoPhaseSink(TableTwoPhaseSink, MariaDbSink):
    """One branch an epoch for all tables of the sink. It outlives its connection and the server's crash."""

    listed = "among XA RECOVER"

    def _begin(self, epoch: SinkEpoch) -> tuple[str, Claim]:
        handle = self._branches.names.handle(epoch.id, epoch.token, epoch.manifest_hash)
        return handle, self._claims.before_decision(epoch, handle)

    def _prepare(self, claim: Claim, txn: Txn) -> None:
        try:
            claim.cursor.execute("XA END %s, %s", xid(txn.handle))
            claim.cursor.execute("XA PREPARE %s, %s", xid(txn.handle))
        except pymysql.MySQLError as error:
            if is_lost(error):
                return  # the look into XA RECOVER tells
            named = self._database.named(error, f"XA PREPARE of epoch {txn.epoch}")
            raise named from cause(error, quotes_row(error))

    def _await_release(self, txn: Txn) -> None:
        if not waited(lambda: not self._branches.is_alive(txn.epoch, txn.token), self._lock_timeout):
            self._branches.end_session(txn.epoch, txn.token)

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
