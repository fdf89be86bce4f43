"""What Postgres says of a row that it refuses, without the row: which constraint, table and column, and why."""

from __future__ import annotations

import re

import psycopg2
from psycopg2 import errorcodes

from lockstep.observability.redaction import rows_shown, with_hint

# classes of what has nothing to do with a row's content: connection, state, locks, resources, names, rights, the server
ROWLESS = ("08", "0A", "25", "28", "2B", "3D", "3F", "40", "42", "53", "54", "55", "57", "58", "F0", "XX")
_CONSTRAINT = "23"  #: its first line has names only; values stand in the detail
_DATA = "22"  #: its first line quotes values, in the way of the server's language
_PLACE = re.compile(r"^COPY [^\n]*?, line (?P<line>[0-9]+)(?:, column (?P<column>[^:\n]+))?", re.MULTILINE)
_FUNCTION = re.compile(r"^PL/\w+ function (?P<name>[^\n]+?)(?: line [0-9]+ at \w+)?$", re.MULTILINE)
_QUOTE = re.compile(r"\s*[:\"'«»„“].*", re.DOTALL)


def quotes_row(error: psycopg2.Error) -> bool:
    """Whether the error's text may have values of a row."""
    return error.pgcode is not None and (_is_raised(error) or not error.pgcode.startswith(ROWLESS))


def line_of(error: psycopg2.Error) -> int | None:
    """The line of COPY's input that the server refused."""
    place = _PLACE.search(error.diag.context or "")
    return int(place["line"]) if place else None


def describe(error: psycopg2.Error) -> str:
    """The error's text on one line; of a refused row only names."""
    if rows_shown() or not quotes_row(error):
        return " ".join(str(error).split())
    facts = [_first_line(error), *_names(error)]
    return with_hint("; ".join(" ".join(fact.split()) for fact in facts if fact))


def _first_line(error: psycopg2.Error) -> str:
    primary = error.diag.message_primary or ""
    if (error.pgcode or "").startswith(_DATA) and not _is_raised(error):
        primary = _QUOTE.sub(" …", primary)
    elif not (error.pgcode or "").startswith(_CONSTRAINT) or _is_raised(error):  # in a person's own words
        primary = "a function of the server refused it"
    return f"{primary} ({errorcodes.lookup(error.pgcode or '') if error.pgcode in _KNOWN else error.pgcode})"


def _names(error: psycopg2.Error) -> list[str]:
    diag, context = error.diag, error.diag.context or ""
    place, function = _PLACE.search(context), _FUNCTION.search(context)
    return [
        f"constraint {diag.constraint_name}" if diag.constraint_name else "",
        f"table {diag.schema_name}.{diag.table_name}" if diag.table_name else "",
        f"column {diag.column_name}" if diag.column_name else "",
        f"line {place['line']} of COPY" if place else "",
        f"column {place['column']}" if place and place["column"] and not diag.column_name else "",
        f"function {function['name']}" if function else "",
    ]


def _is_raised(error: psycopg2.Error) -> bool:
    return (error.pgcode or "").startswith("P0") or "RAISE" in (error.diag.context or "")


_KNOWN = frozenset(value for name, value in vars(errorcodes).items() if name.isupper() and isinstance(value, str))
