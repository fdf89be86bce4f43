"""An HTTP proxy before an S3 server that does to chosen requests what networks and busy stores do.

    with S3Proxy(server.endpoint) as proxy:
        store = S3Store(…, endpoint=proxy.endpoint)
        proxy.plan(Fault.LOST_ANSWER, "PUT", "_manifest.json")     # done, and nobody is told
        proxy.plan(Fault.SLOW_DOWN, "PUT", "part-", times=3)

Signatures hold: requests keep their Host header. `hits` counts what was done to whom.
"""

from __future__ import annotations

import http.client
import queue
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "expect", "content-length"}


class Fault(StrEnum):
    """What becomes of a request."""

    ERROR = "500 before"  #: refused, not done
    SLOW_DOWN = "503 before"  #: refused, not done
    ERROR_AFTER = "500 after"  #: done, and told that it wasn't: clients try again by themselves
    LOST_ANSWER = "lost answer"  #: done; the connection breaks before the answer
    CUT_UPLOAD = "cut upload"  #: the connection breaks in the middle of the body
    SLOW = "slow answer"  #: done; the answer comes when `release` is called
    LATE = "late"  #: the connection breaks; done when `release` is called, see `late`
    UNCONDITIONAL = "unconditional"  #: a refusal by its condition is told as success, as by a store that knows none


@dataclass
class _Planned:
    fault: Fault
    method: str
    part: str
    times: int
    skip: int = 0


class S3Proxy:
    """Passes everything on until told otherwise."""

    def __init__(self, upstream: str) -> None:
        self.upstream = urlsplit(upstream).netloc
        self.hits: Counter[Fault] = Counter()
        self.requests: list[tuple[str, str]] = []  #: method and path of each, in order
        self.late: queue.Queue[int] = queue.Queue()  #: what was answered to requests that came late
        self._plans: list[_Planned] = []
        self._lock = threading.Lock()
        self._released = threading.Event()
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> S3Proxy:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="s3-proxy", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()

    def plan(self, fault: Fault, method: str, part: str = "", times: int = 1, skip: int = 0) -> None:
        """Do this to the next `times` requests of `method` whose path has `part` in it, but for the first `skip`."""
        with self._lock:
            self._plans.append(_Planned(fault, method, part, times, skip))

    def release(self) -> None:
        """Let every slow answer go."""
        self._released.set()

    def fault_for(self, method: str, path: str) -> Fault | None:
        with self._lock:
            self.requests.append((method, unquote(path)))
            for planned in self._plans:
                if planned.method == method and planned.part in unquote(path):
                    if planned.skip:
                        planned.skip -= 1
                        continue
                    planned.times -= 1
                    if not planned.times:
                        self._plans.remove(planned)
                    self.hits[planned.fault] += 1
                    return planned.fault
        return None

    def wait_for_release(self) -> None:
        self._released.wait(60)


class _Handler(BaseHTTPRequestHandler):
    proxy: S3Proxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _pass(self) -> None:
        fault = self.proxy.fault_for(self.command, self.path)
        length = int(self.headers.get("content-length") or 0)
        if fault is Fault.CUT_UPLOAD:
            self._cut(length)
            return
        body = self.rfile.read(length)
        if fault in (Fault.ERROR, Fault.SLOW_DOWN):
            self._refuse(*((500, "InternalError") if fault is Fault.ERROR else (503, "SlowDown")))
            return
        if fault is Fault.LATE:
            self._break()
            self.proxy.wait_for_release()
            self.proxy.late.put(self._ask(body)[0])
            return
        status, headers, answer = self._ask(body)
        if fault is Fault.UNCONDITIONAL and status in (409, 412):
            status, headers, answer = 200, [("ETag", '"0"')], b""
        match fault:
            case Fault.LOST_ANSWER:
                self._break()
                return
            case Fault.ERROR_AFTER:
                self._refuse(500, "InternalError")
                return
            case Fault.SLOW:
                self.proxy.wait_for_release()
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _HOP_BY_HOP or (name.lower() == "content-length" and self.command == "HEAD"):
                self.send_header(name, value)
        if self.command != "HEAD" and status != 204:
            self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        upstream = http.client.HTTPConnection(self.proxy.upstream, timeout=60)
        try:
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in _HOP_BY_HOP:
                    upstream.putheader(name, value)
            upstream.putheader("Content-Length", str(len(body)))
            upstream.endheaders(body or None)
            answer = upstream.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            upstream.close()

    def _cut(self, length: int) -> None:
        """The server gets half of the body, the client no answer."""
        half = self.rfile.read(length // 2)
        upstream = http.client.HTTPConnection(self.proxy.upstream, timeout=60)
        with suppress(OSError):
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in _HOP_BY_HOP:
                    upstream.putheader(name, value)
            upstream.putheader("Content-Length", str(length))
            upstream.endheaders(half)
        upstream.close()
        self._break()

    def _refuse(self, status: int, code: str) -> None:
        answer = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>planned</Message></Error>'.encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    def _break(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(2)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""
