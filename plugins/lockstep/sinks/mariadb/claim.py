"""Open a transaction whose first row is the epoch's marker: whoever gets no row writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from lockstep.errors import SinkUnavailable
from lockstep.mariadb.connection import Database
from lockstep.mariadb.wire import Cursor, Loader, close_quietly
from lockstep.sinks.base import SinkEpoch
from lockstep.sinks.mariadb.branches import Branches, Holder, xid
from lockstep.sinks.mariadb.target import TargetTables
from lockstep.sinks.tables.claim import TRIES, TableClaim, TableClaims

Claim: TypeAlias = TableClaim[Loader, Cursor]


@dataclass(frozen=True)
class Claims(TableClaims):
    """How a sink comes to hold the marker of an epoch."""

    database: Database
    tables: TargetTables
    branches: Branches

    def before_decision(self, epoch: SinkEpoch, handle: str | None = None) -> Claim:
        """Claim the marker, in the branch `handle` where one is given. Lower tokens were superseded in the ledger:
        they give way at once."""
        return self._at_once(epoch, lambda: self._open(epoch, handle))

    def after_decision(self, epoch: SinkEpoch) -> Claim:
        """Claim the marker for publishing. A publisher of a lower token that makes progress is left to it."""
        for _ in range(TRIES):
            claim = self._open(epoch, None)
            before = self.branches.holder(epoch.id)
            if self._insert(claim):
                return claim
            after = self.branches.holder(epoch.id)
            if after is not None and (after.token >= epoch.token or _moves(before, after)):
                return claim
            self.branches.clear_the_way(epoch)
        raise self._stuck(epoch)

    def _open(self, epoch: SinkEpoch, handle: str | None) -> Claim:
        """A session that holds the token's name, in a guarded transaction, without the marker yet."""
        connection = self.database.connect()
        try:
            with self.database.naming("opening a transaction"):
                cursor = connection.cursor()
                self.database.guard(cursor)
                self._take_name(cursor, epoch)
                claim = Claim(
                    epoch, connection, cursor, self.tables.target_id(cursor), partial(close_quietly, connection)
                )
                cursor.execute("XA START %s, %s", xid(handle)) if handle else connection.begin()
                return claim
        except BaseException:
            close_quietly(connection)
            raise

    def _take_name(self, cursor: Cursor, epoch: SinkEpoch) -> None:
        cursor.execute(
            "SELECT GET_LOCK(%s, %s)", (self.branches.names.session(epoch.id, epoch.token), self.database.lock_timeout)
        )
        if cursor.fetchone() != (1,):
            raise SinkUnavailable(
                f"sink {self.database.sink}: another session works on epoch {epoch.id} with the same token "
                f"{epoch.token}; try again"
            )

    def _insert_marker(self, claim: Claim) -> bool:
        return self.tables.insert_marker(claim.cursor, claim.epoch, self.database.lock_timeout)


def _moves(before: Holder | None, after: Holder) -> bool:
    """Whether a connected publisher has come further meanwhile, or the server is at work for it."""
    return after.connection is not None and (before != after or after.works)
