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
    to_last_shown,
    to_participant,
    to_pending_event,
    to_retained_wal,
    to_verdict,
)
from lockstep.states import DECIDED, Role


@dataclass(frozen=True)
class SinkSettings:
    """Operational arguments of a sink. `deployed`: those of the last `begin`, or None; `override` takes precedence."""

    deployed: Json | None
    override: Mapping[str, Json]


@dataclass(frozen=True)
class Override:
    """A manual override of one sink's arguments. Empty `settings` revoke earlier ones."""

    sink: str
    settings: Mapping[str, Json]
    actor: str
    reason: str
    at: datetime


@dataclass(frozen=True)
class LastNote:
    """The last history entry of a participant. `age`: by the server's clock."""

    id: int
    age: timedelta
    token: int | None
    role: Role
    actor: str
    reason: str | None


class LedgerReader:
    """Reads the ledger. Raises `LedgerUnavailable` if it can't be reached, `LedgerRefused` if it can't be trusted."""

    def __init__(self, dsn: str, actor: str | None = None) -> None:
        self._connection = LedgerConnection(dsn, actor)
        self._deployment: str | None = None
        self.opened_at = monotonic()

    @property
    def actor(self) -> str:
        return self._connection.actor

    def clone(self) -> Self:
        """A reader of the same ledger with its own connection, for another thread."""
        return type(self)(self._connection.dsn, self.actor)

    def compacting(self, pipeline: str, sink: str) -> AbstractContextManager[bool]:
        """A lock for compactions of this sink's table; yields whether it was acquired."""
        return self._alone(f"lockstep compaction {pipeline} {sink}")

    def recovering(self, pipeline: str) -> AbstractContextManager[bool]:
        """A lock for recoveries of the pipeline; yields whether it was acquired."""
        return self._alone(f"lockstep recovery {pipeline}")

    @contextmanager
    def _alone(self, key: str) -> Iterator[bool]:
        """An advisory lock, which a lost connection releases: correctness must not depend on it."""
        with closing(self.clone()) as session:
            lock = session._find_one("try_advisory_lock", key=key)
            yield bool(lock and lock["held"])

    def close(self) -> None:
        self._connection.close()

    def deployment(self) -> str:
        """The ledger's UUID, part of every handle and folder name."""
        if self._deployment is None:
            row = self._find_one("find_deployment")
            if row is None:
                raise LedgerRefused("the ledger lacks its deployment's id: restore the table lockstep.deployment")
            self._deployment = str(row["id"])
        return self._deployment

    def now(self) -> datetime:
        """The server's time, by which all durations are measured."""
        row = self._find_one("find_time")
        assert row is not None, "a SELECT of no table has a row"
        now: datetime = row["now"]
        return now

    def recovery_grace(self, pipeline: str) -> timedelta:
        """How long recovery leaves undecided attempts of the pipeline alone. Raises `UnknownEpoch`."""
        row = self._find_one("find_pipeline", pipeline=pipeline)
        if row is None:
            raise UnknownEpoch(f"the ledger has no pipeline {pipeline!r}")
        recovery_grace: timedelta = row["recovery_grace"]
        return recovery_grace

    def wal_retention(self, pipeline: str) -> WalRetention:
        """The WAL retention of the last begun definition. Raises `UnknownEpoch`."""
        row = self._find_one("find_pipeline", pipeline=pipeline)
        if row is None:
            raise UnknownEpoch(f"the ledger has no pipeline {pipeline!r}")
        return WalRetention(row["keep_wal_time"], row["keep_wal_epochs"])

    def kept_wals(self, pipeline: str) -> list[RetainedWal]:
        """Retained WALs, oldest epoch first."""
        return [to_retained_wal(row) for row in self._find_all("list_retained_wals", pipeline=pipeline)]

    def retained_wal(self, pipeline: str, epoch: int) -> RetainedWal | None:
        row = self._find_one("find_retained_wal", pipeline=pipeline, epoch=epoch)
        return to_retained_wal(row) if row else None

    def wals(self, pipeline: str, limit: int) -> list[tuple[Epoch, RetainedWal | None]]:
        """Existing sealed WALs, newest epoch first: those of unfinished epochs, and retained ones."""
        rows = self._find_all("list_wals", pipeline=pipeline, limit=limit)
        wals: list[tuple[Epoch, RetainedWal | None]] = []
        for row in rows:
            retained = None
            if row["retained_wal"] is not None:
                values = {**row, "epoch": row["id"], "wal": row["retained_wal"], "bytes": row["retained_bytes"]}
                retained = to_retained_wal(values)
            wals.append((to_epoch(row), retained))
        return wals

    def expiring_wals(self, pipeline: str) -> list[RetainedWal]:
        """The WALs that `expire_wals` would return now."""
        return [to_retained_wal(row) for row in self._find_all("list_expiring_wals", pipeline=pipeline)]

    def settings(self, pipeline: str, sink: str) -> SinkSettings:
        """Deployed and overridden operational arguments of a sink."""
        row = self._find_one("find_settings", pipeline=pipeline, sink=sink) or {}
        return SinkSettings(row.get("deployed"), row.get("override") or {})

    def overrides(self, pipeline: str) -> list[Override]:
        """All overrides of the pipeline's sinks, newest first."""
        return [Override(**row) for row in self._find_all("list_overrides", pipeline=pipeline)]

    def planned_sinks(self, pipeline: str) -> list[Json]:
        """Specs of all sinks planned in the last seven days, including replaced plans."""
        return [row["spec"] for row in self._find_all("list_planned_sinks", pipeline=pipeline)]

    def find_run(self, run: RunKey) -> Attempt | None:
        """The attempt that the run began."""
        row = self._find_one("find_run", dag_id=run.dag_id, run_id=run.run_id)
        return Attempt(row["pipeline"], row["epoch"], row["attempt"]) if row else None

    def run_restates(self, run: RunKey) -> str | None:
        """Reason for which the run restates; None if it doesn't."""
        row = self._find_one("find_run", dag_id=run.dag_id, run_id=run.run_id)
        return row["restate_reason"] if row else None

    def restate_reasons(self, epoch: Epoch) -> list[tuple[Epoch, str]]:
        """Generations of a range with the restate reasons of their runs, oldest first; void ones are omitted."""
        return [
            (to_epoch(row), row["restate_request"])
            for row in self._find_all("list_restate_reasons", pipeline=epoch.pipeline, root=epoch.root)
        ]

    def require_current(self, attempt: Attempt) -> None:
        """Raise `Fenced` unless this is the epoch's current attempt; `UnknownEpoch`."""

        def work(tx: Transaction) -> None:
            row = tx.one("find_epoch", **guards.key(attempt))
            if row is None:
                raise UnknownEpoch(f"the ledger has no epoch {attempt.epoch} of pipeline {attempt.pipeline}")
            guards.require_current(tx, row, attempt)

        self._connection.run(Role.OPERATOR, work)

    def attempt_name(self, epoch: Epoch) -> str:
        """Readable name of the epoch's current attempt."""
        row = {"pipeline": epoch.pipeline, "id": epoch.id}
        return self._connection.run(Role.OPERATOR, lambda tx: guards.attempt_name(tx, row, epoch.attempt))

    def require_running(self, attempt: Attempt, sink: str | None = None, execution: int = 0) -> None:
        """Raise `AlreadyDecided`; `Fenced` after a newer attempt, or a younger execution of prepare for `sink`, has
        started."""

        def work(tx: Transaction) -> None:
            row = guards.lock_epoch(tx, attempt.pipeline, attempt.epoch)
            if row["state"] in DECIDED:
                raise AlreadyDecided(f"{guards.epoch_name(row)} was decided meanwhile, it is {row['state']}")
            guards.require_current(tx, row, attempt)
            if sink is not None:
                guards.require_youngest(tx, row, sink, execution)

        self._connection.run(Role.OPERATOR, work)

    def require_predecessor_decided(self, epoch: Epoch) -> None:
        """Raise `OutOfOrder` for a cursor epoch whose predecessor is undecided: prepare and state come after its
        commit."""
        if epoch.in_order:
            self._connection.run(
                Role.PREPARE, lambda tx: guards.require_predecessor_decided(tx, epoch.pipeline, epoch.id)
            )

    def predecessor(self, epoch: Epoch) -> Epoch | None:
        """Predecessor of a cursor epoch, which is neither void nor replaced."""
        row = self._find_one("find_predecessor", pipeline=epoch.pipeline, epoch=epoch.id)
        return to_epoch(row) if row else None

    def require_predecessor_published(self, epoch: Epoch, sink: str) -> None:
        """Raise `OutOfOrder` for a cursor epoch whose predecessor is not published in the sink."""
        if epoch.in_order:
            self._connection.run(
                Role.PUBLISH, lambda tx: guards.require_predecessor_published(tx, epoch.pipeline, epoch.id, sink)
            )

    def epoch(self, pipeline: str, epoch: int) -> Epoch:
        """One epoch. Raises `UnknownEpoch`."""
        row = self._find_one("find_epoch", pipeline=pipeline, epoch=epoch)
        if row is None:
            raise UnknownEpoch(f"the ledger has no epoch {epoch} of pipeline {pipeline}")
        return to_epoch(row)

    def epoch_of_interval(self, pipeline: str, interval: Interval) -> Epoch | None:
        """The epoch whose interval overlaps `interval`."""
        row = self._find_one("find_epoch_of_interval", pipeline=pipeline, start=interval.start, end=interval.end)
        return to_epoch(row) if row else None

    def generations(self, epoch: Epoch) -> list[Epoch]:
        """All generations of the epoch's range, original first, including void ones."""
        return [to_epoch(row) for row in self._find_all("list_generations", pipeline=epoch.pipeline, root=epoch.root)]

    def replaced(self, epoch: Epoch) -> list[Epoch]:
        """Epochs that this one replaces, or will replace, in order."""
        if epoch.generation is None:
            return []
        return [to_epoch(row) for row in self._find_all("list_replaced", pipeline=epoch.pipeline, epoch=epoch.id)]

    def seals_replaced(self, epoch: Epoch) -> list[Json]:
        """Seal summaries of the epochs that this one replaces, or will replace."""
        rows = self._find_all("list_replaced", pipeline=epoch.pipeline, epoch=epoch.id)
        return [row["summary"] or {} for row in rows]

    def sequence_from(self, epoch: Epoch) -> list[Epoch]:
        """The sequence of a cursor's epochs from this one on."""
        return [
            to_epoch(row) for row in self._find_all("list_epochs_in_order", pipeline=epoch.pipeline, epoch=epoch.id)
        ]

    def last_in_sequence(self, epoch: Epoch, limit: int) -> list[Epoch]:
        """This epoch of a cursor and its predecessors, newest first, at most `limit`; none void or replaced."""
        rows = self._find_all("list_predecessors", pipeline=epoch.pipeline, epoch=epoch.id, limit=limit)
        return [to_epoch(row) for row in rows]

    def successor(self, epoch: Epoch) -> Epoch | None:
        """The decided epoch that replaced this one."""
        row = self._find_one("find_successor", pipeline=epoch.pipeline, root=epoch.root, epoch=epoch.id)
        return to_epoch(row) if row else None

    def last_successor(self, epoch: Epoch) -> Epoch | None:
        """The last decided epoch with a higher number that replaces this epoch or an earlier one."""
        row = self._find_one("find_last_successor", pipeline=epoch.pipeline, epoch=epoch.id)
        return to_epoch(row) if row else None

    def pending_replacement(self, current: Epoch) -> Epoch | None:
        """The next generation of `current`, decided or not, unless void."""
        number = current.generation.number + 1 if current.generation else 1
        key = {"pipeline": current.pipeline, "root": current.root, "generation": number}
        row = self._find_one("find_generation", **key)
        return to_epoch(row) if row else None

    def current_epochs(self, pipeline: str, span: Interval) -> list[Epoch]:
        """For each interval that overlaps `span`, the last decided generation, or the original; by time."""
        rows = self._find_all("list_current_epochs", pipeline=pipeline, start=span.start, end=span.end)
        return [to_epoch(row) for row in rows]

    def epoch_before(self, pipeline: str, epoch: int) -> Epoch | None:
        """The epoch with the next lower number, including void ones."""
        row = self._find_one("find_epoch_before", pipeline=pipeline, epoch=epoch)
        return to_epoch(row) if row else None

    def last_epoch(self, pipeline: str) -> Epoch | None:
        row = self._find_one("find_last_epoch", pipeline=pipeline)
        return to_epoch(row) if row else None

    def last_original(self, pipeline: str, below: int | None = None) -> Epoch | None:
        """The last epoch of generation 0, including void ones, where a cursor continues. `below`: only lower
        numbers."""
        row = self._find_one("find_last_original", pipeline=pipeline, below=below)
        return to_epoch(row) if row else None

    def source_end(self, pipeline: str, source: str, before: int) -> Position | None:
        """End of a cursor source in the last epoch before `before` that contains it, or else in the pipeline's
        savepoint."""
        row = self._find_one("find_source_before", pipeline=pipeline, source=source, epoch=before)
        if row is None:
            return (self.savepoint(pipeline) or {"positions": {}})["positions"].get(source)
        return row["end"]

    def pipeline_change(self, pipeline: str, change: str) -> Json | None:
        """Details of the last manual `change` of the pipeline."""
        row = self._find_one("find_pipeline_change", pipeline=pipeline, change=change)
        return row["details"] if row else None

    def abandoned_epoch(self, pipeline: str) -> Epoch | None:
        """Lowest undecided epoch of a cursor pipeline without an active lease."""
        row = self._find_one("find_abandoned_epoch", pipeline=pipeline)
        return to_epoch(row) if row else None

    def count_in_flight(self, pipeline: str) -> int:
        """Number of originals that are not published."""
        row = self._find_one("count_in_flight", pipeline=pipeline)
        return int(row["in_flight"]) if row else 0

    def unfinished_epochs(self, pipeline: str) -> list[Epoch]:
        """All epochs that are not cleaned, replaced or void, in order."""
        return [to_epoch(row) for row in self._find_all("list_unfinished_epochs", pipeline=pipeline)]

    def sealed_epochs(self, pipeline: str, oldest: int) -> list[Epoch]:
        """Epochs from `oldest` on with a sealed WAL, cleaned or not, in order."""
        return [to_epoch(row) for row in self._find_all("list_sealed_epochs", pipeline=pipeline, oldest=oldest)]

    def savepoint(self, pipeline: str) -> Json | None:
        """The savepoint that the pipeline started from."""
        row = self._find_one("find_savepoint", pipeline=pipeline)
        return row["savepoint"] if row else None

    def has_keyed_state(self, pipeline: str) -> bool:
        """Whether the pipeline has had keyed state, or started from a savepoint with state."""
        return self._find_one("find_any_keyed_state", pipeline=pipeline) is not None

    def last_decided_epoch(self, pipeline: str) -> Epoch | None:
        row = self._find_one("find_last_decided_epoch", pipeline=pipeline)
        return to_epoch(row) if row else None

    def has_claims(self, pipeline: str) -> bool:
        """Whether any epoch of the pipeline claims files."""
        return self._find_one("find_any_claim", pipeline=pipeline) is not None

    def abandoned_epochs(self, pipeline: str, recovery_grace: timedelta) -> list[Epoch]:
        """Undecided epochs without a lease and without any change for longer than `recovery_grace`."""
        return [
            to_epoch(row)
            for row in self._find_all("list_abandoned_epochs", pipeline=pipeline, recovery_grace=recovery_grace)
        ]

    def participants(self, pipeline: str, epoch: int) -> dict[str, Participant]:
        rows = self._find_all("list_participants", pipeline=pipeline, epoch=epoch)
        return {row["sink"]: to_participant(row) for row in rows}

    def last_shown(self, pipeline: str, sinks: Sequence[str]) -> list[LastShown]:
        """The last publications of each sink, newest first; see the statement list_last_published."""
        rows = self._find_all("list_last_published", pipeline=pipeline, sinks=list(sinks))
        return [to_last_shown(row) for row in rows]

    def published_in(self, pipeline: str, sink: str, *, resolved: bool = False) -> list[tuple[int, str]]:
        """Number and manifest hash of each epoch published in the sink; `resolved`: including those resolved
        manually."""
        rows = self._find_all("list_published", pipeline=pipeline, sink=sink, resolved=resolved)
        return [(row["id"], row["manifest_hash"]) for row in rows]

    def pending_events(self, pipeline: str, epochs: Sequence[int]) -> list[PendingAssetEvent]:
        """Pending asset events of these epochs."""
        return [
            to_pending_event(row)
            for row in self._find_all("find_pending_events", pipeline=pipeline, epochs=list(epochs))
        ]

    def all_pending_events(self, limit: int) -> list[PendingAssetEvent]:
        """Pending asset events of all pipelines, each sink's oldest first, with the runs of each epoch."""
        return [to_pending_event(row) for row in self._find_all("list_pending_events", limit=limit)]

    def last_note(self, epoch: Epoch, sink: str) -> LastNote | None:
        """The last history entry of the sink's part in the epoch."""
        row = self._find_one("find_last_note", pipeline=epoch.pipeline, epoch=epoch.id, sink=sink)
        return to_last_note(row) if row else None

    def verdict(self, pipeline: str, epoch: int) -> Verdict | None:
        """Verdict of the audits on the sealed WAL; None before the audits, or without any."""
        row = self._find_one("find_verdict", pipeline=pipeline, epoch=epoch)
        return to_verdict(row) if row else None

    def require_not_held(self, epoch: Epoch) -> None:
        """Raise `EpochHeld`, with the possible commands."""
        if (verdict := self.verdict(epoch.pipeline, epoch.id)) is not None:
            guards.require_not_held(epoch.pipeline, epoch.id, verdict)

    def measured_before(self, epoch: Epoch, limit: int) -> list[tuple[Json, dict[str, float]]]:
        """Seal summary and audit measures by name of the last `limit` decided epochs before this one, newest first."""
        rows = self._find_all("list_measured_epochs", pipeline=epoch.pipeline, epoch=epoch.id, limit=limit)
        return [
            (
                row["summary"] or {},
                {result["name"]: result["value"] for result in row["results"] or () if result["value"] is not None},
            )
            for row in rows
        ]

    def find_claimed_paths(self, pipeline: str, source: str, paths: Iterable[str]) -> set[str]:
        """The `paths` that an epoch of this source claims, at least in part."""
        claimed: set[str] = set()
        for chunk in chunks(paths):
            chunk.sort()  # adjacent index entries
            unclaimed = self._find_all("list_unclaimed_paths", pipeline=pipeline, source=source, paths=texts(chunk))
            claimed.update(chunk)
            claimed.difference_update(row["path"] for row in unclaimed)
        return claimed

    def find_own_paths(self, pipeline: str, source: str, paths: Iterable[str], own: Sequence[int]) -> set[str]:
        """The `paths` that one of the epochs `own` claims, at least in part."""
        key = {"pipeline": pipeline, "source": source, "own": list(own)}
        chunk_rows = (self._find_all("find_own_claims", **key, paths=texts(chunk)) for chunk in chunks(paths))
        return {row["path"] for rows in chunk_rows for row in rows}

    def find_claims(
        self, pipeline: str, source: str, paths: Iterable[str], exclude: Sequence[int] = ()
    ) -> dict[str, Claim]:
        """The last claim on each path, ignoring those of the epochs `exclude`."""
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
        """Paths claimed with one of these heads, ignoring the epochs `exclude`."""
        rows = self._find_all(
            "find_claimed_heads", pipeline=pipeline, source=source, heads=texts(heads), exclude=list(exclude)
        )
        return {row["path"] for row in rows}

    def find_issued_tokens(
        self, pipeline: str, epoch: int, tokens: Sequence[int], *, attempts: bool = True
    ) -> set[int]:
        """The `tokens` that this ledger issued for the epoch. `attempts` False: without tokens of attempts, which never
        name a transaction or folder."""
        rows = self._find_all("find_executions", pipeline=pipeline, epoch=epoch, tokens=list(tokens))
        return {row["token"] for row in rows if attempts or row["by_execution"]}

    def find_own_execution(self, attempt: Attempt, role: Role) -> int | None:
        """The youngest token that this actor took for the role in the attempt; the actor of a task is one try."""
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


def to_last_note(row: Row) -> LastNote:
    return LastNote(row["id"], row["age"], row["token"], Role(row["role"]), row["actor"], row["reason"])
