"""Whether a table's columns can keep an output exactly: the part of it that every database has in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import pyarrow as pa

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
    def generated(self) -> bool: ...

    @property
    def not_null(self) -> bool: ...


Column = TypeVar("Column", bound=ColumnFacts)


def require_columns_fit(
    where: str,
    columns: Mapping[str, Column],
    schema: pa.Schema,
    epoch_column: str | None,
    refusal: Callable[[pa.Field, Column], str | None],
    is_bigint: Callable[[Column], bool],
) -> None:
    """Compare `schema` with a table's `columns`, by name. Raises `PreflightRefused` naming every column at fault.

    `refusal` says why a column doesn't hold a field's values, None if it does. The sink fills `epoch_column`.
    """
    faults = [f"column {name}: the table lacks it" for name in schema.names if name not in columns]
    faults += [f"column {name}: the output has it twice" for name in set(schema.names) if schema.names.count(name) > 1]
    for field in schema:
        if field.name in columns and (reason := refusal(field, columns[field.name])):
            faults.append(f"column {field.name}: {reason}")
    given = {*schema.names, epoch_column}
    faults += [
        f"column {column.name}: it is NOT NULL without a default, and the output lacks it"
        for column in columns.values()
        if column.needed and column.name not in given
    ]
    faults += _epoch_column_faults(columns, schema, epoch_column, is_bigint)
    if faults:
        raise PreflightRefused(f"{where}: {'; '.join(faults)}")


def _epoch_column_faults(
    columns: Mapping[str, Column], schema: pa.Schema, name: str | None, is_bigint: Callable[[Column], bool]
) -> list[str]:
    if name is not None and name in schema.names:
        return [f"column {name}: the sink fills it; rename the output's, or give another epoch_column"]
    if name is not None and name in columns and (not is_bigint(columns[name]) or columns[name].generated):
        return [f"column {name}: it has to be a plain bigint, is {columns[name].type_text}"]
    return []


def require_order_columns(where: str, columns: Mapping[str, Column], upserts: Upserts, epoch_column: str) -> None:
    """Refuse a table that can't say which of two rows is newer. Raises `PreflightRefused`."""
    for name in (ORDER_COLUMN, epoch_column, *([DELETED_COLUMN] if upserts.deleted else [])):
        if name not in columns or not columns[name].not_null:
            raise PreflightRefused(
                f"{where}: mode='upsert' needs column {name}, NOT NULL: add it, or let the sink make the table "
                "(create=True)"
            )
