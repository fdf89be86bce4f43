"""How long sealed WALs are retained after cleanup."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from lockstep.errors import InvalidPipeline


@dataclass(frozen=True)
class WalRetention:
    """Retain WALs for `time` after cleanup, or those of the newest `epochs` epochs; with neither, cleanup deletes
    them."""

    time: timedelta | None = None
    epochs: int | None = None

    @classmethod
    def of(cls, pipeline: str, keep_wal: timedelta | int | None) -> WalRetention:
        """Read the argument `keep_wal`. Raises `InvalidPipeline` unless it is a positive time or number of epochs."""
        match keep_wal:
            case None:
                return cls()
            case timedelta() if keep_wal > timedelta():
                return cls(time=keep_wal)
            case int() if not isinstance(keep_wal, bool) and 1 <= keep_wal < 1 << 31:
                return cls(epochs=keep_wal)
        raise InvalidPipeline(
            f"pipeline {pipeline}: keep_wal is {keep_wal!r}; give a time as a timedelta above zero, or a number "
            "of epochs as an int of at least 1, or leave it out: then cleanup deletes"
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
    """A sealed WAL that is retained after cleanup, or is being deleted. `bytes`: of its files, without those that
    tables have adopted and those of another WAL that it refers to."""

    epoch: int
    wal: str  #: the folder, relative to staging
    bytes: int
    retained_at: datetime
    expired_at: datetime | None = None  #: since then it may be partly or completely deleted


@dataclass(frozen=True)
class KeptWals:
    """Totals of a pipeline's retained WALs."""

    epochs: int
    bytes: int
    oldest: datetime
