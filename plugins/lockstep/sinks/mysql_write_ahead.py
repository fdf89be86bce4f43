"""MySqlSink by write-ahead: the rows go in after the decision, in one transaction with the marker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime

from lockstep.crash import CrashPoint, reach
from lockstep.epoch import Vote
from lockstep.errors import PreflightRefused, PublishBlocked, SinkRejected
from lockstep.sinks.base import Batches, Guarantee, Marker, SinkContext, SinkEpoch
from lockstep.sinks.mysql import MySqlSink
from lockstep.sinks.mysql_claim import Claim
from lockstep.sinks.mysql_load import Load
from lockstep.sinks.write_ahead import CheckpointCommitter, Session, WriteAheadSink


class MySqlMarkerCommitter(CheckpointCommitter):
    """Remembers epochs by the marker, in the transaction that sends their rows: exactly once."""

    guarantee = Guarantee.EXACTLY_ONCE

    def __init__(self, sink: MySqlWriteAheadSink) -> None:
        self._sink = sink

    def create_resource(self) -> None:
        with self._sink._database.transaction("creating Lockstep's tables", rejected=PreflightRefused) as cursor:
            self._sink._own.create(cursor)

    def open(self) -> None:
        """The sink's connection is this one's too."""

    def close(self) -> None:
        """See `open`."""

    @contextmanager
    def session(self, epoch: SinkEpoch) -> Iterator[Session]:
        with self._sink._publishing(epoch) as claim:
            yield claim

    def is_checkpoint_committed(self, epoch: int) -> Marker | None:
        with self._sink._database.transaction("looking for the marker") as cursor:
            return self._sink._own.find_marker(cursor, epoch)

    def commit_checkpoint(self, epoch: SinkEpoch, session: Session) -> None:
        assert isinstance(session, Claim)
        with self._sink._database.naming(f"publishing epoch {epoch.id}", PublishBlocked):
            self._sink._own.record_rows(session.cursor, epoch, session.rows)


class MySqlWriteAheadSink(MySqlSink, WriteAheadSink):
    """One transaction an epoch for all tables of the sink."""

    protocol = "write_ahead"

    def open(self, context: SinkContext) -> None:
        super().open(context)
        self.committer = MySqlMarkerCommitter(self)
        self.committer.set_job_id(f"{context.deployment}:{context.pipeline}")
        self.committer.set_operator_id(self.name)
        self.committer.open()

    def validate(self, epoch: SinkEpoch, wal: Iterable[Batches]) -> Vote:
        """ "load" writes and rolls back as many rows as the epoch has, marker included: a zombie is found by it."""
        claim = self._claims.before_decision(epoch)
        try:
            if not claim.claimed:
                raise self._refuse_marker(epoch)
            for batches in wal:
                self._validate_output(claim, batches)
        finally:
            claim.close()
        return Vote(epoch.token, None, claim.target_id, dict(claim.rows))

    def _validate_output(self, claim: Claim, batches: Batches) -> None:
        if self._validate == "load":
            self._load(claim, batches, SinkRejected)
            reach(CrashPoint.PREPARE_AFTER_WRITE)
            return
        relation = self._relations[batches.output]
        load = Load(self._database, batches.output, relation, claim.epoch.id, self._epoch_column)
        claim.rows[batches.output] = load.try_encoding(claim.cursor, batches)

    def send_values(self, batches: Batches, epoch: SinkEpoch, timestamp: datetime, session: Session) -> bool:
        assert isinstance(session, Claim)
        self._load(session, batches, PublishBlocked)
        reach(CrashPoint.PUBLISH_AFTER_WRITE)
        return True
