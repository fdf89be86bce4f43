"""PostgresSink by write-ahead: the rows go in after the decision, in one transaction with the marker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lockstep.errors import SinkRejected
from lockstep.sinks.base import Batches, Guarantee, SinkEpoch
from lockstep.sinks.postgres.claim import Claim
from lockstep.sinks.postgres.sink import PostgresSink
from lockstep.sinks.tables.claim import TableClaim
from lockstep.sinks.tables.write_ahead import TableWriteAheadSink
from lockstep.sinks.write_ahead import Session


class PostgresWriteAheadSink(TableWriteAheadSink, PostgresSink):
    """One transaction an epoch for all tables of the sink; needs no prepared transactions.

    validate="load" leaves dead rows behind for vacuum, as many as the epoch has.
    """

    def _trying(self, epoch: SinkEpoch) -> Claim:
        return self._claims.open(epoch)

    def _check_tried(self, claim: Claim) -> None:
        with self._database.naming(f"checking the constraints of epoch {claim.epoch.id}"):
            claim.cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")

    def _try_encoding(self, claim: Claim, batches: Batches) -> int:
        return self._way(claim.epoch, batches.output, SinkRejected).try_encoding(claim.cursor, batches)

    @contextmanager
    def _sending(self, epoch: SinkEpoch) -> Iterator[Claim]:
        """For a record elsewhere: publishers go one by one, without a marker; with none nobody waits for the disk."""
        claim = self._claims.without_marker(epoch)
        try:
            if claim.claimed and self.guarantee is Guarantee.NONE:
                with self._database.naming("opening a transaction"):
                    claim.cursor.execute("SET LOCAL synchronous_commit = off")
            yield claim
        finally:
            claim.close()

    def _commit_sent(self, session: Session) -> None:
        assert isinstance(session, TableClaim)
        self._commit_claim(session)
