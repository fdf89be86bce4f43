"""SQL for DuckDB: quoting of identifiers and values, and the query that compares an output's groups with others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

from lockstep.audits.audit import Value
from lockstep.errors import InvalidPipeline

EXPECTED = "lockstep_expected"  #: the table in which stands what a foreign system has said
VALUE = "lockstep_value"  #: of a group; no column that groups go by is called so
HERE = "lockstep_here"  #: true of every group that a side has
OWN_NAMES = frozenset({VALUE, HERE})


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


def grouped(output: str, measure: str, key: Sequence[str]) -> Text:
    """The measure of each group, and that there is one."""
    columns = Text(", ".join(map(identifier, key)))
    template = "SELECT {measure} AS {value}, true AS {here} FROM {output}"
    if key:
        template = "SELECT {columns}, {measure} AS {value}, true AS {here} FROM {output} GROUP BY {columns}"
    return Text(compose(template, columns=columns, measure=Text(measure), value=VALUE, here=HERE, output=output))


def expected_groups(key: Sequence[str]) -> Text:
    """SQL that selects the groups of the foreign query's result."""
    columns = Text("".join(f"{identifier(column)}, " for column in key))
    template = "SELECT {columns}{value}, true AS {here} FROM {table}"
    return Text(compose(template, columns=columns, value=VALUE, here=HERE, table=EXPECTED))


def differing(actual: Text, expected: Text, key: Sequence[str], within: float) -> str:
    """SQL that selects the groups where the two values differ by more than the share `within` of the second, or that
    only one side has. NaN and infinity never match: no share of them exists, and a comparison with NaN would always
    pass."""
    names = [identifier(column) for column in key]
    return compose(
        "SELECT {both}found.{value} AS found, expected.{value} AS expected FROM ({found}) AS found "
        "FULL JOIN ({wanted}) AS expected ON {same} WHERE found.{here} IS NULL OR expected.{here} IS NULL "
        "OR (found.{value} IS DISTINCT FROM expected.{value} "
        "AND (NOT isfinite(CAST(found.{value} AS DOUBLE)) OR NOT isfinite(CAST(expected.{value} AS DOUBLE)) "
        "OR coalesce(abs(found.{value} - expected.{value}) > {within} * abs(expected.{value}), true)))",
        both=Text("".join(f"coalesce(found.{column}, expected.{column}) AS {column}, " for column in names)),
        found=actual,
        wanted=expected,
        same=Text(" AND ".join(f"found.{column} IS NOT DISTINCT FROM expected.{column}" for column in names) or "true"),
        within=Text(literal(float(within))),
        value=VALUE,
        here=HERE,
    )
