"""Records over TCP, one JSON line each. What the kernel took is not what the receiver has, so the receiver says so."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline, SinkUnavailable
from lockstep.sinks.append_only import AppendOnlySink, chunks, reason_of
from lockstep.sinks.append_records import ENVELOPE, Record
from lockstep.sinks.base import SinkContext, SinkEpoch

_LINES = 1000  # a write


class TcpSink(AppendOnlySink):
    """Rows as JSON lines to `connection`, which leads to tcp://host:port.

    The last line of an epoch is `{"lockstep": {…, "end": <number of records>}}`. The receiver answers it with the line
    `ok` once it has kept the records; without that answer within `timeout` seconds the epoch is sent again.
    """

    def __init__(
        self,
        name: str,
        *,
        output: str,
        connection: str,
        committer: str,
        max_record_bytes: int = 1 << 20,
        timeout: float = 60.0,
    ) -> None:
        super().__init__(name, output=output, committer=committer, max_record_bytes=max_record_bytes)
        if not timeout > 0:
            raise InvalidPipeline(f"sink {name}: timeout is {timeout}, has to be above 0 seconds")
        self._connection, self._timeout = connection, timeout

    def arguments(self) -> dict[str, Json]:
        return {**super().arguments(), "connection": self._connection, "timeout": self._timeout}

    def open(self, context: SinkContext) -> None:
        super().open(context)
        address = urlsplit(context.dsn(self._connection, self.name))
        if address.scheme != "tcp" or not address.hostname or not address.port:
            raise InvalidPipeline(f"sink {self.name}: connection {self._connection} is no tcp://host:port")
        self._address = (address.hostname, address.port)

    def deliver(self, records: Iterator[Record], epoch: SinkEpoch) -> None:
        try:
            with closing(socket.create_connection(self._address, self._timeout)) as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                self._converse(connection, records, epoch)
        except OSError as error:
            raise SinkUnavailable(f"sink {self.name}: connection {self._connection}: {reason_of(error)}") from error

    def _converse(self, connection: socket.socket, records: Iterator[Record], epoch: SinkEpoch) -> None:
        sent = 0
        for chunk in chunks(records, _LINES):
            connection.sendall(b"".join(record.line + b"\n" for record in chunk))
            sent += len(chunk)
        end = {"pipeline": self._pipeline, "output": self._output, "epoch": epoch.id, "end": sent}
        connection.sendall(json.dumps({ENVELOPE: end}).encode() + b"\n")
        with connection.makefile("rb") as answers:
            answer = answers.readline(100).strip()
        if answer != b"ok":
            raise SinkUnavailable(
                f"sink {self.name}: connection {self._connection}: the receiver answered {answer[:40]!r}, not ok: the "
                "epoch will be sent again"
            )
