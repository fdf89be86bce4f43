"""Read access to the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Self

import lockstep.ledger._guards as guards
from lockstep.definition.wal_retention import RetainedWal, WalRetention
from lockstep.epoch import (
    Attempt,
    Claim,
    Epoch,
    Interval,
    Json,
    LastShown,
    Participant,
    PendingAssetEvent,
    Position,
    RunKey,
    Verdict,
)
from lockstep.errors import AlreadyDecided, LedgerRefused, UnknownEpoch
from lockstep.ledger._connection import LedgerConnection, Row, Transaction
from lockstep.ledger._rows import (
    chunks,
    texts,
    to_epoch,
    to_kept_wal,
    to_last_shown,
    to_participant,
    to_pending_event,
    to_verdict,
)
from lockstep.states import DECIDED, Role


@dataclass(frozen=True)
class SinkSettings:
    """`deployed`: a spec with these arguments alone; None before any `begin`. `override`: goes before it."""

    deployed: Json | None
    override: Mapping[str, Json]


@dataclass(frozen=True)
class Override:
    """A person's word on one sink. `settings` empty: what was said before is taken back."""

    sink: str
    settings: Mapping[str, Json]
    actor: str
    reason: str
    at: datetime


@dataclass(frozen=True)
class LastWord:
    """The last entry of a participant's history: who told it, of which of its tokens, and why. `age`: by Postgres'
    clock."""

    id: int
    age: timedelta
    token: int | None
    role: Role
    actor: str
    reason: str | None


class LedgerReader:
    """Raises `LedgerUnavailable` when the ledger can't be reached and `LedgerRefused` when it can't be trusted."""

    def __init__(self, dsn: str, actor: str | None = None) -> None:
        self._connection = LedgerConnection(dsn, actor)
        self._deployment: str | None = None
        self.opened_at = monotonic()

    @property
    def actor(self) -> str:
        return self._connection.actor

    def clone(self) -> Self:
        """The same ledger on a connection of its own, for another thread."""
        return type(self)(self._connection.dsn, self.actor)

    def compacting(self, pipeline: str, sink: str) -> AbstractContextManager[bool]:
        """Whether nobody else compacts this sink's table; until the block ends nobody else gets to."""
        return self._alone(f"lockstep compaction {pipeline} {sink}")

    def recovering(self, pipeline: str) -> AbstractContextManager[bool]:
        """The same of who recovers the pipeline."""
        return self._alone(f"lockstep recovery {pipeline}")

    @contextmanager
    def _alone(self, key: str) -> Iterator[bool]:
        """Nothing safe rests on it: a link that breaks ends it."""
        with closing(self.clone()) as session:
            lock = session._find_one("try_advisory_lock", key=key)
            yield bool(lock and lock["held"])

    def close(self) -> None:
        self._connection.close()

    def deployment(self) -> str:
        """The UUID that the first migration made; in every handle and folder name."""
        if self._deployment is None:
            row = self._find_one("find_deployment")
            if row is None:
                raise LedgerRefused("the ledger has lost its deployment's id: restore the table lockstep.deployment")
            self._deployment = str(row["id"])
        return self._deployment

    def now(self) -> datetime:
        """The server's time, by which everything that depends on time goes."""
        row = self._find_one("find_time")
        assert row is not None, "a SELECT of no table has a row"
        now: datetime = row["now"]
        return now

    def recovery_grace(self, pipeline: str) -> timedelta:
        """How long recovery leaves the pipeline's undecided attempts alone. Raises `UnknownEpoch`."""
        row = self._find_one("find_pipeline", pipeline=pipeline)
        if row is None:
            raise UnknownEpoch(f"the ledger has no pipeline {pipeline!r}")
        recovery_grace: timedelta = row["recovery_grace"]
        return recovery_grace

    def wal_retention(self, pipeline: str) -> WalRetention:
        """As the definition that began last says it. Raises `UnknownEpoch`."""
        row = self._find_one("find_pipeline", pipeline=pipeline)
        if row is None:
            raise UnknownEpoch(f"the ledger has no pipeline {pipeline!r}")
        return WalRetention(row["keep_wal_time"], row["keep_wal_epochs"])

    def kept_wals(self, pipeline: str) -> list[RetainedWal]:
        """The WALs that have stayed after cleanup, oldest epoch first."""
        return [to_kept_wal(row) for row in self._find_all("list_retained_wals", pipeline=pipeline)]

    def kept_wal(self, pipeline: str, epoch: int) -> RetainedWal | None:
        row = self._find_one("find_retained_wal", pipeline=pipeline, epoch=epoch)
        return to_kept_wal(row) if row else None

    def wals(self, pipeline: str, limit: int) -> list[tuple[Epoch, RetainedWal | None]]:
        """The sealed WALs that are there, youngest epoch first: of epochs that aren't finished, and those kept."""
        rows = self._find_all("list_wals", pipeline=pipeline, limit=limit)
        return [(to_epoch(row), _kept_of(row)) for row in rows]

    def due_wals(self, pipeline: str) -> list[RetainedWal]:
        """Those that `expire_wals` would give back now."""
        return [to_kept_wal(row) for row in self._find_all("list_expiring_wals", pipeline=pipeline)]

    def settings(self, pipeline: str, sink: str) -> SinkSettings:
        """The operational arguments of a sink that any definition has been deployed with, and any person has said."""
        row = self._find_one("find_settings", pipeline=pipeline, sink=sink) or {}
        return SinkSettings(row.get("deployed"), row.get("override") or {})

    def overrides(self, pipeline: str) -> list[Override]:
        """Everything that people have said of the operational arguments of the pipeline's sinks, the last one first."""
        return [Override(**row) for row in self._find_all("list_overrides", pipeline=pipeline)]

    def planned_sinks(self, pipeline: str) -> list[Json]:
        """The spec of every sink that was planned in the last seven days, plans that were replaced included."""
        return [row["spec"] for row in self._find_all("list_planned_sinks", pipeline=pipeline)]

    def find_run(self, run: RunKey) -> Attempt | None:
        """The attempt that this run's own `begin` took."""
        row = self._find_one("find_run", dag_id=run.dag_id, run_id=run.run_id)
        return Attempt(row["pipeline"], row["epoch"], row["attempt"]) if row else None

    def run_restates(self, run: RunKey) -> str | None:
        """Why this run was to restate when it got its epoch; None if it wasn't."""
        row = self._find_one("find_run", dag_id=run.dag_id, run_id=run.run_id)
        return row["restate_reason"] if row else None

    def restated_for(self, life: Epoch) -> list[tuple[Epoch, str]]:
        """Lives of a range with the reasons for which runs were to restate it when they got them, the first one first;
        none that was given up."""
        return [
            (to_epoch(row), row["restate_request"])
            for row in self._find_all("list_restate_reasons", pipeline=life.pipeline, root=life.root)
        ]

    def require_current(self, attempt: Attempt) -> None:
        """Raises `Fenced` unless it is its epoch's current attempt, `UnknownEpoch`."""

        def work(tx: Transaction) -> None:
            row = tx.one("find_epoch", **guards.key(attempt))
            if row is None:
                raise UnknownEpoch(f"the ledger has no epoch {attempt.epoch} of pipeline {attempt.pipeline}")
            guards.require_current(tx, row, attempt)

        self._connection.run(Role.OPERATOR, work)

    def attempt_name(self, epoch: Epoch) -> str:
        """For people: which attempt at the epoch its current one is; the token aside."""
        row = {"pipeline": epoch.pipeline, "id": epoch.id}
        return self._connection.run(Role.OPERATOR, lambda tx: guards.attempt_name(tx, row, epoch.attempt))

    def require_running(self, attempt: Attempt, sink: str | None = None, execution: int = 0) -> None:
        """Raises `AlreadyDecided`; `Fenced` when a younger attempt, or execution of prepare for `sink`, took over."""

        def work(tx: Transaction) -> None:
            row = guards.lock_epoch(tx, attempt.pipeline, attempt.epoch)
            if row["state"] in DECIDED:
                raise AlreadyDecided(f"{guards.epoch_name(row)} was decided meanwhile, it is {row['state']}")
            guards.require_current(tx, row, attempt)
            if sink is not None:
                guards.require_youngest(tx, row, sink, execution)

        self._connection.run(Role.OPERATOR, work)

    def require_predecessor_decided(self, epoch: Epoch) -> None:
        """Raises `OutOfOrder`: a cursor pipeline prepares n+1, and makes its state, after n is committed."""
        if epoch.in_order:
            self._connection.run(
                Role.PREPARE, lambda tx: guards.require_predecessor_decided(tx, epoch.pipeline, epoch.id)
            )

    def predecessor(self, epoch: Epoch) -> Epoch | None:
        """The epoch that a cursor epoch follows; those that are void, or were replaced, don't count."""
        row = self._find_one("find_predecessor", pipeline=epoch.pipeline, epoch=epoch.id)
        return to_epoch(row) if row else None

    def require_predecessor_published(self, epoch: Epoch, sink: str) -> None:
        """Raises `OutOfOrder`: a sink publishes a cursor pipeline's epochs in order."""
        if epoch.in_order:
            self._connection.run(
                Role.PUBLISH, lambda tx: guards.require_predecessor_published(tx, epoch.pipeline, epoch.id, sink)
            )

    def epoch(self, pipeline: str, epoch: int) -> Epoch:
        """Raises `UnknownEpoch`."""
        row = self._find_one("find_epoch", pipeline=pipeline, epoch=epoch)
        if row is None:
            raise UnknownEpoch(f"the ledger has no epoch {epoch} of pipeline {pipeline}")
        return to_epoch(row)

    def epoch_of_interval(self, pipeline: str, interval: Interval) -> Epoch | None:
        """The epoch whose interval overlaps `interval`, equal or not."""
        row = self._find_one("find_epoch_of_interval", pipeline=pipeline, start=interval.start, end=interval.end)
        return to_epoch(row) if row else None

    def generations(self, epoch: Epoch) -> list[Epoch]:
        """Every life of the epoch's range, the original first; those that were given up, too."""
        return [to_epoch(row) for row in self._find_all("list_generations", pipeline=epoch.pipeline, root=epoch.root)]

    def replaced(self, epoch: Epoch) -> list[Epoch]:
        """Those whose place this one is to take, or has taken, in order."""
        if epoch.generation is None:
            return []
        return [to_epoch(row) for row in self._find_all("list_replaced", pipeline=epoch.pipeline, epoch=epoch.id)]

    def seals_replaced(self, epoch: Epoch) -> list[Json]:
        """What the seals of those have counted whose place this one is to take, or has taken."""
        rows = self._find_all("list_replaced", pipeline=epoch.pipeline, epoch=epoch.id)
        return [row["summary"] or {} for row in rows]

    def standing_from(self, epoch: Epoch) -> list[Epoch]:
        """A cursor's epochs from this one on that follow one another now."""
        return [
            to_epoch(row) for row in self._find_all("list_epochs_in_order", pipeline=epoch.pipeline, epoch=epoch.id)
        ]

    def last_standing(self, epoch: Epoch, limit: int) -> list[Epoch]:
        """This epoch of a cursor and those that it follows, at most `limit`, the youngest first; neither void ones, nor
        those that were replaced."""
        rows = self._find_all("list_predecessors", pipeline=epoch.pipeline, epoch=epoch.id, limit=limit)
        return [to_epoch(row) for row in rows]

    def successor(self, epoch: Epoch) -> Epoch | None:
        """The decided epoch that has taken this one's place."""
        row = self._find_one("find_successor", pipeline=epoch.pipeline, root=epoch.root, epoch=epoch.id)
        return to_epoch(row) if row else None

    def last_successor(self, epoch: Epoch) -> Epoch | None:
        """The last decided epoch numbered above this one that has taken the place of one up to it."""
        row = self._find_one("find_last_successor", pipeline=epoch.pipeline, epoch=epoch.id)
        return to_epoch(row) if row else None

    def pending_replacement(self, current: Epoch) -> Epoch | None:
        """The epoch that is to take, or has taken, the place of `current`; not one that was given up."""
        number = current.generation.number + 1 if current.generation else 1
        key = {"pipeline": current.pipeline, "root": current.root, "generation": number}
        row = self._find_one("find_generation", **key)
        return to_epoch(row) if row else None

    def current_epochs(self, pipeline: str, span: Interval) -> list[Epoch]:
        """Of each interval that meets `span` the last decided life, or the original; by time."""
        rows = self._find_all("list_current_epochs", pipeline=pipeline, start=span.start, end=span.end)
        return [to_epoch(row) for row in rows]

    def epoch_before(self, pipeline: str, epoch: int) -> Epoch | None:
        """The one with the next smaller number, void or not."""
        row = self._find_one("find_epoch_before", pipeline=pipeline, epoch=epoch)
        return to_epoch(row) if row else None

    def last_epoch(self, pipeline: str) -> Epoch | None:
        row = self._find_one("find_last_epoch", pipeline=pipeline)
        return to_epoch(row) if row else None

    def last_original(self, pipeline: str, below: int | None = None) -> Epoch | None:
        """The last epoch, void or not, that doesn't take another's place: after it a cursor goes on. `below`: of those
        with a smaller number."""
        row = self._find_one("find_last_original", pipeline=pipeline, below=below)
        return to_epoch(row) if row else None

    def source_end(self, pipeline: str, source: str, before: int) -> Position | None:
        """Where a cursor source ended in the last epoch before epoch `before` that names it, void or not, or else in
        the savepoint that the pipeline began with."""
        row = self._find_one("find_source_before", pipeline=pipeline, source=source, epoch=before)
        if row is None:
            return (self.savepoint(pipeline) or {"positions": {}})["positions"].get(source)
        return row["end"]

    def pipeline_change(self, pipeline: str, change: str) -> Json | None:
        """What stood behind the last `change` of a pipeline as a whole that a person made."""
        row = self._find_one("find_pipeline_change", pipeline=pipeline, change=change)
        return row["details"] if row else None

    def abandoned_epoch(self, pipeline: str) -> Epoch | None:
        """A cursor pipeline's lowest undecided epoch whose lease has run out."""
        row = self._find_one("find_abandoned_epoch", pipeline=pipeline)
        return to_epoch(row) if row else None

    def count_in_flight(self, pipeline: str) -> int:
        """Epochs that are not published yet."""
        row = self._find_one("count_in_flight", pipeline=pipeline)
        return int(row["in_flight"]) if row else 0

    def unfinished_epochs(self, pipeline: str) -> list[Epoch]:
        """Everything but cleaned and void, in order."""
        return [to_epoch(row) for row in self._find_all("list_unfinished_epochs", pipeline=pipeline)]

    def sealed_epochs(self, pipeline: str, oldest: int) -> list[Epoch]:
        """Those from epoch `oldest` on that have a sealed WAL, cleaned or not, in order."""
        return [to_epoch(row) for row in self._find_all("list_sealed_epochs", pipeline=pipeline, oldest=oldest)]

    def savepoint(self, pipeline: str) -> Json | None:
        """What the pipeline began with, as `start_from` was given it."""
        row = self._find_one("find_savepoint", pipeline=pipeline)
        return row["savepoint"] if row else None

    def has_keyed_state(self, pipeline: str) -> bool:
        """Whether the pipeline has had keyed state, or began with a savepoint that has some."""
        return self._find_one("find_any_keyed_state", pipeline=pipeline) is not None

    def last_decided_epoch(self, pipeline: str) -> Epoch | None:
        row = self._find_one("find_last_decided_epoch", pipeline=pipeline)
        return to_epoch(row) if row else None

    def has_claims(self, pipeline: str) -> bool:
        """Whether an epoch of the pipeline owns files."""
        return self._find_one("find_any_claim", pipeline=pipeline) is not None

    def abandoned_epochs(self, pipeline: str, recovery_grace: timedelta) -> list[Epoch]:
        """Undecided, unleased, and without a sign of life for longer than `recovery_grace`."""
        return [
            to_epoch(row)
            for row in self._find_all("list_abandoned_epochs", pipeline=pipeline, recovery_grace=recovery_grace)
        ]

    def participants(self, pipeline: str, epoch: int) -> dict[str, Participant]:
        rows = self._find_all("list_participants", pipeline=pipeline, epoch=epoch)
        return {row["sink"]: to_participant(row) for row in rows}

    def last_shown(self, pipeline: str, sinks: Sequence[str]) -> list[LastShown]:
        """What each of `sinks` was last to show, youngest first, see the statement; nothing of one that shows none of
        the youngest epochs."""
        rows = self._find_all("list_last_published", pipeline=pipeline, sinks=list(sinks))
        return [to_last_shown(row) for row in rows]

    def published_in(self, pipeline: str, sink: str, *, resolved: bool = False) -> list[tuple[int, str]]:
        """Number and manifest hash of each epoch that the sink shows by its own proof; `resolved`: or by a word."""
        rows = self._find_all("list_published", pipeline=pipeline, sink=sink, resolved=resolved)
        return [(row["id"], row["manifest_hash"]) for row in rows]

    def pending_events(self, pipeline: str, epochs: Sequence[int]) -> list[PendingAssetEvent]:
        """What sinks show of these epochs, and Airflow's assets may not know."""
        return [
            to_pending_event(row)
            for row in self._find_all("find_pending_events", pipeline=pipeline, epochs=list(epochs))
        ]

    def all_pending_events(self, limit: int) -> list[PendingAssetEvent]:
        """The same of all pipelines, of each sink the longest there, with the runs that came to each epoch."""
        return [to_pending_event(row) for row in self._find_all("list_pending_events", limit=limit)]

    def last_word(self, epoch: Epoch, sink: str) -> LastWord | None:
        """What was told last of the sink's part in the epoch, whatever it was."""
        row = self._find_one("find_last_note", pipeline=epoch.pipeline, epoch=epoch.id, sink=sink)
        return to_last_word(row) if row else None

    def verdict(self, pipeline: str, epoch: int) -> Verdict | None:
        """What the audits of the epoch's sealed WAL came to; None where they weren't asked, or there are none."""
        row = self._find_one("find_verdict", pipeline=pipeline, epoch=epoch)
        return to_verdict(row) if row else None

    def require_not_held(self, epoch: Epoch) -> None:
        """Raises `EpochHeld`, with what a person can do."""
        if (verdict := self.verdict(epoch.pipeline, epoch.id)) is not None:
            guards.require_not_held(epoch.pipeline, epoch.id, verdict)

    def measured_before(self, epoch: Epoch, limit: int) -> list[tuple[Json, dict[str, float]]]:
        """Of the last `limit` decided epochs before this one, the youngest first: the summary of the seal, and what
        audits have measured, by their names."""
        rows = self._find_all("list_measured_epochs", pipeline=epoch.pipeline, epoch=epoch.id, limit=limit)
        return [
            (
                row["summary"] or {},
                {result["name"]: result["value"] for result in row["results"] or () if result["value"] is not None},
            )
            for row in rows
        ]

    def find_claimed_paths(self, pipeline: str, source: str, paths: Iterable[str]) -> set[str]:
        """Those of `paths` that some epoch of this source owns, in whole or in part."""
        claimed: set[str] = set()
        for chunk in chunks(paths):
            chunk.sort()  # neighbours in the index one after the other
            unclaimed = self._find_all("list_unclaimed_paths", pipeline=pipeline, source=source, paths=texts(chunk))
            claimed.update(chunk)
            claimed.difference_update(row["path"] for row in unclaimed)
        return claimed

    def find_own_paths(self, pipeline: str, source: str, paths: Iterable[str], own: Sequence[int]) -> set[str]:
        """Those of `paths` that one of the epochs `own` claims, in whole or in part."""
        key = {"pipeline": pipeline, "source": source, "own": list(own)}
        chunk_rows = (self._find_all("find_own_claims", **key, paths=texts(chunk)) for chunk in chunks(paths))
        return {row["path"] for rows in chunk_rows for row in rows}

    def find_claims(
        self, pipeline: str, source: str, paths: Iterable[str], exclude: Sequence[int] = ()
    ) -> dict[str, Claim]:
        """Of each path the last claim, whole or highest range, that another epoch than those of `exclude` has on it."""
        rows = [
            row
            for chunk in chunks(paths)
            for row in self._find_all(
                "find_claims", pipeline=pipeline, source=source, paths=texts(chunk), exclude=list(exclude)
            )
        ]
        return {row["path"]: Claim(**row) for row in rows}

    def find_paths_by_head(
        self, pipeline: str, source: str, heads: Iterable[str], exclude: Sequence[int] = ()
    ) -> set[str]:
        """Paths on which another epoch than those of `exclude` has a claim with one of these heads."""
        rows = self._find_all(
            "find_claimed_heads", pipeline=pipeline, source=source, heads=texts(heads), exclude=list(exclude)
        )
        return {row["path"] for row in rows}

    def find_issued_tokens(
        self, pipeline: str, epoch: int, tokens: Sequence[int], *, attempts: bool = True
    ) -> set[int]:
        """Those of `tokens` that this ledger issued for this epoch. `attempts` False: not to attempts, which name no
        transaction and no folder by theirs."""
        rows = self._find_all("find_executions", pipeline=pipeline, epoch=epoch, tokens=list(tokens))
        return {row["token"] for row in rows if attempts or row["by_execution"]}

    def find_own_execution(self, attempt: Attempt, role: Role) -> int | None:
        """The youngest token that this actor has taken for the role in the attempt: a task's actor is one try of it."""
        row = self._find_one(
            "find_own_execution",
            pipeline=attempt.pipeline,
            epoch=attempt.epoch,
            attempt=attempt.token,
            role=role.value,
            actor=self.actor,
        )
        return row["token"] if row else None

    def _find_one(self, name: str, **parameters: object) -> Row | None:
        rows = self._find_all(name, **parameters)
        return rows[0] if rows else None

    def _find_all(self, name: str, **parameters: object) -> list[Row]:
        return self._connection.read(name, **parameters)


def _kept_of(row: Row) -> RetainedWal | None:
    if row["kept_wal"] is None:
        return None
    return to_kept_wal({**row, "epoch": row["id"], "wal": row["kept_wal"], "bytes": row["kept_bytes"]})


def to_last_word(row: Row) -> LastWord:
    return LastWord(row["id"], row["age"], row["token"], Role(row["role"]), row["actor"], row["reason"])
