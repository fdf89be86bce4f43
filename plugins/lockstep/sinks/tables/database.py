"""The way to a server, as sinks of tables take it: whatever the driver calls a cursor goes in and out."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from lockstep.errors import LockstepError, SinkRejected

Cursor_co = TypeVar("Cursor_co", covariant=True)


class Database(Protocol[Cursor_co]):
    """Connections, and errors that have Lockstep's names."""

    @property
    def sink(self) -> str: ...

    @property
    def lock_timeout(self) -> float: ...

    def transaction(
        self, doing: str, *, rejected: type[LockstepError] = SinkRejected
    ) -> AbstractContextManager[Cursor_co]: ...

    def naming(self, doing: str, rejected: type[LockstepError] = SinkRejected) -> AbstractContextManager[None]: ...

    def is_locked_out(self, error: LockstepError) -> bool: ...

    def close(self) -> None: ...
