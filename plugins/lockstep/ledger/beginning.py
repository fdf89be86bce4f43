"""How an epoch comes into the ledger, and how a new attempt at it is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType

from psycopg2.extras import Json as Jsonb

from lockstep.epoch import Attempt, Claim, Epoch, Identity, Interval, Json, Plan, RunKey
from lockstep.errors import EpochVoid, IntervalOverlap, InvalidPipeline, OutOfOrder
from lockstep.ledger import guards, steps
from lockstep.ledger.looking import Looking
from lockstep.ledger.rows import to_epoch
from lockstep.ledger.transaction import Row, Transaction
from lockstep.states import UNDECIDED, EpochState, Role

_NONE: Mapping[str, Json] = MappingProxyType({})


class Beginning(Looking):
    """The transactions of `begin` and `abort`."""

    def ensure_pipeline(
        self, pipeline: str, identity: Identity, hold: timedelta | None = None, settings: Mapping[str, Json] = _NONE
    ) -> None:
        """Make the pipeline known, and its `hold` and its sinks' operational `settings` to a recovery that has no
        definition.

        Raises `InvalidPipeline` if the pipeline lives with the other identity already.
        """
        self._connection.run(Role.BEGIN, lambda tx: self._register(tx, pipeline, identity, hold, settings))

    def require_identity(
        self, pipeline: str, identity: Identity, hold: timedelta | None = None, settings: Mapping[str, Json] = _NONE
    ) -> None:
        """The same for a pipeline that is known; one that isn't becomes so with its first epoch, and not before."""

        def work(tx: Transaction) -> None:
            if tx.one("find_pipeline", pipeline=pipeline):
                self._keep(tx, pipeline, identity, hold, settings)

        self._connection.run(Role.BEGIN, work)

    def plan_epoch(
        self,
        pipeline: str,
        plan: Plan,
        claims: Mapping[str, Sequence[Claim]],
        run: RunKey,
        *,
        interval: Interval | None,
        after: int | None,
        hold: timedelta | None = None,
        settings: Mapping[str, Json] = _NONE,
    ) -> Epoch | None:
        """Insert an epoch with its participants, claims and run; with the first one the pipeline. `after`: the cursor
        epoch it follows.

        None when somebody else has planned this interval, or the next cursor epoch, meanwhile: look again. Raises
        `IntervalOverlap`, `SourceClaimed`, and `OutOfOrder` when epoch `after` was replanned meanwhile.
        """
        mine: set[int] = set()  # tokens of tries whose answer was lost: the epoch may stand there already
        identity = Identity.INTERVAL if after is None else Identity.CURSOR

        def work(tx: Transaction) -> Epoch | None:
            self._register(tx, pipeline, identity, hold, settings)
            known = guards.lock_pipeline(tx, pipeline)
            guards.require_remembered(known)
            rival = self._rival(tx, pipeline, interval, after)
            if rival is not None:
                return to_epoch(rival) if rival["attempt"] in mine else None
            self._require_join(tx, pipeline, plan, after)
            number = int(guards.required(tx.one("number_epoch", pipeline=pipeline))["last_epoch"])
            token = steps.take_token(tx, pipeline, number, Role.BEGIN)
            mine.add(token)
            row = tx.one(
                "insert_epoch",
                pipeline=pipeline,
                epoch=number,
                start=interval.start if interval else None,
                end=interval.end if interval else None,
                attempt=token,
                plan=Jsonb(plan.to_json()),
                dag_id=run.dag_id,
                run_id=run.run_id,
                lease=steps.LEASE,
            )
            steps.freeze_plan(tx, pipeline, number, plan, claims)
            steps.save_run(tx, run, Attempt(pipeline, number, token))
            return to_epoch(guards.required(row))

        return self._connection.run(Role.BEGIN, work)

    def take_over(self, pipeline: str, epoch: int, run: RunKey) -> Epoch:
        """Open a new attempt of an undecided epoch for `run`, or attach `run` to a decided one.

        Raises `EpochBusy` while another run's lease lasts, `EpochVoid` for a range that was given up.
        """

        def work(tx: Transaction) -> Epoch:
            row = guards.lock_epoch(tx, pipeline, epoch)
            if row["state"] == EpochState.VOID:
                raise EpochVoid(f"{guards.name(row)} was given up: {row['reason']}")
            if row["state"] in UNDECIDED:
                guards.require_lease(tx, row, run)
                return to_epoch(steps.open_attempt(tx, row, Role.BEGIN, run=run))
            steps.save_run(tx, run, Attempt(pipeline, epoch, row["attempt"]))
            return to_epoch(row)

        return self._connection.run(Role.BEGIN, work)

    def raise_attempt(
        self, pipeline: str, epoch: int, role: Role, *, only: int | None = None, reason: str = ""
    ) -> Epoch:
        """Void the current attempt and every vote; nobody owns the new one. A decided epoch is returned as it is.

        `only`: raise it only while this attempt is the current one.
        """

        def work(tx: Transaction) -> Epoch:
            row = guards.lock_epoch(tx, pipeline, epoch)
            if row["state"] in UNDECIDED and (only is None or row["attempt"] == only):
                row = steps.open_attempt(tx, row, role, reason=reason)
            return to_epoch(row)

        return self._connection.run(role, work, reason)

    def discard_seal(self, attempt: Attempt, reason: str) -> Epoch:
        """staged → planned: the sealed WAL fails its checks, stage again. Only before the decision.

        Opens a new attempt of the same run, so that no vote for the discarded WAL can count for the next one.
        """
        mine: set[int] = set()

        def work(tx: Transaction) -> Epoch:
            row = guards.lock_epoch(tx, attempt.pipeline, attempt.epoch)
            if row["attempt"] in mine:
                return to_epoch(row)
            guards.require_current(tx, row, attempt)
            if row["state"] == EpochState.PLANNED:
                return to_epoch(row)
            guards.require_state(row, EpochState.STAGED, "discard the WAL of")
            owner = RunKey(row["owner_dag"], row["owner_run"]) if row["owner_run"] is not None else None
            row = steps.open_attempt(tx, row, Role.BEGIN, run=owner, reason=reason)
            mine.add(row["attempt"])
            return to_epoch(guards.required(tx.one("discard_seal", **guards.key(attempt), attempt=row["attempt"])))

        return self._connection.run(Role.BEGIN, work, reason)

    @classmethod
    def _register(
        cls,
        tx: Transaction,
        pipeline: str,
        identity: Identity,
        hold: timedelta | None,
        settings: Mapping[str, Json],
    ) -> None:
        tx.do("ensure_pipeline", pipeline=pipeline, identity=identity.value)
        cls._keep(tx, pipeline, identity, hold, settings)

    @staticmethod
    def _keep(
        tx: Transaction,
        pipeline: str,
        identity: Identity,
        hold: timedelta | None,
        settings: Mapping[str, Json],
    ) -> None:
        row = guards.required(tx.one("find_pipeline", pipeline=pipeline))
        guards.require_remembered(row)
        if row["identity"] != identity:
            raise InvalidPipeline(
                f"pipeline {pipeline} has {row['identity']} epochs in the ledger, its sources now make "
                f"{identity} epochs; give the pipeline another name"
            )
        if hold is not None:
            tx.do("keep_hold", pipeline=pipeline, hold=hold)
        for sink, spec in settings.items():
            tx.do("keep_deployed", pipeline=pipeline, sink=sink, spec=Jsonb(spec))

    @staticmethod
    def _rival(tx: Transaction, pipeline: str, interval: Interval | None, after: int | None) -> Row | None:
        """The epoch that is there already in place of the one to be planned."""
        if interval is None:
            last = tx.one("find_last_epoch", pipeline=pipeline)
            return last if last and last["id"] != after else None
        found = tx.one("find_epoch_of_interval", pipeline=pipeline, start=interval.start, end=interval.end)
        if found and (found["span"].lower, found["span"].upper) != (interval.start, interval.end):
            raise IntervalOverlap(
                f"interval {interval} overlaps {to_epoch(found)} without being equal to it; "
                "an interval belongs to one epoch"
            )
        return found

    @staticmethod
    def _require_join(tx: Transaction, pipeline: str, plan: Plan, after: int | None) -> None:
        if after is None:
            return
        gap = guards.gap(tx, pipeline, after + 1, guards.plan_as_stored(plan))
        if gap:
            raise OutOfOrder(f"pipeline {pipeline}: epoch {after} was replanned meanwhile ({gap}); begin again")
