"""PostgresSink by two-phase commit: the rows wait in a prepared transaction for the decision."""

from __future__ import annotations

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor

from lockstep.disclosure import cause
from lockstep.errors import PreflightRefused, SinkRejected, TargetFull
from lockstep.postgres.connection import is_lost
from lockstep.postgres.refusals import quotes_row
from lockstep.sinks.base import SinkEpoch, Txn
from lockstep.sinks.postgres.claim import Claim
from lockstep.sinks.postgres.sink import PostgresSink
from lockstep.sinks.tables.two_phase import TableTwoPhaseSink


class PostgresTwoPhaseSink(TableTwoPhaseSink, PostgresSink):
    """One branch an epoch for all tables of the sink; needs max_prepared_transactions > 0."""

    listed = "in pg_prepared_xacts"

    def _preflight_settings(self, cursor: Cursor) -> None:
        cursor.execute(
            "SELECT current_setting('max_prepared_transactions')::int, "
            "ARRAY(SELECT gid FROM pg_prepared_xacts WHERE database = current_database()), "
            "(SELECT count(*) FROM pg_prepared_xacts)"
        )
        limit, here, used = cursor.fetchone() or (0, [], 0)
        own = [gid for gid in here if self._branches.owner.parse(gid)]  # those go before the next one comes
        if limit == 0:
            raise PreflightRefused(
                f"sink {self.name}: max_prepared_transactions = 0: a two_phase sink needs one for each epoch under "
                "way; raise it and restart the server, or say protocol='write_ahead'"
            )
        if used - len(own) >= limit:
            raise TargetFull(
                f"sink {self.name}: max_prepared_transactions = {limit}, {used} in use, all by others (see "
                f"pg_prepared_xacts): try again when one is finished; if they are no leftovers, raise it to at least "
                f"{used + 1} and restart the server, or say protocol='write_ahead'"
            )

    def _begin(self, epoch: SinkEpoch) -> tuple[str, Claim]:
        return self._branches.owner.handle(epoch), self._claims.before_decision(epoch)

    def _prepare(self, claim: Claim, txn: Txn) -> None:
        try:
            claim.cursor.execute(sql.SQL("PREPARE TRANSACTION {}").format(sql.Literal(txn.handle)))
        except psycopg2.Error as error:
            if is_lost(error):
                return  # the look into pg_prepared_xacts tells
            named = self._database.named(error, f"PREPARE TRANSACTION of epoch {txn.epoch}")
            raise named from cause(error, quotes_row(error))
        tag = claim.cursor.statusmessage
        if tag != "PREPARE TRANSACTION":
            raise SinkRejected(
                f"sink {self.name}: PREPARE TRANSACTION of epoch {txn.epoch} was answered with {tag}: a statement had "
                "failed before, and the server rolled everything back"
            )
