"""`PostgresCommitter`: records in a table of any PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor

import lockstep.sinks.committers.external as external
from lockstep.connections.postgres.connection import PostgresDatabase, close_quietly
from lockstep.errors import SINK_ERRORS, PreflightRefused, TargetChanged
from lockstep.sinks.committers.external import ExternalCommitter
from lockstep.sinks.values import Marker, SinkContext, SinkEpoch
from lockstep.sinks.write_ahead import Session

POSTGRES = "postgres:"  #: prefix of the connection's id in a sink's setting


class PostgresCommitter(ExternalCommitter):
    """Records each sent epoch in a row of `lockstep_sent`, in any PostgreSQL database, for instance the ledger's.

    With at most once, `lockstep_begun` has a row for each epoch that begins, until it is recorded as sent. An epoch
    with a row in both was cut off.
    """

    def __init__(self, connection: str, lock_timeout: float = 10.0) -> None:
        self._connection, self._lock_timeout = connection, lock_timeout
        self._opened: PostgresDatabase | None = None
        self._table = sql.Identifier("public", "lockstep_sent")
        self._ranges = sql.Identifier("public", "lockstep_sent_range")
        self._begun_table = sql.Identifier("public", "lockstep_begun")

    def setting(self) -> str:
        return POSTGRES + self._connection

    def connect(self, context: SinkContext) -> None:
        dsn = context.dsn(self._connection, self.operator_id)
        self._opened = PostgresDatabase(
            f"sink {self.operator_id}", self._connection, dsn, self._lock_timeout, SINK_ERRORS
        )

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    @property
    def _database(self) -> PostgresDatabase:
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
            cursor.execute(  # epoch 0 belongs to no sink: its row holds the table's id
                sql.SQL(
                    "INSERT INTO {} (job, operator, epoch, token, manifest) VALUES ('', '', 0, 0, gen_random_uuid())"
                    " ON CONFLICT DO NOTHING"
                ).format(self._table)
            )
            self._require_permanent(cursor, "lockstep_sent")

    def _require_permanent(self, cursor: Cursor, table: str) -> None:
        cursor.execute("SELECT relpersistence FROM pg_class WHERE oid = %s::regclass", (f"public.{table}",))
        if cursor.fetchone() != ("p",):
            raise PreflightRefused(
                f"sink {self.operator_id}: table {table} behind connection {self._connection} isn't permanent, a crash "
                f"empties it: ALTER TABLE {table} SET LOGGED"
            )

    def resource_id(self) -> str:
        """Raises `TargetChanged`."""
        row = self._read_record("looking for the committer's id", "", "", 0)
        if row is None:
            raise TargetChanged(
                f"sink {self.operator_id}: the database behind connection {self._connection} has no lockstep_sent with "
                "an id, so it is unknown which epochs were sent: point the connection back, or restore it"
            )
        return row[1]

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        row = self._read_record("looking for the record", self.job_id, self.operator_id, epoch)
        return Marker(epoch, *row[:2], whole=row[2]) if row else None

    def find_span(self, span: str) -> Marker | None:
        return next(iter(self._select(self._table, "looking for the record of a range", "r.span = %s", span)), None)

    def newest(self) -> list[Marker]:
        return self._select(self._table, "looking for the newest record", "true ORDER BY s.epoch DESC LIMIT 1")

    def all(self) -> list[Marker]:
        return self._select(self._table, "listing the records", "true ORDER BY s.epoch")

    def _select(self, table: sql.Identifier, doing: str, condition: str, *values: str | int) -> list[Marker]:
        with self._database.transaction(doing) as cursor:
            if not self._has(cursor, table):
                return []
            complete = self._whole(cursor) if table is self._table else sql.SQL("true")
            cursor.execute(
                sql.SQL(
                    "SELECT s.epoch, s.token, s.manifest, r.span, {} FROM {} s LEFT JOIN {} r"
                    " USING (job, operator, epoch) WHERE s.job = %s AND s.operator = %s AND {}"
                ).format(complete, table, self._ranges, sql.SQL(condition)),
                (self.job_id, self.operator_id, *values),
            )
            return [
                Marker(number, token, manifest, span, whole=whole)
                for number, token, manifest, span, whole in cursor.fetchall()
            ]

    def _whole(self, cursor: Cursor) -> sql.Composable:
        """Return a condition that is true if the record `s` was sent completely."""
        if not self._has(cursor, self._begun_table):
            return sql.SQL("true")
        return sql.SQL(
            "NOT EXISTS (SELECT FROM {} b WHERE (b.job, b.operator, b.epoch) = (s.job, s.operator, s.epoch))"
        ).format(self._begun_table)

    def _has(self, cursor: Cursor, table: sql.Identifier) -> bool:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (table.as_string(cursor),))
        return cursor.fetchone() == (True,)

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        with self._database.transaction(f"recording epoch {epoch.id} as sent") as cursor:
            self._insert(cursor, self._table, epoch)
            self._insert_range(cursor, epoch)
        self._require_same(epoch)

    def _insert(self, cursor: Cursor, table: sql.Identifier, epoch: SinkEpoch) -> bool:
        """Insert the record; return False if it exists."""
        cursor.execute(
            sql.SQL(
                "INSERT INTO {} (job, operator, epoch, token, manifest) VALUES (%s, %s, %s, %s, %s)"
                " ON CONFLICT DO NOTHING"
            ).format(table),
            (self.job_id, self.operator_id, epoch.id, epoch.token, epoch.manifest_hash),
        )
        return bool(cursor.rowcount)

    def _insert_range(self, cursor: Cursor, epoch: SinkEpoch) -> None:
        if epoch.span is not None:
            cursor.execute(
                sql.SQL(
                    "INSERT INTO {} (job, operator, span, epoch) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"
                ).format(self._ranges),
                (self.job_id, self.operator_id, epoch.span, epoch.id),
            )

    # --- the record before the rows ---

    def create_begun(self) -> None:
        """Raises `PreflightRefused`, `SinkUnavailable`."""
        with self._database.transaction("creating lockstep_begun", rejected=PreflightRefused) as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('lockstep set-up', 0))")
            cursor.execute(
                sql.SQL(
                    "CREATE TABLE IF NOT EXISTS {} (job text, operator text, epoch bigint, token bigint NOT NULL,"
                    " manifest text NOT NULL, begun_at timestamptz NOT NULL DEFAULT now(),"
                    " PRIMARY KEY (job, operator, epoch))"
                ).format(self._begun_table)
            )
            self._require_permanent(cursor, "lockstep_begun")

    def begin(self, epoch: SinkEpoch) -> bool:
        """Insert the row; one process succeeds. Then check for the record, whose sender has deleted the row."""
        with self._database.transaction(f"recording that epoch {epoch.id} begins") as cursor:
            if not self._insert(cursor, self._begun_table, epoch):
                return False
            if self._find(cursor, self._table, epoch.id):
                self._delete_begun(cursor, epoch.id)
                return False
            self._insert_range(cursor, epoch)
        return True

    def end(self, epoch: SinkEpoch, *, whole: bool) -> None:
        with self._database.transaction(f"recording epoch {epoch.id} as {'sent' if whole else 'cut off'}") as cursor:
            if self._lock_begun(cursor, epoch.id):
                self._insert(cursor, self._table, epoch)
                if whole:
                    self._delete_begun(cursor, epoch.id)
        if whole:
            self._require_same(epoch)

    def take_back(self, epoch: SinkEpoch) -> None:
        with self._database.transaction(f"taking back that epoch {epoch.id} begins") as cursor:
            if self._lock_begun(cursor, epoch.id):
                self._delete_begun(cursor, epoch.id)

    def _lock_begun(self, cursor: Cursor, epoch: int) -> bool:
        """Lock the row; return True if the epoch has begun and isn't recorded, until the end of the transaction."""
        return self._find(cursor, self._begun_table, epoch, lock=True) and not self._find(cursor, self._table, epoch)

    def _find(self, cursor: Cursor, table: sql.Identifier, epoch: int, *, lock: bool = False) -> bool:
        query = sql.SQL("SELECT FROM {} WHERE (job, operator, epoch) = (%s, %s, %s)").format(table)
        cursor.execute(query + sql.SQL(" FOR UPDATE" if lock else ""), (self.job_id, self.operator_id, epoch))
        return cursor.fetchone() is not None

    def _delete_begun(self, cursor: Cursor, epoch: int) -> None:
        cursor.execute(
            sql.SQL("DELETE FROM {} WHERE (job, operator, epoch) = (%s, %s, %s)").format(self._begun_table),
            (self.job_id, self.operator_id, epoch),
        )

    def find_begun(self, epoch: int) -> Marker | None:
        return next(iter(self._select(self._begun_table, "looking whether it has begun", "s.epoch = %s", epoch)), None)

    def find_begun_span(self, span: str) -> Marker | None:
        return next(iter(self._select(self._begun_table, "looking for a begun range", "r.span = %s", span)), None)

    def list_begun(self, *, newest: bool = False) -> list[Marker]:
        which = "true ORDER BY s.epoch DESC LIMIT 1" if newest else "true ORDER BY s.epoch"
        return self._select(self._begun_table, "listing what has begun", which)

    # --- one sender at a time ---

    @contextmanager
    def sender_lock(self, epoch: SinkEpoch) -> Iterator[bool]:
        """Take an advisory lock. The server ends the session of a sender without heartbeats, and with it the lock."""
        connection = self._database.connect(f"lockstep {self.operator_id} sends {epoch.id}"[:63])
        try:
            with self._database.naming("looking for another sender"):
                cursor = connection.cursor()
                self._database.guard(cursor)
                cursor.execute(
                    "SET LOCAL idle_in_transaction_session_timeout = %s", (round(1000 * external.STANDSTILL),)
                )
                key = f"lockstep sends:{self.job_id}:{self.operator_id}:{epoch.id}"
                cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", (key,))
                alone = cursor.fetchone() == (True,)
            with external.heartbeat(lambda: cursor.execute("SELECT")) if alone else nullcontext():
                yield alone
        finally:
            close_quietly(connection)

    def _read_record(self, doing: str, job: str, operator: str, epoch: int) -> tuple[int, str, bool] | None:
        """Read a record in a transaction of its own: (token, manifest, sent completely)."""
        with self._database.transaction(doing) as cursor:
            if not self._has(cursor, self._table):
                return None
            cursor.execute(
                sql.SQL("SELECT token, manifest, {} FROM {} s WHERE (job, operator, epoch) = (%s, %s, %s)").format(
                    self._whole(cursor), self._table
                ),
                (job, operator, epoch),
            )
            row = cursor.fetchone()
        return (int(row[0]), str(row[1]), bool(row[2])) if row else None
