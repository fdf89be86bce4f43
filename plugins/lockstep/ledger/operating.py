"""What a person may do to an epoch: give it up, plan it anew, say where it goes. All of it stands in the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psycopg2.extras import Json as Jsonb

from lockstep.epoch import Claim, Epoch, Json, Plan, Restaged
from lockstep.errors import IllegalTransition, RestageRefused
from lockstep.ledger import guards, steps
from lockstep.ledger.looking import Looking
from lockstep.ledger.rows import to_epoch
from lockstep.ledger.transaction import Row, Transaction
from lockstep.states import DECIDED, SHOWN, EpochState, ParticipantState, Role

_MOST_LOST = 5_000_000  #: tokens; to take so many lasts seconds


class Operating(Looking):
    """The transactions of `lockstep void`, `replan`, `resolve` and `forget`."""

    def void_epoch(self, pipeline: str, epoch: int, reason: str) -> Epoch:
        """Give an undecided epoch's range up. Its claims stay: nobody else reads those files."""

        def work(tx: Transaction) -> Epoch:
            row = guards.lock_epoch(tx, pipeline, epoch)
            if row["state"] == EpochState.VOID:
                return to_epoch(row)
            guards.require_undecided(row, "void")
            return to_epoch(self._void(tx, row, reason))

        return self._connection.run(Role.OPERATOR, work, reason)

    def forget_pipeline(self, pipeline: str, reason: str) -> None:
        """Void what a pipeline that never decided anything has, and list it nowhere any more; its name stays taken.

        Raises `IllegalTransition` if an epoch of it was ever decided, `UnknownEpoch`.
        """

        def work(tx: Transaction) -> None:
            guards.lock_pipeline(tx, pipeline)  # no epoch comes from now on
            for found in tx.all("list_standing_epochs", pipeline=pipeline):
                row = guards.lock_epoch(tx, pipeline, found["id"])
                if row["state"] in DECIDED:
                    raise IllegalTransition(
                        f"can't forget pipeline {pipeline}: epoch {row['id']} is {row['state']}, and what is decided "
                        "stays; of a pipeline whose DAG is gone nothing is left to do"
                    )
                self._void(tx, row, reason)
            tx.do("forget_pipeline", pipeline=pipeline, actor=tx.actor, reason=reason)

        self._connection.run(Role.OPERATOR, work, reason)

    def replan_epoch(
        self, pipeline: str, epoch: int, plan: Plan, claims: Mapping[str, Sequence[Claim]], reason: str
    ) -> Epoch:
        """Give an undecided epoch a new range and new sinks; its WAL, if sealed, is rubbish from now on.

        A cursor epoch's range must still join its neighbours'. Raises `IllegalTransition`, `SourceClaimed`.
        """

        def work(tx: Transaction) -> Epoch:
            guards.lock_pipeline(tx, pipeline)
            row = guards.lock_epoch(tx, pipeline, epoch)
            guards.require_undecided(row, "replan")
            self._require_joins(tx, row, plan)
            row = steps.open_attempt(tx, row, Role.OPERATOR, reason=reason)
            key = {"pipeline": pipeline, "epoch": epoch}
            for sink, spec in row["plan"]["sinks"].items():  # an old prepare may still be at work there
                tx.do("remember_sink", pipeline=pipeline, sink=sink, spec=Jsonb(spec))
            tx.do("discard_seal", **key, attempt=row["attempt"])
            tx.do("delete_participants", **key)
            tx.do("release_claims", **key)
            steps.freeze_plan(tx, pipeline, epoch, plan, claims)
            planned = Jsonb(plan.to_json())
            return to_epoch(
                guards.required(tx.one("replan_epoch", **key, plan=planned, attempt=row["attempt"], reason=reason))
            )

        return self._connection.run(Role.OPERATOR, work, reason)

    def retarget_participant(self, epoch: Epoch, sink: str, target_id: str, reason: str) -> None:
        """A person says that `target_id`, as it is now, doesn't hold the decided epoch: publish it there."""

        def work(tx: Transaction) -> None:
            row = guards.lock_epoch(tx, epoch.pipeline, epoch.id)
            guards.require_state(row, EpochState.COMMITTED, f"resolve {sink} of")
            key = {**guards.key(epoch), "sink": sink}
            if not tx.do("retarget_participant", **key, target_id=target_id):
                raise IllegalTransition(f"{guards.name(row)}: sink {sink} has published already; nothing to resolve")
            state = ParticipantState.PREPARED.value
            tx.do("write_note", **key, state=state, attempt=row["attempt"], token=None)

        self._connection.run(Role.OPERATOR, work, reason)

    def change_pipeline(self, pipeline: str, change: str, found: Json, reason: str) -> None:
        """Keep a person's word on a pipeline as a whole. Raises `UnknownEpoch` if there is none of this name."""

        def work(tx: Transaction) -> None:
            guards.lock_pipeline(tx, pipeline)
            values = {"found": Jsonb(found), "actor": tx.actor, "reason": reason}
            tx.do("insert_pipeline_change", pipeline=pipeline, change=change, **values)

        self._connection.run(Role.OPERATOR, work, reason)

    def override_settings(self, pipeline: str, sink: str, settings: Mapping[str, Json], reason: str) -> None:
        """From now on a sink works with these operational arguments; with none of them, as it is deployed."""

        def work(tx: Transaction) -> None:
            guards.lock_pipeline(tx, pipeline)
            found = tx.one("find_settings", pipeline=pipeline, sink=sink) or {}
            if (found.get("override") or {}) != settings:  # or a try whose answer was lost has said it
                values = {"settings": Jsonb(dict(settings)), "actor": tx.actor, "reason": reason}
                tx.do("override_settings", pipeline=pipeline, sink=sink, **values)

        self._connection.run(Role.OPERATOR, work, reason)

    def renumber(self, pipeline: str, beyond: int, token: int, found: Json, reason: str) -> None:
        """From now on epochs are numbered above `beyond` and tokens above `token`; never below what they were."""

        def work(tx: Transaction) -> None:
            guards.lock_pipeline(tx, pipeline)
            tx.do("lift_epochs", pipeline=pipeline, beyond=beyond)
            self._lift_tokens(tx, pipeline, beyond, token)
            values = {"found": Jsonb(found), "actor": tx.actor, "reason": reason}
            tx.do("insert_pipeline_change", pipeline=pipeline, change="renumbered", **values)

        self._connection.run(Role.OPERATOR, work, reason)

    @staticmethod
    def _lift_tokens(tx: Transaction, pipeline: str, epoch: int, token: int) -> None:
        """By taking them: that needs no other right than every task has, and is safe beside others."""
        while (last := steps.take_token(tx, pipeline, epoch, Role.OPERATOR)) <= token:
            if token - last > _MOST_LOST:
                raise IllegalTransition(
                    f"something of pipeline {pipeline} carries token {token}, this ledger is at {last}: that can't be "
                    "caught up with by counting. If it is a true one, ALTER SEQUENCE lockstep.token RESTART WITH a "
                    "larger number, then try again"
                )
            tx.do("lift_tokens", count=token - last)

    def restage_epoch(
        self, known: Epoch, restaged: Restaged, token: int, summary: Json, numbering: Sequence[str], reason: str
    ) -> Epoch:
        """From now on `known`'s rows are read from `restaged`, which execution `token` staged and `summary` counts.

        As another one left it, if that was first. `numbering`: sinks that may hold rows under their old numbers, if
        somebody has begun to publish there. Raises `RestageRefused`.
        """

        def work(tx: Transaction) -> Epoch:
            row = guards.lock_epoch(tx, known.pipeline, known.id)
            if row["state"] in SHOWN or row["restaged_wal"] != (known.restaged.wal if known.restaged else None):
                return to_epoch(row)
            guards.require_state(row, EpochState.COMMITTED, "restage")
            if restaged.reordered:
                guards.require_unsent(tx, row, numbering)
            values = {"wal": restaged.wal, "hash": restaged.manifest_hash, "reordered": restaged.reordered}
            changed = tx.one("restage_epoch", **guards.key(known), **values, summary=Jsonb(summary))
            if changed is None:
                raise RestageRefused(f"{guards.name(row)} was sealed with other rows: nothing was changed")
            state = EpochState.COMMITTED.value
            tx.do("write_note", **guards.key(known), sink=None, state=state, attempt=row["attempt"], token=token)
            return to_epoch(changed)

        return self._connection.run(Role.OPERATOR, work, reason)

    def require_unstarted(self, pipeline: str, savepoint_hash: str) -> bool:
        """False if it began with this very savepoint. Raises `IllegalTransition` if it has epochs, or another one."""
        return self._connection.run(Role.OPERATOR, lambda tx: self._unstarted(tx, pipeline, savepoint_hash))

    def start_from(self, pipeline: str, savepoint: Json, savepoint_hash: str) -> None:
        """The pipeline's first epoch goes on from `savepoint`. Raises `IllegalTransition` as `require_unstarted`."""

        def work(tx: Transaction) -> None:
            if self._unstarted(tx, pipeline, savepoint_hash):
                values = {"savepoint": Jsonb(savepoint), "hash": savepoint_hash, "actor": tx.actor}
                tx.do("insert_savepoint", pipeline=pipeline, **values)

        self._connection.run(Role.OPERATOR, work)

    @staticmethod
    def _void(tx: Transaction, row: Row, reason: str) -> Row:
        row = steps.open_attempt(tx, row, Role.OPERATOR, reason=reason)
        key = {"pipeline": row["pipeline"], "epoch": row["id"]}
        return guards.required(tx.one("void_epoch", **key, attempt=row["attempt"], reason=reason))

    @staticmethod
    def _unstarted(tx: Transaction, pipeline: str, savepoint_hash: str) -> bool:
        """False if it began with this very savepoint already."""
        last = guards.lock_pipeline(tx, pipeline)["last_epoch"]
        found = tx.one("find_savepoint", pipeline=pipeline)
        if found and found["hash"] == savepoint_hash:
            return False
        if found or last:
            begun = "began with another savepoint" if found else f"has {last} epochs"
            raise IllegalTransition(f"pipeline {pipeline} {begun}: only a new one can begin with a savepoint")
        return True

    @staticmethod
    def _require_joins(tx: Transaction, row: Row, plan: Plan) -> None:
        if row["span"] is not None:
            return
        gap = guards.gap(tx, row["pipeline"], row["id"], guards.plan_as_stored(plan), row["plan"])
        if gap:
            raise IllegalTransition(
                f"can't replan {guards.name(row)} with this range: {gap}; keep the range, replan the last epoch "
                "only, or void what stands in between"
            )
