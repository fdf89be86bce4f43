"""One MariaDB database as both protocols use it: set-up, and the claims of markers.

A publisher holds the marker's row until it commits: by the token in it, which others read uncommitted, it is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from lockstep.connections.mariadb.connection import Database
from lockstep.connections.mariadb.wire import PACKET, Cursor, close_quietly
from lockstep.errors import PreflightRefused, SinkUnavailable
from lockstep.sinks.mariadb._branches import Holder, MariaDbBranches, xid
from lockstep.sinks.mariadb._own_tables import MariaDbOwnTables
from lockstep.sinks.tables.target import TRIES, TableClaim, TableTarget
from lockstep.sinks.values import SinkEpoch


@dataclass(frozen=True)
class MariaDbTarget(TableTarget[Cursor]):
    """The tables of a MariaDbSink."""

    database: Database
    own: MariaDbOwnTables
    branches: MariaDbBranches

    # --- set-up ---

    @contextmanager
    def set_up(self) -> Iterator[Cursor]:
        naming = self.database.naming("preflight", PreflightRefused)
        with naming, self.database.outside_transaction() as cursor:
            self._require_settings(cursor)
            self.own.lock_set_up(cursor)
            try:
                yield cursor
            finally:
                self.own.unlock_set_up(cursor)

    def _require_settings(self, cursor: Cursor) -> None:
        """Refuse server settings that this sink can't work with, beyond what every transaction checks."""
        cursor.execute("SELECT @@GLOBAL.local_infile, @@max_allowed_packet")
        local_infile, packet = cursor.fetchone() or (0, 0)
        if packet <= PACKET:
            raise PreflightRefused(
                f"{self.database.where}: max_allowed_packet = {packet}: rows are sent in packets of {PACKET} "
                "bytes; set it to 1048576 or more on the server"
            )
        if local_infile != 1:
            raise PreflightRefused(
                f"{self.database.where}: local_infile = 0: rows are sent by LOAD DATA LOCAL; set it to 1 on the server"
            )

    def require_rights(self, cursor: Cursor, *, create: bool) -> None:
        """There is nobody to ask for all rights at once: what is missing says so when it is met, and by which grant."""
        cursor.execute(
            "SELECT CONCAT(QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', 1)), '@', "
            "QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))"
        )
        self.database.account = str((cursor.fetchone() or [None])[0])

    # --- transactions ---

    def begin(self, epoch: SinkEpoch, handle: str | None = None) -> TableClaim[Cursor]:
        connection = self.database.connect()
        try:
            with self.database.naming("opening a transaction"):
                cursor = connection.cursor()
                self.database.guard(cursor)
                self._take_name(cursor, epoch)
                target_id = self.own.target_id(cursor)
                cursor.execute("XA START %s, %s", xid(handle)) if handle else connection.begin()
        except BaseException:
            close_quietly(connection)
            raise
        return TableClaim(epoch, cursor, target_id, connection.commit, partial(close_quietly, connection))

    def _take_name(self, cursor: Cursor, epoch: SinkEpoch) -> None:
        cursor.execute(
            "SELECT GET_LOCK(%s, %s)", (self.branches.names.session(epoch.id, epoch.token), self.database.lock_timeout)
        )
        if cursor.fetchone() != (1,):
            raise SinkUnavailable(
                f"{self.database.where}: another session works on epoch {epoch.id} with the same token "
                f"{epoch.token}; try again"
            )

    def begin_trial(self, epoch: SinkEpoch) -> TableClaim[Cursor]:
        """With the marker, which is rolled back with the rows: a zombie is found by it."""
        return self.claim_to_vote(epoch)

    def claim_to_publish(self, epoch: SinkEpoch) -> TableClaim[Cursor]:
        for _ in range(TRIES):
            claim = self.begin(epoch)
            before = self.branches.holder(epoch.id)
            if self._insert_marker(claim):
                return claim
            after = self.branches.holder(epoch.id)
            if after is not None and (after.token >= epoch.token or _moves(before, after)):
                return claim
            self.branches.terminate_stale_sessions(epoch)
        raise self._stuck(epoch)


def _moves(before: Holder | None, after: Holder) -> bool:
    """Whether a connected publisher has come further meanwhile, or the server is at work for it."""
    return after.connection is not None and (before != after or after.works)
