"""The steps that several of the ledger's transactions take, after they have locked the row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta

from psycopg2.extras import Json as Jsonb

from lockstep.epoch import Attempt, Claim, Plan, RunKey
from lockstep.errors import SourceClaimed
from lockstep.ledger.arrays import numbers, texts
from lockstep.ledger.guards import required
from lockstep.ledger.transaction import Row, Transaction
from lockstep.states import Role

LEASE = timedelta(seconds=30)


def take_token(
    tx: Transaction, pipeline: str, epoch: int, role: Role, sink: str | None = None, attempt: int | None = None
) -> int:
    """The next token of the one sequence, kept as a row."""
    row = tx.one(
        "take_token", pipeline=pipeline, epoch=epoch, sink=sink, attempt=attempt, role=role.value, actor=tx.actor
    )
    return int(required(row)["token"])


def open_attempt(tx: Transaction, row: Row, role: Role, *, run: RunKey | None = None, reason: str | None = None) -> Row:
    """Decide first: the fresh token fences every older attempt, then their votes are void.

    With a run the attempt is its own, under a lease; without one it is nobody's.
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
    return required(raised)


def save_run(tx: Transaction, run: RunKey, attempt: Attempt) -> None:
    """From now on the tasks of `run` work for `attempt`."""
    tx.do(
        "save_run",
        dag_id=run.dag_id,
        run_id=run.run_id,
        pipeline=attempt.pipeline,
        epoch=attempt.epoch,
        attempt=attempt.token,
    )


def freeze_plan(tx: Transaction, pipeline: str, epoch: int, plan: Plan, claims: Mapping[str, Sequence[Claim]]) -> None:
    """Participants and claims of a plan, under the pipeline's lock. Raises `SourceClaimed`."""
    for sink, spec in plan.sinks.items():
        tx.do("insert_participant", pipeline=pipeline, epoch=epoch, sink=sink)
        tx.do("remember_sink", pipeline=pipeline, sink=sink, spec=Jsonb(spec))
    for source, wanted in claims.items():
        _claim(tx, pipeline, epoch, source, wanted)


def _claim(tx: Transaction, pipeline: str, epoch: int, source: str, claims: Sequence[Claim]) -> None:
    _require_once(source, claims)
    wanted = {
        "pipeline": pipeline,
        "source": source,
        "paths": texts(claim.path for claim in claims),
        "starts": numbers(claim.starts for claim in claims),
        "ends": numbers(claim.ends for claim in claims),
    }
    taken = tx.all("find_claimants", **wanted)
    if taken:
        files = ", ".join(map(_claimant, taken))
        raise SourceClaimed(f"source {source}: a file belongs to one epoch only; claimed already: {files}")
    tx.do(
        "claim_files",
        **wanted,
        epoch=epoch,
        sizes=numbers(claim.size for claim in claims),
        mtimes=numbers(claim.mtime_ns for claim in claims),
        digests=texts(claim.digest or "" for claim in claims),
        heads=texts(claim.head or "" for claim in claims),
    )


def _require_once(source: str, claims: Sequence[Claim]) -> None:
    """What a plan has twice would be read twice: a fault of the source that mustn't pass unseen."""
    found = Counter((claim.path, claim.starts) for claim in claims)
    if twice := sorted(path for (path, _), times in found.items() if times > 1):
        raise SourceClaimed(
            f"source {source}: its plan claims {', '.join(twice[:3])} more than once and would read it as often; a "
            "plan has each file, or range of a file, once: correct the source"
        )


def _claimant(row: Row) -> str:
    upto = f" up to byte {row['ends']}" if (row["ends"] or -1) >= 0 else ""
    return f"{row['path']} (epoch {row['epoch']}{upto})" if row["epoch"] else f"{row['path']} (nothing of it is)"
