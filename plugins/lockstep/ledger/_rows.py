"""Conversions between rows of the ledger and the values of `lockstep.epoch`; long arrays as parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice

from lockstep.definition.wal_retention import RetainedWal
from lockstep.epoch import (
    AuditResult,
    Epoch,
    Generation,
    Interval,
    LastShown,
    Outcome,
    Participant,
    PendingAssetEvent,
    Plan,
    Restaged,
    RunKey,
    Verdict,
    Vote,
)
from lockstep.errors import IllegalTransition
from lockstep.ledger._connection import Row
from lockstep.states import EpochState, ParticipantState

CHUNK = 10_000


def texts(values: Iterable[str]) -> str:
    """Array literal of texts, to be cast by the statement. Texts must not contain NUL."""
    items = list(values)
    escaped = "\0".join(items).replace("\\", "\\\\").replace('"', '\\"')
    return '{"' + escaped.replace("\0", '","') + '"}' if items else "{}"


def numbers(values: Iterable[int | None]) -> str:
    """Array literal of numbers."""
    return "{" + ",".join("NULL" if value is None else str(value) for value in values) + "}"


def chunks(values: Iterable[str], size: int = CHUNK) -> Iterator[list[str]]:
    """`values` in lists of at most `size`."""
    remaining = iter(values)
    while chunk := list(islice(remaining, size)):
        yield chunk


def to_epoch(row: Row) -> Epoch:
    span, restaged, generation = row["span"], None, None
    if row["restaged_wal"] is not None:
        restaged = Restaged(row["restaged_wal"], row["restaged_hash"], row["reordered"])
    if row["root"] is not None:
        reason, restores, through = row["restate_reason"], row["restores"], row["replaces_to"]
        generation = Generation(row["root"], row["generation"], row["replaces"], reason, restores, through)
    return Epoch(
        pipeline=row["pipeline"],
        id=row["id"],
        interval=Interval(span.lower, span.upper) if span is not None else None,
        state=EpochState(row["state"]),
        attempt=row["attempt"],
        plan=Plan.from_json(row["plan"]),
        planned_at=row["planned_at"].astimezone(UTC),
        wal=row["wal"],
        manifest_hash=row["manifest_hash"],
        code_version=row["code_version"],
        summary=row["summary"],
        based_on=row["based_on"],
        reason=row["reason"],
        restaged=restaged,
        generation=generation,
    )


def to_participant(row: Row) -> Participant:
    vote = None
    if row["token"] is not None:
        vote = Vote(row["token"], row["handle"], row["target_id"], row["rows"] or {})
    return Participant(
        row["sink"],
        ParticipantState(row["state"]),
        row["attempt"],
        vote,
        row["execution"],
        row["publication"],
        row["unproven"],
        row["compared_at"],
        row["compared_by"],
        row["age"],
    )


def to_last_shown(row: Row) -> LastShown:
    key = row["sink"], row["epoch"], row["manifest_hash"]
    return LastShown(*key, row["target_id"], row["publication"], row["spec"], row["reported_lost"])


def to_pending_event(row: Row) -> PendingAssetEvent:
    runs = tuple(RunKey(*run) for run in row.get("runs") or ())
    key = row["pipeline"], row["epoch"], row["sink"]
    return PendingAssetEvent(*key, row["published_at"], row["published_by"], row.get("age"), row.get("missed"), runs)


def to_retained_wal(row: Row) -> RetainedWal:
    expired = row["expired_at"]
    return RetainedWal(
        row["epoch"],
        row["wal"],
        row["bytes"],
        row["retained_at"].astimezone(UTC),
        expired.astimezone(UTC) if expired is not None else None,
    )


def to_verdict(row: Row) -> Verdict:
    return Verdict(
        row["manifest_hash"],
        Outcome(row["outcome"]),
        tuple(AuditResult(**result) for result in row["results"]),
        row["actor"],
        (datetime.fromisoformat(row["at"]) if isinstance(row["at"], str) else row["at"]).astimezone(UTC),
        row["reason"],
    )


def require_row(row: Row | None) -> Row:
    """`row`, which a guarded update under a row lock always returns."""
    if row is None:
        raise IllegalTransition("the ledger's row changed under its own lock: this is a bug of Lockstep")
    return row
