"""Locks and preconditions of the ledger's transactions. Guards read in separate statements, under the row's lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lockstep.epoch import Attempt, Epoch, Outcome, Participant, RunKey, Verdict, Vote
from lockstep.errors import (
    EpochBusy,
    EpochHeld,
    Fenced,
    IllegalTransition,
    InvalidPipeline,
    KeysHeld,
    LedgerConflict,
    NotAudited,
    NotPrepared,
    OutOfOrder,
    RestageRefused,
    UnknownEpoch,
    WalGone,
)
from lockstep.ledger._connection import Row, Transaction
from lockstep.ledger._rows import require_row, to_participant, to_verdict
from lockstep.observability import suggestions
from lockstep.states import DECIDED, UNDECIDED, EpochState, ParticipantState


def lock_pipeline(tx: Transaction, pipeline: str) -> Row:
    """Lock the pipeline's row for numbering epochs or claiming files. Always before an epoch's row, never after it."""
    row = tx.one("lock_pipeline", pipeline=pipeline)
    if row is None:
        raise UnknownEpoch(f"the ledger has no pipeline {pipeline}")
    return row


def require_remembered(row: Row) -> None:
    """Raise `InvalidPipeline` for a forgotten pipeline: its name can't be reused."""
    if row["forgotten_at"] is not None:
        raise InvalidPipeline(
            f"pipeline {row['name']} was forgotten {describe_forgetting(row)} and its name can't be reused: "
            "choose another name"
        )


def describe_forgetting(row: Row) -> str:
    """When the pipeline was forgotten, by which actor and why."""
    return f"on {row['forgotten_at']:%Y-%m-%d %H:%M %Z} by {row['forgotten_by']} ({row['forgotten_reason']})"


def lock_epoch(tx: Transaction, pipeline: str, epoch: int) -> Row:
    row = tx.one("lock_epoch", pipeline=pipeline, epoch=epoch)
    if row is None:
        raise UnknownEpoch(f"the ledger has no epoch {epoch} of pipeline {pipeline}")
    return row


def lock_current(tx: Transaction, attempt: Attempt) -> Row:
    """Lock the epoch's row. Raises `Fenced` unless `attempt` is the current one."""
    row = lock_epoch(tx, attempt.pipeline, attempt.epoch)
    require_current(tx, row, attempt)
    return row


def require_current(tx: Transaction, row: Row, attempt: Attempt) -> None:
    if row["attempt"] != attempt.token:
        run = tx.one("find_run_of_attempt", **key(attempt), attempt=attempt.token) or {}
        raise Fenced(
            f"{epoch_name(row)}: {attempt_name(tx, row, attempt.token)} was voided or superseded by "
            f"{attempt_name(tx, row, row['attempt'])}, votes are per attempt: clear from begin: "
            + suggestions.clear(run.get("dag_id"), run.get("run_id"))
        )


def attempt_name(tx: Transaction, row: Row, attempt: int) -> str:
    """Readable name of an attempt: its ordinal and token."""
    count = require_row(tx.one("count_attempts", pipeline=row["pipeline"], epoch=row["id"], attempt=attempt))
    return f"attempt {count['ordinal']} (token {attempt})" if count["by_begin"] else f"an abort (token {attempt})"


def require_youngest(tx: Transaction, row: Row, sink: str, execution: int) -> None:
    """Raise `Fenced` if a younger execution of prepare for `sink` has started."""
    participant = list_participants(tx, row["pipeline"], row["id"]).get(sink)
    youngest = participant.execution if participant else None
    if youngest is not None and youngest > execution:
        raise Fenced(f"{epoch_name(row)}: execution {execution} of prepare for {sink} was superseded by {youngest}")


def require_lease(tx: Transaction, row: Row, run: RunKey) -> None:
    """Raise `EpochBusy` while another run's lease is active. A run's own lease does not block its retry, except for
    commands: issuing a command twice is no retry."""
    own = (row["owner_dag"], row["owner_run"]) == (run.dag_id, run.run_id) and run.dag_id not in suggestions.COMMANDS
    lease = tx.one("find_lease", pipeline=row["pipeline"], epoch=row["id"])
    if lease and not own:
        raise EpochBusy(
            f"{epoch_name(row)} is held by run {row['owner_run']} of {row['owner_dag']} "
            f"until {lease['lease_until']}; try again"
        )


def require_state(row: Row, state: EpochState, verb: str) -> None:
    if row["state"] != state:
        raise IllegalTransition(f"can't {verb} {epoch_name(row)}: it is {row['state']}, not {state}")


def require_undecided(row: Row, verb: str) -> None:
    if row["state"] not in UNDECIDED:
        raise IllegalTransition(f"can't {verb} {epoch_name(row)}: it is {row['state']}; only an undecided epoch can be")


def require_attempt(row: Row, only: int | None, verb: str) -> None:
    if only is not None and row["attempt"] != only:
        raise IllegalTransition(f"can't {verb} {epoch_name(row)}: another attempt began meanwhile")


def require_votes(tx: Transaction, row: Row) -> None:
    """Require exactly the plan's sinks as votes of this attempt, each by its sink's youngest execution, and no held
    verdict.

    A younger execution rolls older branches back before it votes. From its start on, the older vote is void.
    """
    if row["state"] != EpochState.STAGED:
        raise NotPrepared(
            f"can't commit {epoch_name(row)}: it is {row['state']}, its WAL is not sealed: clear from stage, or the "
            f"whole run: {_own_run(row)}"
        )
    require_verdict(tx, row)
    participants = list_participants(tx, row["pipeline"], row["id"])
    votes = {
        sink
        for sink, participant in participants.items()
        if participant.state is ParticipantState.PREPARED
        and participant.attempt == row["attempt"]
        and participant.vote is not None
        and participant.vote.token >= (participant.execution or 0)
    }
    sinks = set(row["plan"]["sinks"])
    if votes != sinks or participants.keys() != sinks:
        lacking = sorted(participants.keys() ^ votes | sinks ^ votes)
        raise NotPrepared(
            f"can't commit {epoch_name(row)}: {attempt_name(tx, row, row['attempt'])} lacks the vote of "
            f"{', '.join(lacking)}: clear {', '.join(f'prepare.{sink}' for sink in lacking)} and later tasks, or the "
            f"whole run: {_own_run(row)}"
        )


def find_verdict(tx: Transaction, row: Row) -> Verdict | None:
    """Verdict on the currently sealed WAL."""
    verdict = tx.one("find_verdict", pipeline=row["pipeline"], epoch=row["id"])
    return to_verdict(verdict) if verdict else None


def require_verdict(tx: Transaction, row: Row) -> None:
    """If the plan has audits, require a passed or released verdict on the sealed WAL. Raises `EpochHeld`,
    `NotAudited`."""
    if not row["plan"].get("audits"):
        return
    verdict = find_verdict(tx, row)
    if verdict is None:
        raise NotAudited(
            f"{epoch_name(row)} has audits, but no verdict on its WAL: clear from audit, or the whole run: "
            f"{_own_run(row)}. If the audits were removed from the pipeline, "
            f"{suggestions.replan(row['pipeline'], row['id'])} replans it without them"
        )
    require_not_held(row["pipeline"], row["id"], verdict)


def require_judged(row: Row, verdict: Verdict, manifest: str) -> None:
    """Raise `IllegalTransition` unless the verdict is on the manifest whose hash the operator gave, of which twelve
    digits suffice. A WAL staged again has rows that were not reviewed."""
    if len(manifest) >= suggestions.MANIFEST_DIGITS and verdict.manifest_hash.startswith(manifest):
        return
    mismatch = (
        f"by manifest {manifest}, it was staged again since" if manifest else "without the manifest that was reviewed"
    )
    now = f"manifest {verdict.manifest_hash[: suggestions.MANIFEST_DIGITS]} is {verdict}"
    if verdict.outcome is Outcome.HELD:
        now = f"it is {describe_hold(row['pipeline'], row['id'], verdict)}"
    raise IllegalTransition(f"can't release {epoch_name(row)} {mismatch}: {now}")


def require_not_held(pipeline: str, epoch: int, verdict: Verdict) -> None:
    """Raise `EpochHeld`, with the possible commands."""
    if verdict.outcome is Outcome.HELD:
        raise EpochHeld(f"{pipeline} epoch {epoch} is {describe_hold(pipeline, epoch, verdict)}")


def describe_hold(pipeline: str, epoch: int, verdict: Verdict) -> str:
    """Why an epoch is held, and the commands to continue."""
    return (
        f"{verdict}, and not published: {suggestions.release(pipeline, epoch, verdict.manifest_hash)} "
        f"publishes it as it is, {suggestions.replan(pipeline, epoch)} stages it again, "
        f"{suggestions.void(pipeline, epoch)} gives up its range"
    )


def require_unsent(tx: Transaction, row: Row, sinks: Sequence[str]) -> None:
    """Raise `RestageRefused` if publishing has started in any of `sinks`."""
    publishers = tx.all(
        "find_publishers", pipeline=row["pipeline"], epoch=row["id"], attempt=row["attempt"], sinks=list(sinks)
    )
    if publishers:
        names = ", ".join(publisher["sink"] for publisher in publishers)
        raise RestageRefused(
            f"{epoch_name(row)}: the restaged rows are in another order than the sealed ones, and publishing "
            f"to {names} has begun, which identifies rows by position: receivers would drop new rows as duplicates. "
            "Nothing was changed; restore the WAL from a copy, or check what arrived and use `lockstep resolve`"
        )


def require_predecessor_decided(tx: Transaction, pipeline: str, epoch: int) -> None:
    """Raise `OutOfOrder` while the predecessor of a cursor epoch is undecided."""
    before = tx.one("find_predecessor", pipeline=pipeline, epoch=epoch)
    if before and before["state"] not in DECIDED:
        raise OutOfOrder(
            f"{pipeline} epoch {epoch} waits: epoch {before['id']} is {before['state']}, which must be decided first"
        )


def lock_replaced(tx: Transaction, row: Row) -> list[int]:
    """Lock the epochs that this one replaces; returns their numbers. Raises `IllegalTransition` unless each is
    cleaned."""
    numbers = [replaced["id"] for replaced in tx.all("list_replaced", pipeline=row["pipeline"], epoch=row["id"])]
    for number in numbers:
        require_state(lock_epoch(tx, row["pipeline"], number), EpochState.CLEANED, "replace")
    return numbers


def require_kept(tx: Transaction, pipeline: str, epoch: int) -> None:
    """Raise `WalGone` unless the epoch's WAL is retained and not expired."""
    wal = tx.one("find_retained_wal", pipeline=pipeline, epoch=epoch)
    if wal is None or wal["expired_at"] is not None:
        raise WalGone(
            f"the WAL of {pipeline} epoch {epoch} isn't kept{' any more' if wal else ''}: its rows can't be restored; "
            f"`lockstep wal list {pipeline}` lists existing ones, Pipeline(keep_wal=…) sets their retention"
        )


def require_keyed_state_follows(tx: Transaction, row: Row) -> None:
    """Require that the keyed state is based on the decided state of the predecessor."""
    before = tx.one("find_predecessor", pipeline=row["pipeline"], epoch=row["id"])
    if row["based_on"] is None and (before is None or before["based_on"] is None):
        return
    decided = before["manifest_hash"] if before else ""
    if row["based_on"] != decided:
        raise LedgerConflict(
            f"{epoch_name(row)}: its state is based on {row['based_on'] or 'nothing'}, but the preceding epoch was "
            f"decided with manifest {decided or 'none'}: not committed; "
            f"{suggestions.replan(row['pipeline'], row['id'])} stages it again"
        )


def require_predecessor_published(tx: Transaction, pipeline: str, epoch: int, sink: str) -> None:
    """Raise `OutOfOrder` until the predecessor of a cursor epoch in this sink is published there."""
    before = tx.one("find_predecessor_of_sink", pipeline=pipeline, epoch=epoch, sink=sink)
    if before and before["state"] != ParticipantState.PUBLISHED:
        raise OutOfOrder(
            f"{pipeline} epoch {epoch} waits: epoch {before['epoch']} is {before['state']} in {sink}, "
            "and must be published there first"
        )


def require_turn(tx: Transaction, row: Row, sink: str) -> None:
    """Raise `KeysHeld` while another epoch of the pipeline is validated for unique keys and not published."""
    holder = tx.one("find_turn_holder", pipeline=row["pipeline"], epoch=row["id"], sink=sink)
    if holder:
        raise KeysHeld(
            f"{epoch_name(row)} waits: sink {sink} writes to unique keys, and epoch {holder['epoch']} is "
            f"{holder['state']} in {holder['sink']} and not published, so rows of both could collide after the "
            f"decisions; try again when it is published. If it is idle: `lockstep recover "
            f"{row['pipeline']}`, or, undecided, `lockstep abort {row['pipeline']} {holder['epoch']} --reason …`"
        )


def require_published(tx: Transaction, row: Row, sink: str, token: int) -> None:
    """Require that the decided vote `token` is published. Raises `Fenced` for any other token."""
    participant = list_participants(tx, row["pipeline"], row["id"]).get(sink)
    if participant is None:
        raise UnknownEpoch(f"{epoch_name(row)} has no sink {sink}")
    decided = participant.vote.token if participant.vote else None
    if participant.state is not ParticipantState.PUBLISHED or decided != token:
        raise Fenced(f"{epoch_name(row)}: the decided vote of {sink} is {decided}, not {token}")


def list_participants(tx: Transaction, pipeline: str, epoch: int) -> dict[str, Participant]:
    rows = tx.all("list_participants", pipeline=pipeline, epoch=epoch)
    return {row["sink"]: to_participant(row) for row in rows}


def has_vote(tx: Transaction, row: Row, sink: str, vote: Vote) -> bool:
    """Whether this vote is recorded already. Raises `Fenced` if another one was decided."""
    participant = list_participants(tx, row["pipeline"], row["id"]).get(sink)
    if participant is None:
        raise UnknownEpoch(f"{epoch_name(row)} was planned without sink {sink}")
    outdated = row["state"] in UNDECIDED and vote.token < (participant.execution or 0)
    if participant.vote == vote and participant.attempt == row["attempt"] and not outdated:
        return True
    if row["state"] in DECIDED:
        decided = participant.vote.token if participant.vote else None
        raise Fenced(
            f"{epoch_name(row)} was decided with another vote for {sink}, of execution {decided}; the vote of "
            f"execution {vote.token} doesn't count"
        )
    return False


def key(of: Attempt | Epoch) -> Mapping[str, object]:
    return {"pipeline": of.pipeline, "epoch": of.epoch if isinstance(of, Attempt) else of.id}


def epoch_name(row: Row) -> str:
    return f"{row['pipeline']} epoch {row['id']}"


def _own_run(row: Row) -> str:
    return suggestions.clear(row["owner_dag"], row["owner_run"])
