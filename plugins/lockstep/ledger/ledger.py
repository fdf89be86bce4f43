"""The ledger: every change of an epoch, guarded and ordered. The only module that changes it.

Each method is one transaction that first locks the epoch's row, then updates it with a guard on state and attempt. No
row back means one of three things: it is there already (success), `Fenced`, or `IllegalTransition`. Every method can be
repeated; after a lost connection it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from psycopg2.extras import Json as Jsonb

from lockstep.epoch import Attempt, Epoch, Identity, Interval, Json, Participant, Plan, RunKey, Vote
from lockstep.errors import (
    EpochBusy,
    Fenced,
    IllegalTransition,
    InvalidPipeline,
    NotPrepared,
    OutOfOrder,
    SourceClaimed,
    UnknownEpoch,
)
from lockstep.ledger.rows import to_epoch, to_participant
from lockstep.ledger.transaction import LedgerConnection, Row, Transaction
from lockstep.states import DECIDED, SHOWN, UNDECIDED, EpochState, ParticipantState, Role

LEASE = timedelta(seconds=30)


class Ledger:
    """Raises `LedgerUnavailable` when it can't be reached and `LedgerRefused` when it can't be trusted."""

    def __init__(self, dsn: str, actor: str | None = None) -> None:
        self._connection = LedgerConnection(dsn, actor)
        self._deployment: str | None = None

    @property
    def actor(self) -> str:
        return self._connection.actor

    def close(self) -> None:
        self._connection.close()

    def again(self) -> Ledger:
        """The same ledger on a connection of its own, for another thread."""
        return Ledger(self._connection.dsn, self.actor)

    # --- looking ---

    def deployment(self) -> str:
        """The UUID that the first migration made; in every handle and folder name."""
        if self._deployment is None:
            row = self._connection.run(Role.OPERATOR, lambda tx: tx.one("find_deployment"))
            self._deployment = str(row["id"]) if row else ""
        return self._deployment

    def find_run(self, run: RunKey) -> Attempt | None:
        """The attempt that this run's own `begin` took."""
        row = self._look("find_run", dag_id=run.dag_id, run_id=run.run_id)
        return Attempt(row["pipeline"], row["epoch"], row["attempt"]) if row else None

    def epoch(self, pipeline: str, epoch: int) -> Epoch:
        """Raises `UnknownEpoch`."""
        row = self._look("find_epoch", pipeline=pipeline, epoch=epoch)
        if row is None:
            raise UnknownEpoch(f"the ledger has no epoch {epoch} of pipeline {pipeline}")
        return to_epoch(row)

    def epoch_of_interval(self, pipeline: str, interval: Interval) -> Epoch | None:
        """The epoch whose interval overlaps `interval`, equal or not."""
        row = self._look("find_epoch_of_interval", pipeline=pipeline, start=interval.start, end=interval.end)
        return to_epoch(row) if row else None

    def last_epoch(self, pipeline: str) -> Epoch | None:
        row = self._look("find_last_epoch", pipeline=pipeline)
        return to_epoch(row) if row else None

    def abandoned_epoch(self, pipeline: str) -> Epoch | None:
        """A cursor pipeline's lowest undecided epoch whose lease has run out."""
        row = self._look("find_abandoned_epoch", pipeline=pipeline)
        return to_epoch(row) if row else None

    def in_flight(self, pipeline: str) -> int:
        """Epochs that are not published yet."""
        row = self._look("count_in_flight", pipeline=pipeline)
        return int(row["in_flight"]) if row else 0

    def unfinished_epochs(self, pipeline: str) -> list[Epoch]:
        """Everything but cleaned and void, in order."""
        return [to_epoch(row) for row in self._look_all("list_unfinished_epochs", pipeline=pipeline)]

    def abandoned_epochs(self, pipeline: str, hold: timedelta) -> list[Epoch]:
        """Undecided, unleased, and begun longer than `hold` ago."""
        return [to_epoch(row) for row in self._look_all("list_abandoned_epochs", pipeline=pipeline, hold=hold)]

    def require_current(self, attempt: Attempt) -> None:
        """Raises `Fenced` unless `attempt` is the epoch's current one."""
        row = self._look("find_epoch", pipeline=attempt.pipeline, epoch=attempt.epoch)
        if row is None:
            raise UnknownEpoch(f"the ledger has no epoch {attempt.epoch} of pipeline {attempt.pipeline}")
        self._require_current(row, attempt)

    def participants(self, pipeline: str, epoch: int) -> dict[str, Participant]:
        rows = self._look_all("list_participants", pipeline=pipeline, epoch=epoch)
        return {row["sink"]: to_participant(row) for row in rows}

    def claimed(self, pipeline: str, source: str, paths: Iterable[str]) -> set[str]:
        """Those of `paths` that some epoch of this source owns."""
        rows = self._look_all("find_claimed", pipeline=pipeline, source=source, paths=list(paths))
        return {row["path"] for row in rows}

    def issued(self, pipeline: str, epoch: int, tokens: Sequence[int]) -> set[int]:
        """Those of `tokens` that this ledger issued for this epoch."""
        rows = self._look_all("find_executions", pipeline=pipeline, epoch=epoch, tokens=list(tokens))
        return {row["token"] for row in rows}

    # --- begin ---

    def ensure_pipeline(self, pipeline: str, identity: Identity) -> None:
        """Raises `InvalidPipeline` if the pipeline lives with the other identity already."""

        def work(tx: Transaction) -> None:
            tx.do("ensure_pipeline", pipeline=pipeline, identity=identity.value)
            row = tx.one("find_pipeline", pipeline=pipeline)
            if row and row["identity"] != identity:
                raise InvalidPipeline(
                    f"pipeline {pipeline} has {row['identity']} epochs in the ledger, its sources now make "
                    f"{identity} epochs; give the pipeline another name"
                )

        self._connection.run(Role.BEGIN, work)

    def plan_epoch(
        self,
        pipeline: str,
        plan: Plan,
        claims: Mapping[str, Sequence[str]],
        run: RunKey,
        *,
        interval: Interval | None,
        after: int | None,
    ) -> Epoch | None:
        """Insert an epoch with its participants, claims and run. `after`: the cursor epoch it follows.

        None when somebody else has planned the next cursor epoch meanwhile. Raises `IntervalOverlap`, `SourceClaimed`.
        """

        def work(tx: Transaction) -> Epoch | None:
            numbered = tx.one("number_epoch", pipeline=pipeline, after=after)
            if numbered is None:
                return None
            epoch = int(numbered["last_epoch"])
            token = self._take_token(tx, pipeline, epoch, Role.BEGIN)
            row = tx.one(
                "insert_epoch",
                pipeline=pipeline,
                epoch=epoch,
                start=interval.start if interval else None,
                end=interval.end if interval else None,
                attempt=token,
                plan=Jsonb(plan.to_json()),
                dag_id=run.dag_id,
                run_id=run.run_id,
                lease=LEASE,
            )
            self._freeze(tx, pipeline, epoch, plan, claims)
            self._save_run(tx, run, Attempt(pipeline, epoch, token))
            return to_epoch(_required(row))

        return self._connection.run(Role.BEGIN, work)

    def take_over(self, pipeline: str, epoch: int, run: RunKey) -> Epoch:
        """Open a new attempt of an undecided epoch for `run`, or attach `run` to a decided one.

        Raises `EpochBusy` while another run's lease lasts, `IllegalTransition` for a void epoch.
        """

        def work(tx: Transaction) -> Epoch:
            row = self._lock(tx, pipeline, epoch)
            if row["state"] in UNDECIDED:
                self._require_lease(tx, row, run)
                row = self._raise(tx, row, Role.BEGIN, run, lease=LEASE)
            self._save_run(tx, run, Attempt(pipeline, epoch, row["attempt"]))
            return to_epoch(row)

        return self._connection.run(Role.BEGIN, work)

    def raise_attempt(
        self, pipeline: str, epoch: int, role: Role, *, only: int | None = None, reason: str = ""
    ) -> Epoch:
        """Void the current attempt and every vote; nobody owns the new one. A decided epoch is returned as it is.

        `only`: raise it only while this attempt is the current one.
        """

        def work(tx: Transaction) -> Epoch:
            row = self._lock(tx, pipeline, epoch)
            if row["state"] in UNDECIDED and (only is None or row["attempt"] == only):
                row = self._raise(tx, row, role, None, lease=None, reason=reason or None)
            return to_epoch(row)

        return self._connection.run(role, work, reason)

    def discard_seal(self, attempt: Attempt, reason: str) -> Epoch:
        """The sealed WAL fails its checks: stage again. Only before the decision, only in a new attempt."""

        def work(tx: Transaction) -> Epoch:
            row = self._lock_current(tx, attempt)
            if row["state"] == EpochState.PLANNED:
                return to_epoch(row)
            self._require(row, EpochState.STAGED, "discard the WAL of")
            return to_epoch(_required(tx.one("discard_seal", **_key(attempt), attempt=attempt.token)))

        return self._connection.run(Role.BEGIN, work, reason)

    # --- while tasks run ---

    def take_token(self, attempt: Attempt, role: Role, sink: str | None = None) -> int:
        """A fresh execution token. For `prepare` it also outdates the sink's earlier executions.

        Raises `Fenced` when `stage` or `prepare` starts under a stale attempt.
        """

        def work(tx: Transaction) -> int:
            row = self._lock(tx, attempt.pipeline, attempt.epoch)
            if role in (Role.STAGE, Role.PREPARE) and row["state"] in UNDECIDED:
                self._require_current(row, attempt)
            token = self._take_token(tx, attempt.pipeline, attempt.epoch, role, sink, attempt.token)
            if role is Role.PREPARE:
                tx.do("start_execution", **_key(attempt), sink=sink, token=token)
            return token

        return self._connection.run(role, work)

    def renew_lease(self, attempt: Attempt, role: Role) -> bool:
        """False when the attempt is no longer the current one."""

        def work(tx: Transaction) -> bool:
            row = self._lock(tx, attempt.pipeline, attempt.epoch)
            if row["attempt"] != attempt.token or row["state"] not in UNDECIDED:
                return False
            return tx.do("renew_lease", **_key(attempt), attempt=attempt.token, lease=LEASE) == 1

        return self._connection.run(role, work)

    # --- stage, prepare, commit ---

    def seal_epoch(self, attempt: Attempt, wal: str, manifest_hash: str, summary: Json, code_version: str) -> Epoch:
        """planned → staged, once. The epoch as another execution left it when that one has sealed already."""

        def work(tx: Transaction) -> Epoch:
            row = self._lock_current(tx, attempt)
            if row["wal"] is not None:
                return to_epoch(row)
            self._require(row, EpochState.PLANNED, "seal")
            sealed = tx.one(
                "seal_epoch",
                **_key(attempt),
                attempt=attempt.token,
                wal=wal,
                manifest_hash=manifest_hash,
                summary=Jsonb(summary),
                code_version=code_version,
            )
            return to_epoch(_required(sealed))

        return self._connection.run(Role.STAGE, work)

    def record_vote(self, attempt: Attempt, sink: str, vote: Vote) -> None:
        """pending or prepared → prepared. Raises `Fenced` when a younger attempt or execution has taken over."""

        def work(tx: Transaction) -> None:
            row = self._lock_current(tx, attempt)
            self._require(row, EpochState.STAGED, f"take the vote of {sink} for")
            found = self._participants(tx, row).get(sink)
            if found and found.vote == vote and found.attempt == attempt.token:
                return
            done = tx.do(
                "record_vote",
                **_key(attempt),
                sink=sink,
                attempt=attempt.token,
                token=vote.token,
                handle=vote.handle,
                target_id=vote.target_id,
                rows=Jsonb(dict(vote.rows)),
            )
            if not done:
                raise Fenced(
                    f"{_name(row)}: execution {vote.token} of prepare for {sink} was superseded by a younger one; "
                    "its vote doesn't count"
                )

        self._connection.run(Role.PREPARE, work)

    def commit_epoch(self, attempt: Attempt) -> Epoch:
        """The decision: staged → committed when this attempt's votes are exactly the plan's sinks.

        Raises `NotPrepared`, `Fenced`, and `OutOfOrder` when a cursor pipeline's earlier epoch isn't decided.
        """

        def work(tx: Transaction) -> Epoch:
            row = self._lock(tx, attempt.pipeline, attempt.epoch)
            if row["state"] in DECIDED:
                return to_epoch(row)
            self._require_current(row, attempt)
            self._require_votes(tx, row)
            self._require_predecessor(tx, row, DECIDED, "decided")
            return to_epoch(_required(tx.one("commit_epoch", **_key(attempt), attempt=attempt.token)))

        return self._connection.run(Role.COMMIT, work)

    def require_predecessor_decided(self, epoch: Epoch) -> None:
        """Raises `OutOfOrder`: a cursor pipeline prepares n+1 after n is committed."""
        self._connection.run(Role.PREPARE, lambda tx: self._require_predecessor(tx, _row_of(epoch), DECIDED, "decided"))

    def require_predecessor_published(self, epoch: Epoch, sink: str) -> None:
        """Raises `OutOfOrder`: a sink publishes a cursor pipeline's epochs in order."""

        def work(tx: Transaction) -> None:
            if epoch.interval is not None or epoch.id == 1:
                return
            found = self._participants(tx, {"pipeline": epoch.pipeline, "id": epoch.id - 1}).get(sink)
            if found and found.state is not ParticipantState.PUBLISHED:
                self._require_predecessor(tx, _row_of(epoch), SHOWN, f"published in {sink}")

        self._connection.run(Role.PUBLISH, work)

    # --- publish, cleanup ---

    def record_publication(
        self, epoch: Epoch, sink: str, token: int, publication: str, role: Role, reason: str = ""
    ) -> Epoch:
        """prepared → published for the decided vote; with the last sink committed → published."""

        def work(tx: Transaction) -> Epoch:
            row = self._lock(tx, epoch.pipeline, epoch.id)
            if row["state"] in SHOWN:
                return to_epoch(row)
            self._require(row, EpochState.COMMITTED, f"record {sink}'s publication of")
            key = {"pipeline": epoch.pipeline, "epoch": epoch.id}
            if not tx.do("record_publication", **key, sink=sink, token=token, publication=publication):
                self._require_published(tx, row, sink, token)
            published = tx.one("publish_epoch", **key)
            return to_epoch(published or row)

        return self._connection.run(role, work, reason)

    def record_cleanup(self, epoch: Epoch, role: Role) -> Epoch:
        """published → cleaned, after the WAL was deleted."""

        def work(tx: Transaction) -> Epoch:
            row = self._lock(tx, epoch.pipeline, epoch.id)
            if row["state"] == EpochState.CLEANED:
                return to_epoch(row)
            self._require(row, EpochState.PUBLISHED, "clean up")
            return to_epoch(_required(tx.one("clean_epoch", pipeline=epoch.pipeline, epoch=epoch.id)))

        return self._connection.run(role, work)

    # --- a person ---

    def void_epoch(self, pipeline: str, epoch: int, reason: str) -> Epoch:
        """Give an undecided epoch's range up. Its claims stay: nobody else reads those files."""

        def work(tx: Transaction) -> Epoch:
            row = self._lock(tx, pipeline, epoch)
            if row["state"] == EpochState.VOID:
                return to_epoch(row)
            self._require_undecided(row, "void")
            row = self._raise(tx, row, Role.OPERATOR, None, lease=None, reason=reason)
            voided = tx.one("void_epoch", pipeline=pipeline, epoch=epoch, attempt=row["attempt"], reason=reason)
            return to_epoch(_required(voided))

        return self._connection.run(Role.OPERATOR, work, reason)

    def replan_epoch(
        self, pipeline: str, epoch: int, plan: Plan, claims: Mapping[str, Sequence[str]], reason: str
    ) -> Epoch:
        """Give an undecided epoch a new range and new sinks; its WAL, if sealed, is rubbish from now on."""

        def work(tx: Transaction) -> Epoch:
            row = self._lock(tx, pipeline, epoch)
            self._require_undecided(row, "replan")
            row = self._raise(tx, row, Role.OPERATOR, None, lease=None, reason=reason)
            key = {"pipeline": pipeline, "epoch": epoch}
            tx.do("discard_seal", **key, attempt=row["attempt"])
            tx.do("delete_participants", **key)
            tx.do("release_claims", **key)
            self._freeze(tx, pipeline, epoch, plan, claims)
            return to_epoch(
                _required(
                    tx.one("replan_epoch", **key, plan=Jsonb(plan.to_json()), attempt=row["attempt"], reason=reason)
                )
            )

        return self._connection.run(Role.OPERATOR, work, reason)

    def retarget_participant(self, epoch: Epoch, sink: str, target_id: str, reason: str) -> None:
        """A person says that `target_id`, as it is now, doesn't hold the decided epoch: publish it there."""

        def work(tx: Transaction) -> None:
            row = self._lock(tx, epoch.pipeline, epoch.id)
            self._require(row, EpochState.COMMITTED, f"resolve {sink} of")
            key = {"pipeline": epoch.pipeline, "epoch": epoch.id, "sink": sink}
            if not tx.do("retarget_participant", **key, target_id=target_id):
                raise IllegalTransition(f"{_name(row)}: sink {sink} has published already; nothing to resolve")
            state = ParticipantState.PREPARED.value
            tx.do("write_note", **key, state=state, attempt=row["attempt"], token=None)

        self._connection.run(Role.OPERATOR, work, reason)

    # --- shared steps of the transactions above ---

    def _look(self, name: str, **parameters: object) -> Row | None:
        return self._connection.run(Role.OPERATOR, lambda tx: tx.one(name, **parameters))

    def _look_all(self, name: str, **parameters: object) -> list[Row]:
        return self._connection.run(Role.OPERATOR, lambda tx: tx.all(name, **parameters))

    def _take_token(
        self,
        tx: Transaction,
        pipeline: str,
        epoch: int,
        role: Role,
        sink: str | None = None,
        attempt: int | None = None,
    ) -> int:
        row = tx.one(
            "take_token", pipeline=pipeline, epoch=epoch, sink=sink, attempt=attempt, role=role.value, actor=self.actor
        )
        return int(_required(row)["token"])

    @staticmethod
    def _save_run(tx: Transaction, run: RunKey, attempt: Attempt) -> None:
        tx.do("save_run", dag_id=run.dag_id, run_id=run.run_id, **_key(attempt), attempt=attempt.token)

    @staticmethod
    def _freeze(tx: Transaction, pipeline: str, epoch: int, plan: Plan, claims: Mapping[str, Sequence[str]]) -> None:
        for sink in plan.sinks:
            tx.do("insert_participant", pipeline=pipeline, epoch=epoch, sink=sink)
        for source, paths in claims.items():
            key = {"pipeline": pipeline, "source": source, "paths": list(paths)}
            taken = tx.all("find_claimants", **key)
            if taken:
                files = ", ".join(f"{row['path']} (epoch {row['epoch']})" for row in taken)
                raise SourceClaimed(f"source {source}: a file belongs to one epoch only; claimed already: {files}")
            tx.do("claim_files", **key, epoch=epoch)

    @staticmethod
    def _lock(tx: Transaction, pipeline: str, epoch: int) -> Row:
        row = tx.one("lock_epoch", pipeline=pipeline, epoch=epoch)
        if row is None:
            raise UnknownEpoch(f"the ledger has no epoch {epoch} of pipeline {pipeline}")
        return row

    def _lock_current(self, tx: Transaction, attempt: Attempt) -> Row:
        row = self._lock(tx, attempt.pipeline, attempt.epoch)
        self._require_current(row, attempt)
        return row

    def _raise(
        self,
        tx: Transaction,
        row: Row,
        role: Role,
        run: RunKey | None,
        *,
        lease: timedelta | None,
        reason: str | None = None,
    ) -> Row:
        """Decide first: the fresh token fences every older attempt, then their votes are void."""
        key = {"pipeline": row["pipeline"], "epoch": row["id"]}
        token = self._take_token(tx, row["pipeline"], row["id"], role)
        raised = tx.one(
            "raise_attempt",
            **key,
            token=token,
            dag_id=run.dag_id if run else None,
            run_id=run.run_id if run else None,
            lease=lease,
            reason=reason,
        )
        tx.do("void_votes", **key)
        return _required(raised)

    @staticmethod
    def _require_lease(tx: Transaction, row: Row, run: RunKey) -> None:
        own = (row["owner_dag"], row["owner_run"]) == (run.dag_id, run.run_id)
        held = tx.one("find_lease", pipeline=row["pipeline"], epoch=row["id"])
        if held and not own:
            raise EpochBusy(
                f"{_name(row)} is held by run {row['owner_run']} of {row['owner_dag']} "
                f"until {held['lease_until']}; try again"
            )

    @staticmethod
    def _require_current(row: Row, attempt: Attempt) -> None:
        if row["attempt"] != attempt.token:
            raise Fenced(
                f"{_name(row)}: attempt {attempt.token} was voided or superseded by {row['attempt']}, "
                "votes are per attempt: clear from begin"
            )

    @staticmethod
    def _require(row: Row, state: EpochState, verb: str) -> None:
        if row["state"] != state:
            raise IllegalTransition(f"can't {verb} {_name(row)}: it is {row['state']}, not {state}")

    @staticmethod
    def _require_undecided(row: Row, verb: str) -> None:
        if row["state"] not in UNDECIDED:
            raise IllegalTransition(f"can't {verb} {_name(row)}: it is {row['state']}; only an undecided epoch can be")

    @staticmethod
    def _participants(tx: Transaction, row: Row) -> dict[str, Participant]:
        rows = tx.all("list_participants", pipeline=row["pipeline"], epoch=row["id"])
        return {found["sink"]: to_participant(found) for found in rows}

    def _require_votes(self, tx: Transaction, row: Row) -> None:
        if row["state"] != EpochState.STAGED:
            raise NotPrepared(f"can't commit {_name(row)}: it is {row['state']}, its WAL is not sealed")
        votes = {
            sink
            for sink, found in self._participants(tx, row).items()
            if found.state is ParticipantState.PREPARED and found.attempt == row["attempt"]
        }
        wanted = set(row["plan"]["sinks"])
        if votes != wanted:
            raise NotPrepared(
                f"can't commit {_name(row)}: attempt {row['attempt']} lacks the vote of "
                + ", ".join(sorted(wanted - votes))
            )

    def _require_predecessor(self, tx: Transaction, row: Row, states: Iterable[EpochState], word: str) -> None:
        if row["span"] is not None or row["id"] == 1:
            return
        before = _required(tx.one("find_epoch", pipeline=row["pipeline"], epoch=row["id"] - 1))
        if before["state"] != EpochState.VOID and before["state"] not in states:
            raise OutOfOrder(
                f"{_name(row)} waits: epoch {before['id']} is {before['state']}, it has to be {word} first"
            )

    def _require_published(self, tx: Transaction, row: Row, sink: str, token: int) -> None:
        found = self._participants(tx, row).get(sink)
        if found is None:
            raise UnknownEpoch(f"{_name(row)} has no sink {sink}")
        if found.state is not ParticipantState.PUBLISHED:
            voted = found.vote.token if found.vote else None
            raise Fenced(f"{_name(row)}: the decided vote of {sink} is {voted}, not {token}")


def _key(attempt: Attempt) -> dict[str, object]:
    return {"pipeline": attempt.pipeline, "epoch": attempt.epoch}


def _row_of(epoch: Epoch) -> Row:
    return {"pipeline": epoch.pipeline, "id": epoch.id, "span": epoch.interval}


def _name(row: Row) -> str:
    return f"{row['pipeline']} epoch {row['id']}"


def _required(row: Row | None) -> Row:
    if row is None:
        raise IllegalTransition("the ledger's row changed under its own lock: this is a bug of Lockstep")
    return row
