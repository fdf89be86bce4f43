"""Records over TCP, one JSON line each. What the kernel took is not what the receiver has, so the receiver says so."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Self
from urllib.parse import urlsplit

from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline, PublishBlocked, SinkUnavailable
from lockstep.sinks.append_only.records import ENVELOPE, Origin, Record, chunks, lines_of
from lockstep.sinks.append_only.sink import AppendOnlySink, reason_of
from lockstep.sinks.base import Guarantee, SinkContext

_RECORDS, _BYTES = 1000, 1 << 18  # a write
_ANSWER = 200  # bytes


class TcpSink(AppendOnlySink):
    """Rows as JSON lines to `connection`, which leads to tcp://host:port.

    The last line of an epoch is `{"lockstep": {…, "end": <number of records>}}`. The receiver answers it with the line
    `ok` once it has kept the records; without an answer within `timeout` seconds the epoch is sent again, another
    answer blocks the publication. Other arguments: see `AppendOnlySink`.
    """

    operational = frozenset({"timeout"})

    def __init__(self, name: str, *, output: str, connection: str, timeout: float = 60.0, **arguments: Any) -> None:
        super().__init__(name, output=output, **arguments)
        if not timeout > 0:
            raise InvalidPipeline(f"sink {name}: timeout is {timeout}, has to be above 0 seconds")
        self._connection, self._timeout = connection, timeout

    def arguments(self) -> dict[str, Json]:
        return {**super().arguments(), "connection": self._connection, "timeout": self._timeout}

    def writes_to(self) -> frozenset[str]:
        return frozenset({f"receiver of connection {self._connection}"})

    def open(self, context: SinkContext) -> Self:
        super().open(context)
        found = _address(context.dsn(self._connection, self.name))
        if found is None:
            raise InvalidPipeline(f"sink {self.name}: connection {self._connection} is no tcp://host:port")
        self._address = found
        return self

    def deliver(self, records: Iterator[Record], origin: Origin) -> None:
        try:
            with closing(socket.create_connection(self._address, self._timeout)) as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                self._send_lines(connection, records, origin)
                if self.guarantee is not Guarantee.NONE:
                    self._require_ok(connection)
        except OSError as error:
            raise SinkUnavailable(f"{self._receiver}: {reason_of(error)}") from error

    def _send_lines(self, connection: socket.socket, records: Iterator[Record], origin: Origin) -> None:
        sent = 0
        for chunk in chunks(records, _RECORDS, _BYTES):
            connection.sendall(lines_of(chunk))
            sent += len(chunk)
        connection.sendall(json.dumps({ENVELOPE: origin.envelope(end=sent)}).encode() + b"\n")

    def _require_ok(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as answers:
            answer = answers.readline(_ANSWER)
        if not answer.endswith(b"\n"):
            raise SinkUnavailable(f"{self._receiver} closed before it said ok: the epoch will be sent again")
        if answer.strip() != b"ok":
            raise PublishBlocked(f"{self._receiver} answered {answer.strip()!r}, not ok: nothing is taken for sent")

    @property
    def _receiver(self) -> str:
        return f"sink {self.name}: the receiver behind connection {self._connection}"


def _address(url: str) -> tuple[str, int] | None:
    try:
        parts = urlsplit(url)
        found = (parts.hostname, parts.port)
    except ValueError:  # it quotes what it can't read
        return None
    return (found[0], found[1]) if parts.scheme == "tcp" and found[0] and found[1] else None
