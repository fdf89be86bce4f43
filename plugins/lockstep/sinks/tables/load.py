"""How an epoch's rows get into a table, as far as it is the same whatever the server takes them as."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from lockstep.connections.names import Relation
from lockstep.errors import LockstepError, SinkRejected
from lockstep.sinks.tables._database import Database
from lockstep.sinks.tables.held_rows import MOST_BYTES, HeldRows, hold
from lockstep.sinks.tables.own_tables import OwnTables
from lockstep.sinks.tables.upserts import ORDER_COLUMN, Order, Upserts
from lockstep.sinks.values import Batches, RowStatus, SinkEpoch


class TransactionCursor(Protocol):
    """What of a cursor is the same in every database."""

    def execute(self, statement: Any, /) -> object: ...


class RowEncoding(Protocol):
    """How an output's batches become what the server takes, by name."""

    @property
    def names(self) -> list[str]:
        """The columns that are filled, in their order."""

    @property
    def by_text(self) -> bool:
        """Whether types of the server make values of texts, so that only it can tell which ones they refuse."""

    def pieces(self, batches: Batches) -> Iterator[tuple[Any, int]]:
        """What is sent, and how many rows each piece has. Raises `SinkRejected` for values that would change."""

    def check(self, batches: Batches) -> int:
        """As `pieces`, where nothing is to be sent; returns the rows counted."""


@dataclass
class HarmlessBatches:
    """Satisfies `Batches`. `harmless`: whether all that were read so far are."""

    batches: Batches
    is_harmless: Callable[[pa.RecordBatch], bool]
    harmless: bool = True

    @property
    def output(self) -> str:
        return self.batches.output

    @property
    def schema(self) -> pa.Schema:
        return self.batches.schema

    @property
    def rows(self) -> int:
        return self.batches.rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self.batches:
            self.harmless = self.harmless and self.is_harmless(batch)
            yield batch


Cursor = TypeVar("Cursor", bound=TransactionCursor)
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
    adds_columns: bool = False  #: with the rows the table gets those that the output has and it lacks
    columns_come: bool = False  #: epochs bring some: not every one has all of the table's

    # --- what each database does in its own way ---

    def _make_fit(self, cursor: Cursor, schema: pa.Schema) -> None:
        """Give the table what `schema` has and it lacks, where that is asked for and goes with the rows."""

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

    def try_rows(self, cursor: Cursor, batches: Batches) -> int:
        """Let the server try all rows; the cursor's transaction is to be rolled back. Where nothing of the table could
        refuse rows whose types fit, nor anything of their values, none is sent. Returns the rows counted."""
        with self.database.naming(self.what, self.rejected):
            encoding = self.encoding(cursor, batches.schema)
            if encoding.by_text or not self._takes_what_fits(cursor, encoding):
                return self.send(cursor, encoding, self.relation, batches)
        looked_at = HarmlessBatches(batches, lambda batch: self._is_harmless(cursor, encoding, batch))
        rows = encoding.check(looked_at)
        if not looked_at.harmless:
            return self.write(cursor, batches)
        self.require_whole(rows, batches)
        return rows

    def _takes_what_fits(self, cursor: Cursor, encoding: Encoding) -> bool:
        """Whether there is nothing about the table that could refuse a row, or change it: neither constraint nor
        trigger, for example."""
        return False

    def _is_harmless(self, cursor: Cursor, encoding: Encoding, batch: pa.RecordBatch) -> bool:
        """Whether such a table surely takes these rows: no null where none may be, no text that it lacks."""
        return False

    def encoding(self, cursor: Cursor, schema: pa.Schema) -> Encoding:
        """How `schema` is encoded for the table, now and until the transaction ends. Raises `PreflightRefused`."""
        self._make_fit(cursor, schema)
        self._lock(cursor)
        return self._compare(cursor, schema)

    def require_whole(self, rows: int, batches: Batches) -> None:
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
    def _left_out(self, cursor: Cursor, encoding: Encoding) -> list[str]:
        """Columns of the table that are null in the row of an epoch that doesn't have them."""

    @abstractmethod
    def _look(self, cursor: Cursor, staging: Relation, encoding: Encoding) -> tuple[Any, ...]:
        """The numbers of `RowStatus`."""

    @abstractmethod
    def _drop(self, cursor: Cursor, staging: Relation) -> None:
        """Take the table in between away, and its room."""

    @abstractmethod
    def _tells_apart_by_bytes(self, cursor: Cursor) -> bool:
        """Whether two keys are alike for the server only where they are for Arrow."""

    @abstractmethod
    def _leading(self, cursor: Cursor) -> str | None:
        """The column that the table's index on the key starts with."""

    @abstractmethod
    def _is_free(self, cursor: Cursor, column: str, span: tuple[object, object]) -> bool:
        """Whether no row has a value within `span` there: by the first one from its beginning on, which is one step
        down the index, however large the table is."""

    # --- what is the same ---

    def write(self, cursor: Cursor, batches: Batches) -> int:
        """Put all rows in within the cursor's transaction; returns how many there are, older ones included."""
        with self.load.database.naming(self.load.what, self.load.rejected):
            encoding, rows = self._read(cursor, batches)
            new = self._put(cursor, encoding, rows)
            self.own.count_keys(cursor, self.epoch, self.load.relation, new)
        return batches.rows

    def _read(self, cursor: Cursor, batches: Batches) -> tuple[Encoding, Batches]:
        """How the rows are encoded, and they as the table has them: of a small epoch they are held, and the keys, and
        what tells rows of one key apart, are known to stand there once."""
        stored = self.upserts.stored(batches, self.epoch)
        encoding = self.load.encoding(cursor, stored.schema)
        by_column = self.upserts.order is Order.COLUMN
        order = [(name, "ascending") for name in self._key] + [(ORDER_COLUMN, "descending")] * by_column
        held = hold(stored, order, MOST_BYTES) if self._tells_apart_by_bytes(cursor) else None
        if held is not None and (found := held.repeated([name for name, _ in order])):
            raise self.load.rejected(self.upserts.duplicates(self.load.output, found))
        return encoding, held or stored

    def _put(self, cursor: Cursor, encoding: Encoding, rows: Batches) -> int:
        """Returns how many keys are new in the table."""
        once = isinstance(rows, HeldRows) and not (self.upserts.order is Order.COLUMN and rows.repeated(self._key))
        if isinstance(rows, HeldRows) and once and self._insert(cursor, encoding, rows):
            return rows.rows
        with self._stage(cursor, encoding, rows) as staging:
            return self._merge(cursor, staging, encoding, rows.rows)

    def _insert(self, cursor: Cursor, encoding: Encoding, held: HeldRows) -> bool:
        """Put rows in at once, each with a key of its own, if the table seems to have none of the keys. False: it may,
        and nothing was put in."""
        leading = self._leading(cursor)
        span = held.span(leading) if leading is not None else None
        if leading is None or span is None or not self._is_free(cursor, leading, span):
            return False
        cursor.execute("SAVEPOINT lockstep_upsert")
        try:
            self.load.send(cursor, encoding, self.load.relation, held)
        except self.load.rejected:  # somebody else was faster with a key; or whatever is wrong will be said again
            cursor.execute("ROLLBACK TO SAVEPOINT lockstep_upsert")
            return False
        cursor.execute("RELEASE SAVEPOINT lockstep_upsert")
        return True

    def try_rows(self, cursor: Cursor, batches: Batches) -> int:
        """Put all rows in; the cursor's transaction is to be rolled back."""
        return self.write(cursor, batches)

    def standing(self, cursor: Cursor, batches: Batches) -> RowStatus:
        """Look for each row by its key. The cursor's transaction is to be rolled back."""
        stored = self.upserts.stored(batches, self.epoch)
        with self.load.database.naming(self.load.what, self.load.rejected):
            encoding = self.load.encoding(cursor, stored.schema)
        with self._stage(cursor, encoding, stored) as staging:
            return RowStatus(*(int(number or 0) for number in self._look(cursor, staging, encoding)))

    def _cleared(self, cursor: Cursor, encoding: Encoding) -> list[str]:
        """Columns that a row loses when a newer one replaces it: where epochs bring columns, those that this one
        doesn't have. Else whoever was published first would decide what stands there."""
        return self._left_out(cursor, encoding) if self.load.columns_come else []

    @property
    def _key(self) -> list[str]:
        return list(self.upserts.keys[self.load.output])

    @contextmanager
    def _stage(self, cursor: Cursor, encoding: Encoding, rows: Batches) -> Iterator[Relation]:
        """All rows in a table of our own, with unique keys."""
        staging = self._staging()
        with self.load.database.naming(self.load.what, self.load.rejected):
            self._create(cursor, staging, encoding)
            self.load.send(cursor, encoding, staging, rows)
            if not isinstance(rows, HeldRows):
                self._require_unique(cursor, staging)
            yield staging
            self._drop(cursor, staging)
