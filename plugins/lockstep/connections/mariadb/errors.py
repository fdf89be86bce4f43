"""What the numbers of errors mean, the server's and the driver's."""

from __future__ import annotations

import pymysql
from pymysql.constants import ER

from lockstep.errors import Failure

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
#: numbers of what is about a row's content; 1642 to 1644 are a person's own words, raised by a trigger
OF_ROWS = frozenset(
    {1048, 1062, 1136, 1169, 1210, 1216, 1217, 1263, 1264, 1265, 1292, 1300, 1364}
    | {1365, 1366, 1367, 1406, 1411, 1441, 1451, 1452, 1525, 1526, 1557, 1586}
    | {1642, 1643, 1644, 1690, 1748, 1761, 1859, 3819, 4025}
)
SERVERS = 4999  #: the server's own numbers end below
#: without a number of their own, in the texts of several: the operating system has no room
_NO_ROOM = ("No space left on device", "error 28")


def code_of(error: BaseException) -> int:
    """The server's or the driver's number of an error; 0 where there is none."""
    code = error.args[0] if error.args else 0
    return code if isinstance(code, int) else 0


def quotes_row(error: BaseException) -> bool:
    """Whether the error's text may have values of a row: the server's own, or one of a trigger's own number."""
    return code_of(error) in OF_ROWS or code_of(error) > SERVERS


def is_lost(error: BaseException) -> bool:
    """Whether the connection broke: what the last statement did is not known."""
    code = code_of(error)
    return code in _LOST or (code == 0 and isinstance(error, pymysql.err.InterfaceError | pymysql.err.InternalError))


def is_refused_login(error: BaseException) -> bool:
    return isinstance(error, pymysql.MySQLError) and code_of(error) in _LOGIN


def classify(error: BaseException) -> Failure:
    """One that isn't the driver's is the operating system's, of the link."""
    code = code_of(error)
    if code in _FULL or (not quotes_row(error) and any(sign in str(error) for sign in _NO_ROOM)):
        return Failure.FULL
    if is_lost(error) or not isinstance(error, pymysql.MySQLError):
        return Failure.LOST
    if code in _PASSING:
        return Failure.PASSING
    return Failure.DENIED if code in _DENIED else Failure.REFUSED
