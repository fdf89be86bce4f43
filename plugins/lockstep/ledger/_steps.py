"""Steps shared by the ledger's transactions: tokens and attempts, registration, plans and their claims.

Each runs after its transaction has locked the pipeline's or the epoch's row.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta

from psycopg2.extras import Json as Jsonb

import lockstep.ledger._guards as guards
from lockstep.definition.wal_retention import WalRetention
from lockstep.epoch import Attempt, Claim, Epoch, Generation, Interval, Json, KeyedBy, Plan, RunKey
from lockstep.errors import IllegalTransition, IntervalOverlap, InvalidPipeline, OutOfOrder, SourceClaimed
from lockstep.ledger._connection import Row, Transaction
from lockstep.ledger._rows import numbers, require_row, texts, to_epoch
from lockstep.states import Role

LEASE = timedelta(seconds=30)
_MAX_SKIPPED = 5_000_000  #: tokens; skipping so many takes seconds


def take_token(
    tx: Transaction, pipeline: str, epoch: int, role: Role, sink: str | None = None, attempt: int | None = None
) -> int:
    """Issue the next token and record it as a row."""
    row = tx.one(
        "take_token", pipeline=pipeline, epoch=epoch, sink=sink, attempt=attempt, role=role.value, actor=tx.actor
    )
    return int(require_row(row)["token"])


def open_attempt(tx: Transaction, row: Row, role: Role, *, run: RunKey | None = None, reason: str | None = None) -> Row:
    """Open a new attempt: its token fences older attempts, and their votes are voided.

    With `run`, the attempt belongs to that run, under a lease; otherwise it has no owner.
    """
    epoch = {"pipeline": row["pipeline"], "epoch": row["id"]}
    token = take_token(tx, row["pipeline"], row["id"], role)
    raised = tx.one(
        "raise_attempt",
        **epoch,
        token=token,
        dag_id=run.dag_id if run else None,
        run_id=run.run_id if run else None,
        lease=LEASE if run else None,
        reason=reason or None,
    )
    tx.do("void_votes", **epoch)
    if run:
        save_run(tx, run, Attempt(row["pipeline"], row["id"], token))
    return require_row(raised)


def save_run(tx: Transaction, run: RunKey, attempt: Attempt) -> None:
    """Assign the tasks of `run` to `attempt`."""
    tx.do(
        "save_run",
        dag_id=run.dag_id,
        run_id=run.run_id,
        pipeline=attempt.pipeline,
        epoch=attempt.epoch,
        attempt=attempt.token,
        restate_reason=run.restate,
    )


def skip_tokens(tx: Transaction, pipeline: str, token: int) -> None:
    """Skip all tokens up to `token`, without recording them. Raises `IllegalTransition` for an implausible one."""
    last = _skip(tx, 1)
    if token - last > _MAX_SKIPPED:
        raise IllegalTransition(_too_far(pipeline, token, last))
    if last < token:
        _skip(tx, token - last)


def _skip(tx: Transaction, count: int) -> int:
    return int(require_row(tx.one("advance_token_sequence", count=count))["max"])


def advance_token_sequence(tx: Transaction, pipeline: str, epoch: int, token: int) -> None:
    """Issue tokens until they exceed `token`. Needs no additional privileges and is safe under concurrency."""
    while (last := take_token(tx, pipeline, epoch, Role.OPERATOR)) <= token:
        if token - last > _MAX_SKIPPED:
            raise IllegalTransition(_too_far(pipeline, token, last))
        tx.do("advance_token_sequence", count=token - last)


def _too_far(pipeline: str, token: int, last: int) -> str:
    return (
        f"an object of pipeline {pipeline} has token {token}, but this ledger is at {last}: too far to advance. If the "
        "token is genuine, ALTER SEQUENCE lockstep.token RESTART WITH a larger number, then try again"
    )


def void_epoch(tx: Transaction, row: Row, reason: str) -> Row:
    """Void the epoch in a new attempt."""
    row = open_attempt(tx, row, Role.OPERATOR, reason=reason)
    key = {"pipeline": row["pipeline"], "epoch": row["id"]}
    if row["replaces"] is not None:
        tx.do("release_claims", **key)
    return require_row(tx.one("void_epoch", **key, attempt=row["attempt"], reason=reason))


def register_pipeline(
    tx: Transaction,
    pipeline: str,
    identity: KeyedBy,
    recovery_grace: timedelta | None,
    settings: Mapping[str, Json],
    retention: WalRetention | None = None,
) -> None:
    """Register a pipeline, or update it. Raises `InvalidPipeline` as `update_pipeline`."""
    tx.do("ensure_pipeline", pipeline=pipeline, keyed_by=identity.value)
    update_pipeline(tx, pipeline, identity, recovery_grace, settings, retention)


def update_pipeline(
    tx: Transaction,
    pipeline: str,
    identity: KeyedBy,
    recovery_grace: timedelta | None,
    settings: Mapping[str, Json],
    retention: WalRetention | None = None,
) -> None:
    """Store grace, retention and settings. Raises `InvalidPipeline` for another kind of epochs or a forgotten
    pipeline."""
    row = require_row(tx.one("find_pipeline", pipeline=pipeline))
    guards.require_remembered(row)
    if row["keyed_by"] != identity:
        raise InvalidPipeline(
            f"pipeline {pipeline} has {row['keyed_by']} epochs in the ledger, but its sources now "
            f"require {identity} epochs; give the pipeline another name"
        )
    if recovery_grace is not None:
        tx.do("set_recovery_grace", pipeline=pipeline, recovery_grace=recovery_grace)
    if retention is not None:
        tx.do("set_retention", pipeline=pipeline, time=retention.time, epochs=retention.epochs)
    for sink, spec in settings.items():
        tx.do("save_deployed_settings", pipeline=pipeline, sink=sink, spec=Jsonb(spec))


def is_unstarted(tx: Transaction, pipeline: str, savepoint_hash: str) -> bool:
    """Whether the pipeline has no epochs and no savepoint; False if it started from this savepoint.

    Raises `IllegalTransition` if it has epochs or another savepoint.
    """
    last = guards.lock_pipeline(tx, pipeline)["last_epoch"]
    existing = tx.one("find_savepoint", pipeline=pipeline)
    if existing and existing["hash"] == savepoint_hash:
        return False
    if existing or last:
        conflict = "started from another savepoint" if existing else f"has {last} epochs"
        raise IllegalTransition(f"pipeline {pipeline} {conflict}: only a new pipeline can start from a savepoint")
    return True


def find_rival(tx: Transaction, pipeline: str, interval: Interval | None, after: int | None) -> Row | None:
    """The existing epoch of the same interval, or the next cursor epoch."""
    if interval is None:
        last = tx.one("find_last_original", pipeline=pipeline, below=None)
        return last if last and last["id"] != after else None
    rival = tx.one("find_epoch_of_interval", pipeline=pipeline, start=interval.start, end=interval.end)
    if rival and (rival["span"].lower, rival["span"].upper) != (interval.start, interval.end):
        raise IntervalOverlap(
            f"interval {interval} overlaps {to_epoch(rival)} without being equal to it; "
            "an interval belongs to one epoch"
        )
    return rival


def last_in_sequence(tx: Transaction, epoch: Epoch) -> int:
    """Number of the last epoch in the sequence of a cursor that contains `epoch`."""
    rows = tx.all("list_epochs_in_order", pipeline=epoch.pipeline, epoch=epoch.id)
    return max((int(row["id"]) for row in rows), default=epoch.id)


def require_join(tx: Transaction, pipeline: str, plan: Plan, after: int | None) -> None:
    """Raise `OutOfOrder` unless a new cursor epoch starts where epoch `after` ended."""
    if after is None:
        return
    gap = _find_gap(tx, pipeline, after + 1, _as_stored(plan))
    if gap:
        raise OutOfOrder(f"pipeline {pipeline}: epoch {after} was replanned meanwhile ({gap}); begin again")


def require_joins(tx: Transaction, row: Row, plan: Plan) -> None:
    """Raise `IllegalTransition` unless a cursor epoch with this plan still joins its neighbours, or keeps the range
    that it replaces."""
    if row["span"] is not None:
        return
    if row["generation"] > 0:
        if _divided(_as_stored(plan)) != _divided(row["plan"]):
            raise IllegalTransition(
                f"can't replan {guards.epoch_name(row)} with another range than the one it replaces"
            )
        return
    gap = _find_gap(tx, row["pipeline"], row["id"], _as_stored(plan), row["plan"])
    if gap:
        raise IllegalTransition(
            f"can't replan {guards.epoch_name(row)} with this range: {gap}; keep the range, replan the last epoch "
            "only, or void the epochs in between"
        )


def insert_epoch(
    tx: Transaction,
    pipeline: str,
    plan: Plan,
    claims: Mapping[str, Sequence[Claim]],
    run: RunKey,
    interval: Interval | None,
    generation: Generation | None = None,
) -> Row:
    """Insert an epoch with the next number and its first attempt, owned by `run`. Requires the pipeline's lock. Raises
    `SourceClaimed`."""
    number = int(require_row(tx.one("number_epoch", pipeline=pipeline))["last_epoch"])
    token = take_token(tx, pipeline, number, Role.BEGIN)
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
        lease=LEASE,
        root=generation.root if generation else None,
        generation=generation.number if generation else 0,
        replaces=generation.replaces if generation else None,
        replaces_to=generation.through if generation else None,
        reason=generation.reason if generation else None,
        restores=generation.restores if generation else None,
    )
    epoch_row = require_row(row)
    freeze_plan(tx, epoch_row, plan, claims)
    save_run(tx, run, Attempt(pipeline, number, token))
    return epoch_row


def freeze_plan(tx: Transaction, row: Row, plan: Plan, claims: Mapping[str, Sequence[Claim]]) -> None:
    """Insert participants and claims of a plan. Requires the pipeline's lock. Claims of other generations of the range
    count as its own. Raises `SourceClaimed`."""
    pipeline, epoch = row["pipeline"], row["id"]
    own = (
        [generation["id"] for generation in tx.all("list_generations", pipeline=pipeline, root=row["root"])]
        if row["root"]
        else []
    )
    for sink, spec in plan.sinks.items():
        tx.do("insert_participant", pipeline=pipeline, epoch=epoch, sink=sink)
        tx.do("save_planned_sink", pipeline=pipeline, sink=sink, spec=Jsonb(spec))
    for source, files in claims.items():
        claim_files(tx, pipeline, epoch, source, files, own)


def claim_files(
    tx: Transaction, pipeline: str, epoch: int, source: str, claims: Sequence[Claim], own: Sequence[int] = ()
) -> None:
    """Claim files; those claimed by the epochs `own` are skipped. Requires the pipeline's lock. Raises
    `SourceClaimed`."""
    _require_once(source, claims)
    if own:
        paths = texts(claim.path for claim in claims)
        own_claims = tx.all("find_own_claims", pipeline=pipeline, source=source, paths=paths, own=list(own))
        own_paths = {claim_row["path"] for claim_row in own_claims}
        claims = [claim for claim in claims if claim.path not in own_paths]
    parameters = {
        "pipeline": pipeline,
        "source": source,
        "paths": texts(claim.path for claim in claims),
        "starts": numbers(claim.starts for claim in claims),
        "ends": numbers(claim.ends for claim in claims),
    }
    conflicts = tx.all("find_conflicting_claims", **parameters)
    if conflicts:
        claimants = []
        for row in conflicts:
            upto = f" up to byte {row['ends']}" if (row["ends"] or -1) >= 0 else ""
            claimant = f"epoch {row['epoch']}{upto}" if row["epoch"] else "its beginning is unclaimed"
            claimants.append(f"{row['path']} ({claimant})")
        raise SourceClaimed(
            f"source {source}: a file belongs to one epoch only; claimed already: {', '.join(claimants)}"
        )
    tx.do(
        "claim_files",
        **parameters,
        epoch=epoch,
        sizes=numbers(claim.size for claim in claims),
        mtimes=numbers(claim.mtime_ns for claim in claims),
        digests=texts(claim.digest or "" for claim in claims),
        heads=texts(claim.head or "" for claim in claims),
    )


def _require_once(source: str, claims: Sequence[Claim]) -> None:
    """Raise `SourceClaimed` for a file, or range of a file, that the plan contains twice."""
    counts = Counter((claim.path, claim.starts) for claim in claims)
    if twice := sorted(path for (path, _), times in counts.items() if times > 1):
        raise SourceClaimed(
            f"source {source}: its plan claims {', '.join(twice[:3])} more than once and would read it repeatedly: "
            "correct the source"
        )


def _find_gap(tx: Transaction, pipeline: str, epoch: int, plan: Json, replaced: Json | None = None) -> str | None:
    """Describe a gap between ranges that `plan` would cause for `epoch`, in place of the plan `replaced`; None if all
    join.

    A source continues at the end of the last preceding epoch that contains it, whatever epochs are in between.
    """
    planned = _divided(plan)
    for source in sorted(planned.keys() | (_divided(replaced).keys() if replaced else set())):
        of = {"pipeline": pipeline, "epoch": epoch, "source": source}
        before, after = tx.one("find_source_before", **of), tx.one("find_source_after", **of)
        end = before["end"] if before else _started_at(tx, pipeline, source)
        joins = []
        if source in planned:
            joins.append((end, planned[source]["start"]))
            end = planned[source]["end"]
        if after:
            joins.append((end, after["start"]))
        for end, start in joins:
            if end != start:
                return f"source {source} would end at {json.dumps(end)} and go on at {json.dumps(start)}"
    return None


def _divided(plan: Json) -> Json:
    """Sources that are read in consecutive ranges, not as snapshots."""
    return {name: planned for name, planned in plan["sources"].items() if not planned.get("snapshot")}


def _started_at(tx: Transaction, pipeline: str, source: str) -> Json:
    """End position of the source in the savepoint that the pipeline started from."""
    start = tx.one("find_savepoint", pipeline=pipeline)
    return start["savepoint"]["positions"].get(source) if start else None


def _as_stored(plan: Plan) -> Json:
    """The plan as the ledger returns it, with lists for tuples."""
    return json.loads(json.dumps(plan.to_json()))
