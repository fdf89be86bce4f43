"""How an epoch's rows get into a table, as far as it is the same whatever the server takes them as."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from lockstep.errors import LockstepError, SinkRejected
from lockstep.relation import Relation
from lockstep.sinks.tables._database import Database
from lockstep.sinks.tables.own_tables import OwnTables
from lockstep.sinks.tables.upserts import Upserts
from lockstep.sinks.values import Batches, SinkEpoch, Standing


class RowEncoding(Protocol):
    """How an output's batches become what the server takes, by name."""

    @property
    def names(self) -> list[str]:
        """The columns that are filled, in their order."""

    def pieces(self, batches: Batches) -> Iterator[tuple[Any, int]]:
        """What is sent, and how many rows each piece has. Raises `SinkRejected` for values that would change."""


Cursor = TypeVar("Cursor")
Encoding = TypeVar("Encoding", bound=RowEncoding)


@dataclass(frozen=True)
class TableLoad(ABC, Generic[Cursor, Encoding]):
    """One output's way into one table for one epoch."""

    database: Database[Cursor]
    output: str
    relation: Relation
    epoch: int
    epoch_column: str | None
    rejected: type[LockstepError] = SinkRejected  #: what to raise when the server refuses the rows

    # --- what each database does in its own way ---

    def _lock(self, cursor: Cursor) -> None:
        """Let no column change its type from here on."""

    @abstractmethod
    def _compare(self, cursor: Cursor, schema: pa.Schema) -> Encoding:
        """How `schema` is encoded for the table. Raises `PreflightRefused` where it doesn't fit."""

    @abstractmethod
    def send(self, cursor: Cursor, encoding: Encoding, into: Relation, batches: Batches) -> int:
        """Send all rows into a table with the columns of `encoding`; returns their number, which the server has
        confirmed."""

    # --- what is the same ---

    @property
    def what(self) -> str:
        return f"output {self.output} into table {self.relation}"

    def write(self, cursor: Cursor, batches: Batches) -> int:
        """Put all rows in within the cursor's transaction; returns their number."""
        with self.database.naming(self.what, self.rejected):
            return self.send(cursor, self.encoding(cursor, batches.schema), self.relation, batches)

    def encoding(self, cursor: Cursor, schema: pa.Schema) -> Encoding:
        """How `schema` is encoded for the table, now and until the transaction ends. Raises `PreflightRefused`."""
        self._lock(cursor)
        return self._compare(cursor, schema)

    def try_encoding(self, cursor: Cursor, batches: Batches) -> int:
        """Check types, values and count without sending a row; returns the rows counted."""
        with self.database.naming(self.what, self.rejected):
            encoding = self._compare(cursor, batches.schema)
        rows = sum(rows for _, rows in encoding.pieces(batches))
        self._require_whole(rows, batches)
        return rows

    def _require_whole(self, rows: int, batches: Batches) -> None:
        if rows != batches.rows:
            raise self.rejection(f"the WAL gave {rows} rows, the manifest has {batches.rows}")

    def rejection(self, reason: str) -> LockstepError:
        return self.rejected(f"{self.database.where}: {self.what}: {reason}")


@dataclass(frozen=True)
class TableUpsert(ABC, Generic[Cursor, Encoding]):
    """One output's way into a table where newer rows replace older ones of the same key: through a table in between,
    which nobody else sees. `own`: where keys are counted.

    Rows go in sorted by key, so that transactions that want the same keys wait for one another.
    """

    load: TableLoad[Cursor, Encoding]
    upserts: Upserts
    epoch: SinkEpoch
    own: OwnTables[Cursor]

    # --- what each database does in its own way ---

    @abstractmethod
    def _staging(self) -> Relation:
        """The name of the table in between."""

    @abstractmethod
    def _create(self, cursor: Cursor, staging: Relation, encoding: Encoding) -> None:
        """Columns of the target's types and collations, without its keys."""

    @abstractmethod
    def _require_unique(self, cursor: Cursor, staging: Relation) -> None:
        """Refuse rows of which nobody can say which stays."""

    @abstractmethod
    def _merge(self, cursor: Cursor, staging: Relation, encoding: Encoding, rows: int) -> int:
        """Put all `rows` that are newer than what stands into the table; returns how many keys are new there."""

    @abstractmethod
    def _look(self, cursor: Cursor, staging: Relation, encoding: Encoding) -> tuple[Any, ...]:
        """The numbers of `Standing`."""

    @abstractmethod
    def _drop(self, cursor: Cursor, staging: Relation) -> None:
        """Take the table in between away, and its room."""

    # --- what is the same ---

    def write(self, cursor: Cursor, batches: Batches) -> int:
        """Put all rows in within the cursor's transaction; returns how many there are, older ones included."""
        with self._stage(cursor, batches) as (staging, encoding):
            new = self._merge(cursor, staging, encoding, batches.rows)
            self.own.count_keys(cursor, self.epoch, self.load.relation, new)
        return batches.rows

    def try_encoding(self, cursor: Cursor, batches: Batches) -> int:
        """Check types, values, count and keys without touching the table; returns the rows counted."""
        with self._stage(cursor, batches):
            return batches.rows

    def standing(self, cursor: Cursor, batches: Batches) -> Standing:
        """Look for each row by its key. The cursor's transaction is to be rolled back."""
        with self._stage(cursor, batches) as (staging, encoding):
            return Standing(*(int(number or 0) for number in self._look(cursor, staging, encoding)))

    @property
    def _key(self) -> list[str]:
        return list(self.upserts.keys[self.load.output])

    @contextmanager
    def _stage(self, cursor: Cursor, batches: Batches) -> Iterator[tuple[Relation, Encoding]]:
        """All rows in a table of our own, with unique keys."""
        stored, staging = self.upserts.stored(batches, self.epoch), self._staging()
        with self.load.database.naming(self.load.what, self.load.rejected):
            encoding = self.load.encoding(cursor, stored.schema)
            self._create(cursor, staging, encoding)
            self.load.send(cursor, encoding, staging, stored)
            self._require_unique(cursor, staging)
            yield staging, encoding
            self._drop(cursor, staging)
