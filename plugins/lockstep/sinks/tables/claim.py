"""Open a transaction whose first row is the epoch's marker: whoever gets no row writes nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from lockstep.errors import LockstepError, SinkUnavailable
from lockstep.sinks.base import SinkEpoch
from lockstep.sinks.tables.branches import TableBranches
from lockstep.sinks.tables.server import Database, TargetTables

TRIES = 4  #: each lasts up to the lock timeout, and ends what lower tokens left in the way

Connection = TypeVar("Connection")
Cursor = TypeVar("Cursor")


@dataclass
class TableClaim(Generic[Connection, Cursor]):
    """An open transaction. `claimed` False: the marker is taken, or another publisher is at work; nothing is open."""

    epoch: SinkEpoch
    connection: Connection
    cursor: Cursor
    target_id: str
    close: Callable[[], None]  #: ends the transaction: without a commit or prepare before, nothing of it happened
    claimed: bool = False
    rows: dict[str, int] = field(default_factory=dict)


AnyClaim: TypeAlias = TableClaim[Any, Any]
Claim = TypeVar("Claim", bound=AnyClaim)


@dataclass(frozen=True)
class TableClaims(ABC):
    """How a sink comes to hold the marker of an epoch."""

    database: Database
    tables: TargetTables
    branches: TableBranches

    @abstractmethod
    def after_decision(self, epoch: SinkEpoch) -> AnyClaim:
        """Claim the marker for publishing. A publisher of a lower token that makes progress is left to it."""

    @abstractmethod
    def _insert_marker(self, claim: AnyClaim) -> bool:
        """Insert it; False if the row was there."""

    def _at_once(self, epoch: SinkEpoch, opened: Callable[[], Claim]) -> Claim:
        """Claim the marker before the decision: lower tokens were superseded in the ledger, and give way at once."""
        for _ in range(TRIES):
            claim = opened()
            if self._insert(claim):
                return claim
            self.branches.clear_the_way(epoch)
        raise self._stuck(epoch)

    def _insert(self, claim: AnyClaim) -> bool:
        """False on a lock timeout, with the transaction closed; else `claim.claimed` tells whether the row was free."""
        try:
            with self.database.naming("inserting the marker", SinkUnavailable):
                claim.claimed = self._insert_marker(claim)
        except LockstepError as error:
            claim.close()
            if self.database.is_locked_out(error):
                return False
            raise
        if not claim.claimed:
            claim.close()
        return True

    def _stuck(self, epoch: SinkEpoch) -> SinkUnavailable:
        return SinkUnavailable(
            f"sink {self.database.sink}: the marker of epoch {epoch.id} stays locked for token {epoch.token}; "
            f"in the way: {self.branches.in_the_way(epoch)}; try again"
        )
