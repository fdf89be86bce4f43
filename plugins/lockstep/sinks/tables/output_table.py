"""The table of an output: what the catalogue says of it, and whether it can keep the output's rows exactly."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lockstep.connections.relation import Relation
from lockstep.errors import PreflightRefused
from lockstep.sinks.tables.dialect import Cursor, Dialect, TargetColumn, UniqueKey
from lockstep.sinks.tables.upserts import DELETED_COLUMN, ORDER_COLUMN, Upserts


@dataclass(frozen=True)
class TargetTable:
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
class OutputTable:
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

    def find(self, cursor: Cursor) -> TargetTable | None:
        """The table, None if there is none. Raises `PreflightRefused` for one that can't keep rows safely."""
        columns = self.dialect.find_columns(cursor, self.relation)
        if columns is None:
            return None
        name = self.epoch_column
        spelled = self.dialect.find_column(columns, name) if name else None
        return TargetTable(self.relation, columns, spelled, name)

    def require(self, cursor: Cursor) -> TargetTable:
        """`find` the table. Raises `PreflightRefused` also if there is none."""
        table = self.find(cursor)
        if table is None:
            raise PreflightRefused(f"{self.where}: table {self.relation} is gone: create it again")
        return table

    def compare(self, table: TargetTable, schema: pa.Schema) -> None:
        """Raises `PreflightRefused` with every column of `schema`, and of the table, that doesn't fit."""
        if len(schema) == 0 and not self.dialect.accepts_no_columns:
            raise PreflightRefused(f"{self.where}: output {self.output} has no column")
        table.require_fit(f"{self.where}: output {self.output}", schema)

    def open_for_rows(self, cursor: Cursor, schema: pa.Schema) -> TargetTable:
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
