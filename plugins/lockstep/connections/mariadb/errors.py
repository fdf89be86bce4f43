"""Errors of MariaDB: what their numbers mean, and their texts without values of rows."""

from __future__ import annotations

import re

import pymysql
from pymysql.constants import ER

from lockstep.errors import Failure
from lockstep.observability.redaction import rows_shown, with_hint

_KILLED = 1927  # ER_CONNECTION_KILLED, which only MariaDB has
_LOGIN = frozenset({ER.ACCESS_DENIED_ERROR, 1698})  # 1698: without a password
LOCKED = frozenset({ER.LOCK_WAIT_TIMEOUT, ER.LOCK_DEADLOCK, 1969})  # 1969: max_statement_time
_LOST = frozenset({*range(2000, 2100), ER.SERVER_SHUTDOWN, _KILLED, *range(1158, 1162), ER.NEW_ABORTING_CONNECTION})
_FULL = frozenset({ER.DISK_FULL, ER.RECORD_FILE_FULL})
_DENIED = frozenset(
    {1044, 1142, 1143, 1227, 1370, 1419}  # missing grants
    | {1148, 4166}  # LOAD DATA LOCAL is off
)
_PASSING = LOCKED | _LOGIN | {1040, 1041, 1129, 1203, 1226, 1290, 1317, 1836}
#: numbers of errors about a row's content; 1642 to 1644 are texts of the user's triggers
OF_ROWS = frozenset(
    {1048, 1062, 1136, 1169, 1210, 1216, 1217, 1263, 1264, 1265, 1292, 1300, 1364}
    | {1365, 1366, 1367, 1406, 1411, 1441, 1451, 1452, 1525, 1526, 1557, 1586}
    | {1642, 1643, 1644, 1690, 1748, 1761, 1859, 3819, 4025}
)
SERVERS = 4999  #: the server's own numbers are smaller
#: in the texts of several numbers: the operating system has no space
_NO_ROOM = ("No space left on device", "error 28")
#: patterns of texts that hold only names and numbers of rows, and replacements without the values
_KNOWN = tuple(
    (re.compile(pattern, re.DOTALL), replacement)
    for pattern, replacement in (
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


def code_of(error: BaseException) -> int:
    """The server's or the driver's number of an error; 0 where there is none."""
    code = error.args[0] if error.args else 0
    return code if isinstance(code, int) else 0


def quotes_row(error: BaseException) -> bool:
    """True if the error's text may have values of a row: the server's, or one with a trigger's own number."""
    return code_of(error) in OF_ROWS or code_of(error) > SERVERS


def is_lost(error: BaseException) -> bool:
    """True if the connection broke: the effect of the last statement is unknown."""
    code = code_of(error)
    return code in _LOST or (code == 0 and isinstance(error, pymysql.err.InterfaceError | pymysql.err.InternalError))


def is_refused_login(error: BaseException) -> bool:
    return isinstance(error, pymysql.MySQLError) and code_of(error) in _LOGIN


def classify(error: BaseException) -> Failure:
    """Kind of failure. One that isn't the driver's is the operating system's: the link failed."""
    code = code_of(error)
    if code in _FULL or (not quotes_row(error) and any(sign in str(error) for sign in _NO_ROOM)):
        return Failure.FULL
    if is_lost(error) or not isinstance(error, pymysql.MySQLError):
        return Failure.LOST
    if code in _PASSING:
        return Failure.PASSING
    return Failure.DENIED if code in _DENIED else Failure.REFUSED


def describe(error: BaseException) -> str:
    """The error's text on one line; of a refused row only names."""
    if rows_shown() or not (isinstance(error, pymysql.MySQLError) and quotes_row(error)):
        return " ".join(str(error).split())
    return with_hint(without_values(code_of(error), str(error.args[1] if len(error.args) > 1 else "")))


def without_values(code: int, message: str) -> str:
    """The server's text about a row, if it is known to hold no value; else its number alone."""
    for pattern, replacement in _KNOWN:
        if match := pattern.fullmatch(message):
            return f"{match.expand(replacement)} (error {code})"
    return f"the server refused a row (error {code})"
