"""Rebuilding a lost ledger: inserts epochs found in sinks through the regular transitions, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from psycopg2.extras import Json as Jsonb

import lockstep.ledger._steps as steps
from lockstep.epoch import Claim, Generation, Interval, Json, Plan, Vote
from lockstep.errors import IllegalTransition, LedgerConflict
from lockstep.ledger._connection import Transaction, connect_as_owner, require_schema, statement
from lockstep.states import Role

T = TypeVar("T")
#: Tokens skipped above the largest known one: other pipelines of the lost ledger, rebuilt later, may have used them.
MARGIN = 100_000
_AT_ONCE = 5_000  #: epochs or tokens per statement: limited by parameter size (1 GB) and statement_timeout
_REFUSED = "this role may not set the ledger's id to the lost one ({}): rebuild as the owner of the ledger's schema"


@dataclass(frozen=True)
class RebuiltEpoch:
    """A decided epoch as found in sinks and staging. `votes`: by sink; `shown`: sinks that published it. `tokens`: of
    everything found of it."""

    id: int
    interval: Interval | None
    plan: Plan
    wal: str
    manifest_hash: str
    summary: Json
    based_on: str | None
    votes: Mapping[str, Vote]
    shown: frozenset[str]
    tokens: tuple[int, ...]
    cleaned: bool  #: staging has no files of it, or a retained WAL
    planned_at: datetime | None = None
    claims: Mapping[str, Sequence[Claim]] = field(default_factory=dict)
    generation: Generation | None = None  #: None: generation 0
    kept: tuple[str, int] | None = None  #: folder and bytes of the retained WAL of a replaced epoch

    @property
    def published(self) -> bool:
        return self.shown == set(self.votes)


def adopt_deployment(dsn: str, deployment: str) -> None:
    """Give the ledger the id of the lost one. Raises `IllegalTransition` if it has epochs under another id,
    `LedgerRefused` for a role that doesn't own the tables, `LedgerUnavailable`."""
    failed = "the ledger's id is unchanged"
    with connect_as_owner(dsn, "lockstep-rebuild", refused=_REFUSED, failed=failed) as connection:
        require_schema(connection)
        with connection, connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit = on")
            cursor.execute(statement("act_as"), {"role": Role.OPERATOR.value})
            cursor.execute("LOCK TABLE lockstep.epoch IN SHARE MODE")
            cursor.execute(statement("find_deployment"))
            if str((cursor.fetchone() or [None])[0]) == deployment:
                return
            cursor.execute(statement("find_any_epoch"))
            if existing := cursor.fetchone():
                raise IllegalTransition(
                    f"this ledger already has epochs ({existing[0]} epoch {existing[1]}) and can't take the id of the "
                    f"lost one, {deployment}: rebuild into an empty ledger"
                )
            cursor.execute(statement("adopt_deployment"), {"deployment": deployment})


def write_epochs(tx: Transaction, pipeline: str, epochs: Sequence[RebuiltEpoch], token: int) -> None:
    """Insert epochs through the regular transitions. Requires the pipeline's lock.

    Raises `LedgerConflict` for a token that this ledger issued itself, `IntervalOverlap`, `SourceClaimed`.
    """
    _write_tokens(tx, pipeline, epochs)
    by_generation: dict[int, list[RebuiltEpoch]] = {}
    for epoch in epochs:
        by_generation.setdefault(epoch.generation.number if epoch.generation else 0, []).append(epoch)
    for _, generation in sorted(by_generation.items()):  # each replaces a cleaned epoch of the previous one
        for part in _divide(generation):
            _write(tx, pipeline, part)
    for epoch in epochs:
        if epoch.kept is not None:
            tx.do("retain_wal", pipeline=pipeline, epoch=epoch.id, wal=epoch.kept[0], bytes=epoch.kept[1], stays=True)
        for source, claims in epoch.claims.items():
            steps.claim_files(tx, pipeline, epoch.id, source, claims)
        for sink, spec in epoch.plan.sinks.items():
            tx.do("save_planned_sink", pipeline=pipeline, sink=sink, spec=Jsonb(spec))
    steps.skip_tokens(tx, pipeline, token + MARGIN)
    tx.one("act_as", role=Role.OPERATOR.value)


def _write(tx: Transaction, pipeline: str, epochs: Sequence[RebuiltEpoch]) -> None:
    """Insert epochs of one generation number: none of them replaces another."""
    epoch_rows = Jsonb([_epoch(epoch) for epoch in epochs])
    votes = Jsonb([_vote(epoch, sink, vote) for epoch in epochs for sink, vote in epoch.votes.items()])
    of = {"pipeline": pipeline}
    steps: tuple[tuple[Role, str, dict[str, object]], ...] = (
        (Role.BEGIN, "rebuild_epochs", {"epochs": epoch_rows}),
        (Role.BEGIN, "rebuild_participants", {"votes": votes}),
        (Role.STAGE, "rebuild_seals", {"epochs": epoch_rows}),
        (Role.PREPARE, "rebuild_votes", {"votes": votes}),
        (Role.COMMIT, "rebuild_decisions", {}),
        (Role.COMMIT, "rebuild_replaced", {}),
        (Role.RECOVER, "rebuild_publications", {"votes": votes}),
        (Role.RECOVER, "rebuild_published", {}),
        (Role.RECOVER, "rebuild_cleaned", {"epochs": [epoch.id for epoch in epochs if epoch.cleaned]}),
    )
    for role, name, parameters in steps:
        tx.one("act_as", role=role.value)
        tx.do(name, **of, **parameters)


def _write_tokens(tx: Transaction, pipeline: str, epochs: Sequence[RebuiltEpoch]) -> None:
    tokens = {token: rebuilt.id for rebuilt in epochs for token in rebuilt.tokens}
    for part in _divide([{"token": token, "epoch": epoch} for token, epoch in tokens.items()]):
        if tx.do("rebuild_executions", pipeline=pipeline, tokens=Jsonb(part), actor=tx.actor) != len(part):
            raise LedgerConflict(
                f"this ledger has issued tokens that pipeline {pipeline} has in its sinks: something used it before "
                "it was rebuilt. Rebuild into an empty ledger, the pipeline with the largest tokens last"
            )


def _divide(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[at : at + _AT_ONCE] for at in range(0, len(items), _AT_ONCE))


def _epoch(epoch: RebuiltEpoch) -> Json:
    return {
        "id": epoch.id,
        "starts": epoch.interval.start.isoformat() if epoch.interval else None,
        "ends": epoch.interval.end.isoformat() if epoch.interval else None,
        "attempt": min(epoch.tokens),
        "plan": epoch.plan.to_json(),
        "planned_at": epoch.planned_at.isoformat() if epoch.planned_at else None,
        "wal": epoch.wal,
        "manifest_hash": epoch.manifest_hash,
        "summary": epoch.summary,
        "based_on": epoch.based_on,
        "root": epoch.generation.root if epoch.generation else None,
        "generation": epoch.generation.number if epoch.generation else 0,
        "replaces": epoch.generation.replaces if epoch.generation else None,
        "reason": epoch.generation.reason if epoch.generation else None,
    }


def _vote(epoch: RebuiltEpoch, sink: str, vote: Vote) -> Json:
    return {
        "epoch": epoch.id,
        "sink": sink,
        "attempt": min(epoch.tokens),
        "token": vote.token,
        "handle": vote.handle,
        "target_id": vote.target_id,
        "rows": dict(vote.rows),
        "published": sink in epoch.shown,
    }
