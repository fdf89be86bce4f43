"""Receivers that do what a test says, request by request, on the loopback."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

from lockstep.sinks.append_only import AppendOnlySink
from lockstep.sinks.values import Publication, SinkContext
from lockstep.testing._sealed_rows import SealedRows, sealed
from lockstep.testing._under_test import DEPLOYMENT, epoch

PATIENCE = 30  # seconds


@dataclass(frozen=True)
class Request:
    """What came: over HTTP with headers and path."""

    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    path: str = ""

    @property
    def ordinals(self) -> list[int]:
        envelopes = [json.loads(line)["lockstep"] for line in self.body.splitlines()]
        return [one["ordinal"] for one in envelopes if "ordinal" in one]


@dataclass
class Script:
    """`answers`: one for each request in turn, the last one for all that follow."""

    answers: list[Callable[[Any, Request], None]]
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    leave: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, handler: Any, request: Request) -> None:
        with self._lock:
            self.requests.append(request)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        answer(handler, request)


class _Http(BaseHTTPRequestHandler):
    server: _HttpServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.script.answer(self, Request(body, dict(self.headers.items()), self.path))

    def log_message(self, *_: object) -> None: ...


class _Tcp(StreamRequestHandler):
    server: _TcpServer

    def handle(self) -> None:
        lines = []
        with suppress(OSError):
            for line in self.rfile:
                lines.append(line)
                if b'"end"' in line:
                    break
            self.server.script.answer(self, Request(b"".join(lines)))


class _HttpServer(ThreadingHTTPServer):
    script: Script
    daemon_threads = True

    def handle_error(self, *_: object) -> None: ...


class _TcpServer(ThreadingTCPServer):
    script: Script
    daemon_threads = True


@contextmanager
def scripted(kind: str, *answers: Callable[[Any, Request], None]) -> Iterator[Script]:
    """A server that answers in turn. `kind`: "http" or "tcp"."""
    script = Script(list(answers))
    server = _HttpServer(("127.0.0.1", 0), _Http) if kind == "http" else _TcpServer(("127.0.0.1", 0), _Tcp)
    server.script = script
    script.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        script.leave.set()
        server.shutdown()
        server.server_close()
        thread.join()


# --- answers ---------------------------------------------------------------------------------------------------------


def status(code: int, body: str = "", **headers: str) -> Callable[[Any, Request], None]:
    """An answer; underscores in the headers' names stand for hyphens."""

    def answer(handler: Any, request: Request) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body.encode())))
        handler.end_headers()
        handler.wfile.write(body.encode())

    return answer


def line(text: str) -> Callable[[Any, Request], None]:
    return lambda handler, request: handler.wfile.write(text.encode())


def too_late(handler: Any, request: Request) -> None:
    """Silence until the test is over."""
    handler.server.script.leave.wait(PATIENCE)
    handler.close_connection = True


def hang_up(handler: Any, request: Request) -> None:
    """The connection ends without an answer."""
    handler.close_connection = True
    with suppress(OSError):
        handler.connection.shutdown(socket.SHUT_RDWR)


# --- what the roles do -----------------------------------------------------------------------------------------------


class Sent:
    """One epoch of a sink: validated, then published as often as the test wants."""

    def __init__(self, sink: AppendOnlySink, connections: dict[str, str], rows: int = 20) -> None:
        self.sink, self.context = sink, SinkContext(DEPLOYMENT, "pipe", connections)
        self.wal: list[SealedRows] = sealed(rows)
        with sink.opened(self.context) as live:
            live.preflight(None)
            live.preflight({batches.output: batches.schema for batches in self.wal})
            self.vote = live.prepare(epoch(), self.wal)

    def publish(self) -> Publication:
        with self.sink.opened(self.context) as live:
            return live.publish(epoch(), self.vote, self.wal)

    @property
    def recorded(self) -> bool:
        with self.sink.opened(self.context) as live:
            return live.find_marker(1) is not None
