"""Prepared transactions of a sink, and what lower tokens left in the way of an epoch's marker.

A handle that is gone proves nothing by itself: committed, rolled back and never prepared all answer 42704. Only the
marker, read in a new transaction, tells (see `TwoPhaseCommitSink.publish`).
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg2
from psycopg2 import errorcodes, sql
from psycopg2.extensions import cursor as Cursor

from lockstep.connections.postgres.connection import Database
from lockstep.connections.postgres.errors import is_lost
from lockstep.connections.postgres.refusals import quotes_row
from lockstep.errors import LockstepError, PreflightRefused, PublishBlocked, SinkRejected, SinkUnavailable, TargetFull
from lockstep.observability.redaction import cause
from lockstep.sinks.handles import SinkName
from lockstep.sinks.tables.branches import TableBranches, TryAgain
from lockstep.sinks.values import SinkEpoch, Txn

# sessions of this epoch and sink with lower tokens; parse and act in one statement, or a process id may be another's
_LOWER = """
    FROM pg_stat_activity a
    WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
      AND CASE WHEN a.application_name ~ ('^' || %(prefix)s || '[0-9]+$')
               THEN substr(a.application_name, length(%(prefix)s) + 1)::numeric < %(token)s ELSE false END
"""
_END = f"SELECT pg_terminate_backend(a.pid) {_LOWER}"
_PUBLISHERS = f"""
    SELECT a.pid, a.state_change, a.query_start,
           CASE WHEN a.state = 'active' AND a.wait_event IS DISTINCT FROM 'ClientRead' THEN clock_timestamp() END,
           (SELECT sum(p.bytes_processed) FROM pg_stat_progress_copy p WHERE p.pid = a.pid)
    {_LOWER} AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory' AND l.granted)
    ORDER BY a.pid
"""  # noqa: S608

# whatever has written to the markers or their ranges, or has locked them, without an end; no session has a prepared one
_WRITERS = """
    SELECT DISTINCT CASE WHEN l.pid IS NULL THEN 'prepared ' || p.gid
                         ELSE 'session ' || l.pid || ' (' || COALESCE(a.application_name, '') || ')' END AS name
    FROM pg_locks l JOIN pg_class c ON c.oid = l.relation AND c.relname IN ('lockstep_marker', 'lockstep_range')
    LEFT JOIN pg_stat_activity a ON a.pid = l.pid
    LEFT JOIN pg_locks x ON x.virtualtransaction = l.virtualtransaction AND x.locktype = 'transactionid' AND x.granted
    LEFT JOIN pg_prepared_xacts p ON p.transaction = x.transactionid
    WHERE l.locktype = 'relation' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND l.granted AND l.mode NOT IN ('AccessShareLock', 'RowShareLock') AND COALESCE(a.pid, 0) <> pg_backend_pid()
    ORDER BY name LIMIT 5
"""


@dataclass(frozen=True)
class PostgresBranches(TableBranches[Cursor]):
    """The prepared transactions that `owner` has in `database`."""

    commit_verb = "COMMIT PREPARED"
    roll_back_verb = "ROLLBACK PREPARED"
    listed = "in pg_prepared_xacts"

    database: Database
    owner: SinkName

    def require_room(self, cursor: Cursor) -> tuple[str, int]:
        cursor.execute(
            "SELECT current_setting('max_prepared_transactions')::int, "
            "ARRAY(SELECT gid FROM pg_prepared_xacts WHERE database = current_database()), "
            "(SELECT count(*) FROM pg_prepared_xacts), "
            "concat(current_setting('port'), ' ', extract(epoch FROM pg_postmaster_start_time()))"
        )
        limit, here, used, server = cursor.fetchone() or (0, [], 0, "")
        own = [
            gid for gid in here if self.parse(gid)
        ]  # not counted: what goes before this epoch's comes, and maybe other epochs', of which `prepare` tells
        if limit == 0:
            raise PreflightRefused(
                f"sink {self.owner.sink}: max_prepared_transactions = 0: a two_phase sink needs one for each epoch "
                "under way; raise it and restart the server, or say protocol='write_ahead'"
            )
        if used - len(own) >= limit:
            raise TargetFull(
                f"sink {self.owner.sink}: max_prepared_transactions = {limit}, {used} in use, all by others (see "
                f"pg_prepared_xacts): try again when one is finished; if they are no leftovers, raise it to at least "
                f"{used + 1} and restart the server, or say protocol='write_ahead'"
            )
        return server, limit

    def handle(self, epoch: SinkEpoch) -> str:
        return self.owner.handle(epoch)

    def parse(self, handle: str) -> Txn | None:
        return self.owner.parse(handle)

    def prepare(self, cursor: Cursor, txn: Txn) -> None:
        try:
            cursor.execute(sql.SQL("PREPARE TRANSACTION {}").format(sql.Literal(txn.handle)))
        except psycopg2.Error as error:
            if is_lost(error):
                return  # the look into pg_prepared_xacts tells
            if _is_full(error):
                raise TargetFull(
                    f"sink {self.owner.sink}: PREPARE TRANSACTION of epoch {txn.epoch}: all of "
                    "max_prepared_transactions are in use (see pg_prepared_xacts), maybe by this sink's other epochs: "
                    "try again when one is published; or raise it and restart the server"
                ) from error
            named = self.database.named(error, f"PREPARE TRANSACTION of epoch {txn.epoch}")
            raise named from cause(error, quotes_row(error))
        tag = cursor.statusmessage
        if tag != "PREPARE TRANSACTION":
            raise SinkRejected(
                f"sink {self.owner.sink}: PREPARE TRANSACTION of epoch {txn.epoch} was answered with {tag}: a "
                "statement had failed before, and the server rolled everything back"
            )

    def pending(self) -> list[Txn]:
        """Every handle of this owner in this database; names that only look alike are not ours."""
        with self.database.transaction("listing prepared transactions") as cursor:
            cursor.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database() ORDER BY prepared")
            found = [self.parse(gid) for (gid,) in cursor.fetchall()]
        return [txn for txn in found if txn is not None]

    def is_pending(self, handle: str) -> bool:
        """Whether `handle` is prepared, looked up in a new transaction on the primary."""
        with self.database.transaction("looking for a prepared transaction") as cursor:
            cursor.execute(
                "SELECT 1 FROM pg_prepared_xacts WHERE gid = %s AND database = current_database()", (handle,)
            )
            return cursor.fetchone() is not None

    def _finish_once(self, verb: str, handle: str) -> bool:
        statement = sql.SQL("{} {}").format(sql.SQL(verb), sql.Literal(handle))
        try:
            with self.database.outside_transaction() as cursor:
                cursor.execute(statement)
                return True
        except SinkUnavailable as error:
            raise TryAgain(str(error)) from error
        except psycopg2.Error as error:
            if error.pgcode == errorcodes.UNDEFINED_OBJECT:
                return False
            if error.pgcode == errorcodes.OBJECT_NOT_IN_PREREQUISITE_STATE:
                raise TryAgain("another session is finishing it") from error
            if not is_lost(error):
                raise self._refused(error, verb, handle) from error
            self._look_again(handle, error)
            return False

    def _refused(self, error: psycopg2.Error, verb: str, handle: str) -> LockstepError:
        kind = PublishBlocked if verb.startswith("COMMIT") else SinkUnavailable
        if error.pgcode != errorcodes.INSUFFICIENT_PRIVILEGE:
            return self.database.named(error, f"{verb} {handle}", kind)
        return kind(
            f"sink {self.owner.sink}: {verb} {handle}: only the role that prepared it, or a superuser, may finish it, "
            f"not the role of connection {self.database.connection_id}: log in as that role, or let a superuser run it"
        )

    # --- what lower tokens left ---

    def end_sessions(self, epoch: SinkEpoch) -> None:
        """End this epoch's sessions of lower tokens: stopped clients that hold locks."""
        with self.database.transaction("ending sessions of lower tokens") as cursor:
            cursor.execute(_END, self._lower(epoch))

    def publishers(self, cursor: Cursor, epoch: SinkEpoch) -> list[tuple[object, ...]]:
        """How far lower tokens' publishing sessions have come: alike at two times means that they stand still."""
        cursor.execute(_PUBLISHERS, self._lower(epoch))
        return cursor.fetchall()

    def lock_holders(self, epoch: SinkEpoch) -> str:
        """Who else works on this epoch, or else who holds the markers, for a message: not the attempt's own session,
        which holds nothing any more and is listed until its process has gone."""
        sessions = (
            "SELECT a.application_name FROM pg_stat_activity a WHERE starts_with(a.application_name, %s) AND EXISTS "
            "(SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'transactionid' AND l.granted)"
        )
        with self.database.transaction("looking who is in the way") as cursor:
            cursor.execute(sessions, (self.owner.session_prefix(epoch.id),))
            names = [f"session {name}" for (name,) in cursor.fetchall()]
            cursor.execute(_WRITERS)
            others = [str(name) for (name,) in cursor.fetchall()]
        names += [f"prepared {txn.handle}" for txn in self.pending() if txn.epoch == epoch.id]
        return ", ".join(names or others) or "nothing any more: it is tried again"

    def _lower(self, epoch: SinkEpoch) -> dict[str, object]:
        return {"prefix": self.owner.session_prefix(epoch.id), "token": epoch.token}


def _is_full(error: psycopg2.Error) -> bool:
    """Whether no prepared transaction is free: to be told from other shortages only by the setting in the hint."""
    return error.pgcode == errorcodes.OUT_OF_MEMORY and "max_prepared_transactions" in (error.diag.message_hint or "")
