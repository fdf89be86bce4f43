"""What the driver lacks: LOAD DATA LOCAL from memory, and quoted identifiers."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import pymysql
from pymysql.constants import CLIENT, COMMAND
from pymysql.cursors import Cursor as _Cursor
from pymysql.protocol import OKPacketWrapper

Cursor: TypeAlias = _Cursor
Name: TypeAlias = str | tuple[str, ...]  #: an identifier; a tuple is qualified: database, table

PACKET = 1 << 16  #: bytes; a server closes the connection at a packet larger than its max_allowed_packet
_CONNECT_SECONDS = 10.0
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 60_000))

if TYPE_CHECKING:

    class _Connection(pymysql.connections.Connection[Cursor]):
        """The driver's connection, with attributes that its stubs lack."""

        server_version: str
        _result: Any
        _read_timeout: float | None

        def _execute_command(self, command: int, sql: str) -> None: ...
        def _read_packet(self) -> Any: ...  # type: ignore[override]
        def _force_close(self) -> None: ...
        def _create_ssl_ctx(self, sslp: dict[str, Any]) -> ssl.SSLContext: ...

else:
    _Connection = pymysql.connections.Connection


class Loader(_Connection):
    """A connection that sends the data of LOAD DATA LOCAL from memory, never from a file that the server names."""

    def __init__(self, arguments: Mapping[str, Any], *, autocommit: bool = True) -> None:
        arguments = {"connect_timeout": _CONNECT_SECONDS, "charset": "utf8mb4", **arguments}
        # the flag, not local_infile=True: with that the driver would open any file that a server asks for
        super().__init__(**arguments, autocommit=autocommit, client_flag=CLIENT.LOCAL_FILES, defer_connect=True)
        self._connect_within(arguments["connect_timeout"])

    def _connect_within(self, seconds: float) -> None:
        """Connect with a timeout for greeting and login too, to which the driver applies its read timeout."""
        later, self._read_timeout = self._read_timeout, seconds
        self.connect(None if self.unix_socket else _dial(self.host, self.port, seconds))
        self._read_timeout = later

    def _create_ssl_ctx(self, sslp: dict[str, Any]) -> ssl.SSLContext:
        """Without TLS options the driver encrypts if the server can, and checks nothing: then it needn't read the
        machine's certificates, which takes 30 ms a connection."""
        return super()._create_ssl_ctx(sslp) if sslp else _unchecked()

    def load(self, statement: str, pieces: Iterable[memoryview]) -> Loaded:
        """Run LOAD DATA LOCAL with `pieces` as the file; closes the connection on every error."""
        try:
            self._execute_command(COMMAND.COM_QUERY, statement)
            if not self._read_packet().is_load_local_packet():
                raise pymysql.err.InternalError(2027, "LOAD DATA LOCAL was not answered by a request for data")
            for piece in pieces:
                for start in range(0, len(piece), PACKET):
                    self.write_packet(bytes(piece[start : start + PACKET]))
            self.write_packet(b"")
            done = OKPacketWrapper(self._read_packet())
        except BaseException:
            self._force_close()  # half a file may have been read: the server rolls back
            raise
        return Loaded(done.affected_rows, done.warning_count)

    def last_insert(self) -> Inserted:
        """Result of the last INSERT … ON DUPLICATE KEY UPDATE, from the server's answer: affected rows, of which a
        replaced one counts twice, and the text "Records: 3  Duplicates: 1  Warnings: 0"."""
        result = self._result
        numbers = re.findall(rb"[0-9]+", bytes(result.message)[1:])  # its first byte is the text's length
        return Inserted(new=int(result.affected_rows) - 2 * int(numbers[1]), replaced=int(numbers[1]))


@dataclass(frozen=True)
class Inserted:
    """Rows of an upsert; rows that are older than the table's are neither."""

    new: int
    replaced: int


@dataclass(frozen=True)
class Loaded:
    """Result of a LOAD DATA: loaded rows, and warnings, into which LOCAL turns errors."""

    rows: int
    warnings: int


@cache
def _unchecked() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _dial(host: str, port: int, timeout: float) -> socket.socket:
    """A TCP connection with keepalives."""
    dialled = socket.create_connection((host, port), timeout)
    dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    dialled.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            dialled.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return dialled


def close_quietly(connection: Loader) -> None:
    with suppress(pymysql.MySQLError):
        connection.close()


# --- SQL text: identifiers are quoted here, values never become part of the text -------------------------------------


def compose(template: str, **names: Name) -> str:
    """`template` with each {name} replaced by its quoted identifier; values remain %s for the driver.

    A percent sign in a name is doubled if there is a %s, as the driver then reads it so.
    """
    quoted = {key: identifier(name) for key, name in names.items()}
    if "%s" in template:
        quoted = {key: text.replace("%", "%%") for key, text in quoted.items()}
    return template.format(**quoted)


def identifier(name: Name) -> str:
    """`name` in backticks."""
    parts = (name,) if isinstance(name, str) else name
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def columns(names: list[str]) -> str:
    """A list of column names for a statement without parameters."""
    return ", ".join(map(identifier, names))
