"""SQL by which an output's groups are compared with what they are to match."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.audits._sql import Text, compose, identifier, literal

EXPECTED = "lockstep_expected"  #: the table in which stands what a foreign system has said
VALUE = "lockstep_value"  #: of a group; no column that groups go by is called so
HERE = "lockstep_here"  #: true of every group that a side has
OWN_NAMES = frozenset({VALUE, HERE})


def grouped(output: str, measure: str, key: Sequence[str]) -> Text:
    """The measure of each group, and that there is one."""
    columns = Text(", ".join(map(identifier, key)))
    template = "SELECT {measure} AS {value}, true AS {here} FROM {output}"
    if key:
        template = "SELECT {columns}, {measure} AS {value}, true AS {here} FROM {output} GROUP BY {columns}"
    return Text(compose(template, columns=columns, measure=Text(measure), value=VALUE, here=HERE, output=output))


def expected(key: Sequence[str]) -> Text:
    """The same of what a foreign system has said."""
    columns = Text("".join(f"{identifier(one)}, " for one in key))
    template = "SELECT {columns}{value}, true AS {here} FROM {table}"
    return Text(compose(template, columns=columns, value=VALUE, here=HERE, table=EXPECTED))


def differing(found: Text, wanted: Text, key: Sequence[str], within: float) -> str:
    """The groups whose two values are further apart than the share `within` of the second, or that one side lacks.
    Nothing is near NaN or an infinity: of these there is no share, and what is compared with NaN would always pass."""
    names = [identifier(one) for one in key]
    return compose(
        "SELECT {both}found.{value} AS found, expected.{value} AS expected FROM ({found}) AS found "
        "FULL JOIN ({wanted}) AS expected ON {same} WHERE found.{here} IS NULL OR expected.{here} IS NULL "
        "OR (found.{value} IS DISTINCT FROM expected.{value} "
        "AND (NOT isfinite(CAST(found.{value} AS DOUBLE)) OR NOT isfinite(CAST(expected.{value} AS DOUBLE)) "
        "OR coalesce(abs(found.{value} - expected.{value}) > {within} * abs(expected.{value}), true)))",
        both=Text("".join(f"coalesce(found.{one}, expected.{one}) AS {one}, " for one in names)),
        found=found,
        wanted=wanted,
        same=Text(" AND ".join(f"found.{one} IS NOT DISTINCT FROM expected.{one}" for one in names) or "true"),
        within=Text(literal(float(within))),
        value=VALUE,
        here=HERE,
    )
