"""The way to a server, as sinks of tables take it: whatever the driver calls a cursor goes in and out."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from lockstep.errors import LockstepError

Cursor_co = TypeVar("Cursor_co", covariant=True)


class Database(Protocol[Cursor_co]):
    """Connections, and errors that have Lockstep's names."""

    @property
    def where(self) -> str: ...

    @property
    def lock_timeout(self) -> float: ...

    def transaction(
        self, doing: str, *, rejected: type[LockstepError] | None = None
    ) -> AbstractContextManager[Cursor_co]: ...

    def naming(self, doing: str, rejected: type[LockstepError] | None = None) -> AbstractContextManager[None]: ...

    def is_locked_out(self, error: LockstepError) -> bool: ...

    def close(self) -> None: ...
