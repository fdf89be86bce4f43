"""How an epoch's rows get into a table: appended, or upserted through a staging table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from lockstep.connections.relation import Relation
from lockstep.errors import LockstepError
from lockstep.sinks.tables.arrow_values import MAX_BYTES, SortedRows, sort_in_memory
from lockstep.sinks.tables.dialect import Cursor, Dialect, Merge, RowEncoding
from lockstep.sinks.tables.output_table import OutputTable
from lockstep.sinks.tables.own_tables import OwnTables
from lockstep.sinks.tables.upserts import ORDER_COLUMN, Order, Upserts
from lockstep.sinks.values import Batches, RowStatus, SinkEpoch


@dataclass
class _HarmlessBatches:
    """Satisfies `Batches`. `harmless`: True while every batch read so far is."""

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


@dataclass(frozen=True)
class TableLoad:
    """Appends one epoch's rows. `rejected` is raised when the server refuses them."""

    table: OutputTable
    epoch: int
    rejected: type[LockstepError]

    @property
    def dialect(self) -> Dialect:
        return self.table.dialect

    @property
    def doing(self) -> str:
        return f"output {self.table.output} into table {self.table.relation}"

    def encoding(self, cursor: Cursor, schema: pa.Schema) -> RowEncoding:
        """The encoding of `schema` for the table, valid until the transaction ends. Raises `PreflightRefused`."""
        table = self.table.open_for_rows(cursor, schema)
        return self.dialect.encoding(
            table.columns,
            schema,
            doing=self.doing,
            rejected=self.rejected,
            epoch_column=table.epoch_column,
            epoch=self.epoch,
        )

    def write(self, cursor: Cursor, batches: Batches) -> int:
        """Send all rows within the cursor's transaction; returns their number, which the server has confirmed."""
        with self.dialect.database.naming(self.doing, self.rejected):
            return self.encoding(cursor, batches.schema).send(cursor, self.table.relation, batches)

    def try_rows(self, cursor: Cursor, batches: Batches) -> int:
        """Have the server try all rows, in a transaction that is rolled back; returns their number.

        None is sent where nothing of the table could refuse rows whose types fit, nor anything of their values.
        """
        dialect, relation = self.dialect, self.table.relation
        with dialect.database.naming(self.doing, self.rejected):
            encoding = self.encoding(cursor, batches.schema)
            if encoding.by_text or not dialect.accepts_fitting_rows(cursor, relation, encoding.names):
                return encoding.send(cursor, relation, batches)
        checked = _HarmlessBatches(batches, lambda batch: encoding.is_harmless(cursor, batch))
        rows = encoding.check(checked)
        if not checked.harmless:
            return self.write(cursor, batches)
        encoding.require_complete(rows, batches)
        return rows


@dataclass(frozen=True)
class TableUpsert:
    """Upserts one epoch's rows: newer rows replace older ones of the same key, through a staging table.

    Rows are written in the order of their keys, so that transactions with the same keys wait instead of deadlocking. A
    small epoch is sorted in memory; if no row of the table seems to have one of its keys, its rows go in directly.
    """

    load: TableLoad
    upserts: Upserts
    epoch: SinkEpoch

    @property
    def _dialect(self) -> Dialect:
        return self.load.dialect

    @property
    def _relation(self) -> Relation:
        return self.load.table.relation

    @property
    def _key(self) -> list[str]:
        return list(self.upserts.keys[self.load.table.output])

    @property
    def _by_column(self) -> bool:
        return self.upserts.order is Order.COLUMN

    def write(self, cursor: Cursor, batches: Batches) -> int:
        """Upsert all rows within the cursor's transaction; returns their number, older ones included."""
        with self._dialect.database.naming(self.load.doing, self.load.rejected):
            stored = self.upserts.stored(batches, self.epoch)
            encoding = self.load.encoding(cursor, stored.schema)
            new = self._write(cursor, encoding, self._sort(cursor, stored) or stored)
            OwnTables(self._dialect).count_keys(cursor, self.epoch, self._relation, new)
        return batches.rows

    def try_rows(self, cursor: Cursor, batches: Batches) -> int:
        """`write` in a transaction that is rolled back."""
        return self.write(cursor, batches)

    def _sort(self, cursor: Cursor, stored: Batches) -> SortedRows | None:
        """The rows of a small epoch in memory, sorted by key and checked for duplicates; None for others."""
        if not self._dialect.compares_keys_by_bytes(cursor, self._relation, self._key):
            return None
        order = [(name, "ascending") for name in self._key] + [(ORDER_COLUMN, "descending")] * self._by_column
        rows = sort_in_memory(stored, order, MAX_BYTES)
        if rows is not None and (repeated := rows.repeated([name for name, _ in order])):
            raise self.load.rejected(self.upserts.duplicates(stored.output, repeated))
        return rows

    def _write(self, cursor: Cursor, encoding: RowEncoding, rows: Batches) -> int:
        """Returns how many keys are new in the table."""
        if isinstance(rows, SortedRows):
            is_unique = not (self._by_column and rows.repeated(self._key))
            if is_unique and self._insert(cursor, encoding, rows):
                return rows.rows
        with self._staged(cursor, encoding, rows) as merge:
            return self._dialect.merge(cursor, merge, rows.rows)

    def _insert(self, cursor: Cursor, encoding: RowEncoding, rows: SortedRows) -> bool:
        """Insert rows, each with a key of its own, if the table seems to have none of the keys; False if it may have
        some, and nothing was inserted."""
        leading = self._dialect.leading_column(cursor, self._relation, self._key)
        span = rows.span(leading) if leading is not None else None
        if leading is None or span is None or not self._is_free(cursor, leading, span):
            return False
        cursor.execute("SAVEPOINT lockstep_upsert")
        try:
            encoding.send(cursor, self._relation, rows)
        except self.load.rejected:  # another transaction has inserted a key meanwhile; other faults occur again below
            cursor.execute("ROLLBACK TO SAVEPOINT lockstep_upsert")
            return False
        cursor.execute("RELEASE SAVEPOINT lockstep_upsert")
        return True

    def _is_free(self, cursor: Cursor, column: str, span: tuple[object, object]) -> bool:
        """True if no row has a value within `span`: one step down the index, however large the table is."""
        statement = "SELECT COALESCE((SELECT MIN({column}) FROM {table} WHERE {column} >= %s) > %s, TRUE)"
        [(is_free,)] = self._dialect.query(cursor, statement, span, column=column, table=self._relation)
        return bool(is_free)

    def compare(self, cursor: Cursor, batches: Batches) -> RowStatus:
        """Look for each row by its key. The cursor's transaction is to be rolled back."""
        stored = self.upserts.stored(batches, self.epoch)
        with self._dialect.database.naming(self.load.doing, self.load.rejected):
            encoding = self.load.encoding(cursor, stored.schema)
        with self._staged(cursor, encoding, stored) as merge:
            return RowStatus(*(int(number or 0) for number in self._dialect.compare(cursor, merge)))

    @contextmanager
    def _staged(self, cursor: Cursor, encoding: RowEncoding, rows: Batches) -> Iterator[Merge]:
        """All rows in a staging table, each key, with its order, once."""
        dialect, key = self._dialect, self._key
        with dialect.database.naming(self.load.doing, self.load.rejected):
            staging = dialect.create_staging(cursor, self._relation, encoding.names)
            encoding.send(cursor, staging, rows)
            if not isinstance(rows, SortedRows):
                columns = [*key, *([ORDER_COLUMN] if self._by_column else [])]
                if duplicates := dialect.find_duplicates(cursor, staging, columns):
                    raise self.load.rejected(self.upserts.duplicates(rows.output, duplicates))
            cleared = self._cleared(cursor, encoding)
            epoch_column = str(encoding.epoch_column)
            yield Merge(self._relation, staging, encoding, encoding.names, key, epoch_column, self._by_column, cleared)
            dialect.drop_staging(cursor, staging)

    def _cleared(self, cursor: Cursor, encoding: RowEncoding) -> list[str]:
        """Columns that become null when a newer row replaces a row: where epochs add columns, those that this one
        lacks. Otherwise the order of publication would decide their values."""
        if not self.load.table.adds_columns:
            return []
        table = self.load.table.find(cursor)
        return table.null_without(encoding.names) if table is not None else []
