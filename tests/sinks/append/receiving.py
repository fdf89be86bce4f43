"""The receiver of docs/sinks/append_only.md in a process of its own; the append-only sinks for the behaviour suite."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
import subprocess
import sys
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

import pyarrow as pa

from lockstep.sinks.append_only.base import AppendOnlySink
from lockstep.sinks.append_only.http import HttpSink
from lockstep.sinks.append_only.lines import StdoutSink, TcpSink
from lockstep.sinks.base import Sink
from lockstep.sinks.values import Guarantee, Publication, SinkContext
from lockstep.testing import OUTPUT, SCHEMA, SinkUnderTest
from lockstep.testing._sealed_rows import SealedRows, sealed
from lockstep.testing._under_test import DEPLOYMENT, epoch

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sinks" / "append_only.md"
PASSWORD = "s3cret-of-the-receiver"


@dataclass(frozen=True)
class Receiver:
    """A process that keeps each record once in `database`."""

    kind: str
    port: int
    database: Path

    @property
    def url(self) -> str:
        login = f"clerk:{PASSWORD}@" if self.kind == "http" else ""
        return f"{self.kind}://{login}127.0.0.1:{self.port}"

    def records(self) -> list[dict[str, Any]]:
        """In the order in which they came."""
        with closing(sqlite3.connect(self.database, timeout=60)) as database:
            return [json.loads(line) for (line,) in database.execute("SELECT record FROM received ORDER BY rowid")]


@contextmanager
def receiving(kind: str, folder: Path, *, drops_repeats: bool = True) -> Iterator[Receiver]:
    """The receiver of the page, listening on a free port of the loopback. `kind`: "http" or "tcp". One that doesn't
    drop repeats has a record as often as it came."""
    [source] = re.findall(r"```python\n(# receiver\.py.*?)```", PAGE.read_text(), re.S)
    if not drops_repeats:
        assert "key TEXT PRIMARY KEY" in source
        source = source.replace("key TEXT PRIMARY KEY", "key TEXT")
    program, database = folder / "receiver.py", folder / f"{kind}.db"
    program.write_text(source)
    command = [sys.executable, str(program), str(database), kind, "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Receiver(kind, int(process.stdout.readline()), database)
        finally:
            process.kill()


class AppendUnderTest(SinkUnderTest):
    """A sink without transactions; `committer` remembers in a folder unless told otherwise."""

    guarantee = Guarantee.AT_LEAST_ONCE
    votes_with_data = False
    reads_back = False

    def __init__(self, folder: Path, committer: str | None = None, **arguments: Any) -> None:
        self.folder, self.arguments = folder, arguments
        self.guarantee = Guarantee(arguments.get("guarantee", self.guarantee))
        self.committer = committer or str(folder / "sent")

    @abstractmethod
    def sink_with(self, committer: str | None) -> Sink:
        """The sink with this committer."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """What has arrived."""

    def sink(self, *, shared: bool = False) -> Sink:
        return self.sink_with(None if self.guarantee is Guarantee.NONE else self.committer)

    def elsewhere(self) -> tuple[Sink, SinkContext]:
        other = str(self.folder / "sent elsewhere")
        with self.sink_with(other).opened(self.context()) as sink:
            sink.preflight(None)
        return self.sink_with(other), self.context()

    def visible(self) -> pa.Table:
        return pa.Table.from_pylist([row_of(record) for record in self.records()], SCHEMA)

    def unsettled(self) -> list[str]:
        return [str(path) for path in (self.folder / "sent").rglob("*~*")]

    def lose(self, handle: str) -> None:
        raise AssertionError("a redo sink has no handle")


class ReceiverUnderTest(AppendUnderTest):
    """TcpSink or HttpSink with a receiver that drops repeats."""

    def __init__(self, receiver: Receiver, folder: Path, committer: str | None = None, **arguments: Any) -> None:
        super().__init__(folder, committer, **arguments)
        self.receiver, self.others = receiver, dict[str, str]()

    def connections(self) -> dict[str, str]:
        return {"receiver": self.receiver.url, **self.others}

    def sink_with(self, committer: str | None) -> AppendOnlySink:
        kind = HttpSink if self.receiver.kind == "http" else TcpSink
        return kind("feed", output=OUTPUT, connection="receiver", committer=committer, **self.arguments)

    def records(self) -> list[dict[str, Any]]:
        return self.receiver.records()


class StdoutUnderTest(AppendUnderTest):
    """StdoutSink; `redirected` while it is used."""

    @property
    def output(self) -> Path:
        return self.folder / "stdout"

    @contextmanager
    def redirected(self) -> Iterator[None]:
        """Standard output goes to `output`, of child processes too."""
        with self.output.open("a") as file, redirect_stdout(file):
            yield

    def sink_with(self, committer: str | None) -> AppendOnlySink:
        return StdoutSink("feed", output=OUTPUT, committer=committer, **self.arguments)

    def records(self) -> list[dict[str, Any]]:
        return [record for line in self.output.read_bytes().splitlines() if (record := _parsed(line)) is not None]


def row_of(record: dict[str, Any]) -> dict[str, Any]:
    """The row of `SCHEMA` that a record tells."""
    row = {name: record[name] for name in SCHEMA.names}
    row["day"] = row["day"] and date.fromisoformat(row["day"])
    row["at"] = row["at"] and datetime.fromisoformat(row["at"])
    return row


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError:
        return None  # empty, or a killed process's rest
    return found


# --- receivers that do what a test says, request by request -----------------------------------------------------------


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
