"""Whether a table's columns can keep an output exactly: the part of it that every database has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from lockstep.connections.names import Relation
from lockstep.errors import PreflightRefused
from lockstep.sinks.tables.upserts import DELETED_COLUMN, ORDER_COLUMN, Upserts


class ColumnFacts(Protocol):
    """What a catalogue tells of a column. `needed`: an insert has to give a value."""

    @property
    def name(self) -> str: ...

    @property
    def type_text(self) -> str: ...

    @property
    def needed(self) -> bool: ...

    @property
    def has_default(self) -> bool: ...

    @property
    def generated(self) -> bool: ...

    @property
    def not_null(self) -> bool: ...


Column = TypeVar("Column", bound=ColumnFacts)


@dataclass(frozen=True)
class TargetTable(ABC, Generic[Column]):
    """A target table with its columns, as the transaction that has read the catalogue sees them."""

    relation: Relation
    columns: Mapping[str, Column]

    @abstractmethod
    def epoch_column(self, name: str | None) -> str | None:
        """The column of that name, as the table spells it; None if it has none."""

    @abstractmethod
    def _refusal(self, field: pa.Field, column: Column) -> str | None:
        """Why values of `field` would not come back from `column` as they are; None if they would."""

    @abstractmethod
    def _is_bigint(self, column: Column) -> bool:
        """Whether it holds 64 bits and a sign."""

    def lacking(self, schema: pa.Schema, epoch_column: str | None) -> list[pa.Field]:
        """The columns of `schema` that the table doesn't have; the epoch's is the sink's own."""
        filled = self.epoch_column(epoch_column) or epoch_column
        return [column for column in schema if column.name not in {*self.columns, filled}]

    def null_without(self, names: Collection[str]) -> list[str]:
        """Those columns that are null in a row of which only `names` are given."""
        return [
            column.name
            for column in self.columns.values()
            if not (column.not_null or column.has_default or column.generated or column.name in names)
        ]

    def require_fit(self, where: str, schema: pa.Schema, epoch_column: str | None) -> None:
        """Compare `schema` with the columns, by name; the sink fills `epoch_column`. `where`: sink and output, for a
        message. Raises `PreflightRefused` naming every column at fault."""
        filled = self.epoch_column(epoch_column) or epoch_column
        faults = [f"column {name}: the table lacks it" for name in schema.names if name not in self.columns]
        twice = {name for name in schema.names if schema.names.count(name) > 1}
        faults += [f"column {name}: the output has it twice" for name in twice]
        for field in schema:
            if field.name in self.columns and (reason := self._refusal(field, self.columns[field.name])):
                faults.append(f"column {field.name}: {reason}")
        faults += [
            f"column {column.name}: it is NOT NULL without a default, and the output lacks it"
            for column in self.columns.values()
            if column.needed and column.name not in {*schema.names, filled}
        ]
        faults += self._epoch_column_faults(schema, filled)
        if faults:
            raise PreflightRefused(f"{where} does not fit table {self.relation}: {'; '.join(faults)}")

    def _epoch_column_faults(self, schema: pa.Schema, name: str | None) -> list[str]:
        if name is not None and name in schema.names:
            return [f"column {name}: the sink fills it; rename the output's, or give another epoch_column"]
        column = self.columns.get(name or "")
        if column is not None and (not self._is_bigint(column) or column.generated):
            return [f"column {name}: it has to be a plain bigint, is {column.type_text}"]
        return []

    def require_order(self, where: str, upserts: Upserts, epoch_column: str) -> None:
        """Refuse a table that can't say which of two rows is newer. Raises `PreflightRefused`."""
        for name in (ORDER_COLUMN, epoch_column, *([DELETED_COLUMN] if upserts.deleted else [])):
            if name not in self.columns or not self.columns[name].not_null:
                raise PreflightRefused(
                    f"{where}: mode='upsert' needs column {name}, NOT NULL: add it, or let the sink make the table "
                    "(create=True)"
                )
