"""The table of an output: whether it can keep rows exactly, and how an epoch's rows get in, appended or upserted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from lockstep.connections.names import Relation
from lockstep.errors import LockstepError, PreflightRefused
from lockstep.sinks.tables.arrow_values import MAX_BYTES, SortedRows, sort_in_memory
from lockstep.sinks.tables.dialect import Cursor, Dialect, Merge, RowEncoding, TargetColumn, UniqueKey
from lockstep.sinks.tables.own_tables import OwnTables
from lockstep.sinks.tables.upserts import DELETED_COLUMN, ORDER_COLUMN, Order, Upserts
from lockstep.sinks.values import Batches, RowStatus, SinkEpoch


@dataclass(frozen=True)
class CatalogTable:
    """A target table with its columns, as the transaction that has read the catalogue sees them.

    `epoch_column`: the column that the sink fills, as the table spells it; None if the table has none.
    """

    relation: Relation
    columns: Mapping[str, TargetColumn]
    epoch_column: str | None
    epoch_column_name: str | None  #: as the sink's argument spells it

    def missing_columns(self, schema: pa.Schema) -> list[pa.Field]:
        """The columns of `schema` that the table lacks, without the epoch column."""
        return [column for column in schema if column.name not in {*self.columns, self._filled}]

    def null_without(self, names: Collection[str]) -> list[str]:
        """The columns that are null in a row of which only `names` are given."""
        return [
            column.name
            for column in self.columns.values()
            if not (column.not_null or column.has_default or column.generated or column.name in names)
        ]

    def require_fit(self, where: str, schema: pa.Schema) -> None:
        """Compare `schema` with the columns, by name. `where`: sink and output, for a message.

        Raises `PreflightRefused` with every column at fault.
        """
        faults = [f"column {name}: the table lacks it" for name in schema.names if name not in self.columns]
        twice = {name for name in schema.names if schema.names.count(name) > 1}
        faults += [f"column {name}: the output has it twice" for name in twice]
        for field in schema:
            if field.name in self.columns and (reason := self.columns[field.name].refusal(field)):
                faults.append(f"column {field.name}: {reason}")
        faults += [
            f"column {column.name}: it is NOT NULL without a default, and the output lacks it"
            for column in self.columns.values()
            if column.needed and column.name not in {*schema.names, self._filled}
        ]
        column = self.columns.get(self._filled or "")
        if self._filled is not None and self._filled in schema.names:
            faults.append(
                f"column {self._filled}: the sink fills it; rename the output's, or give another epoch_column"
            )
        elif column is not None and (not column.is_bigint or column.generated):
            faults.append(f"column {self._filled}: it has to be a plain bigint, is {column.type_text}")
        if faults:
            raise PreflightRefused(f"{where} does not fit table {self.relation}: {'; '.join(faults)}")

    def require_order(self, where: str, upserts: Upserts) -> None:
        """Raise `PreflightRefused` for a table without the columns by which rows are newer or older."""
        for name in (ORDER_COLUMN, str(self._filled), *([DELETED_COLUMN] if upserts.deleted else [])):
            if name not in self.columns or not self.columns[name].not_null:
                raise PreflightRefused(
                    f"{where}: mode='upsert' needs column {name}, NOT NULL: add it, or let the sink make the table "
                    "(create=True)"
                )

    @property
    def _filled(self) -> str | None:
        return self.epoch_column or self.epoch_column_name


@dataclass(frozen=True)
class OutputMapping:
    """One output and the table that its rows go into.

    `upserts` None: rows are appended. `adds_columns`: the table gets the columns that the output has and it lacks; but
    not in the transaction of rows that wait for the decision (`holds_rows`).
    """

    dialect: Dialect
    output: str
    relation: Relation
    epoch_column: str | None
    upserts: Upserts | None
    adds_columns: bool = False
    holds_rows: bool = False

    @property
    def where(self) -> str:
        return self.dialect.where

    def find(self, cursor: Cursor) -> CatalogTable | None:
        """The table, None if there is none. Raises `PreflightRefused` for one that can't keep rows safely."""
        columns = self.dialect.find_columns(cursor, self.relation)
        if columns is None:
            return None
        name = self.epoch_column
        spelled = self.dialect.find_column(columns, name) if name else None
        return CatalogTable(self.relation, columns, spelled, name)

    def require(self, cursor: Cursor) -> CatalogTable:
        """`find` the table. Raises `PreflightRefused` also if there is none."""
        table = self.find(cursor)
        if table is None:
            raise PreflightRefused(f"{self.where}: table {self.relation} is gone: create it again")
        return table

    def compare(self, table: CatalogTable, schema: pa.Schema) -> None:
        """Raises `PreflightRefused` with every column of `schema`, and of the table, that doesn't fit."""
        if len(schema) == 0 and not self.dialect.accepts_no_columns:
            raise PreflightRefused(f"{self.where}: output {self.output} has no column")
        table.require_fit(f"{self.where}: output {self.output}", schema)

    def open_for_rows(self, cursor: Cursor, schema: pa.Schema) -> CatalogTable:
        """The table, with columns for `schema`, now and until the transaction ends. Adds columns where that is part of
        the transaction. Raises `PreflightRefused` as `compare`."""
        if self.adds_columns and self.dialect.adds_columns_with_rows and not self.holds_rows:
            table = self.find(cursor)
            if table is not None and (new := table.missing_columns(schema)):
                self.dialect.add_columns(cursor, self.relation, new)
        self.dialect.lock_columns(cursor, self.relation)
        table = self.require(cursor)
        self.compare(table, schema)
        return table

    def unique_keys(self, cursor: Cursor, schema: pa.Schema) -> list[UniqueKey]:
        """Unique keys of the table that rows of `schema` may violate."""
        return self.dialect.unique_keys(cursor, self.relation, schema.names, self.epoch_column)

    def blocks_others(self, cursor: Cursor, schema: pa.Schema) -> bool:
        """True if other transactions may have to wait for one that has written rows into the table: by unique keys, or
        by what triggers lock, those of foreign keys among them."""
        keys = self.unique_keys(cursor, schema)
        return any(not key.by_epoch for key in keys) or self.dialect.has_triggers(cursor, self.relation)


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

    table: OutputMapping
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
            rows = self._sort(cursor, stored)
            is_unique = rows is not None and not (self._by_column and rows.repeated(self._key))
            if rows is not None and is_unique and self._insert(cursor, encoding, rows):
                new = batches.rows
            else:
                with self._staged(cursor, encoding, rows or stored) as merge:
                    new = self._dialect.merge(cursor, merge, batches.rows)
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
        """All rows in a staging table, each key, with its order, once.

        Where epochs add columns, those that this one lacks become null when a newer row replaces a row: otherwise the
        order of publication would decide their values.
        """
        dialect, key = self._dialect, self._key
        with dialect.database.naming(self.load.doing, self.load.rejected):
            staging = dialect.create_staging(cursor, self._relation, encoding.names)
            encoding.send(cursor, staging, rows)
            if not isinstance(rows, SortedRows):
                columns = [*key, *([ORDER_COLUMN] if self._by_column else [])]
                if duplicates := dialect.find_duplicates(cursor, staging, columns):
                    raise self.load.rejected(self.upserts.duplicates(rows.output, duplicates))
            table = self.load.table.find(cursor) if self.load.table.adds_columns else None
            cleared = table.null_without(encoding.names) if table is not None else []
            epoch_column = str(encoding.epoch_column)
            yield Merge(self._relation, staging, encoding, encoding.names, key, epoch_column, self._by_column, cleared)
            dialect.drop_staging(cursor, staging)
