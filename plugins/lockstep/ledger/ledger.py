"""The ledger: every change of an epoch, guarded and ordered. This package is the only one that runs its SQL.

Each method is one transaction that first locks the epoch's row, then updates it with a guard on state and attempt. No
row back means one of three things: it is there already (success), `Fenced`, or `IllegalTransition`. Every method can be
repeated; after a lost connection it is. `Beginning` opens epochs and attempts, `Operating` is for people, `Looking`
only reads; here is what a running attempt does, from its first token to cleanup.
"""

from __future__ import annotations

from datetime import timedelta

from psycopg2.extras import Json as Jsonb

from lockstep.epoch import Attempt, Epoch, Json, Vote
from lockstep.errors import AlreadyDecided, Fenced, UnknownEpoch
from lockstep.ledger import guards, steps
from lockstep.ledger.beginning import Beginning
from lockstep.ledger.operating import Operating
from lockstep.ledger.rows import to_epoch
from lockstep.ledger.transaction import Row, Transaction
from lockstep.states import DECIDED, SHOWN, UNDECIDED, EpochState, Role


class Ledger(Beginning, Operating):
    """Raises `LedgerUnavailable` when it can't be reached and `LedgerRefused` when it can't be trusted."""

    # --- while tasks run ---

    def take_token(self, attempt: Attempt, role: Role, sink: str | None = None) -> int:
        """A fresh execution token. For `prepare` it also outdates the sink's earlier executions, and their vote.

        Raises `Fenced` when `stage` or `prepare` starts under a stale attempt, `AlreadyDecided` when it comes too late:
        a token above the decided one would let it roll the decided branch back.
        """

        def work(tx: Transaction) -> int:
            row = guards.lock_epoch(tx, attempt.pipeline, attempt.epoch)
            if role in (Role.STAGE, Role.PREPARE):
                if row["state"] in DECIDED:
                    raise AlreadyDecided(f"{guards.name(row)} is {row['state']}: {role} has nothing left to do")
                guards.require_current(tx, row, attempt)
            token = steps.take_token(tx, attempt.pipeline, attempt.epoch, role, sink, attempt.token)
            if role is Role.PREPARE:
                tx.do("start_execution", **guards.key(attempt), sink=sink, token=token)
            return token

        return self._connection.run(role, work)

    def take_turn(self, attempt: Attempt, sink: str, token: int) -> None:
        """Let `sink` be validated while no other epoch of the pipeline can make its rows collide: none has the turn,
        and none has voted there without being published. The turn ends with the vote's publication, or with the
        attempt. Raises `KeysHeld`, and `Fenced` for an execution that isn't the youngest."""

        def work(tx: Transaction) -> None:
            guards.lock_pipeline(tx, attempt.pipeline)  # two epochs ask one after the other
            row = guards.lock_current(tx, attempt)
            guards.require_turn(tx, row, sink)
            if not tx.do("take_turn", **guards.key(attempt), sink=sink, token=token):
                raise Fenced(
                    f"{guards.name(row)}: execution {token} of prepare for {sink} was superseded by a younger one"
                )

        self._connection.run(Role.PREPARE, work)

    def renew_lease(self, attempt: Attempt, role: Role, meanwhile: timedelta = timedelta()) -> bool:
        """False when the attempt is no longer the current one. `meanwhile`: nobody will be at it for so long."""

        def work(tx: Transaction) -> bool:
            row = guards.lock_epoch(tx, attempt.pipeline, attempt.epoch)
            if row["attempt"] != attempt.token or row["state"] not in UNDECIDED:
                return False
            return (
                tx.do("renew_lease", **guards.key(attempt), attempt=attempt.token, lease=steps.LEASE + meanwhile) == 1
            )

        return self._connection.run(role, work)

    # --- stage, prepare, commit ---

    def seal_epoch(
        self,
        attempt: Attempt,
        wal: str,
        manifest_hash: str,
        summary: Json,
        code_version: str,
        based_on: str | None = None,
    ) -> Epoch:
        """planned → staged, once. The epoch as another execution left it when that one has sealed already.

        `based_on`: with state, the manifest hash of the epoch before, "" where there is none.
        """

        def work(tx: Transaction) -> Epoch:
            row = guards.lock_current(tx, attempt)
            if row["wal"] is not None:
                return to_epoch(row)
            guards.require_state(row, EpochState.PLANNED, "seal")
            sealed = tx.one(
                "seal_epoch",
                **guards.key(attempt),
                attempt=attempt.token,
                wal=wal,
                manifest_hash=manifest_hash,
                summary=Jsonb(summary),
                code_version=code_version,
                based_on=based_on,
            )
            return to_epoch(guards.required(sealed))

        return self._connection.run(Role.STAGE, work)

    def record_vote(self, attempt: Attempt, sink: str, vote: Vote) -> None:
        """pending or prepared → prepared. Raises `Fenced` when a younger attempt or execution has taken over, or the
        decision has been taken with another vote."""

        def work(tx: Transaction) -> None:
            row = guards.lock_current(tx, attempt)
            if self._stands(tx, row, sink, vote):
                return
            guards.require_state(row, EpochState.STAGED, f"take the vote of {sink} for")
            done = tx.do(
                "record_vote",
                **guards.key(attempt),
                sink=sink,
                attempt=attempt.token,
                token=vote.token,
                handle=vote.handle,
                target_id=vote.target_id,
                rows=Jsonb(dict(vote.rows)),
            )
            if not done:
                raise Fenced(
                    f"{guards.name(row)}: execution {vote.token} of prepare for {sink} was superseded by a younger "
                    "one; its vote doesn't count"
                )

        self._connection.run(Role.PREPARE, work)

    def commit_epoch(self, attempt: Attempt) -> Epoch:
        """The decision: staged → committed when this attempt's votes are exactly the plan's sinks.

        Raises `NotPrepared`, `Fenced`, `OutOfOrder` when a cursor pipeline's earlier epoch isn't decided, and
        `LedgerConflict` when the epoch's state wasn't made from that epoch's.
        """

        def work(tx: Transaction) -> Epoch:
            row = guards.lock_epoch(tx, attempt.pipeline, attempt.epoch)
            if row["state"] in DECIDED:
                return to_epoch(row)
            guards.require_current(tx, row, attempt)
            guards.require_votes(tx, row)
            if row["span"] is None:
                guards.require_predecessor_decided(tx, attempt.pipeline, attempt.epoch)
                guards.require_state_goes_on(tx, row)
            return to_epoch(guards.required(tx.one("commit_epoch", **guards.key(attempt), attempt=attempt.token)))

        return self._connection.run(Role.COMMIT, work)

    # --- publish, cleanup ---

    def renew_publisher(self, epoch: Epoch, sink: str, role: Role) -> bool:
        """Tell `lockstep status` that somebody is at publishing the decided epoch; nothing else rests on it.

        False when there is nothing to publish any more.
        """

        def work(tx: Transaction) -> bool:
            row = guards.lock_epoch(tx, epoch.pipeline, epoch.id)
            if row["state"] != EpochState.COMMITTED:
                return False
            return tx.do("renew_publisher", **guards.key(epoch), sink=sink, lease=steps.LEASE) == 1

        return self._connection.run(role, work)

    def record_publication(
        self, epoch: Epoch, sink: str, token: int, publication: str, role: Role, reason: str = ""
    ) -> Epoch:
        """prepared → published for the decided vote; with the last sink committed → published."""

        def work(tx: Transaction) -> Epoch:
            row = guards.lock_epoch(tx, epoch.pipeline, epoch.id)
            if row["state"] in SHOWN:
                return to_epoch(row)
            guards.require_state(row, EpochState.COMMITTED, f"record {sink}'s publication of")
            key = guards.key(epoch)
            if not tx.do("record_publication", **key, sink=sink, token=token, publication=publication):
                guards.require_published(tx, row, sink, token)
            published = tx.one("publish_epoch", **key)
            return to_epoch(published or row)

        return self._connection.run(role, work, reason)

    def record_cleanup(self, epoch: Epoch, role: Role) -> Epoch:
        """published → cleaned, after the WAL was deleted."""

        def work(tx: Transaction) -> Epoch:
            row = guards.lock_epoch(tx, epoch.pipeline, epoch.id)
            if row["state"] == EpochState.CLEANED:
                return to_epoch(row)
            guards.require_state(row, EpochState.PUBLISHED, "clean up")
            return to_epoch(guards.required(tx.one("clean_epoch", **guards.key(epoch))))

        return self._connection.run(role, work)

    @staticmethod
    def _stands(tx: Transaction, row: Row, sink: str, vote: Vote) -> bool:
        """This very vote is in the ledger already. Raises `Fenced` when another one was decided on."""
        found = guards.participants(tx, row["pipeline"], row["id"]).get(sink)
        if found is None:
            raise UnknownEpoch(f"{guards.name(row)} was planned without sink {sink}")
        outdated = row["state"] in UNDECIDED and vote.token < (found.execution or 0)
        if found.vote == vote and found.attempt == row["attempt"] and not outdated:
            return True
        if row["state"] in DECIDED:
            decided = found.vote.token if found.vote else None
            raise Fenced(
                f"{guards.name(row)} was decided with another vote for {sink}, of execution {decided}; this one, of "
                f"execution {vote.token}, doesn't count"
            )
        return False
