"""How long sealed WALs stay after cleanup, as a pipeline says it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from lockstep.errors import InvalidPipeline


@dataclass(frozen=True)
class WalRetention:
    """At most one of the two. `time`: since cleanup. `epochs`: of so many epochs, the youngest. Neither: cleanup
    deletes."""

    time: timedelta | None = None
    epochs: int | None = None

    @classmethod
    def of(cls, pipeline: str, keep_wal: timedelta | int | None) -> WalRetention:
        """Raises `InvalidPipeline` for what is neither a time that passes nor a number of epochs."""
        match keep_wal:
            case None:
                return cls()
            case timedelta() if keep_wal > timedelta():
                return cls(time=keep_wal)
            case int() if not isinstance(keep_wal, bool) and 1 <= keep_wal < 1 << 31:
                return cls(epochs=keep_wal)
        raise InvalidPipeline(
            f"pipeline {pipeline}: keep_wal is {keep_wal!r}; say how long as a timedelta above zero, or of how many "
            "epochs as an int of at least 1, or leave it away: then cleanup deletes"
        )

    @property
    def keeps(self) -> bool:
        return self.time is not None or self.epochs is not None

    def __str__(self) -> str:
        if self.time is not None:
            return f"for {self.time}"
        return f"of the {self.epochs} youngest epochs" if self.epochs is not None else "not at all"


@dataclass(frozen=True)
class RetainedWal:
    """A sealed WAL that stays after cleanup, or, while that goes on, one that doesn't. `bytes`: of its files, without
    those that tables have adopted and those of another WAL that it refers to."""

    epoch: int
    wal: str  #: the folder, relative to staging
    bytes: int
    retained_at: datetime
    expired_at: datetime | None = None  #: since then it may be gone, in part or as a whole


@dataclass(frozen=True)
class KeptWals:
    """How much a pipeline keeps of what was cleaned up."""

    epochs: int
    bytes: int
    oldest: datetime
