"""A TCP proxy before a Postgres server that drops the answer to a chosen statement: done, but nobody knows."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from stack.postgres import HOST, SUPERUSER, PostgresServer


class LosingProxy:
    """Forwards to `server`; once armed, the link dies before or after the server has done one statement."""

    def __init__(self, server: PostgresServer, passfile: Path) -> None:
        self._server = server
        self._listener = socket.create_server((HOST, 0))
        self._port = self._listener.getsockname()[1]
        self._passfile = passfile
        self._armed: tuple[bytes, bool] | None = None
        self.cuts = 0
        password = next(
            line.rsplit(":", 1)[1]
            for line in server.passfile.read_text().splitlines()
            if line.startswith(f"{HOST}:{server.port}:")
        )
        passfile.touch(mode=0o600)
        passfile.write_text(f"{HOST}:{self._port}:*:{SUPERUSER}:{password}\n")
        threading.Thread(target=self._accept, daemon=True).start()

    def dsn(self, database: str) -> str:
        return f"postgresql://{SUPERUSER}@{HOST}:{self._port}/{database}?passfile={self._passfile}"

    def lose_answer(self, statement: bytes) -> None:
        """The server does `statement`; its answer never arrives. Once."""
        self._armed = (statement, True)

    def lose_request(self, statement: bytes) -> None:
        """`statement` never arrives. Once."""
        self._armed = (statement, False)

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            upstream = socket.create_connection((HOST, self._server.port))
            lost = threading.Event()
            threading.Thread(target=self._requests, args=(client, upstream, lost), daemon=True).start()
            threading.Thread(target=self._answers, args=(upstream, client, lost), daemon=True).start()

    def _requests(self, client: socket.socket, upstream: socket.socket, lost: threading.Event) -> None:
        for data in _chunks(client):
            if self._armed and self._armed[0] in data:
                reaches_server, self._armed = self._armed[1], None
                self.cuts += 1
                if not reaches_server:
                    break
                lost.set()
            upstream.sendall(data)
        _hang_up(client, upstream, wait=lost.is_set())

    def _answers(self, upstream: socket.socket, client: socket.socket, lost: threading.Event) -> None:
        for data in _chunks(upstream):
            if lost.is_set():
                break
            try:
                client.sendall(data)
            except OSError:
                break
        _hang_up(client, upstream, wait=False)


def _chunks(source: socket.socket) -> Iterator[bytes]:
    while True:
        try:
            data = source.recv(65536)
        except OSError:
            return
        if not data:
            return
        yield data


def _hang_up(client: socket.socket, upstream: socket.socket, *, wait: bool) -> None:
    if wait:  # the other direction hangs up, once the server has answered
        return
    for end in (client, upstream):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
