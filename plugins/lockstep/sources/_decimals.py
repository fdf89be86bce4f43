"""Decimals that don't fit their type: Spark's parsers round them to its scale without a word.

So they are read with as many digits as Spark has, and a record in which one would change is malformed. Of a type that
has all 38 digits nothing can be seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from lockstep.ddl import Field, fields_of, literal, plain, quote_name, split_nested

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BAD = "_lockstep_bad"  #: the raw record where it is malformed, else null
WHY = "_lockstep_why"  #: of a record that the parser takes for a good one: what is wrong with it
_MOST = 38
_INCOMPARABLE = re.compile(r"\bMAP\s*<|\bVARIANT\b", re.IGNORECASE)
_NAMED = re.compile(r"\b(?:DECIMAL|DEC|NUMERIC)\b", re.IGNORECASE)
_DECIMAL = re.compile(r"DECIMAL(?:\((\d+)(?:,(\d+))?\))?")


@dataclass(frozen=True)
class Decimals:
    """A schema and its decimals, those in structs and arrays too, but none beside a map, which can't be compared."""

    ddl: str
    fields: Sequence[Field]

    @classmethod
    def of(cls, schema: str) -> Decimals:
        return cls(schema, tuple(fields_of(schema)) if _NAMED.search(schema) else ())

    @cached_property
    def wide(self) -> dict[str, str]:
        """The types to read by, of the columns that have other ones than they are declared with."""
        comparable = [field for field in self.fields if not _INCOMPARABLE.search(field.type)]
        found = ((field.name, _wide(field.type)) for field in comparable)
        return {name: kind for name, kind in found if kind is not None}

    @property
    def schema(self) -> str:
        """DDL to read by."""
        if not self.wide:
            return self.ddl
        return ", ".join(f"{quote_name(field.name)} {self.wide.get(field.name, field.type)}" for field in self.fields)

    def fitted(self, row: str) -> str:
        """A struct that was read by `schema`, with BAD behind its fields, as it is declared."""
        members = "".join(f"{quote_name(field.name)}: {field.type}, " for field in self.fields)
        return f"try_cast({row} AS STRUCT<{members}{BAD}: STRING>)" if self.wide else row

    def changed(self, row: str) -> str:
        """A condition: some decimal of such a struct isn't what its type would make of it."""
        found = [f"NOT ({self._same(field, f'{row}.')})" for field in self.fields if field.name in self.wide]
        return " OR ".join(found) or "false"

    def marked(self, frame: DataFrame, record: str, *others: str) -> DataFrame:
        """What was read by `schema`, with its columns as they are declared, BAD, WHY, and `others`.

        `record`: an SQL expression of what BAD gets where a decimal would change.
        """
        bad = f"CASE WHEN {BAD} IS NULL AND {WHY} IS NOT NULL THEN {record} ELSE {BAD} END AS {BAD}"
        columns = [self._declared(field) for field in self.fields]
        return frame.selectExpr("*", f"{self._why} AS {WHY}").selectExpr(*columns, bad, WHY, *others)

    def _declared(self, field: Field) -> str:
        name = quote_name(field.name)
        return f"try_cast({name} AS {field.type}) AS {name}" if field.name in self.wide else name

    @property
    def _why(self) -> str:
        """The first column of which a value isn't what its type would make of it, in words; null if there is none."""
        return f"CASE {' '.join(self._case(field) for field in self.fields if field.name in self.wide)} END"

    def _case(self, field: Field) -> str:
        return (
            f"WHEN NOT ({self._same(field)}) THEN {literal(f'column {field.name} has more digits than {field.type}')}"
        )

    def _same(self, field: Field, row: str = "") -> str:
        read = f"{row}{quote_name(field.name)}"
        return f"{read} <=> CAST(try_cast({read} AS {field.type}) AS {self.wide[field.name]})"


def _wide(type: str) -> str | None:
    """The type to read by, None if it is the same."""
    match split_nested(type):
        case ("ARRAY", inside):
            return f"ARRAY<{wide}>" if (wide := _wide(inside)) else None
        case ("STRUCT", inside):
            members = [(one, _wide(one.type)) for one in fields_of(inside)]
            text = ", ".join(f"{quote_name(one.name)}: {wide or one.type}" for one, wide in members)
            return f"STRUCT<{text}>" if any(wide for _, wide in members) else None
    decimal = _DECIMAL.fullmatch(plain(type))
    precision, scale = (int(decimal[1] or 10), int(decimal[2] or 0)) if decimal else (_MOST, 0)
    return f"DECIMAL({_MOST},{_MOST - precision + scale})" if precision < _MOST else None
