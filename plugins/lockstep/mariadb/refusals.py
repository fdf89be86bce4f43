"""What MariaDB says of a row that it refuses, without the row: which key, constraint and column, and why."""

from __future__ import annotations

import re

import pymysql

from lockstep.disclosure import rows_shown, with_hint
from lockstep.mariadb.wire import code_of

#: numbers of what is about a row's content; 1642 to 1644 are a person's own words, raised by a trigger
_OF_ROWS = frozenset(
    {1048, 1062, 1136, 1169, 1210, 1216, 1217, 1263, 1264, 1265, 1292, 1300, 1364}
    | {1365, 1366, 1367, 1406, 1411, 1441, 1451, 1452, 1525, 1526, 1557, 1586}
    | {1642, 1643, 1644, 1690, 1748, 1761, 1859, 3819, 4025}
)
_SERVERS = 4999  #: the server's own numbers end below
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


def quotes_row(error: BaseException) -> bool:
    """Whether the error's text may have values of a row: the server's own, or one of a trigger's own number."""
    return code_of(error) in _OF_ROWS or code_of(error) > _SERVERS


def told(error: BaseException) -> str:
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
