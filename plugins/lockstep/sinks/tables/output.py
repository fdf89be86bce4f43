"""One output of a sink and the table it goes into: made, checked and read back, whatever database it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from lockstep.errors import LockstepError, PreflightRefused
from lockstep.relation import Relation
from lockstep.sinks.tables._database import Database
from lockstep.sinks.tables.own_tables import Owner, OwnTables
from lockstep.sinks.tables.upserts import Upserts
from lockstep.sinks.values import Batches, SinkEpoch, Standing


class FoundTable(Protocol):
    """A target table as the catalogue has it."""

    def epoch_column(self, name: str | None) -> str | None: ...

    def require_fit(self, where: str, schema: pa.Schema, epoch_column: str | None) -> None: ...


@dataclass(frozen=True)
class UniqueKey:
    """What of a target refuses a second row: a primary key, a unique index, an exclusion constraint."""

    name: str
    by_epoch: bool  #: the epoch column is part of it: rows of two epochs are never alike


Cursor = TypeVar("Cursor")
Cursor_contra = TypeVar("Cursor_contra", contravariant=True)


class RowWriter(Protocol[Cursor_contra]):
    """How one epoch's rows of an output get into the table, within the transaction of a cursor."""

    def write(self, cursor: Cursor_contra, batches: Batches) -> int:
        """Put all rows in; returns how many there are, which the server has confirmed."""

    def try_rows(self, cursor: Cursor_contra, batches: Batches) -> int:
        """Have the server try all rows, in a transaction that is rolled back, unless it surely takes them; returns how
        many there are."""

    def try_encoding(self, cursor: Cursor_contra, batches: Batches) -> int:
        """Check types, values and count without touching the table; returns the rows counted."""


@dataclass(frozen=True)
class TableOutput(ABC, Generic[Cursor]):
    """`upserts` None: rows are appended."""

    database: Database[Cursor]
    own: OwnTables[Cursor]
    output: str
    relation: Relation
    epoch_column: str | None
    upserts: Upserts | None

    # --- what each database does in its own way ---

    @abstractmethod
    def _find(self, cursor: Cursor) -> FoundTable | None:
        """The table, None if there is none. Raises `PreflightRefused` for what can't keep rows safely."""

    @abstractmethod
    def _make(self, cursor: Cursor, schema: pa.Schema, key: Sequence[str]) -> None:
        """Create it for rows of `schema`, one a `key` where there is one."""

    @abstractmethod
    def _require_rights(self, cursor: Cursor, stored: pa.Schema) -> None:
        """Refuse a table that can't be written to, or not by key, by whoever is connected."""

    @abstractmethod
    def unique_keys(self, cursor: Cursor, schema: pa.Schema) -> list[UniqueKey]:
        """Those of the table that rows of `schema` may meet twice; not those that the server numbers itself."""

    def holds_others_up(self, cursor: Cursor, schema: pa.Schema) -> bool:
        """Whether others may have to wait for a transaction that has written rows into the table."""
        return any(not key.by_epoch for key in self.unique_keys(cursor, schema))

    @abstractmethod
    def writer(self, epoch: SinkEpoch, rejected: type[LockstepError]) -> RowWriter[Cursor]:
        """How an epoch's rows get into the table; `rejected` is raised when the server refuses them."""

    @abstractmethod
    def standing(self, epoch: SinkEpoch, sealed: Batches) -> Standing:
        """See `OpenSink.standing`; only for upserts."""

    @abstractmethod
    def _read(self, epoch_column: str, epoch: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of an epoch, under the table's names."""

    # --- what is the same ---

    @property
    def where(self) -> str:
        return self.database.where

    def preflight(self, cursor: Cursor, schemas: Mapping[str, pa.Schema] | None, *, create: bool) -> None:
        """Raises `PreflightRefused`; see `Sink.preflight`."""
        if schemas is not None and self.output not in schemas:
            raise PreflightRefused(f"{self.where}: the transform gave no output {self.output}, but {sorted(schemas)}")
        if self._find(cursor) is None:
            if not create:
                raise PreflightRefused(f"{self.where}: table {self.relation} is missing; create it, or say create=True")
            if schemas is None:
                return
            key = self.upserts.keys[self.output] if self.upserts is not None else ()
            self._make(cursor, self._stored(schemas[self.output]), key)
        if schemas is not None:
            table, stored = self._find(cursor), self._stored(schemas[self.output])
            assert table is not None
            self._compare(table, stored)
            self._require_rights(cursor, stored)

    def _compare(self, table: FoundTable, schema: pa.Schema) -> None:
        table.require_fit(f"{self.where}: output {self.output}", schema, self.epoch_column)

    def _stored(self, schema: pa.Schema) -> pa.Schema:
        """The table's columns, all but the epoch's. Raises `PreflightRefused` for what can't be upserted."""
        if self.upserts is None:
            return schema
        if faults := self.upserts.faults(self.output, schema):
            raise PreflightRefused(f"{self.where}: output {self.output} can't be upserted: {'; '.join(faults)}")
        return self.upserts.stored_schema(schema)

    def read(self, epoch: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The epoch's rows as the output had them. Raises `PreflightRefused` where nobody can tell whose they are."""
        with self.database.transaction(f"reading table {self.relation}") as cursor:
            found = self._find(cursor), self.own.other_owners(cursor, self.relation)
        column = self._require_epoch_column(*found, schema)
        stored = schema if self.upserts is None else self.upserts.rename(schema)
        rows = self._read(column, epoch, stored)
        return (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)

    def _require_epoch_column(self, table: FoundTable | None, others: Sequence[Owner], schema: pa.Schema) -> str:
        """The table's epoch column. Raises `PreflightRefused` where nobody can tell whose rows are which."""
        if table is None:
            raise PreflightRefused(f"{self.where}: table {self.relation} does not exist any more")
        if (column := table.epoch_column(self.epoch_column)) is None:
            raise PreflightRefused(
                f"{self.where}: table {self.relation} has no column {self.epoch_column}, so nobody can tell whose "
                "rows are which; add it (bigint) to verify epochs from then on"
            )
        if others:
            raise PreflightRefused(
                f"{self.where}: table {self.relation} is shared with {others[0].pipeline}.{others[0].sink}: epoch "
                "numbers of two sinks can't be told apart"
            )
        self._compare(table, schema if self.upserts is None else self.upserts.stored_schema(schema))
        return column
