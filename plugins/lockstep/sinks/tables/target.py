"""One database as both protocols use it: who is connected to it claims markers there, sends rows, and commits."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from lockstep.crash import CrashPoint, reach
from lockstep.errors import KeysHeld, LedgerConflict, LockstepError, PublishBlocked, SinkRejected, SinkUnavailable
from lockstep.sinks.tables._database import Database
from lockstep.sinks.tables.branches import TableBranches
from lockstep.sinks.tables.output import RowWriter, TableOutput
from lockstep.sinks.tables.own_tables import OwnTables
from lockstep.sinks.values import Batches, Replaced, SinkEpoch

_log = logging.getLogger(__name__)
TRIES = 4  #: each lasts up to the lock timeout, and ends what lower tokens left in the way

Cursor = TypeVar("Cursor")


@dataclass
class TableClaim(Generic[Cursor]):
    """An open transaction. `claimed` False: the marker is taken, or another publisher is at work; nothing is open."""

    epoch: SinkEpoch
    cursor: Cursor
    target_id: str
    commit: Callable[[], None]
    close: Callable[[], None]  #: ends the transaction: without a commit or prepare before, nothing of it happened
    claimed: bool = False
    rows: dict[str, int] = field(default_factory=dict)
    replaced: list[Replaced] = field(default_factory=list)  #: the target shows it, and its rows are to go


@dataclass(frozen=True)
class TableTarget(ABC, Generic[Cursor]):
    """The tables of a sink in one database. `outputs`: by output of the transform."""

    database: Database[Cursor]
    own: OwnTables[Cursor]
    branches: TableBranches[Cursor]
    outputs: Mapping[str, TableOutput[Cursor]]

    # --- what each database does in its own way ---

    @abstractmethod
    def set_up(self) -> AbstractContextManager[Cursor]:
        """A cursor to create tables with, alone; what the server refuses is `PreflightRefused`, and so are its settings
        where rows can't be sent with them."""

    @abstractmethod
    def require_rights(self, cursor: Cursor, *, create: bool) -> None:
        """Refuse, with the grants that are missing, who may not write to the tables; where all can be asked at once."""

    @abstractmethod
    def begin(self, epoch: SinkEpoch, handle: str | None = None) -> TableClaim[Cursor]:
        """A session that carries the token, in a guarded transaction (to be prepared under `handle`), without the
        marker yet."""

    @abstractmethod
    def claim_to_publish(self, epoch: SinkEpoch) -> TableClaim[Cursor]:
        """Claim the marker after the decision. A publisher of a lower token that makes progress is left to it."""

    @abstractmethod
    def begin_trial(self, epoch: SinkEpoch) -> TableClaim[Cursor]:
        """A transaction before the decision, in which rows are tried and never committed."""

    def check_trial(self, claim: TableClaim[Cursor]) -> None:
        """Check what the database would only check at the commit."""

    # --- the marker ---

    def claim_to_vote(self, epoch: SinkEpoch, handle: str | None = None) -> TableClaim[Cursor]:
        """Claim the marker before the decision: lower tokens were superseded in the ledger, and give way at once.
        Raises `LedgerConflict` if it is taken."""
        for _ in range(TRIES):
            claim = self.begin(epoch, handle)
            if self._insert_marker(claim):
                if not claim.claimed:
                    raise self._refusal_of_marker(epoch)
                return claim
            self.branches.terminate_stale_sessions(epoch)
        raise self._stuck(epoch)

    def _insert_marker(self, claim: TableClaim[Cursor]) -> bool:
        """False on a lock timeout, with the transaction closed; else `claim.claimed` tells whether the row was free."""
        try:
            with self.database.naming("inserting the marker", SinkUnavailable):
                claim.claimed = self.own.insert_marker(claim.cursor, claim.epoch)
        except BaseException as error:
            claim.close()
            if isinstance(error, LockstepError) and self.database.is_locked_out(error):
                return False
            raise
        if not claim.claimed:
            claim.close()
        return True

    def _stuck(self, epoch: SinkEpoch) -> SinkUnavailable:
        return SinkUnavailable(
            f"{self.database.where}: the marker of epoch {epoch.id} stays locked for token {epoch.token}; "
            f"in the way: {self.branches.lock_holders(epoch)}; try again"
        )

    def _refusal_of_marker(self, epoch: SinkEpoch) -> LedgerConflict:
        with self.database.transaction("looking for the marker") as cursor:
            marker = self.own.find_marker(cursor, epoch.id)
        found = f"manifest {marker.manifest_hash[:12]}, token {marker.token}" if marker else "another execution"
        return LedgerConflict(
            f"{self.database.where}: epoch {epoch.id} is published already, by {found}, although this execution "
            f"(manifest {epoch.manifest_hash[:12]}, token {epoch.token}) precedes the decision: either it was "
            "superseded, or the ledger is older than the target"
        )

    # --- rows that are replaced ---

    def remove_replaced(self, claim: TableClaim[Cursor], removed: CrashPoint, *, decided: bool = False) -> None:
        """Delete the rows whose place the claim's take, in its transaction, and no others; of upserts only look at
        them: `settle_replaced` comes after the rows. Raises `LedgerConflict` where the target doesn't show them as they
        were decided, `SinkRejected` (`decided`: `PublishBlocked`), `SinkUnavailable`.

        A target that was restored to before the replaced epoch has neither its marker nor its rows: nothing but the
        epoch that takes its place is lacking there, so that a decided one goes on. It may show the lives before that
        one again: their rows go, too. What it lacks gets a marker, or who has stood still since before that would show
        its rows beside those that have taken their place.
        """
        shown = [self._remove(claim, replaced, removed, decided) for replaced in claim.epoch.replaced]
        for earlier in () if all(shown) else claim.epoch.earlier:
            self._remove(claim, earlier, removed, decided)

    def _remove(self, claim: TableClaim[Cursor], replaced: Replaced, removed: CrashPoint, decided: bool) -> bool:
        """Whether the target shows it."""
        shows, rejected = self._shows_replaced(claim, replaced, decided), PublishBlocked if decided else SinkRejected
        upserted = [table for table in self.outputs.values() if table.upserts is not None]
        # a marker that was deleted by hand leaves the rows, and the number of their keys
        left = shows or any(self.own.has_brought(claim.cursor, replaced.id, table.relation) for table in upserted)
        if left:
            claim.replaced.append(replaced)
        for table in self.outputs.values():
            if table.upserts is None:
                with self._taking_away(claim, table, replaced, rejected) as faults:
                    faults.append(table.remove(claim.cursor, replaced))
                reach(removed)
            elif left:
                with self._taking_away(claim, table, replaced, rejected) as faults:
                    faults.append(table.look_at_replaced(claim.cursor, claim.epoch, replaced))
        return shows

    def _shows_replaced(self, claim: TableClaim[Cursor], replaced: Replaced, decided: bool) -> bool:
        """If it returns False, nobody ever shows it here. `decided`: whether that of `claim` is; its target may lack
        what was replaced, as one may of which a person has said so."""
        told, absent = _as_shown(replaced, claim.epoch), decided or replaced.id in claim.epoch.lacking
        with (
            self._clearing_the_way(claim, told if decided else None),
            self.database.naming(f"looking for the marker of epoch {replaced.id}", SinkUnavailable),
        ):
            marker = self.own.find_marker(claim.cursor, replaced.id)
            if marker is None and absent:
                if self.own.insert_marker(claim.cursor, told):
                    return False
                marker = self.own.find_marker(claim.cursor, replaced.id)  # it was shown this very moment
        if not absent if marker is None else marker.manifest_hash != replaced.manifest_hash:
            found = f"manifest {marker.manifest_hash[:12]}" if marker else "no marker of it"
            raise LedgerConflict(
                f"{self.database.where}: epoch {claim.epoch.id} takes the place of epoch {replaced.id}, manifest "
                f"{replaced.manifest_hash[:12]}; the target holds {found}: was it restored from a backup?"
            )
        return marker is not None

    @contextmanager
    def _clearing_the_way(self, claim: TableClaim[Cursor], lost: SinkEpoch | None) -> Iterator[None]:
        """Take away what holds the marker of an epoch that is never to be shown, for the next call."""
        try:
            yield
        except SinkUnavailable as error:
            if lost is not None and self.database.is_locked_out(error):
                claim.close()
                self.branches.terminate_stale_sessions(lost)
            raise

    def settle_replaced(
        self, claim: TableClaim[Cursor], output: str, removed: CrashPoint, *, decided: bool = False
    ) -> None:
        """Once the claim's rows of an output that is upserted are there, take away those of the epochs that it replaces
        whose keys it doesn't have. Raises as `remove_replaced`."""
        table = self.outputs[output]
        for replaced in claim.replaced if table.upserts is not None else ():
            with self._taking_away(claim, table, replaced, PublishBlocked if decided else SinkRejected) as faults:
                faults.append(table.settle(claim.cursor, claim.epoch, replaced))
            reach(removed)

    @contextmanager
    def _taking_away(
        self, claim: TableClaim[Cursor], table: TableOutput[Cursor], replaced: Replaced, rejected: type[LockstepError]
    ) -> Iterator[list[str]]:
        """Raise `rejected` with the first fault that the list has at the end."""
        faults: list[str] = []
        doing = f"taking rows of epoch {replaced.id} away from {table.relation}"
        with self._held_off(claim), self.database.naming(doing, rejected):
            yield faults
        if fault := next(filter(None, faults), None):
            raise rejected(f"{table.where}: table {table.relation}: {fault}")

    # --- rows ---

    def load(self, claim: TableClaim[Cursor], batches: Batches, rejected: type[LockstepError]) -> None:
        """Send an output's rows. Raises `rejected` for what the server refuses, `KeysHeld`, `SinkUnavailable`."""
        with self._held_off(claim):
            claim.rows[batches.output] = self._writer(claim, batches, rejected).write(claim.cursor, batches)

    def try_rows(self, claim: TableClaim[Cursor], batches: Batches) -> None:
        """As `load`, in a claim that is never committed: rows that the server surely takes are not sent."""
        with self._held_off(claim):
            claim.rows[batches.output] = self._writer(claim, batches).try_rows(claim.cursor, batches)

    @contextmanager
    def _held_off(self, claim: TableClaim[Cursor]) -> Iterator[None]:
        """Say who holds what the rows want."""
        try:
            yield
        except SinkUnavailable as error:
            claim.close()
            if self.database.is_locked_out(error):
                self.branches.end_sessions(claim.epoch)  # a stopped one may hold the same keys
                self._require_no_holders(claim.epoch, error)
            raise

    def load_more(self, claim: TableClaim[Cursor], batches: Batches, rejected: type[LockstepError]) -> None:
        """`load` of a part of an output's rows."""
        before = claim.rows.get(batches.output, 0)
        self.load(claim, batches, rejected)
        claim.rows[batches.output] += before

    def keep_alive(self, claim: TableClaim[Cursor]) -> None:
        """Use the claim's session, which the server would end if it stood still. Raises `SinkUnavailable`."""
        with self.database.naming("keeping a transaction open", SinkUnavailable):
            self.own.target_id(claim.cursor)

    def _writer(
        self, claim: TableClaim[Cursor], batches: Batches, rejected: type[LockstepError] = SinkRejected
    ) -> RowWriter[Cursor]:
        return self.outputs[batches.output].writer(claim.epoch, rejected)

    def _require_no_holders(self, epoch: SinkEpoch, error: SinkUnavailable) -> None:
        holders = [txn for txn in self.branches.pending() if txn.epoch != epoch.id] if self.own.upserts else []
        if holders:
            named = ", ".join(f"epoch {txn.epoch} ({txn.handle})" for txn in holders)
            raise KeysHeld(
                f"{error}; keys of epoch {epoch.id} are held by what was prepared and not yet published: {named}; try "
                "again when that is published or aborted"
            ) from error

    # --- the end of a transaction ---

    def name_manifest(self, claim: TableClaim[Cursor], epoch: SinkEpoch) -> None:
        """Have the claim be one of `epoch`, whose manifest wasn't known when the marker was claimed."""
        with self.database.naming("naming the manifest in the marker", SinkUnavailable):
            self.own.name_manifest(claim.cursor, epoch)
        claim.epoch = epoch

    def record_rows(self, claim: TableClaim[Cursor], doing: str, rejected: type[LockstepError] = SinkRejected) -> None:
        """Note in the marker how many rows the claim has sent."""
        with self.database.naming(doing, rejected):
            self.own.record_rows(claim.cursor, claim.epoch, claim.rows)

    def commit(self, claim: TableClaim[Cursor]) -> None:
        """A refusal of the server blocks the decided epoch, it can't reject it."""
        reach(CrashPoint.PUBLISH_BEFORE_SINK_COMMIT)
        # if the answer is lost, the next try finds the marker, or nothing
        with self.database.naming(f"committing epoch {claim.epoch.id}", PublishBlocked):
            claim.commit()
        reach(CrashPoint.PUBLISH_AFTER_SINK_COMMIT)


def _as_shown(replaced: Replaced, epoch: SinkEpoch) -> SinkEpoch:
    """What the marker of an epoch that the target never shows says, whose place `epoch` takes: its range and its
    generation too, or a rebuilt ledger would find a generation that nobody has a marker of."""
    told = SinkEpoch(replaced.id, epoch.token, replaced.manifest_hash, epoch.timestamp, epoch.interval)
    if epoch.interval is None:
        return told
    return replace(told, generation=epoch.generation - 1 - [*epoch.replaced, *epoch.earlier].index(replaced))
