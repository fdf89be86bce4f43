"""The ledger: guarded and ordered changes of epochs. Only this package runs its SQL.

Each method is one transaction that locks the epoch's row and updates it with a guard on state and attempt. If no row is
updated, the change was made before (success), or the method raises `Fenced` or `IllegalTransition`. Every method is
idempotent and retried after a lost connection. Reads are in `reader`, preconditions in `_guards`, shared steps in
`_steps`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from psycopg2.extras import Json as Jsonb

import lockstep.ledger._guards as guards
import lockstep.ledger._steps as steps
import lockstep.ledger.rebuilding as rebuilding
from lockstep.definition.wal_retention import RetainedWal, WalRetention
from lockstep.epoch import (
    Attempt,
    AuditResult,
    Claim,
    Epoch,
    Generation,
    Interval,
    Json,
    KeyedBy,
    Outcome,
    Plan,
    Restaged,
    RunKey,
    Verdict,
    Vote,
)
from lockstep.errors import (
    AlreadyDecided,
    EpochVoid,
    Fenced,
    IllegalTransition,
    LockstepError,
    NotPrepared,
    RestageRefused,
)
from lockstep.ledger._connection import Transaction
from lockstep.ledger._rows import require_row, to_epoch, to_retained_wal, to_verdict
from lockstep.ledger.reader import LedgerReader
from lockstep.ledger.rebuilding import RebuiltEpoch
from lockstep.states import DECIDED, FINISHED, SHOWN, UNDECIDED, EpochState, ParticipantState, Role

_NONE: Mapping[str, Json] = MappingProxyType({})
_COUNT_EVERY = 256  #: epochs between updates of finished_rollup


class Ledger(LedgerReader):
    """Writes to the ledger. Raises `LedgerUnavailable` if it can't be reached, `LedgerRefused` if it can't be
    trusted."""

    def ensure_pipeline(
        self,
        pipeline: str,
        identity: KeyedBy,
        recovery_grace: timedelta | None = None,
        settings: Mapping[str, Json] = _NONE,
        retention: WalRetention | None = None,
    ) -> None:
        """Register the pipeline with its `recovery_grace`, WAL `retention` and the sinks' operational `settings`, which
        recovery reads in place of a definition.

        Raises `InvalidPipeline` if the pipeline has the other kind of epochs.
        """
        self._connection.run(
            Role.BEGIN, lambda tx: steps.register_pipeline(tx, pipeline, identity, recovery_grace, settings, retention)
        )

    def update_pipeline(
        self,
        pipeline: str,
        identity: KeyedBy,
        recovery_grace: timedelta | None = None,
        settings: Mapping[str, Json] = _NONE,
        retention: WalRetention | None = None,
    ) -> None:
        """Update a registered pipeline as `ensure_pipeline`; a new one is registered with its first epoch."""

        def work(tx: Transaction) -> None:
            if tx.one("find_pipeline", pipeline=pipeline):
                steps.update_pipeline(tx, pipeline, identity, recovery_grace, settings, retention)

        self._connection.run(Role.BEGIN, work)

    # --- begin, abort ---

    def plan_epoch(
        self,
        pipeline: str,
        plan: Plan,
        claims: Mapping[str, Sequence[Claim]],
        run: RunKey,
        *,
        interval: Interval | None,
        after: int | None,
        recovery_grace: timedelta | None = None,
        settings: Mapping[str, Json] = _NONE,
        retention: WalRetention | None = None,
    ) -> Epoch | None:
        """Insert an epoch with participants, claims and run, and register the pipeline if new. `after`: predecessor of
        a cursor epoch.

        Returns None if another run has planned the interval, or the next cursor epoch, meanwhile. Raises
        `IntervalOverlap`, `SourceClaimed`, and `OutOfOrder` if epoch `after` was replanned meanwhile.
        """
        own_tokens: set[int] = set()  # of attempts whose answer was lost: the epoch may exist
        identity = KeyedBy.INTERVAL if after is None else KeyedBy.CURSOR

        def work(tx: Transaction) -> Epoch | None:
            steps.register_pipeline(tx, pipeline, identity, recovery_grace, settings, retention)
            pipeline_row = guards.lock_pipeline(tx, pipeline)
            guards.require_remembered(pipeline_row)
            rival = steps.find_rival(tx, pipeline, interval, after)
            if rival is not None:
                return to_epoch(rival) if rival["attempt"] in own_tokens else None
            steps.require_join(tx, pipeline, plan, after)
            row = steps.insert_epoch(tx, pipeline, plan, claims, run, interval)
            own_tokens.add(row["attempt"])
            return to_epoch(row)

        return self._connection.run(Role.BEGIN, work)

    def plan_generation(
        self,
        current: Epoch,
        plan: Plan,
        claims: Mapping[str, Sequence[Claim]],
        run: RunKey,
        reason: str,
        *,
        restores: int | None = None,
        through: int | None = None,
    ) -> Epoch | None:
        """Insert the generation that will replace `current`, or the whole sequence from `current` to epoch `through`.
        `restores`: the earlier generation whose rows are restored; its WAL is retained from now on.

        Returns None if another run has planned it, or a next epoch, meanwhile. Raises `SourceClaimed`, `WalGone`, and
        `IllegalTransition` unless `current` is cleaned.
        """
        number = current.generation.number + 1 if current.generation else 1
        generation = Generation(current.root, number, current.id, reason, restores, through)
        own_tokens: set[int] = set()

        def work(tx: Transaction) -> Epoch | None:
            guards.require_remembered(guards.lock_pipeline(tx, current.pipeline))
            before = guards.lock_epoch(tx, current.pipeline, current.id)
            key = {"pipeline": current.pipeline, "root": generation.root, "generation": generation.number}
            if rival := tx.one("find_generation", **key):
                return to_epoch(rival) if rival["attempt"] in own_tokens else None
            guards.require_state(before, EpochState.CLEANED, "replace")
            if restores is not None:
                guards.require_kept(tx, current.pipeline, restores)  # expiry requires the pipeline's lock, too
            if through is not None and steps.last_in_sequence(tx, current) != through:
                return None
            row = steps.insert_epoch(tx, current.pipeline, plan, claims, run, current.interval, generation)
            own_tokens.add(row["attempt"])
            return to_epoch(row)

        history_reason = reason if restores is None else f"restores the rows of epoch {restores}: {reason}"
        return self._connection.run(Role.BEGIN, work, history_reason)

    def take_over(self, pipeline: str, epoch: int, run: RunKey) -> Epoch:
        """Open a new attempt of an undecided epoch for `run`, or attach `run` to a decided epoch.

        Raises `EpochBusy` while another run, or the same command issued earlier, has a lease; `EpochVoid` for a void
        epoch.
        """
        own_tokens: set[int] = set()

        def work(tx: Transaction) -> Epoch:
            row = guards.lock_epoch(tx, pipeline, epoch)
            if row["state"] == EpochState.VOID:
                raise EpochVoid(f"{guards.epoch_name(row)} is void: {row['reason']}")
            if row["state"] in UNDECIDED:
                if row["attempt"] in own_tokens:
                    return to_epoch(row)
                guards.require_lease(tx, row, run)
                row = steps.open_attempt(tx, row, Role.BEGIN, run=run)
                own_tokens.add(row["attempt"])
                return to_epoch(row)
            steps.save_run(tx, run, Attempt(pipeline, epoch, row["attempt"]))
            return to_epoch(row)

        return self._connection.run(Role.BEGIN, work)

    def raise_attempt(
        self, pipeline: str, epoch: int, role: Role, *, only: int | None = None, reason: str = ""
    ) -> Epoch:
        """Void the current attempt and all votes; the new attempt has no owner. Decided epochs are returned unchanged.

        `only`: do nothing unless this is the current attempt.
        """

        def work(tx: Transaction) -> Epoch:
            row = guards.lock_epoch(tx, pipeline, epoch)
            if row["state"] in UNDECIDED and (only is None or row["attempt"] == only):
                row = steps.open_attempt(tx, row, role, reason=reason)
            return to_epoch(row)

        return self._connection.run(role, work, reason)

    def discard_seal(self, attempt: Attempt, reason: str) -> Epoch:
        """staged → planned: the sealed WAL failed its checks and is staged again. Only before the decision.

        Opens a new attempt of the same run, so that votes for the discarded WAL don't count.
        """
        own_tokens: set[int] = set()

        def work(tx: Transaction) -> Epoch:
            row = guards.lock_epoch(tx, attempt.pipeline, attempt.epoch)
            if row["attempt"] in own_tokens:
                return to_epoch(row)
            guards.require_current(tx, row, attempt)
            if row["state"] == EpochState.PLANNED:
                return to_epoch(row)
            guards.require_state(row, EpochState.STAGED, "discard the WAL of")
            owner = RunKey(row["owner_dag"], row["owner_run"]) if row["owner_run"] is not None else None
            row = steps.open_attempt(tx, row, Role.BEGIN, run=owner, reason=reason)
            own_tokens.add(row["attempt"])
            return to_epoch(require_row(tx.one("discard_seal", **guards.key(attempt), attempt=row["attempt"])))

        return self._connection.run(Role.BEGIN, work, reason)

    # --- while tasks run ---

    def take_token(self, attempt: Attempt, role: Role, sink: str | None = None) -> int:
        """A new execution token. For `prepare` it also supersedes the sink's earlier executions and their vote.

        Raises `Fenced` if `stage` or `prepare` starts in an outdated attempt, `AlreadyDecided` after the decision: a
        higher token would roll back the decided branch. Raises `NotAudited`, `EpochHeld`.
        """

        def work(tx: Transaction) -> int:
            row = guards.lock_epoch(tx, attempt.pipeline, attempt.epoch)
            if role in (Role.STAGE, Role.PREPARE):
                if row["state"] in DECIDED:
                    raise AlreadyDecided(
                        f"{guards.epoch_name(row)} is {row['state']}: there is nothing left for {role} to do"
                    )
                guards.require_current(tx, row, attempt)
            if (
                role is Role.PREPARE and row["state"] == EpochState.STAGED
            ):  # earlier, rows may be loaded before the seal
                guards.require_verdict(tx, row)
            token = steps.take_token(tx, attempt.pipeline, attempt.epoch, role, sink, attempt.token)
            if role is Role.PREPARE:
                tx.do("start_execution", **guards.key(attempt), sink=sink, token=token)
            return token

        return self._connection.run(role, work)

    def take_turn(self, attempt: Attempt, sink: str, token: int) -> None:
        """Reserve validation of unique keys for `sink`: no other epoch of the pipeline has the turn or an unpublished
        vote.

        The turn ends with the publication or the attempt. Raises `KeysHeld`; `Fenced` unless this is the youngest
        execution.
        """

        def work(tx: Transaction) -> None:
            guards.lock_pipeline(tx, attempt.pipeline)  # serializes requests of two epochs
            row = guards.lock_current(tx, attempt)
            guards.require_turn(tx, row, sink)
            if not tx.do("take_turn", **guards.key(attempt), sink=sink, token=token):
                raise Fenced(
                    f"{guards.epoch_name(row)}: execution {token} of prepare for {sink} was superseded by a younger one"
                )

        self._connection.run(Role.PREPARE, work)

    def renew_lease(self, attempt: Attempt, role: Role, meanwhile: timedelta = timedelta()) -> bool:
        """Renew the lease; False if the attempt is outdated. `meanwhile`: additional time without any task running."""

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
        """planned → staged, once. Returns the epoch unchanged if another execution has sealed it.

        `based_on`: with state, the manifest hash of the predecessor, "" if there is none.
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
            return to_epoch(require_row(sealed))

        return self._connection.run(Role.STAGE, work)

    def record_verdict(self, attempt: Attempt, manifest_hash: str, results: Sequence[AuditResult]) -> Verdict:
        """Record the audits' results for the WAL with this manifest, or return the verdict of an earlier execution.

        Raises `Fenced`; `NotPrepared` if another WAL is sealed, or none.
        """
        offended = any(result.offending and result.blocking for result in results)
        outcome = Outcome.HELD if offended else Outcome.PASSED
        verdict = Verdict(manifest_hash, outcome, tuple(results), self.actor, datetime.now(UTC))

        def work(tx: Transaction) -> Verdict:
            row = guards.lock_epoch(tx, attempt.pipeline, attempt.epoch)
            existing = guards.find_verdict(tx, row)
            if existing is not None and existing.manifest_hash == manifest_hash:
                return existing
            guards.require_current(tx, row, attempt)
            if row["state"] != EpochState.STAGED or row["manifest_hash"] != manifest_hash:
                raise NotPrepared(
                    f"{guards.epoch_name(row)} is {row['state']}, and the audited WAL isn't the one "
                    "that is sealed now: clear from begin"
                )
            inserted = tx.one(
                "insert_verdict",
                **guards.key(attempt),
                manifest_hash=manifest_hash,
                outcome=verdict.outcome.value,
                results=Jsonb([asdict(result) for result in results]),
                actor=tx.actor,
            )
            state = EpochState.STAGED.value
            tx.do("write_note", **guards.key(attempt), sink=None, state=state, attempt=attempt.token, token=None)
            return to_verdict(require_row(inserted))

        return self._connection.run(Role.AUDIT, work, str(verdict))

    def record_vote(self, attempt: Attempt, sink: str, vote: Vote) -> None:
        """pending or prepared → prepared. Raises `Fenced` for an outdated attempt or execution, or after a decision
        with another vote; `NotAudited`, `EpochHeld`."""

        def work(tx: Transaction) -> None:
            row = guards.lock_current(tx, attempt)
            if guards.has_vote(tx, row, sink, vote):
                return
            guards.require_state(row, EpochState.STAGED, f"take the vote of {sink} for")
            guards.require_verdict(tx, row)
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
                    f"{guards.epoch_name(row)}: execution {vote.token} of prepare for {sink} was superseded by a "
                    "younger one; its vote doesn't count"
                )

        self._connection.run(Role.PREPARE, work)

    def commit_epoch(self, attempt: Attempt) -> Epoch:
        """The decision: staged → committed, if this attempt's votes are exactly the plan's sinks.

        Raises `NotPrepared`, `NotAudited`, `EpochHeld`, `Fenced`; `OutOfOrder` if the predecessor of a cursor epoch is
        undecided; `LedgerConflict` if the epoch's state is based on another predecessor.
        """

        def work(tx: Transaction) -> Epoch:
            return _decide(tx, attempt)

        return self._connection.run(Role.COMMIT, work)

    def commit_epochs(self, pack: Sequence[Attempt]) -> list[Epoch | LockstepError]:
        """Decide several epochs of one pipeline in one transaction, in order. Returns for each the epoch or the error
        that prevented its decision, which does not affect the others. Guards as `commit_epoch`."""

        def work(tx: Transaction) -> list[Epoch | LockstepError]:
            outcomes: dict[Attempt, Epoch | LockstepError] = {}
            for attempt in sorted(pack, key=lambda attempt: attempt.epoch):  # all callers lock in the same order
                try:
                    outcomes[attempt] = _decide(tx, attempt)
                except LockstepError as refused:  # raised by a guard, before any change of this epoch
                    outcomes[attempt] = refused
            return [outcomes[attempt] for attempt in pack]

        return self._connection.run(Role.COMMIT, work)

    # --- publish, cleanup ---

    def renew_publisher(self, epoch: Epoch, sink: str, role: Role) -> bool:
        """Record for `lockstep status` that a task is publishing the decided epoch; informational. False if nothing is
        left to publish."""

        def work(tx: Transaction) -> bool:
            row = guards.lock_epoch(tx, epoch.pipeline, epoch.id)
            if row["state"] != EpochState.COMMITTED:
                return False
            return tx.do("renew_publisher_lease", **guards.key(epoch), sink=sink, lease=steps.LEASE) == 1

        return self._connection.run(role, work)

    def record_publication(
        self,
        epoch: Epoch,
        sink: str,
        token: int,
        publication: str,
        role: Role,
        reason: str = "",
        unproven: str | None = None,
    ) -> Epoch:
        """prepared → published for the decided vote, and committed → published with the last sink.

        `unproven`: why the publication doesn't prove that the sink contains the rows; None if it does.
        """

        def work(tx: Transaction) -> Epoch:
            row = guards.lock_epoch(tx, epoch.pipeline, epoch.id)
            if row["state"] in SHOWN:
                return to_epoch(row)
            guards.require_state(row, EpochState.COMMITTED, f"record {sink}'s publication of")
            key = guards.key(epoch)
            values = {"token": token, "publication": publication, "unproven": unproven}
            if not tx.do("record_publication", **key, sink=sink, **values):
                guards.require_published(tx, row, sink, token)
            published = tx.one("publish_epoch", **key)
            return to_epoch(published or row)

        return self._connection.run(role, work, reason)

    def mark_emitted(self, pipeline: str, epoch: int, sinks: Sequence[str], role: Role) -> None:
        """Delete the pending asset events of these sinks: Airflow has them."""
        self._connection.run(role, lambda tx: tx.do("mark_emitted", pipeline=pipeline, epoch=epoch, sinks=list(sinks)))

    def mark_missed(self, pipeline: str, sink: str, epochs: Sequence[int], role: Role) -> None:
        """Record that these pending asset events were not found in Airflow."""
        self._connection.run(role, lambda tx: tx.do("mark_missed", pipeline=pipeline, sink=sink, epochs=list(epochs)))

    def delete_unemittable_events(self, pipeline: str, sink: str, epochs: Sequence[int], role: Role) -> None:
        """Delete pending asset events that can't be emitted."""
        self._connection.run(
            role, lambda tx: tx.do("delete_unemittable_events", pipeline=pipeline, sink=sink, epochs=list(epochs))
        )

    def delete_replaced_events(self, role: Role) -> None:
        """Delete pending asset events of replaced epochs."""
        self._connection.run(role, lambda tx: tx.do("delete_replaced_events"))

    def record_comparison(self, epoch: Epoch, sink: str, unproven: str | None) -> None:
        """Record the result of comparing `sink` with the sealed rows. `unproven`: the difference, or None if equal.

        A changed result is added to the history. Ignored if the epoch was replaced or sealed again meanwhile.
        """

        def work(tx: Transaction) -> None:
            row = guards.lock_epoch(tx, epoch.pipeline, epoch.id)
            participant = guards.list_participants(tx, epoch.pipeline, epoch.id).get(sink)
            replaced_since = row["state"] == EpochState.REPLACED and epoch.state is not EpochState.REPLACED
            resealed = row["state"] not in DECIDED or row["manifest_hash"] != epoch.manifest_hash
            if resealed or replaced_since or participant is None:
                return
            key = {**guards.key(epoch), "sink": sink}
            if (
                tx.do("record_comparison", **key, unproven=unproven, actor=tx.actor)
                and participant.unproven != unproven
            ):
                tx.do("write_note", **key, state=participant.state.value, attempt=participant.attempt, token=None)

        self._connection.run(Role.OPERATOR, work, unproven or "verify: the rows are those that were sealed")

    def decide_retention(self, epoch: Epoch, role: Role, retained: tuple[str, int] | None) -> RetainedWal | None:
        """Decide, before anything is deleted, which WAL of a published epoch is retained: folder and bytes, or None.
        The first decision is final. Returns it, with an expiry if no WAL is retained; None if the epoch is cleaned."""
        wal, size = retained or (epoch.wal, 0)

        def work(tx: Transaction) -> RetainedWal | None:
            row = guards.lock_epoch(tx, epoch.pipeline, epoch.id)
            if row["state"] in FINISHED & DECIDED:
                return None
            guards.require_state(row, EpochState.PUBLISHED, "clean up")
            tx.do("retain_wal", **guards.key(epoch), wal=wal, bytes=size, stays=retained is not None)
            return to_retained_wal(require_row(tx.one("find_retained_wal", **guards.key(epoch))))

        return self._connection.run(role, work)

    def record_cleanup(self, epoch: Epoch, role: Role) -> Epoch:
        """published → cleaned, after the WAL was deleted or retained."""

        def work(tx: Transaction) -> Epoch:
            row = guards.lock_epoch(tx, epoch.pipeline, epoch.id)
            if row["state"] in FINISHED & DECIDED:
                return to_epoch(row)
            guards.require_state(row, EpochState.PUBLISHED, "clean up")
            tx.do("delete_retained_wal", **guards.key(epoch))
            return to_epoch(require_row(tx.one("clean_epoch", **guards.key(epoch))))

        cleaned = self._connection.run(role, work)
        if cleaned.id % _COUNT_EVERY == 0:
            self._connection.run(role, lambda tx: tx.do("count_finished", pipeline=epoch.pipeline))
        return cleaned

    def expire_wals(self, pipeline: str, role: Role) -> list[RetainedWal]:
        """Expire retained WALs that are due, oldest first; returns them. From now on their files may be missing."""

        def work(tx: Transaction) -> list[RetainedWal]:
            guards.lock_pipeline(tx, pipeline)
            due = [to_retained_wal(row) for row in tx.all("list_expiring_wals", pipeline=pipeline)]
            tx.do("expire_wals", pipeline=pipeline, epochs=[wal.epoch for wal in due])
            return due

        return self._connection.run(role, work)

    def delete_retained_wal(self, pipeline: str, epoch: int, role: Role) -> None:
        """Delete the row of an expired WAL after its files were deleted."""
        self._connection.run(role, lambda tx: tx.do("delete_retained_wal", pipeline=pipeline, epoch=epoch))

    # --- what a person may do: it all stands in the history ---

    def void_epoch(self, pipeline: str, epoch: int, reason: str, *, only: int | None = None) -> Epoch:
        """Void an undecided epoch. Its claims stay, so that no other epoch reads its files, unless it is a generation:
        then the replaced epoch has the range.

        `only`: raises `IllegalTransition` unless this is the current attempt.
        """

        def work(tx: Transaction) -> Epoch:
            row = guards.lock_epoch(tx, pipeline, epoch)
            if row["state"] == EpochState.VOID:
                return to_epoch(row)
            guards.require_undecided(row, "void")
            guards.require_attempt(row, only, "void")
            return to_epoch(steps.void_epoch(tx, row, reason))

        return self._connection.run(Role.OPERATOR, work, reason)

    def release_epoch(self, pipeline: str, epoch: int, reason: str, *, only: str | None = None) -> Epoch:
        """Release an epoch held by its audits. Raises `IllegalTransition` for any other epoch, and unless `only` is a
        prefix of the sealed manifest's hash."""

        def work(tx: Transaction) -> Epoch:
            row = guards.lock_epoch(tx, pipeline, epoch)
            verdict = guards.find_verdict(tx, row)
            if verdict is not None and only is not None:
                guards.require_judged(row, verdict, only)
            if verdict is not None and verdict.outcome is Outcome.RELEASED:
                return to_epoch(row)
            if row["state"] != EpochState.STAGED or verdict is None or verdict.outcome is not Outcome.HELD:
                outcome = "its audits passed" if verdict else "no audit holds it"
                raise IllegalTransition(f"can't release {guards.epoch_name(row)}: it is {row['state']}, {outcome}")
            key = {"pipeline": pipeline, "epoch": epoch}
            tx.one("release_verdict", **key, manifest_hash=verdict.manifest_hash, actor=tx.actor, reason=reason)
            tx.do("write_note", **key, sink=None, state=row["state"], attempt=row["attempt"], token=None)
            return to_epoch(row)

        return self._connection.run(Role.OPERATOR, work, f"released: {reason}")

    def forget_pipeline(self, pipeline: str, reason: str) -> None:
        """Void all epochs of a pipeline without decided ones and hide it; its name can't be reused.

        Raises `IllegalTransition` if an epoch is decided, `UnknownEpoch`.
        """

        def work(tx: Transaction) -> None:
            guards.lock_pipeline(tx, pipeline)  # blocks new epochs
            for epoch_row in tx.all("list_epoch_ids", pipeline=pipeline):
                row = guards.lock_epoch(tx, pipeline, epoch_row["id"])
                if row["state"] in DECIDED:
                    raise IllegalTransition(
                        f"can't forget pipeline {pipeline}: epoch {row['id']} is {row['state']}, and decided epochs "
                        "remain; a pipeline whose DAG was deleted needs no cleanup"
                    )
                steps.void_epoch(tx, row, reason)
            tx.do("forget_pipeline", pipeline=pipeline, actor=tx.actor, reason=reason)

        self._connection.run(Role.OPERATOR, work, reason)

    def replan_epoch(
        self,
        pipeline: str,
        epoch: int,
        plan: Plan,
        claims: Mapping[str, Sequence[Claim]],
        reason: str,
        run: RunKey | None = None,
        *,
        only: int | None = None,
    ) -> Epoch:
        """Give an undecided epoch a new range and new sinks; a sealed WAL is discarded. `run`: owns the epoch from now
        on.

        A cursor epoch must still join its neighbours. Raises `IllegalTransition`, also unless `only` is the current
        attempt; `SourceClaimed`.
        """

        def work(tx: Transaction) -> Epoch:
            guards.lock_pipeline(tx, pipeline)
            row = guards.lock_epoch(tx, pipeline, epoch)
            guards.require_undecided(row, "replan")
            planned = plan.to_json()
            if row["attempt"] != only and (row["plan"], row["reason"]) == (planned, reason):
                return to_epoch(row)  # a retry after a lost answer
            guards.require_attempt(row, only, "replan")
            steps.require_joins(tx, row, plan)
            row = steps.open_attempt(tx, row, Role.OPERATOR, reason=reason)
            if run is not None:
                steps.save_run(tx, run, Attempt(pipeline, epoch, row["attempt"]))
            key = {"pipeline": pipeline, "epoch": epoch}
            for sink, spec in row["plan"]["sinks"].items():  # an old prepare may still be running there
                tx.do("save_planned_sink", pipeline=pipeline, sink=sink, spec=Jsonb(spec))
            tx.do("discard_seal", **key, attempt=row["attempt"])
            tx.do("delete_participants", **key)
            tx.do("release_claims", **key)
            steps.freeze_plan(tx, row, plan, claims)
            return to_epoch(
                require_row(tx.one("replan_epoch", **key, plan=Jsonb(planned), attempt=row["attempt"], reason=reason))
            )

        return self._connection.run(Role.OPERATOR, work, reason)

    def merge_epoch(
        self, stuck: Epoch, plan: Plan, claims: Mapping[str, Sequence[Claim]], run: RunKey, reason: str
    ) -> Epoch:
        """Extend the range of a cursor's last epoch, which is planned and idle, in a new attempt of `run`. `claims`:
        the additional files.

        Raises `IllegalTransition` if `stuck` has changed or its ranges don't join, `EpochBusy`, `SourceClaimed`.
        """
        own_tokens: set[int] = set()

        def work(tx: Transaction) -> Epoch:
            guards.lock_pipeline(tx, stuck.pipeline)
            row = guards.lock_epoch(tx, stuck.pipeline, stuck.id)
            if row["attempt"] in own_tokens:
                return to_epoch(row)
            guards.require_state(row, EpochState.PLANNED, "merge")
            guards.require_attempt(row, stuck.attempt, "merge")
            guards.require_lease(tx, row, run)
            steps.require_joins(tx, row, plan)
            row = steps.open_attempt(tx, row, Role.BEGIN, run=run, reason=reason)
            own_tokens.add(row["attempt"])
            for source, files in claims.items():
                steps.claim_files(tx, stuck.pipeline, stuck.id, source, files)
            tx.one("act_as", role=Role.OPERATOR.value)  # only this role may change a plan
            merged = tx.one("merge_epoch", **guards.key(stuck), plan=Jsonb(plan.to_json()), attempt=row["attempt"])
            return to_epoch(require_row(merged))

        return self._connection.run(Role.BEGIN, work, reason)

    def retarget_participant(self, epoch: Epoch, sink: str, target_id: str, reason: str) -> None:
        """Record an operator's statement that `target_id` lacks the decided epoch, and publish there."""

        def work(tx: Transaction) -> None:
            row = guards.lock_epoch(tx, epoch.pipeline, epoch.id)
            guards.require_state(row, EpochState.COMMITTED, f"resolve {sink} of")
            key = {**guards.key(epoch), "sink": sink}
            if not tx.do("retarget_participant", **key, target_id=target_id):
                raise IllegalTransition(
                    f"{guards.epoch_name(row)}: sink {sink} is published already; there is nothing to resolve"
                )
            state = ParticipantState.PREPARED.value
            tx.do("write_note", **key, state=state, attempt=row["attempt"], token=None)

        self._connection.run(Role.OPERATOR, work, reason)

    def write_note(
        self, epoch: Epoch, sink: str, word: str, role: Role = Role.OPERATOR, *, after: int | None = None
    ) -> int:
        """Record an operator's statement about a decided epoch in a sink that has not published it, or (`role`) its
        outcome; returns the id of the history entry. No state changes.

        `after`: the last known entry. Raises `IllegalTransition`, also if there is a later one.
        """

        def work(tx: Transaction) -> int:
            row = guards.lock_epoch(tx, epoch.pipeline, epoch.id)
            guards.require_state(row, EpochState.COMMITTED, f"resolve {sink} of")
            participant = guards.list_participants(tx, epoch.pipeline, epoch.id).get(sink)
            if participant is None or participant.vote is None or participant.state is ParticipantState.PUBLISHED:
                raise IllegalTransition(f"{guards.epoch_name(row)}: there is nothing to resolve in sink {sink}")
            key = {**guards.key(epoch), "sink": sink}
            last = tx.one("find_last_note", **key)
            if after is not None and (last is None or last["id"] != after):
                raise IllegalTransition(
                    f"{guards.epoch_name(row)}: its part in sink {sink} has changed since: check it again"
                )
            tx.do(
                "write_note", **key, state=participant.state.value, attempt=row["attempt"], token=participant.vote.token
            )
            return int(require_row(tx.one("find_last_note", **key))["id"])

        return self._connection.run(role, work, word)

    def change_pipeline(self, pipeline: str, change: str, details: Json, reason: str) -> None:
        """Record a manual decision about a pipeline. Raises `UnknownEpoch` for an unknown name."""

        def work(tx: Transaction) -> None:
            guards.lock_pipeline(tx, pipeline)
            values = {"details": Jsonb(details), "actor": tx.actor, "reason": reason}
            tx.do("insert_pipeline_change", pipeline=pipeline, change=change, **values)

        self._connection.run(Role.OPERATOR, work, reason)

    def override_settings(self, pipeline: str, sink: str, settings: Mapping[str, Json], reason: str) -> None:
        """Override a sink's operational arguments; an empty mapping restores the deployed ones."""

        def work(tx: Transaction) -> None:
            guards.lock_pipeline(tx, pipeline)
            current = tx.one("find_settings", pipeline=pipeline, sink=sink) or {}
            if (current.get("override") or {}) != settings:  # or a retry after a lost answer
                values = {"settings": Jsonb(dict(settings)), "actor": tx.actor, "reason": reason}
                tx.do("override_settings", pipeline=pipeline, sink=sink, **values)

        self._connection.run(Role.OPERATOR, work, reason)

    def renumber(self, pipeline: str, beyond: int, token: int, details: Json, reason: str) -> None:
        """Number new epochs above `beyond` and new tokens above `token`; numbers never decrease."""

        def work(tx: Transaction) -> None:
            guards.lock_pipeline(tx, pipeline)
            tx.do("advance_epoch_number", pipeline=pipeline, beyond=beyond)
            steps.advance_token_sequence(tx, pipeline, beyond, token)
            values = {"details": Jsonb(details), "actor": tx.actor, "reason": reason}
            tx.do("insert_pipeline_change", pipeline=pipeline, change="renumbered", **values)

        self._connection.run(Role.OPERATOR, work, reason)

    def adopt_deployment(self, deployment: str) -> None:
        """Take the id of a lost ledger; needs the owner of the tables. Raises as `rebuilding.adopt_deployment`."""
        rebuilding.adopt_deployment(self._connection.dsn, deployment)
        self._deployment = deployment

    def rebuild_pipeline(
        self, pipeline: str, epochs: Sequence[RebuiltEpoch], beyond: int, token: int, details: Json, reason: str
    ) -> None:
        """Insert the epochs of a lost ledger for a pipeline without epochs; new ones get numbers above `beyond` and
        tokens above `token`.

        Raises `IllegalTransition` if it has epochs, and as `write_epochs`.
        """

        def work(tx: Transaction) -> None:
            guards.require_remembered(guards.lock_pipeline(tx, pipeline))
            last = tx.one("find_pipeline_change", pipeline=pipeline, change="rebuilt")
            if last and last["details"] == json.loads(json.dumps(details)):
                return  # a retry after a lost answer
            if existing := tx.one("find_last_epoch", pipeline=pipeline):
                raise IllegalTransition(f"this ledger already has epochs of {pipeline}: {to_epoch(existing)}")
            rebuilding.write_epochs(tx, pipeline, epochs, token)
            tx.do("advance_epoch_number", pipeline=pipeline, beyond=beyond)
            values = {"details": Jsonb(details), "actor": tx.actor, "reason": reason}
            tx.do("insert_pipeline_change", pipeline=pipeline, change="rebuilt", **values)

        self._connection.run(Role.OPERATOR, work, reason)

    def restage_epoch(
        self, epoch: Epoch, restaged: Restaged, token: int, summary: Json, numbering: Sequence[str], reason: str
    ) -> Epoch:
        """Replace the WAL of a committed epoch by `restaged`, staged by execution `token` and counted in `summary`.
        Returns the epoch unchanged if it was restaged or published meanwhile.

        `numbering`: sinks that identify rows by their position; publishing must not have started there if the order
        changed. Raises `RestageRefused`.
        """

        def work(tx: Transaction) -> Epoch:
            row = guards.lock_epoch(tx, epoch.pipeline, epoch.id)
            if row["state"] in SHOWN or row["restaged_wal"] != (epoch.restaged.wal if epoch.restaged else None):
                return to_epoch(row)
            guards.require_state(row, EpochState.COMMITTED, "restage")
            if restaged.reordered:
                guards.require_unsent(tx, row, numbering)
            values = {"wal": restaged.wal, "hash": restaged.manifest_hash, "reordered": restaged.reordered}
            changed = tx.one("restage_epoch", **guards.key(epoch), **values, summary=Jsonb(summary))
            if changed is None:
                raise RestageRefused(f"{guards.epoch_name(row)} was sealed with other rows; nothing was changed")
            state = EpochState.COMMITTED.value
            tx.do("write_note", **guards.key(epoch), sink=None, state=state, attempt=row["attempt"], token=token)
            return to_epoch(changed)

        return self._connection.run(Role.OPERATOR, work, reason)

    def require_unstarted(self, pipeline: str, savepoint_hash: str) -> bool:
        """False if the pipeline started from this savepoint. Raises `IllegalTransition` if it has epochs or another
        savepoint."""
        return self._connection.run(Role.OPERATOR, lambda tx: steps.is_unstarted(tx, pipeline, savepoint_hash))

    def start_from(self, pipeline: str, savepoint: Json, savepoint_hash: str) -> None:
        """Start the pipeline's first epoch from `savepoint`. Raises `IllegalTransition` as `require_unstarted`."""

        def work(tx: Transaction) -> None:
            if steps.is_unstarted(tx, pipeline, savepoint_hash):
                values = {"savepoint": Jsonb(savepoint), "hash": savepoint_hash, "actor": tx.actor}
                tx.do("insert_savepoint", pipeline=pipeline, **values)

        self._connection.run(Role.OPERATOR, work)


def _decide(tx: Transaction, attempt: Attempt) -> Epoch:
    row = guards.lock_epoch(tx, attempt.pipeline, attempt.epoch)
    if row["state"] in DECIDED:
        return to_epoch(row)
    guards.require_current(tx, row, attempt)
    guards.require_votes(tx, row)
    replaced = guards.lock_replaced(tx, row) if row["replaces"] is not None else []
    if row["span"] is None and (row["replaces"] is None or row["replaces_to"] is not None):
        guards.require_predecessor_decided(tx, attempt.pipeline, attempt.epoch)
        guards.require_keyed_state_follows(tx, row)
    decided = require_row(tx.one("commit_epoch", **guards.key(attempt), attempt=attempt.token))
    for number in replaced:
        require_row(tx.one("replace_epoch", pipeline=attempt.pipeline, epoch=number))
    return to_epoch(decided)
