"""A server on loopback that answers with a price, counts the questions, and can be slow, broken or down."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Barrier, Lock, Thread


class LookupServer(ThreadingHTTPServer):
    """`fails`: how many more times a path is refused; `at_once`: the most questions that were open at a time."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.asked: Counter[str] = Counter()
        self.fails: Counter[str] = Counter()
        self.together: Barrier | None = None  #: answer only when so many questions are open
        self.at_once = self._open = 0
        self._lock = Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, path: str) -> tuple[int, bytes]:
        with self._lock:
            self.asked[path] += 1
            self._open += 1
            self.at_once = max(self.at_once, self._open)
            refused = self.fails[path] > 0
            self.fails[path] -= refused
        try:
            if self.together is not None:
                self.together.wait(20)
        finally:
            with self._lock:
                self._open -= 1
        name = path.rpartition("/")[2]
        return (503, b"") if refused else (200, json.dumps({"price": len(name), "seen": self.asked[path]}).encode())


class _Answer(BaseHTTPRequestHandler):
    server: LookupServer

    def do_GET(self) -> None:
        status, body = self.server.answer(self.path)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def lookup_server() -> Iterator[LookupServer]:
    server = LookupServer()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
