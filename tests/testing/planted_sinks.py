"""Sinks with one bug each, as people write them: rows of one table of a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import psycopg2
import pyarrow as pa

from lockstep.sdk import (
    Batches,
    CheckpointCommitter,
    Guarantee,
    Marker,
    OpenSink,
    Session,
    Sink,
    SinkContext,
    SinkEpoch,
    SinkUnavailable,
    Vote,
    WriteAheadSink,
)
from lockstep.testing import OUTPUT, SCHEMA

SET_UP = """
CREATE TABLE IF NOT EXISTS rows
  (epoch bigint, id bigint, name text, ratio float8, ok boolean, day date, at timestamptz);
CREATE TABLE IF NOT EXISTS marker
  (sink text, epoch bigint, token bigint, manifest text, PRIMARY KEY (sink, epoch, token));
CREATE TABLE IF NOT EXISTS sent_whole (sink text, epoch bigint);
CREATE TABLE IF NOT EXISTS target (id text);
INSERT INTO target SELECT gen_random_uuid() WHERE NOT EXISTS (SELECT FROM target);
"""
ONE_A_KEY = "CREATE UNIQUE INDEX IF NOT EXISTS one ON marker (sink, epoch)"


@dataclass
class Transaction:
    connection: Any
    claimed: bool = True


class MarkerCommitter(CheckpointCommitter):
    """As it should be: the marker is claimed first, in the transaction of the rows."""

    guarantee = Guarantee.EXACTLY_ONCE
    durable = True

    def __init__(self, connect: Any) -> None:
        self.connect = connect

    def open(self) -> None: ...

    def close(self) -> None: ...

    def create_resource(self) -> None:
        with closing(self.connect()) as connection, connection, connection.cursor() as cursor:
            cursor.execute("SELECT to_regclass('target')")
            if cursor.fetchone() != (None,):
                return
            cursor.execute("SELECT pg_advisory_xact_lock(1)")
            cursor.execute(SET_UP if type(self) is KeyWithTheAttempt else SET_UP + ONE_A_KEY)

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[Session]:
        with closing(self.connect()) as connection:
            try:
                with connection:
                    cursor = connection.cursor()
                    cursor.execute("SET LOCAL lock_timeout = '100ms'")
                    cursor.execute("SET LOCAL synchronous_commit = %s", ("on" if self.durable else "off",))
                    yield Transaction(connection, self.claim(cursor, epoch))
            except psycopg2.OperationalError as error:
                raise SinkUnavailable(str(error)) from error

    def claim(self, cursor: Any, epoch: SinkEpoch) -> bool:
        row = (self.operator_id, epoch.id, epoch.token, epoch.manifest_hash)
        cursor.execute("INSERT INTO marker VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING", row)
        return bool(cursor.rowcount)

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        with closing(self.connect()) as connection, connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT epoch, token, manifest FROM marker WHERE (sink, epoch) = (%s, %s)", (self.operator_id, epoch)
            )
            found = cursor.fetchone()
        return Marker(*found) if found else None

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        """The marker stands in this transaction already."""


class NotDurable(MarkerCommitter):
    durable = False


class UncheckedInsert(MarkerCommitter):
    """Inserts the marker, and doesn't ask whether it did."""

    def claim(self, cursor: Any, epoch: SinkEpoch) -> bool:
        super().claim(cursor, epoch)
        return True


class KeyWithTheAttempt(MarkerCommitter):
    """Two attempts have a marker each: `create_resource` makes no key without the token."""


class LooksUpOnce(MarkerCommitter):
    """Looks whether the marker is there, then writes both; between the two anybody may do the same."""

    def claim(self, cursor: Any, epoch: SinkEpoch) -> bool:
        found = self.is_checkpoint_committed(epoch.id)
        if found is None:
            super().claim(cursor, epoch)
        return found is None


class RecordedAfterwards(MarkerCommitter):
    """Commits the rows, then the record: Flink's way, at least once."""

    guarantee = Guarantee.AT_LEAST_ONCE

    def claim(self, cursor: Any, epoch: SinkEpoch) -> bool:
        return True

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        assert isinstance(session, Transaction)
        session.connection.commit()
        with session.connection.cursor() as cursor:
            super().claim(cursor, epoch)


class NotIdempotent(RecordedAfterwards):
    """Remembers nothing."""

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None: ...


class RecordedBefore(MarkerCommitter):
    """At most once, as it should be: commits the marker, then the rows with what says that they are all there."""

    guarantee = Guarantee.AT_MOST_ONCE

    def claim(self, cursor: Any, epoch: SinkEpoch) -> bool:
        claimed = super().claim(cursor, epoch)
        cursor.connection.commit()
        return claimed

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        marker = super().is_checkpoint_committed(epoch)
        return replace(marker, whole=self.is_whole(epoch)) if marker else None

    def is_whole(self, epoch: int) -> bool:
        with closing(self.connect()) as connection, connection, connection.cursor() as cursor:
            cursor.execute("SELECT FROM sent_whole WHERE (sink, epoch) = (%s, %s)", (self.operator_id, epoch))
            return cursor.fetchone() is not None

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        assert isinstance(session, Transaction)
        with session.connection.cursor() as cursor:
            cursor.execute("INSERT INTO sent_whole VALUES (%s, %s)", (self.operator_id, epoch.id))


class LosesInSilence(RecordedBefore):
    """Takes whatever has begun for sent."""

    def is_whole(self, epoch: int) -> bool:
        return True


@dataclass(frozen=True)
class TableSink(Sink):
    """One output into table `rows`, with a committer that may have a bug."""

    name: str
    committer: str
    output: str = OUTPUT

    def open(self, context: SinkContext) -> OpenSink:
        return OpenTableSink(self, context, globals()[self.committer])


class OpenTableSink(WriteAheadSink):
    committer: MarkerCommitter

    def __init__(self, sink: Sink, context: SinkContext, committer: type[MarkerCommitter]) -> None:
        super().__init__(sink)
        self.dsn = context.connections["target"]
        self.committer = committer(self.connect)
        self.committer.set_job_id(f"{context.deployment}:{context.pipeline}")
        self.committer.set_operator_id(self.name)

    def connect(self) -> Any:
        return psycopg2.connect(self.dsn)

    def preflight(self, schemas: Any) -> None:
        self.committer.create_resource()

    def target_id(self) -> str:
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT id FROM target")
            return str(cursor.fetchone()[0])

    def validate(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        return Vote(epoch.token, None, self.target_id(), {batches.output: batches.rows for batches in wal})

    def send_values(self, batches: Batches, epoch: SinkEpoch, timestamp: datetime, session: Session) -> bool:
        assert isinstance(session, Transaction)
        cursor = session.connection.cursor()
        for batch in batches:
            rows = [(epoch.id, *row.values()) for row in batch.to_pylist()]
            cursor.executemany("INSERT INTO rows VALUES (%s, %s, %s, %s, %s, %s, %s)", rows)
        return True

    def read(self, epoch: int, output: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT id, name, ratio, ok, day, at FROM rows WHERE epoch = %s", (epoch,))
            columns = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(SCHEMA)
        yield pa.RecordBatch.from_arrays(
            [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
        )
