"""A committer that remembers in a table of any PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor

from lockstep.errors import SINK_ERRORS, PreflightRefused, TargetChanged
from lockstep.postgres.connection import Database, close_quietly
from lockstep.sinks.committers import _lone_sender as lone_sender
from lockstep.sinks.committers.outside import OutsideCommitter
from lockstep.sinks.values import Marker, SinkContext, SinkEpoch
from lockstep.sinks.write_ahead import Session

POSTGRES = "postgres:"  #: stands before the connection's id in a sink's setting


class PostgresCommitter(OutsideCommitter):
    """A row of `lockstep_sent` for each epoch that was sent, in any PostgreSQL database: the ledger's, for instance."""

    def __init__(self, connection: str, lock_timeout: float = 10.0) -> None:
        self._connection, self._lock_timeout = connection, lock_timeout
        self._opened: Database | None = None
        self._table = sql.Identifier("public", "lockstep_sent")
        self._ranges = sql.Identifier("public", "lockstep_sent_range")

    def setting(self) -> str:
        return POSTGRES + self._connection

    def connect(self, context: SinkContext) -> None:
        dsn = context.dsn(self._connection, self.operator_id)
        self._opened = Database(f"sink {self.operator_id}", self._connection, dsn, self._lock_timeout, SINK_ERRORS)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    @property
    def _database(self) -> Database:
        assert self._opened is not None, "connect comes first"
        return self._opened

    def create_resource(self) -> None:
        """Raises `PreflightRefused`, `SinkUnavailable`."""
        with self._database.transaction("creating lockstep_sent", rejected=PreflightRefused) as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('lockstep set-up', 0))")
            cursor.execute(
                sql.SQL(
                    "CREATE TABLE IF NOT EXISTS {} (job text, operator text, epoch bigint, token bigint NOT NULL,"
                    " manifest text NOT NULL, sent_at timestamptz NOT NULL DEFAULT now(),"
                    " PRIMARY KEY (job, operator, epoch))"
                ).format(self._table)
            )
            cursor.execute(
                sql.SQL(
                    "CREATE TABLE IF NOT EXISTS {} (job text, operator text, span text, epoch bigint NOT NULL,"
                    " PRIMARY KEY (job, operator, span), UNIQUE (job, operator, epoch))"
                ).format(self._ranges)
            )
            cursor.execute(  # epoch 0 is nobody's: its row names the table
                sql.SQL(
                    "INSERT INTO {} (job, operator, epoch, token, manifest) VALUES ('', '', 0, 0, gen_random_uuid())"
                    " ON CONFLICT DO NOTHING"
                ).format(self._table)
            )
            cursor.execute("SELECT relpersistence FROM pg_class WHERE oid = 'public.lockstep_sent'::regclass")
            if cursor.fetchone() != ("p",):
                raise PreflightRefused(
                    f"sink {self.operator_id}: table lockstep_sent behind connection {self._connection} isn't "
                    "permanent, a crash empties it: ALTER TABLE lockstep_sent SET LOGGED"
                )

    def resource_id(self) -> str:
        """Raises `TargetChanged`."""
        found = self._found("looking for the committer's id", "", "", 0)
        if found is None:
            raise TargetChanged(
                f"sink {self.operator_id}: the database behind connection {self._connection} has no lockstep_sent with "
                "a name, so nobody can tell which epochs were sent: point the connection back, or restore it"
            )
        return found[1]

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        found = self._found("looking for the record", self.job_id, self.operator_id, epoch)
        return Marker(epoch, *found) if found else None

    def find_span(self, span: str) -> Marker | None:
        return next(iter(self._joined("looking for the record of a range", "r.span = %s", span)), None)

    def newest(self) -> list[Marker]:
        return self._joined("looking for the newest record", "true ORDER BY s.epoch DESC LIMIT 1")

    def all(self) -> list[Marker]:
        return self._joined("listing the records", "true ORDER BY s.epoch")

    def _joined(self, doing: str, which: str, *values: str) -> list[Marker]:
        with self._database.transaction(doing) as cursor:
            if not self._has_ranges(cursor):
                return []
            cursor.execute(
                sql.SQL(
                    "SELECT s.epoch, s.token, s.manifest, r.span FROM {} s LEFT JOIN {} r USING (job, operator, epoch)"
                    " WHERE s.job = %s AND s.operator = %s AND {}"
                ).format(self._table, self._ranges, sql.SQL(which)),
                (self.job_id, self.operator_id, *values),
            )
            return [Marker(*row) for row in cursor.fetchall()]

    def _has_ranges(self, cursor: Cursor) -> bool:
        """Not where no preflight has been since an older version made the table."""
        cursor.execute("SELECT to_regclass('public.lockstep_sent_range')")
        return cursor.fetchone() != (None,)

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        with self._database.transaction(f"recording epoch {epoch.id} as sent") as cursor:
            cursor.execute(
                sql.SQL(
                    "INSERT INTO {} (job, operator, epoch, token, manifest) VALUES (%s, %s, %s, %s, %s)"
                    " ON CONFLICT DO NOTHING"
                ).format(self._table),
                (self.job_id, self.operator_id, epoch.id, epoch.token, epoch.manifest_hash),
            )
            if epoch.span is not None and self._has_ranges(cursor):
                cursor.execute(
                    sql.SQL(
                        "INSERT INTO {} (job, operator, span, epoch) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"
                    ).format(self._ranges),
                    (self.job_id, self.operator_id, epoch.span, epoch.id),
                )
        self._require_same(epoch)

    @contextmanager
    def _alone(self, epoch: SinkEpoch) -> Iterator[bool]:
        """The server ends the session of a sender that gives no sign, and with it its lock."""
        connection = self._database.connect(f"lockstep {self.operator_id} sends {epoch.id}"[:63])
        try:
            with self._database.naming("looking for another sender"):
                cursor = connection.cursor()
                self._database.guard(cursor)
                cursor.execute(
                    "SET LOCAL idle_in_transaction_session_timeout = %s", (round(1000 * lone_sender.STANDSTILL),)
                )
                key = f"lockstep sends:{self.job_id}:{self.operator_id}:{epoch.id}"
                cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", (key,))
                alone = cursor.fetchone() == (True,)
            with lone_sender.beating(lambda: cursor.execute("SELECT")) if alone else nullcontext():
                yield alone
        finally:
            close_quietly(connection)

    def _found(self, doing: str, job: str, operator: str, epoch: int) -> tuple[int, str] | None:
        """Token and manifest of a record, read in a transaction of its own."""
        with self._database.transaction(doing) as cursor:
            cursor.execute("SELECT to_regclass('public.lockstep_sent')")
            if cursor.fetchone() == (None,):
                return None
            cursor.execute(
                sql.SQL("SELECT token, manifest FROM {} WHERE (job, operator, epoch) = (%s, %s, %s)").format(
                    self._table
                ),
                (job, operator, epoch),
            )
            row = cursor.fetchone()
        return (int(row[0]), str(row[1])) if row else None
