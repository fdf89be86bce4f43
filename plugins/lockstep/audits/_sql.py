"""SQL text for DuckDB: identifiers and values are quoted in one place."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

from lockstep.audits.rule import Value
from lockstep.errors import InvalidPipeline


class Text(str):
    """A piece of SQL that is one already."""


def compose(template: str, **parts: str) -> str:
    """`template` with each {name} replaced by its quoted identifier, or by a `Text` as it is."""
    return template.format(**{key: part if isinstance(part, Text) else identifier(part) for key, part in parts.items()})


def identifier(name: str) -> str:
    """`name` in double quotes. Raises `InvalidPipeline` for what can be none."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidPipeline(f"{name!r} is no name of an output or a column")
    return '"' + name.replace('"', '""') + '"'


def literal(value: Value) -> str:
    """A value. Raises `InvalidPipeline` for what has no literal."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return f"{value!r}::DOUBLE"
        case Decimal() if value.is_finite():
            return format(value, "f")
        case datetime():
            naive = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return f"TIMESTAMP '{naive.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case str() if "\0" not in value:
            return "'" + value.replace("'", "''") + "'"
    raise InvalidPipeline(f"{value!r} can't stand in an audit: give text, a number, a date or a time")
