"""Committers that live outside of the sink they remember for: a folder, or a table of any PostgreSQL database.

The record follows the rows and isn't in their transaction, so a crash between the two sends the epoch again: at least
once (Flink: GenericWriteAheadSink with a CassandraCommitter). A sink that has transactions keeps the marker in its own.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from psycopg2 import sql

from lockstep.epoch import require_name
from lockstep.errors import LedgerConflict, SinkUnavailable, TargetChanged
from lockstep.home import absolute
from lockstep.sinks.base import Guarantee, Marker, SinkEpoch
from lockstep.sinks.durable_file import create_whole, sync_folder
from lockstep.sinks.postgres_connection import Database
from lockstep.sinks.write_ahead import CheckpointCommitter, Session

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True)
class NoTransaction:
    """The session of a committer that can undo nothing."""

    claimed: bool = True


class FileCommitter(CheckpointCommitter):
    """A small file for each epoch that was sent: `<path>/<job>/<operator>/epoch=<id>.json`, created whole and once.

    `path`: a folder on a local or shared file system, the same for whoever may publish.
    """

    guarantee = Guarantee.AT_LEAST_ONCE

    def __init__(self, path: str) -> None:
        self._root = Path(absolute(path))

    def create_resource(self) -> None:
        """Raises `SinkUnavailable`."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for folder in (self._folder, self._folder.parent, self._root):
                sync_folder(folder)
        except OSError as error:
            raise SinkUnavailable(f"committer of {self.operator_id}: {error}") from error

    def resource_id(self) -> str:
        try:
            create_whole(self._root / "id", str(uuid.uuid4()).encode(), self._root)
            return (self._root / "id").read_text()
        except OSError as error:
            raise SinkUnavailable(f"committer of {self.operator_id}: {error}") from error

    def open(self) -> None:
        """Nothing is kept open."""

    def close(self) -> None:
        """See `open`."""

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[Session]:
        yield NoTransaction()

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        try:
            found = json.loads(self._file(epoch).read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise SinkUnavailable(f"committer of {self.operator_id}: {self._file(epoch)}: {error}") from error
        return Marker(epoch, int(found["token"]), str(found["manifest"]))

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        record = json.dumps({"token": epoch.token, "manifest": epoch.manifest_hash})
        try:
            if not create_whole(self._file(epoch.id), record.encode(), self._folder):
                self._require_same(epoch)
        except OSError as error:
            raise SinkUnavailable(f"committer of {self.operator_id}: {error}") from error

    def _require_same(self, epoch: SinkEpoch) -> None:
        marker = self.is_checkpoint_committed(epoch.id)
        if marker is None or marker.manifest_hash != epoch.manifest_hash:
            raise LedgerConflict(f"committer of {self.operator_id}: {self._file(epoch.id)} records another manifest")

    @property
    def _folder(self) -> Path:
        return self._root / _UNSAFE.sub("_", self.job_id) / self.operator_id

    def _file(self, epoch: int) -> Path:
        return self._folder / f"epoch={epoch}.json"


class PostgresCommitter(CheckpointCommitter):
    """A row of `lockstep_sent` for each epoch that was sent, in any PostgreSQL database: the ledger's, for instance."""

    guarantee = Guarantee.AT_LEAST_ONCE

    def __init__(self, connection: str, dsn: str, schema: str = "public", lock_timeout: float = 10.0) -> None:
        self._table = sql.Identifier(require_name("schema", schema), "lockstep_sent")
        self._database = Database(f"committer in {connection}", connection, dsn, lock_timeout)

    def create_resource(self) -> None:
        with self._database.transaction("creating lockstep_sent") as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('lockstep set-up', 0))")
            cursor.execute(
                sql.SQL(
                    "CREATE TABLE IF NOT EXISTS {} (job text, operator text, epoch bigint, token bigint NOT NULL,"
                    " manifest text NOT NULL, sent_at timestamptz NOT NULL DEFAULT now(),"
                    " PRIMARY KEY (job, operator, epoch))"
                ).format(self._table)
            )
            cursor.execute(  # epoch 0 is nobody's: its row names the table
                sql.SQL(
                    "INSERT INTO {} (job, operator, epoch, token, manifest) VALUES ('', '', 0, 0, gen_random_uuid())"
                    " ON CONFLICT DO NOTHING"
                ).format(self._table)
            )

    def resource_id(self) -> str:
        with self._database.transaction("reading the committer's id") as cursor:
            cursor.execute(
                sql.SQL("SELECT manifest FROM {} WHERE (job, operator, epoch) = ('', '', 0)").format(self._table)
            )
            found = cursor.fetchone()
        if found is None:
            raise TargetChanged(f"committer of {self.operator_id}: lockstep_sent has lost the row that names it")
        return str(found[0])

    def open(self) -> None:
        """The first statement connects."""

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[Session]:
        yield NoTransaction()

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        with self._database.transaction("looking for the record") as cursor:
            cursor.execute(
                sql.SQL("SELECT token, manifest FROM {} WHERE (job, operator, epoch) = (%s, %s, %s)").format(
                    self._table
                ),
                (self.job_id, self.operator_id, epoch),
            )
            found = cursor.fetchone()
        return Marker(epoch, int(found[0]), str(found[1])) if found else None

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        record = (self.job_id, self.operator_id, epoch.id, epoch.token, epoch.manifest_hash)
        with self._database.transaction(f"recording epoch {epoch.id}") as cursor:
            cursor.execute(
                sql.SQL(
                    "INSERT INTO {} (job, operator, epoch, token, manifest) VALUES (%s, %s, %s, %s, %s)"
                    " ON CONFLICT DO NOTHING"
                ).format(self._table),
                record,
            )
        marker = self.is_checkpoint_committed(epoch.id)
        if marker is None or marker.manifest_hash != epoch.manifest_hash:
            raise LedgerConflict(f"committer of {self.operator_id}: epoch {epoch.id} is recorded with another manifest")
