"""What a database has to offer before a `TableSink` can write to it.

A cursor is whatever the driver calls one: it comes out of `Database.transaction` and goes back into the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pyarrow as pa

from lockstep.errors import LockstepError, SinkRejected
from lockstep.sinks.base import Marker, SinkEpoch
from lockstep.sinks.tables.output import UniqueKey


class Database(Protocol):
    """The way to the server, with errors that have Lockstep's names."""

    @property
    def sink(self) -> str: ...

    @property
    def lock_timeout(self) -> float: ...

    def transaction(
        self, doing: str, *, rejected: type[LockstepError] = SinkRejected
    ) -> AbstractContextManager[Any]: ...

    def naming(self, doing: str, rejected: type[LockstepError] = SinkRejected) -> AbstractContextManager[None]: ...

    def is_locked_out(self, error: LockstepError) -> bool: ...

    def close(self) -> None: ...


class TargetTables(Protocol):
    """Lockstep's own tables beside the data."""

    def create(self, cursor: Any, *, upserts: bool = False) -> None: ...

    def claim(self, cursor: Any, outputs: Mapping[str, Any], *, shared: bool, alone: bool = False) -> None: ...

    def disclaim(self, cursor: Any) -> None: ...

    def target_id(self, cursor: Any) -> str: ...

    def find_marker(self, cursor: Any, epoch: int) -> Marker | None: ...

    def other_owners(self, cursor: Any, relation: Any) -> list[tuple[str, str, str, bool]]: ...

    def find_marker_of_span(self, cursor: Any, span: str) -> Marker | None: ...

    def newest_markers(self, cursor: Any) -> list[Marker]: ...

    def markers(self, cursor: Any) -> list[Marker]: ...

    def record_rows(self, cursor: Any, epoch: SinkEpoch, rows: Mapping[str, int]) -> None: ...

    def missing_keys(self, cursor: Any, relation: Any) -> int: ...


class Output(Protocol):
    """The table of one output."""

    @property
    def relation(self) -> Any: ...

    def preflight(self, cursor: Any, schemas: Mapping[str, pa.Schema] | None, *, create: bool) -> None: ...

    def unique_keys(self, cursor: Any, schema: pa.Schema) -> list[UniqueKey]: ...

    def read(self, database: Any, own: Any, epoch: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]: ...
