"""`StdoutSink` and `TcpSink`: records as JSON lines to standard output, or over TCP."""

from __future__ import annotations

import json
import socket
import sys
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import ClassVar
from urllib.parse import urlsplit

from lockstep.errors import InvalidPipeline, PublishBlocked, SinkUnavailable
from lockstep.sinks.append_only.base import AppendOnlySink, OpenRecordSink, reason_of, what_follows
from lockstep.sinks.append_only.records import ENVELOPE, JsonRecords, Origin
from lockstep.sinks.values import Guarantee, SinkContext
from lockstep.sinks.write_ahead import NothingSent

_MAX_RECORDS = 1000  #: of one write
_STDOUT_BYTES, _TCP_BYTES = 1 << 16, 1 << 18  #: of one write
_ANSWER = 200  #: bytes of an answer that a message quotes


@dataclass(frozen=True, kw_only=True)
class StdoutSink(AppendOnlySink):
    """Writes rows as JSON lines to this process's standard output, for a first look and for programs that read a task's
    log. The guarantee holds if the reader keeps the lines.

    A delivery starts with an empty line, which ends an unfinished line of a killed process. Ignore a line that doesn't
    parse: with at least once its record comes again.
    """

    def writes_to(self) -> frozenset[str]:
        return frozenset({"standard output"})

    def open(self, context: SinkContext) -> OpenRecordSink:
        return OpenRecordSink(self, context, partial(_print_records, self.name))


def _print_records(sink: str, records: JsonRecords, origin: Origin) -> None:
    started = False
    for chunk in records.chunks(_MAX_RECORDS, _STDOUT_BYTES):
        try:
            _write(chunk.body if started else b"\n" + chunk.body)
        except (OSError, UnicodeError) as error:
            raise SinkUnavailable(f"sink {sink}: standard output: {reason_of(error)}") from error
        started = True


def _write(data: bytes) -> None:
    sys.stdout.flush()
    if binary := getattr(sys.stdout, "buffer", None):
        binary.write(data)
        binary.flush()
    else:  # a task's log
        sys.stdout.write(data.decode())
        sys.stdout.flush()


@dataclass(frozen=True, kw_only=True)
class TcpSink(AppendOnlySink):
    """Sends rows as JSON lines to `connection`, which leads to tcp://host:port.

    The last line of an epoch is `{"lockstep": {…, "end": <number of records>}}`. The receiver answers the
    line `ok` once it has stored the records. Without an answer within `timeout` seconds the epoch is sent again (at
    least once); another answer blocks the publication. Other arguments: see `AppendOnlySink`.
    """

    connection: str
    timeout: float = 60.0

    operational: ClassVar[frozenset[str]] = AppendOnlySink.operational | {"timeout"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.timeout > 0:
            raise InvalidPipeline(f"sink {self.name}: timeout is {self.timeout}, has to be above 0 seconds")

    def writes_to(self) -> frozenset[str]:
        return frozenset({f"receiver of connection {self.connection}"})

    def open(self, context: SinkContext) -> OpenRecordSink:
        address = _address_of(context.dsn(self.connection, self.name))
        if address is None:
            raise InvalidPipeline(f"sink {self.name}: connection {self.connection} is no tcp://host:port")
        return OpenRecordSink(self, context, partial(self._deliver, address))

    def _deliver(self, address: tuple[str, int], records: JsonRecords, origin: Origin) -> None:
        receiver = f"sink {self.name}: the receiver behind connection {self.connection}"
        try:
            connected = socket.create_connection(address, self.timeout)
        except OSError as error:
            raise NothingSent(f"{receiver}: {reason_of(error)}") from error
        try:
            with closing(connected) as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                sent = 0
                for chunk in records.chunks(_MAX_RECORDS, _TCP_BYTES):
                    connection.sendall(chunk.body)
                    sent += chunk.count
                connection.sendall(json.dumps({ENVELOPE: origin.envelope(end=sent)}).encode() + b"\n")
                if self.guarantee is Guarantee.NONE:
                    return
                with connection.makefile("rb") as answers:
                    answer = answers.readline(_ANSWER)
        except OSError as error:
            raise SinkUnavailable(f"{receiver}: {reason_of(error)}; {what_follows(self.guarantee)}") from error
        if not answer.endswith(b"\n"):
            raise SinkUnavailable(f"{receiver} closed before it said ok: {what_follows(self.guarantee)}")
        if answer.strip() != b"ok":
            raise PublishBlocked(f"{receiver} answered {answer.strip()!r}, not ok: nothing is taken for sent")


def _address_of(url: str) -> tuple[str, int] | None:
    try:
        parts = urlsplit(url)
        address = (parts.hostname, parts.port)
    except ValueError:  # it quotes what it can't read
        return None
    return (address[0], address[1]) if parts.scheme == "tcp" and address[0] and address[1] else None
