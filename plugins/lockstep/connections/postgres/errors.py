"""Errors of PostgreSQL: what they mean, and their texts without secrets.

The text of a row that the server refuses has no value of the row: only the constraint, table and column, and why.
"""

from __future__ import annotations

import re

import psycopg2
from psycopg2 import errorcodes

from lockstep.connections.postgres.dsn import scrub
from lockstep.errors import Failure
from lockstep.observability.redaction import rows_shown, with_hint

_LOST = ("08", "57P0", "25P03", "25P04")
#: SQLSTATE classes of errors that may pass: resources, locks, operator, system, snapshots, wrong server
_PASSING = ("25006", "40", "53", "57", "58", "55P03", "55006")
_DENIED = "42501"
#: classes of errors that are independent of a row's content: connection, state, locks, resources, names, rights, server
ROWLESS = ("08", "0A", "25", "28", "2B", "3D", "3F", "40", "42", "53", "54", "55", "57", "58", "F0", "XX")
_CONSTRAINT = "23"  #: the first line has names only, the detail has values
_DATA = "22"  #: the first line quotes values, by the rules of the server's language
_PLACE = re.compile(r"^COPY [^\n]*?, line (?P<line>[0-9]+)(?:, column (?P<column>[^:\n]+))?", re.MULTILINE)
_FUNCTION = re.compile(r"^PL/\w+ function (?P<name>[^\n]+?)(?: line [0-9]+ at \w+)?$", re.MULTILINE)
_QUOTE = re.compile(r"\s*[:\"'«»„“].*", re.DOTALL)
_KNOWN = frozenset(value for name, value in vars(errorcodes).items() if name.isupper() and isinstance(value, str))


def classify(error: psycopg2.Error) -> Failure:
    """Kind of failure. One without a SQLSTATE is the driver's: the link failed, or the call was wrong."""
    code = error.pgcode
    if code is None:
        of_link = isinstance(error, psycopg2.OperationalError | psycopg2.InterfaceError)
        return Failure.LOST if of_link or type(error) is psycopg2.DatabaseError else Failure.REFUSED
    if code.startswith(_LOST):
        return Failure.LOST
    if code.startswith(_PASSING):
        return Failure.PASSING
    return Failure.DENIED if code == _DENIED else Failure.REFUSED


def is_lost(error: psycopg2.Error) -> bool:
    """True if the connection broke: the effect of the last statement is unknown."""
    return classify(error) is Failure.LOST


def quotes_row(error: psycopg2.Error) -> bool:
    """True if the error's text may have values of a row."""
    return error.pgcode is not None and (_is_raised(error) or not error.pgcode.startswith(ROWLESS))


def line_of(error: psycopg2.Error) -> int | None:
    """Number of the line of COPY's input that the server refused."""
    place = _PLACE.search(error.diag.context or "")
    return int(place["line"]) if place else None


def describe(error: psycopg2.Error, dsn: str) -> str:
    """The error's text on one line, without a secret of the DSN; of a refused row only names."""
    if rows_shown() or not quotes_row(error):
        return scrub(" ".join(str(error).split()), dsn)
    facts = [_first_line(error), *_names(error)]
    return scrub(with_hint("; ".join(" ".join(fact.split()) for fact in facts if fact)), dsn)


def _first_line(error: psycopg2.Error) -> str:
    primary = error.diag.message_primary or ""
    if (error.pgcode or "").startswith(_DATA) and not _is_raised(error):
        primary = _QUOTE.sub(" …", primary)
    elif not (error.pgcode or "").startswith(_CONSTRAINT) or _is_raised(error):  # a text of the user's function
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
