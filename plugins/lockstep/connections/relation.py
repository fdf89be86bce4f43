"""A table's name, as far as every database has it in common; each room quotes it in its own way."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Relation:
    """A table by schema and name, both exactly as the catalogue has them; MariaDB calls a schema a database."""

    schema: str
    table: str

    @classmethod
    def parse(cls, text: str, schema: str) -> Relation:
        """`schema.table`; without a schema: `schema`."""
        first, dot, rest = text.partition(".")
        return cls(first, rest) if dot else cls(schema, first)

    @property
    def names(self) -> tuple[str, str]:
        return self.schema, self.table

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"
