"""Finish what is prepared on a server, with patience: the server may be busy with it, or the connection may break."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from lockstep.crash import CrashPoint, reach
from lockstep.errors import LedgerConflict, SinkUnavailable
from lockstep.sinks.tables._database import Database
from lockstep.sinks.values import SinkEpoch, Txn

Cursor = TypeVar("Cursor")


class TryAgain(Exception):
    """The server is busy with this branch, or the connection broke and the branch is still there."""


@dataclass(frozen=True)
class TableBranches(ABC, Generic[Cursor]):
    """What a sink has prepared in `database`. A branch that is gone proves nothing: only the marker tells."""

    commit_verb: ClassVar[str]
    roll_back_verb: ClassVar[str]
    listed: ClassVar[str]  #: where the server lists what is prepared, for a message

    database: Database[Cursor]

    # --- what each database does in its own way ---

    def require_room(self, cursor: Cursor) -> tuple[str, int] | None:
        """See `OpenSink.room`. Raises `PreflightRefused` where the server prepares nothing, and `TargetFull` where it
        can't take more."""
        return None

    @abstractmethod
    def handle(self, epoch: SinkEpoch) -> str:
        """The name of this execution's branch."""

    @abstractmethod
    def parse(self, handle: str) -> Txn | None:
        """The transaction that `handle` names, or None if it isn't of this owner."""

    @abstractmethod
    def prepare(self, cursor: Cursor, txn: Txn) -> None:
        """Have the server prepare the cursor's transaction; returns also when the connection breaks meanwhile."""

    def await_release(self, txn: Txn) -> None:
        """Wait until the server has noticed that the session which prepared `txn` is gone."""

    @abstractmethod
    def pending(self) -> list[Txn]:
        """Every branch of this owner; names that only look alike are not ours."""

    @abstractmethod
    def is_pending(self, handle: str) -> bool:
        """Whether `handle` is prepared, looked up on the primary."""

    @abstractmethod
    def end_sessions(self, epoch: SinkEpoch) -> None:
        """End what works on this epoch with a lower token: a stopped client that holds locks."""

    @abstractmethod
    def lock_holders(self, epoch: SinkEpoch) -> str:
        """Who else works on this epoch, for a message."""

    @abstractmethod
    def _finish_once(self, verb: str, handle: str) -> bool:
        """True if `verb` was done, False if the branch is gone. Raises `TryAgain`."""

    # --- what is the same ---

    def require_own(self, txn: Txn) -> None:
        """Raises `LedgerConflict` unless the handle is what this sink calls `txn`."""
        if self.parse(txn.handle) != txn:
            raise LedgerConflict(
                f"{self.database.where}: the vote's handle {txn.handle} isn't what this sink calls epoch {txn.epoch}, "
                f"token {txn.token}, manifest {txn.manifest} in this database: was the ledger altered? Nothing was "
                "committed"
            )

    def commit(self, handle: str) -> bool:
        """Returns when the branch is gone: True if surely by this call. Raises `SinkUnavailable` if it stays."""
        return self._finish(self.commit_verb, handle)

    def roll_back(self, handle: str) -> None:
        """As `commit`, by rolling back."""
        reach(CrashPoint.ROLLBACK_BEFORE_SINK)
        self._finish(self.roll_back_verb, handle)
        reach(CrashPoint.ROLLBACK_AFTER_SINK)

    def _finish(self, verb: str, handle: str) -> bool:
        patient = Retrying(
            retry=retry_if_exception_type(TryAgain),
            wait=wait_exponential(0.02, max=1),
            stop=stop_after_delay(3 * self.database.lock_timeout),
            reraise=True,
        )
        try:
            return patient(self._finish_once, verb, handle)
        except TryAgain as busy:
            raise SinkUnavailable(f"{self.database.where}: {verb} {handle}: {busy}; try again") from busy

    def _look_again(self, handle: str, error: Exception) -> None:
        """The connection broke in mid-statement: the statement may have been done, or not, or be under way."""
        self.database.close()
        try:
            pending = self.is_pending(handle)
        except SinkUnavailable as unavailable:
            raise TryAgain(str(unavailable)) from error
        if pending:
            raise TryAgain("the connection broke, and it is still prepared") from error

    def terminate_stale_sessions(self, epoch: SinkEpoch) -> None:
        """Roll back this epoch's branches and end its sessions of lower tokens; never of equal or higher ones."""
        for txn in self.pending():
            if txn.epoch == epoch.id and txn.token < epoch.token:
                self.roll_back(txn.handle)
        self.end_sessions(epoch)
