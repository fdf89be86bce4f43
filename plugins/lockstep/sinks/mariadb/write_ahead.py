"""MariaDbSink by write-ahead: the rows go in after the decision, in one transaction with the marker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lockstep.crash import CrashPoint, reach
from lockstep.errors import PublishBlocked, SinkRejected
from lockstep.sinks.base import Batches, Guarantee, SinkEpoch
from lockstep.sinks.mariadb.claim import Claim
from lockstep.sinks.mariadb.sink import MariaDbSink
from lockstep.sinks.tables.claim import TableClaim
from lockstep.sinks.tables.write_ahead import TableWriteAheadSink
from lockstep.sinks.write_ahead import Session


class MariaDbWriteAheadSink(TableWriteAheadSink, MariaDbSink):
    """One transaction an epoch for all tables of the sink."""

    def _trying(self, epoch: SinkEpoch) -> Claim:
        """With the marker, which is rolled back with the rows: a zombie is found by it."""
        claim = self._claims.before_decision(epoch)
        if not claim.claimed:
            raise self._refuse_marker(epoch)
        return claim

    def _check_tried(self, claim: Claim) -> None:
        """Where the record is elsewhere the marker is taken back after the decision: whether it may be is seen now."""
        if self.guarantee is not Guarantee.EXACTLY_ONCE:
            with self._database.naming(f"trying to take back the marker of epoch {claim.epoch.id}"):
                self._own.delete_marker(claim.cursor, claim.epoch)

    def _try_encoding(self, claim: Claim, batches: Batches) -> int:
        return self._way(claim.epoch, batches.output, SinkRejected).try_encoding(
            claim.connection, claim.cursor, batches
        )

    @contextmanager
    def _sending(self, epoch: SinkEpoch) -> Iterator[Claim]:
        """For a record elsewhere: the marker keeps a second publisher out, and isn't left behind."""
        claim = self._claims.after_decision(epoch)
        try:
            yield claim
        finally:
            claim.close()

    def _commit_sent(self, session: Session) -> None:
        assert isinstance(session, TableClaim)
        reach(CrashPoint.PUBLISH_BEFORE_SINK_COMMIT)
        with self._database.naming(f"publishing epoch {session.epoch.id}", PublishBlocked):
            self._own.delete_marker(session.cursor, session.epoch)
        self._end_claim(session)
