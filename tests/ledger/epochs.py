"""Epochs brought to where a test needs them, by the ledger's own methods; and a hand on the tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg2.extensions

from lockstep.epoch import Attempt, Claim, Epoch, Interval, Plan, Position, RunKey, SourceRange, Vote
from lockstep.ledger import Ledger
from lockstep.states import Role

FLIGHTS = "flights"  #: an interval pipeline
CLICKS = "clicks"  #: a cursor pipeline
SINKS = ("warehouse", "delays")
HASH = "a" * 64
RUN = RunKey("flights", "scheduled 1")
OTHER_RUN = RunKey("flights", "manual 2")


def day(number: int, days: int = 1) -> Interval:
    start = datetime(2013, 1, 1, tzinfo=UTC) + timedelta(days=number - 1)
    return Interval(start, start + timedelta(days=days))


def a_plan(
    start: Position | None = None, end: Position = 10, sinks: Sequence[str] = SINKS, source: str = "landing"
) -> Plan:
    return Plan({source: SourceRange(start, end)}, {sink: {"type": "test", "arguments": {}} for sink in sinks})


def whole_files(claims: Mapping[str, Sequence[str]]) -> dict[str, list[Claim]]:
    return {source: [Claim(path) for path in paths] for source, paths in claims.items()}


def planned(
    ledger: Ledger,
    number: int = 1,
    run: RunKey = RUN,
    sinks: Sequence[str] = SINKS,
    claims: Mapping[str, Sequence[str]] | None = None,
) -> Epoch:
    """The interval epoch of day `number`."""
    whole = whole_files(claims or {})
    epoch = ledger.plan_epoch(FLIGHTS, a_plan(sinks=sinks), whole, run, interval=day(number), after=None)
    assert epoch is not None
    return epoch


def clicked(ledger: Ledger, after: int, run: RunKey = RUN, sinks: Sequence[str] = SINKS) -> Epoch:
    """The cursor epoch that follows `after`; each takes ten positions."""
    plan = a_plan(after * 10 or None, after * 10 + 10, sinks)
    epoch = ledger.plan_epoch(CLICKS, plan, {}, run, interval=None, after=after)
    assert epoch is not None
    return epoch


def attempt_of(epoch: Epoch) -> Attempt:
    return Attempt(epoch.pipeline, epoch.id, epoch.attempt)


def seal(ledger: Ledger, epoch: Epoch, wal: str = "folder", manifest_hash: str = HASH) -> Epoch:
    ledger.take_token(attempt_of(epoch), Role.STAGE)
    summary = {"outputs": {"flights": {"rows": 7, "digest": "0" * 32}}, "sources": {}}
    return ledger.seal_epoch(attempt_of(epoch), wal, manifest_hash, summary, "v1")


def vote(ledger: Ledger, epoch: Epoch, sink: str) -> Vote:
    token = ledger.take_token(attempt_of(epoch), Role.PREPARE, sink)
    found = Vote(token, f"handle {token}", "target", {"flights": 7})
    ledger.record_vote(attempt_of(epoch), sink, found)
    return found


def vote_all(ledger: Ledger, epoch: Epoch) -> dict[str, Vote]:
    return {sink: vote(ledger, epoch, sink) for sink in SINKS if sink in epoch.plan.sinks}


def voted(ledger: Ledger, epoch: Epoch) -> Epoch:
    sealed = seal(ledger, epoch)
    vote_all(ledger, sealed)
    return sealed


def committed(ledger: Ledger, epoch: Epoch) -> Epoch:
    return ledger.commit_epoch(attempt_of(voted(ledger, epoch)))


def show(ledger: Ledger, epoch: Epoch, sink: str) -> Epoch:
    found = ledger.participants(epoch.pipeline, epoch.id)[sink].vote
    assert found is not None
    return ledger.record_publication(epoch, sink, found.token, "committed", Role.PUBLISH)


def published(ledger: Ledger, epoch: Epoch) -> Epoch:
    epoch = committed(ledger, epoch)
    for sink in SINKS:
        epoch = show(ledger, epoch, sink)
    return epoch


def cleaned(ledger: Ledger, epoch: Epoch) -> Epoch:
    return ledger.record_cleanup(published(ledger, epoch), Role.CLEANUP)


#: tables that hold what a ledger has of its epochs: a new one is to be emptied between tests, too
OF_EPOCHS = (
    *("claim", "retained_wal", "pending_asset_event", "participant", "run", "transition"),
    *("execution", "planned_sink", "planned_source", "verdict", "epoch"),
)


class Sql:
    """Statements by hand, in one transaction until `commit`."""

    def __init__(self, connection: psycopg2.extensions.connection) -> None:
        self.connection = connection
        self._cursor = connection.cursor()

    def __call__(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        self._cursor.execute(statement, parameters or None)
        return self._cursor.fetchall() if self._cursor.description else []

    def one(self, statement: str, *parameters: Any) -> Any:
        return self(statement, *parameters)[0][0]

    def act_as(self, role: str) -> None:
        self("SELECT set_config('lockstep.role', %s, true)", role)

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        """Without the ledger's triggers: how a test puts rows where no legal way leads."""
        self("SET session_replication_role = replica")
        yield
        self("SET session_replication_role = DEFAULT")
        self.commit()

    def delete_epochs(self) -> None:
        """And all that is known of them; while `unwatched`."""
        for table in OF_EPOCHS:
            self(f"DELETE FROM lockstep.{table}")


def let_lease_run_out(sql: Sql, epoch: Epoch) -> None:
    """Time passes."""
    sql(
        "UPDATE lockstep.epoch SET lease_until = now() - interval '1 s' WHERE (pipeline, id) = (%s, %s)",
        epoch.pipeline,
        epoch.id,
    )
    sql.commit()
