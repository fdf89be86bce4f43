"""Tokens and attempts: the steps that several transactions take, after they have locked the row."""

from __future__ import annotations

from datetime import timedelta

from lockstep.epoch import Attempt, RunKey
from lockstep.errors import IllegalTransition
from lockstep.ledger._connection import Row, Transaction
from lockstep.ledger._rows import require_row
from lockstep.states import Role

LEASE = timedelta(seconds=30)
_MOST_LOST = 5_000_000  #: tokens; to take so many lasts seconds


def take_token(
    tx: Transaction, pipeline: str, epoch: int, role: Role, sink: str | None = None, attempt: int | None = None
) -> int:
    """The next token of the one sequence, kept as a row."""
    row = tx.one(
        "take_token", pipeline=pipeline, epoch=epoch, sink=sink, attempt=attempt, role=role.value, actor=tx.actor
    )
    return int(require_row(row)["token"])


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
    return require_row(raised)


def save_run(tx: Transaction, run: RunKey, attempt: Attempt) -> None:
    """From now on the tasks of `run` work for `attempt`."""
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
    """None up to `token` is given out any more, and none is taken for it. Raises `IllegalTransition`."""
    last = _skip(tx, 1)
    if token - last > _MOST_LOST:
        raise IllegalTransition(_too_far(pipeline, token, last))
    if last < token:
        _skip(tx, token - last)


def _skip(tx: Transaction, count: int) -> int:
    return int(require_row(tx.one("advance_token_sequence", count=count))["max"])


def advance_token_sequence(tx: Transaction, pipeline: str, epoch: int, token: int) -> None:
    """By taking them: that needs no other right than every task has, and is safe beside others."""
    while (last := take_token(tx, pipeline, epoch, Role.OPERATOR)) <= token:
        if token - last > _MOST_LOST:
            raise IllegalTransition(_too_far(pipeline, token, last))
        tx.do("advance_token_sequence", count=token - last)


def _too_far(pipeline: str, token: int, last: int) -> str:
    return (
        f"something of pipeline {pipeline} carries token {token}, this ledger is at {last}: that can't be caught up "
        "with by counting. If it is a true one, ALTER SEQUENCE lockstep.token RESTART WITH a larger number, then try "
        "again"
    )


def void_epoch(tx: Transaction, row: Row, reason: str) -> Row:
    """Give the range up, in an attempt of its own."""
    row = open_attempt(tx, row, Role.OPERATOR, reason=reason)
    key = {"pipeline": row["pipeline"], "epoch": row["id"]}
    if row["replaces"] is not None:
        tx.do("release_claims", **key)
    return require_row(tx.one("void_epoch", **key, attempt=row["attempt"], reason=reason))
