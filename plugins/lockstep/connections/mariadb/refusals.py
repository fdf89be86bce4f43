"""What MariaDB says of a row that it refuses, without the row: which key, constraint and column, and why."""

from __future__ import annotations

import re

import pymysql

from lockstep.connections.mariadb.errors import code_of, quotes_row
from lockstep.observability.redaction import rows_shown, with_hint

#: the texts that are known to hold nothing but names and numbers of rows, or how they do without the values
_KNOWN = tuple(
    (re.compile(pattern, re.DOTALL), kept)
    for pattern, kept in (
        (r"Duplicate entry '.*' for key ('[^']*')", r"Duplicate entry for key \1"),
        (
            r"Incorrect ([a-z ]+) value: '.*' for (column `.*?`(?:\.`.*?`)*)( at row [0-9]+)?",
            r"Incorrect \1 value for \2\3",
        ),
        (r"(?:Data too long|Data truncated|Out of range value) for column '[^']*' at row [0-9]+", r"\g<0>"),
        (r"Column '[^']*' cannot be null", r"\g<0>"),
        (r"Column set to default value; NULL supplied to NOT NULL column '[^']*' at row [0-9]+", r"\g<0>"),
        (r"Field '[^']*' doesn't have a default value", r"\g<0>"),
        (
            r"Cannot (?:add or update a child|delete or update a parent) row: a foreign key constraint fails \(.*\)",
            r"\g<0>",
        ),
        (r"CONSTRAINT `[^`]*` failed for `[^`]*`\.`[^`]*`", r"\g<0>"),
        (r"Table has no partition for value .*", "Table has no partition for the value"),
    )
)


def describe(error: BaseException) -> str:
    """The error's text on one line; of a refused row only names."""
    if rows_shown() or not (isinstance(error, pymysql.MySQLError) and quotes_row(error)):
        return " ".join(str(error).split())
    return with_hint(without_values(code_of(error), str(error.args[1] if len(error.args) > 1 else "")))


def without_values(code: int, message: str) -> str:
    """What the server says of a row, in its own words where they are known to hold no value."""
    for pattern, kept in _KNOWN:
        if found := pattern.fullmatch(message):
            return f"{found.expand(kept)} (error {code})"
    return f"the server refused a row (error {code})"
