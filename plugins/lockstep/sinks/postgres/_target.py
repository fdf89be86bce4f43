"""One Postgres database as both protocols use it: set-up, and the claims of markers.

Two publishers of one epoch are told apart by an advisory lock: whoever holds it shows how far it has come.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import psycopg2
from psycopg2.extensions import cursor as Cursor

from lockstep.connections.postgres.connection import Database, close_quietly, too_old
from lockstep.errors import PreflightRefused
from lockstep.sinks.postgres._branches import PostgresBranches
from lockstep.sinks.postgres._own_tables import PostgresOwnTables
from lockstep.sinks.postgres._rights import Name, require_rights
from lockstep.sinks.tables.target import TRIES, TableClaim, TableTarget
from lockstep.sinks.values import SinkEpoch

_ADVISORY = "hashtextextended(%s, 0)"
_LACKS = "progress of COPY, by which a publisher that works is told from one that hangs"
_DDL_LOCK_SECONDS = 0.2  #: behind a prepared transaction DDL would wait for ever, and everybody behind it


@dataclass(frozen=True)
class PostgresTarget(TableTarget[Cursor]):
    """The tables of a PostgresSink."""

    database: Database
    own: PostgresOwnTables
    branches: PostgresBranches

    # --- set-up ---

    @contextmanager
    def set_up(self) -> Iterator[Cursor]:
        with self.database.transaction("preflight", rejected=PreflightRefused) as cursor:
            if found := too_old(cursor.connection, _LACKS):
                raise PreflightRefused(f"{self.database.where}: the server is {found}")
            self.own.lock_set_up(cursor)
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", (str(round(1000 * _DDL_LOCK_SECONDS)),))
            yield cursor

    def require_rights(self, cursor: Cursor, *, create: bool) -> None:
        own, upserts = self.own.rights(), self.own.upserts
        writing = ("SELECT", "INSERT", "UPDATE") if upserts else ("INSERT",)
        targets = {table.relation.names: writing for table in self.outputs.values()}
        rights: dict[Name, tuple[str, ...]] = {(schema, ""): ("USAGE",) for schema, _ in (*own, *targets)}
        if upserts:
            rights[self.own.home, ""] = ("USAGE", "CREATE")  # for the table in between
        made = {*own, *(targets if create else ())}
        require_rights(cursor, self.database.where, {**rights, **own, **targets}, made)

    # --- transactions ---

    def begin(self, epoch: SinkEpoch, handle: str | None = None) -> TableClaim[Cursor]:
        connection = self.database.connect(self.branches.owner.session(epoch.id, epoch.token))
        try:
            with self.database.naming("opening a transaction"):
                cursor = connection.cursor()
                self.database.guard(cursor)
                target_id = self.own.target_id(cursor)
        except BaseException:
            close_quietly(connection)
            raise
        return TableClaim(epoch, cursor, target_id, connection.commit, partial(close_quietly, connection))

    def begin_trial(self, epoch: SinkEpoch) -> TableClaim[Cursor]:
        return self.begin(epoch)

    def check_trial(self, claim: TableClaim[Cursor]) -> None:
        with self.database.naming(f"checking the constraints of epoch {claim.epoch.id}"):
            claim.cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")

    def claim_to_publish(self, epoch: SinkEpoch) -> TableClaim[Cursor]:
        for _ in range(TRIES):
            claim = self.begin(epoch)
            if not self._lock_out_publishers(claim):
                claim.close()
                return claim
            if self._insert_marker(claim):
                return claim
            self.branches.terminate_stale_sessions(epoch)
        raise self._stuck(epoch)

    # --- other publishers ---

    def _lock_out_publishers(self, claim: TableClaim[Cursor]) -> bool:
        """Take the publishers' lock; False if a lower token holds it and moves, or an equal or higher one does."""
        try:
            with self.database.naming("waiting for another publisher"):
                return self._lock_out(claim, ":".join((*self.own.owner_key, str(claim.epoch.id))))
        except BaseException:
            claim.close()
            raise

    def _lock_out(self, claim: TableClaim[Cursor], key: str) -> bool:
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

    def _waited(self, claim: TableClaim[Cursor], key: str) -> bool:
        claim.cursor.execute("SAVEPOINT waiting")
        try:
            claim.cursor.execute(f"SELECT pg_advisory_xact_lock({_ADVISORY})", (key,))
        except psycopg2.errors.LockNotAvailable:
            claim.cursor.execute("ROLLBACK TO SAVEPOINT waiting")
            return False
        return True
