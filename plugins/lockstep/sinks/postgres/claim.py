"""Open a transaction whose first row is the epoch's marker: whoever gets no row writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import psycopg2
from psycopg2.extensions import connection as Connection
from psycopg2.extensions import cursor as Cursor

from lockstep.postgres.connection import Database, close_quietly
from lockstep.sinks.base import SinkEpoch
from lockstep.sinks.postgres.branches import Branches
from lockstep.sinks.postgres.target import TargetTables
from lockstep.sinks.tables.claim import TRIES, TableClaim, TableClaims

_ADVISORY = "hashtextextended(%s, 0)"


Claim: TypeAlias = TableClaim[Connection, Cursor]


@dataclass(frozen=True)
class Claims(TableClaims):
    """How a sink comes to hold the marker of an epoch."""

    database: Database
    tables: TargetTables
    branches: Branches

    def open(self, epoch: SinkEpoch) -> Claim:
        """A session that carries the token, in a guarded transaction, without the marker yet."""
        connection = self.database.connect(self.branches.owner.session(epoch.id, epoch.token))
        try:
            with self.database.naming("opening a transaction"):
                cursor = connection.cursor()
                self.database.guard(cursor)
                return Claim(
                    epoch, connection, cursor, self.tables.target_id(cursor), partial(close_quietly, connection)
                )
        except BaseException:
            close_quietly(connection)
            raise

    def before_decision(self, epoch: SinkEpoch) -> Claim:
        """Claim the marker for a branch. Lower tokens were superseded in the ledger: they give way at once."""
        return self._at_once(epoch, lambda: self.open(epoch))

    def after_decision(self, epoch: SinkEpoch) -> Claim:
        """Claim the marker for publishing. A publisher of a lower token that makes progress is left to it."""
        for _ in range(TRIES):
            claim = self.open(epoch)
            if not self._lock_out_publishers(claim):
                claim.close()
                return claim
            if self._insert(claim):
                return claim
            self.branches.clear_the_way(epoch)
        raise self._stuck(epoch)

    def without_marker(self, epoch: SinkEpoch) -> Claim:
        """For publishing where the record is elsewhere: two publishers go one by one, a crash is another matter."""
        claim = self.open(epoch)
        claim.claimed = self._lock_out_publishers(claim)
        if not claim.claimed:
            claim.close()
        return claim

    def _insert_marker(self, claim: Claim) -> bool:
        return self.tables.insert_marker(claim.cursor, claim.epoch)

    def _lock_out_publishers(self, claim: Claim) -> bool:
        """Take the publishers' lock; False if a lower token holds it and moves, or an equal or higher one does."""
        try:
            with self.database.naming("waiting for another publisher"):
                return self._lock_out(claim, ":".join((*self.tables.owner_key, str(claim.epoch.id))))
        except BaseException:
            claim.close()
            raise

    def _lock_out(self, claim: Claim, key: str) -> bool:
        claim.cursor.execute(f"SELECT pg_try_advisory_xact_lock({_ADVISORY})", (key,))
        if claim.cursor.fetchone() == (True,):
            return True
        before = self.branches.publishers(claim.cursor, claim.epoch)
        if self._waited(claim, key):
            return True
        with self.database.transaction("looking at another publisher") as cursor:
            after = self.branches.publishers(cursor, claim.epoch)
        if not after or before != after:
            return False
        self.branches.end_sessions(claim.epoch)
        return self._waited(claim, key)

    def _waited(self, claim: Claim, key: str) -> bool:
        claim.cursor.execute("SAVEPOINT waiting")
        try:
            claim.cursor.execute(f"SELECT pg_advisory_xact_lock({_ADVISORY})", (key,))
        except psycopg2.errors.LockNotAvailable:
            claim.cursor.execute("ROLLBACK TO SAVEPOINT waiting")
            return False
        return True
