"""Receivers on loopback, each a process of its own: they read all, keep nothing, and say that they have it."""

from __future__ import annotations

import multiprocessing
import socketserver
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any

HOST = "127.0.0.1"


class _Lines(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            if b'"end": ' in line:
                self.wfile.write(b"ok\n")


class _Posts(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        left = int(self.headers["Content-Length"])
        while left and (part := self.rfile.read(min(left, 1 << 18))):
            left -= len(part)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


def _serve_tcp(tell: Connection) -> None:
    with socketserver.ThreadingTCPServer((HOST, 0), _Lines) as server:
        tell.send(server.server_address[1])
        server.serve_forever()


def _serve_http(tell: Connection) -> None:
    with ThreadingHTTPServer((HOST, 0), _Posts) as server:
        tell.send(server.server_address[1])
        server.serve_forever()


@contextmanager
def _running(serve: Callable[[Connection], None]) -> Iterator[int]:
    """The port of a receiver."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    process.start()
    try:
        yield int(here.recv())
    finally:
        process.terminate()
        process.join()


@contextmanager
def tcp() -> Iterator[str]:
    with _running(_serve_tcp) as port:
        yield f"tcp://{HOST}:{port}"


@contextmanager
def http() -> Iterator[str]:
    with _running(_serve_http) as port:
        yield f"http://{HOST}:{port}/"
