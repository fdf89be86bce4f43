"""What a database has to offer before a `TableSink` can write to it.

A cursor is whatever the driver calls one: it comes out of `Database.transaction` and goes back into the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from lockstep.errors import LockstepError, SinkRejected
from lockstep.sinks.base import Marker, SinkEpoch, Txn
from lockstep.sinks.tables.claim import TableClaim

AnyClaim: TypeAlias = TableClaim[Any, Any]


class Database(Protocol):
    """The way to the server, with errors that have Lockstep's names."""

    def transaction(
        self, doing: str, *, rejected: type[LockstepError] = SinkRejected
    ) -> AbstractContextManager[Any]: ...

    def naming(self, doing: str, rejected: type[LockstepError] = SinkRejected) -> AbstractContextManager[None]: ...

    def close(self) -> None: ...


class TargetTables(Protocol):
    """Lockstep's own tables beside the data."""

    def create(self, cursor: Any, *, upserts: bool = False) -> None: ...

    def claim(self, cursor: Any, relations: Iterable[Any], *, shared: bool, alone: bool = False) -> None: ...

    def target_id(self, cursor: Any) -> str: ...

    def find_marker(self, cursor: Any, epoch: int) -> Marker | None: ...

    def record_rows(self, cursor: Any, epoch: SinkEpoch, rows: Mapping[str, int]) -> None: ...

    def missing_keys(self, cursor: Any, relation: Any) -> int: ...


class Branches(Protocol):
    """What waits on the server for a decision, and who is in the way."""

    def pending(self) -> list[Txn]: ...

    def is_pending(self, handle: str) -> bool: ...

    def commit(self, handle: str) -> bool: ...

    def roll_back(self, handle: str) -> None: ...

    def end_sessions(self, epoch: SinkEpoch) -> None: ...


class Claims(Protocol):
    """How a sink comes to hold the marker of an epoch."""

    def after_decision(self, epoch: SinkEpoch) -> AnyClaim: ...


class Output(Protocol):
    """The table of one output."""

    @property
    def relation(self) -> Any: ...

    def preflight(self, cursor: Any, schemas: Mapping[str, pa.Schema] | None, *, create: bool) -> None: ...

    def read(self, database: Any, own: Any, epoch: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]: ...
