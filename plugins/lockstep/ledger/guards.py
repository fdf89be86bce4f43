"""What a transaction locks first and asks second. Every guard reads in a statement of its own, under the row's lock."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from lockstep import ways_out
from lockstep.epoch import Attempt, Epoch, Json, Participant, Plan, RunKey
from lockstep.errors import (
    EpochBusy,
    Fenced,
    IllegalTransition,
    InvalidPipeline,
    KeysHeld,
    LedgerConflict,
    NotPrepared,
    OutOfOrder,
    RestageRefused,
    UnknownEpoch,
)
from lockstep.ledger.rows import to_participant
from lockstep.ledger.transaction import Row, Transaction
from lockstep.states import DECIDED, UNDECIDED, EpochState, ParticipantState


def lock_pipeline(tx: Transaction, pipeline: str) -> Row:
    """Whoever numbers epochs or claims files holds this row. Always before an epoch's row, never after it."""
    row = tx.one("lock_pipeline", pipeline=pipeline)
    if row is None:
        raise UnknownEpoch(f"the ledger has no pipeline {pipeline}")
    return row


def require_remembered(row: Row) -> None:
    """A forgotten pipeline's name stays taken. Raises `InvalidPipeline`."""
    if row["forgotten_at"] is not None:
        raise InvalidPipeline(
            f"pipeline {row['name']} was forgotten {forgotten(row)}, its name stays taken: give the pipeline another"
        )


def forgotten(row: Row) -> str:
    """When, by whom and why."""
    return f"on {row['forgotten_at']:%Y-%m-%d %H:%M %Z} by {row['forgotten_by']} ({row['forgotten_why']})"


def lock_epoch(tx: Transaction, pipeline: str, epoch: int) -> Row:
    row = tx.one("lock_epoch", pipeline=pipeline, epoch=epoch)
    if row is None:
        raise UnknownEpoch(f"the ledger has no epoch {epoch} of pipeline {pipeline}")
    return row


def lock_current(tx: Transaction, attempt: Attempt) -> Row:
    """Lock the epoch's row; raises `Fenced` unless `attempt` is its current one."""
    row = lock_epoch(tx, attempt.pipeline, attempt.epoch)
    require_current(tx, row, attempt)
    return row


def require_current(tx: Transaction, row: Row, attempt: Attempt) -> None:
    if row["attempt"] != attempt.token:
        found = tx.one("find_run_of_attempt", **key(attempt), attempt=attempt.token) or {}
        raise Fenced(
            f"{name(row)}: {attempt_name(tx, row, attempt.token)} was voided or superseded by "
            f"{attempt_name(tx, row, row['attempt'])}, votes are per attempt: clear from begin: "
            + ways_out.again(found.get("dag_id"), found.get("run_id"))
        )


def attempt_name(tx: Transaction, row: Row, attempt: int) -> str:
    """For people: which of the epoch's attempts it is; its token aside."""
    found = required(tx.one("count_attempts", pipeline=row["pipeline"], epoch=row["id"], attempt=attempt))
    return f"attempt {found['ordinal']} (token {attempt})" if found["begun"] else f"an abort (token {attempt})"


def require_youngest(tx: Transaction, row: Row, sink: str, execution: int) -> None:
    """Raises `Fenced` when a younger execution of prepare for `sink` has started."""
    found = participants(tx, row["pipeline"], row["id"]).get(sink)
    youngest = found.execution if found else None
    if youngest is not None and youngest > execution:
        raise Fenced(f"{name(row)}: execution {execution} of prepare for {sink} was superseded by {youngest}")


def require_lease(tx: Transaction, row: Row, run: RunKey) -> None:
    """Another run's lease must have run out; a run's own is no obstacle to its retry."""
    own = (row["owner_dag"], row["owner_run"]) == (run.dag_id, run.run_id)
    held = tx.one("find_lease", pipeline=row["pipeline"], epoch=row["id"])
    if held and not own:
        raise EpochBusy(
            f"{name(row)} is held by run {row['owner_run']} of {row['owner_dag']} "
            f"until {held['lease_until']}; try again"
        )


def require_state(row: Row, state: EpochState, verb: str) -> None:
    if row["state"] != state:
        raise IllegalTransition(f"can't {verb} {name(row)}: it is {row['state']}, not {state}")


def require_undecided(row: Row, verb: str) -> None:
    if row["state"] not in UNDECIDED:
        raise IllegalTransition(f"can't {verb} {name(row)}: it is {row['state']}; only an undecided epoch can be")


def require_votes(tx: Transaction, row: Row) -> None:
    """This attempt's votes are exactly the plan's sinks, each of its sink's youngest execution.

    A younger execution rolls older branches back before it has voted itself: from its start on, the older vote is void.
    """
    if row["state"] != EpochState.STAGED:
        raise NotPrepared(
            f"can't commit {name(row)}: it is {row['state']}, its WAL is not sealed: clear from stage, or all of the "
            f"run: {_own_run(row)}"
        )
    found = participants(tx, row["pipeline"], row["id"])
    votes = {sink for sink, participant in found.items() if _votes(participant, row["attempt"])}
    wanted = set(row["plan"]["sinks"])
    if votes != wanted or found.keys() != wanted:
        lacking = sorted(found.keys() ^ votes | wanted ^ votes)
        raise NotPrepared(
            f"can't commit {name(row)}: {attempt_name(tx, row, row['attempt'])} lacks the vote of {', '.join(lacking)}"
            f": clear {', '.join(f'prepare.{sink}' for sink in lacking)} and what follows, or all of the run: "
            f"{_own_run(row)}"
        )


def require_unsent(tx: Transaction, row: Row, sinks: Sequence[str]) -> None:
    """Nobody has begun to publish in any of `sinks`. Raises `RestageRefused`."""
    begun = tx.all(
        "find_publishers", pipeline=row["pipeline"], epoch=row["id"], attempt=row["attempt"], sinks=list(sinks)
    )
    if begun:
        names = ", ".join(one["sink"] for one in begun)
        raise RestageRefused(
            f"{name(row)}: the rows came out in another order than was sealed, and sending to {names} has begun, where "
            "each row is known by its place: receivers would take new rows for repeats. Nothing was changed; bring the "
            "WAL back from a copy, or see what arrived and say `lockstep resolve`"
        )


def require_predecessor_decided(tx: Transaction, pipeline: str, epoch: int) -> None:
    """For cursor pipelines; void epochs don't count."""
    before = tx.one("find_predecessor", pipeline=pipeline, epoch=epoch)
    if before and before["state"] not in DECIDED:
        raise OutOfOrder(
            f"{pipeline} epoch {epoch} waits: epoch {before['id']} is {before['state']}, it has to be decided first"
        )


def require_state_goes_on(tx: Transaction, row: Row) -> None:
    """The state that is to be decided was made from the decided state of the epoch before."""
    before = tx.one("find_predecessor", pipeline=row["pipeline"], epoch=row["id"])
    if row["based_on"] is None and (before is None or before["based_on"] is None):
        return
    decided = before["manifest_hash"] if before else ""
    if row["based_on"] != decided:
        raise LedgerConflict(
            f"{name(row)}: its state was made from {row['based_on'] or 'nothing'}, the epoch before was decided with "
            f"manifest {decided or 'none'}: nothing is decided; {ways_out.replan(row['pipeline'], row['id'])} stages "
            "it anew"
        )


def require_predecessor_published(tx: Transaction, pipeline: str, epoch: int, sink: str) -> None:
    """For cursor pipelines; void epochs, and those that `sink` has no part in, don't count."""
    before = tx.one("find_predecessor_of_sink", pipeline=pipeline, epoch=epoch, sink=sink)
    if before and before["state"] != ParticipantState.PUBLISHED:
        raise OutOfOrder(
            f"{pipeline} epoch {epoch} waits: epoch {before['epoch']} is {before['state']} in {sink}, "
            "it has to be published there first"
        )


def require_turn(tx: Transaction, row: Row, sink: str) -> None:
    """No other epoch of the pipeline is, or has been, validated for unique keys and still has to be published."""
    other = tx.one("find_turn", pipeline=row["pipeline"], epoch=row["id"], sink=sink)
    if other:
        raise KeysHeld(
            f"{name(row)} waits: sink {sink} writes into unique keys, and epoch {other['epoch']} is {other['state']} "
            f"in {other['sink']} and not published, so rows of the two could collide after both decisions; try again "
            f"when it is published. If nobody is at it any more: `lockstep recover {row['pipeline']}`, or, undecided, "
            f"`lockstep abort {row['pipeline']} {other['epoch']} --reason …`"
        )


def require_published(tx: Transaction, row: Row, sink: str, token: int) -> None:
    """The decided vote `token` has been published already; any other was never decided."""
    found = participants(tx, row["pipeline"], row["id"]).get(sink)
    if found is None:
        raise UnknownEpoch(f"{name(row)} has no sink {sink}")
    decided = found.vote.token if found.vote else None
    if found.state is not ParticipantState.PUBLISHED or decided != token:
        raise Fenced(f"{name(row)}: the decided vote of {sink} is {decided}, not {token}")


def gap(tx: Transaction, pipeline: str, epoch: int, plan: Json, replaced: Json | None = None) -> str | None:
    """Where a cursor pipeline's ranges would not join if `epoch` had `plan`, in place of `replaced`. None if they do.

    A source goes on where the last epoch before that names it ended, whatever epochs without it lie between.
    """
    planned = plan["sources"]
    for source in sorted(planned.keys() | (replaced["sources"].keys() if replaced else set())):
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


def _started_at(tx: Transaction, pipeline: str, source: str) -> Json:
    """Where the savepoint that the pipeline began with ended."""
    found = tx.one("find_savepoint", pipeline=pipeline)
    return found["savepoint"]["positions"].get(source) if found else None


def plan_as_stored(plan: Plan) -> Json:
    """The plan as it comes back from the ledger: tuples are lists, say."""
    return json.loads(json.dumps(plan.to_json()))


def participants(tx: Transaction, pipeline: str, epoch: int) -> dict[str, Participant]:
    found = tx.all("list_participants", pipeline=pipeline, epoch=epoch)
    return {row["sink"]: to_participant(row) for row in found}


def required(row: Row | None) -> Row:
    """A guarded update under the row's lock, after its guards have passed, always finds its row."""
    if row is None:
        raise IllegalTransition("the ledger's row changed under its own lock: this is a bug of Lockstep")
    return row


def key(of: Attempt | Epoch) -> Mapping[str, object]:
    return {"pipeline": of.pipeline, "epoch": of.epoch if isinstance(of, Attempt) else of.id}


def name(row: Row) -> str:
    return f"{row['pipeline']} epoch {row['id']}"


def _own_run(row: Row) -> str:
    return ways_out.again(row["owner_dag"], row["owner_run"])


def _votes(participant: Participant, attempt: int) -> bool:
    return (
        participant.state is ParticipantState.PREPARED
        and participant.attempt == attempt
        and participant.vote is not None
        and participant.vote.token >= (participant.execution or 0)
    )
